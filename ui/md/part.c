/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One part of an answer as rows. */
#include "ui/md/part.h"

#include <string.h>

#include "ui/md/guess.h"

typedef struct Part {
    const UiMdAnswer *a;
    UiMdCache *cache;
    const char *s; /* (len) its text */
    size_t len;
    const UiMdPart *part;
    bool open; /* more text may follow in it */
    bool ascii;
} Part;

/* ---- text ---- */

/* Parses the first keep bytes, with what closes open constructs, and the definitions of links. */
static void parse_with(Part *p, size_t keep, const UiBuf *ends) {
    UiBuf *b = &p->cache->text;
    if (ends->len == 0 && p->a->n_links == 0) {
        (void)ui_md_parse(&p->cache->doc, p->s, keep, keep, p->ascii);
        return;
    }
    ui_buf_clear(b);
    (void)ui_buf_add(b, p->s, keep);
    (void)ui_buf_add(b, ui_buf_str(ends), ends->len);
    (void)ui_buf_puts(b, "\n\n");
    (void)ui_buf_add(b, ui_buf_str(&p->a->links), p->a->n_links);
    if (b->failed) ui_buf_clear(b);
    (void)ui_md_parse(&p->cache->doc, ui_buf_str(b), b->len, b->len > keep ? keep : b->len, p->ascii);
}

/* The part of the text that can be shown, as it will most likely be. */
static void parse_open(Part *p) {
    static const UiBuf none = { 0 };
    UiMdDoc *d = &p->cache->doc;
    UiBuf ends = { 0 };
    size_t keep = ui_md_shown(p->s, p->len, false);
    parse_with(p, keep, &none);
    if (d->n_blocks == 0) return;
    const UiMdKind last = (UiMdKind)d->blocks[d->n_blocks - 1].kind;
    size_t shown = keep;
    if (last == UI_MD_CODE)
        shown = ui_md_shown(p->s, p->len, true);
    else if (last != UI_MD_HTML)
        shown = ui_md_guess(d, p->s, keep, &ends);
    if (shown != keep || ends.len > 0) parse_with(p, shown, &ends);
    ui_buf_free(&ends);
}

static void lay_text(Part *p, size_t *codes) {
    static const UiBuf none = { 0 };
    if (p->open)
        parse_open(p);
    else
        parse_with(p, p->len, &none);
    p->cache->lay.d = &p->cache->doc;
    ui_md_layout(&p->cache->lay, p->part->blank);
    *codes = p->cache->doc.n_codes;
}

/* ---- code ---- */

size_t ui_md_line_end(const char *s, size_t len, size_t from) {
    const char *nl = memchr(s + from, '\n', len - from);
    return nl ? (size_t)(nl - s) : len;
}

/* The part in which the code begins: its first line is the opening fence. */
static const UiMdPart *first_of(const UiMdPart *part) {
    while (part->continues) part--;
    return part;
}

static bool is_closing(const char *line, size_t len, char fence, size_t fence_len) {
    size_t i = 0, n = 0;
    while (i < len && i < 3 && line[i] == ' ') i++;
    while (i < len && line[i] == fence) i++, n++;
    while (i < len && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r')) i++;
    return n >= fence_len && i == len;
}

/* Sets the words after the opening fence. */
static void parse_fence(Part *p, const char *opening, size_t len, const char **info, size_t *info_len) {
    UiMdDoc *d = &p->cache->doc;
    *info = "";
    *info_len = 0;
    if (!ui_md_parse(d, opening, len, len, p->ascii) || d->n_blocks == 0 || d->blocks[0].kind != UI_MD_CODE)
        return;
    *info = ui_buf_str(&d->own) + d->blocks[0].info;
    *info_len = d->blocks[0].info_len;
}

static void lay_code(Part *p, const char *text, UiCodeState *state) {
    UiMdLay *l = &p->cache->lay;
    const UiMdPart *first = first_of(p->part);
    const char *opening = text + first->off, *info;
    const size_t rest = p->a->len - first->off, opening_len = ui_md_line_end(opening, rest, 0);
    size_t info_len, at = 0;
    const size_t fence_len = ui_md_fence(opening, opening_len, &at);
    parse_fence(p, opening, opening_len, &info, &info_len);
    const UiLexer *x = ui_code_lexer(info, info_len);
    size_t i = 0;
    if (!p->part->continues) {
        if (l->above && (p->part->blank || l->after_block)) (void)ui_md_open_row(l, 0, 0);
        ui_md_code_head(l, 0, info, info_len, l->look.codes + l->codes + 1, 0);
        i = ui_md_line_end(p->s, p->len, 0) + 1;
    }
    const size_t len = p->open ? ui_md_shown(p->s, p->len, true) : p->len;
    while (i < len) {
        const size_t end = ui_md_line_end(p->s, len, i);
        if (is_closing(p->s + i, end - i, *opening, fence_len)) break;
        ui_md_code_line(l, 0, p->s + i, end - i, x, state, i);
        i = end + 1;
    }
    l->after_block = true;
}

/* What is above the part. */
static void look_above(UiMdLay *l, const UiMdAnswer *a, size_t i) {
    l->above = l->after_block = false;
    while (i > 0 && a->split.parts[i - 1].rows == 0) i--;
    if (i == 0) return;
    l->above = true;
    l->after_block = a->split.parts[i - 1].ends_in_block;
}

void ui_md_part(const UiMdAnswer *a, UiMdCache *cache, const char *text, size_t i, UiMdRows *rows,
                size_t *codes, UiCodeState *state) {
    const UiMdPart *part = &a->split.parts[i];
    const size_t off = part->off < a->len ? part->off : a->len;
    const size_t end = i + 1 < a->split.n ? a->split.parts[i + 1].off : a->len;
    Part p = { .a = a, .cache = cache, .s = text + off, .len = end > off ? end - off : 0, .part = part };
    p.open = !a->closed && i + 1 == a->split.n;
    p.ascii = !a->look.unicode;
    if (p.len > 0 && end > a->len) p.len = a->len - off;
    UiMdLay *l = &cache->lay;
    ui_md_rows_clear(rows);
    l->r = rows;
    l->text = p.s;
    l->src = off;
    l->look = a->look;
    l->codes = part->code;
    look_above(l, a, i);
    *codes = 0;
    *state = part->continues ? a->states[part->state] : (UiCodeState){ 0 };
    if (part->kind == UI_MD_PART_TEXT) {
        lay_text(&p, codes);
        return;
    }
    lay_code(&p, text, state);
    *codes = part->continues ? 0 : 1;
}
