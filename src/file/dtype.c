/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of GGML and QSF tensor types. The types with kernels are taken from kernels/formats.h. Numbers and
 * block sizes of the others: ggml-org/ggml include/ggml.h and src/ggml-common.h; numbers missing here were
 * withdrawn by their owners. */
#include "src/file/dtype.h"

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

/* ikawrakow/ik_llama.cpp and PrismML-Eng/llama.cpp ggml/include/ggml.h; "old files": withdrawn
 * by ggml-org/llama.cpp. */
static const struct {
    uint32_t id;
    const char *name;
} foreign[] = {
    /* clang-format off */
    { 4, "Q4_2 of old files" },
    { 5, "Q4_3 of old files" },
    { 31, "Q4_0_4_4 of old files" },
    { 32, "Q4_0_4_8 of old files" },
    { 33, "Q4_0_8_8 of old files" },
    { 37, "IQ4_NL_4_8 of old files" },
    { 38, "IQ4_NL_8_8 of old files" },
    { 133, "Q6_0 of ik_llama.cpp" },
    { 134, "IQ1_BN of ik_llama.cpp" },
    { 135, "IQ2_BN of ik_llama.cpp" },
    { 137, "IQ2_K of ik_llama.cpp" },
    { 138, "IQ3_K of ik_llama.cpp" },
    { 139, "IQ4_K of ik_llama.cpp" },
    { 140, "IQ5_K of ik_llama.cpp" },
    { 141, "IQ6_K of ik_llama.cpp" },
    { 142, "PQ2_0 of PrismML" },
    { 143, "PTQ1_0 of PrismML" },
    { 144, "IQ4_KS of ik_llama.cpp" },
    { 145, "IQ2_KS of ik_llama.cpp" },
    { 146, "IQ4_KSS of ik_llama.cpp" },
    { 148, "Q8_K32 of ik_llama.cpp" },
    { 151, "Q8_KV of ik_llama.cpp" },
    { 152, "IQ5_KS of ik_llama.cpp" },
    { 153, "IQ2_KT of ik_llama.cpp" },
    { 154, "IQ3_KT of ik_llama.cpp" },
    { 155, "IQ4_KT of ik_llama.cpp" },
    { 156, "IQ3_KS of ik_llama.cpp" },
    { 157, "IQ2_KL of ik_llama.cpp" },
    { 158, "IQ1_KT of ik_llama.cpp" },
    { 202, "Q4_0_R8 of ik_llama.cpp" },
    { 206, "Q5_0_R4 of ik_llama.cpp" },
    { 208, "Q8_0_R8 of ik_llama.cpp" },
    { 210, "Q2_K_R4 of ik_llama.cpp" },
    { 211, "Q3_K_R4 of ik_llama.cpp" },
    { 212, "Q4_K_R4 of ik_llama.cpp" },
    { 213, "Q5_K_R4 of ik_llama.cpp" },
    { 214, "Q6_K_R4 of ik_llama.cpp" },
    { 216, "IQ2_XXS_R4 of ik_llama.cpp" },
    { 217, "IQ2_XS_R4 of ik_llama.cpp" },
    { 218, "IQ3_XXS_R4 of ik_llama.cpp" },
    { 219, "IQ1_S_R4 of ik_llama.cpp" },
    { 220, "IQ4_NL_R4 of ik_llama.cpp" },
    { 221, "IQ3_S_R4 of ik_llama.cpp" },
    { 222, "IQ2_S_R4 of ik_llama.cpp" },
    { 223, "IQ4_XS_R8 of ik_llama.cpp" },
    { 229, "IQ1_M_R4 of ik_llama.cpp" },
    { 230, "BF16_R16 of ik_llama.cpp" },
    { 233, "Q6_0_R4 of ik_llama.cpp" },
    { 335, "IQ2_BN_R4 of ik_llama.cpp" },
    { 337, "IQ2_K_R4 of ik_llama.cpp" },
    { 338, "IQ3_K_R4 of ik_llama.cpp" },
    { 339, "IQ4_K_R4 of ik_llama.cpp" },
    { 340, "IQ5_K_R4 of ik_llama.cpp" },
    { 344, "IQ4_KS_R4 of ik_llama.cpp" },
    { 352, "IQ5_KS_R4 of ik_llama.cpp" },
    { 397, "Q8_K_R16 of ik_llama.cpp" },
    { 398, "Q8_KV_R8 of ik_llama.cpp" },
    { 399, "Q8_K_R8 of ik_llama.cpp" },
    /* clang-format on */
};

const char *qsf_dtype_foreign(uint32_t id) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (foreign[i].id == id) return foreign[i].name;
    return NULL;
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
