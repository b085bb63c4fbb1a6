/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of model families. */
#include <stddef.h>
#include <string.h>

#include "src/model/family.h"
#include "src/model/family/families.h"
#include "src/model/family/hybrid.h"

#define DENSE(arch, norm, ...) \
    { arch, qsf_family_dense, &(const QsfDense){ __VA_ARGS__ }, norm, QSF_EACH_BLOCK, QSF_EACH_BLOCK }

/* heads, ffn: as in QsfFamily. */
#define HYBRID(arch, heads, ffn, ...) \
    { arch, qsf_family_hybrid, &(const QsfHybrid){ __VA_ARGS__ }, QSF_NORM_RMS, heads, ffn }

#define SWIGLU .act = QSF_ACT_SILU, .gated = true

static const QsfFamily table[] = {
    DENSE("llama", QSF_NORM_RMS, .rope = QSF_ROPE_PAIRS, .act = QSF_ACT_SILU, .gated = true),
    HYBRID("mamba", QSF_NO_BLOCK, QSF_NO_BLOCK, .mixer = QSF_MIXER_MAMBA1),
    HYBRID("mamba2", QSF_NO_BLOCK, QSF_NO_BLOCK, .mixer = QSF_MIXER_MAMBA2),
    HYBRID("jamba", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA1, SWIGLU),
    HYBRID("falcon-h1", QSF_EACH_BLOCK, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA2, .parallel = true,
           .rope = QSF_ROPE_HALVES, SWIGLU, .conv_bias = QSF_OPTIONAL, .mixer_norm = QSF_OPTIONAL),
    HYBRID("granitehybrid", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_MAMBA2,
           .rope = QSF_ROPE_PAIRS, SWIGLU, .scales = true, .conv_bias = QSF_OPTIONAL),
    HYBRID("nemotron_h", QSF_SOME_BLOCKS, QSF_SOME_BLOCKS, .mixer = QSF_MIXER_MAMBA2, .alone = true,
           .act = QSF_ACT_RELU2, .conv_bias = QSF_OPTIONAL),
    HYBRID("lfm2", QSF_SOME_BLOCKS, QSF_EACH_BLOCK, .mixer = QSF_MIXER_SHORT_CONV, .rope = QSF_ROPE_HALVES,
           .qk_norm = true, SWIGLU, .out_norm = "token_embd_norm"),
};

const QsfFamily *qsf_family_at(unsigned i) { return i < sizeof table / sizeof *table ? &table[i] : NULL; }

const QsfFamily *qsf_family_find(const char *name) {
    for (unsigned i = 0; qsf_family_at(i) != NULL; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}
