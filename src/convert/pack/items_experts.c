/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts that are stored one after the other: which tensors they are, and their parts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/convert/pack/items.h"
#include "src/file/dtype.h"

enum { MATRICES_MAX = 4 }; /* tensors of the experts of a layer */

/* Tensors of all experts, and the names of their matrices. */
static const struct {
    const char *stacked, *part[2];
} kinds[] = {
    { "ffn_gate_up_exps.weight", { "gate", "up" } },
    { "ffn_gate_exps.weight", { "gate", NULL } },
    { "ffn_up_exps.weight", { "up", NULL } },
    { "ffn_down_exps.weight", { "down", NULL } },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static size_t kind_of(const char *name) {
    uint32_t layer;
    const char *rest = qsf_name_in_layer(name, &layer);
    size_t k = 0;
    while (k < N_KINDS && (rest == NULL || strcmp(kinds[k].stacked, rest) != 0)) k++;
    return k;
}

uint32_t qsf_expert_pieces(const char *stacked) {
    const size_t k = kind_of(stacked);
    return k == N_KINDS ? 0 : kinds[k].part[1] != NULL ? 2 : 1;
}

const char *qsf_expert_name(const char *stacked, uint32_t expert, uint32_t piece, char buf[QSF_ITEM_NAME]) {
    uint32_t layer = 0;
    (void)qsf_name_in_layer(stacked, &layer);
    (void)snprintf(buf, QSF_ITEM_NAME, "blk.%" PRIu32 ".ffn_%s.%" PRIu32 ".weight", layer,
                   kinds[kind_of(stacked)].part[piece], expert);
    return buf;
}

/* ---- which ones */

/* Can the matrices of this tensor be tensors of their own? What follows the last row belongs to all. */
static bool can_part(const QsfItem *i) {
    const uint32_t pieces = qsf_expert_pieces(i->t->name);
    return i->t->n_dims == 3 && i->t->ne[1] % pieces == 0 && i->t->ne[2] <= UINT16_MAX / MATRICES_MAX &&
           qsf_dtype(i->t->dtype)->tail_bytes == 0 && i->rows == i->t->ne[1] * i->t->ne[2];
}

/* Sets experts of the layer's items, if they are all matrices of as many experts. Returns the number of
 * matrices. */
static uint32_t mark_layer(QsfItems *l, uint32_t layer) {
    QsfItem *of[MATRICES_MAX];
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        const QsfItem *i = &l->item[k];
        if (i->layer != layer || i->use != QSF_USE_EXPERTS || qsf_expert_pieces(i->t->name) == 0) continue;
        if (!can_part(i) || n == MATRICES_MAX || (n > 0 && of[0]->t->ne[2] != i->t->ne[2])) return 0;
        of[n++] = &l->item[k];
    }
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < n; i++) pieces += qsf_expert_pieces(of[i]->t->name);
    if (n == 0 || pieces < 2 || pieces > 3) return 0;
    for (uint32_t i = 0; i < n; i++) {
        of[i]->experts = (uint32_t)of[i]->t->ne[2];
        l->named.fused[l->named.n_fused++] = of[i]->t->name;
    }
    return pieces * of[0]->experts;
}

int qsf_items_part_experts(QsfItems *l, const char *path, QsfErr *err) {
    uint64_t n = 0, names = 0;
    for (uint32_t layer = 0; layer < l->n_layers; layer++) n += mark_layer(l, layer);
    if (n == 0) return QSF_OK;
    for (uint32_t k = 0; k < l->n; k++) names += l->item[k].experts == 0;
    QsfNamedTensor *more = realloc(l->named.tensor, (size_t)(n + names + 1) * sizeof *more);
    if (more != NULL) l->named.tensor = more;
    l->names = malloc((size_t)n * sizeof *l->names);
    return more != NULL && l->names != NULL ? QSF_OK : qsf_err_memory(err, "%s", path);
}

/* ---- their parts, in the order of the file */

uint32_t qsf_items_run(const QsfItems *l, uint32_t k) {
    uint32_t end = k + 1;
    while (l->item[k].experts > 0 && end < l->n && l->item[end].experts > 0 &&
           l->item[end].layer == l->item[k].layer)
        end++;
    return end - k;
}

uint32_t qsf_items_parts(const QsfItems *l, uint32_t k, uint32_t n) {
    uint32_t pieces = 0;
    if (l->item[k].experts == 0) return 1;
    for (uint32_t i = k; i < k + n; i++) pieces += qsf_expert_pieces(l->item[i].t->name);
    return pieces * l->item[k].experts;
}

uint32_t qsf_items_part(const QsfItems *l, uint32_t k, uint32_t at, QsfItem *out, char name[QSF_ITEM_NAME]) {
    const uint32_t run = qsf_items_run(l, k), each = qsf_items_parts(l, k, run) / l->item[k].experts,
                   expert = at / each;
    uint32_t piece = at % each, i = k, pieces;
    for (; piece >= (pieces = qsf_expert_pieces(l->item[i].t->name)); i++) piece -= pieces;
    *out = l->item[i];
    out->type = QSFT_NAMED;
    out->experts = 0;
    out->rows = (uint32_t)out->t->ne[1] / pieces;
    out->first = expert * out->t->ne[1] + (uint64_t)piece * out->rows;
    if (out->seldom != NULL && out->seldom[expert]) out->code = out->seldom_code;
    out->seldom = NULL;
    (void)qsf_expert_name(out->t->name, expert, piece, name);
    return i;
}
