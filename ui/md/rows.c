/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of the screen. */
#include "ui/md/rows.h"

#include <stdlib.h>
#include <string.h>

#include "ui/wrap.h"

static bool grow(UiMdRows *r, void **p, size_t *cap, size_t n, size_t size) {
    if (n < *cap) return true;
    const size_t more = *cap ? *cap * 2 : 16;
    void *q = realloc(*p, more * size);
    if (!q) {
        r->failed = true;
        return false;
    }
    *p = q;
    *cap = more;
    return true;
}

void ui_md_rows_clear(UiMdRows *r) {
    r->n = r->n_spans = r->n_links = 0;
    r->failed = false;
    ui_buf_clear(&r->text);
}

void ui_md_rows_free(UiMdRows *r) {
    free(r->rows);
    free(r->spans);
    free(r->links);
    ui_buf_free(&r->text);
    *r = (UiMdRows){ 0 };
}

void ui_md_rows_add(UiMdRows *r, size_t src) {
    if (!grow(r, (void **)&r->rows, &r->cap, r->n, sizeof *r->rows)) return;
    r->rows[r->n++] = (UiMdRow){ .span = (uint32_t)r->n_spans, .src = (uint32_t)src };
}

static bool add_span(UiMdRows *r, int col, UiInk ink, size_t off, size_t len) {
    UiMdRow *row = &r->rows[r->n - 1];
    UiMdSpan *last = row->n > 0 ? &r->spans[r->n_spans - 1] : NULL;
    if (last && r->end == col && last->off + last->len == off && memcmp(&last->ink, &ink, sizeof ink) == 0) {
        last->len += (uint32_t)len;
        return true;
    }
    if (!grow(r, (void **)&r->spans, &r->cap_spans, r->n_spans, sizeof *r->spans)) return false;
    r->spans[r->n_spans++] = (UiMdSpan){ (uint32_t)off, (uint32_t)len, (uint16_t)col, ink };
    row->n++;
    return true;
}

int ui_md_rows_put(UiMdRows *r, int col, UiInk ink, const char *s, size_t len) {
    const size_t off = r->text.len;
    int at = col;
    if (r->n == 0 || len == 0 || col > UINT16_MAX) return col;
    for (size_t i = 0; i < len;) {
        int cells = 0;
        const size_t n = ui_wrap_step(s + i, len - i, at - col, &cells);
        if (n == 0) break;
        if (s[i] == '\t')
            (void)ui_buf_add(&r->text, "        ", (size_t)cells);
        else
            (void)ui_buf_add(&r->text, s + i, n);
        at += cells;
        i += n;
    }
    if (r->text.failed) {
        r->failed = true;
        return col;
    }
    if (add_span(r, col, ink, off, r->text.len - off)) r->end = at;
    return at;
}

uint16_t ui_md_rows_link(UiMdRows *r, const char *url, size_t len) {
    if (r->n_links > UINT16_MAX - 1) return 0;
    if (!grow(r, (void **)&r->links, &r->cap_links, r->n_links + 1, sizeof *r->links)) return 0;
    if (r->n_links == 0) r->links[r->n_links++] = 0;
    r->links[r->n_links] = (uint32_t)r->text.len;
    if (!ui_buf_add(&r->text, url, len) || !ui_buf_add(&r->text, "", 1)) return 0;
    return (uint16_t)r->n_links++;
}

int ui_md_rows_draw(const UiMdRows *r, size_t k, UiCanvas *c, int row, int col, int end, bool faint) {
    int at = col;
    if (k >= r->n) return col;
    const char *text = ui_buf_str(&r->text);
    for (uint32_t i = 0; i < r->rows[k].n; i++) {
        const UiMdSpan *span = &r->spans[r->rows[k].span + i];
        UiInk ink = span->ink;
        if (faint) ink.style = UI_STYLE_DIM;
        if (ink.link > 0) ink.link = ui_canvas_link(c, text + r->links[ink.link]);
        at = ui_canvas_ink(c, row, col + span->col, end, ink, text + span->off, span->len);
    }
    return at;
}
