/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts of I2_S tensors. */
#include "src/file/i2s.h"

#include <string.h>

#include "src/file/dtype.h"
#include "src/file/rows.h"

enum { TAIL_BYTES = 32 };

const QsfI2sLayout qsf_i2s_layouts[QSF_I2S_LAYOUTS] = {
    { "microsoft", QK_GGML_I2_S, false },
    { "bitnet32f16", QK_GGML_I2_32, false },
    { "split32", QSF_DTYPE_I2_SPLIT, true },
    { "qk256", QK_GGML_I2_256, false },
};

int qsf_i2s_layout(const char *name, QsfErr *err) {
    for (int i = 0; i < QSF_I2S_LAYOUTS; i++)
        if (strcmp(name, qsf_i2s_layouts[i].name) == 0) return i;
    (void)qsf_err_set(err, QSF_E_USAGE, "'%s' is not an I2_S layout; it must be " QSF_I2S_NAMES, name);
    return -1;
}

int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err) {
    return qsf_source_read_bytes(s, t, t->bytes - TAIL_BYTES, &t->scale, sizeof t->scale, err);
}
