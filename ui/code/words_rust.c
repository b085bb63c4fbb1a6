/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rust. */
#include "ui/code/c_like.h"

/* clang-format off */
static const char *const keywords[] = {
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern",
    "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "type", "union", "unsafe", "use",
    "where", "while",
};
/* clang-format on */

/* clang-format off */
static const char *const types[] = {
    "Self", "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize", "str", "u128",
    "u16", "u32", "u64", "u8", "usize",
};
/* clang-format on */

const UiLexer ui_lexer_rust = {
    .names = "rust,rs",
    .line = ui_c_like_line,
    .keywords = UI_WORDS(keywords),
    .types = UI_WORDS(types),
    .flags = UI_C_RUST | UI_C_CAPITAL,
};
