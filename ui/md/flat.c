/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs of a block as one text that can be wrapped, and pieces of it as spans. */
#include <stdlib.h>
#include <string.h>

#include "ui/md/layout.h"

static bool add_piece(UiMdLay *l, UiInk ink, size_t src) {
    if (l->n_pieces == l->cap_pieces) {
        const size_t cap = l->cap_pieces ? l->cap_pieces * 2 : 32;
        UiMdPiece *p = realloc(l->pieces, cap * sizeof *p);
        if (!p) return false;
        l->pieces = p;
        l->cap_pieces = cap;
    }
    l->pieces[l->n_pieces++] = (UiMdPiece){ (uint32_t)l->flat.len, (uint32_t)src, ink };
    return true;
}

void ui_md_flat_add(UiMdLay *l, UiInk ink, size_t src, const char *s, size_t len) {
    const size_t at = l->flat.len;
    if (len == 0 || !add_piece(l, ink, src) || !ui_buf_add(&l->flat, s, len)) return;
    for (size_t i = at; i < l->flat.len; i++) {
        if (l->flat.data[i] == '\t') l->flat.data[i] = ' ';
    }
}

/* The link that is being shown. */
typedef struct Flat {
    uint16_t link;
    bool image, strike, opens; /* opens: the terminal opens it */
    size_t start;              /* of its text in flat */
    UiInk ink;
    size_t src;
} Flat;

static bool same_text(const char *a, size_t len, const char *url, size_t url_len) {
    static const char *const hidden[] = { "", "mailto:", "http://", "https://" };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        const size_t n = strlen(hidden[i]);
        if (url_len == len + n && memcmp(url, hidden[i], n) == 0 && memcmp(url + n, a, len) == 0) return true;
    }
    return false;
}

/* After the text of a link: its URL, where the terminal cannot have it. */
static void end_link(UiMdLay *l, Flat *f) {
    static const UiInk dim = { .style = UI_STYLE_DIM };
    const UiMdLink *link = &l->d->links[f->link];
    const char *url = ui_buf_str(&l->d->own) + link->off;
    if (f->image) ui_md_flat_add(l, f->ink, f->src, "]", 1);
    const bool hidden = f->opens || link->len == 0 || *url == '#' ||
                        (link->len > 5 && memcmp(url, "data:", 5) == 0);
    if (f->link > 0 && !hidden &&
        !same_text(ui_buf_str(&l->flat) + f->start, l->flat.len - f->start, url, link->len)) {
        ui_md_flat_add(l, dim, f->src, " (", 2);
        ui_md_flat_add(l, dim, f->src, url, link->len);
        ui_md_flat_add(l, dim, f->src, ")", 1);
    }
    f->link = 0;
    f->image = f->opens = false;
}

static void begin_link(UiMdLay *l, Flat *f, const UiMdRun *run, UiInk *ink) {
    const UiMdLink *link = &l->d->links[run->link];
    const char *url = ui_buf_str(&l->d->own) + link->off;
    f->link = run->link;
    f->image = (run->style & UI_MD_IMAGE) != 0;
    f->opens = l->look.links && ui_canvas_may_link(url, link->len);
    ink->link = f->opens ? ui_md_rows_link(l->r, url, link->len) : 0;
    f->start = l->flat.len;
    f->ink = *ink;
    if (f->image) ui_md_flat_add(l, *ink, f->src, "[image: ", 8);
}

static UiInk ink_of(const UiMdRun *run, UiInk base) {
    UiInk ink = base;
    if (run->style & UI_MD_MONO) ink.style = UI_STYLE_INLINE;
    if (run->link > 0) ink.style = UI_STYLE_LINK;
    if (run->style & UI_MD_BOLD) ink.attrs |= UI_ATTR_BOLD;
    if (run->style & UI_MD_ITALIC) ink.attrs |= UI_ATTR_ITALIC;
    if (run->style & UI_MD_STRIKE) ink.attrs |= UI_ATTR_STRIKE;
    return ink;
}

/* Marks of text that would be struck through elsewhere. */
static void set_strike(UiMdLay *l, Flat *f, bool on, UiInk ink) {
    if (f->strike != on && !l->look.strike) ui_md_flat_add(l, ink, f->src, "~~", 2);
    f->strike = on;
}

size_t ui_md_flatten(UiMdLay *l, const UiMdBlock *b, UiInk base) {
    const size_t start = l->flat.len;
    Flat f = { .src = b->off };
    for (uint32_t i = 0; i < b->n; i++) {
        const UiMdRun *run = &l->d->runs[b->run + i];
        if (run->style & (UI_MD_HARD | UI_MD_SOFT)) {
            ui_md_flat_add(l, base, f.src, "\n", 1);
            continue;
        }
        UiInk ink = ink_of(run, base);
        if (f.link != run->link || f.image != ((run->style & UI_MD_IMAGE) != 0)) {
            if (f.link > 0 || f.image) end_link(l, &f);
            if (run->link > 0) begin_link(l, &f, run, &ink);
        }
        if (f.link > 0) ink.link = f.ink.link;
        set_strike(l, &f, (run->style & UI_MD_STRIKE) != 0, ink);
        if (!(run->style & UI_MD_OWN)) f.src = run->off;
        ui_md_flat_add(l, ink, f.src, ui_md_text(l->d, l->text, run), run->len);
        if (!(run->style & UI_MD_OWN)) f.src += run->len;
    }
    set_strike(l, &f, false, base);
    if (f.link > 0 || f.image) end_link(l, &f);
    return start;
}

/* The piece with flat[at]. */
static size_t piece_of(const UiMdLay *l, size_t at) {
    size_t low = 0, high = l->n_pieces;
    while (low + 1 < high) {
        const size_t mid = (low + high) / 2;
        if (l->pieces[mid].off <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

int ui_md_put_flat(UiMdLay *l, int col, size_t from, size_t to) {
    for (size_t k = l->n_pieces > 0 ? piece_of(l, from) : 0; k < l->n_pieces && from < to; k++) {
        size_t end = k + 1 < l->n_pieces ? l->pieces[k + 1].off : l->flat.len;
        if (end > to) end = to;
        if (end <= from) continue;
        col = ui_md_rows_put(l->r, col, l->pieces[k].ink, l->flat.data + from, end - from);
        from = end;
    }
    return col;
}

size_t ui_md_source_of(const UiMdLay *l, size_t at) {
    if (l->n_pieces == 0) return 0;
    const size_t k = piece_of(l, at);
    const UiMdPiece *p = &l->pieces[k];
    const size_t src = p->src + (at > p->off ? at - p->off : 0);
    /* Text that is not in the source may be longer than what it is there. */
    return k + 1 < l->n_pieces && src > p[1].src ? p[1].src : src;
}
