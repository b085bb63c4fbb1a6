/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs the last steps, which end in logits, for the columns whose logits are needed. */
#include <string.h>

#include "src/forward/forward_impl.h"

uint32_t qsf_head_cols(const QsfForward *f) {
    uint64_t n = f->l.spare_floats / qsf_pad16(f->model->hp.n_vocab);
    if (qsf_sketch_runs(&f->sketch)) return 1; /* the sketch is for one column */
    return n < 1 ? 1 : n < f->l.n_cols ? (uint32_t)n : f->l.n_cols;
}

/* Are all values finite? An exponent of all ones is an infinity or NaN. */
static bool finite(const float *x, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return bad == 0;
}

/* Computes the logits of columns [col0, col0 + n_cols) to y. */
static int columns(QsfForward *f, uint32_t col0, uint32_t n_cols, float *y, QsfErr *err) {
    const uint32_t n_vocab = f->model->hp.n_vocab, stride = qsf_pad16(n_vocab);
    f->col0 = col0;
    f->n_cols = n_cols;
    f->y = y;
    int rc = qsf_steps_run(f, f->model->prog.head_step, f->model->prog.n_steps, err);
    for (uint32_t c = 0; rc == QSF_OK && c < n_cols; c++) {
        if (!finite(y + (size_t)c * stride, n_vocab))
            rc = qsf_err_set(err, QSF_E_RUNTIME, "%s: the model produced invalid numbers",
                             qsf_source_path(f->model->src));
    }
    return rc;
}

static int all_columns(QsfForward *f, uint32_t n_cols, QsfLogitsFn all, void *arg, QsfErr *err) {
    uint32_t n_vocab = f->model->hp.n_vocab, most = qsf_head_cols(f);
    for (uint32_t c0 = 0; c0 < n_cols; c0 += most) {
        uint32_t n = n_cols - c0 < most ? n_cols - c0 : most;
        float *y = n == 1 ? f->logits : f->spare;
        int rc = columns(f, c0, n, y, err);
        if (rc != QSF_OK) return rc;
        for (uint32_t c = 0; c < n; c++) all(arg, f->past + c0 + c, y + (size_t)c * qsf_pad16(n_vocab));
        if (n > 1) memcpy(f->logits, y + (size_t)(n - 1) * qsf_pad16(n_vocab), n_vocab * sizeof *y);
    }
    return QSF_OK;
}

int qsf_head(QsfForward *f, uint32_t n_cols, QsfLogitsFn all, void *arg, QsfErr *err) {
    return all != NULL ? all_columns(f, n_cols, all, arg, err) : columns(f, n_cols - 1, 1, f->logits, err);
}
