/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An answer as rows of the screen. */
#include "ui/md/answer.h"

#include <stdlib.h>
#include <string.h>

#include "ui/md/part.h"

#define LINKS_MAX 16384 /* bytes of definitions that are kept: each part is parsed with them */

typedef struct UiMdSlot {
    unsigned long made, used; /* of the answer; the last frame with it */
    size_t part;
    UiMdRows rows;
} UiMdSlot;

/* ---- rows near the window ---- */

static UiMdSlot *find_slot(UiMdCache *cache, unsigned long made, size_t part) {
    for (size_t i = 0; i < cache->n; i++) {
        UiMdSlot *slot = &cache->slots[i];
        if (slot->made == made && slot->part == part) return slot;
    }
    return NULL;
}

/* One that was not used in this frame and the last one, or a new one. */
static UiMdSlot *free_slot(UiMdCache *cache) {
    for (size_t i = 0; i < cache->n; i++) {
        if (cache->slots[i].used + 1 < cache->now) return &cache->slots[i];
    }
    UiMdSlot *p = realloc(cache->slots, (cache->n + 1) * sizeof *p);
    if (!p) return NULL;
    cache->slots = p;
    p[cache->n] = (UiMdSlot){ 0 };
    return &p[cache->n++];
}

/* The rows of a part; NULL without memory. */
static const UiMdRows *rows_of(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t part) {
    UiMdSlot *slot = find_slot(cache, a->made, part);
    if (!slot) {
        UiCodeState state;
        size_t codes;
        slot = free_slot(cache);
        if (!slot) return NULL;
        ui_md_part(a, cache, text, part, &slot->rows, &codes, &state);
        slot->made = a->made;
        slot->part = part;
    }
    slot->used = cache->now;
    return &slot->rows;
}

void ui_md_cache_frame(UiMdCache *cache) { cache->now++; }

void ui_md_cache_free(UiMdCache *cache) {
    for (size_t i = 0; i < cache->n; i++) ui_md_rows_free(&cache->slots[i].rows);
    free(cache->slots);
    ui_md_layout_free(&cache->lay);
    ui_md_free(&cache->doc);
    ui_buf_free(&cache->text);
    ui_md_rows_free(&cache->scratch);
    *cache = (UiMdCache){ 0 };
}

/* ---- parts ---- */

/* The offset past the marks of quotes and up to 3 blanks, in a line of len bytes; more blanks begin code. */
static size_t past_quotes(const char *s, size_t len) {
    size_t i = 0, blanks = 0;
    for (; i < len && (s[i] == '>' || (s[i] == ' ' && blanks < 3)); i++)
        blanks = s[i] == ' ' ? blanks + 1 : 0;
    return i;
}

static bool is_blank(const char *s, size_t len) {
    size_t i = 0;
    while (i < len && strchr(" \t\r", s[i]) && s[i]) i++;
    return i == len;
}

/* The lines from `from` to the next blank one, if they can be definitions of links: "[label]: url". Returns
 * where they end. */
static size_t collect_definitions(UiMdAnswer *a, const char *s, size_t len, size_t from) {
    const size_t start = a->links.len;
    bool any = false;
    while (from < len) {
        const size_t end = ui_md_line_end(s, len, from), at = from + past_quotes(s + from, end - from);
        if (is_blank(s + at, end - at)) break;
        for (size_t i = at; i + 1 < end; i++) any = any || (s[i] == ']' && s[i + 1] == ':');
        (void)ui_buf_add(&a->links, s + at, end - at);
        (void)ui_buf_puts(&a->links, "\n");
        from = end + 1;
    }
    (void)ui_buf_puts(&a->links, "\n");
    if (!any || a->links.len > LINKS_MAX || a->links.failed) a->links.len = start;
    return from;
}

/* Definitions may be after the links that need them, in another part. They cannot be in a paragraph. */
static void collect_links(UiMdAnswer *a, const char *s, size_t len) {
    bool may = true; /* nothing of a paragraph is before the line */
    for (size_t i = 0; i < len;) {
        const size_t end = ui_md_line_end(s, len, i), at = i + past_quotes(s + i, end - i);
        const bool blank = is_blank(s + at, end - at);
        if (may && at < end && s[at] == '[') {
            i = collect_definitions(a, s, len, i);
            continue;
        }
        may = blank || s[at] == '#';
        i = end + 1;
    }
}

static bool save_state(UiMdAnswer *a, const UiCodeState *state) {
    if (a->n_states == a->cap_states) {
        const size_t cap = a->cap_states ? a->cap_states * 2 : 4;
        UiCodeState *p = realloc(a->states, cap * sizeof *p);
        if (!p) return false;
        a->states = p;
        a->cap_states = cap;
    }
    a->states[a->n_states++] = *state;
    return true;
}

/* Counts the rows of a part that is complete. */
static bool finish_part(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t i) {
    UiMdPart *part = &a->split.parts[i];
    UiCodeState state;
    size_t codes;
    UiMdSlot *slot = find_slot(cache, a->made, i); /* as it was while it was open */
    if (slot) slot->made = 0;
    part->code = (uint32_t)a->done_codes;
    ui_md_part(a, cache, text, i, &cache->scratch, &codes, &state);
    part->rows = (uint32_t)cache->scratch.n;
    part->ends_in_block = cache->lay.after_block;
    if (i + 1 < a->split.n && part[1].continues) {
        if (!save_state(a, &state)) return false;
        part[1].state = (uint32_t)(a->n_states - 1);
    }
    a->done_codes += codes;
    a->done_rows += part->rows;
    return true;
}

static void make_again(UiMdAnswer *a, UiMdCache *cache) {
    a->done = a->done_rows = a->done_codes = a->n_states = a->hint = a->hint_row = 0;
    a->made = ++cache->made;
}

static void finish_parts(UiMdAnswer *a, UiMdCache *cache, const char *text) {
    const size_t n = a->split.n - (a->closed ? 0 : 1);
    while (a->done < n && finish_part(a, cache, text, a->done)) {
        const UiMdPart *part = &a->split.parts[a->done++];
        const size_t end = a->done < a->split.n ? part[1].off : a->len;
        if (a->n_links == 0 && part->kind == UI_MD_PART_TEXT && end > part->off && end <= a->len)
            collect_links(a, text + part->off, end - part->off);
    }
}

/* The part that is being written. */
static void make_open_part(UiMdAnswer *a, UiMdCache *cache, const char *text) {
    const size_t last = a->split.n - 1;
    UiMdPart *part = &a->split.parts[last];
    UiMdSlot *slot = find_slot(cache, a->made, last);
    if (slot) slot->made = 0;
    part->code = (uint32_t)a->done_codes;
    const UiMdRows *rows = rows_of(a, cache, text, last);
    part->rows = rows ? (uint32_t)rows->n : 0;
}

static bool same_look(const UiMdLook *a, const UiMdLook *b) {
    return a->width == b->width && a->unicode == b->unicode && a->links == b->links &&
           a->strike == b->strike && a->codes == b->codes;
}

void ui_md_answer_sync(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t len, bool open,
                       const UiMdLook *look) {
    if (len < a->len || (a->closed && (open || len != a->len))) ui_md_answer_free(a);
    if (a->made == 0 || !same_look(&a->look, look)) make_again(a, cache);
    a->look = *look;
    a->len = len;
    a->closed = !open;
    if (a->look.width < 1) a->look.width = 1;
    (void)ui_md_split(&a->split, text, len, !open);
    if (a->split.n == 0) return;
    if (a->hint >= a->done) a->hint = a->hint_row = 0;
    finish_parts(a, cache, text);
    if (a->closed && a->links.len > a->n_links) {
        a->n_links = a->links.len;
        make_again(a, cache);
        finish_parts(a, cache, text);
    }
    a->rows = a->done_rows;
    if (a->done + 1 != a->split.n || a->closed) return;
    make_open_part(a, cache, text);
    a->rows += a->split.parts[a->done].rows;
}

void ui_md_answer_free(UiMdAnswer *a) {
    ui_md_split_free(&a->split);
    free(a->states);
    ui_buf_free(&a->links);
    *a = (UiMdAnswer){ 0 };
}

/* ---- rows ---- */

/* The part of row k; *row: of it. a->rows > k. */
static size_t seek(UiMdAnswer *a, size_t k, size_t *row) {
    if (k < a->hint_row) a->hint = a->hint_row = 0;
    while (a->hint + 1 < a->split.n && k >= a->hint_row + a->split.parts[a->hint].rows)
        a->hint_row += a->split.parts[a->hint++].rows;
    *row = k - a->hint_row;
    return a->hint;
}

size_t ui_md_answer_source(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t k) {
    size_t row;
    if (k >= a->rows) return a->len;
    const size_t part = seek(a, k, &row);
    const UiMdRows *rows = rows_of(a, cache, text, part);
    const size_t src = rows && row < rows->n ? rows->rows[row].src : a->split.parts[part].off;
    return src < a->len ? src : a->len;
}

size_t ui_md_answer_row(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t off) {
    size_t row = 0, part = 0, k = 0;
    for (; part + 1 < a->split.n && a->split.parts[part + 1].off <= off; part++)
        row += a->split.parts[part].rows;
    const UiMdRows *rows = a->split.n > 0 ? rows_of(a, cache, text, part) : NULL;
    while (rows && k + 1 < rows->n && rows->rows[k + 1].src <= off) k++;
    row += k;
    return row < a->rows ? row : a->rows > 0 ? a->rows - 1 : 0;
}

/* Blocks of code that begin in a part; the one that is being written may have some. */
static bool may_have_code(const UiMdAnswer *a, size_t part) {
    if (part >= a->done) return true;
    return (part + 1 < a->done ? a->split.parts[part + 1].code : a->done_codes) > a->split.parts[part].code;
}

/* In the rows [from, to) of a part, the first one (by 1) or the last one (by -1). */
static bool code_row(const UiMdRows *rows, size_t from, size_t to, int by, size_t *found) {
    bool any = false;
    for (size_t i = from; rows && i < to && i < rows->n && !(any && by > 0); i++) {
        if (!rows->rows[i].code) continue;
        *found = i;
        any = true;
    }
    return any;
}

bool ui_md_answer_code(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t row, int by, size_t *found) {
    size_t start = 0, before[2] = { 0 }, starts[2] = { 0 }; /* the last parts that begin before the row */
    unsigned n = 0;
    for (size_t i = 0; i < a->split.n && start < a->rows; start += a->split.parts[i++].rows) {
        if (!may_have_code(a, i) || (by < 0 && start >= row)) continue;
        if (by < 0) {
            before[0] = before[1];
            starts[0] = starts[1];
            before[1] = i;
            starts[1] = start;
            n = n < 2 ? n + 1 : 2;
        } else if (start + a->split.parts[i].rows > row &&
                   code_row(rows_of(a, cache, text, i), row > start ? row - start : 0, SIZE_MAX, by, found)) {
            *found += start;
            return true;
        }
    }
    for (unsigned k = 2; k > 2 - n; k--) {
        if (!code_row(rows_of(a, cache, text, before[k - 1]), 0, row - starts[k - 1], by, found)) continue;
        *found += starts[k - 1];
        return true;
    }
    return false;
}

int ui_md_answer_draw(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t k, UiCanvas *c, int row,
                      int col, int end, bool faint) {
    size_t at;
    if (k >= a->rows) return col;
    const size_t part = seek(a, k, &at);
    const UiMdRows *rows = rows_of(a, cache, text, part);
    return rows ? ui_md_rows_draw(rows, at, c, row, col, end, faint) : col;
}
