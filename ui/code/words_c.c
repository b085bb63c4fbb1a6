/* SPDX-License-Identifier: GPL-3.0-or-later */
/* C and C++. */
#include "ui/code/c_like.h"

/* clang-format off */
static const char *const c_keywords[] = {
    "NULL", "_Alignas", "_Alignof", "_Atomic", "_Generic", "_Noreturn", "_Static_assert", "_Thread_local",
    "alignas", "alignof", "auto", "break", "case", "const", "constexpr", "continue", "default", "do",
    "else", "enum", "extern", "false", "for", "goto", "if", "inline", "nullptr", "register", "restrict",
    "return", "sizeof", "static", "static_assert", "struct", "switch", "thread_local", "true", "typedef",
    "typeof", "typeof_unqual", "union", "volatile", "while",
};
/* clang-format on */

static const char *const c_types[] = { "FILE",  "_BitInt", "_Bool",    "_Complex", "bool",
                                       "char",  "double",  "float",    "int",      "long",
                                       "short", "signed",  "unsigned", "va_list",  "void" };

/* clang-format off */
static const char *const cpp_keywords[] = {
    "NULL", "_Alignas", "_Alignof", "_Atomic", "_Generic", "_Noreturn", "_Static_assert", "_Thread_local",
    "alignas", "alignof", "and", "asm", "auto", "break", "case", "catch", "class", "co_await",
    "co_return", "co_yield", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "delete", "do", "dynamic_cast", "else", "enum", "explicit",
    "export", "extern", "false", "final", "for", "friend", "goto", "if", "import", "inline", "module",
    "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "override", "private",
    "protected", "public", "register", "reinterpret_cast", "requires", "return", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local", "throw",
    "true", "try", "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union", "using",
    "virtual", "volatile", "while", "xor",
};
/* clang-format on */

/* clang-format off */
static const char *const cpp_types[] = {
    "FILE", "_BitInt", "_Bool", "_Complex", "array", "atomic", "bool", "char", "char16_t", "char32_t",
    "char8_t", "deque", "double", "float", "function", "int", "istream", "list", "long", "map", "mutex",
    "optional", "ostream", "pair", "set", "shared_ptr", "short", "signed", "span", "string",
    "string_view", "thread", "tuple", "unique_ptr", "unordered_map", "unordered_set", "unsigned",
    "va_list", "variant", "vector", "void", "wchar_t", "weak_ptr",
};
/* clang-format on */

const UiLexer ui_lexer_c = {
    .names = "c,h",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(c_keywords),
    .types = UI_WORDS(c_types),
    .flags = UI_C_DIRECTIVES | UI_C_SUFFIX_T,
};

const UiLexer ui_lexer_cpp = {
    .names = "c++,cpp,cc,cxx,hpp,hh,hxx,cuda,arduino,ino",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(cpp_keywords),
    .types = UI_WORDS(cpp_types),
    .flags = UI_C_DIRECTIVES | UI_C_SUFFIX_T | UI_C_RAW,
};
