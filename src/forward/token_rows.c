/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of a second table of tokens, as wide as all blocks together, of which a pass needs one per token: read from
 * the file through the page cache, not kept. */
#include "src/base/clock.h"
#include "src/format/rows.h"
#include "src/forward/state.h"

/* Announces the rows of a prompt: together they cost one wait for the disk, not one each. */
static void announce(const QsfForward *f, const QsfTensor *t, uint64_t bytes) {
    for (uint32_t c = 0; f->n_cols > 1 && c < f->n_cols; c++)
        qsf_source_will_need(f->model->src, t, (uint64_t)f->ids[f->col0 + c] * bytes, bytes);
}

int qsf_token_rows(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfTensor *t = f->model->prog.token_table;
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(t->dtype)];
    const uint64_t bytes = t->bytes / t->ne[1];
    int rc = qsf_embed_check_file(f, err);
    if (rc == QSF_OK) announce(f, t, bytes);
    for (uint32_t c = f->col0; rc == QSF_OK && c < f->col0 + f->n_cols; c++) {
        const uint64_t t0 = qsf_now_ns();
        rc = qsf_source_read_bytes(f->model->src, t, (uint64_t)f->ids[c] * bytes, f->row, (size_t)bytes, err);
        if (rc != QSF_OK) return rc;
        qsf_count(&f->n.io.bytes_read, bytes);
        qsf_count(&f->n.io.read_ns, qsf_now_ns() - t0);
        ops->dequant(f->row, qsf_col(f, s->out[0], c), s->out[0].width);
    }
    return rc;
}
