/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of model families. Rows were checked against model files of the family. */
#include "src/model/arch.h"

#include <stddef.h>
#include <string.h>

static const QsfArch table[] = {
    /* name, norm, activation, RoPE, gated FFN, embedding scale power */
    { "llama", QSF_NORM_RMS, QSF_ACT_SILU, QSF_ROPE_PAIRS, true, 0.0f },
};

const QsfArch *qsf_arch_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfArch *qsf_arch_find(const char *name) {
    for (unsigned i = 0; qsf_arch_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
