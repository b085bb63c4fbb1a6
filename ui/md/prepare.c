/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as md4c should read it. */
#include "ui/md/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "ui/md/split.h"

#define TICKS_MAX 8 /* longer runs of backticks are text here: whatever is in them */

typedef struct Prepare {
    UiMdPrepared *p;
    const char *s;
    size_t i, len;
    char fence; /* of an open block of code, '\0' = none */
    size_t fence_len;
    size_t open;                    /* \( and \[ before this offset have no end */
    size_t no_ticks[TICKS_MAX + 1]; /* before this offset no run has this many backticks */
} Prepare;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static size_t line_end(const Prepare *x, size_t i) {
    const char *nl = memchr(x->s + i, '\n', x->len - i);
    return nl ? (size_t)(nl - x->s) : x->len;
}

static bool copy(Prepare *x, size_t to) {
    const size_t from = x->i;
    x->i = to;
    return ui_buf_add(&x->p->text, x->s + from, to - from);
}

/* ---- tables ---- */

/* Is s[from..to) the line between the header of a table and its rows, with fewer than three dashes
 * somewhere? */
static bool is_short_delimiter(const char *s, size_t from, size_t to) {
    size_t dashes = 0, bars = 0, shortest = 3;
    while (from < to && (is_blank(s[from]) || s[from] == '>')) from++;
    if (from == to ||
        !(s[from] == '|' || s[from] == ':' || (from + 1 < to && s[from] == '-' && s[from + 1] != ' ')))
        return false;
    for (size_t i = from; i < to; i++) {
        if (s[i] == '-') {
            dashes++;
            if (i + 1 < to && s[i + 1] == '-') continue;
            if (dashes < shortest) shortest = dashes;
            dashes = 0;
        } else if (s[i] == '|') {
            bars++;
        } else if (s[i] != ':' && !is_blank(s[i])) {
            return false;
        }
    }
    return bars > 0 && shortest < 3;
}

static bool add_dashes(Prepare *x, size_t n) {
    UiMdPrepared *p = x->p;
    if (!ui_md_grow((void **)&p->added, &p->cap_added, p->n_added, sizeof *p->added)) return false;
    const size_t before = p->n_added > 0 ? p->added[p->n_added - 1].all : 0;
    p->added[p->n_added++] = (UiMdAdded){ p->text.len, x->i, n, before + n };
    return ui_buf_add(&p->text, "---", n);
}

static bool copy_delimiter(Prepare *x, size_t to) {
    for (size_t dashes = 0; x->i < to;) {
        dashes = x->s[x->i] == '-' ? dashes + 1 : 0;
        if (!copy(x, x->i + 1)) return false;
        const bool ends = dashes > 0 && (x->i == to || x->s[x->i] != '-');
        if (ends && dashes < 3 && !add_dashes(x, 3 - dashes)) return false;
    }
    return true;
}

/* Is there a bar in the line before s[i]? */
static bool after_header(const Prepare *x) {
    size_t from = x->i > 0 ? x->i - 1 : 0;
    while (from > 0 && x->s[from - 1] != '\n') from--;
    return x->i > 0 && memchr(x->s + from, '|', x->i - from) != NULL;
}

/* ---- formulas ---- */

static size_t line_start(const Prepare *x) {
    size_t from = x->i;
    while (from > 0 && x->s[from - 1] != '\n') from--;
    return from;
}

/* The same number of bytes: letters, except what belongs to the structure of lines. */
static bool hide(Prepare *x, size_t to) {
    const bool quoted = memchr(x->s + line_start(x), '>', x->i - line_start(x)) != NULL;
    bool start = false; /* of a line */
    for (; x->i < to; x->i++) {
        const char c = x->s[x->i];
        const bool kept = c == '\n' || (start && (is_blank(c) || (c == '>' && quoted)));
        start = c == '\n' || (start && kept);
        if (!ui_buf_add(&x->p->text, kept ? &c : "x", 1)) return false;
    }
    return true;
}

/* Is s[i] the first character of a line, besides blanks and marks of quotes and items? */
static bool begins_line(const Prepare *x) {
    const size_t from = line_start(x);
    bool item;
    return ui_md_past_marks(x->s + from, x->i - from, &item) == x->i - from;
}

/* What is before a formula; a URL is not. */
static bool may_begin(const Prepare *x) {
    const char c = x->i > 0 ? x->s[x->i - 1] : ' ';
    return strchr(" \t\n([{<>|*~\"'-,;:.!?", c) || (unsigned char)c >= 0x80;
}

/* Is there one at s[i]? One that is open has to begin a line: while it is being written, its lines are not
 * blocks. */
static bool find_formula(Prepare *x, UiMdMath *m) {
    const bool dollar = x->s[x->i] == '$';
    if (!may_begin(x) || (!dollar && x->i < x->open) || !ui_md_math_at(x->s, x->len, x->i, m)) return false;
    if (m->closed || (x->s[x->i + 1] != '(' && begins_line(x))) return true;
    if (!dollar) x->open = m->off + m->len;
    return false;
}

static bool formula(Prepare *x) {
    UiMdPrepared *p = x->p;
    UiMdMath m;
    if (!find_formula(x, &m)) {
        const bool escape = x->s[x->i] == '\\' && x->i + 1 < x->len && x->s[x->i + 1] != '\n';
        return copy(x, x->i + (escape ? 2 : 1));
    }
    if (!ui_md_grow((void **)&p->math, &p->cap_math, p->n_math, sizeof *p->math)) return false;
    const size_t end = m.off + m.len, moved = p->text.len - x->i;
    m.off += moved;
    m.in += moved;
    p->math[p->n_math++] = m;
    return hide(x, end);
}

/* ---- code ---- */

static size_t ticks_at(const Prepare *x, size_t i) {
    size_t n = 0;
    while (i + n < x->len && x->s[i + n] == '`') n++;
    return n;
}

/* The end of the code that begins with n backticks at s[i]; i + n if it is none. */
static size_t code_end(Prepare *x, size_t i, size_t n) {
    if (n > TICKS_MAX || x->no_ticks[n] > i) return i + n;
    size_t k = i + n;
    while (k < x->len && !(x->s[k] == '\n' && line_end(x, k + (k + 1 < x->len)) == k + 1)) {
        const size_t m = ticks_at(x, k);
        if (m == n) return k + m;
        k += m > 0 ? m : 1;
    }
    x->no_ticks[n] = k;
    return i + n;
}

/* A line of a block of code, or a fence. */
static bool is_code_line(Prepare *x, size_t end) {
    bool item;
    size_t info, at = x->i + ui_md_past_marks(x->s + x->i, end - x->i, &item);
    const size_t n = ui_md_fence(x->s + at, end - at, &info);
    if (!x->fence) {
        if (n == 0) return false;
        x->fence = x->s[at];
        x->fence_len = n;
        return true;
    }
    if (n >= x->fence_len && x->s[at] == x->fence) {
        for (at += info; at < end && is_blank(x->s[at]);) at++;
        if (at == end) x->fence = '\0';
    }
    return true;
}

/* The line, or more where a formula or code continues in the next one. */
static bool line(Prepare *x) {
    const size_t end = line_end(x, x->i);
    if (is_code_line(x, end)) return copy(x, end < x->len ? end + 1 : end);
    if (is_short_delimiter(x->s, x->i, end) && after_header(x)) return copy_delimiter(x, end);
    while (x->i < x->len) {
        const char c = x->s[x->i];
        size_t to = x->i + 1;
        if (c == '\n') return copy(x, to);
        if (c == '\\' || c == '$') {
            if (!formula(x)) return false;
            continue;
        }
        if (c == '`') to = code_end(x, x->i, ticks_at(x, x->i));
        if (!copy(x, to)) return false;
    }
    return true;
}

bool ui_md_prepare(UiMdPrepared *p, const char *s, size_t len) {
    Prepare x = { .p = p, .s = s, .len = len };
    ui_buf_clear(&p->text);
    p->n_math = p->n_added = 0;
    if (!ui_buf_reserve(&p->text, len + 1)) return false;
    while (x.i < len)
        if (!line(&x)) return false;
    return (len > 0 && s[len - 1] == '\n') || ui_buf_puts(&p->text, "\n");
}

/* How many of the added pieces begin before an offset of the text or of the source. */
static size_t added_before(const UiMdPrepared *p, size_t at, bool source) {
    size_t low = 0, high = p->n_added;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if ((source ? p->added[mid].from : p->added[mid].at) < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

size_t ui_md_to_source(const UiMdPrepared *p, size_t at) {
    const size_t n = added_before(p, at, false);
    if (n == 0) return at;
    const UiMdAdded *a = &p->added[n - 1];
    return at < a->at + a->n ? a->from : at - a->all;
}

size_t ui_md_from_source(const UiMdPrepared *p, size_t at) {
    const size_t n = added_before(p, at, true);
    return n > 0 ? at + p->added[n - 1].all : at;
}

void ui_md_prepared_free(UiMdPrepared *p) {
    ui_buf_free(&p->text);
    free(p->math);
    free(p->added);
    *p = (UiMdPrepared){ 0 };
}
