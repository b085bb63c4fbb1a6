/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zstd frames; in builds without libzstd, functions that fail. */
#include "src/base/zstd.h"

#if QSF_HAVE_ZSTD

#include <zstd.h>
#include <zstd_errors.h>

/* Level 9 saves about 1 % more of weights, and those of 16 bits then decompress at half the speed. */
#define LEVEL 1

bool qsf_zstd_built(void) { return true; }

int qsf_zstd_compress(const void *src, size_t n, void *dst, size_t cap, size_t *out, QsfErr *err) {
    *out = 0;
    if (n == 0 || cap == 0) return QSF_OK;
    ZSTD_CCtx *c = ZSTD_createCCtx();
    if (c == NULL) return qsf_err_memory(err, "zstd");
    size_t got = ZSTD_compressCCtx(c, dst, cap, src, n, LEVEL);
    ZSTD_freeCCtx(c);
    if (!ZSTD_isError(got))
        *out = got;
    else if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return qsf_err_memory(err, "zstd");
    else if (ZSTD_getErrorCode(got) != ZSTD_error_dstSize_tooSmall)
        return qsf_err_set(err, QSF_E_RUNTIME, "zstd: %s", ZSTD_getErrorName(got));
    return QSF_OK;
}

int qsf_zstd_open(QsfZstdReader **out, QsfErr *err) {
    *out = (QsfZstdReader *)(void *)ZSTD_createDCtx();
    return *out != NULL ? QSF_OK : qsf_err_memory(err, "zstd");
}

void qsf_zstd_close(QsfZstdReader *r) { ZSTD_freeDCtx((ZSTD_DCtx *)(void *)r); }

bool qsf_zstd_decompress(QsfZstdReader *r, const void *src, size_t n, void *dst, size_t whole) {
    unsigned long long says = ZSTD_getFrameContentSize(src, n);
    if (says != whole && says != ZSTD_CONTENTSIZE_UNKNOWN) return false;
    if (ZSTD_findFrameCompressedSize(src, n) != n) return false; /* the format allows only one frame */
    size_t got = ZSTD_decompressDCtx((ZSTD_DCtx *)(void *)r, dst, whole, src, n);
    return !ZSTD_isError(got) && got == whole;
}

#else

bool qsf_zstd_built(void) { return false; }

static int lacking(QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "this build was configured without zstd");
}

int qsf_zstd_compress(const void *src, size_t n, void *dst, size_t cap, size_t *out, QsfErr *err) {
    (void)src, (void)n, (void)dst, (void)cap;
    *out = 0;
    return lacking(err);
}

int qsf_zstd_open(QsfZstdReader **out, QsfErr *err) {
    *out = NULL;
    return lacking(err);
}

void qsf_zstd_close(QsfZstdReader *r) { (void)r; }

bool qsf_zstd_decompress(QsfZstdReader *r, const void *src, size_t n, void *dst, size_t whole) {
    (void)r, (void)src, (void)n, (void)dst, (void)whole;
    return false;
}

#endif
