/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sizes of the KV cache without a table of kernels. */
#ifndef QSF_KERNELS_KVSIZE_H
#define QSF_KERNELS_KVSIZE_H

#include "kernels/kv.h"

/* Returns what tile_bytes of qk_kv_ops returns; no level changes it. */
size_t qk_kv_tile_bytes(qk_kv type, size_t head_dim);

#endif
