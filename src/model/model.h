/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An open model: source, hyperparameters, and its program, with all tensors checked. Contains no weights.
 * Immutable after opening; any thread may read it. */
#ifndef QSF_MODEL_MODEL_H
#define QSF_MODEL_MODEL_H

#include "src/base/arena.h"
#include "src/base/strbuf.h"
#include "src/model/hparams.h"
#include "src/model/program.h"
#include "src/model/reads.h"

typedef struct QsfModel {
    QsfSource *src; /* owned, unless borrowed */
    QsfHparams hp;
    QsfProgram prog; /* empty if vocab_only */
    QsfReads reads;  /* what both were read from, in the arena */
    uint32_t nextn;  /* k + 1: it is next-token block k of the file (nextn.h); 0: the model itself */
    bool borrowed;   /* src is not closed with the model */
    bool to_convert; /* as in qsf_model_of_source */
    bool vocab_only; /* no tensors: can only tokenize */
    QsfArena arena;  /* META */
} QsfModel;

/* The tensors that a program is built from. */
typedef struct QsfTensorSet {
    const QsfTensor *(*find)(void *arg, const char *name); /* NULL if absent */
    void *arg;
} QsfTensorSet;

/* Opens path (see qsf_source_open), applies overrides (NULL-terminated list of --override-kv
 * specs, may be NULL) and checks everything. QSF_E_MODEL, which names file and tensor or key: a
 * required tensor is missing, a shape or type is wrong, or the architecture or a weight type is not
 * supported. On success *m must be closed. */
int qsf_model_open(QsfModel *m, const char *path, const char *const *overrides, QsfLedger *ledger,
                   QsfErr *err);
/* Checks a source in the same way. The caller keeps ownership of src and closes it after *m. to_convert:
 * types that only qsf-convert can read (blocks of 128 and 256) are not errors. */
int qsf_model_of_source(QsfModel *m, QsfSource *src, bool to_convert, QsfLedger *ledger, QsfErr *err);
/* Builds m->prog from m->hp and the tensors of set, and records in m->reads what it looked for; m->src may be
 * NULL, then every metadata key is absent. Errors as above. */
int qsf_model_build(QsfModel *m, const QsfTensorSet *set, QsfErr *err);
/* Frees the program and closes the source. A zeroed model is allowed. */
void qsf_model_close(QsfModel *m);

/* Returns the number of tensor elements. */
uint64_t qsf_model_n_params(const QsfModel *m);

/* A program as text, for --inspect. */

/* Appends one line per step. Blocks with the same steps as the block before them are listed by number only.
 * Buffers of a block are called t0, t1, ... in the order of their use. */
void qsf_program_put_text(QsfStrbuf *out, const QsfModel *m);
/* Appends an array of objects, one per step: block, op, label, and the tensors it multiplies. */
void qsf_program_put_json(QsfStrbuf *out, const QsfModel *m);

#endif
