/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Go. */
#include "ui/code/c_like.h"

/* clang-format off */
static const char *const keywords[] = {
    "break", "case", "chan", "const", "continue", "default", "defer", "else", "fallthrough", "false",
    "for", "func", "go", "goto", "if", "import", "interface", "iota", "map", "nil", "package", "range",
    "return", "select", "struct", "switch", "true", "type", "var",
};
/* clang-format on */

/* clang-format off */
static const char *const types[] = {
    "any", "bool", "byte", "comparable", "complex128", "complex64", "error", "float32", "float64", "int",
    "int16", "int32", "int64", "int8", "rune", "string", "uint", "uint16", "uint32", "uint64", "uint8",
    "uintptr",
};
/* clang-format on */

const UiLexer ui_lexer_go = {
    .names = "go,golang",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(keywords),
    .types = UI_WORDS(types),
    .flags = UI_C_BACKQUOTE,
};
