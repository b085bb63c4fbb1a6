/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Token shift: each column receives the column of the position before it. */
#include <string.h>

#include "src/forward/forward_impl.h"

int qsf_shift(QsfForward *f, const QsfStep *s, QsfErr *err) {
    const QsfSpan span = qsf_span_begin(f);
    const size_t bytes = s->in.width * sizeof(float), end = f->col0 + f->n_cols;
    (void)err;
    memcpy(qsf_col(f, s->out[0], f->col0), qsf_recurrent_old(&f->recurrent, s->u.state), bytes);
    for (size_t c = f->col0 + 1; c < end; c++)
        memcpy(qsf_col(f, s->out[0], c), qsf_col(f, s->in, c - 1), bytes);
    memcpy(qsf_recurrent_new(&f->recurrent, s->u.state), qsf_col(f, s->in, end - 1), bytes);
    qsf_span_end(f, &span, &f->n.prep_ns);
    return QSF_OK;
}
