/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses formats of experts by their uses. */
#include <stdlib.h>

#include "src/convert/pack/choose.h"
#include "src/convert/pack/expert_uses.h"

static int lower(QsfItem *i, const bool *which, uint32_t n, QsfErr *err) {
    QsfItem one = *i;
    uint8_t code;
    one.rows = i->rows / i->experts;
    if (n == 0 || !qsf_choose_lower(i, &code)) return QSF_OK;
    int rc = qsf_item_become(&one, code, 0, QSF_WHY_NONE, err);
    if (rc != QSF_OK) return rc;
    i->bytes = i->bytes / i->experts * (i->experts - n) + one.bytes * n;
    i->seldom = which;
    i->n_seldom = n;
    i->seldom_code = code;
    return QSF_OK;
}

/* Reads the uses of the experts of all layers that have as many. */
static int read_uses(QsfExpertUses *u, const QsfItems *l, const char *path, uint32_t experts, QsfErr *err) {
    bool *has = calloc((size_t)l->n_layers + 1, sizeof *has);
    if (has == NULL) return qsf_err_memory(err, "uses of experts");
    for (uint32_t k = 0; k < l->n; k++)
        if (l->item[k].experts == experts) has[l->item[k].layer] = true;
    int rc = qsf_expert_uses_read(u, path, l->n_layers, experts, has, err);
    free(has);
    return rc;
}

int qsf_items_by_use(QsfItems *l, const char *path, const char *model, QsfErr *err) {
    QsfExpertUses u;
    uint32_t experts = 0;
    for (uint32_t k = 0; k < l->n; k++)
        if (l->item[k].experts > experts) experts = l->item[k].experts;
    if (experts == 0)
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s has no experts that are stored one after the other, for --experts-by-use",
                           model);
    int rc = read_uses(&u, l, path, experts, err);
    if (rc != QSF_OK) return rc;
    l->seldom = calloc((size_t)l->n_layers * experts + 1, sizeof *l->seldom);
    if (l->seldom == NULL) rc = qsf_err_memory(err, "uses of experts");
    for (uint32_t k = 0, run; rc == QSF_OK && k < l->n; k += run) {
        run = qsf_items_run(l, k);
        if (l->item[k].experts != experts) continue;
        bool *which = l->seldom + (size_t)l->item[k].layer * experts;
        const uint32_t n = qsf_expert_uses_seldom(&u, l->item[k].layer, which);
        for (uint32_t i = k; rc == QSF_OK && i < k + run; i++) rc = lower(&l->item[i], which, n, err);
    }
    qsf_expert_uses_free(&u);
    return rc;
}
