/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of GGML and QSF tensor types. The types with kernels are taken from kernels/formats.h. Numbers and
 * block sizes of the others: ggml-org/ggml include/ggml.h and src/ggml-common.h; numbers missing here were
 * withdrawn by their owners. */
#include "src/format/dtype.h"

#include <stddef.h>

#include "src/base/checked.h"

/* A slot for each number below 48, then the QSF types: blocks of 64, of 128, of 256. A free slot has no name.
 * */
enum { QSF_SLOTS = 48, LARGER_SLOTS = 16 };
_Static_assert(QSF_SLOTS + 3 * LARGER_SLOTS <= QSF_DTYPES_MAX, "a slot for each type");
#define QSF_SLOT(id) (QSF_SLOTS + ((id)&0xffu) - 1 + LARGER_SLOTS * (((id)&0xff00u) / QSF_DTYPE_OF_128))
#define SLOT(id)     ((id) < QK_GGML_QSF ? (id) : QSF_SLOT(id))

#define WITH_KERNELS(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) \
    [SLOT(ggml)] = { ggml, #TYPE, elems, bytes, tail, true },
#define WITHOUT(id, name, elems, bytes) [SLOT(id)] = { id, name, elems, bytes, 0, false }
#define LARGER(TYPE, elems, bytes) \
    WITHOUT(QK_GGML_##TYPE + QSF_DTYPE_OF_##elems, #TYPE "_" #elems, elems, bytes)

static const QsfDtype table[QSF_DTYPES_MAX] = {
    QK_FORMATS(WITH_KERNELS, ) WITHOUT(9, "Q8_1", 32, 36),
    WITHOUT(15, "Q8_K", 256, 292),
    WITHOUT(24, "I8", 1, 1),
    WITHOUT(25, "I16", 1, 2),
    WITHOUT(26, "I32", 1, 4),
    WITHOUT(27, "I64", 1, 8),
    WITHOUT(28, "F64", 1, 8),
    WITHOUT(QSF_DTYPE_I2_SPLIT, "I2_SPLIT", 32, 8),
    LARGER(QSF2, 128, 36),
    LARGER(QSF3, 128, 52),
    LARGER(QSF4, 128, 68),
    LARGER(QSFT, 128, 34),
    LARGER(QSF2, 256, 68),
    LARGER(QSF3, 256, 100),
    LARGER(QSF4, 256, 132),
    LARGER(QSFT, 256, 66),
};

/* The index of a type counts the slots in use. */
const QsfDtype *qsf_dtype_at(uint32_t i) {
    for (uint32_t slot = 0; slot < QSF_DTYPES_MAX; slot++)
        if (table[slot].name != NULL && i-- == 0) return &table[slot];
    return NULL;
}

uint32_t qsf_dtype_index(uint32_t id) {
    uint32_t i = 0;
    for (const QsfDtype *t; (t = qsf_dtype_at(i)) != NULL; i++)
        if (t->id == id) return i;
    return QSF_DTYPES_MAX;
}

const QsfDtype *qsf_dtype(uint32_t id) {
    const uint32_t slot = SLOT(id);
    return slot < QSF_DTYPES_MAX && table[slot].name != NULL && table[slot].id == id ? &table[slot] : NULL;
}

bool qsf_dtype_row_bytes(const QsfDtype *t, uint64_t k, uint64_t *out) {
    return k % t->block_elems == 0 && qsf_mul_u64(k / t->block_elems, t->block_bytes, out);
}

bool qsf_dtype_tensor_bytes(const QsfDtype *t, const uint64_t ne[4], uint64_t *out) {
    uint64_t bytes;
    if (!qsf_dtype_row_bytes(t, ne[0], &bytes)) return false;
    for (int i = 1; i < 4; i++)
        if (!qsf_mul_u64(bytes, ne[i], &bytes)) return false;
    return qsf_add_u64(bytes, t->tail_bytes, out);
}
