/* SPDX-License-Identifier: GPL-3.0-or-later */
/* UTF-8 over untrusted bytes. Any thread; no state. */
#ifndef QSF_BASE_UTF8_H
#define QSF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one code point from s[0..len). Returns its length 1..4, or 0 if len is 0. Ill-formed
 * input (overlong, surrogate, > U+10FFFF, cut) gives *cp = 0xFFFFFFFF and length 1. */
size_t qsf_utf8_next(const char *s, size_t len, uint32_t *cp);
/* Encodes cp, which must be a scalar value, as 1..4 bytes and returns their number. */
size_t qsf_utf8_put(uint32_t cp, char out[4]);
/* Is s[0..len) well-formed UTF-8: no surrogates, overlong forms or cut sequences? NULs are allowed. */
bool qsf_utf8_valid(const char *s, size_t len);
/* Returns the length of the run at the start of s, len > 0, that is either well-formed (*ok) or has no byte
 * of a well-formed sequence; of a part of it if the thread is to stop (interrupt.h), which callers check. */
size_t qsf_utf8_run(const char *s, size_t len, bool *ok);
/* Returns the length of the byte order mark at the start of s: 3, or 0 if there is none. */
size_t qsf_utf8_bom(const char *s, size_t len);
/* Returns the number of bytes at the end of s (0..3) that are the start of a sequence that more bytes could
 * complete. */
size_t qsf_utf8_incomplete_tail(const char *s, size_t len);
/* Is it a code point that is invisible or changes how others are shown: line separators, bidirectional
 * controls, marks and tags? */
bool qsf_utf8_is_hidden(uint32_t cp);
/* Makes untrusted bytes safe to display, in place: every control character (C0, DEL, C1, code points
 * of qsf_utf8_is_hidden) and every ill-formed byte becomes '?'. '\n' is kept only with
 * keep_newlines. Returns the new length, at most len; writes no NUL. */
size_t qsf_utf8_clean(char *s, size_t len, bool keep_newlines);

#endif
