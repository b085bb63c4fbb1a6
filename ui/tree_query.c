/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Questions to the tree of messages. */
#include <string.h>

#include "ui/tree_internal.h"

static const UiNode *at(const UiTree *t, uint32_t index) { return index > 0 ? &t->nodes[index - 1] : NULL; }

const UiNode *ui_tree_parent(const UiTree *t, const UiNode *n) { return at(t, n->parent); }

const UiNode *ui_tree_tip(const UiTree *t) { return at(t, t->tip); }

UiSpot ui_tree_spot(const UiTree *t) {
    return (
        UiSpot){ .id = t->tip > 0 ? t->nodes[t->tip - 1].id : 0, .forget = t->forget, .branch = t->branch };
}

UiSpot ui_tree_end(const UiTree *t, uint32_t id) {
    const UiNode *n = ui_tree_node(t, id);
    while (n && n->next > 0) n = at(t, n->next);
    return ui_tree_spot_at(t, n ? n->id : 0);
}

uint32_t ui_tree_depth(const UiTree *t, const UiNode *n) {
    uint32_t depth = 0;
    for (; n; n = at(t, n->parent)) depth++;
    return depth;
}

/* Messages that two conversations have in common. */
static uint32_t common(const UiTree *t, const UiNode *x, const UiNode *y) {
    uint32_t dx = ui_tree_depth(t, x), dy = ui_tree_depth(t, y);
    for (; dx > dy; dx--) x = at(t, x->parent);
    for (; dy > dx; dy--) y = at(t, y->parent);
    for (; x != y; dx--) {
        x = at(t, x->parent);
        y = at(t, y->parent);
    }
    return dx;
}

UiSpot ui_tree_spot_at(const UiTree *t, uint32_t id) {
    const UiNode *n = ui_tree_node(t, id);
    UiSpot spot = { .id = n ? id : 0, .forget = n ? n->forget : 0, .branch = t->branch };
    uint32_t own, now, front;
    ui_tree_forgotten(t, spot, &own, &front);
    ui_tree_forgotten(t, ui_tree_spot(t), &now, &front);
    if (!n || now <= own || ui_tree_depth(t, n) <= now || common(t, n, ui_tree_tip(t)) < now) return spot;
    spot.forget = t->forget;
    return spot;
}

void ui_tree_path(const UiTree *t, const UiNode *n, uint32_t *dst) {
    for (uint32_t i = ui_tree_depth(t, n); n && i > 0; n = at(t, n->parent)) dst[--i] = n->id;
}

static int kind_of(const UiNode *n) { return (n->at & UI_NODE_USER) != 0; }

uint32_t ui_tree_versions(const UiTree *t, const UiNode *n) {
    const UiNode *parent = at(t, n->parent);
    return parent ? parent->kids[kind_of(n)] : t->roots[kind_of(n)];
}

const UiNode *ui_tree_version(const UiTree *t, const UiNode *n, uint32_t nth) {
    for (uint32_t i = n->parent; i < t->n; i++) { /* children follow their parent */
        const UiNode *it = &t->nodes[i];
        if (it->parent == n->parent && kind_of(it) == kind_of(n) && it->nth == nth) return it;
    }
    return NULL;
}

void ui_tree_places(const UiTree *t, const UiNode *n, void (*fn)(void *arg, uint64_t at), void *arg) {
    fn(arg, n->at & UI_NODE_AT);
    for (uint32_t m = n->more; m > 0; m = t->more[m - 1].next) fn(arg, t->more[m - 1].at);
}

const char *ui_tree_branch_name(const UiTree *t, uint32_t branch) {
    return branch > 0 && branch <= t->n_branches ? t->branches[branch - 1].name : "";
}

const char *ui_tree_branch(const UiTree *t) { return t->branch > 0 ? t->branches[t->branch - 1].name : ""; }

bool ui_tree_find_branch(const UiTree *t, const char *name, UiSpot *tip) {
    for (uint32_t i = 0; i < t->n_branches; i++) {
        if (strcmp(t->branches[i].name, name) != 0) continue;
        *tip = i + 1 == t->branch ? ui_tree_spot(t) : t->branches[i].tip;
        tip->branch = i + 1;
        return tip->id == 0 || ui_tree_node(t, tip->id) != NULL;
    }
    return false;
}

const char *ui_tree_branch_at(const UiTree *t, uint32_t id) {
    for (uint32_t i = 0; i < t->n_branches; i++)
        if (i + 1 != t->branch && t->branches[i].tip.id == id && t->branches[i].name[0])
            return t->branches[i].name;
    return NULL;
}

uint64_t ui_tree_bytes(const UiTree *t) {
    return t->cap * (uint64_t)sizeof *t->nodes + t->cap_more * (uint64_t)sizeof *t->more +
           t->cap_forgets * (uint64_t)sizeof *t->forgets + t->n_branches * (uint64_t)sizeof *t->branches;
}
