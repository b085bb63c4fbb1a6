/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tensor name plays which role, and the shape and kind that role demands. */
#ifndef QSF_MODEL_ROLES_H
#define QSF_MODEL_ROLES_H

#include "src/model/model.h"

typedef enum QsfRoleKind {
    QSF_KIND_MATRIX, /* any weight type that has kernels */
    QSF_KIND_VECTOR, /* F32, F16 or BF16 */
    QSF_KIND_F32     /* F32 only */
} QsfRoleKind;

typedef enum QsfNeed {
    QSF_NEED_ALWAYS,
    QSF_NEED_MAYBE, /* used when the file has it */
    QSF_NEED_GATED, /* required with a gated FFN, wrong without */
    QSF_NEED_MAYBE_GATED,
    QSF_NEED_LAYER_NORM /* optional bias of a LayerNorm; an RMS norm has none */
} QsfNeed;

/* Where a tensor name belongs. */
typedef enum QsfNameClass {
    QSF_NAME_ROLE,    /* *role, *layer say where */
    QSF_NAME_IGNORED, /* known to change nothing */
    QSF_NAME_UNKNOWN
} QsfNameClass;

QsfNameClass qsf_role_of_name(const char *name, QsfRole *role, uint32_t *layer);
QsfRoleKind qsf_role_kind(QsfRole role);
QsfNeed qsf_role_need(QsfRole role);
/* Elements per column and row count that role has under h; rows 1 for vectors. */
void qsf_role_shape(QsfRole role, const QsfHparams *h, uint64_t *cols, uint64_t *rows);

#endif
