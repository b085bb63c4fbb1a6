/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The transcript as screen lines. */
#include "ui/chatview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/format.h"

#define THOUGHT_INDENT 2 /* cells; wider than the margin of an answer */

/* Cells of the margin before the text. */
static int margin(const UiChatView *v, UiKind kind) {
    if (v->compact) return kind == UI_USER || kind == UI_ANSWER ? 5 : 2;
    return kind == UI_OUTPUT || kind == UI_COMMAND || kind == UI_ANSWER ? 1 : 3;
}

static bool has_label(const UiChatView *v, UiKind kind) {
    return !v->compact && (kind == UI_USER || kind == UI_ANSWER);
}

/* Cells for the text of an item. Output of commands may be tables of any width. */
static int text_width(const UiChatView *v, UiKind kind) {
    const int room = v->width - margin(v, kind);
    const bool narrow = v->max_width > 0 && room > v->max_width && kind != UI_OUTPUT && kind != UI_COMMAND;
    return narrow ? v->max_width : room;
}

/* Lines of the text. An answer has one even while nothing of it can be shown. */
static size_t text_rows(const UiBlock *b) { return !b->md ? b->text.n : b->md->rows > 0 ? b->md->rows : 1; }

/* Lines of the reasoning above the text: one as its heading, and the text itself if it is unfolded. */
static size_t thought_rows(const UiChatView *v, const UiBlock *b, const UiItem *it) {
    return !ui_item_thought(it) ? 0 : v->unfold ? 1 + b->thought.n : 1;
}

/* Lines above the text. */
static size_t head_rows(const UiChatView *v, const UiBlock *b, const UiItem *it) {
    return (has_label(v, it->kind) ? 1u : 0u) + thought_rows(v, b, it);
}

/* A blank line follows messages and command output; notices stay together. */
static size_t block_rows(const UiChatView *v, const UiBlock *b, const UiItem *it, const UiItem *next) {
    bool said = it->kind == UI_NOTICE || it->kind == UI_ERROR;
    bool next_said = next && (next->kind == UI_NOTICE || next->kind == UI_ERROR);
    bool blank = next && !v->compact && !(said && next_said) && it->kind != UI_COMMAND;
    return head_rows(v, b, it) + text_rows(b) + (blank ? 1u : 0u);
}

static void block_drop(UiBlock *b) {
    free(b->text.lines);
    free(b->thought.lines);
    if (b->md) ui_md_answer_free(b->md);
    free(b->md);
    *b = (UiBlock){ 0 };
}

static bool push(UiWrapped *w, UiLine line) {
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 4;
        UiLine *p = realloc(w->lines, cap * sizeof *p);
        if (!p) return false;
        w->lines = p;
        w->cap = cap;
    }
    w->lines[w->n++] = line;
    return true;
}

/* Wraps again from the start of the last line: greedy wrapping never changes the lines before it. */
static bool wrap_text(UiWrapped *b, const UiItem *it, int width) {
    size_t len = 0, off = 0;
    const char *s = ui_item_shown(it, &len);
    unsigned indent = 0;
    while (len > 0 && s[len - 1] == '\n') len--;
    if (b->n > 0 && len >= b->text_len) {
        b->n--;
        off = b->lines[b->n].off;
        indent = b->lines[b->n].indent;
    } else {
        b->n = 0;
    }
    do {
        UiLine line;
        unsigned next = 0;
        size_t end = ui_wrap_next(s, len, off, indent, width, &line, &next);
        if (!push(b, line)) return false;
        indent = next;
        off = end;
    } while (off < len);
    b->text_len = len;
    return true;
}

static bool lay_answer(UiChatView *v, UiBlock *b, const UiItem *it, int width) {
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    UiMdLook look = v->look;
    look.width = width;
    look.codes = v->codes;
    if (!b->md) b->md = calloc(1, sizeof *b->md);
    if (!b->md) return false;
    ui_md_answer_sync(b->md, &v->md, s, len, it->open, &look);
    return true;
}

static bool is_markdown(const UiChatView *v, const UiItem *it) {
    return it->kind == UI_ANSWER && !v->raw && it->id != v->plain;
}

static void block_wrap(UiChatView *v, UiBlock *b, const UiItem *it) {
    const int width = text_width(v, it->kind);
    if (it->thought && !wrap_text(&b->thought, it->thought, width - THOUGHT_INDENT)) return;
    if (is_markdown(v, it) ? !lay_answer(v, b, it, width) : !wrap_text(&b->text, it, width)) return;
    b->id = it->id;
    b->version = it->version;
}

static bool make_blocks(UiChatView *v, size_t n) {
    for (size_t i = n; i < v->n; i++) block_drop(&v->blocks[i]);
    if (n > v->cap) {
        size_t cap = n + n / 2 + 16;
        UiBlock *p = realloc(v->blocks, cap * sizeof *p);
        if (!p) return false;
        v->blocks = p;
        v->cap = cap;
    }
    if (n > v->n) memset(v->blocks + v->n, 0, (n - v->n) * sizeof *v->blocks);
    v->n = n;
    return true;
}

static size_t bottom_top(const UiChatView *v) {
    return v->total > (size_t)v->height ? v->total - (size_t)v->height : 0;
}

/* A position in the text, used to find it again at another width. */
typedef struct Anchor {
    size_t item, off;
    bool label; /* a row above the text */
} Anchor;

/* Where line k of the text begins in it. */
static size_t source_of(UiChatView *v, UiBlock *b, const UiItem *it, size_t k) {
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    if (!b->md) return b->text.lines[k].off;
    return len >= b->md->len ? ui_md_answer_source(b->md, &v->md, s, k) : 0; /* another text */
}

/* The line of the text with the byte at off. */
static size_t line_of(UiChatView *v, UiBlock *b, const UiItem *it, size_t off) {
    size_t k = 0, len = 0;
    if (b->md) return ui_md_answer_row(b->md, &v->md, ui_item_shown(it, &len), off);
    while (k + 1 < b->text.n && b->text.lines[k + 1].off <= off) k++;
    return k;
}

static Anchor find_anchor(UiChatView *v, const UiTranscript *t) {
    size_t line = v->top;
    for (size_t i = 0; i < v->n && i < t->n; i++) {
        UiBlock *b = &v->blocks[i];
        size_t rows = block_rows(v, b, t->items[i], i + 1 < t->n ? t->items[i + 1] : NULL);
        size_t head = head_rows(v, b, t->items[i]);
        if (line < head) return (Anchor){ i, 0, true };
        if (line - head < text_rows(b))
            return (Anchor){ i, source_of(v, b, t->items[i], line - head), false };
        if (line < rows) return (Anchor){ i + 1, 0, true };
        line -= rows;
    }
    return (Anchor){ 0 };
}

static size_t line_of_anchor(UiChatView *v, const UiTranscript *t, Anchor a) {
    size_t line = 0;
    for (size_t i = 0; i < a.item && i < v->n; i++)
        line += block_rows(v, &v->blocks[i], t->items[i], i + 1 < t->n ? t->items[i + 1] : NULL);
    if (a.item >= v->n || a.label) return line;
    UiBlock *b = &v->blocks[a.item];
    return line + head_rows(v, b, t->items[a.item]) + line_of(v, b, t->items[a.item], a.off);
}

void ui_chatview_sync(UiChatView *v, const UiTranscript *t, int width, int height) {
    Anchor anchor = { 0 };
    bool rewrap = v->width != width || v->made_width != v->max_width || v->made_raw != v->raw;
    if (rewrap && !v->follow) anchor = find_anchor(v, t);
    v->width = width;
    v->made_width = v->max_width;
    v->made_raw = v->raw;
    v->height = height > 0 ? height : 0;
    if (!make_blocks(v, t->n)) return;
    v->total = v->codes = 0;
    for (size_t i = 0; i < t->n; i++) {
        const UiItem *it = t->items[i];
        UiBlock *b = &v->blocks[i];
        const bool other = b->id != 0 && (b->md != NULL) != is_markdown(v, it);
        if (rewrap || other || b->id != it->id) block_drop(b);
        const bool renumber = b->md && b->md->look.codes != v->codes;
        if (b->id == 0 || b->version != it->version || renumber) block_wrap(v, b, it);
        if (b->md) v->codes += (unsigned)b->md->done_codes;
        v->total += block_rows(v, b, it, i + 1 < t->n ? t->items[i + 1] : NULL);
    }
    if (rewrap && !v->follow) v->top = line_of_anchor(v, t, anchor);
    if (v->follow || v->top >= bottom_top(v)) ui_chatview_end(v);
}

void ui_chatview_scroll(UiChatView *v, long lines) {
    size_t bottom = bottom_top(v);
    size_t back = lines < 0 ? (size_t)-lines : 0;
    if (lines < 0) {
        v->top = v->top > back ? v->top - back : 0;
        v->follow = bottom == 0;
    } else {
        v->top += (size_t)lines;
        if (v->top >= bottom) ui_chatview_end(v);
    }
}

void ui_chatview_home(UiChatView *v) {
    v->top = 0;
    v->follow = bottom_top(v) == 0;
}

void ui_chatview_end(UiChatView *v) {
    v->top = bottom_top(v);
    v->follow = true;
}

static void go_to(UiChatView *v, size_t line) {
    v->top = line;
    v->follow = false;
    if (v->top >= bottom_top(v)) ui_chatview_end(v);
}

void ui_chatview_show(UiChatView *v, const UiTranscript *t, uint32_t item, size_t off) {
    const size_t above = (size_t)v->height / 3;
    for (size_t i = 0; i < v->n && i < t->n; i++) {
        if (t->items[i]->id != item) continue;
        const size_t line = line_of_anchor(v, t, (Anchor){ i, off, false });
        if (line < v->top || line >= v->top + (size_t)v->height) go_to(v, line > above ? line - above : 0);
    }
}

void ui_chatview_jump(UiChatView *v, const UiTranscript *t, int by) {
    size_t line = 0, before = 0;
    for (size_t i = 0; i < v->n && i < t->n; i++) {
        const bool message = t->items[i]->kind == UI_USER || t->items[i]->kind == UI_ANSWER;
        if (message && line < v->top) before = line;
        if (message && by > 0 && line > v->top) {
            go_to(v, line);
            return;
        }
        line += block_rows(v, &v->blocks[i], t->items[i], i + 1 < t->n ? t->items[i + 1] : NULL);
    }
    if (by < 0)
        go_to(v, before);
    else
        ui_chatview_end(v);
}

/* The same as ui_md_answer_code, of text that is shown as it is: by its fences. */
static bool raw_code(const UiBlock *b, const UiItem *it, size_t row, int by, size_t *found) {
    UiMdSplit s = { 0 };
    size_t len = 0, k = 0;
    const char *text = ui_item_shown(it, &len);
    bool any = false;
    (void)ui_md_split(&s, text, len, true);
    for (size_t i = 0; i < s.n && !(any && by > 0); i++) {
        if (s.parts[i].kind != UI_MD_PART_CODE || s.parts[i].continues) continue;
        while (k + 1 < b->text.n && b->text.lines[k + 1].off <= s.parts[i].off) k++;
        if (by > 0 ? k < row : k >= row) continue;
        *found = k;
        any = true;
    }
    ui_md_split_free(&s);
    return any;
}

/* The block of code that is nearest to line `from` of an item, without that line. */
static bool code_in(UiChatView *v, UiBlock *b, const UiItem *it, size_t from, int by, size_t *found) {
    const size_t head = head_rows(v, b, it), row = from < head ? 0 : from - head + (by > 0 ? 1 : 0);
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    if (it->kind != UI_ANSWER) return false;
    const bool any = b->md ? ui_md_answer_code(b->md, &v->md, s, row, by, found)
                           : raw_code(b, it, row, by, found);
    *found += any ? head : 0;
    return any;
}

static size_t rows_at(const UiChatView *v, const UiTranscript *t, size_t i) {
    return block_rows(v, &v->blocks[i], t->items[i], i + 1 < t->n ? t->items[i + 1] : NULL);
}

bool ui_chatview_jump_code(UiChatView *v, const UiTranscript *t, int by) {
    const size_t n = v->n < t->n ? v->n : t->n;
    size_t line = 0, found = 0, i = 0;
    while (i + 1 < n && line + rows_at(v, t, i) <= v->top) line += rows_at(v, t, i++);
    for (size_t from = n > 0 ? v->top - line : 0; i<n; from = by> 0 ? 0 : SIZE_MAX) {
        if (code_in(v, &v->blocks[i], t->items[i], from, by, &found)) {
            go_to(v, line + found);
            return true;
        }
        if (by < 0 && i == 0) break;
        line += by > 0 ? rows_at(v, t, i) : 0;
        i = by > 0 ? i + 1 : i - 1;
        line -= by < 0 ? rows_at(v, t, i) : 0;
    }
    return false;
}

size_t ui_chatview_below(const UiChatView *v) {
    size_t bottom = bottom_top(v);
    return bottom > v->top ? bottom - v->top : 0;
}

static void draw_label(const UiItem *it, UiCanvas *c, int row, int col, int end) {
    char when[16];
    ui_format_clock(it->time, when, sizeof when);
    bool user = it->kind == UI_USER;
    int at = ui_canvas_puts(c, row, col + 1, end, user ? UI_STYLE_USER : UI_STYLE_ANSWER,
                            user           ? "you"
                            : it->label[0] ? it->label
                                           : "model");
    at = ui_canvas_printf(c, row, at, end, UI_STYLE_DIM, "  %s", when);
    if (it->number > 0) at = ui_canvas_printf(c, row, at, end, UI_STYLE_DIM, "  #%u", it->number);
    if (!it->in_context) at = ui_canvas_puts(c, row, at, end, UI_STYLE_NOTICE, "  not in the context");
    if (it->of > 1) at = ui_canvas_printf(c, row, at, end, UI_STYLE_KEY, "  %u/%u", it->nth, it->of);
    char facts[96];
    ui_format_answer(it, end - at - 3, facts, sizeof facts);
    int width = (int)qsf_text_width(facts, strlen(facts));
    if (end - width - 1 > at + 1) ui_canvas_puts(c, row, end - width - 1, end, UI_STYLE_DIM, facts);
}

static void draw_margin(const UiChatView *v, const UiItem *it, UiCanvas *c, int row, int col, bool first) {
    int end = col + v->width;
    char version[24] = "ai >";
    if (it->of > 1 && it->of < 10) (void)snprintf(version, sizeof version, "%u/%u>", it->nth, it->of);
    if (v->compact && first && (it->kind == UI_USER || it->kind == UI_ANSWER))
        ui_canvas_puts(c, row, col, end, it->kind == UI_USER ? UI_STYLE_USER : UI_STYLE_ANSWER,
                       it->kind == UI_USER ? "you>" : version);
    else if (!v->compact && it->kind == UI_USER)
        ui_canvas_puts(c, row, col + 1, end, UI_STYLE_USER, c->unicode ? "│" : "|");
    else if (first && (it->kind == UI_NOTICE || it->kind == UI_ERROR))
        ui_canvas_puts(c, row, col + (v->compact ? 0 : 1), end,
                       it->kind == UI_ERROR ? UI_STYLE_ERROR : UI_STYLE_NOTICE,
                       it->kind == UI_ERROR ? "!"
                       : c->unicode         ? "·"
                                            : "-");
}

static UiStyle text_style(const UiItem *it) {
    switch (it->kind) {
    case UI_NOTICE: return UI_STYLE_NOTICE;
    case UI_ERROR: return UI_STYLE_ERROR;
    case UI_COMMAND: return UI_STYLE_KEY;
    default:
        return (it->kind == UI_USER || it->kind == UI_ANSWER) && !it->in_context ? UI_STYLE_DIM
                                                                                 : UI_STYLE_TEXT;
    }
}

/* The line shown instead of folded reasoning, or above unfolded reasoning. */
static void draw_fold(const UiChatView *v, const UiItem *it, UiCanvas *c, int row, int col) {
    char text[80];
    const char *arrow = v->unfold ? (c->unicode ? "▾" : "v") : (c->unicode ? "▸" : ">");
    int end = col + v->width, at = col + margin(v, it->kind);
    ui_format_thought(it->thought, text, sizeof text);
    at = ui_canvas_printf(c, row, at, end, UI_STYLE_REASONING, "%s %s", arrow, text);
    if (end - at > 6) ui_canvas_puts(c, row, end - 4, end, UI_STYLE_KEY, "^T");
}

static int draw_line(const UiItem *it, const UiLine *line, UiStyle style, UiCanvas *c, int row, int at,
                     int end) {
    size_t len = 0;
    const char *s = ui_item_shown(it, &len);
    at += (int)line->indent;
    return line->off + line->len <= len ? ui_canvas_put(c, row, at, end, style, s + line->off, line->len)
                                        : at;
}

/* Row k of the reasoning; the first row of an item in a narrow window. */
static void draw_thought(const UiChatView *v, const UiBlock *b, const UiItem *it, size_t k, UiCanvas *c,
                         int row, int col) {
    draw_margin(v, it, c, row, col, k == 0);
    if (k == 0)
        draw_fold(v, it, c, row, col);
    else
        (void)draw_line(it->thought, &b->thought.lines[k - 1], UI_STYLE_REASONING, c, row,
                        col + margin(v, it->kind) + THOUGHT_INDENT, col + v->width);
}

/* A line of the answer whose text has styles; they change between characters. */
static int draw_tinted(const UiChatView *v, const UiItem *it, const UiLine *line, UiCanvas *c, int row,
                       int at, int end) {
    size_t len = 0, k = 0;
    const char *s = ui_item_shown(it, &len);
    const size_t stop = line->off + line->len < len ? line->off + line->len : len;
    at += (int)line->indent;
    for (size_t from = line->off, to = from; from < stop; from = to) {
        int cells;
        while (k < v->n_tints && v->tints[k].end <= from) k++;
        const UiStyle style = k < v->n_tints ? (UiStyle)v->tints[k].style : text_style(it);
        const size_t most = k < v->n_tints && v->tints[k].end < stop ? v->tints[k].end : stop;
        while (to < most) to += qsf_text_grapheme(s + to, stop - to, &cells);
        at = ui_canvas_put(c, row, at, end, style, s + from, to - from);
    }
    return at;
}

static int draw_text(UiChatView *v, UiBlock *b, const UiItem *it, size_t k, UiCanvas *c, int row, int at,
                     int end) {
    size_t len = 0;
    if (!b->md && it->id == v->plain && it->in_context)
        return draw_tinted(v, it, &b->text.lines[k], c, row, at, end);
    if (!b->md) return draw_line(it, &b->text.lines[k], text_style(it), c, row, at, end);
    return ui_md_answer_draw(b->md, &v->md, ui_item_shown(it, &len), k, c, row, at, end, !it->in_context);
}

/* Row k of an item. */
static void draw_row(UiChatView *v, size_t i, const UiItem *it, size_t k, UiCanvas *c, int row, int col) {
    UiBlock *b = &v->blocks[i];
    int end = col + v->width;
    if (has_label(v, it->kind)) {
        if (k == 0) {
            draw_label(it, c, row, col, end);
            return;
        }
        k--;
    }
    size_t above = thought_rows(v, b, it);
    if (k < above) {
        draw_thought(v, b, it, k, c, row, col);
        return;
    }
    k -= above;
    if (k >= text_rows(b)) return;
    draw_margin(v, it, c, row, col, k == 0 && above == 0);
    int at = draw_text(v, b, it, k, c, row, col + margin(v, it->kind), end);
    if (it->open && k + 1 == text_rows(b) && at < end)
        ui_canvas_puts(c, row, at, end, UI_STYLE_DIM, c->unicode ? "▌" : "_");
}

void ui_chatview_draw(UiChatView *v, const UiTranscript *t, UiCanvas *c, int row, int col) {
    size_t line = 0;
    int drawn = 0;
    ui_md_cache_frame(&v->md);
    for (size_t i = 0; i < v->n && i < t->n && drawn < v->height; i++) {
        const UiItem *it = t->items[i];
        size_t rows = block_rows(v, &v->blocks[i], it, i + 1 < t->n ? t->items[i + 1] : NULL);
        for (size_t k = line < v->top ? v->top - line : 0; k < rows && drawn < v->height; k++)
            draw_row(v, i, it, k, c, row + drawn++, col);
        line += rows;
    }
}

void ui_chatview_free(UiChatView *v) {
    for (size_t i = 0; i < v->n; i++) block_drop(&v->blocks[i]);
    free(v->blocks);
    ui_md_cache_free(&v->md);
    *v = (UiChatView){ .follow = true };
}
