/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An open model: source, hyperparameters, and the tensor for each role, with all shapes checked in
 * every layer. Contains no weights. Immutable after opening; any thread may read it. */
#ifndef QSF_MODEL_MODEL_H
#define QSF_MODEL_MODEL_H

#include "src/base/arena.h"
#include "src/model/hparams.h"

/* Roles of one layer, then roles of the whole model. */
typedef enum QsfRole {
    QSF_ROLE_ATTN_NORM,
    QSF_ROLE_ATTN_NORM_B,
    QSF_ROLE_Q,
    QSF_ROLE_K,
    QSF_ROLE_V,
    QSF_ROLE_O,
    QSF_ROLE_Q_B,
    QSF_ROLE_K_B,
    QSF_ROLE_V_B,
    QSF_ROLE_O_B,
    QSF_ROLE_FFN_NORM,
    QSF_ROLE_FFN_NORM_B,
    QSF_ROLE_GATE,
    QSF_ROLE_UP,
    QSF_ROLE_DOWN,
    QSF_ROLE_GATE_B,
    QSF_ROLE_UP_B,
    QSF_ROLE_DOWN_B,
    QSF_ROLE_LAYER_N,
    QSF_ROLE_EMBED = QSF_ROLE_LAYER_N,
    QSF_ROLE_FINAL_NORM,
    QSF_ROLE_FINAL_NORM_B,
    QSF_ROLE_HEAD,
    QSF_ROLE_HEAD_B,
    QSF_ROLE_ROPE_FREQS,
    QSF_ROLE_N
} QsfRole;

typedef struct QsfModel {
    QsfSource *src; /* owned, unless borrowed */
    QsfHparams hp;
    bool borrowed;                                /* src is not closed with the model */
    bool to_convert;                              /* as in qsf_model_of_source */
    bool vocab_only;                              /* no tensors: can only tokenize */
    bool tied_head;                               /* the head is the embedding table */
    const QsfTensor *(*layers)[QSF_ROLE_LAYER_N]; /* (n_layers, roles), NULL = the model has none */
    const QsfTensor *global[QSF_ROLE_N - QSF_ROLE_LAYER_N];
    QsfArena arena; /* META */
} QsfModel;

/* Opens path (see qsf_source_open), applies overrides (NULL-terminated list of --override-kv
 * specs, may be NULL) and checks everything. QSF_E_MODEL, which names file and tensor or key: a
 * required tensor is missing, a shape or type is wrong, or the architecture or a weight type is not
 * supported. On success *m must be closed. */
int qsf_model_open(QsfModel *m, const char *path, const char *const *overrides, QsfLedger *ledger,
                   QsfErr *err);
/* Checks a source in the same way. The caller keeps ownership of src and closes it after *m. to_convert:
 * types that only qsf-convert can read (blocks of 128 and 256) are not errors. */
int qsf_model_of_source(QsfModel *m, QsfSource *src, bool to_convert, QsfLedger *ledger, QsfErr *err);
void qsf_model_close(QsfModel *m);

/* Returns the tensor with a role, NULL if the model has none. layer is ignored for whole-model roles.
 * With a tied head QSF_ROLE_HEAD is the embedding tensor. */
const QsfTensor *qsf_model_tensor(const QsfModel *m, QsfRole role, uint32_t layer);
const char *qsf_role_name(QsfRole role);
/* Return the number of tensor elements, and the bytes that must be read for one decoded token (all
 * matrices of all layers and the head, one row of the embedding). */
uint64_t qsf_model_n_params(const QsfModel *m);
uint64_t qsf_model_bytes_per_token(const QsfModel *m);

#endif
