/* SPDX-License-Identifier: GPL-3.0-or-later */
/* LZ4 blocks. We allocate the encoder's state, to tell "out of memory" from "block does not fit". */
#include "src/base/lz.h"

#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

_Static_assert(QSF_LZ_MAX == LZ4_MAX_INPUT_SIZE, "maximum size of a block");

int qsf_lz_compress(const void *src, size_t n, bool high, void *dst, size_t cap, size_t *out, QsfErr *err) {
    *out = 0;
    if (n == 0 || n > QSF_LZ_MAX || cap == 0) return QSF_OK;
    if (cap > QSF_LZ_MAX) cap = QSF_LZ_MAX;
    void *state = malloc((size_t)(high ? LZ4_sizeofStateHC() : LZ4_sizeofState()));
    if (state == NULL) return qsf_err_memory(err, "LZ4");
    int got = high ? LZ4_compress_HC_extStateHC(state, src, dst, (int)n, (int)cap, LZ4HC_CLEVEL_DEFAULT)
                   : LZ4_compress_fast_extState(state, src, dst, (int)n, (int)cap, 1);
    free(state);
    *out = got > 0 ? (size_t)got : 0;
    return QSF_OK;
}

bool qsf_lz_decompress(const void *src, size_t n, void *dst, size_t whole) {
    if (n > QSF_LZ_MAX || whole > QSF_LZ_MAX) return false;
    int got = LZ4_decompress_safe(src, dst, (int)n, (int)whole);
    return got >= 0 && (size_t)got == whole;
}
