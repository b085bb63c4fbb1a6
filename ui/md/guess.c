/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a text that is still being written. */
#include "ui/md/guess.h"

#include <string.h>

#include "ui/md/split.h"

#define OPEN_MAX   32  /* constructs inside each other that are closed */
#define LINK_MAX   200 /* bytes of the text of a link */
#define ENTITY_MAX 10

/* ---- the last line ---- */

static size_t line_start(const char *s, size_t end) {
    while (end > 0 && s[end - 1] != '\n') end--;
    return end;
}

static bool only(const char *s, size_t len, const char *set) {
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\0' || !strchr(set, s[i])) return false;
    }
    return true;
}

static bool is_row(const char *s, size_t len) {
    size_t i = 0;
    while (i < len && (s[i] == ' ' || s[i] == '>')) i++;
    return i < len && s[i] == '|';
}

/* "[", "[ ", "[x]" after the mark of an item. */
static bool is_task(const char *s, size_t len) {
    return len > 0 && len <= 3 && s[0] == '[' && (len < 2 || strchr(" xX", s[1])) && (len < 3 || s[2] == ']');
}

/* May the line be the mark of a block, or the fence of one? */
static bool is_mark(const char *s, size_t len) {
    bool item;
    size_t info;
    const size_t at = ui_md_past_marks(s, len, &item);
    if (only(s, len, "-=*_+#>`~|: \t.)0123456789")) return true;
    return (item && is_task(s + at, len - at)) || ui_md_fence(s + at, len - at, &info) > 0;
}

/* The start of the first line of a table whose second line is not known yet; end if there is none. */
static size_t table_start(const char *s, size_t end) {
    size_t last = line_start(s, end);
    if (only(s + last, end - last, " >|:-")) {
        if (last == 0) return end;
        end = last - 1;
        last = line_start(s, end);
    }
    if (!is_row(s + last, end - last)) return end;
    const size_t before = last > 0 ? line_start(s, last - 1) : 0;
    return last > 0 && is_row(s + before, last - 1 - before) ? end : last;
}

size_t ui_md_shown(const char *text, size_t len, bool code) {
    const size_t last = line_start(text, len), n = len - last;
    if (code) return n > 0 && only(text + last, n, " >`~") ? last : len;
    const size_t table = table_start(text, len);
    if (table < len && is_row(text + table, len - table)) return table;
    return n > 0 && is_mark(text + last, n) ? last : len;
}

/* ---- inside the last block ---- */

typedef struct Opener {
    char c; /* '*', '_', '~' or '[' */
    size_t at, n;
} Opener;

typedef struct Scan {
    const char *s;
    size_t i, end; /* end: what can be shown */
    Opener open[OPEN_MAX];
    size_t n;
    UiBuf *ends;
    bool done; /* the rest is in a construct that was closed */
} Scan;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_alnum(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (unsigned char)c >= 0x80;
}
static bool is_punct(char c) { return !is_space(c) && !is_alnum(c); }

static size_t run_length(const Scan *x, size_t i) {
    size_t n = 1;
    while (i + n < x->end && x->s[i + n] == x->s[i]) n++;
    return n;
}

static void push(Scan *x, char c, size_t at, size_t n) {
    if (x->n < OPEN_MAX) x->open[x->n++] = (Opener){ c, at, n };
}

/* Holds back the characters at i and later. */
static void hold(Scan *x, size_t i) {
    x->end = i;
    x->i = i;
}

static void scan_code(Scan *x) {
    const size_t n = run_length(x, x->i), start = x->i + n;
    for (size_t i = start; i < x->end;) {
        if (x->s[i] != '`') {
            i++;
            continue;
        }
        const size_t m = run_length(x, i);
        if (m == n && i + m < x->end) {
            x->i = i + m;
            return;
        }
        if (i + m == x->end && m <= n) { /* the end of it, or the beginning of that */
            if (m < n) x->end = i;
            x->done = true;
            if (m < n) break;
            return;
        }
        i += m;
    }
    if (start == x->end) {
        hold(x, x->i);
        return;
    }
    while (x->end > start && is_space(x->s[x->end - 1])) x->end--;
    x->done = true;
    if (x->end > start) {
        for (size_t k = 0; k < n; k++) (void)ui_buf_puts(x->ends, "`");
    } else {
        x->end = x->i;
    }
}

/* Closes what is open with the same character, as far as the run reaches; returns the rest of its length. */
static size_t match(Scan *x, char c, size_t n) {
    for (size_t k = x->n; k > 0 && n > 0; k--) {
        Opener *o = &x->open[k - 1];
        if (o->c == '[') break;
        if (o->c != c || (c == '~' && o->n != n)) continue;
        const size_t m = o->n < n ? o->n : n;
        o->n -= m;
        n -= m;
        x->n = o->n > 0 ? k : k - 1;
    }
    return n;
}

static void scan_emphasis(Scan *x, size_t from) {
    const char c = x->s[x->i];
    size_t n = run_length(x, x->i);
    const size_t at = x->i, next = at + n;
    if (next == x->end) { /* more of them may follow, unless they close something */
        if (match(x, c, n) > 0 || c == '~')
            hold(x, at);
        else
            x->i = next;
        return;
    }
    const char before = at > from ? x->s[at - 1] : ' ', after = x->s[next];
    const bool left = !is_space(after) && (!is_punct(after) || is_space(before) || is_punct(before));
    const bool right = !is_space(before) && (!is_punct(before) || is_space(after) || is_punct(after));
    if (right && (c != '_' || !left || is_punct(after))) n = match(x, c, n);
    if (n > 0 && left && (c != '_' || !right || is_punct(before)) && (c != '~' || n <= 2)) push(x, c, at, n);
    x->i = next;
}

/* Most brackets in prose are not links: notes, elements of arrays. */
static bool likely_link(const Scan *x, size_t from, size_t at) {
    const char before = at > from ? x->s[at - 1] : ' ', after = at + 1 < x->end ? x->s[at + 1] : ' ';
    return x->end - at < LINK_MAX && !is_alnum(before) && before != ']' && before != ')' &&
           (is_alnum(after) || strchr("*_`", after)) && !(after >= '0' && after <= '9') &&
           !memchr(x->s + at, '\n', x->end - at);
}

/* After "]": "(...)", of which only the beginning may be there. */
static void scan_target(Scan *x) {
    size_t depth = 0, i = x->i;
    for (; i < x->end && x->s[i] != '\n'; i++) {
        if (x->s[i] == '(') depth++;
        if (x->s[i] == ')' && --depth == 0) {
            x->i = i + 1;
            return;
        }
    }
    if (i < x->end) return;
    x->end = x->i;
    (void)ui_buf_puts(x->ends, "(#)");
}

static void scan_bracket(Scan *x, size_t from) {
    size_t k = x->n;
    x->i++;
    while (k > 0 && x->open[k - 1].c != '[') k--;
    if (k == 0) return;
    const size_t at = x->open[k - 1].at;
    const bool link = x->i < x->end ? x->s[x->i] == '(' : likely_link(x, from, at);
    if (!link) {
        x->open[k - 1].c = '\0'; /* what is open inside it may close outside of it */
        return;
    }
    x->n = k - 1;
    if (x->i < x->end)
        scan_target(x);
    else
        (void)ui_buf_puts(x->ends, "(#)");
}

static void scan_angle(Scan *x) {
    size_t i = x->i + 1;
    while (i < x->end && !is_space(x->s[i]) && x->s[i] != '>' && x->s[i] != '<') i++;
    const size_t n = i - x->i;
    if (i < x->end) {
        x->i = x->s[i] == '>' ? i + 1 : x->i + 1;
    } else if (n < 8) {
        hold(x, x->i);
    } else {
        const bool url = memcmp(x->s + x->i, "<http", 5) == 0 || memcmp(x->s + x->i, "<mailto", 7) == 0;
        if (url) (void)ui_buf_puts(x->ends, ">");
        x->i = x->end;
    }
}

static void scan_entity(Scan *x) {
    size_t i = x->i + 1;
    while (i < x->end && (is_alnum(x->s[i]) || x->s[i] == '#')) i++;
    if (i == x->end && i - x->i < ENTITY_MAX)
        hold(x, x->i);
    else
        x->i++;
}

/* A formula; else n characters: an escaped one, or a dollar sign. One that is open is closed, before the
 * command at its end, which may be half of its name. */
static void scan_formula(Scan *x, size_t n) {
    UiMdMath m;
    size_t rest = x->i + n;
    while (rest < x->end && (is_space(x->s[rest]) || x->s[rest] == '$')) rest++;
    if (x->i + 1 == x->end || (rest == x->end && strchr("[($", x->s[x->i + 1]))) {
        hold(x, x->i);
    } else if (!ui_md_math_at(x->s, x->end, x->i, &m)) {
        x->i = x->i + n < x->end ? x->i + n : x->end;
    } else if (m.closed) {
        x->i = m.off + m.len;
    } else {
        size_t len, end = x->end;
        while (end > m.in && is_alnum(x->s[end - 1])) end--;
        if (end > m.in && x->s[end - 1] == '\\') x->end = end - 1;
        const char *closer = ui_md_math_closer(x->s, &m, &len);
        (void)ui_buf_add(x->ends, closer, len);
        x->i = x->end;
        x->done = true;
    }
}

static void scan(Scan *x, size_t from) {
    while (x->i < x->end && !x->done) {
        switch (x->s[x->i]) {
        case '\\': scan_formula(x, 2); break;
        case '$': scan_formula(x, 1); break;
        case '`': scan_code(x); break;
        case '*':
        case '_':
        case '~': scan_emphasis(x, from); break;
        case '[':
            push(x, '[', x->i, 1);
            x->i++;
            break;
        case ']': scan_bracket(x, from); break;
        case '<': scan_angle(x); break;
        case '&': scan_entity(x); break;
        case '!':
            if (x->i + 1 == x->end)
                hold(x, x->i);
            else
                x->i++;
            break;
        default: x->i++;
        }
    }
}

static void close_all(Scan *x, size_t from) {
    for (size_t k = x->n; k > 0; k--) {
        const Opener *o = &x->open[k - 1];
        if (o->c == '[' && likely_link(x, from, o->at)) (void)ui_buf_puts(x->ends, "](#)");
        for (size_t i = 0; o->c != '[' && o->c && i < o->n && i < 3; i++) (void)ui_buf_add(x->ends, &o->c, 1);
    }
}

/* Is the last block over? A line ends a heading and a row, a blank line everything. */
static bool is_over(const UiMdBlock *b, const char *text, size_t len) {
    size_t lines = 0;
    for (; len > 0 && strchr(" \t\n>", text[len - 1]); len--) lines += text[len - 1] == '\n';
    return b->kind == UI_MD_PARAGRAPH                          ? lines > 1
           : b->kind == UI_MD_HEADING || b->kind == UI_MD_CELL ? lines > 0
                                                               : true;
}

size_t ui_md_guess(const UiMdDoc *d, const char *text, size_t len, UiBuf *ends) {
    const UiMdBlock *last = &d->blocks[d->n_blocks - 1];
    while (last > d->blocks && last->kind == UI_MD_CELL && last->n == 0) last--; /* cells that follow */
    if (last->off >= len || is_over(last, text, len)) return len;
    Scan x = { .s = text, .i = last->off, .end = len, .ends = ends };
    scan(&x, last->off);
    const size_t end = x.end;
    while (x.end > last->off && is_space(text[x.end - 1])) x.end--;
    close_all(&x, last->off);
    return ends->len > 0 ? x.end : end;
}
