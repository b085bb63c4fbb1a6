/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that GGUF fuses and QSF does not, in architectures with a code: Q, K and V of GPT-2
 * and Phi, gate and up of Phi-3. */
#include "src/convert/pack/items_impl.h"
#include "src/file/dtype.h"
#include "src/file/qsf/names.h"

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
static int add_one(QsfLister *c, uint32_t layer, size_t k, const QsfTensor *t, uint64_t first, uint64_t size,
                   bool bias) {
    const uint32_t type = fused[k].type;
    if (size == 0) return QSF_OK;
    int rc = qsf_lister_add(c, layer, type, t);
    if (rc != QSF_OK) return rc;
    if (fused[k].part == 0) c->l->named.fused[c->l->named.n_fused++] = t->name;
    QsfItem *i = &c->l->item[c->l->n - 1];
    i->first = first;
    *(bias ? &i->cols : &i->rows) = (uint32_t)size;
    return qsf_item_become(i, i->keep, c->head->block, QSF_WHY_NONE, c->err);
}

int qsf_lister_add_part(QsfLister *c, uint32_t layer, uint32_t type, bool *done) {
    size_t k = 0;
    uint64_t size[3], first = 0, sum = 0;
    *done = false;
    while (k < N_FUSED && fused[k].type != type) k++;
    if (c->head->arch == QSFF_CUSTOM || k == N_FUSED) return QSF_OK;
    const QsfTensor *t = qsf_lister_in_layer(c, layer, fused[k].name);
    const bool bias = qsf_tensor_type_is_vector(type);
    const size_t n = part_sizes(c->head, k, size);
    if (t == NULL || (n == 2 && qsf_lister_in_layer(c, layer, "ffn_gate.weight") != NULL)) return QSF_OK;
    for (size_t i = 0; i < n; i++) {
        if (i < fused[k].part) first += size[i];
        sum += size[i];
    }
    if (!is_whole(t, bias, sum)) return QSF_OK;
    *done = true;
    return add_one(c, layer, k, t, first, size[fused[k].part], bias);
}
