/* SPDX-License-Identifier: GPL-3.0-or-later */
/* States after some of the columns of a pass. A recurrence cannot be taken back, and a copy of its state for
 * each column would be as large as the state. What a state is made of, such as a key, a value and gates, is
 * kept instead, and the steps that continue states run again over the columns that stay. What a convolution
 * computes again is not kept for the steps after it. */
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/ops/ops.h"

void qsf_replay_begin(QsfForward *f, bool keeps) {
    f->keeps = keeps;
    f->kept = 0;
}

static float *kept(const QsfForward *f, uint32_t c) {
    return (float *)(void *)(f->mem + f->l.kept) + c * f->l.kept_floats + f->kept;
}

/* The last column is never replayed: if it stays, so does the state after it. */
void qsf_replay_keep(QsfForward *f, const QsfStep *s) {
    QsfStateInputs in;
    if (!f->keeps || f->l.kept_floats == 0) return;
    qsf_state_inputs(&f->model->prog, (uint32_t)(s - f->model->prog.step), &in);
    for (uint32_t c = 0; c + 1 < f->n_cols; c++) {
        float *to = kept(f, c);
        for (uint32_t i = 0; i < in.n; to += qsf_pad16(in.part[i++].width))
            memcpy(to, qsf_col(f, in.part[i], c), in.part[i].width * sizeof *to);
    }
    f->kept += in.floats;
}

static int again(QsfForward *f, const QsfStep *s, QsfErr *err) {
    switch (s->op) {
    case QSF_OP_SHIFT: return qsf_shift(f, s, err);
    case QSF_OP_CONV: return qsf_conv(f, s, err);
    case QSF_OP_DELTA: return qsf_delta(f, s, err);
    case QSF_OP_WKV: return qsf_wkv(f, s, err);
    default: return qsf_scan(f, s, err);
    }
}

/* It cannot be stopped: half a state would be of no use. */
int qsf_replay(QsfForward *f, uint32_t n, QsfErr *err) {
    const QsfProgram *p = &f->model->prog;
    const atomic_int *cancel = f->cancel;
    int rc = QSF_OK;
    if (f->l.kept_floats == 0) return QSF_OK;
    f->cancel = NULL;
    f->act_of.buf = QSF_NONE;
    f->col0 = 0;
    f->n_cols = n;
    f->kept = 0;
    for (uint32_t i = 0; rc == QSF_OK && i < p->n_steps; i++) {
        QsfStateInputs in;
        qsf_state_inputs(p, i, &in);
        if (in.n == 0) continue;
        for (uint32_t c = 0; c < n; c++) {
            const float *from = kept(f, c);
            for (uint32_t k = 0; k < in.n; from += qsf_pad16(in.part[k++].width))
                memcpy(qsf_col(f, in.part[k], c), from, in.part[k].width * sizeof *from);
        }
        rc = again(f, &p->step[i], err);
        f->kept += in.floats;
    }
    f->cancel = cancel;
    return rc;
}
