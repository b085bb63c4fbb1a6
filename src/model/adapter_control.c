/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Control vectors. Names: ggml-org/llama.cpp common/common.cpp (common_control_vector_load),
 * src/llama-adapter.cpp; block 0 has none there either. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/adapter_impl.h"

#define HINT   "controlvector.model_hint"
#define PREFIX "direction."

static int check_kind(const QsfControl *c, const QsfModel *m, QsfErr *err) {
    const char *arch, *hint;
    int rc = qsf_meta_str(c->src, "general.architecture", &arch, NULL, err);
    if (rc == QSF_OK) rc = qsf_meta_str(c->src, HINT, &hint, NULL, err);
    if (rc != QSF_OK) return rc;
    if (arch == NULL || strcmp(arch, "controlvector") != 0)
        return qsf_adapter_fail(
            c->path, err,
            "is not a control vector: metadata key 'general.architecture' is '%.40s', expected "
            "'controlvector'",
            arch != NULL ? arch : "");
    if (hint == NULL || strcmp(hint, m->hp.arch->name) == 0) return QSF_OK;
    return qsf_adapter_fail(c->path, err,
                            "is a control vector for models of the architecture '%.40s' ('" HINT
                            "'), but the model is of '%s'",
                            hint, m->hp.arch->name);
}

/* The block of "direction.N"; false for other names. */
static bool block_of(const char *name, uint32_t *block) {
    char *end;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return false;
    const char *digits = name + sizeof PREFIX - 1;
    if (*digits < '1' || *digits > '9') return false;
    const unsigned long n = strtoul(digits, &end, 10);
    *block = n < QSF_MAX_LAYERS ? (uint32_t)n : QSF_MAX_LAYERS;
    return *end == '\0';
}

static int add_direction(QsfControl *c, const QsfModel *m, const QsfTensor *t, QsfErr *err) {
    uint32_t block;
    if (!block_of(t->name, &block))
        return qsf_adapter_fail(c->path, err,
                                "tensor '%s' is not a direction of block 1 or more ('direction.1')", t->name);
    if (block >= m->prog.n_blocks)
        return qsf_adapter_fail(c->path, err,
                                "tensor '%s' is for a block that the model, of %u blocks, does not have",
                                t->name, m->prog.n_blocks);
    if (t->ne[0] != m->hp.hidden || t->ne[1] != 1 || t->ne[2] != 1 || t->ne[3] != 1)
        return qsf_adapter_fail(c->path, err,
                                "tensor '%s' has %" PRIu64
                                " elements, but positions of the model have %u: it is a "
                                "control vector for another model",
                                t->name, t->ne[0] * t->ne[1], m->hp.hidden);
    if (t->dtype != 0)
        return qsf_adapter_fail(c->path, err, "tensor '%s' is not of type F32, as control vectors are",
                                t->name);
    c->direction[block] = t;
    return QSF_OK;
}

int qsf_adapter_open_control(QsfAdapterSet *s, const QsfModel *m, const QsfAdapterSpec *spec, QsfErr *err) {
    QsfControl *c = &s->control[s->n_controls++];
    c->scale = spec->scale;
    c->path = qsf_arena_strdup(&s->arena, spec->path, strlen(spec->path), err);
    if (c->path == NULL) return err->code;
    int rc = qsf_adapter_source(&c->src, spec, NULL, s->arena.ledger, &c->src_bytes, err);
    c->borrowed = spec->src != NULL;
    c->identity = spec->identity;
    if (rc == QSF_OK) rc = check_kind(c, m, err);
    for (uint64_t i = 0; rc == QSF_OK && i < qsf_source_n_tensors(c->src); i++)
        rc = add_direction(c, m, qsf_source_tensor(c->src, i), err);
    if (rc == QSF_OK && qsf_source_n_tensors(c->src) == 0)
        rc = qsf_adapter_fail(c->path, err, "has no directions");
    return rc;
}
