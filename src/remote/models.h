/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models of a server: the reply to /v1/models. */
#ifndef QSF_REMOTE_MODELS_H
#define QSF_REMOTE_MODELS_H

#include <stdint.h>

#include "src/base/err.h"

#define QSF_REMOTE_MODELS_MAX 2000u

typedef struct QsfRemoteModel {
    char *id;               /* owned */
    char owned_by[64];      /* "" = not sent */
    uint32_t ctx;           /* context that a request may have; 0 = not sent */
    uint32_t ctx_train;     /* that the model was trained for; 0 = not sent */
    uint64_t params, bytes; /* 0 = not sent */
} QsfRemoteModel;

typedef struct QsfRemoteModels {
    QsfRemoteModel *items; /* (n) */
    size_t n;
    size_t bad_names; /* models that are left out for their names */
} QsfRemoteModels;

/* Fills *out, which is freed first; later ones than the first QSF_REMOTE_MODELS_MAX, and those without a
 * name or with one that cannot be shown, are left out. QSF_E_RUNTIME if it is not a list of models. */
int qsf_remote_models_parse(QsfRemoteModels *out, const char *json, size_t len, QsfErr *err);
/* The model that a name means: the same name, otherwise the only one in which it occurs, in any case of
 * letters; "" is the first. NULL with a message in err (QSF_E_MODEL) that lists what there is. */
const QsfRemoteModel *qsf_remote_models_find(const QsfRemoteModels *m, const char *name, QsfErr *err);
void qsf_remote_models_free(QsfRemoteModels *m);

#endif
