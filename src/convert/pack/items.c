/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One tensor of a QSF file that is written: its name, and what it can become. */
#include "src/convert/pack/items.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/names.h"

static const char *const why_text[QSF_WHY_N] = {
    [QSF_WHY_NONE] = "",
    [QSF_WHY_VECTOR] = "never quantized",
    [QSF_WHY_ROLE] = "role",
    [QSF_WHY_SMALLER] = "already as small",
    [QSF_WHY_COLUMNS] = "row is not a multiple of a block",
    [QSF_WHY_OUTLIERS] = "more than 1 % outliers",
    [QSF_WHY_COSINE] = "cosine below 0.99",
    [QSF_WHY_SIZE] = "target size",
};

const char *qsf_keep_reason_text(QsfKeepReason why) { return (unsigned)why < QSF_WHY_N ? why_text[why] : ""; }

/* ---- one item */

const char *qsf_item_name(const QsfItem *i, char buf[QSF_ITEM_NAME]) {
    if (i->type == QSFT_NAMED)
        snprintf(buf, QSF_ITEM_NAME, "%s", i->t->name);
    else if (i->type == QSFT_EMBED)
        snprintf(buf, QSF_ITEM_NAME, "%s", i->role == QSFT_HEAD ? "output.weight" : "token_embd.weight");
    else if (i->layer == QSF_FINAL_LAYER)
        snprintf(buf, QSF_ITEM_NAME, "%s", qsf_tensor_type_name(i->type));
    else
        snprintf(buf, QSF_ITEM_NAME, "blk.%" PRIu32 ".%s", i->layer, qsf_tensor_type_name(i->type));
    return buf;
}

/* Matrices with fewer rows are not worth quantizing if nothing is known about them but their steps. */
#define ROWS_MIN QSFF_GROUP_ROWS

bool qsf_item_is_matrix(const QsfItem *i) {
    if (i->use == QSF_USE_KEEP) return false;
    if (i->type == QSFT_NAMED) return i->use != QSF_USE_UNKNOWN && i->rows >= ROWS_MIN;
    return i->type == QSFT_EMBED ||
           (!qsf_tensor_type_is_vector(i->type) && i->type != QSFT_ROUTER && i->type != QSFT_POSITIONS);
}

/* Is the tensor multiplied as one matrix, whose rows may be interleaved? Experts stay rows: the
 * engine reads them one at a time. */
static bool multiplies(const QsfItem *i) {
    switch (i->use) {
    case QSF_USE_LINEAR: return i->type == QSFT_NAMED || qsf_tensor_type_is_matrix(i->type);
    case QSF_USE_HEADS: return i->t->ne[1] % QSFF_GROUP_ROWS == 0; /* no group has rows of two heads */
    case QSF_USE_UNKNOWN:
        return i->type != QSFT_NAMED && qsf_tensor_type_is_matrix(i->type) &&
               !qsf_tensor_type_is_experts(i->type);
    default: return false;
    }
}

/* Padding fewer rows than a group is not worth it. */
static bool can_be_groups(const QsfItem *i, uint32_t dtype) {
    return multiplies(i) && qsf_group_planes(dtype) > 0 && i->rows >= QSFF_GROUP_ROWS &&
           i->cols % qsf_dtype(dtype)->block_elems == 0;
}

int qsf_item_become(QsfItem *i, uint8_t code, uint32_t block, QsfKeepReason why, QsfErr *err) {
    uint32_t dtype;
    const bool known = qsf_code_dtype(code, block, &dtype);
    i->groups = known && i->x16 && can_be_groups(i, dtype);
    if (!known || !qsf_code_bytes(dtype, i->groups ? qsf_group_rows(i->rows) : i->rows, i->cols, &i->bytes))
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: tensor '%s' cannot have quantization code %u",
                           i->t->name, code);
    i->code = code;
    i->why = why;
    return QSF_OK;
}

int qsf_items_lay_out(QsfItems *l, bool x16, uint32_t block, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t k = 0; rc == QSF_OK && k < l->n; k++) {
        l->item[k].x16 = x16;
        rc = qsf_item_become(&l->item[k], l->item[k].code, block, l->item[k].why, err);
    }
    return rc;
}
