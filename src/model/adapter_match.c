/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matches the pairs of adapters with the matrices that a program multiplies. Rows and columns of a pair are
 * those of the tensor as GGUF has it, as are those of units, however they are held in memory. Some files
 * store the same matrices in other tensors: experts one by one (files of early 2024, QSF files), gate and
 * up of experts in one, the head as the embedding table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/adapter_impl.h"

#define NAME_BYTES 160
#define MOST_WAYS  4

/* A name under which an adapter may have a matrix, and where it is in that tensor. */
typedef struct Way {
    char name[NAME_BYTES];
    uint32_t part, row0, rows, n; /* matrix `part` of n, of as many rows; the use begins at row0 */
} Way;

/* ---- names ---- */

/* Splits "blk.3.ffn_up.7.weight" into its parts; false for other names. */
static bool is_own_matrix(const char *name, unsigned *block, char what[8], unsigned *expert) {
    int end = 0;
    if (sscanf(name, "blk.%u.ffn_%7[a-z].%u.weight%n", block, what, expert, &end) != 3) return false;
    return end > 0 && name[end] == '\0';
}

static void add_way(Way *way, unsigned *n, uint32_t part, uint32_t row0, uint32_t rows, uint32_t of) {
    way[*n].part = part;
    way[*n].row0 = row0;
    way[*n].rows = rows;
    way[(*n)++].n = of;
}

/* Ways of the matrices of experts besides that of the tensor. rows: of the matrix of one expert. */
static void expert_ways(const QsfUnitSpec *u, unsigned t, uint32_t rows, Way *way, unsigned *n) {
    const char *name = u->tensor[t]->name, *which = u->n > 1 && t == 0 ? "gate" : "up";
    static const char fused[] = "ffn_gate_up_exps.weight";
    unsigned block, expert;
    char what[8];
    if (sscanf(name, "blk.%u.", &block) != 1) return;
    if (is_own_matrix(name, &block, what, &expert)) {
        (void)snprintf(way[*n].name, NAME_BYTES, "blk.%u.ffn_%s_exps.weight", block, what);
        add_way(way, n, u->expert, 0, rows, u->n_expert);
    }
    if (strstr(name, "_exps.weight") != NULL) { /* of PEFT */
        (void)snprintf(way[*n].name, NAME_BYTES, "blk.%u.ffn_%s.%u.weight", block,
                       u->matmul_class == QSF_MATMUL_FFN_OUT ? "down" : which, u->expert);
        add_way(way, n, 0, 0, rows, 1);
    }
    const bool is_fused = strstr(name, fused) != NULL;
    if (is_fused) {
        (void)snprintf(way[*n].name, NAME_BYTES, "blk.%u.ffn_%s_exps.weight", block, which);
        add_way(way, n, u->expert, 0, rows, u->n_expert);
    } else if (u->n > 1) {
        (void)snprintf(way[*n].name, NAME_BYTES, "blk.%u.%s", block, fused);
        add_way(way, n, u->expert, t * rows, 2 * rows, u->n_expert);
    }
}

/* Fills the ways in which an adapter may have matrix t of a unit; returns their number. */
static unsigned ways_of(const QsfModel *m, const QsfUnitSpec *u, unsigned t, Way way[MOST_WAYS]) {
    const QsfTensor *of = u->tensor[t];
    const uint32_t all = (uint32_t)of->ne[1], rows = u->rows[t] > 0 ? u->rows[t] : all;
    unsigned n = 0;
    (void)snprintf(way[0].name, NAME_BYTES, "%s", of == m->prog.embed ? "output.weight" : of->name);
    add_way(way, &n, (uint32_t)(u->row0[t] / all), (uint32_t)(u->row0[t] % all), all, (uint32_t)of->ne[2]);
    if (u->on_demand) expert_ways(u, t, rows, way, &n);
    return n;
}

static QsfAdapterPair *find(const QsfAdapter *a, const char *name) {
    size_t lo = 0, hi = a->n_pairs;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int c = strcmp(name, a->pair[mid].name);
        if (c == 0) return &a->pair[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

/* ---- shapes ---- */

static int bad_size(const QsfAdapter *a, const QsfTensor *t, const char *what, uint64_t is, uint64_t want,
                    QsfErr *err) {
    return qsf_adapter_fail(a->path, err,
                            "tensor '%s' has %" PRIu64 " %s, but the matrix of the model has %" PRIu64
                            ": it is an adapter for another model",
                            t->name, is, what, want);
}

static int take_sizes(const QsfAdapter *a, QsfAdapterPair *p, uint64_t cols, uint64_t rows, uint64_t n,
                      QsfErr *err) {
    if (p->a->ne[0] != cols) return bad_size(a, p->a, "columns", p->a->ne[0], cols, err);
    if (p->b->ne[1] != rows) return bad_size(a, p->b, "rows", p->b->ne[1], rows, err);
    if (p->a->ne[2] != n) return bad_size(a, p->a, "matrices", p->a->ne[2], n, err);
    p->cols = (uint32_t)cols;
    p->rows = (uint32_t)rows;
    p->n = (uint32_t)n;
    return QSF_OK;
}

/* ---- uses ---- */

static int add_use(QsfAdapterSet *s, const QsfModel *m, const QsfAdapterUse *use, const Way *way,
                   QsfAdapterPair *p, QsfErr *err) {
    const QsfAdapter *a = &s->adapter[use->adapter];
    const QsfUnitSpec *u = &m->prog.unit[use->unit];
    if (u->heads > 0)
        return qsf_adapter_fail(a->path, err,
                                "tensor '%s.lora_a': adapters of matrices for each head are not supported",
                                p->name);
    int rc = take_sizes(a, p, u->tensor[use->tensor]->ne[0], way->rows, way->n, err);
    if (rc != QSF_OK) return rc;
    if (!p->used) p->block = u->block;
    p->used = true;
    if (s->use != NULL) s->use[s->n_uses] = *use;
    s->n_uses++;
    return QSF_OK;
}

/* The uses of one unit; they are only counted while s->use is NULL. */
static int match_unit(QsfAdapterSet *s, const QsfModel *m, uint32_t unit, QsfErr *err) {
    const QsfUnitSpec *u = &m->prog.unit[unit];
    Way way[MOST_WAYS];
    uint32_t floats = 0;
    for (unsigned t = 0; t < u->n; t++) {
        const unsigned n_ways = ways_of(m, u, t, way);
        for (uint32_t k = 0; k < s->n; k++) {
            for (unsigned w = 0; w < n_ways; w++) {
                QsfAdapterPair *p = find(&s->adapter[k], way[w].name);
                if (p == NULL || p->left_out) continue;
                const QsfAdapterUse use = { .unit = unit,
                                            .pair = (uint32_t)(p - s->adapter[k].pair),
                                            .part = way[w].part,
                                            .row0 = way[w].row0,
                                            .adapter = (uint8_t)k,
                                            .tensor = (uint8_t)t };
                int rc = add_use(s, m, &use, &way[w], p, err);
                if (rc != QSF_OK) return rc;
                floats += (uint32_t)qsf_adapter_padded(p->rank);
                break;
            }
        }
    }
    if (floats > s->rank_floats) s->rank_floats = floats;
    return QSF_OK;
}

static int match_units(QsfAdapterSet *s, const QsfModel *m, QsfErr *err) {
    int rc = QSF_OK;
    s->n_uses = 0;
    for (uint32_t i = 0; rc == QSF_OK && i < m->prog.n_units; i++) {
        if (s->use != NULL) s->first[i] = s->n_uses;
        rc = match_unit(s, m, i, err);
    }
    if (rc == QSF_OK && s->use != NULL) s->first[m->prog.n_units] = s->n_uses;
    return rc;
}

/* The embedding table: rows of a are those of tokens. */
static int match_table(QsfAdapterSet *s, const QsfModel *m, QsfAdapter *a, QsfErr *err) {
    QsfAdapterPair *p = find(a, m->prog.embed->name);
    if (p == NULL) return QSF_OK;
    if (p->a->ne[1] != m->prog.embed->ne[1])
        return bad_size(a, p->a, "rows", p->a->ne[1], m->prog.embed->ne[1], err);
    if (p->b->ne[1] != m->prog.embed->ne[0])
        return bad_size(a, p->b, "rows", p->b->ne[1], m->prog.embed->ne[0], err);
    if (p->a->ne[2] != 1) return bad_size(a, p->a, "matrices", p->a->ne[2], 1, err);
    p->cols = (uint32_t)p->b->ne[1];
    p->rows = (uint32_t)p->a->ne[1];
    p->n = 1;
    p->used = true;
    p->block = m->prog.n_blocks;
    s->has_table = true;
    const uint32_t floats = (uint32_t)qsf_adapter_padded(p->rank);
    if (floats > s->rank_floats) s->rank_floats = floats;
    return QSF_OK;
}

/* Is a tensor read by a step that is not a product of a unit? */
static bool is_parameter(const QsfModel *m, const QsfTensor *t) {
    const QsfProgram *p = &m->prog;
    bool is = t == p->embed || t == p->position_table || t == p->token_table;
    for (uint32_t i = 0; !is && i < p->n_params; i++) is = p->param[i].tensor == t;
    return is;
}

/* A tensor of the model that no step uses has no effect, and neither has a change of it. */
static int refuse_unused(const QsfAdapterSet *s, const QsfModel *m, QsfErr *err) {
    for (uint32_t k = 0; k < s->n; k++) {
        for (uint32_t i = 0; i < s->adapter[k].n_pairs; i++) {
            const QsfAdapterPair *p = &s->adapter[k].pair[i];
            const QsfTensor *t = m->src != NULL ? qsf_source_find_tensor(m->src, p->name) : NULL;
            if (p->used || p->left_out || (t != NULL && !is_parameter(m, t))) continue;
            return qsf_adapter_fail(
                s->adapter[k].path, err,
                t != NULL ? "tensor '%s.lora_a' is for a tensor that adapters cannot change"
                          : "tensor '%s.lora_a' is for a tensor that the model does not have: it "
                            "is an adapter for another model",
                p->name);
        }
    }
    return QSF_OK;
}

/* ---- sizes ---- */

static uint64_t padded(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

/* Do all pairs of each unit belong to one block? */
static bool is_by_block(const QsfAdapterSet *s, const QsfModel *m) {
    for (uint32_t i = 0; i < m->prog.n_units; i++) {
        for (uint32_t k = s->first[i]; k + 1 < s->first[i + 1]; k++) {
            const QsfAdapterUse *a = &s->use[k], *b = &s->use[k + 1];
            if (s->adapter[a->adapter].pair[a->pair].block != s->adapter[b->adapter].pair[b->pair].block)
                return false;
        }
    }
    return true;
}

static void measure_pair(QsfAdapterSet *s, QsfAdapterPair *p, uint64_t *of_block) {
    const uint64_t elem = s->exact ? 4 : 2, ranks = qsf_adapter_padded(p->rank);
    const uint64_t rows = p->table ? qsf_adapter_padded(p->cols) : p->n * qsf_adapter_padded(p->rows);
    p->index = s->n_pairs++;
    p->at = s->bytes;
    p->in_block = *of_block;
    p->a_bytes = padded((p->table ? (uint64_t)p->rows * p->rank : p->n * ranks * p->cols) * elem);
    p->b_bytes = padded(rows * p->rank * elem);
    s->bytes += p->a_bytes + p->b_bytes;
    *of_block += p->a_bytes + p->b_bytes;
    if (*of_block > s->block_bytes) s->block_bytes = *of_block;
}

static int measure(QsfAdapterSet *s, const QsfModel *m, QsfErr *err) {
    uint64_t *of_block = qsf_arena_alloc(&s->arena, (m->prog.n_blocks + 1u) * sizeof *of_block, 0, err);
    if (of_block == NULL) return err->code;
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t i = 0; i < s->adapter[k].n_pairs; i++)
            if (s->adapter[k].pair[i].used)
                measure_pair(s, &s->adapter[k].pair[i], &of_block[s->adapter[k].pair[i].block]);
    const uint64_t control = s->n_controls > 0 ? 4ull * m->prog.n_blocks * m->hp.hidden : 0;
    const uint64_t rest = padded(control) + padded(QSF_ADAPTER_FACTORS * sizeof(float) * s->n_pairs);
    s->pages = (s->bytes + rest + 4095) & ~4095ull;
    s->stream_pages = (s->block_bytes + rest + 4095) & ~4095ull;
    return QSF_OK;
}

int qsf_adapters_match(QsfAdapterSet *s, const QsfModel *m, QsfErr *err) {
    int rc = match_units(s, m, err);
    for (uint32_t k = 0; rc == QSF_OK && k < s->n; k++) rc = match_table(s, m, &s->adapter[k], err);
    if (rc == QSF_OK) rc = refuse_unused(s, m, err);
    if (rc != QSF_OK) return rc;
    s->first = qsf_arena_alloc(&s->arena, (m->prog.n_units + 1u) * sizeof *s->first, 0, err);
    s->use = s->first != NULL ? qsf_arena_alloc(&s->arena, (s->n_uses + 1u) * sizeof *s->use, 0, err) : NULL;
    if (s->use == NULL) return err->code;
    rc = measure(s, m, err);
    if (rc == QSF_OK) rc = match_units(s, m, err);
    if (rc == QSF_OK && !is_by_block(s, m)) s->stream_pages = 0;
    return rc;
}
