/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only door to utf8proc: grapheme clusters, their width in terminal cells, normalization and
 * categories. Input is untrusted bytes. Any thread; no state. Where a build leaves utf8proc out
 * (unicode_none.c), only ASCII is known: two functions say what came of that. */
#ifndef QSF_BASE_UNICODE_H
#define QSF_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this build knows normal forms; without them qsf_normal_form gives NULL. */
bool qsf_unicode_has_forms(void);
/* Whether this thread has asked, since it last called this, for the category or the case of a character that this
 * build knows nothing of, so that what came of it is wrong. Never with utf8proc. */
bool qsf_unicode_guessed(void);

/* Bytes of the first grapheme cluster of s[0..len) (UAX #29), 0 when len is 0; *cells (may be NULL)
 * its width in terminal cells: 0 for control characters and lone combining marks, 1, 2 for wide
 * and emoji, more where a cluster has spacing marks. An ill-formed byte is a cluster of its own,
 * 1 cell wide (it is shown as U+FFFD). */
size_t qsf_grapheme_next(const char *s, size_t len, int *cells);
/* Sum of the widths of all clusters. */
size_t qsf_text_cells(const char *s, size_t len);

/* NFC form of s[0..len), NUL-terminated, *out_len (may be NULL) its length; the caller frees it.
 * NULL when s is not UTF-8 or without memory. NULs inside are kept. */
char *qsf_nfc(const char *s, size_t len, size_t *out_len);

typedef enum QsfNormalForm { QSF_NFC, QSF_NFD, QSF_NFKC, QSF_NFKD } QsfNormalForm;
/* The same for any of the four forms. */
char *qsf_normal_form(const char *s, size_t len, QsfNormalForm form, size_t *out_len);

/* Two-letter general category ("Lu", "Nd", "Zs", ...), "Cn" for what is no character. Static. */
const char *qsf_unicode_category(uint32_t cp);

/* Simple (one to one) case mappings; what has none, or is no character, comes back as it is. */
uint32_t qsf_unicode_upper(uint32_t cp);
uint32_t qsf_unicode_lower(uint32_t cp);

#endif
