/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maps tensor names to roles, and roles to the shape and kind they require. */
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
    QSF_NEED_MAYBE, /* optional */
    QSF_NEED_GATED, /* required with a gated FFN, an error without */
    QSF_NEED_MAYBE_GATED,
    QSF_NEED_LAYER_NORM /* optional bias of a LayerNorm; an RMS norm has none */
} QsfNeed;

/* Result of looking up a tensor name. */
typedef enum QsfNameClass {
    QSF_NAME_ROLE,    /* *role and *layer are set */
    QSF_NAME_IGNORED, /* known to have no effect */
    QSF_NAME_UNKNOWN
} QsfNameClass;

QsfNameClass qsf_role_of_name(const char *name, QsfRole *role, uint32_t *layer);
QsfRoleKind qsf_role_kind(QsfRole role);
QsfNeed qsf_role_need(QsfRole role);
/* Computes the number of columns and rows that a role must have with h; rows is 1 for vectors. */
void qsf_role_shape(QsfRole role, const QsfHparams *h, uint64_t *cols, uint64_t *rows);

#endif
