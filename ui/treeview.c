/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of a session's messages as lines of text. */
#include "ui/treeview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"

#define RUN_MAX   6 /* messages without branches that are all shown */
#define RUN_ENDS  2 /* otherwise these many at each end */
#define LINES_MAX 2000
#define TEXT_MIN  12 /* cells for the text of the most indented message */

typedef struct View {
    const UiTree *t;
    const QSFChatLog *log;
    UiBuf *out;
    int columns;
    bool ascii;
    int digits, deepest; /* of numbers; levels of indentation */
    uint32_t *first,
        *sibling; /* (n + 1), (n): the first child of each index + 1, the next one of its parent */
    char *marks;  /* (n) of those on the open branch, otherwise 0 */
    size_t lines;
} View;

/* A message that is still to be shown, with what follows it. */
typedef struct Next {
    uint32_t index; /* + 1 */
    uint32_t level;
    bool forks, last; /* it has siblings; it is the last of them */
} Next;

static bool prepare(View *v) {
    const UiTree *t = v->t;
    v->first = calloc((size_t)t->n + 1, sizeof *v->first);
    v->sibling = calloc((size_t)t->n + 1, sizeof *v->sibling);
    v->marks = calloc((size_t)t->n + 1, 1);
    if (!v->first || !v->sibling || !v->marks) return false;
    for (uint32_t i = t->n; i > 0; i--) { /* so that the first child is the oldest */
        v->sibling[i - 1] = v->first[t->nodes[i - 1].parent];
        v->first[t->nodes[i - 1].parent] = i;
    }
    uint32_t gone, in_front, left = t->depth;
    ui_tree_forgotten(t, ui_tree_spot(t), &gone, &in_front);
    for (uint32_t i = t->tip; i > 0; i = t->nodes[i - 1].parent, left--)
        v->marks[i - 1] = left <= gone ? '-' : i == t->tip ? '>' : '*';
    return true;
}

/* ---- a line ---- */

static void take_text(void *arg, const QSFLogRecord *r) {
    UiBuf *b = arg;
    char *clean = qsf_clean_dup(r->text ? r->text : "", r->text ? r->len : 0, true);
    for (const char *p = clean; p && *p; p++)
        if (*p != ' ' || (b->len > 0 && b->data[b->len - 1] != ' ')) (void)ui_buf_add(b, p, 1);
    free(clean);
}

/* As much as fits. */
static void put_cells(View *v, const char *s, size_t len, int room) {
    int used = 0;
    const bool cut = (int)qsf_text_width(s, len) > room;
    while (len > 0) {
        int w;
        const size_t n = qsf_text_grapheme(s, len, &w);
        if (used + w > room - (cut ? 1 : 0)) break;
        (void)ui_buf_add(v->out, s, n);
        used += w;
        s += n;
        len -= n;
    }
    if (cut && room > 0) ui_buf_puts(v->out, v->ascii ? "." : "…");
}

/* The mark, and the indentation with a fork. Returns the cells. */
static int put_margin(View *v, char mark, const Next *x) {
    const int level = (int)x->level < v->deepest ? (int)x->level : v->deepest;
    const char *fork = !x->forks ? "" : v->ascii ? "+ " : x->last ? "└ " : "├ ";
    const int indent = 2 * (level - (x->forks && level > 0 ? 1 : 0));
    ui_buf_printf(v->out, "%s%c %*s%s", v->out->len > 0 ? "\n" : "", mark, indent, "", fork);
    v->lines++;
    return 2 + indent + (x->forks ? 2 : 0);
}

/* Names of branches are typed by the user, but files come from anywhere. */
static int put_branch(View *v, const UiNode *n) {
    const bool tip = n == ui_tree_tip(v->t);
    const char *name = tip ? ui_tree_branch(v->t) : ui_tree_branch_at(v->t, n->id);
    char *clean = name && *name ? qsf_clean_dup(name, strlen(name), true) : NULL;
    const int cells = clean ? (int)qsf_text_width(clean, strlen(clean)) + 3 : 0;
    if (clean) ui_buf_printf(v->out, "[%s] ", clean);
    free(clean);
    return cells;
}

static void put_message(View *v, const Next *x, bool fork) {
    const UiNode *n = &v->t->nodes[x->index - 1];
    const bool user = n->at & UI_NODE_USER;
    Next at = *x;
    UiBuf text = { 0 };
    at.forks = fork;
    const char mark = v->marks[x->index - 1];
    int used = put_margin(v, mark ? mark : ' ', &at);
    ui_buf_printf(v->out, "%*u %s ", v->digits, n->id, user ? "you" : "ai ");
    used += v->digits + 5 + put_branch(v, n);
    if (v->log) (void)qsf_chatlog_record(v->log, n->at & UI_NODE_AT, take_text, &text);
    put_cells(v, ui_buf_str(&text), text.len, v->columns - used);
    ui_buf_free(&text);
}

static void put_gap(View *v, const Next *x, uint32_t n) {
    Next at = *x;
    at.forks = false;
    const char mark = v->marks[x->index - 1];
    (void)put_margin(v, mark ? mark : ' ', &at);
    ui_buf_printf(v->out, "%*s%s (%u more)", v->digits - 1, "", v->ascii ? ":" : "⋮", n);
}

/* ---- all of them ---- */

/* Is the message one that only leads to the next one, which is in the context if it is? */
static bool is_plain(const View *v, uint32_t index) {
    const UiTree *t = v->t;
    const uint32_t child = v->first[index];
    return child > 0 && v->sibling[child - 1] == 0 && index != t->tip &&
           (v->marks[index - 1] == '-') == (v->marks[child - 1] == '-') &&
           !ui_tree_branch_at(t, t->nodes[index - 1].id);
}

/* Shows messages until several follow one, or none. Returns the index + 1 of the last one. */
static uint32_t put_run(View *v, const Next *x) {
    uint32_t n = 1, last = x->index, i = 0;
    while (is_plain(v, last)) {
        last = v->first[last];
        n++;
    }
    for (Next at = *x; i < n; i++, at.index = v->first[at.index]) {
        const bool shown = n <= RUN_MAX || i < RUN_ENDS || i >= n - RUN_ENDS;
        if (shown) put_message(v, &at, x->forks && i == 0);
        if (!shown && i == RUN_ENDS) put_gap(v, &at, n - 2 * RUN_ENDS);
    }
    return last;
}

/* Adds the messages that follow index, so that the oldest one is taken first; returns the new number. */
static size_t push_children(View *v, uint32_t index, uint32_t level, Next *stack, size_t n) {
    size_t from = n;
    const uint32_t first = v->first[index];
    const bool forks = first > 0 && v->sibling[first - 1] > 0;
    for (uint32_t i = first; i > 0; i = v->sibling[i - 1])
        stack[n++] =
            (Next){ .index = i, .level = level + forks, .forks = forks, .last = v->sibling[i - 1] == 0 };
    for (size_t to = n; from + 1 < to; from++, to--) {
        const Next swap = stack[from];
        stack[from] = stack[to - 1];
        stack[to - 1] = swap;
    }
    return n;
}

void ui_treeview(const UiTree *t, const QSFChatLog *log, int columns, bool ascii, UiBuf *out) {
    View v = { .t = t, .log = log, .out = out, .columns = columns > 20 ? columns : 20, .ascii = ascii };
    Next *stack = malloc(((size_t)t->n + 1) * sizeof *stack);
    const bool ok = stack && prepare(&v);
    char number[16];
    v.digits = snprintf(number, sizeof number, "%u", t->last_id);
    v.deepest = (v.columns - TEXT_MIN - v.digits - 7) / 2;
    if (v.deepest < 1) v.deepest = 1;
    size_t n = ok ? push_children(&v, 0, 0, stack, 0) : 0;
    while (n > 0 && v.lines < LINES_MAX) {
        const Next x = stack[--n];
        n = push_children(&v, put_run(&v, &x), x.level, stack, n);
    }
    if (n > 0) ui_buf_puts(out, "\n  (too many to show)");
    uint32_t gone = 0, in_front = 0;
    ui_tree_forgotten(t, ui_tree_spot(t), &gone, &in_front);
    if (gone > 0 && ok)
        ui_buf_printf(out, "\n  (- is no longer in the context%s)",
                      in_front > 0 ? ": a summary is there instead" : "");
    if (t->dropped) ui_buf_puts(out, "\n  (older branches are no longer known)");
    free(stack);
    free(v.first);
    free(v.sibling);
    free(v.marks);
}
