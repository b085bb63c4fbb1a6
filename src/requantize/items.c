/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors are in order of use, so that a streaming reader reads sequentially. */
#include "src/requantize/items.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/format/dtype.h"
#include "src/format/qsf_groups.h"
#include "src/format/qsf_names.h"

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

static const char *const why_text[QSF_WHY_N] = {
    [QSF_WHY_NONE] = "",
    [QSF_WHY_VECTOR] = "never quantized",
    [QSF_WHY_ROLE] = "role",
    [QSF_WHY_SMALLER] = "already as small",
    [QSF_WHY_COLUMNS] = "row is not a multiple of a block",
    [QSF_WHY_OUTLIERS] = "more than 1 % outliers",
    [QSF_WHY_COSINE] = "cosine below 0.99",
    [QSF_WHY_SIZE] = "target size",
};

const char *qsf_keep_reason_text(QsfKeepReason why) { return (unsigned)why < QSF_WHY_N ? why_text[why] : ""; }

/* ---- one item */

const char *qsf_item_name(const QsfItem *i, char buf[QSF_ITEM_NAME]) {
    if (i->type == QSFT_EMBED)
        snprintf(buf, QSF_ITEM_NAME, "token_embd.weight");
    else if (i->layer == QSF_FINAL_LAYER)
        snprintf(buf, QSF_ITEM_NAME, "%s", qsf_tensor_type_name(i->type));
    else
        snprintf(buf, QSF_ITEM_NAME, "blk.%" PRIu32 ".%s", i->layer, qsf_tensor_type_name(i->type));
    return buf;
}

bool qsf_item_is_matrix(const QsfItem *i) {
    return i->type == QSFT_EMBED ||
           (!qsf_tensor_type_is_vector(i->type) && i->type != QSFT_ROUTER && i->type != QSFT_POSITIONS);
}

/* Experts stay rows: the engine reads them one at a time and multiplies rows. Padding fewer rows than a group is not
 * worth it. */
static bool can_be_groups(const QsfItem *i, uint32_t dtype) {
    return qsf_tensor_type_is_matrix(i->type) && !qsf_tensor_type_is_experts(i->type) &&
           qsf_group_planes(dtype) > 0 && i->rows >= QSFF_GROUP_ROWS &&
           i->cols % qsf_dtype(dtype)->block_elems == 0;
}

int qsf_item_become(QsfItem *i, uint8_t code, uint32_t block, QsfKeepReason why, QsfErr *err) {
    uint32_t dtype;
    const bool known = qsf_code_dtype(code, block, &dtype);
    i->groups = known && i->x16 && can_be_groups(i, dtype);
    if (!known || !qsf_code_bytes(dtype, i->groups ? qsf_group_rows(i->rows) : i->rows, i->cols, &i->bytes))
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: tensor '%s' cannot have quantization code %u",
                           i->t->name, code);
    i->code = code;
    i->why = why;
    return QSF_OK;
}

int qsf_items_lay_out(QsfItems *l, bool x16, uint32_t block, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t k = 0; rc == QSF_OK && k < l->n; k++) {
        l->item[k].x16 = x16;
        rc = qsf_item_become(&l->item[k], l->item[k].code, block, l->item[k].why, err);
    }
    return rc;
}

/* ---- the list */

typedef struct Lister {
    const QsfSource *s;
    QsfItems *l;
    const QsfFileHeader *head;
    uint64_t found; /* tensors of s */
    QsfErr *err;
} Lister;

static int no_place(const Lister *c, const QsfTensor *t) {
    return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor '%s' cannot be stored in a QSF file",
                       qsf_source_path(c->s), t->name);
}

static int missing(const Lister *c, const char *name) {
    return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor '%s' is missing", qsf_source_path(c->s), name);
}

static const QsfTensor *in_layer(const Lister *c, uint32_t layer, const char *rest) {
    char name[QSF_ITEM_NAME];
    snprintf(name, sizeof name, "blk.%" PRIu32 ".%.64s", layer, rest);
    return qsf_source_find_tensor(c->s, name);
}

/* Returns rows and columns as in a QSF file. */
static bool shape_of(const QsfTensor *t, QsfItem *i) {
    uint64_t n = t->ne[1] * t->ne[2]; /* cannot overflow: the tensor was checked */
    if (t->ne[0] > UINT32_MAX || n > UINT32_MAX || t->ne[3] != 1) return false;
    i->cols = (uint32_t)t->ne[0];
    i->rows = (uint32_t)n;
    return qsf_code_of_dtype(t->dtype, &i->keep);
}

static int add(Lister *c, uint32_t layer, uint32_t type, const QsfTensor *t) {
    QsfItem *i = &c->l->item[c->l->n];
    *i = (QsfItem){ .t = t, .layer = layer, .type = type };
    if (!shape_of(t, i)) return no_place(c, t);
    c->l->n++;
    c->found++;
    i->code = i->keep;
    i->bytes = t->bytes;
    return QSF_OK;
}

/* Adds both biases of the FFN as one tensor. */
static int add_ffn_biases(Lister *c, uint32_t layer, const QsfTensor *up, const QsfTensor *down) {
    const QsfTensor *one = up != NULL ? up : down;
    if (one == NULL) return QSF_OK;
    if (up == NULL || down == NULL || up->dtype != down->dtype || up->ne[1] != 1 || down->ne[1] != 1 ||
        up->ne[0] != c->head->ffn || down->ne[0] != c->head->hidden)
        return no_place(c, one);
    int rc = add(c, layer, QSFT_FFN_BIASES, up);
    if (rc != QSF_OK) return rc;
    QsfItem *i = &c->l->item[c->l->n - 1];
    i->more = down;
    i->cols += (uint32_t)down->ne[0];
    i->bytes += down->bytes;
    c->found++;
    return QSF_OK;
}

/* ---- tensors that GGUF fuses and QSF does not: Q, K and V of GPT-2 and Phi, gate and up of Phi-3 */

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
static size_t part_sizes(const Lister *c, size_t k, uint64_t size[3]) {
    const QsfFileHeader *h = c->head;
    size[0] = (uint64_t)h->n_heads * h->head_dim;
    size[1] = size[2] = (uint64_t)(h->n_kv_heads > 0 ? h->n_kv_heads : h->n_heads) * h->head_dim;
    if (fused[k].type != QSFT_GATE && fused[k].type != QSFT_UP) return 3;
    size[0] = size[1] = h->ffn;
    return 2;
}

/* Adds a part of a fused tensor; *done: this type is a part. The tensor is counted with its first part. */
static int add_part(Lister *c, uint32_t layer, uint32_t type, bool *done) {
    size_t k = 0;
    uint64_t size[3], first = 0, sum = 0;
    *done = false;
    while (k < N_FUSED && fused[k].type != type) k++;
    const QsfTensor *t = k < N_FUSED ? in_layer(c, layer, fused[k].name) : NULL;
    if (t == NULL) return QSF_OK;
    const bool bias = qsf_tensor_type_is_vector(type);
    const size_t n = part_sizes(c, k, size);
    if (n == 2 && in_layer(c, layer, "ffn_gate.weight") != NULL)
        return QSF_OK; /* up alone, whatever its rows */
    for (size_t i = 0; i < n; i++) {
        if (i < fused[k].part) first += size[i];
        sum += size[i];
    }
    if (n == 2 && t->ne[1] != sum) return QSF_OK; /* up alone */
    if ((bias ? t->ne[0] : t->ne[1]) != sum || (bias && t->ne[1] != 1) || t->ne[2] != 1 ||
        (bias && qsf_dtype(t->dtype)->block_elems != 1))
        return no_place(c, t);
    int rc = add(c, layer, type, t);
    if (rc != QSF_OK) return rc;
    if (fused[k].part > 0) c->found--;
    QsfItem *i = &c->l->item[c->l->n - 1];
    i->first = first;
    *(bias ? &i->cols : &i->rows) = (uint32_t)size[fused[k].part];
    *done = true;
    return qsf_item_become(i, i->keep, c->head->block, QSF_WHY_NONE, c->err);
}

static int list_layer(Lister *c, uint32_t layer) {
    int rc = QSF_OK;
    for (size_t k = 0; rc == QSF_OK && k < sizeof layer_order; k++) {
        const QsfTensor *t = in_layer(c, layer, qsf_tensor_type_name(layer_order[k]));
        bool done = false;
        if (t == NULL || layer_order[k] == QSFT_UP) rc = add_part(c, layer, layer_order[k], &done);
        if (rc != QSF_OK || done) continue;
        if (layer_order[k] == QSFT_FFN_BIASES)
            rc = add_ffn_biases(c, layer, t, in_layer(c, layer, "ffn_down.bias"));
        else if (t != NULL)
            rc = add(c, layer, layer_order[k], t);
    }
    return rc;
}

static int list_final(Lister *c) {
    int rc = QSF_OK;
    c->l->tied = qsf_source_find_tensor(c->s, "output.weight") == NULL;
    for (size_t k = 0; rc == QSF_OK && k < sizeof final_order; k++) {
        const QsfTensor *t = qsf_source_find_tensor(c->s, qsf_tensor_type_name(final_order[k]));
        if (t != NULL) rc = add(c, QSF_FINAL_LAYER, final_order[k], t);
    }
    return rc;
}

/* Names a tensor that was not placed. The final norms are handled by the writer. */
static int check_all(const Lister *c) {
    uint32_t type, layer;
    const QsfTensor *norm = qsf_source_find_tensor(c->s, "output_norm.weight");
    if (norm == NULL) return missing(c, "output_norm.weight");
    uint64_t norms = qsf_source_find_tensor(c->s, "output_norm.bias") != NULL ? 2 : 1;
    if (c->found + norms == qsf_source_n_tensors(c->s)) return QSF_OK;
    for (uint64_t i = 0; i < qsf_source_n_tensors(c->s); i++) {
        const QsfTensor *t = qsf_source_tensor(c->s, i);
        if (!qsf_tensor_type_of(t->name, &type, &layer) || layer >= c->l->n_layers) return no_place(c, t);
    }
    return qsf_err_set(c->err, QSF_E_RUNTIME, "internal: %s: %" PRIu64 " tensors were placed",
                       qsf_source_path(c->s), c->found);
}

static int list_all(Lister *c) {
    const QsfTensor *t = qsf_source_find_tensor(c->s, "token_embd.weight");
    int rc = t != NULL ? add(c, QSF_FINAL_LAYER, QSFT_EMBED, t) : missing(c, "token_embd.weight");
    for (uint32_t i = 0; rc == QSF_OK && i < c->l->n_layers; i++) rc = list_layer(c, i);
    if (rc == QSF_OK) rc = list_final(c);
    return rc == QSF_OK ? check_all(c) : rc;
}

int qsf_items_list(QsfItems *out, const QsfSource *s, const QsfFileHeader *head, QsfErr *err) {
    QsfErr local = { 0 };
    Lister c = { .s = s, .l = out, .head = head, .err = err != NULL ? err : &local };
    *out = (QsfItems){ .n_layers = head->n_layers };
    out->item = calloc((size_t)qsf_source_n_tensors(s) * 3 + 1, sizeof *out->item); /* up to 3 parts each */
    if (out->item == NULL) return qsf_err_memory(c.err, "%s", qsf_source_path(s));
    int rc = list_all(&c);
    if (rc != QSF_OK) qsf_items_free(out);
    return rc;
}

void qsf_items_free(QsfItems *l) {
    free(l->item);
    *l = (QsfItems){ 0 };
}
