/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of a session as a tree. */
#include "ui/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "ui/tree_internal.h"

#define ID_MAX      0x7fffffffu
#define FORGETS_MAX 4096u /* when there are more, those that do not apply are dropped */

static UiNode *node_at(const UiTree *t, uint32_t index) { return index > 0 ? &t->nodes[index - 1] : NULL; }

static uint32_t index_of(const UiTree *t, const UiNode *n) { return n ? (uint32_t)(n - t->nodes) + 1 : 0; }

static int kind_of(const UiNode *n) { return (n->at & UI_NODE_USER) != 0; }

static bool grow(void *array, uint32_t n, uint32_t *cap, size_t size) {
    void **p = array;
    if (n < *cap) return true;
    const uint32_t more = *cap ? *cap + *cap / 2 : 16;
    void *q = realloc(*p, (size_t)more * size);
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

static void drop_nodes(UiTree *t) {
    free(t->nodes);
    free(t->more);
    free(t->forgets);
    free(t->branches);
    t->nodes = NULL;
    t->more = NULL;
    t->forgets = NULL;
    t->branches = NULL;
    t->n = t->cap = t->n_more = t->cap_more = t->more_of = t->n_forgets = t->cap_forgets = 0;
    t->tip = t->depth = t->forget = t->next = t->roots[0] = t->roots[1] = 0;
    t->n_branches = t->branch = 0;
}

void ui_tree_reset(UiTree *t) {
    ui_steps_clear(t, t->n == 0);
    drop_nodes(t);
    t->dropped = t->failed = false;
    t->system_at = 0;
}

void ui_tree_free(UiTree *t) {
    ui_steps_clear(t, false);
    drop_nodes(t);
    *t = (UiTree){ 0 };
}

/* Without memory there is no tree: the conversation continues without. */
static void fail(UiTree *t) {
    ui_tree_reset(t);
    t->failed = true;
}

/* ---- what has left the context ---- */

void ui_tree_forgotten(const UiTree *t, UiSpot spot, uint32_t *gone, uint32_t *in_front) {
    const UiForget *f = spot.forget > 0 && spot.forget <= t->n_forgets ? &t->forgets[spot.forget - 1] : NULL;
    *gone = f ? f->gone : 0;
    *in_front = f ? f->in_front : 0;
}

bool ui_tree_same(const UiTree *t, UiSpot x, UiSpot y) {
    uint32_t gone[2], in_front[2];
    ui_tree_forgotten(t, x, &gone[0], &in_front[0]);
    ui_tree_forgotten(t, y, &gone[1], &in_front[1]);
    return x.id == y.id && gone[0] == gone[1] && in_front[0] == in_front[1];
}

/* Keeps those that apply now; places where the conversation was are taken as if nothing had left. */
static void drop_forgets(UiTree *t) {
    UiForget kept[FORGETS_MAX / 4];
    uint32_t n = 0;
    for (uint32_t f = t->forget; f > 0 && n < FORGETS_MAX / 4; f = t->forgets[f - 1].prev)
        kept[n++] = t->forgets[f - 1];
    for (uint32_t i = 0; i < n; i++) {
        t->forgets[i] = kept[n - 1 - i];
        t->forgets[i].prev = i;
    }
    t->n_forgets = n;
    t->forget = n;
    for (uint32_t i = 0; i < t->n; i++) t->nodes[i].forget = 0;
    for (uint32_t i = 0; i < t->n_branches; i++) t->branches[i].tip.forget = 0;
    ui_steps_clear(t, false);
}

static void add_forget(UiTree *t, UiForget f) {
    if (!grow(&t->forgets, t->n_forgets, &t->cap_forgets, sizeof f)) {
        fail(t);
        return;
    }
    t->forgets[t->n_forgets++] = f;
    t->forget = t->n_forgets;
}

static void forget(UiTree *t, const QSFLogRecord *r) {
    if (t->n_forgets >= FORGETS_MAX) drop_forgets(t);
    const UiForget *last = t->forget > 0 ? &t->forgets[t->forget - 1] : NULL;
    const bool summary = r->name && r->text;
    UiForget f = { .prev = t->forget, .n = r->n, .at = summary ? (uint32_t)r->at + 1 : 0 };
    const uint32_t front = last ? last->in_front : 0, eaten = front < r->n ? front : r->n;
    const uint32_t gone = last ? last->gone : 0, left = t->depth - gone;
    f.gone = gone + (r->n - eaten < left ? r->n - eaten : left);
    f.in_front = front - eaten + (summary ? 2 : 0);
    if (last && last->at == 0) { /* it adds to the one before */
        f.n = last->n < UINT32_MAX - r->n ? last->n + r->n : UINT32_MAX;
        f.prev = last->prev;
    }
    if (r->n > 0 || summary) add_forget(t, f);
}

/* ---- messages ---- */

const UiNode *ui_tree_node(const UiTree *t, uint32_t id) {
    uint32_t low = 0, high = t->n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (t->nodes[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n && t->nodes[low].id == id ? &t->nodes[low] : NULL;
}

static void set_tip(UiTree *t, uint32_t index, uint32_t depth) {
    UiNode *parent = index > 0 ? node_at(t, t->nodes[index - 1].parent) : NULL;
    if (index > 0) *(parent ? &parent->next : &t->next) = index;
    t->tip = index;
    t->depth = depth;
}

/* Only the messages of the open branch stay. */
static void drop_branches(UiTree *t) {
    uint32_t *path = malloc((size_t)(t->depth > 0 ? t->depth : 1) * sizeof *path), n = t->depth;
    if (!path) {
        fail(t);
        return;
    }
    for (uint32_t i = t->tip, k = n; i > 0 && k > 0; i = t->nodes[i - 1].parent) path[--k] = i;
    for (uint32_t k = 0; k < n; k++) {
        UiNode *to = &t->nodes[k];
        *to = t->nodes[path[k] - 1]; /* path rises */
        const int kind = kind_of(to);
        to->parent = k;
        to->nth = 1;
        to->next = k + 1 < n ? k + 2 : 0;
        to->kids[0] = to->kids[1] = 0;
        if (k > 0) t->nodes[k - 1].kids[kind] = 1;
    }
    free(path);
    t->n = t->tip = n;
    t->more_of = 0; /* they have other numbers now */
    t->next = n > 0;
    t->roots[0] = n > 0 && kind_of(&t->nodes[0]) == 0;
    t->roots[1] = n > 0 && kind_of(&t->nodes[0]) == 1;
    t->n_branches = t->branch = 0;
    t->dropped = true;
    ui_steps_clear(t, false);
    t->begin = ui_tree_spot(t);
}

/* Makes space for one more message. */
static bool make_space(UiTree *t) {
    if (t->max == 0) t->max = UI_TREE_MAX;
    if (t->n >= t->max) {
        if (t->n > t->depth) drop_branches(t);
        if (t->n > t->max / 2) t->max = t->n * 2; /* one long conversation */
    }
    if (!t->failed && !grow(&t->nodes, t->n, &t->cap, sizeof *t->nodes)) fail(t);
    return !t->failed;
}

/* Adds a child of `parent`, an index + 1; returns its own, 0 without memory. */
static uint32_t add_node(UiTree *t, uint32_t parent, uint32_t id, uint32_t at) {
    UiNode *p = node_at(t, parent);
    const UiNode n = { .id = id > t->last_id && id <= ID_MAX ? id : t->last_id + 1,
                       .parent = parent,
                       .at = at,
                       .nth = ++*(p ? &p->kids[(at & UI_NODE_USER) != 0]
                                    : &t->roots[(at & UI_NODE_USER) != 0]) };
    t->nodes[t->n++] = n;
    t->last_id = n.id;
    return t->n;
}

/* Appends a place to those of an answer; false without memory. */
static bool add_more(UiTree *t, uint32_t index, uint32_t at) {
    if (!grow(&t->more, t->n_more, &t->cap_more, sizeof *t->more)) return false;
    uint32_t *last = &t->nodes[index - 1].more;
    if (*last > 0 && t->more_of == index) last = &t->more[t->n_more - 1].next; /* the end */
    while (*last > 0) last = &t->more[*last - 1].next;
    *last = t->n_more + 1;
    t->more_of = index;
    t->more[t->n_more++] = (UiNodeMore){ .at = at };
    return true;
}

static bool copy_more(UiTree *t, uint32_t to, uint32_t from) {
    bool ok = true;
    for (uint32_t m = t->nodes[from - 1].more; ok && m > 0; m = t->more[m - 1].next)
        ok = add_more(t, to, t->more[m - 1].at);
    return ok;
}

/* More of the last answer. What followed it once followed a shorter one, which stays a version. */
static void go_on(UiTree *t, const QSFLogRecord *r) {
    const uint32_t old = t->tip;
    const bool followed = t->nodes[old - 1].kids[0] + t->nodes[old - 1].kids[1] > 0;
    bool ok = true;
    if (followed) {
        if (!make_space(t)) return;
        const uint32_t from = t->tip; /* nodes may have been dropped */
        const uint32_t index = add_node(t, t->nodes[from - 1].parent, r->id, t->nodes[from - 1].at);
        ok = copy_more(t, index, from);
        set_tip(t, index, t->depth);
    }
    if (!ok || !add_more(t, t->tip, (uint32_t)r->at)) fail(t);
}

/* The same message again: the conversation continues from it. */
static bool repeat(UiTree *t, const QSFLogRecord *r, int kind) {
    UiNode *n = r->id > 0 ? (UiNode *)ui_tree_node(t, r->id) : NULL;
    if (!n || n->parent != t->tip || kind_of(n) != kind) return false;
    if (n->more > 0) { /* now it is in one record */
        n->more = 0;
        n->at = (uint32_t)r->at;
    }
    set_tip(t, index_of(t, n), t->depth + 1);
    return true;
}

static void message(UiTree *t, const QSFLogRecord *r) {
    const int kind = strcmp(r->role, "user") == 0;
    const UiNode *tip = ui_tree_tip(t);
    const bool more = kind == 0 && tip && kind_of(tip) == 0;
    if (repeat(t, r, kind)) return;
    if (more) {
        go_on(t, r);
        return;
    }
    if (!make_space(t)) return;
    const uint32_t index = add_node(t, t->tip, r->id, (uint32_t)r->at | (kind ? UI_NODE_USER : 0));
    set_tip(t, index, t->depth + 1);
}

/* ---- back ---- */

/* The last n messages leave, of the path first and then of summaries. */
static void up(UiTree *t, uint32_t n) {
    const UiForget *f = t->forget > 0 ? &t->forgets[t->forget - 1] : NULL;
    uint32_t real = t->depth - (f ? f->gone : 0), tip = t->tip;
    if (real > n) real = n;
    for (uint32_t i = 0; i < real; i++) tip = t->nodes[tip - 1].parent;
    set_tip(t, tip, t->depth - real);
    n -= real;
    if (n == 0 || !f || f->in_front == 0) return;
    UiForget less = *f;
    less.at = 0;
    less.in_front = f->in_front > n ? f->in_front - n : 0;
    add_forget(t, less);
}

/* Messages of the last exchange, at most n. */
static uint32_t last_exchange(const UiTree *t, uint32_t n) {
    uint32_t k = 0, tip = t->tip;
    const uint32_t gone = t->forget > 0 ? t->forgets[t->forget - 1].gone : 0;
    while (k < n && t->depth - k > gone) {
        const UiNode *it = &t->nodes[tip - 1];
        k++;
        tip = it->parent;
        if (kind_of(it) == 1) return k;
    }
    return n; /* summaries */
}

/* One change, or exchanges that are removed one after the other. */
static void undo(UiTree *t, const QSFLogRecord *r) {
    const bool simple = !r->more && !t->pending && (!r->by || strcmp(r->by, QSF_LOG_BY_UNDO) == 0);
    if (t->n_forgets >= FORGETS_MAX) drop_forgets(t);
    const UiSpot from = ui_tree_spot(t);
    const uint32_t tip = t->tip, depth = t->depth, forgotten = t->forget;
    if (r->more && !r->by && !t->pending) ui_steps_withdrawn(t, from.id);
    up(t, r->n);
    if (!simple || ui_steps_is_before_last(t, ui_tree_spot(t))) {
        ui_steps_commit(t, r, UI_STEP_MOVED);
        return;
    }
    if (t->failed) return;
    set_tip(t, tip, depth);
    t->forget = forgotten;
    for (uint32_t n = r->n; n > 0 && (t->tip > 0 || t->forget > 0) && !t->failed;) {
        const UiSpot at = ui_tree_spot(t);
        const uint32_t k = last_exchange(t, n);
        up(t, k);
        n -= k;
        if (!ui_tree_same(t, at, ui_tree_spot(t))) ui_steps_back(t, at);
    }
}

static void clear(UiTree *t, const QSFLogRecord *r) {
    QSFLogRecord by = *r;
    if (!by.by) by.by = "clear";
    set_tip(t, 0, 0);
    t->forget = 0;
    ui_steps_commit(t, &by, UI_STEP_MOVED);
}

/* ---- branches ---- */

static UiBranch *find_branch(const UiTree *t, const char *name) {
    for (uint32_t i = 0; i < t->n_branches; i++)
        if (strcmp(t->branches[i].name, name) == 0) return &t->branches[i];
    return NULL;
}

/* The place of one that was taken back has no name. */
static UiBranch *add_branch(UiTree *t) {
    UiBranch *b = find_branch(t, "");
    if (b) return b;
    UiBranch *all = t->n_branches < UI_BRANCHES_MAX ? realloc(t->branches, (t->n_branches + 1) * sizeof *all)
                                                    : NULL;
    if (!all) return NULL;
    t->branches = all;
    return &all[t->n_branches++];
}

/* The branch that was open stays where it is. */
static void branch(UiTree *t, const char *name, uint64_t len) {
    UiBranch *b = len > 0 ? find_branch(t, name) : NULL;
    if (len >= UI_BRANCH_NAME) return;
    if (t->branch > 0) t->branches[t->branch - 1].tip = ui_tree_spot(t);
    if (len > 0 && !b) {
        b = add_branch(t);
        if (!b) return;
        *b = (UiBranch){ 0 };
        memcpy(b->name, name, len);
    }
    t->branch = b ? (uint32_t)(b - t->branches) + 1 : 0;
}

static void set(UiTree *t, const QSFLogRecord *r) {
    if (!r->name || !r->text || r->text_bytes > r->len) return;
    if (strcmp(r->name, QSF_LOG_BRANCH) == 0) {
        const uint32_t left = ui_steps_undoes(t, r) ? t->branch : 0;
        branch(t, r->text, r->len);
        if (left > 0 && left != t->branch)
            t->branches[left - 1] = (UiBranch){ 0 }; /* as if it had not begun */
    }
    ui_steps_setting(t, r, 0);
}

/* What was said to the guide is not passed to another model. */
static void model(UiTree *t, const QSFLogRecord *r) {
    const bool guide = r->text && strcmp(r->text, QSF_GUIDE) == 0;
    if (guide != t->guide) ui_tree_reset(t);
    t->guide = guide;
}

void ui_tree_record(UiTree *t, const QSFLogRecord *r) {
    const uint32_t was_at = t->system_at;
    const UiSpot from = ui_tree_spot(t);
    if (t->failed) return;
    if (r->at > UI_NODE_AT) {
        fail(t);
        return;
    }
    switch (r->kind) {
    case QSF_LOG_MESSAGE:
        message(t, r);
        if (!t->failed && (t->pending || r->more || !ui_tree_same(t, from, ui_tree_spot(t))))
            ui_steps_commit(t, r, UI_STEP_EXCHANGE);
        else if (!t->failed)
            ui_steps_go_on(t);
        break;
    case QSF_LOG_UNDO: undo(t, r); break;
    case QSF_LOG_CLEAR: clear(t, r); break;
    case QSF_LOG_FORGET: {
        QSFLogRecord by = *r;
        if (!by.by) by.by = r->name && r->text ? "compact" : "forget";
        forget(t, r);
        if (!t->failed) ui_steps_commit(t, &by, UI_STEP_MOVED);
        break;
    }
    case QSF_LOG_SYSTEM:
        t->system_at = (uint32_t)r->at + 1;
        ui_steps_setting(t, r, was_at);
        break;
    case QSF_LOG_SET: set(t, r); break;
    case QSF_LOG_MODEL: model(t, r); break;
    case QSF_LOG_PART: break;
    }
    if (t->tip > 0) t->nodes[t->tip - 1].forget = t->forget;
}
