/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks of Markdown as rows: paragraphs, headings, lists, quotes and rules. */
#include "ui/md/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/wrap.h"

/* ---- what is around a block ---- */

static unsigned digits(uint32_t n) {
    unsigned k = 1;
    while (n >= 10) n /= 10, k++;
    return k;
}

/* Numbers are right-aligned, in two columns if they are short: then item 10 does not move items 1 to 9. */
static unsigned number_width(const UiMdLay *l, const UiMdBox *item) {
    const UiMdBox *list = &l->d->boxes[item->parent];
    const unsigned n = digits(list->number + (list->count > 0 ? list->count - 1 : 0));
    return n < 2 ? 2 : n;
}

static int box_width(const UiMdLay *l, const UiMdBox *box) {
    if (box->kind == UI_MD_QUOTE) return 2;
    if (box->kind != UI_MD_ITEM) return 0;
    const int task = box->task ? (l->look.unicode ? 2 : 4) : 0;
    return box->ordered ? (int)number_width(l, box) + 2 + task : task ? task : 2;
}

/* The boxes around box, from the outermost; what does not fit into half of the width is left out. Returns
 * their number. */
static int chain_of(const UiMdLay *l, uint32_t box, uint32_t chain[UI_MD_NEST + 1], int *width) {
    int n = 0;
    *width = 0;
    for (uint32_t b = box; b != 0 && n <= UI_MD_NEST; b = l->d->boxes[b].parent) chain[n++] = b;
    for (int i = 0; i < n / 2; i++) {
        const uint32_t b = chain[i];
        chain[i] = chain[n - 1 - i];
        chain[n - 1 - i] = b;
    }
    for (int i = 0; i < n; i++) {
        const int w = box_width(l, &l->d->boxes[chain[i]]);
        if (*width + w > l->look.width / 2 && i > 0) return i;
        *width += w;
    }
    return n;
}

/* Lists around it. */
static unsigned nesting(const UiMdLay *l, const UiMdBox *box) {
    unsigned n = 0;
    for (; box->depth > 0; box = &l->d->boxes[box->parent]) n += box->kind == UI_MD_LIST;
    return n;
}

static void put_mark(UiMdLay *l, const UiMdBox *box, int col) {
    static const UiInk ink = { .style = UI_STYLE_MARK };
    char text[24] = "";
    if (box->ordered)
        (void)snprintf(text, sizeof text, "%*u. ", (int)number_width(l, box), (unsigned)box->number);
    else if (!box->task)
        (void)snprintf(text, sizeof text, "%s", !l->look.unicode ? "-" : nesting(l, box) > 1 ? "◦" : "•");
    col = ui_md_rows_put(l->r, col, ink, text, strlen(text));
    if (!box->task) return;
    const char *task = l->look.unicode ? (box->done ? "☑" : "☐") : (box->done ? "[x]" : "[ ]");
    (void)ui_md_rows_put(l->r, col, ink, task, strlen(task));
}

int ui_md_open_row(UiMdLay *l, uint32_t box, size_t src) {
    static const UiInk bar = { .style = UI_STYLE_QUOTE };
    uint32_t chain[UI_MD_NEST + 1];
    int width = 0, col = 0;
    ui_md_rows_add(l->r, l->src + src);
    const int n = box == 0 ? 0 : chain_of(l, box, chain, &width);
    for (int i = 0; i < n; i++) {
        const UiMdBox *b = &l->d->boxes[chain[i]];
        if (b->kind == UI_MD_QUOTE)
            (void)ui_md_rows_put(l->r, col, bar, l->look.unicode ? "│" : "|", l->look.unicode ? 3 : 1);
        if (b->kind == UI_MD_ITEM && !l->marked[chain[i]]) put_mark(l, b, col);
        if (b->kind == UI_MD_ITEM) l->marked[chain[i]] = true;
        col += box_width(l, b);
    }
    return col;
}

int ui_md_room(const UiMdLay *l, uint32_t box) {
    uint32_t chain[UI_MD_NEST + 1];
    int width = 0;
    if (box != 0) (void)chain_of(l, box, chain, &width);
    return l->look.width - width > 1 ? l->look.width - width : 1;
}

int ui_md_repeat(UiMdLay *l, int col, int n, UiStyle style, const char *s) {
    const UiInk ink = { .style = (uint8_t)style };
    for (; n > 0; n--) col = ui_md_rows_put(l->r, col, ink, s, strlen(s));
    return col;
}

/* ---- blocks ---- */

static void lay_text(UiMdLay *l, const UiMdBlock *b, UiStyle style) {
    const int room = ui_md_room(l, b->box);
    ui_buf_clear(&l->flat);
    l->n_pieces = 0;
    (void)ui_md_flatten(l, b, (UiInk){ .style = (uint8_t)style });
    const char *s = ui_buf_str(&l->flat);
    size_t off = 0;
    do {
        UiLine line;
        unsigned indent;
        const size_t next = ui_wrap_next(s, l->flat.len, off, 0, room, &line, &indent);
        const int col = ui_md_open_row(l, b->box, l->flat.len > 0 ? ui_md_source_of(l, line.off) : b->off);
        (void)ui_md_put_flat(l, col, line.off, line.off + line.len);
        off = next;
    } while (off < l->flat.len);
}

static void lay_rule(UiMdLay *l, const UiMdBlock *b) {
    const int col = ui_md_open_row(l, b->box, b->off);
    (void)ui_md_repeat(l, col, ui_md_room(l, b->box), UI_STYLE_DIM, l->look.unicode ? "─" : "-");
}

/* Lines end with a run of their own. */
static void lay_code(UiMdLay *l, const UiMdBlock *b) {
    UiCodeState state = { 0 };
    const char *info = ui_buf_str(&l->d->own) + b->info;
    const UiLexer *x = ui_code_lexer(info, b->info_len);
    size_t src = b->off;
    ui_md_code_head(l, b->box, info, b->info_len, l->look.codes + l->codes + b->number, b->off);
    ui_buf_clear(&l->flat);
    for (uint32_t i = 0; i < b->n; i++) {
        const UiMdRun *run = &l->d->runs[b->run + i];
        if (!(run->style & UI_MD_SOFT)) {
            /* Only indentation may be before the text of the source. */
            if (!(run->style & UI_MD_OWN)) src = run->off > l->flat.len ? run->off - l->flat.len : 0;
            (void)ui_buf_add(&l->flat, ui_md_text(l->d, l->text, run), run->len);
        }
        if (!(run->style & UI_MD_SOFT) && i + 1 < b->n) continue;
        ui_md_code_line(l, b->box, ui_buf_str(&l->flat), l->flat.len, x, &state, src);
        ui_buf_clear(&l->flat);
    }
}

static UiStyle heading(unsigned level) {
    return level < 2 ? UI_STYLE_H1 : level == 2 ? UI_STYLE_H2 : UI_STYLE_H3;
}

static void lay_block(UiMdLay *l, size_t i) {
    const UiMdBlock *b = &l->d->blocks[i];
    switch (b->kind) {
    case UI_MD_HEADING: lay_text(l, b, heading(b->level)); break;
    case UI_MD_RULE: lay_rule(l, b); break;
    case UI_MD_CODE: lay_code(l, b); break;
    case UI_MD_TABLE: ui_md_table(l, i); break;
    default: lay_text(l, b, UI_STYLE_TEXT);
    }
}

/* The innermost box around both. */
static uint32_t common_box(const UiMdDoc *d, uint32_t a, uint32_t b) {
    while (a != b) {
        if (d->boxes[a].depth >= d->boxes[b].depth)
            a = d->boxes[a].parent;
        else
            b = d->boxes[b].parent;
    }
    return a;
}

static bool prepare(UiMdLay *l) {
    if (l->d->n_boxes > l->cap_marked) {
        const size_t cap = l->d->n_boxes * 2;
        bool *p = realloc(l->marked, cap);
        if (!p) return false;
        l->marked = p;
        l->cap_marked = cap;
    }
    if (l->d->n_boxes > 0) memset(l->marked, 0, l->d->n_boxes);
    return true;
}

void ui_md_layout(UiMdLay *l, bool blank) {
    uint32_t last = 0;
    if (!prepare(l)) {
        l->r->failed = true;
        return;
    }
    for (size_t i = 0; i < l->d->n_blocks; i++) {
        const UiMdBlock *b = &l->d->blocks[i];
        if (b->kind == UI_MD_CELL) continue;
        if (l->above && (l->after_block || (i == 0 ? blank : b->blank)))
            (void)ui_md_open_row(l, common_box(l->d, last, b->box), b->off);
        lay_block(l, i);
        l->above = true;
        l->after_block = b->kind == UI_MD_TABLE || b->kind == UI_MD_CODE;
        last = b->box;
    }
}

void ui_md_layout_free(UiMdLay *l) {
    ui_buf_free(&l->flat);
    free(l->pieces);
    free(l->marked);
    *l = (UiMdLay){ 0 };
}
