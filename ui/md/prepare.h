/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as md4c should read it: formulas are hidden from it, so that their backslashes, underscores and
 * lines are not marks, and the second lines of tables get the three dashes for each column that md4c 0.4.8
 * expects (GitHub asks for one). One thread. */
#ifndef QSF_UI_MD_PREPARE_H
#define QSF_UI_MD_PREPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/buf.h"
#include "ui/md/math.h"

/* n bytes at text.data[at] that are not in the source, where they would be at source[from]. */
typedef struct UiMdAdded {
    size_t at, from, n;
    size_t all; /* with those before */
} UiMdAdded;

typedef struct UiMdPrepared {
    UiBuf text;       /* ends with a newline: md4c 0.4.8 reads the byte after a text that ends in a link */
    UiMdMath *math;   /* (n_math) by offset; offsets are of text */
    UiMdAdded *added; /* (n_added) by offset */
    size_t n_math, cap_math, n_added, cap_added;
} UiMdPrepared;

/* Prepares s[0..len); p is zeroed or holds an earlier text. false without memory. */
bool ui_md_prepare(UiMdPrepared *p, const char *s, size_t len);
/* Where text.data[at] is in the source, and the other way round. */
size_t ui_md_to_source(const UiMdPrepared *p, size_t at);
size_t ui_md_from_source(const UiMdPrepared *p, size_t at);
/* Makes *p, with space for *cap elements of size bytes, hold more than n. false without memory. */
bool ui_md_grow(void **p, size_t *cap, size_t n, size_t size);
/* Releases its memory and zeroes it. */
void ui_md_prepared_free(UiMdPrepared *p);

#endif
