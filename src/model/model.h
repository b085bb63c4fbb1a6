/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An opened model: source, hyperparameters and which tensor plays which role, all shapes checked
 * in every layer. Holds no weights. Immutable after opening; any thread may read it. */
#ifndef QSF_MODEL_MODEL_H
#define QSF_MODEL_MODEL_H

#include "src/base/arena.h"
#include "src/model/hparams.h"

/* Roles of one layer, then roles of the whole model. */
typedef enum QsfRole {
    QSF_ROLE_ATTN_NORM, QSF_ROLE_ATTN_NORM_B,
    QSF_ROLE_Q, QSF_ROLE_K, QSF_ROLE_V, QSF_ROLE_O,
    QSF_ROLE_Q_B, QSF_ROLE_K_B, QSF_ROLE_V_B, QSF_ROLE_O_B,
    QSF_ROLE_FFN_NORM, QSF_ROLE_FFN_NORM_B,
    QSF_ROLE_GATE, QSF_ROLE_UP, QSF_ROLE_DOWN,
    QSF_ROLE_GATE_B, QSF_ROLE_UP_B, QSF_ROLE_DOWN_B,
    QSF_ROLE_LAYER_N,
    QSF_ROLE_EMBED = QSF_ROLE_LAYER_N, QSF_ROLE_FINAL_NORM, QSF_ROLE_FINAL_NORM_B,
    QSF_ROLE_HEAD, QSF_ROLE_HEAD_B, QSF_ROLE_ROPE_FREQS,
    QSF_ROLE_N
} QsfRole;

typedef struct QsfModel {
    QsfSource *src;          /* owned, unless borrowed */
    QsfHparams hp;
    bool borrowed;           /* src is not closed with the model */
    bool to_convert;         /* as in qsf_model_of_source */
    bool vocab_only;         /* no tensors: good for tokenizing only */
    bool tied_head;          /* the head is the embedding table */
    const QsfTensor *(*layers)[QSF_ROLE_LAYER_N]; /* (n_layers, roles), NULL = the model has none */
    const QsfTensor *global[QSF_ROLE_N - QSF_ROLE_LAYER_N];
    QsfArena arena;          /* META */
} QsfModel;

/* Opens path (see qsf_source_open), applies overrides (NULL-terminated list of --override-kv
 * specs, may be NULL), checks everything: QSF_E_MODEL names file and tensor or key. A required
 * tensor that is missing, a shape or a type that does not fit, an unsupported architecture or
 * weight type are errors. On success *m must be closed. */
int qsf_model_open(QsfModel *m, const char *path, const char *const *overrides, QsfLedger *ledger,
                   QsfErr *err);
/* The same checks of a source that is open and stays the caller's; *m must be closed before it. to_convert: what
 * qsf-convert turns into something that runs is no error (blocks of 128 and 256). */
int qsf_model_of_source(QsfModel *m, QsfSource *src, bool to_convert, QsfLedger *ledger, QsfErr *err);
void qsf_model_close(QsfModel *m);

/* layer is ignored for whole-model roles; NULL when the model has no such tensor. With a tied head
 * QSF_ROLE_HEAD gives the embedding tensor. */
const QsfTensor *qsf_model_tensor(const QsfModel *m, QsfRole role, uint32_t layer);
const char *qsf_role_name(QsfRole role);
/* Sum of tensor elements, and the bytes that one decoded token must read (all matrices of all
 * layers and the head, one row of the embedding). */
uint64_t qsf_model_n_params(const QsfModel *m);
uint64_t qsf_model_bytes_per_token(const QsfModel *m);

#endif
