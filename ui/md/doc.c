/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of a document. */
#include <stdlib.h>

#include "ui/md/parse.h"

bool ui_md_grow(void **p, size_t *cap, size_t n, size_t size) {
    if (n < *cap) return true;
    const size_t more = *cap ? *cap * 2 : 16;
    void *q = realloc(*p, more * size);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

void ui_md_free(UiMdDoc *d) {
    free(d->blocks);
    free(d->boxes);
    free(d->runs);
    free(d->links);
    ui_buf_free(&d->own);
    ui_md_prepared_free(&d->prepared);
    *d = (UiMdDoc){ 0 };
}

const char *ui_md_text(const UiMdDoc *d, const char *text, const UiMdRun *run) {
    return run->style & UI_MD_OWN ? ui_buf_str(&d->own) + run->off : text + run->off;
}
