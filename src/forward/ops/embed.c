/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of tables that are chosen by tokens and positions. */
#include "src/base/clock.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/file/source.h"
#include "src/forward/ops/ops.h"

/* ---- embeddings ---- */

/* From token ids to embedding rows: from a resident table, the pinned head of a tied model, the cache of
 * recently used rows, or one read per row. A resident table is filled from its start, one piece after each
 * evaluation, so that the model is ready before it is complete. */

#define FILL_PIECE (1u << 20)

static const QsfTensor *table_of(const QsfForward *f) { return f->model->prog.embed; }

/* Does the plan need a separate resident table? A pinned tied head serves as the table. */
static bool wants_table(const QsfForward *f, const QsfPlan *p) {
    return p != NULL && p->embed_resident && !f->model->prog.tied_head;
}

static uint32_t wanted_rows(const QsfPlan *p) { return p == NULL || p->embed_resident ? 0 : p->embed_rows; }

void qsf_embed_close(QsfForward *f, const QsfPlan *p) {
    if (!wants_table(f, p)) {
        qsf_mem_unmap(f->ledger, QSF_MEM_EMBED, f->embed, f->embed_bytes);
        f->embed = NULL;
        f->embed_filled = 0;
    }
    if (wanted_rows(p) != f->rows.rows) qsf_rowcache_free(&f->rows);
}

int qsf_embed_open(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    int rc = QSF_OK;
    if (wants_table(f, p) && f->embed == NULL) {
        void *mem;
        f->embed_bytes = qsf_pages(f->shape.embed_bytes);
        rc = qsf_mem_map(f->ledger, QSF_MEM_EMBED, f->embed_bytes, "embedding table", &mem, err);
        f->embed = mem;
    }
    if (rc == QSF_OK && wanted_rows(p) != f->rows.rows)
        rc = qsf_rowcache_init(&f->rows, wanted_rows(p), f->shape.embed_row_bytes, f->ledger, err);
    return rc;
}

/* --- the file --- */

int qsf_embed_check_file(QsfForward *f, QsfErr *err) {
    int rc = qsf_source_check_unchanged(f->model->src, err);
    if (rc != QSF_OK) atomic_store(&f->stale, true);
    return rc;
}

/* Reads rows [row, row + n) to dst. */
static int read_rows(QsfForward *f, uint32_t row, uint32_t n, void *dst, QsfErr *err) {
    const QsfTensor *t = table_of(f);
    uint64_t bytes = f->shape.embed_row_bytes;
    return qsf_source_read_bytes(f->model->src, t, row * bytes, dst, (size_t)(n * bytes), err);
}

int qsf_embed_fill(QsfForward *f, uint64_t max_bytes, QsfErr *err) {
    uint64_t bytes = f->shape.embed_row_bytes, piece = FILL_PIECE / bytes > 0 ? FILL_PIECE / bytes : 1;
    uint32_t n_rows = f->model->hp.n_vocab;
    if (f->embed == NULL || f->embed_filled == n_rows) return QSF_OK;
    int rc = qsf_embed_check_file(f, err);
    for (uint64_t done = 0; rc == QSF_OK && f->embed_filled < n_rows && done < max_bytes;) {
        uint32_t left = n_rows - f->embed_filled, n = left < piece ? left : (uint32_t)piece;
        if (qsf_cancelled(f)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        rc = read_rows(f, f->embed_filled, n, f->embed + f->embed_filled * bytes, err);
        if (rc != QSF_OK) return rc;
        f->embed_filled += n;
        done += n * bytes;
        qsf_count(&f->n.io.pin_read, n * bytes);
    }
    return rc;
}

/* --- rows --- */

/* Is the row in RAM, or only in the file? */
static bool is_resident(const QsfForward *f, uint32_t id) {
    if (id < f->embed_filled) return true;
    return f->model->prog.tied_head &&
           qsf_weights_has_row(f->weights, qsf_weights_n_units(f->weights) - 1, 0, id);
}

/* Returns the row in its table, or deinterleaved in f->row; NULL when it is only in the file. */
static const void *resident_row(const QsfForward *f, uint32_t id) {
    if (id < f->embed_filled) return f->embed + id * f->shape.embed_row_bytes;
    if (!f->model->prog.tied_head) return NULL;
    return qsf_weights_pinned_row(f->weights, qsf_weights_n_units(f->weights) - 1, 0, id, f->row);
}

static int fetch_row(QsfForward *f, uint32_t id, QsfErr *err) {
    uint64_t t0 = qsf_now_ns();
    int rc = read_rows(f, id, 1, f->row, err);
    if (rc != QSF_OK) return rc;
    qsf_count(&f->n.io.bytes_read, f->shape.embed_row_bytes);
    qsf_count(&f->n.io.read_ns, qsf_now_ns() - t0);
    qsf_count(&f->n.embed_misses, 1);
    qsf_rowcache_put(&f->rows, id, f->row);
    return QSF_OK;
}

/* Announces the rows of a prompt that must be read: together they cost one wait for the disk, not one each
 * (100 rows of a cold file: 1.4 ms instead of 6.2). */
static void announce_rows(const QsfForward *f, const int32_t *ids, uint32_t n) {
    const QsfTensor *t = table_of(f);
    uint64_t bytes = f->shape.embed_row_bytes;
    for (uint32_t c = 0; n > 1 && c < n; c++) {
        uint32_t id = (uint32_t)ids[c];
        if (!is_resident(f, id) && !qsf_rowcache_has(&f->rows, id))
            qsf_source_will_need(f->model->src, t, id * bytes, bytes);
    }
}

static int packed_row(QsfForward *f, uint32_t id, const void **row, bool *checked, QsfErr *err) {
    *row = resident_row(f, id);
    if (*row != NULL) return QSF_OK;
    *row = qsf_rowcache_find(&f->rows, id);
    if (*row != NULL) {
        qsf_count(&f->n.embed_hits, 1);
        return QSF_OK;
    }
    *row = f->row;
    int rc = *checked ? QSF_OK : qsf_embed_check_file(f, err);
    *checked = true;
    return rc == QSF_OK ? fetch_row(f, id, err) : rc;
}

/* Returns whose rows are read: another forward pass with the same table has those of recent tokens. */
static QsfForward *owner_of_rows(QsfForward *f) {
    return f->lender != NULL && table_of(f) == table_of(f->lender) ? f->lender : f;
}

int qsf_embed_rows(QsfForward *f, const int32_t *ids, uint32_t n, QsfErr *err) {
    QsfForward *from = owner_of_rows(f);
    const QsfHparams *hp = &f->model->hp;
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(table_of(f)->dtype)];
    bool checked = false;
    if (f->adapters.set != NULL && f->adapters.set->has_table) {
        int held = qsf_adapters_hold(f, f->model->prog.n_blocks, err);
        if (held != QSF_OK) return held;
    }
    announce_rows(from, ids, n);
    for (uint32_t c = 0; c < n; c++) {
        const void *row;
        float *x = qsf_col(f, (QsfSlice){ QSF_BUF_X, 0, hp->hidden }, c);
        int rc = packed_row(from, (uint32_t)ids[c], &row, &checked, err);
        if (rc != QSF_OK) return rc;
        ops->dequant(row, x, hp->hidden);
        if (ops->scaled) f->table->scale(x, table_of(f)->scale, hp->hidden);
        if (f->adapters.set != NULL && f->adapters.set->has_table)
            qsf_adapters_embed(f, (uint32_t)ids[c], f->past + c, x);
    }
    return QSF_OK;
}

/* ---- other tables ---- */

/* Rows of tables of which a pass needs one per position: a second table of tokens, as wide as all blocks
 * together, and learned positions. They are read from the file through the page cache and not kept. */

#define PIECE 256u /* floats, a multiple of every block length */
#define AHEAD 16u  /* positions after those of the pass */

static uint64_t row_bytes(const QsfTensor *t) { return t->bytes / t->ne[1]; }

/* Announces the rows of a prompt: together they cost one wait for the disk, not one each. */
static void announce(const QsfForward *f, const QsfTensor *t, uint64_t bytes) {
    for (uint32_t c = 0; f->n_cols > 1 && c < f->n_cols; c++)
        qsf_source_will_need(f->model->src, t, (uint64_t)f->ids[f->col0 + c] * bytes, bytes);
}

/* Reads a row of a table to f->row. */
static int read_row(QsfForward *f, const QsfTensor *t, uint64_t row, QsfErr *err) {
    const uint64_t bytes = row_bytes(t), t0 = qsf_now_ns();
    int rc = qsf_source_read_bytes(f->model->src, t, row * bytes, f->row, (size_t)bytes, err);
    if (rc != QSF_OK) return rc;
    qsf_count(&f->n.io.bytes_read, bytes);
    qsf_count(&f->n.io.read_ns, qsf_now_ns() - t0);
    return QSF_OK;
}

int qsf_token_rows(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfTensor *t = f->model->prog.token_table;
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(t->dtype)];
    int rc = qsf_embed_check_file(f, err);
    if (rc == QSF_OK) announce(f, t, row_bytes(t));
    for (uint32_t c = f->col0; rc == QSF_OK && c < f->col0 + f->n_cols; c++) {
        rc = read_row(f, t, (uint64_t)f->ids[c], err);
        if (rc == QSF_OK) ops->dequant(f->row, qsf_col(f, s->out[0], c), s->out[0].width);
    }
    return rc;
}

/* Adds the row in f->row. */
static void add_row(const QsfForward *f, const QsfTensor *t, float *x) {
    const QsfDtype *d = qsf_dtype(t->dtype);
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(t->dtype)];
    for (uint64_t i = 0; i < t->ne[0]; i += PIECE) {
        const uint64_t left = t->ne[0] - i, n = left < PIECE ? left : PIECE;
        float piece[PIECE];
        ops->dequant(f->row + i / d->block_elems * d->block_bytes, piece, (size_t)n);
        if (ops->scaled) f->table->scale(piece, t->scale, (size_t)n);
        f->table->add(x + i, piece, (size_t)n);
    }
}

int qsf_position_rows(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfTensor *t = f->model->prog.position_table;
    const uint64_t first = (uint64_t)f->past + f->col0, left = t->ne[1] - first, bytes = row_bytes(t);
    const uint64_t near = f->n_cols + AHEAD;
    int rc = qsf_embed_check_file(f, err);
    /* When tokens come singly, one in AHEAD announces the rows of the others. */
    if (f->n_cols > 1 || first % AHEAD == 0)
        qsf_source_will_need(f->model->src, t, first * bytes, (left < near ? left : near) * bytes);
    for (uint32_t c = f->col0; rc == QSF_OK && c < f->col0 + f->n_cols; c++) {
        rc = read_row(f, t, (uint64_t)f->past + c, err);
        if (rc == QSF_OK) add_row(f, t, qsf_col(f, s->out[0], c));
    }
    return rc;
}
