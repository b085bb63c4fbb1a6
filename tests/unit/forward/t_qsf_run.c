/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model converted to QSF gives the same results as before, bit for bit, pinned and streamed. */
#include "tests/harness/qsf_test.h"

#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/gguf_edit.h"
#include "tests/harness/qsf_image.h"
#include "tests/harness/qsf_made.h"
#include "tests/harness/rig.h"

enum { N_TOKENS = 12 };

static void carry(const char *from, const char *to, uint32_t flags, uint8_t press) {
    const QsfPackOptions how = { .flags = flags, .codec = press };
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, from, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_pack(s, to, &how, NULL, &e), &e);
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
}

/* Logits of the last position; the caller frees them. */
static float *logits_as(const QsfRigOptions *way, const char *path, uint32_t *n_vocab) {
    QsfRigOptions o = *way;
    QsfErr e = { 0 };
    QsfRig r;
    int32_t ids[N_TOKENS];
    o.path = path;
    o.level = QK_LEVEL_UNKNOWN;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &e), &e);
    *n_vocab = r.model.hp.n_vocab;
    for (int i = 0; i < N_TOKENS; i++) ids[i] = 3 + 17 * i % 200;
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, N_TOKENS, NULL, NULL, &e), &e);
    float *x = malloc(*n_vocab * sizeof *x);
    assert_non_null(x);
    memcpy(x, qsf_forward_logits(r.fwd), *n_vocab * sizeof *x);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return x;
}

/* The same (n) bits? */
static void expect_logits(const float *want, uint32_t n, const QsfRigOptions *way, const char *path) {
    uint32_t n_have;
    float *have = logits_as(way, path, &n_have);
    assert_int_equal(n, n_have);
    assert_memory_equal(want, have, n * sizeof *want);
    free(have);
}

static const QsfRigOptions resident;

static void test_same_logits(void **state) {
    (void)state;
    static const QsfTinySpec specs[] = { { .wtype = 0, .biases = true },
                                         { .wtype = 2, .tied = true, .rope_freqs = true },
                                         { .wtype = 8 } };
    const char *gguf = qsf_test_tmp("run.gguf"), *qsf = qsf_test_tmp("run.qsf");
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        uint32_t n;
        assert_int_equal(qsf_test_write_tiny_llama(gguf, &specs[i]), 0);
        carry(gguf, qsf, i == 0 ? 0 : QSFF_PAGES | QSFF_LINES, QSFF_STORED);
        float *want = logits_as(&resident, gguf, &n);
        for (int stream = 0; stream < 2; stream++)
            expect_logits(want, n, &(QsfRigOptions){ .stream = stream }, qsf);
        free(want);
    }
    unlink(gguf);
    unlink(qsf);
}

/* Compressed layers: all, none or one of them pinned, with one slot and with several, in chunks. */
static void test_compressed(void **state) {
    (void)state;
    static const QsfRigOptions ways[] = {
        { .threads = 2 },
        { .stream = true },
        { .threads = 2, .stream = true, .n_slots = 1, .slot_bytes = 1, .batch = 5 },
        { .stream = true, .n_slots = 4, .batch = 1 },
        { .pin_cap = 70000, .n_slots = 2, .batch = 3 },
        { .pin_cap = 70000, .n_slots = 1, .slot_bytes = 1 },
    };
    const QsfTinySpec spec = { .wtype = 1, .twins = true, .biases = true, .layers = 4 };
    const char *gguf = qsf_test_tmp("compressed.gguf"), *qsf = qsf_test_tmp("compressed.qsf");
    uint32_t n;
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    float *want = logits_as(&resident, gguf, &n);
    for (uint8_t how = QSFF_LZ4; how < QSFF_COMPRESSIONS; how++) {
        if (!qsf_codec_built(how)) continue;
        carry(gguf, qsf, how == QSFF_LZ4 ? 0 : QSFF_PAGES | QSFF_LINES, how);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) expect_logits(want, n, &ways[w], qsf);
    }
    free(want);
    unlink(gguf);
    unlink(qsf);
}

/* A header that names an activation, a norm or positions that the model does not have is refused, though the
 * checksums are right; codes that it has, and "see metadata", are not. */
static void test_header_codes(void **state) {
    static const struct {
        uint8_t at, code;
        const char *why; /* NULL: accepted */
    } rows[] = {
        { 49, 0xFF, NULL },
        { 49, 1, NULL }, /* SiLU */
        { 49, 0, "activation 0 at byte offset 49" },
        { 49, 2, "activation 2 at byte offset 49" },
        { 50, 0xFF, NULL },
        { 50, 0, "byte offset 50" },
        { 51, 0, "position encoding 0 at byte offset 51" },
        { 51, 2, "position encoding 2 at byte offset 51" },
    };
    char from[256], to[256];
    (void)state;
    snprintf(from, sizeof from, "%s", qsf_test_tmp("codes.gguf"));
    snprintf(to, sizeof to, "%s", qsf_test_tmp("codes.qsf"));
    assert_int_equal(qsf_test_write_tiny_mamba(from, 1), 0);
    carry(from, to, QSFF_PAGES | QSFF_LINES, QSFF_STORED);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfImage m = qsf_image_load(to);
        const QsfImageMap at = qsf_image_map(&m);
        const uint8_t before = m.b[rows[i].at];
        QsfErr e = { 0 };
        QsfModel model;
        QsfLedger ledger;
        m.b[rows[i].at] = rows[i].code;
        qsf_image_fix(&m, &at);
        assert_int_equal(qsf_test_write_file(to, m.b, m.len), 0);
        qsf_ledger_init(&ledger, 0);
        int rc = qsf_model_open(&model, to, NULL, &ledger, &e);
        if (rows[i].why == NULL) {
            qsf_test_expect_ok(rc, &e);
            qsf_model_close(&model);
        } else {
            qsf_test_expect_err(&e, QSF_E_MODEL, rows[i].why);
        }
        qsf_ledger_destroy(&ledger);
        m.b[rows[i].at] = before;
        qsf_image_fix(&m, &at);
        assert_int_equal(qsf_test_write_file(to, m.b, m.len), 0);
        free(m.b);
    }
    /* Positions that follow from a key are not compared with the program: some models have the
     * key and no RoPE. */
    char keyed[256];
    QsfErr e = { 0 };
    QsfModel model;
    QsfLedger ledger;
    snprintf(keyed, sizeof keyed, "%s", qsf_test_tmp("keyed.gguf"));
    assert_int_equal(
        qsf_test_edit_gguf(from, keyed, (const char *const[]){ "f32=mamba.rope.freq_base=10000", NULL }), 0);
    carry(keyed, to, QSFF_PAGES | QSFF_LINES, QSFF_STORED);
    QsfImage m = qsf_image_load(to);
    assert_int_equal(m.b[51], 1);
    free(m.b);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_model_open(&model, to, NULL, &ledger, &e), &e);
    qsf_model_close(&model);
    qsf_ledger_destroy(&ledger);
    unlink(keyed);
    unlink(from);
    unlink(to);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_header_codes),
                                        cmocka_unit_test(test_same_logits),
                                        cmocka_unit_test(test_compressed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
