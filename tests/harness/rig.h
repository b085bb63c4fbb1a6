/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model file opened down to its forward pass, with every knob of the plan at hand. */
#ifndef QSF_TESTS_RIG_H
#define QSF_TESTS_RIG_H

#include "src/forward/forward.h"

typedef struct QsfRigOptions {
    const char *path;
    const char *const *overrides; /* of metadata, NULL-terminated; or NULL */
    int threads;                  /* 0 = 1 */
    bool measured;                /* how many of them are used is measured */
    bool stream;                  /* pin nothing */
    uint64_t pin_cap;             /* with stream false and not 0: cap on pinned bytes */
    uint32_t n_slots;             /* 0 = as planned */
    uint64_t slot_bytes;          /* 0 = as planned; 1 = the least that works */
    uint32_t batch, ctx;          /* 0 = as planned */
    QsfIoKind io;
    QsfGuessing ahead; /* experts are read before they are chosen */
    uint32_t kv_step;  /* not 0: unused KV memory, taken in such steps, holds weights beyond pin_cap */
    const char *k_type, *v_type; /* NULL = as planned */
    bool exact;
    float quality;          /* not 0: with a sketch of the head, and nothing else left out */
    QsfExpertLimits limits; /* of qsf_forward_decode */
    bool hold;              /* about half of the blocks that may be skipped draft (qsf_forward_draft) */
    qk_level level;         /* QK_LEVEL_REF (0) .. ; QK_LEVEL_UNKNOWN = best */
} QsfRigOptions;

typedef struct QsfRig {
    QsfLedger ledger;
    QsfModel model;
    QsfPlan plan;
    qk_table table;
    QsfPool *pool;
    QsfForward *fwd;
    atomic_int cancel;
} QsfRig;

/* Opens all; on failure everything is closed again. */
int qsf_rig_open(QsfRig *r, const QsfRigOptions *o, QsfErr *err);
void qsf_rig_close(QsfRig *r);
/* Bytes that the ledger still holds: 0 after a close. */
uint64_t qsf_rig_leak(QsfRig *r);

/* A model that exists only as shapes: for plans. Matrices of GGML type `dtype`, with an untied head unless
 * tied. No source: m->src is NULL. Free with qsf_shape_model_free. */
typedef struct QsfShapeSpec {
    uint32_t layers, hidden, heads, kv_heads, ffn, vocab, ctx;
    bool tied;
    uint32_t dtype;
} QsfShapeSpec;
void qsf_shape_model(QsfModel *m, const QsfShapeSpec *s);
void qsf_shape_model_free(QsfModel *m);
/* Returns the number of its tensors, and the tensors in the order of their use. */
uint32_t qsf_shape_tensors(const QsfModel *m, QsfTensor *const **tensors);

#endif
