/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text and Markdown as HTML. */
#include "ui/html.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "ui/code/highlight.h"
#include "ui/md/parse.h"
#include "ui/md/split.h"

#define UI_HTML_RUNS 512 /* of a line of code; the rest of a longer one is plain */

void ui_html_text(UiBuf *b, const char *s, size_t len) {
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        const char *to = s[i] == '&'    ? "&amp;"
                         : s[i] == '<'  ? "&lt;"
                         : s[i] == '>'  ? "&gt;"
                         : s[i] == '"'  ? "&quot;"
                         : s[i] == '\'' ? "&#39;"
                                        : NULL;
        if (!to) continue;
        ui_buf_add(b, s + from, i - from);
        ui_buf_puts(b, to);
        from = i + 1;
    }
    ui_buf_add(b, s + from, len - from);
}

/* Whether a link may be followed. */
static bool link_ok(const char *url, size_t len) {
    static const char *const schemes[] = { "http://", "https://", "mailto:" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const size_t n = strlen(schemes[i]);
        if (len > n && strncasecmp(url, schemes[i], n) == 0) return true;
    }
    return false;
}

typedef struct Html {
    UiBuf *b;
    const UiMdDoc *d;
    const char *text;
    uint32_t box;   /* the open one */
    unsigned first; /* number of the first block of code */
    UiBuf code;
} Html;

static void open_box(Html *h, uint32_t i) {
    const UiMdBox *x = &h->d->boxes[i];
    switch ((UiMdBoxKind)x->kind) {
    case UI_MD_QUOTE: ui_buf_puts(h->b, "<blockquote>\n"); break;
    case UI_MD_LIST:
        if (x->ordered)
            ui_buf_printf(h->b, "<ol start=\"%u\">\n", x->number);
        else
            ui_buf_puts(h->b, "<ul>\n");
        break;
    case UI_MD_ITEM:
        ui_buf_puts(h->b, x->task ? "<li class=\"task\">" : "<li>");
        if (x->task) ui_buf_puts(h->b, x->done ? "&#9745; " : "&#9744; ");
        break;
    case UI_MD_ROOT: break;
    }
    h->box = i;
}

static void close_box(Html *h) {
    const UiMdBox *x = &h->d->boxes[h->box];
    switch ((UiMdBoxKind)x->kind) {
    case UI_MD_QUOTE: ui_buf_puts(h->b, "</blockquote>\n"); break;
    case UI_MD_LIST: ui_buf_puts(h->b, x->ordered ? "</ol>\n" : "</ul>\n"); break;
    case UI_MD_ITEM: ui_buf_puts(h->b, "</li>\n"); break;
    case UI_MD_ROOT: break;
    }
    h->box = x->parent;
}

/* Parents have lower numbers. */
static bool contains(const UiMdDoc *d, uint32_t outer, uint32_t box) {
    while (box > outer) box = d->boxes[box].parent;
    return box == outer;
}

/* Closes and opens boxes until `target` is the open one. */
static void go_to(Html *h, uint32_t target) {
    while (!contains(h->d, h->box, target)) close_box(h);
    while (h->box != target) {
        uint32_t next = target;
        while (h->d->boxes[next].parent != h->box) next = h->d->boxes[next].parent;
        open_box(h, next);
    }
}

enum { STYLES = UI_MD_BOLD | UI_MD_ITALIC | UI_MD_MONO | UI_MD_STRIKE };

/* In the order in which they are opened. */
static const struct {
    unsigned style;
    const char *name;
} tags[] = {
    { UI_MD_BOLD, "strong" }, { UI_MD_ITALIC, "em" }, { UI_MD_STRIKE, "del" }, { UI_MD_MONO, "code" }
};

/* From one style and link to another; 0 and 0 close everything. */
static void change(Html *h, unsigned from, unsigned to, uint16_t from_link, uint16_t to_link) {
    const size_t n = sizeof tags / sizeof *tags;
    if (from == to && from_link == to_link) return;
    for (size_t i = n; i-- > 0;) {
        if (from & tags[i].style) ui_buf_printf(h->b, "</%s>", tags[i].name);
    }
    if (from_link != to_link && from_link) ui_buf_puts(h->b, "</a>");
    if (from_link != to_link && to_link) {
        const UiMdLink *l = &h->d->links[to_link];
        ui_buf_puts(h->b, "<a rel=\"noopener noreferrer\" href=\"");
        ui_html_text(h->b, ui_buf_str(&h->d->own) + l->off, l->len);
        ui_buf_puts(h->b, "\">");
    }
    for (size_t i = 0; i < n; i++) {
        if (to & tags[i].style) ui_buf_printf(h->b, "<%s>", tags[i].name);
    }
}

static uint16_t link_of(const Html *h, const UiMdRun *run) {
    const UiMdLink *l = &h->d->links[run->link];
    return run->link && link_ok(ui_buf_str(&h->d->own) + l->off, l->len) ? run->link : 0;
}

/* The target of a link that may not be followed, as text after it: a file, the text of a note; but none with
 * a scheme. */
static void put_target(Html *h, uint16_t link) {
    const UiMdLink *l = &h->d->links[link];
    const char *target = ui_buf_str(&h->d->own) + l->off;
    if (link == 0 || l->len == 0 || *target == '#' || memchr(target, ':', l->len)) return;
    ui_buf_puts(h->b, " (");
    ui_html_text(h->b, target, l->len);
    ui_buf_puts(h->b, ")");
}

/* A line break of the source is one here, as on the screen. Images are links with their descriptions: the
 * file must be readable without a network. */
static void put_runs(Html *h, const UiMdBlock *block) {
    unsigned style = 0;
    uint16_t link = 0, of = 0; /* of: that of the run before, whether it may be followed or not */
    for (uint32_t i = 0; i < block->n; i++) {
        const UiMdRun *run = &h->d->runs[block->run + i];
        if (run->style & (UI_MD_HARD | UI_MD_SOFT)) {
            ui_buf_puts(h->b, "<br>\n");
            continue;
        }
        const uint16_t to = link_of(h, run);
        if (run->link != of) put_target(h, of);
        change(h, style, run->style & STYLES, link, to);
        style = run->style & STYLES;
        link = to;
        of = run->link;
        ui_html_text(h->b, ui_md_text(h->d, h->text, run), run->len);
    }
    put_target(h, of);
    change(h, style, 0, link, 0);
}

static void code_line(Html *h, const UiLexer *x, UiCodeState *state, const char *line, size_t len) {
    static const char names[] = "-ktsncdfyarh"; /* classes of the style sheet by UiCodeClass */
    UiCodeRun runs[UI_HTML_RUNS];
    _Static_assert(sizeof names - 1 == UI_CODE_CLASSES, "one letter for each class");
    if (!x) ui_html_text(h->b, line, len);
    const size_t n = x ? ui_code_line(x, state, line, len, runs, UI_HTML_RUNS) : 0;
    for (size_t i = 0; i < n; i++) {
        const bool plain = runs[i].kind == UI_CODE_TEXT;
        if (!plain) ui_buf_printf(h->b, "<span class=\"%c\">", names[runs[i].kind]);
        ui_html_text(h->b, line + runs[i].at, runs[i].len);
        if (!plain) ui_buf_puts(h->b, "</span>");
    }
}

/* The text of a block of code or of HTML. */
static const char *lines_of(Html *h, const UiMdBlock *block, size_t *len) {
    ui_buf_clear(&h->code);
    for (uint32_t i = 0; i < block->n; i++) {
        const UiMdRun *run = &h->d->runs[block->run + i];
        ui_buf_add(&h->code, ui_md_text(h->d, h->text, run), run->len);
    }
    *len = h->code.len;
    return ui_buf_str(&h->code);
}

static void put_code(Html *h, const UiMdBlock *block) {
    const char *info = ui_buf_str(&h->d->own) + block->info;
    const UiLexer *x = ui_code_lexer(info, block->info_len);
    UiCodeState state = { 0 };
    size_t len, name = 0;
    const char *s = lines_of(h, block, &len);
    while (name < block->info_len && info[name] != ' ') name++;
    ui_buf_puts(h->b, "<figure><figcaption>");
    ui_html_text(h->b, info, name);
    ui_buf_printf(h->b, "%s[%u]</figcaption><pre><code>", name ? " " : "", h->first + block->number - 1);
    for (size_t at = 0; at < len;) {
        const char *end = memchr(s + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - s) - at : len - at;
        code_line(h, x, &state, s + at, n);
        ui_buf_puts(h->b, "\n");
        at += n + 1;
    }
    ui_buf_puts(h->b, "</code></pre></figure>\n");
}

static void put_cell(Html *h, const UiMdBlock *cell, bool header) {
    static const char *const align[] = { "", " class=\"left\"", " class=\"center\"", " class=\"right\"" };
    ui_buf_printf(h->b, "<%s%s>", header ? "th" : "td", align[cell->level & 3]);
    put_runs(h, cell);
    ui_buf_printf(h->b, "</%s>", header ? "th" : "td");
}

static void put_table(Html *h, const UiMdBlock *table, size_t left) {
    ui_buf_puts(h->b, "<table>\n");
    for (uint32_t r = 0; r < table->rows; r++) {
        ui_buf_puts(h->b, "<tr>");
        for (uint32_t c = 0; c < table->columns; c++) {
            const size_t i = (size_t)r * table->columns + c;
            if (i < left) put_cell(h, table + 1 + i, r == 0);
        }
        ui_buf_puts(h->b, "</tr>\n");
    }
    ui_buf_puts(h->b, "</table>\n");
}

static void put_paragraph(Html *h, const UiMdBlock *block) {
    const UiMdBox *box = &h->d->boxes[block->box];
    const bool tight = box->kind == UI_MD_ITEM && h->d->boxes[box->parent].tight;
    ui_buf_puts(h->b, tight ? "" : "<p>");
    put_runs(h, block);
    ui_buf_puts(h->b, tight ? "\n" : "</p>\n");
}

static void put_block(Html *h, const UiMdBlock *block, size_t left) {
    size_t len;
    switch ((UiMdKind)block->kind) {
    case UI_MD_PARAGRAPH: put_paragraph(h, block); break;
    case UI_MD_HEADING:
        /* Those of the page are the names of the speakers. */
        ui_buf_printf(h->b, "<h%u>", block->level < 4 ? block->level + 2u : 6u);
        put_runs(h, block);
        ui_buf_printf(h->b, "</h%u>\n", block->level < 4 ? block->level + 2u : 6u);
        break;
    case UI_MD_RULE: ui_buf_puts(h->b, "<hr>\n"); break;
    case UI_MD_CODE: put_code(h, block); break;
    case UI_MD_HTML: {
        const char *s = lines_of(h, block, &len);
        ui_buf_puts(h->b, "<pre>");
        ui_html_text(h->b, s, len);
        ui_buf_puts(h->b, "</pre>\n");
        break;
    }
    case UI_MD_TABLE: put_table(h, block, left); break;
    case UI_MD_CELL: break; /* written with its table */
    }
}

unsigned ui_html_markdown(UiBuf *b, const char *text, size_t len, unsigned first) {
    UiMdDoc d = { 0 };
    UiBuf spaced = { 0 };
    const bool ok = ui_md_spaced(&spaced, text, len) &&
                    ui_md_parse(&d, ui_buf_str(&spaced), spaced.len, spaced.len, false);
    Html h = { .b = b, .d = &d, .text = ui_buf_str(&spaced), .first = first };
    b->failed = b->failed || !ok;
    for (size_t i = 0; i < d.n_blocks; i++) {
        if (d.blocks[i].kind == UI_MD_CELL) continue;
        go_to(&h, d.blocks[i].box);
        put_block(&h, &d.blocks[i], d.n_blocks - i - 1);
    }
    if (d.n_blocks > 0) go_to(&h, 0);
    b->failed = b->failed || h.code.failed;
    const unsigned n = (unsigned)d.n_codes;
    ui_buf_free(&h.code);
    ui_buf_free(&spaced);
    ui_md_free(&d);
    return n;
}
