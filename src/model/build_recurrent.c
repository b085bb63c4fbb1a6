/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps that carry a state from one position to the next. */
#include <stdio.h>

#include "src/model/build.h"

#define NAME_BYTES 128

void qsf_build_conv(QsfBuilder *b, const char *name, QsfSlice in, QsfSlice out, uint32_t kernel,
                    QsfActKind act) {
    char full[NAME_BYTES];
    if (!qsf_build_failed(b) && (kernel < 2 || kernel > QSF_CONV_MAX))
        qsf_build_fail(b, "a convolution over %u positions is not supported, expected 2 to %u", kernel,
                       QSF_CONV_MAX);
    if (qsf_build_failed(b)) return;
    QsfConvStep c = { .kernel = kernel, .act = act };
    snprintf(full, sizeof full, "%s.weight", name);
    /* Some converters leave a dimension of 1 in the middle. */
    const QsfTensor *t = qsf_build_peek(b, full);
    const bool flat = t == NULL || t->ne[2] == 1;
    const uint64_t ne[3] = { kernel, flat ? in.width : 1, flat ? 1 : in.width };
    c.weight = qsf_build_param_nd(b, QSF_REQUIRED, ne, 3, full);
    snprintf(full, sizeof full, "%s.bias", name);
    c.bias = qsf_build_param(b, QSF_OPTIONAL, in.width, full);
    c.state = qsf_build_state(b, (uint64_t)(kernel - 1) * in.width);
    QsfStep *s = qsf_build_step(b, QSF_OP_CONV, name, in, out);
    if (s != NULL) s->u.conv = c;
}

void qsf_build_scan(QsfBuilder *b, const QsfScanSpec *spec) {
    const bool one = spec->op == QSF_OP_SCAN1;
    /* Some converters store one number per head without a dimension of 1. */
    const QsfTensor *t = qsf_build_peek(b, "ssm_d");
    const bool flat = !one && t != NULL && t->ne[0] == spec->heads;
    const uint64_t a[2] = { flat ? spec->heads : 1, flat ? 1 : spec->heads },
                   d[2] = { flat ? spec->heads : 1, flat ? 1 : spec->heads };
    QsfScanStep p = { .heads = spec->heads, .n = spec->n, .groups = spec->groups };
    p.a = one ? qsf_build_param_tiles(b, QSF_REQUIRED, spec->n, spec->heads, "ssm_a")
              : qsf_build_param_nd(b, QSF_REQUIRED, a, 2, "ssm_a");
    p.d = one ? qsf_build_param(b, QSF_REQUIRED, spec->heads, "ssm_d")
              : qsf_build_param_nd(b, QSF_REQUIRED, d, 2, "ssm_d");
    if (qsf_build_failed(b)) return;
    p.dim = spec->x.width / spec->heads;
    p.state = qsf_build_state(b, one ? qsf_matrix_state_floats(1, spec->n, spec->heads)
                                     : qsf_matrix_state_floats(spec->heads, spec->n, p.dim) + spec->heads);
    QsfStep *s = qsf_build_step(b, spec->op, "ssm_scan", spec->x, spec->out);
    if (s == NULL) return;
    s->in2 = spec->dt;
    s->in3 = spec->bc;
    s->u.scan = p;
}
