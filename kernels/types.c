/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel types, their GGML type numbers and their blocks. */
#include "kernels/blocks.h"
#include "kernels/x16/x16.h"

#define ROW(a, fmt, TYPE, ggml, elems, bytes, planes, ...) [QK_##TYPE] = { ggml, elems, bytes, planes },

static const struct {
    uint32_t ggml;
    uint16_t elems, bytes, planes;
} types[QK_TYPE_N] = { QK_FORMATS(ROW, ) };

/* ggml-org/ggml, src/ggml-common.h. */
const int8_t qk_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
const int8_t qk_fp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

unsigned qk_type_elems(qk_type t) { return types[t].elems; }

unsigned qk_type_bytes(qk_type t) { return types[t].bytes; }

unsigned qk_type_planes(qk_type t) { return types[t].planes; }

#define IS(fmt, TYPE) || t == QK_##TYPE
int qk_type_by_use(qk_type t) { return 0 QK_BY_USE(IS); }

qk_type qk_type_of(uint32_t ggml_type) {
    for (int t = 0; t < QK_TYPE_N; t++)
        if (types[t].ggml == ggml_type) return (qk_type)t;
    return QK_NONE;
}

uint32_t qk_type_ggml(qk_type t) { return t >= 0 && t < QK_TYPE_N ? types[t].ggml : UINT32_MAX; }
