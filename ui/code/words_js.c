/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JavaScript and TypeScript, with and without tags in them. */
#include "ui/code/c_like.h"

/* clang-format off */
static const char *const js_keywords[] = {
    "Infinity", "NaN", "as", "async", "await", "break", "case", "catch", "class", "const", "continue",
    "debugger", "default", "delete", "do", "else", "export", "extends", "false", "finally", "for", "from",
    "function", "if", "import", "in", "instanceof", "let", "new", "null", "of", "return", "static",
    "super", "switch", "this", "throw", "true", "try", "typeof", "undefined", "var", "void", "while",
    "with", "yield",
};
/* clang-format on */

/* clang-format off */
static const char *const js_types[] = {
    "Array", "BigInt", "Boolean", "Date", "Error", "Function", "JSON", "Map", "Math", "Number", "Object",
    "Promise", "Proxy", "Reflect", "RegExp", "Set", "String", "Symbol", "WeakMap", "WeakSet",
};
/* clang-format on */

/* clang-format off */
static const char *const ts_keywords[] = {
    "Infinity", "NaN", "abstract", "as", "async", "await", "break", "case", "catch", "class", "const",
    "continue", "debugger", "declare", "default", "delete", "do", "else", "enum", "export", "extends",
    "false", "finally", "for", "from", "function", "if", "implements", "import", "in", "infer",
    "instanceof", "interface", "is", "keyof", "let", "namespace", "new", "null", "of", "override",
    "private", "protected", "public", "readonly", "return", "satisfies", "static", "super", "switch",
    "this", "throw", "true", "try", "type", "typeof", "undefined", "unique", "var", "while", "with",
    "yield",
};
/* clang-format on */

/* clang-format off */
static const char *const ts_types[] = {
    "Array", "BigInt", "Boolean", "Date", "Error", "Function", "JSON", "Map", "Math", "Number", "Object",
    "Omit", "Partial", "Pick", "Promise", "Proxy", "Readonly", "Record", "Reflect", "RegExp", "Required",
    "Set", "String", "Symbol", "WeakMap", "WeakSet", "any", "bigint", "boolean", "never", "number",
    "object", "string", "symbol", "unknown", "void",
};
/* clang-format on */

const UiLexer ui_lexer_js = {
    .names = "javascript,js,jsx,mjs,cjs,node,ecmascript",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(js_keywords),
    .types = UI_WORDS(js_types),
    .flags = UI_C_TEMPLATE | UI_C_CAPITAL | UI_C_DECORATOR,
};

const UiLexer ui_lexer_ts = {
    .names = "typescript,ts,tsx,mts,cts",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(ts_keywords),
    .types = UI_WORDS(ts_types),
    .flags = UI_C_TEMPLATE | UI_C_CAPITAL | UI_C_DECORATOR,
};
