/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/pack/gguf_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/file/qsf/named.h"
#include "src/file/qsf/names.h"
#include "src/file/rows.h"
#include "src/file/source_impl.h"

enum { I2_S_FLAVORS = 36 }; /* src/file/i2s.h */

/* Tensors that QSF stores as their parts (items_list.c). */
static const struct {
    const char *name, *part[QSF_GGUF_PARTS + 1];
} fused[] = {
    { "attn_qkv.weight", { "attn_q.weight", "attn_k.weight", "attn_v.weight" } },
    { "attn_qkv.bias", { "attn_q.bias", "attn_k.bias", "attn_v.bias" } },
    { "ffn_up.weight", { "ffn_gate.weight", "ffn_up.weight" } },
};

typedef struct Lister {
    const QsfSource *s;
    QsfGgufList *l;
    int32_t *join; /* (tensors of s) index of the fused name that it is a part of, or -1 */
    QsfErr *err;
} Lister;

/* ---- joined tensors */

/* Finds the parts of the tensor `name`; false if it has none, or they do not exist. */
static bool find_parts(const Lister *c, const char *name, QsfGgufTensor *t) {
    char full[QSFF_NAME_MAX + 64];
    uint32_t layer;
    const char *rest = qsf_name_in_layer(name, &layer);
    for (size_t k = 0; rest != NULL && k < sizeof fused / sizeof *fused; k++) {
        if (strcmp(fused[k].name, rest) != 0) continue;
        for (t->n_parts = 0; fused[k].part[t->n_parts] != NULL; t->n_parts++) {
            (void)snprintf(full, sizeof full, "blk.%" PRIu32 ".%s", layer, fused[k].part[t->n_parts]);
            t->part[t->n_parts] = qsf_source_find_tensor(c->s, full);
            if (t->part[t->n_parts] == NULL) return false;
        }
        return true;
    }
    return false;
}

/* Can the parts be one tensor? They cannot if they have different types. */
static bool fits(const Lister *c, const QsfGgufTensor *t) {
    const QsfTensor *first = t->part[0], *old = qsf_source_find_tensor(c->s, t->name);
    bool is_part = old == NULL;
    if (first->n_dims > 2 || qsf_dtype(first->dtype)->tail_bytes > 0) return false;
    if (first->n_dims == 1 && qsf_dtype(first->dtype)->block_elems != 1) return false;
    for (unsigned i = 0; i < t->n_parts; i++) {
        const QsfTensor *p = t->part[i];
        if (p->dtype != first->dtype || p->n_dims != first->n_dims) return false;
        if (p->n_dims == 2 && p->ne[0] != first->ne[0]) return false;
        if (c->join[p - qsf_source_tensor(c->s, 0)] >= 0) return false;
        is_part |= p == old;
    }
    return is_part; /* otherwise the file has a tensor of this name */
}

static void join_dims(QsfGgufTensor *t) {
    t->n_dims = t->part[0]->n_dims;
    memcpy(t->ne, t->part[0]->ne, sizeof t->ne);
    for (unsigned i = 1; i < t->n_parts; i++) t->ne[t->n_dims - 1] += t->part[i]->ne[t->n_dims - 1];
}

static void mark_joined(const Lister *c) {
    const QsfNamed *names = c->s->named;
    QsfGgufTensor t;
    for (uint32_t i = 0; names != NULL && i < names->n_fused && i < INT32_MAX; i++) {
        t = (QsfGgufTensor){ .name = names->fused[i] };
        if (!find_parts(c, t.name, &t) || !fits(c, &t)) continue;
        for (unsigned k = 0; k < t.n_parts; k++) c->join[t.part[k] - qsf_source_tensor(c->s, 0)] = (int32_t)i;
    }
}

/* ---- all */

static bool gguf_type(uint32_t dtype, uint32_t *type) {
    const bool flavor = dtype == QK_GGML_I2_256 || dtype == QK_GGML_I2_32;
    *type = flavor ? I2_S_FLAVORS : dtype;
    return flavor || dtype < QK_GGML_QSF;
}

static int finish(const Lister *c, QsfGgufTensor *t) {
    const QsfDtype *d = qsf_dtype(t->part[0]->dtype);
    if (!gguf_type(d->id, &t->type))
        return qsf_err_set(c->err, QSF_E_MODEL,
                           "%s: tensor '%s' is of type %s, which GGUF does not have; convert the model to "
                           "another QSF file with --quant-type q4_k, q6_k, q8_0 or f16 first",
                           qsf_source_path(c->s), t->name, d->name);
    c->l->flavored |= t->type != d->id;
    if (!qsf_dtype_tensor_bytes(d, t->ne, &t->bytes))
        return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor '%s' has an impossible shape",
                           qsf_source_path(c->s), t->name);
    return QSF_OK;
}

static int add(const Lister *c, uint64_t i) {
    const QsfTensor *t = qsf_source_tensor(c->s, i);
    QsfGgufTensor *out = &c->l->tensor[c->l->n];
    const int32_t join = c->join[i];
    *out = (QsfGgufTensor){ .name = t->name, .part = { t }, .n_parts = 1 };
    if (join >= 0) out->name = c->s->named->fused[join];
    if (join >= 0 && (!find_parts(c, out->name, out) || out->part[0] != t))
        return QSF_OK; /* with the first */
    join_dims(out);
    c->l->n++;
    return finish(c, out);
}

int qsf_gguf_list(QsfGgufList *l, const QsfSource *s, QsfErr *err) {
    const uint64_t n = qsf_source_n_tensors(s);
    Lister c = { .s = s, .l = l, .err = err };
    *l = (QsfGgufList){ .tensor = calloc((size_t)n + 1, sizeof *l->tensor) };
    c.join = malloc(((size_t)n + 1) * sizeof *c.join);
    int rc = l->tensor != NULL && c.join != NULL ? QSF_OK : qsf_err_memory(err, "%s", qsf_source_path(s));
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) c.join[i] = -1;
    if (rc == QSF_OK) mark_joined(&c);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) rc = add(&c, i);
    free(c.join);
    if (rc != QSF_OK) qsf_gguf_list_free(l);
    return rc;
}

void qsf_gguf_list_free(QsfGgufList *l) {
    free(l->tensor);
    *l = (QsfGgufList){ 0 };
}
