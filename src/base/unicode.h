/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only interface to utf8proc (unicode.c): grapheme clusters, their width in terminal
 * cells, normalization and categories. Input is untrusted bytes. Any thread; no state. Builds without
 * utf8proc (unicode_none.c) handle ASCII only; the first two functions report the effect of that. */
#ifndef QSF_BASE_UNICODE_H
#define QSF_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether this build supports normal forms; if not, qsf_normal_form returns NULL. */
bool qsf_unicode_has_forms(void);
/* Returns whether this thread, since its last call of this function, has requested the category or case of a
 * character that this build has no data for, so that the result may be wrong. Always false with utf8proc. */
bool qsf_unicode_guessed(void);

/* Returns the length in bytes of the first grapheme cluster of s[0..len) (UAX #29), 0 if len is 0.
 * *cells (may be NULL) is its width in terminal cells: 0 for control characters and lone combining
 * marks, 1, 2 for wide characters and emoji, more for clusters with spacing marks. An
 * ill-formed byte is a separate cluster, 1 cell wide (it is shown as U+FFFD). */
size_t qsf_grapheme_next(const char *s, size_t len, int *cells);
/* Returns the total width of all clusters. */
size_t qsf_text_cells(const char *s, size_t len);

typedef enum QsfNormalForm { QSF_NFC, QSF_NFD, QSF_NFKC, QSF_NFKD } QsfNormalForm;
/* Returns that form of s[0..len), NUL-terminated, and in *out_len (may be NULL) its length. The caller
 * frees it. NULL if s is not UTF-8, out of memory, or interrupted (interrupt.h). NULs in s are kept. Time
 * grows with len only. */
char *qsf_normal_form(const char *s, size_t len, QsfNormalForm form, size_t *out_len);

/* Returns the two-letter general category ("Lu", "Nd", "Zs", ...); "Cn" for unassigned code points.
 * Static. */
const char *qsf_unicode_category(uint32_t cp);

/* Simple (one-to-one) case mappings; return cp if it has none. */
uint32_t qsf_unicode_upper(uint32_t cp);
uint32_t qsf_unicode_lower(uint32_t cp);

#endif
