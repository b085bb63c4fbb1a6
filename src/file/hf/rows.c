/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows that GGUF stores in a different order, for the tables of architectures. */
#include "src/file/hf/model.h"

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

/* --- queries, keys and values in one tensor --- */

/* Describes one of them: heads of it in a run, heads from one run to the next, and before the first. */
typedef struct Fused {
    uint64_t heads, run, stride, first;
    bool pairs;
} Fused;

static int fused(const QsfHfModel *m, const Fused *f, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    const uint64_t all = (uint64_t)m->n_heads + 2u * m->n_kv_heads;
    if (src_rows != all * m->head_dim)
        return qsf_err_set(
            m->err, QSF_E_MODEL,
            "has %llu rows, but queries, keys and values of %u and %u heads of %u (config.json) make "
            "%llu",
            (unsigned long long)src_rows, m->n_heads, m->n_kv_heads, m->head_dim,
            (unsigned long long)(all * m->head_dim));
    map->first = f->first * m->head_dim;
    map->run = f->run * m->head_dim;
    map->stride = f->stride * m->head_dim;
    map->head = f->pairs ? m->head_dim : 0;
    *n = f->heads * m->head_dim;
    return QSF_OK;
}

/* Part i of query, key, value of each head. */
static int of_head(const QsfHfModel *m, uint64_t i, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    const Fused f = { m->n_heads, 1, 3, i, false };
    if (m->n_kv_heads != m->n_heads)
        return qsf_hf_bad(m, "num_key_value_heads", "is not the number of heads");
    return fused(m, &f, src_rows, map, n);
}

int qsf_hf_rows_head_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_head(m, 0, src_rows, map, n);
}

int qsf_hf_rows_head_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_head(m, 1, src_rows, map, n);
}

int qsf_hf_rows_head_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_head(m, 2, src_rows, map, n);
}

/* The queries of a group (part 0), its key (1) or its value (2). */
static int of_group(const QsfHfModel *m, unsigned part, bool as_pairs, uint64_t src_rows, QsfRowMap *map,
                    uint64_t *n) {
    const uint64_t queries = m->n_heads / m->n_kv_heads;
    const Fused f = { part == 0 ? m->n_heads : m->n_kv_heads, part == 0 ? queries : 1, queries + 2,
                      part == 0 ? 0 : queries + part - 1, as_pairs };
    return fused(m, &f, src_rows, map, n);
}

int qsf_hf_rows_group_q(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_group(m, 0, false, src_rows, map, n);
}

int qsf_hf_rows_group_k(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_group(m, 1, false, src_rows, map, n);
}

int qsf_hf_rows_group_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_group(m, 2, false, src_rows, map, n);
}

int qsf_hf_rows_group_q_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_group(m, 0, true, src_rows, map, n);
}

int qsf_hf_rows_group_k_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return of_group(m, 1, true, src_rows, map, n);
}

static int in_order(const QsfHfModel *m, uint64_t first, uint64_t heads, bool as_pairs, uint64_t src_rows,
                    QsfRowMap *map, uint64_t *n) {
    const Fused f = { heads, heads, heads, first, as_pairs };
    return fused(m, &f, src_rows, map, n);
}

int qsf_hf_rows_fused_q_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return in_order(m, 0, m->n_heads, true, src_rows, map, n);
}

int qsf_hf_rows_fused_k_pairs(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return in_order(m, m->n_heads, m->n_kv_heads, true, src_rows, map, n);
}

int qsf_hf_rows_fused_v(const QsfHfModel *m, uint64_t src_rows, QsfRowMap *map, uint64_t *n) {
    return in_order(m, m->n_heads + m->n_kv_heads, m->n_kv_heads, false, src_rows, map, n);
}
