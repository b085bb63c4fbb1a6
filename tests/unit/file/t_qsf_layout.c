/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fixed-size records of QSF files compared with bytes written by hand, and every field of them at its
 * limits. */
#include "tests/harness/qsf_test.h"

#include "src/base/crc32.h"
#include "src/file/dtype.h"
#include "src/file/qsf/codec.h"
#include "src/file/qsf/layout.h"
#include "src/file/qsf/names.h"

static const QsfFileHeader header = {
    .version = 1,
    .bytes = 128,
    .arch = QSFF_LLAMA,
    .n_layers = 2,
    .hidden = 64,
    .n_heads = 4,
    .n_kv_heads = 2,
    .n_vocab = 300,
    .n_ctx = 256,
    .ffn = 128,
    .head_dim = 16,
    .code = QSFF_8BIT,
    .act = QSFF_SILU,
    .norm = QSFF_RMS_NORM,
    .pos = QSFF_ROPE,
    .rope_theta = 10000.0f,
    .index_off = 0x1000,
    .embed_off = 0x4000,
    .final_off = 0x123456789A000,
    .bos = 1,
    .eos = 2,
    .pad = QSFF_NO_TOKEN,
    .size_low = 0x89ABCDEF,
    .meta_off = 0x2000,
    .meta_bytes = 0x1234,
    .meta_crc = 0xDEADBEEF,
    .block = 64,
    .flags = QSFF_PAGES | QSFF_LINES,
};

/* The layout byte by byte; 96-99 is the CRC32 of the 96 bytes before, computed by zlib. */
static const unsigned char header_bytes[128] = {
    /* clang-format off */
    0x51, 0x53, 0x46, 0x31, 1, 0, 0, 0, 128, 0, 0, 0, 1, 0, 0, 0,           /* magic, version, size, llama */
    2, 0, 0, 0, 64, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0,                        /* layers, hidden, heads, KV heads */
    0x2C, 1, 0, 0, 0, 1, 0, 0, 128, 0, 0, 0, 16, 0, 0, 0,                   /* vocabulary, context, FFN, head */
    6, 1, 1, 1, 0x00, 0x40, 0x1C, 0x46, 0, 0x10, 0, 0, 0, 0, 0, 0,          /* codes, theta, index */
    0, 0x40, 0, 0, 0, 0, 0, 0, 0x00, 0xA0, 0x89, 0x67, 0x45, 0x23, 0x01, 0, /* embedding, final section */
    1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xEF, 0xCD, 0xAB, 0x89, /* BOS, EOS, no PAD, size */
    0x36, 0x8B, 0x13, 0x81, 0, 0x20, 0, 0, 0, 0, 0, 0, 0x34, 0x12, 0, 0,    /* metadata offset, size */
    0, 0, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE, 64, 0, 0, 0, 9, 0, 0, 0,            /* its CRC, block, flags */
    /* clang-format on */
};

static void test_crc(void **state) {
    (void)state;
    assert_int_equal(qsf_crc32(0, "123456789", 9), 0xCBF43926); /* the check value of this CRC */
    assert_int_equal(qsf_crc32(qsf_crc32(0, "1234", 4), "56789", 5), 0xCBF43926);
    assert_int_equal(qsf_crc32(0xCBF43926, NULL, 0), 0xCBF43926);
    assert_int_equal(qsf_crc32(0, "", 0), 0);
}

static void test_header_bytes(void **state) {
    (void)state;
    unsigned char b[128];
    QsfFileHeader back;
    QsfErr e = { 0 };
    qsf_file_header_encode(&header, b);
    assert_memory_equal(b, header_bytes, sizeof b);
    qsf_test_expect_ok(qsf_file_header_decode(&back, header_bytes, "x.qsf", &e), &e);
    qsf_file_header_encode(&back, b);
    assert_memory_equal(b, header_bytes, sizeof b);
    assert_int_equal(back.final_off, header.final_off);
    assert_int_equal(back.n_ctx, 256);
    assert_int_equal(back.pad, QSFF_NO_TOKEN);
    assert_true(back.rope_theta > 9999.0f && back.rope_theta < 10001.0f);
    assert_int_equal(qsf_file_header_crc100(b), 0x3C7C6C65); /* by zlib, of bytes 100-115 and 120-127 */
}

static void put32(unsigned char *b, uint32_t v) {
    for (int i = 0; i < 4; i++) b[i] = (unsigned char)(v >> 8 * i);
}

/* The header with bytes [at, at + n) replaced, optionally with a correct checksum. */
static int decode_changed(unsigned at, unsigned n, uint64_t v, bool fix, QsfErr *e) {
    unsigned char b[128];
    QsfFileHeader h;
    memcpy(b, header_bytes, sizeof b);
    for (unsigned i = 0; i < n; i++) b[at + i] = (unsigned char)(v >> 8 * i);
    if (fix) put32(b + 96, qsf_crc32(0, b, 96));
    qsf_err_clear(e);
    return qsf_file_header_decode(&h, b, "x.qsf", e);
}

static void test_header_damage(void **state) {
    (void)state;
    QsfErr e = { 0 };
    for (unsigned at = 0; at < 100; at++) { /* any bit: detected by the checksum, or before */
        assert_int_equal(decode_changed(at, 1, header_bytes[at] ^ 1u << at % 8, false, &e), QSF_E_MODEL);
        assert_non_null(strstr(e.msg, "x.qsf: "));
        assert_non_null(strstr(e.msg, "byte offset"));
    }
    static const struct {
        unsigned at, bytes;
        uint64_t v;
        const char *part;
    } bad[] = {
        { 0, 4, 0, "no magic" },
        { 4, 4, 0, "QSF version 0" },
        { 4, 4, UINT32_MAX, "QSF version 4294967295" },
        { 8, 4, 0, "header size at byte offset 8 is 0, expected 128 to 128" },
        { 8, 4, UINT32_MAX, "header size at byte offset 8" },
        { 12, 4, 5, "architecture at byte offset 12" },
        { 16, 4, 0, "number of layers at byte offset 16" },
        { 16, 4, 4097, "number of layers at byte offset 16" },
        { 20, 4, 0, "hidden dimension at byte offset 20" },
        { 20, 4, UINT32_MAX, "hidden dimension at byte offset 20" },
        { 24, 4, UINT32_MAX, "attention heads at byte offset 24" },
        { 28, 4, UINT32_MAX, "KV heads at byte offset 28" },
        { 32, 4, 0, "vocabulary size at byte offset 32" },
        { 32, 4, UINT32_MAX, "vocabulary size at byte offset 32" },
        { 36, 4, 0, "longest sequence at byte offset 36" },
        { 40, 4, UINT32_MAX, "intermediate dimension at byte offset 40" },
        { 44, 4, UINT32_MAX, "head dimension at byte offset 44" },
        { 48, 1, 17, "quantization type at byte offset 48 is 17" },
        { 48, 1, 255, "quantization type at byte offset 48" },
        { 48, 1, 64 + 4, "quantization type at byte offset 48" },
        { 49, 1, 3, "activation type at byte offset 49" },
        { 50, 1, 2, "normalization type at byte offset 50" },
        { 51, 1, 3, "position encoding at byte offset 51" },
        { 52, 4, 0, "RoPE theta at byte offset 52 is 0" },
        { 52, 4, 0x7FC00000, "RoPE theta at byte offset 52" },
        { 52, 4, 0xBF800000, "RoPE theta at byte offset 52" },
        { 56, 8, 0, "layer index offset at byte offset 56" },
        { 56, 8, UINT64_MAX, "layer index offset at byte offset 56" },
        { 64, 8, 127, "embedding offset at byte offset 64" },
        { 72, 8, UINT64_MAX, "final section offset at byte offset 72" },
        { 80, 4, 300, "token at byte offset 80 is 300" },
        { 84, 4, UINT32_MAX - 1, "token at byte offset 84" },
        { 88, 4, 301, "token at byte offset 88" },
        { 100, 8, UINT64_MAX, "metadata offset at byte offset 100" },
        { 100, 8, 0, "metadata offset 0 at byte offset 100" },
        { 108, 8, 0, "size 0" },
        { 120, 4, 1, "block size at byte offset 120 is 1" },
        { 120, 4, 257, "block size at byte offset 120" },
        { 124, 4, 4, "a clustered head, which this version cannot use" },
        { 124, 4, 16, "at byte offset 124 declare features that QSF version 1 does not define" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(decode_changed(bad[i].at, bad[i].bytes, bad[i].v, true, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, bad[i].part);
    }
    for (unsigned at = 49; at < 52; at++) assert_int_equal(decode_changed(at, 1, 0xFF, true, &e), QSF_OK);
    assert_int_equal(decode_changed(48, 1, 64 + 12, true, &e), QSF_OK);
    assert_int_equal(decode_changed(124, 4, 2, true, &e), QSF_OK);
    assert_int_equal(decode_changed(28, 4, 0, true, &e), QSF_OK);
    assert_int_equal(decode_changed(80, 4, QSFF_NO_TOKEN, true, &e), QSF_OK);
    assert_int_equal(decode_changed(120, 4, 256, true, &e), QSF_OK);
}

static const unsigned char index_bytes[32] = {
    /* clang-format off */
    0x00, 0x50, 0, 0, 1, 0, 0, 0, 0x10, 0x32, 0x54, 0x76, 0x10, 0x32, 0x54, 0x76, /* offset, both sizes */
    5, 0, 9, 0, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0x3F, 0, 0, 0, 0,                /* code, stored, tensors, CRC, 0.5 */
    /* clang-format on */
};

static void test_index_bytes(void **state) {
    (void)state;
    const QsfIndexEntry entry = { .off = 0x100005000,
                                  .bytes = 0x76543210,
                                  .whole_bytes = 0x76543210,
                                  .code = QSFF_MIXED,
                                  .compression = QSFF_STORED,
                                  .n_tensors = 9,
                                  .crc = 0x12345678,
                                  .importance = 0.5f };
    unsigned char b[32] = { 0 };
    QsfIndexEntry back;
    QsfErr e = { 0 };
    qsf_index_entry_encode(&entry, b);
    assert_memory_equal(b, index_bytes, sizeof b);
    qsf_test_expect_ok(qsf_index_entry_decode(&back, b, "x.qsf", 4096, &e), &e);
    assert_memory_equal(&back, &entry, sizeof back);
    static const struct {
        unsigned at, bytes;
        uint64_t v;
        const char *part;
    } bad[] = {
        /* clang-format off */
        { 0, 8, 0, "layer offset at byte offset 4096 is 0" },
        { 0, 8, UINT64_MAX, "layer offset at byte offset 4096" },
        { 8, 4, 0, "two different sizes" },
        { 8, 4, UINT32_MAX, "two different sizes" },
        { 8, 8, 0x0000008F0000008F, "a layer of 143 bytes cannot hold 9 tensors (byte offset 4114)" },
        { 12, 4, 15, "two different sizes" },
        { 16, 1, 255, "quantization type of a layer at byte offset 4112" },
        { 17, 1, 1, "compressed with lz4 has impossible sizes: 1985229328 bytes, 1985229328 decompressed (byte offset 4104)" },
        { 17, 1, 2, "compressed with lz4hc" },
        { 17, 1, 3, "compressed with zstd" },
        { 17, 1, 4, "compression of a layer at byte offset 4113 is 4" },
        { 18, 2, 0, "a layer without tensors has 1985229328 bytes (byte offset 4104)" },
        { 24, 4, 0x7F800000, "importance of a layer at byte offset 4120" },
        { 28, 4, 1, "reserved part of an index entry at byte offset 4124" },
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(b, index_bytes, sizeof b);
        for (unsigned k = 0; k < bad[i].bytes; k++) b[bad[i].at + k] = (unsigned char)(bad[i].v >> 8 * k);
        qsf_err_clear(&e);
        assert_int_equal(qsf_index_entry_decode(&back, b, "x.qsf", 4096, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, bad[i].part);
    }
}

/* Sizes of compressed layers, at both ends of the valid range. */
static void test_compressed_entries(void **state) {
    (void)state;
    static const struct {
        uint8_t how;
        uint32_t bytes, whole;
        bool ok;
    } rows[] = {
        { 1, 1000, 1001, true },
        { 1, 1000, 1000, false },
        { 2, 1000, 255000, true },
        { 2, 1000, 255001, false },
        { 3, 1000, 255000, true },
        { 3, 1000, 255001, false },
        { 1, 0x70000000, 0x7E000000, true },
        { 1, 0x70000000, 0x7E000001, false },
        { 3, 0x70000000, 0xFFFFFFFE, true },
        { 3, 0x70000000, 0xFFFFFFFF, false },
        { 1, 15, 1000, false },
        { 1, 0xFFFFFFFF, 0xFFFFFFFF, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const QsfIndexEntry entry = { .off = 4096,
                                      .bytes = rows[i].bytes,
                                      .whole_bytes = rows[i].whole,
                                      .code = QSFF_MIXED,
                                      .compression = rows[i].how,
                                      .n_tensors = 9 };
        unsigned char b[32] = { 0 };
        QsfIndexEntry back;
        QsfErr e = { 0 };
        qsf_index_entry_encode(&entry, b);
        int rc = qsf_index_entry_decode(&back, b, "x.qsf", 4096, &e);
        if (!qsf_codec_built(rows[i].how))
            qsf_test_expect_err(&e, QSF_E_MODEL, "which this build was configured without");
        else if (rc != (rows[i].ok ? QSF_OK : QSF_E_MODEL))
            fail_msg("row %zu: %s", i, e.msg);
    }
}

static void test_embed_and_tensor_bytes(void **state) {
    (void)state;
    static const unsigned char embed[16] = { 76, 0, 0, 0, 0x00, 0x10, 0x02, 0, 0x2C, 1, 0, 0, 64, 0, 0, 0 };
    static const unsigned char tensor[16] = { 6, 0, 0, 0, 64, 0, 0, 0, 0x00, 0x38, 0, 0, 3, 0, 0, 0 };
    const QsfEmbedHeader em = { .code = 64 + 12, .bytes = 0x21000, .rows = 300, .cols = 64 };
    const QsfTensorHeader tn = { .type = QSFT_DOWN, .rows = 64, .cols = 14336, .code = QSFF_4BIT };
    QsfEmbedHeader em2;
    QsfTensorHeader tn2;
    unsigned char b[16];
    QsfErr e = { 0 };
    qsf_embed_header_encode(&em, b);
    assert_memory_equal(b, embed, sizeof b);
    qsf_test_expect_ok(qsf_embed_header_decode(&em2, embed, "x.qsf", 0, &e), &e);
    assert_memory_equal(&em, &em2, sizeof em);
    qsf_tensor_header_encode(&tn, b);
    assert_memory_equal(b, tensor, sizeof b);
    qsf_test_expect_ok(qsf_tensor_header_decode(&tn2, tensor, "x.qsf", 0, &e), &e);
    assert_memory_equal(&tn, &tn2, sizeof tn);
    memcpy(b, tensor, sizeof b);
    b[13] = 1;
    qsf_test_expect_ok(qsf_tensor_header_decode(&tn2, b, "x.qsf", 1000, &e), &e);
    assert_int_equal(tn2.layout, QSFF_GROUPS);
    b[13] = 2;
    qsf_test_expect_ok(qsf_tensor_header_decode(&tn2, b, "x.qsf", 1000, &e), &e);
    assert_int_equal(tn2.layout, QSFF_GROUPS_BY_USE);
    b[13] = 3;
    assert_int_equal(qsf_tensor_header_decode(&tn2, b, "x.qsf", 1000, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "layout of a tensor at byte offset 1013 is 3, expected 0 to 2");
    qsf_err_clear(&e);
    b[13] = 0;
    b[15] = 1;
    assert_int_equal(qsf_tensor_header_decode(&tn2, b, "x.qsf", 1000, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "byte offset 1014");
    qsf_err_clear(&e);
    memcpy(b, embed, sizeof b);
    b[1] = 1;
    assert_int_equal(qsf_embed_header_decode(&em2, b, "x.qsf", 1000, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "embedding are interleaved by 16 (layout 1 at byte offset 1001)");
    qsf_err_clear(&e);
    memcpy(b, embed, sizeof b);
    b[0] = 0xFF;
    assert_int_equal(qsf_embed_header_decode(&em2, b, "x.qsf", 0, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "quantization type of the embedding at byte offset 0 is 255");
}

/* Codes, their types, and their sizes: bits per element. */
static void test_codes(void **state) {
    (void)state;
    static const struct {
        uint8_t code;
        uint32_t block, dtype;
        uint64_t bytes; /* of 2 rows of 300 columns */
    } rows[] = {
        { 0, 0, QK_GGML_QSF2, 2 * 5 * 20 },
        { 1, 64, QK_GGML_QSF2, 2 * 5 * 20 },
        { 1, 128, QK_GGML_QSF2 + 0x100, 2 * 3 * 36 },
        { 1, 256, QK_GGML_QSF2 + 0x200, 2 * 2 * 68 },
        { 2, 64, QK_GGML_QSF3, 2 * 5 * 28 },
        { 2, 256, QK_GGML_QSF3 + 0x200, 2 * 2 * 100 },
        { 3, 64, QK_GGML_QSF4, 2 * 5 * 36 },
        { 3, 128, QK_GGML_QSF4 + 0x100, 2 * 3 * 68 },
        { 4, 64, QK_GGML_QSFT, 2 * 5 * 18 },
        { 4, 256, QK_GGML_QSFT + 0x200, 2 * 2 * 66 },
        { 6, 256, 8, 2 * 10 * 34 },
        { 7, 0, 1, 2 * 300 * 2 },
        { 8, 0, 0, 2 * 300 * 4 },
        { 9, 0, 30, 2 * 300 * 2 },
        { 64 + 12, 0, 12, 2 * 2 * 144 },
        { 64 + 36, 0, 36, 2 * 3 * 32 + 32 },
        { 10, 0, QK_GGML_QSB2, 2 * 2 * 80 },
        { 11, 128, QK_GGML_QSB3, 2 * 2 * 112 },
        { 12, 256, QK_GGML_QSB4, 2 * 2 * 144 },
        { 13, 0, QK_GGML_I2_256, 2 * 2 * 64 },
        { 14, 0, QK_GGML_I2_32, 2 * 10 * 10 },
        { 15, 0, QK_GGML_F8_E4M3, 2 * 300 },
        { 16, 0, QK_GGML_F8_E5M2, 2 * 300 },
        { 64 + 42, 0, 42, 2 * 5 * 18 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t dtype;
        uint64_t bytes;
        uint8_t code;
        assert_true(qsf_code_dtype(rows[i].code, rows[i].block, &dtype));
        assert_int_equal(dtype, rows[i].dtype);
        assert_non_null(qsf_dtype(dtype));
        assert_true(qsf_code_bytes(dtype, 2, 300, &bytes));
        assert_int_equal(bytes, rows[i].bytes);
        assert_true(qsf_code_of_dtype(dtype, &code));
        assert_int_equal(code, rows[i].code == 0 ? 1 : rows[i].code);
    }
    uint32_t dtype;
    for (unsigned c = 17; c < 64; c++) assert_false(qsf_code_dtype((uint8_t)c, 0, &dtype));
    assert_false(qsf_code_dtype(QSFF_MIXED, 0, &dtype));
    assert_false(qsf_code_dtype(QSFF_LAYER_CODE, 0, &dtype));
    assert_false(qsf_code_dtype(200, 0, &dtype));
}

static void test_names(void **state) {
    (void)state;
    uint32_t type, layer;
    for (uint32_t t = 0; t < QSFT_N; t++) {
        char name[96];
        if (t == QSFT_SINKS || t == QSFT_OUTLIERS || t == QSFT_NAMED) continue;
        bool in = qsf_tensor_type_in_layer(t);
        assert_true(in != qsf_tensor_type_in_final(t));
        (void)snprintf(name, sizeof name, "%s%s", in ? "blk.31." : "", qsf_tensor_type_name(t));
        assert_true(qsf_tensor_type_of(name, &type, &layer));
        assert_int_equal(type, t);
        assert_int_equal(layer, in ? 31 : 0);
    }
    assert_null(qsf_tensor_type_name(QSFT_N));
    assert_true(qsf_tensor_type_of("token_embd.weight", &type, &layer));
    assert_int_equal(type, QSFT_EMBED);
    assert_true(qsf_tensor_type_of("blk.0.ffn_down.bias", &type, &layer));
    assert_int_equal(type, QSFT_FFN_BIASES);
    static const char *const wrong[] = { "blk.0.output.weight",
                                         "attn_q.weight",
                                         "blk.00.attn_q.weight",
                                         "blk..attn_q.weight",
                                         "blk.0.outliers",
                                         "outliers",
                                         "",
                                         "blk.1",
                                         "blk.99999999999.attn_q.weight" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(qsf_tensor_type_of(wrong[i], &type, &layer));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_header_bytes),
        cmocka_unit_test(test_header_damage),
        cmocka_unit_test(test_index_bytes),
        cmocka_unit_test(test_compressed_entries),
        cmocka_unit_test(test_embed_and_tensor_bytes),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
