/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists the tensors of a model for a QSF file, in order of use, so that a streaming reader reads
 * sequentially: those that have a type, and all others by name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/convert/pack/items.h"
#include "src/file/dtype.h"
#include "src/file/qsf/names.h"
#include "src/file/rows.h"
#include "src/file/source_impl.h"

/* The list of items while it is made. */
typedef struct Lister {
    const QsfSource *s;
    QsfItems *l;
    const QsfFileHeader *head;
    const QsfUses *uses; /* NULL: unknown */
    bool *placed;        /* (tensors of s) */
    QsfErr *err;
} Lister;

static const uint8_t layer_order[] = {
    QSFT_ATTN_NORM,
    QSFT_ATTN_NORM_BIAS,
    QSFT_Q,
    QSFT_Q_BIAS,
    QSFT_K,
    QSFT_K_BIAS,
    QSFT_V,
    QSFT_V_BIAS,
    QSFT_Q_NORM,
    QSFT_K_NORM,
    QSFT_ATTN_SUB_NORM,
    QSFT_O,
    QSFT_O_BIAS,
    QSFT_POST_ATTN_NORM,
    QSFT_FFN_NORM,
    QSFT_FFN_NORM_BIAS,
    QSFT_ROUTER,
    QSFT_GATE,
    QSFT_GATE_EXPERTS,
    QSFT_GATE_BIAS,
    QSFT_UP,
    QSFT_UP_EXPERTS,
    QSFT_FFN_SUB_NORM,
    QSFT_DOWN,
    QSFT_DOWN_EXPERTS,
    QSFT_FFN_BIASES,
    QSFT_POST_FFN_NORM,
};
static const uint8_t final_order[] = { QSFT_POSITIONS, QSFT_ROPE_FREQS, QSFT_HEAD, QSFT_HEAD_BIAS };

/* Returns the tensor "blk.N.rest", NULL if there is none. */
static const QsfTensor *lister_in_layer(const Lister *c, uint32_t layer, const char *rest) {
    char name[QSF_ITEM_NAME];
    snprintf(name, sizeof name, "blk.%" PRIu32 ".%.64s", layer, rest);
    return qsf_source_find_tensor(c->s, name);
}

static uint64_t index_of(const Lister *c, const QsfTensor *t) {
    return (uint64_t)(t - qsf_source_tensor(c->s, 0));
}

/* ---- one tensor */

static int no_place(const Lister *c, const QsfTensor *t, const char *why) {
    return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor '%s' cannot be stored in a QSF file: %s",
                       qsf_source_path(c->s), t->name, why);
}

/* Adds the whole of t as an item. QSF_E_MODEL: QSF has no quantization code for it, or too large a shape. */
static int lister_add(Lister *c, uint32_t layer, uint32_t type, const QsfTensor *t) {
    QsfItem *i = &c->l->item[c->l->n];
    const uint64_t k = index_of(c, t), rows = qsf_tensor_n_rows(t);
    *i = (QsfItem){ .t = t, .layer = layer, .type = type, .role = type, .order = UINT32_MAX };
    if (t->ne[0] > UINT32_MAX || rows > UINT32_MAX)
        return no_place(c, t, "it has a dimension of 2^32 or more");
    if (!qsf_code_of_dtype(t->dtype, &i->keep)) return no_place(c, t, "its type has no quantization code");
    i->cols = (uint32_t)t->ne[0];
    i->rows = (uint32_t)rows;
    i->code = i->keep;
    i->bytes = t->bytes;
    if (c->uses != NULL && k < c->uses->n) {
        i->use = c->uses->tensor[k].use;
        i->order = c->uses->tensor[k].order;
        if (type == QSFT_NAMED) i->role = c->uses->tensor[k].role;
    }
    c->placed[k] = true;
    c->l->n++;
    return QSF_OK;
}

/* Would a tensor with this type have the same dimensions when it is read? */
static bool has_shape(const Lister *c, uint32_t type, const QsfTensor *t) {
    const QsfDtype *d = qsf_dtype(t->dtype);
    uint32_t experts = 0;
    char key[QSF_ITEM_NAME];
    const char *arch = NULL;
    if (t->ne[3] != 1) return false;
    if (qsf_tensor_type_is_vector(type))
        return t->n_dims == 1 && d->block_elems == 1 && d->supported &&
               (type != QSFT_GATE_BIAS || t->ne[0] == c->head->ffn);
    if (type == QSFT_HEAD && (t->ne[1] != c->head->n_vocab || t->ne[0] != c->head->hidden)) return false;
    if (!qsf_tensor_type_is_experts(type)) return t->n_dims == (t->ne[1] > 1 ? 2u : 1u);
    if (qsf_meta_str(c->s, "general.architecture", &arch, NULL, NULL) != QSF_OK || arch == NULL) return false;
    (void)snprintf(key, sizeof key, "%.100s.expert_count", arch);
    return qsf_meta_u32(c->s, key, 0, &experts, NULL) == QSF_OK && t->n_dims == 3 && t->ne[2] == experts;
}

/* Adds both biases of the FFN as one tensor, if they have the shapes for it. */
static int add_ffn_biases(Lister *c, uint32_t layer, const QsfTensor *up, const QsfTensor *down) {
    if (up == NULL || down == NULL || up->dtype != down->dtype || up->n_dims != 1 || down->n_dims != 1 ||
        up->ne[0] != c->head->ffn || down->ne[0] != c->head->hidden || !has_shape(c, QSFT_FFN_BIASES, up))
        return QSF_OK;
    int rc = lister_add(c, layer, QSFT_FFN_BIASES, up);
    if (rc != QSF_OK) return rc;
    QsfItem *i = &c->l->item[c->l->n - 1];
    i->more = down;
    i->cols += (uint32_t)down->ne[0];
    i->bytes += down->bytes;
    c->placed[index_of(c, down)] = true;
    return QSF_OK;
}

/* --- tensors that GGUF fuses and QSF does not, in architectures with a code: Q, K and V of GPT-2
 * and Phi, gate and up of Phi-3 --- */

static const struct {
    uint8_t type;
    const char *name; /* the fused tensor */
    uint8_t part;     /* index of this part */
} fused[] = {
    { QSFT_Q, "attn_qkv.weight", 0 },    { QSFT_K, "attn_qkv.weight", 1 },
    { QSFT_V, "attn_qkv.weight", 2 },    { QSFT_Q_BIAS, "attn_qkv.bias", 0 },
    { QSFT_K_BIAS, "attn_qkv.bias", 1 }, { QSFT_V_BIAS, "attn_qkv.bias", 2 },
    { QSFT_GATE, "ffn_up.weight", 0 },   { QSFT_UP, "ffn_up.weight", 1 },
};
enum { N_FUSED = sizeof fused / sizeof *fused };

/* Computes the rows (elements, of a bias) of the parts, in order, and returns their number. Without a
 * separate gate, up contains both. */
static size_t part_sizes(const QsfFileHeader *h, size_t k, uint64_t size[3]) {
    size[0] = (uint64_t)h->n_heads * h->head_dim;
    size[1] = size[2] = (uint64_t)(h->n_kv_heads > 0 ? h->n_kv_heads : h->n_heads) * h->head_dim;
    if (fused[k].type != QSFT_GATE && fused[k].type != QSFT_UP) return 3;
    size[0] = size[1] = h->ffn;
    return 2;
}

/* Checks that t has the shape of its parts together, which have `sum` rows (elements). */
static bool is_whole(const QsfTensor *t, bool bias, uint64_t sum) {
    if (bias)
        return t->ne[0] == sum && t->ne[1] == 1 && t->ne[2] == 1 && qsf_dtype(t->dtype)->block_elems == 1;
    return t->ne[1] == sum && t->ne[2] == 1 && t->ne[3] == 1;
}

/* Adds rows (elements) [first, first + size) of t. */
static int add_one(Lister *c, uint32_t layer, size_t k, const QsfTensor *t, uint64_t first, uint64_t size,
                   bool bias) {
    const uint32_t type = fused[k].type;
    if (size == 0) return QSF_OK;
    int rc = lister_add(c, layer, type, t);
    if (rc != QSF_OK) return rc;
    if (fused[k].part == 0) c->l->named.fused[c->l->named.n_fused++] = t->name;
    QsfItem *i = &c->l->item[c->l->n - 1];
    i->first = first;
    *(bias ? &i->cols : &i->rows) = (uint32_t)size;
    return qsf_item_become(i, i->keep, c->head->block, QSF_WHY_NONE, c->err);
}

/* Adds the part of a fused tensor that has this type; *done: there is one. Nothing in architectures without a
 * code, and nothing if the shape of the fused tensor is another one: then it is stored as it is. */
static int lister_add_part(Lister *c, uint32_t layer, uint32_t type, bool *done) {
    size_t k = 0;
    uint64_t size[3], first = 0, sum = 0;
    *done = false;
    while (k < N_FUSED && fused[k].type != type) k++;
    if (c->head->arch == QSFF_CUSTOM || k == N_FUSED) return QSF_OK;
    const QsfTensor *t = lister_in_layer(c, layer, fused[k].name);
    const bool bias = qsf_tensor_type_is_vector(type);
    const size_t n = part_sizes(c->head, k, size);
    if (t == NULL || (n == 2 && lister_in_layer(c, layer, "ffn_gate.weight") != NULL)) return QSF_OK;
    for (size_t i = 0; i < n; i++) {
        if (i < fused[k].part) first += size[i];
        sum += size[i];
    }
    if (!is_whole(t, bias, sum)) return QSF_OK;
    *done = true;
    return add_one(c, layer, k, t, first, size[fused[k].part], bias);
}

/* ---- tensors with a type */

static int list_layer(Lister *c, uint32_t layer) {
    int rc = QSF_OK;
    for (size_t k = 0; rc == QSF_OK && k < sizeof layer_order; k++) {
        const uint32_t type = layer_order[k];
        const QsfTensor *t = lister_in_layer(c, layer, qsf_tensor_type_name(type));
        bool done = false;
        if (t == NULL || type == QSFT_UP) rc = lister_add_part(c, layer, type, &done);
        if (rc != QSF_OK || done) continue;
        if (type == QSFT_FFN_BIASES)
            rc = add_ffn_biases(c, layer, t, lister_in_layer(c, layer, "ffn_down.bias"));
        else if (t != NULL && has_shape(c, type, t))
            rc = lister_add(c, layer, type, t);
    }
    return rc;
}

static int list_final(Lister *c) {
    int rc = QSF_OK;
    c->l->tied = true;
    for (size_t k = 0; rc == QSF_OK && k < sizeof final_order; k++) {
        const QsfTensor *t = qsf_source_find_tensor(c->s, qsf_tensor_type_name(final_order[k]));
        if (t == NULL || c->placed[index_of(c, t)] || !has_shape(c, final_order[k], t)) continue;
        rc = lister_add(c, QSF_FINAL_LAYER, final_order[k], t);
        if (final_order[k] == QSFT_HEAD) c->l->tied = false;
    }
    return rc;
}

/* The section has the norm and, with LayerNorm, its bias, as F16 or F32. Architectures with a code must have
 * them there, so BF16 becomes F32. */
static bool is_norm(const Lister *c, const QsfTensor *t) {
    if (t == NULL || t->n_dims != 1 || t->ne[0] != c->head->hidden) return false;
    if (t->dtype == QK_GGML_BF16) return c->head->arch != QSFF_CUSTOM;
    return t->dtype == QK_GGML_F32 || t->dtype == QK_GGML_F16;
}

/* The writer stores the final norms. */
static void place_norms(Lister *c) {
    const QsfTensor *norm = qsf_source_find_tensor(c->s, qsf_tensor_type_name(QSFT_FINAL_NORM));
    const QsfTensor *bias = qsf_source_find_tensor(c->s, qsf_tensor_type_name(QSFT_FINAL_NORM_BIAS));
    c->l->named.norms = 0;
    if (!is_norm(c, norm)) return;
    c->placed[index_of(c, norm)] = true;
    const bool both = is_norm(c, bias);
    c->l->named.norms = both || c->head->norm != QSFF_LAYER_NORM ? QSF_NORMS_ALL : 1;
    c->l->norm_bias = both;
    if (both) c->placed[index_of(c, bias)] = true;
}

static int list_embedding(Lister *c) {
    const QsfTensor *t = qsf_source_find_tensor(c->s, "token_embd.weight");
    c->l->named.embed_is_head = t == NULL;
    if (t == NULL) t = qsf_source_find_tensor(c->s, "output.weight");
    if (t != NULL) {
        int rc = lister_add(c, QSF_FINAL_LAYER, QSFT_EMBED, t);
        if (c->l->named.embed_is_head) c->l->item[0].role = QSFT_HEAD;
        return rc;
    }
    return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor 'token_embd.weight' is missing",
                       qsf_source_path(c->s));
}

/* ---- tensors without a type */

static int list_named(Lister *c) {
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < qsf_source_n_tensors(c->s); i++) {
        const QsfTensor *t = qsf_source_tensor(c->s, i);
        if (c->placed[i]) continue;
        const uint32_t section = qsf_named_section(t->name, c->l->n_layers);
        if (strlen(t->name) > QSFF_NAME_MAX) return no_place(c, t, "its name is too long");
        rc = lister_add(c, section < c->l->n_layers ? section : QSF_FINAL_LAYER, QSFT_NAMED, t);
    }
    return rc;
}

/* ---- order */

/* An item and its place among those with a type. */
typedef struct Sorted {
    QsfItem item;
    uint32_t seq;
    bool by_use;
} Sorted;

static int by_place(const void *a, const void *b) {
    const Sorted *x = a, *y = b;
    if (x->item.layer != y->item.layer) return x->item.layer < y->item.layer ? -1 : 1;
    if (x->by_use && y->by_use && x->item.order != y->item.order)
        return x->item.order < y->item.order ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Sorts by section. The tensors of a layer with named ones are in the order of their first use, if it is
 * known. The embedding stays the first item. */
static int sort_items(Lister *c) {
    QsfItems *l = c->l;
    bool *mixed = calloc((size_t)l->n_layers + 1, sizeof *mixed);
    Sorted *s = calloc((size_t)l->n + 1, sizeof *s);
    if (mixed == NULL || s == NULL) {
        free(mixed);
        free(s);
        return qsf_err_memory(c->err, "%s", qsf_source_path(c->s));
    }
    for (uint32_t k = 1; k < l->n; k++)
        if ((l->item[k].type == QSFT_NAMED || l->item[k].experts > 0) && l->item[k].layer < l->n_layers)
            mixed[l->item[k].layer] = true;
    for (uint32_t k = 1; k < l->n; k++)
        s[k] = (Sorted){ l->item[k], k, l->item[k].layer < l->n_layers && mixed[l->item[k].layer] };
    if (l->n > 2) qsort(s + 1, l->n - 1, sizeof *s, by_place);
    for (uint32_t k = 1; k < l->n; k++) l->item[k] = s[k].item;
    free(mixed);
    free(s);
    return QSF_OK;
}

static int index_named(Lister *c) {
    QsfNamed *n = &c->l->named;
    uint32_t names = 0;
    for (uint32_t k = 0, run; k < c->l->n; k += run) {
        const QsfItem *i = &c->l->item[k];
        run = qsf_items_run(c->l, k);
        for (uint32_t at = 0; i->experts > 0 && at < qsf_items_parts(c->l, k, run); at++) {
            QsfItem part;
            (void)qsf_items_part(c->l, k, at, &part, c->l->names[names]);
            n->tensor[n->n++] = (QsfNamedTensor){ .name = c->l->names[names++],
                                                  .n_dims = 2,
                                                  .ne = { part.cols, part.rows, 1, 1 } };
        }
        if (i->experts > 0 || i->type != QSFT_NAMED) continue;
        QsfNamedTensor *t = &n->tensor[n->n++];
        *t = (QsfNamedTensor){ .name = i->t->name, .n_dims = i->t->n_dims };
        memcpy(t->ne, i->t->ne, sizeof t->ne);
    }
    return qsf_named_index(n, qsf_source_path(c->s), c->err);
}

/* Does every layer have the types that the code of the architecture requires? */
static bool has_needed(const QsfItems *l, uint32_t arch) {
    const uint64_t need = qsf_arch_needs(arch);
    for (uint32_t layer = 0, k = 1; layer < l->n_layers; layer++) {
        uint64_t seen = 0;
        for (; k < l->n && l->item[k].layer == layer; k++) seen |= (uint64_t)1 << l->item[k].type;
        if ((need & ~seen) != 0) return false;
    }
    return true;
}

static int check_layers(const Lister *c) {
    for (uint32_t layer = 0, k = 1; layer < c->l->n_layers; layer++) {
        uint64_t n = 0;
        for (uint32_t run; k < c->l->n && c->l->item[k].layer == layer; k += run) {
            run = qsf_items_run(c->l, k);
            n += qsf_items_parts(c->l, k, run);
        }
        if (n > UINT16_MAX)
            return qsf_err_set(c->err, QSF_E_MODEL,
                               "%s: layer %" PRIu32 " has %" PRIu64
                               " tensors, expected at most %u in a layer of a QSF file",
                               qsf_source_path(c->s), layer, n, UINT16_MAX);
    }
    return QSF_OK;
}

/* ---- all */

/* A QSF file that is converted again may know what was fused. */
static void keep_fused(Lister *c) {
    const QsfNamed *old = c->s->named;
    QsfNamed *n = &c->l->named;
    if (old == NULL || n->n_fused > 0) return;
    while (n->n_fused < old->n_fused && n->n_fused < qsf_source_n_tensors(c->s)) {
        n->fused[n->n_fused] = old->fused[n->n_fused];
        n->n_fused++;
    }
}

static int list_all(Lister *c, bool together) {
    int rc = list_embedding(c);
    for (uint32_t i = 0; rc == QSF_OK && i < c->l->n_layers; i++) rc = list_layer(c, i);
    if (rc == QSF_OK) rc = list_final(c);
    if (rc == QSF_OK) place_norms(c);
    if (rc == QSF_OK) rc = list_named(c);
    if (rc == QSF_OK) keep_fused(c);
    if (rc == QSF_OK && together) rc = qsf_items_part_experts(c->l, qsf_source_path(c->s), c->err);
    if (rc == QSF_OK) rc = sort_items(c);
    if (rc == QSF_OK) rc = check_layers(c);
    if (rc == QSF_OK) rc = index_named(c);
    c->l->arch = rc == QSF_OK && has_needed(c->l, c->head->arch) ? c->head->arch : QSFF_CUSTOM;
    return rc;
}

int qsf_items_list(QsfItems *out, const QsfSource *s, const QsfFileHeader *head, const QsfUses *uses,
                   bool together, QsfErr *err) {
    QsfErr local = { 0 };
    Lister c = { .s = s, .l = out, .head = head, .uses = uses, .err = err != NULL ? err : &local };
    const size_t n = (size_t)qsf_source_n_tensors(s);
    *out = (QsfItems){ .n_layers = head->n_layers, .named = { .n_layers = head->n_layers } };
    out->item = calloc(n * 3 + 1, sizeof *out->item); /* up to 3 parts each */
    out->named.tensor = calloc(n + 1, sizeof *out->named.tensor);
    out->named.first = calloc((size_t)head->n_layers + 2, sizeof *out->named.first);
    out->named.fused = calloc(2 * n + 1, sizeof *out->named.fused);
    c.placed = calloc(n + 1, sizeof *c.placed);
    const bool ok = out->item != NULL && out->named.tensor != NULL && out->named.first != NULL &&
                    out->named.fused != NULL && c.placed != NULL;
    int rc = ok ? list_all(&c, together) : qsf_err_memory(c.err, "%s", qsf_source_path(s));
    free(c.placed);
    if (rc != QSF_OK) qsf_items_free(out);
    return rc;
}

void qsf_items_free(QsfItems *l) {
    free(l->item);
    free(l->named.tensor);
    free(l->named.first);
    free(l->named.fused);
    free(l->names);
    free(l->seldom);
    *l = (QsfItems){ 0 };
}
