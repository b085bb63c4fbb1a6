/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compression and decompression by codec code. */
#include "src/file/qsf/codec.h"

#include "src/base/lz.h"
#include "src/file/qsf/layout.h"

_Static_assert(QSF_COMPRESS_RATIO == QSF_LZ_RATIO, "LZ4 has the maximum ratio");

static const struct {
    const char *name;
    uint64_t most;
} table[QSFF_COMPRESSIONS] = {
    [QSFF_STORED] = { "none", UINT64_MAX },
    [QSFF_LZ4] = { "lz4", QSF_LZ_MAX },
    [QSFF_LZ4_HC] = { "lz4hc", QSF_LZ_MAX },
    [QSFF_ZSTD] = { "zstd", QSFF_LONG - 1 },
};

const char *qsf_codec_name(uint8_t how) { return table[how].name; }
uint64_t qsf_codec_max_bytes(uint8_t how) { return table[how].most; }
bool qsf_codec_built(uint8_t how) { return how != QSFF_ZSTD || qsf_zstd_built(); }

int qsf_codec_compress(uint8_t how, const void *src, size_t n, void *dst, size_t cap, size_t *out,
                       QsfErr *err) {
    *out = 0;
    if (n > table[how].most) return QSF_OK;
    int rc = how == QSFF_ZSTD ? qsf_zstd_compress(src, n, dst, cap, out, err)
                              : qsf_lz_compress(src, n, how == QSFF_LZ4_HC, dst, cap, out, err);
    if (n / QSF_COMPRESS_RATIO >= *out) *out = 0; /* happens with zstd on data that is all zeros */
    return rc;
}

int qsf_unpacker_need(QsfUnpacker *u, uint8_t how, QsfErr *err) {
    return how == QSFF_ZSTD && u->zstd == NULL ? qsf_zstd_open(&u->zstd, err) : QSF_OK;
}

void qsf_unpacker_close(QsfUnpacker *u) {
    qsf_zstd_close(u->zstd);
    u->zstd = NULL;
}

bool qsf_unpack(const QsfUnpacker *u, uint8_t how, const void *src, size_t n, void *dst, size_t whole) {
    return how == QSFF_ZSTD ? qsf_zstd_decompress(u->zstd, src, n, dst, whole)
                            : qsf_lz_decompress(src, n, dst, whole);
}
