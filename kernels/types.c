/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GGML type numbers (ggml-org/ggml, include/ggml.h) and kernel types. */
#include "kernels/blocks.h"

static const uint32_t ggml_of[QK_TYPE_N] = {
    [QK_F32] = 0,  [QK_F16] = 1,  [QK_BF16] = 30, [QK_Q8_0] = 8,  [QK_Q4_0] = 2,  [QK_Q4_1] = 3,
    [QK_Q5_0] = 6, [QK_Q5_1] = 7, [QK_Q4_K] = 12, [QK_Q5_K] = 13, [QK_Q6_K] = 14,
};

qk_type qk_type_of(uint32_t ggml_type)
{
    for (int t = 0; t < QK_TYPE_N; t++)
        if (ggml_of[t] == ggml_type)
            return (qk_type)t;
    return QK_NONE;
}

uint32_t qk_type_ggml(qk_type t)
{
    return t >= 0 && t < QK_TYPE_N ? ggml_of[t] : UINT32_MAX;
}
