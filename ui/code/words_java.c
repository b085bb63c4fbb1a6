/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Java. */
#include "ui/code/c_like.h"

/* clang-format off */
static const char *const keywords[] = {
    "abstract", "assert", "break", "case", "catch", "class", "const", "continue", "default", "do", "else",
    "enum", "exports", "extends", "false", "final", "finally", "for", "goto", "if", "implements",
    "import", "instanceof", "interface", "module", "native", "new", "null", "opens", "package", "permits",
    "private", "protected", "provides", "public", "record", "requires", "return", "sealed", "static",
    "strictfp", "super", "switch", "synchronized", "this", "throw", "throws", "transient", "true", "try",
    "var", "volatile", "while", "with", "yield",
};
/* clang-format on */

static const char *const types[] = { "boolean", "byte", "char",  "double", "float",
                                     "int",     "long", "short", "void" };

const UiLexer ui_lexer_java = {
    .names = "java",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(keywords),
    .types = UI_WORDS(types),
    .flags = UI_C_CAPITAL | UI_C_DECORATOR | UI_C_TEXT_BLOCK,
};
