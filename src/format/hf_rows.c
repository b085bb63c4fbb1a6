/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows that GGUF stores in a different order, for the tables of architectures. */
#include "src/format/hf_model.h"

int qsf_hf_bad_rows(const QsfHfModel *m, uint64_t src_rows, uint64_t expected, const char *why) {
    return qsf_err_set(m->err, QSF_E_MODEL, "has %llu rows, but %s make %llu", (unsigned long long)src_rows,
                       why, (unsigned long long)expected);
}

/* Hugging Face rotates element i of a head with i + head_dim/2, GGUF's llama 2i with 2i + 1. */
static int pairs(const QsfHfModel *m, uint32_t heads, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    const uint64_t expected = (uint64_t)heads * m->head_dim;
    if (src_rows != expected)
        return qsf_err_set(m->err, QSF_E_MODEL, "has %llu rows, but %u heads of %u (config.json) make %llu",
                           (unsigned long long)src_rows, heads, m->head_dim, (unsigned long long)expected);
    map->head = m->head_dim;
    *n = src_rows;
    return QSF_OK;
}

int qsf_hf_rows_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return pairs(m, m->n_heads, src_rows, map, n);
}

int qsf_hf_rows_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return pairs(m, m->n_kv_heads, src_rows, map, n);
}
