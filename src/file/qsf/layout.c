/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fixed-size pieces of a QSF file, each described by a table: offset, width and valid values of every
 * field. */
#include "src/file/qsf/layout.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "src/base/bytes.h"
#include "src/base/crc32.h"
#include "src/file/qsf/codec.h"

#define DIM_MAX (1u << 26) /* far above any model; products of two fit 64 bits */

enum { PLAIN, OR_META, CODE, TENSOR_CODE, REAL, ONLY_ZERO };

typedef struct Field {
    uint8_t at, bytes; /* in the file; as wide in the struct */
    uint16_t member;   /* offset in the struct */
    uint8_t kind;
    uint64_t least, most;
    const char *what;
} Field;

#define ANY UINT64_MAX
#define F(at, bytes, st, member, kind, least, most, what) \
    { at, bytes, offsetof(st, member), kind, least, most, what }
#define H(at, bytes, member, kind, least, most, what) \
    F(at, bytes, QsfFileHeader, member, kind, least, most, what)

static const Field header_fields[] = {
    H(4, 4, version, PLAIN, QSFF_VERSION, QSFF_VERSION, "format version"),
    H(8, 4, bytes, PLAIN, QSFF_HEAD_BYTES, QSFF_HEAD_BYTES, "header size"),
    H(12, 4, arch, PLAIN, 0, QSFF_CUSTOM, "architecture"),
    H(16, 4, n_layers, PLAIN, 1, QSFF_LAYERS_MAX, "number of layers"),
    H(20, 4, hidden, PLAIN, 1, DIM_MAX, "hidden dimension"),
    H(24, 4, n_heads, PLAIN, 0, DIM_MAX, "number of attention heads"),
    H(28, 4, n_kv_heads, PLAIN, 0, DIM_MAX, "number of KV heads"),
    H(32, 4, n_vocab, PLAIN, 1, DIM_MAX, "vocabulary size"),
    H(36, 4, n_ctx, PLAIN, 1, UINT32_MAX, "longest sequence"),
    H(40, 4, ffn, PLAIN, 0, DIM_MAX, "intermediate dimension"),
    H(44, 4, head_dim, PLAIN, 0, DIM_MAX, "head dimension"),
    H(48, 1, code, CODE, 0, 0, "quantization type"),
    H(49, 1, act, OR_META, 0, QSFF_RELU, "activation type"),
    H(50, 1, norm, OR_META, 0, QSFF_RMS_NORM, "normalization type"),
    H(51, 1, pos, OR_META, 0, QSFF_ALIBI, "position encoding"),
    H(52, 4, rope_theta, REAL, 0, 0, "RoPE theta"),
    H(56, 8, index_off, PLAIN, QSFF_HEAD_BYTES, INT64_MAX, "layer index offset"),
    H(64, 8, embed_off, PLAIN, QSFF_HEAD_BYTES, INT64_MAX, "embedding offset"),
    H(72, 8, final_off, PLAIN, QSFF_HEAD_BYTES, INT64_MAX, "final section offset"),
    H(80, 4, bos, PLAIN, 0, UINT32_MAX, "BOS token"),
    H(84, 4, eos, PLAIN, 0, UINT32_MAX, "EOS token"),
    H(88, 4, pad, PLAIN, 0, UINT32_MAX, "PAD token"),
    H(92, 4, size_low, PLAIN, 0, UINT32_MAX, "file size"),
    H(100, 8, meta_off, PLAIN, 0, INT64_MAX, "metadata offset"),
    H(108, 8, meta_bytes, PLAIN, 0, INT64_MAX, "metadata size"),
    H(116, 4, meta_crc, PLAIN, 0, UINT32_MAX, "metadata checksum"),
    H(120, 4, block, PLAIN, 0, 256, "block size"),
    H(124, 4, flags, PLAIN, 0, UINT32_MAX, "flags"),
};

static const Field index_fields[] = {
    F(0, 8, QsfIndexEntry, off, PLAIN, QSFF_HEAD_BYTES, INT64_MAX, "layer offset"),
    F(8, 4, QsfIndexEntry, bytes, PLAIN, 0, UINT32_MAX, "layer size in the file"),
    F(12, 4, QsfIndexEntry, whole_bytes, PLAIN, 0, UINT32_MAX, "decompressed layer size"),
    F(16, 1, QsfIndexEntry, code, CODE, 0, 0, "quantization type of a layer"),
    F(17, 1, QsfIndexEntry, compression, PLAIN, 0, QSFF_ZSTD, "compression of a layer"),
    F(18, 2, QsfIndexEntry, n_tensors, PLAIN, 0, UINT16_MAX, "number of tensors in a layer"),
    F(20, 4, QsfIndexEntry, crc, PLAIN, 0, UINT32_MAX, "checksum of a layer"),
    F(24, 4, QsfIndexEntry, importance, REAL, 0, 0, "importance of a layer"),
    F(28, 4, QsfIndexEntry, reserved, ONLY_ZERO, 0, 0, "reserved part of an index entry"),
};

static const Field embed_fields[] = {
    F(0, 1, QsfEmbedHeader, code, TENSOR_CODE, 0, 0, "quantization type of the embedding"),
    F(1, 1, QsfEmbedHeader, layout, PLAIN, 0, 1, "layout of the embedding"),
    F(2, 2, QsfEmbedHeader, reserved, ONLY_ZERO, 0, 0, "reserved part of the embedding header"),
    F(4, 4, QsfEmbedHeader, bytes, PLAIN, 1, UINT32_MAX, "embedding size"),
    F(8, 4, QsfEmbedHeader, rows, PLAIN, 1, DIM_MAX, "number of embedding vectors"),
    F(12, 4, QsfEmbedHeader, cols, PLAIN, 1, DIM_MAX, "embedding dimension"),
};

static const Field tensor_fields[] = {
    F(0, 4, QsfTensorHeader, type, PLAIN, 0, UINT32_MAX, "tensor type"),
    F(4, 4, QsfTensorHeader, rows, PLAIN, 1, UINT32_MAX, "rows of a tensor"),
    F(8, 4, QsfTensorHeader, cols, PLAIN, 1, DIM_MAX, "columns of a tensor"),
    F(12, 1, QsfTensorHeader, code, TENSOR_CODE, 0, 0, "quantization type of a tensor"),
    F(13, 1, QsfTensorHeader, layout, PLAIN, 0, QSFF_GROUPS_BY_USE, "layout of a tensor"),
    F(14, 2, QsfTensorHeader, reserved, ONLY_ZERO, 0, 0, "reserved part of a tensor header"),
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Get and set a member of the struct as a number. */
static uint64_t get(const void *st, const Field *f) {
    const unsigned char *p = (const unsigned char *)st + f->member;
    uint64_t v8;
    uint32_t v4;
    uint16_t v2;
    switch (f->bytes) {
    case 8: memcpy(&v8, p, 8); return v8;
    case 4: memcpy(&v4, p, 4); return v4;
    case 2: memcpy(&v2, p, 2); return v2;
    default: return *p;
    }
}

static void set(void *st, const Field *f, uint64_t v) {
    unsigned char *p = (unsigned char *)st + f->member;
    const uint32_t v4 = (uint32_t)v;
    const uint16_t v2 = (uint16_t)v;
    switch (f->bytes) {
    case 8: memcpy(p, &v, 8); break;
    case 4: memcpy(p, &v4, 4); break;
    case 2: memcpy(p, &v2, 2); break;
    default: *p = (unsigned char)v; break;
    }
}

static void encode(const Field *f, size_t n, const void *st, unsigned char *b) {
    for (; n > 0; n--, f++) {
        uint64_t v = get(st, f);
        for (unsigned i = 0; i < f->bytes; i++) b[f->at + i] = (unsigned char)(v >> 8 * i);
    }
}

static bool known_code(uint64_t v) {
    uint32_t dtype;
    return v == QSFF_MIXED || qsf_code_dtype((uint8_t)v, 0, &dtype);
}

static bool finite_bits(uint64_t v) {
    uint32_t bits = (uint32_t)v;
    float x;
    memcpy(&x, &bits, sizeof x);
    return isfinite(x) && x >= 0.0f;
}

static bool allowed(const Field *f, uint64_t v) {
    switch (f->kind) {
    case OR_META: return v <= f->most || v == QSFF_BY_META;
    case CODE: return known_code(v);
    case TENSOR_CODE: return v == QSFF_LAYER_CODE || (v != QSFF_MIXED && known_code(v));
    case REAL: return finite_bits(v);
    case ONLY_ZERO: return v == 0;
    default: return v >= f->least && v <= f->most;
    }
}

static int refuse(const Field *f, uint64_t v, const char *path, uint64_t at, QsfErr *err) {
    if (f->kind == REAL)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: %s at byte offset %" PRIu64 " is not a finite positive number", path, f->what,
                           at);
    if (f->kind == PLAIN && f->most < UINT32_MAX)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: %s at byte offset %" PRIu64 " is %" PRIu64 ", expected %" PRIu64
                           " to %" PRIu64,
                           path, f->what, at, v, f->least, f->most);
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: %s at byte offset %" PRIu64 " is %" PRIu64
                       ", which QSF version 1 does not define",
                       path, f->what, at, v);
}

static int decode(const Field *f, size_t n, void *st, const unsigned char *b, const char *path, uint64_t at,
                  QsfErr *err) {
    for (; n > 0; n--, f++) {
        uint64_t v = 0;
        for (unsigned i = f->bytes; i > 0; i--) v = v << 8 | b[f->at + i - 1];
        if (!allowed(f, v)) return refuse(f, v, path, at + f->at, err);
        set(st, f, v);
    }
    return QSF_OK;
}

void qsf_file_header_encode(const QsfFileHeader *h, unsigned char b[QSFF_HEAD_BYTES]) {
    memset(b, 0, QSFF_HEAD_BYTES);
    memcpy(b, "QSF1", 4);
    encode(header_fields, COUNT(header_fields), h, b);
    uint32_t crc = qsf_crc32(0, b, QSFF_HEAD_CRC_AT);
    qsf_put_le32(b + QSFF_HEAD_CRC_AT, crc);
}

void qsf_index_entry_encode(const QsfIndexEntry *e, unsigned char b[QSFF_INDEX_BYTES]) {
    encode(index_fields, COUNT(index_fields), e, b);
}

void qsf_embed_header_encode(const QsfEmbedHeader *e, unsigned char b[QSFF_EMBED_BYTES]) {
    encode(embed_fields, COUNT(embed_fields), e, b);
}

void qsf_tensor_header_encode(const QsfTensorHeader *t, unsigned char b[QSFF_TENSOR_BYTES]) {
    encode(tensor_fields, COUNT(tensor_fields), t, b);
}

/* Checks flags and block size, whose valid values are not a range. */
static int check_extension(const QsfFileHeader *h, const char *path, QsfErr *err) {
    static const struct {
        uint32_t flag;
        const char *what;
    } refused[] = {
        { QSFF_CLUSTERS, "a clustered head, which this version cannot use" },
        { ~(QSFF_PAGES | QSFF_X16 | QSFF_CLUSTERS | QSFF_LINES),
          "features that QSF version 1 does not define" },
    };
    for (size_t i = 0; i < COUNT(refused); i++)
        if (h->flags & refused[i].flag)
            return qsf_err_set(err, QSF_E_MODEL, "%s: the flags 0x%" PRIX32 " at byte offset 124 declare %s",
                               path, h->flags, refused[i].what);
    if (h->block != 0 && h->block != 64 && h->block != 128 && h->block != 256)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the block size at byte offset 120 is %" PRIu32 ", expected 64, 128 or 256",
                           path, h->block);
    if ((h->meta_off == 0) != (h->meta_bytes == 0))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: metadata offset %" PRIu64 " at byte offset 100, but size %" PRIu64, path,
                           h->meta_off, h->meta_bytes);
    return QSF_OK;
}

/* Checks the special tokens and RoPE theta. */
static int check_values(const QsfFileHeader *h, const char *path, QsfErr *err) {
    const uint32_t token[] = { h->bos, h->eos, h->pad };
    for (unsigned i = 0; i < 3; i++)
        if (token[i] >= h->n_vocab && token[i] != QSFF_NO_TOKEN)
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: the token at byte offset %u is %" PRIu32
                               ", but the vocabulary has %" PRIu32,
                               path, 80 + 4 * i, token[i], h->n_vocab);
    if (h->pos == QSFF_ROPE && !(h->rope_theta > 0.0f))
        return qsf_err_set(err, QSF_E_MODEL, "%s: RoPE theta at byte offset 52 is 0", path);
    return QSF_OK;
}

int qsf_file_header_decode(QsfFileHeader *h, const unsigned char b[QSFF_HEAD_BYTES], const char *path,
                           QsfErr *err) {
    *h = (QsfFileHeader){ 0 };
    if (memcmp(b, "QSF1", 4) != 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: is not a QSF file (no magic at byte offset 0)", path);
    uint32_t version = qsf_get_le32(b + 4), crc = qsf_crc32(0, b, QSFF_HEAD_CRC_AT);
    if (version != QSFF_VERSION) /* before the checksum, which a different version may have elsewhere */
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: is QSF version %" PRIu32 " (byte offset 4), which is not supported (1 is)",
                           path, version);
    if (crc != qsf_get_le32(b + QSFF_HEAD_CRC_AT))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the header is damaged: checksum %08" PRIX32
                           " at byte offset 96, bytes 0 to 95 have %08" PRIX32,
                           path, qsf_get_le32(b + QSFF_HEAD_CRC_AT), crc);
    int rc = decode(header_fields, COUNT(header_fields), h, b, path, 0, err);
    if (rc == QSF_OK) rc = check_extension(h, path, err);
    return rc == QSF_OK ? check_values(h, path, err) : rc;
}

/* Rejects sizes that are impossible for a codec. */
static int check_compressed(const QsfIndexEntry *e, const char *path, uint64_t at, QsfErr *err) {
    const char *name = qsf_codec_name(e->compression);
    if (!qsf_codec_built(e->compression))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: a layer is compressed with %s (byte offset %" PRIu64
                           "), which this build was configured without",
                           path, name, at + 17);
    if (e->bytes >= QSFF_TENSOR_BYTES && e->bytes < e->whole_bytes &&
        e->whole_bytes <= qsf_codec_max_bytes(e->compression) &&
        e->whole_bytes <= (uint64_t)e->bytes * QSF_COMPRESS_RATIO)
        return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: a layer compressed with %s has impossible sizes: %" PRIu32 " bytes, %" PRIu32
                       " decompressed"
                       " (byte offset %" PRIu64 ")",
                       path, name, e->bytes, e->whole_bytes, at + 8);
}

int qsf_index_entry_decode(QsfIndexEntry *e, const unsigned char b[QSFF_INDEX_BYTES], const char *path,
                           uint64_t at, QsfErr *err) {
    int rc = decode(index_fields, COUNT(index_fields), e, b, path, at, err);
    if (rc == QSF_OK && e->compression != QSFF_STORED) rc = check_compressed(e, path, at, err);
    if (rc != QSF_OK) return rc;
    if (e->compression == QSFF_STORED && e->bytes != e->whole_bytes)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: an uncompressed layer has two different sizes, %" PRIu32 " and %" PRIu32
                           " (byte offset %" PRIu64 ")",
                           path, e->bytes, e->whole_bytes, at + 8);
    if (e->n_tensors == 0 && e->bytes != 0)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: a layer without tensors has %" PRIu32 " bytes (byte offset %" PRIu64 ")",
                           path, e->bytes, at + 8);
    if (e->whole_bytes / QSFF_TENSOR_BYTES < e->n_tensors)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: a layer of %" PRIu32 " bytes cannot hold %u tensors (byte offset %" PRIu64
                           ")",
                           path, e->whole_bytes, e->n_tensors, at + 18);
    return QSF_OK;
}

/* The rows of an embedding are looked up one at a time, so they cannot be interleaved. */
static int check_embed_layout(uint8_t layout, const char *path, uint64_t at, QsfErr *err) {
    if (layout == QSFF_ROWS) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the rows of the embedding are interleaved by 16 (layout 1 at byte offset %" PRIu64
                       "), which is not supported for an embedding",
                       path, at);
}

int qsf_embed_header_decode(QsfEmbedHeader *e, const unsigned char b[QSFF_EMBED_BYTES], const char *path,
                            uint64_t at, QsfErr *err) {
    int rc = decode(embed_fields, COUNT(embed_fields), e, b, path, at, err);
    if (rc == QSF_OK && e->code == QSFF_LAYER_CODE) rc = refuse(embed_fields, e->code, path, at, err);
    return rc == QSF_OK ? check_embed_layout(e->layout, path, at + 1, err) : rc;
}

int qsf_tensor_header_decode(QsfTensorHeader *t, const unsigned char b[QSFF_TENSOR_BYTES], const char *path,
                             uint64_t at, QsfErr *err) {
    return decode(tensor_fields, COUNT(tensor_fields), t, b, path, at, err);
}

uint32_t qsf_file_header_crc100(const unsigned char b[QSFF_HEAD_BYTES]) {
    return qsf_crc32(qsf_crc32(0, b + 100, 16), b + 120, 8);
}
