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

/* The 256 printable characters that byte-level BPE uses for bytes (openai/gpt-2 src/encoder.py,
 * bytes_to_unicode): printable Latin-1 maps to itself, the other 68 bytes are numbered from U+0100. */

/* Code point for a byte, below 0x144. */
uint32_t qsf_bytemap_cp(unsigned char byte);
/* Writes the characters of src[0..len) as UTF-8; dst holds 2 * len bytes. Returns the bytes written. */
size_t qsf_bytemap_encode(const char *src, size_t len, char *dst);
/* Converts back to bytes. Characters that do not encode a byte are copied unchanged. Writes at most cap
 * bytes, returns the full number (never more than len). */
size_t qsf_bytemap_decode(const char *src, size_t len, char *dst, size_t cap);

#endif
