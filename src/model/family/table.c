/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of model families. */
#include <stddef.h>
#include <string.h>

#include "src/model/family.h"
#include "src/model/family/families.h"

#define DENSE(arch, norm, ...) \
    { arch, qsf_family_dense, &(const QsfDense){ __VA_ARGS__ }, norm, QSF_EACH_BLOCK, QSF_EACH_BLOCK }

static const QsfFamily table[] = {
    DENSE("llama", QSF_NORM_RMS, .rope = QSF_ROPE_PAIRS, .act = QSF_ACT_SILU, .gated = true),
};

const QsfFamily *qsf_family_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfFamily *qsf_family_find(const char *name) {
    for (unsigned i = 0; qsf_family_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
