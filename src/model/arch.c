/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of model families. What a row says is checked against the files of that family. */
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
