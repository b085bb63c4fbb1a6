/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel types, their GGML type numbers and their blocks. */
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "kernels/kvsize.h"
#include "kernels/ref/kv.h"
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

/* Here and not from the table of kernels, so that a program without kernels knows the types of the cache. */
#define KV_NAME(a, fmt, NAME, ...)  [QK_KV_##NAME] = #fmt,
#define KV_BYTES(a, fmt, NAME, ...) [QK_KV_##NAME] = qk_kv_##fmt##_tile_bytes,
const char *qk_kv_name(qk_kv type) {
    static const char *const names[] = { QK_KV_TYPES(KV_NAME, ) };
    return names[type];
}

size_t qk_kv_tile_bytes(qk_kv type, size_t head_dim) {
    static size_t (*const tile_bytes[])(size_t head_dim) = { QK_KV_TYPES(KV_BYTES, ) };
    return tile_bytes[type](head_dim);
}
