/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of tables of which a pass needs one per position: a second table of tokens, as wide as all blocks together, and
 * learned positions. They are read from the file through the page cache and not kept. */
#include "src/base/clock.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"

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
    /* Of single tokens, one in AHEAD announces the rows of the others. */
    if (f->n_cols > 1 || first % AHEAD == 0)
        qsf_source_will_need(f->model->src, t, first * bytes, (left < near ? left : near) * bytes);
    for (uint32_t c = f->col0; rc == QSF_OK && c < f->col0 + f->n_cols; c++) {
        rc = read_row(f, t, (uint64_t)f->past + c, err);
        if (rc == QSF_OK) add_row(f, t, qsf_col(f, s->out[0], c));
    }
    return rc;
}
