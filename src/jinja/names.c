/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a compiled template reads: its variables and its words. Text, names of keyword arguments, attributes
 * and the targets of assignments are not variables. */
#include <string.h>

#include "src/jinja/ast.h"

#define TARGET_DEPTH 64 /* of tuples in a target; the parser nests no deeper */

/* Occurrences of a name in the target of an assignment. */
static uint32_t in_target(const QsfJinja *t, QsfJRef r, uint32_t atom, unsigned depth) {
    const QsfJNode *n = &t->nodes[r];
    uint32_t count = 0;
    if (n->kind == QSF_JN_NAME) return n->sym == atom;
    if (n->kind != QSF_JN_ITEMS || depth == TARGET_DEPTH) return 0;
    for (QsfJRef i = n->a; i != 0; i = t->nodes[i].next) count += in_target(t, i, atom, depth + 1);
    return count;
}

bool qsf_jinja_reads(const QsfJinja *t, const char *name) {
    uint32_t atom = 0, names = 0, targets = 0;
    while (atom < t->n_atoms && !qsf_j_is(t->atoms[atom].name, name)) atom++;
    if (atom == t->n_atoms) return false;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const QsfJNode *n = &t->nodes[i];
        if (n->kind == QSF_JN_NAME) names += n->sym == atom;
        if (n->kind == QSF_JN_SET || n->kind == QSF_JN_SETBLOCK || n->kind == QSF_JN_FOR)
            targets += in_target(t, n->a, atom, 0);
    }
    return names > targets;
}

bool qsf_jinja_has_word(const QsfJinja *t, const char *word) {
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        if (t->nodes[i].kind != QSF_JN_CONST) continue;
        const QsfJVal v = t->consts[t->nodes[i].sym];
        if (v.type == QSF_J_STR && qsf_j_is(v.u.s, word)) return true;
    }
    return false;
}
