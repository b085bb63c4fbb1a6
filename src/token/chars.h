/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Characters of untrusted text, and the classes that tokenizers ask for. Any thread; no state. */
#ifndef QSF_TOKEN_CHARS_H
#define QSF_TOKEN_CHARS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at the start of s[0..len), as qsf_utf8_next. */
size_t qsf_char_at(const char *s, size_t len, uint32_t *cp);
/* The character that ends before s[end], end > 0: its length; an ill-formed byte is one of its own. */
size_t qsf_char_before(const char *s, size_t end, uint32_t *cp);
/* White_Space of the Unicode Character Database. */
bool qsf_char_is_space(uint32_t cp);
/* Letters, marks, decimal digits, connectors and join controls: \w of Unicode (UTS #18, annex C). */
bool qsf_char_is_word(uint32_t cp);

#endif
