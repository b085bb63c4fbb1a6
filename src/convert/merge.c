/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --lora: the adapters of the command line in the weights of the input. */
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"

#include "src/base/json.h"
#include "src/base/plural.h"
#include "src/convert/convert.h"
#include "src/convert/pack/merged.h"
#include "src/engine/adapters.h"

/* What a use of a pair adds to the tensor of the unit. */
static QsfAddend addend_of(const QsfSource *s, const QsfModel *m, const QsfAdapterSet *set,
                           const QsfAdapterUse *u) {
    const QsfUnitSpec *unit = &m->prog.unit[u->unit];
    const QsfTensor *t = unit->tensor[u->tensor];
    const QsfAdapter *a = &set->adapter[u->adapter];
    const QsfAdapterPair *p = &a->pair[u->pair];
    return (QsfAddend){ .index = (uint64_t)(t - qsf_source_tensor(s, 0)),
                        .row0 = unit->row0[u->tensor],
                        .rows = unit->rows[u->tensor] > 0 ? unit->rows[u->tensor] : t->ne[1],
                        .rank = p->rank,
                        .factor = qsf_adapter_factor(a, p),
                        .src = a->src,
                        .a = p->a,
                        .b = p->b,
                        .a_row = (uint64_t)u->part * p->rank,
                        .b_row = (uint64_t)u->part * p->rows + u->row0 };
}

/* By tensor; of one tensor in the order of the adapters. */
static int by_index(const void *x, const void *y) {
    const QsfAddend *a = x, *b = y;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    if (a->row0 != b->row0) return a->row0 < b->row0 ? -1 : 1;
    return (a->src > b->src) - (a->src < b->src);
}

/* Changes of the table of tokens would also be changes of a head that is the same tensor, and the other way
 * round; blocks that run several times have the same tensors. */
static int check(const QsfModel *m, const QsfAdapterSet *set, QsfErr *err) {
    if (m->hp.n_named < m->hp.n_layers)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: adapters cannot be merged into a model whose blocks run several "
                           "times",
                           qsf_source_path(m->src));
    for (uint32_t k = 0; k < set->n; k++) {
        const QsfAdapter *a = &set->adapter[k];
        if (a->n_invocation > 0)
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: an aLoRA cannot be merged: it acts only after its invocation", a->path);
        for (uint32_t i = 0; i < a->n_pairs; i++)
            if (a->pair[i].table)
                return qsf_err_set(err, QSF_E_MODEL, "%s: adapters of the embedding table cannot be merged",
                                   a->path);
    }
    for (uint32_t i = 0; i < set->n_uses; i++)
        if (m->prog.unit[set->use[i].unit].tensor[set->use[i].tensor] == m->prog.embed)
            return qsf_err_set(
                err, QSF_E_MODEL,
                "%s: an adapter of the head cannot be merged: the head of this model is its embedding "
                "table",
                set->adapter[set->use[i].adapter].path);
    return QSF_OK;
}

/* add: sorted by tensor. src NULL: of all adapters. */
static uint32_t count_tensors(const QsfAddend *add, size_t n, const QsfSource *src) {
    uint32_t count = 0;
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if ((src != NULL && add[i].src != src) || add[i].index == last) continue;
        last = add[i].index;
        count++;
    }
    return count;
}

static void describe(const QsfAdapterSet *set, const QsfAddend *add, ConvertMerged *out) {
    out->n = set->n;
    out->tensors = count_tensors(add, set->n_uses, NULL);
    for (uint32_t i = 0; i < set->n; i++) {
        out->adapter[i].path = set->adapter[i].path;
        out->adapter[i].scale = set->adapter[i].scale;
        out->adapter[i].tensors = count_tensors(add, set->n_uses, set->adapter[i].src);
    }
}

static int merge(QsfSource *s, const QsfModel *m, const QsfAdapterSet *set, ConvertMerged *merged,
                 QsfErr *err) {
    int rc = check(m, set, err);
    if (rc != QSF_OK) return rc;
    QsfAddend *add = calloc(set->n_uses + 1u, sizeof *add);
    if (add == NULL) return qsf_err_memory(err, "adapters");
    for (uint32_t i = 0; i < set->n_uses; i++) add[i] = addend_of(s, m, set, &set->use[i]);
    qsort(add, set->n_uses, sizeof *add, by_index);
    describe(set, add, merged);
    rc = qsf_merge_into(s, add, set->n_uses, err);
    free(add);
    return rc;
}

int convert_merge(const ConvertOptions *o, QsfSource *s, QsfLedger *ledger, QsfAdapterSet **set,
                  ConvertMerged *merged) {
    QsfModel m;
    QsfErr err = { 0 };
    *set = NULL;
    if (o->lora.lora[0] == '\0') return QSF_EXIT_OK;
    int rc = qsf_model_of_source(&m, s, true, ledger, &err);
    if (rc != QSF_OK) return convert_fail(&err);
    rc = qsf_adapters_of_settings(set, &m, &o->lora, NULL, true, ledger, &err);
    if (rc == QSF_OK) rc = merge(s, &m, *set, merged, &err);
    if (rc == QSF_OK) qsf_adapters_notice(*set, merged->notice, sizeof merged->notice);
    if (merged->notice[0] != '\0' && !o->quiet) qsf_cli_error_text(&convert_cli, merged->notice);
    qsf_model_close(&m);
    return rc == QSF_OK ? QSF_EXIT_OK : convert_fail(&err);
}

/* ---- the report ---- */

static void put_line(QsfStrbuf *b, const char *path, float scale, uint32_t tensors, bool dry) {
    char text[80], *clean = qsf_clean_dup(path, strlen(path), true);
    qsf_plural_snprintf(text, sizeof text, "%u tensors", tensors);
    qsf_strbuf_addf(b, "%s, times %g: %s %s\n", clean != NULL ? clean : "", (double)scale,
                    dry ? "would be merged into" : "merged into", text);
    free(clean);
}

static void put_json(QsfStrbuf *b, const ConvertMerged *m) {
    qsf_strbuf_adds(b, "\"merged\": [");
    for (uint32_t i = 0; i < m->n; i++) {
        qsf_strbuf_adds(b, i > 0 ? ", {\"file\": " : "{\"file\": ");
        qsf_json_put_string(b, m->adapter[i].path, strlen(m->adapter[i].path));
        qsf_strbuf_adds(b, ", \"scale\": ");
        qsf_json_put_real(b, (double)m->adapter[i].scale);
        qsf_strbuf_addf(b, ", \"tensors\": %u}", m->adapter[i].tensors);
    }
    qsf_strbuf_addf(b, "], \"merged_tensors\": %u, ", m->tensors);
    if (m->notice[0] == '\0') return;
    qsf_strbuf_adds(b, "\"notice\": ");
    qsf_json_put_string(b, m->notice, strlen(m->notice));
    qsf_strbuf_adds(b, ", ");
}

void convert_put_merged(QsfStrbuf *b, const ConvertOptions *o) {
    const ConvertMerged *m = o->merged;
    if (m == NULL || m->n == 0) return;
    if (o->json) {
        put_json(b, m);
        return;
    }
    for (uint32_t i = 0; i < m->n; i++)
        put_line(b, m->adapter[i].path, m->adapter[i].scale, m->adapter[i].tensors, o->dry);
}
