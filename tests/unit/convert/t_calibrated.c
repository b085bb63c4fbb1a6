/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantization with a calibration: the search minimizes the calibrated error, choices depend on it, and
 * layers get their scores, which are stored in the file. */
#include "tests/harness/source_rig.h"

#include <math.h>

#include "src/convert/pack/pack.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/verify.h"
#include "tests/harness/gguf_build.h"

enum { HIDDEN = 64, FFN = 128, LAYERS = 2, WIDEST = 128 };

static char gguf[256], qsf[256], second[256];
static QsfCalibration scores;

/* All tensors but the embedding share a list. Every third channel is a hundred times as
 * important as the others. */
static void make_scores(QsfCalibration *c, bool equal) {
    QsfErr e = { 0 };
    QsfSource *s = open_ok(gguf);
    qsf_test_expect_ok(qsf_calibration_make(c, LAYERS, qsf_source_n_tensors(s), WIDEST, &e), &e);
    for (uint64_t i = 0; i < c->n_tensors; i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        if (t->ne[1] > 1 && strcmp(t->name, "token_embd.weight") != 0)
            c->tensor[i] = (QsfCalTensor){ .width = (uint32_t)t->ne[0], .sets = 1 };
    }
    qsf_source_close(s);
    for (uint32_t k = 0; k < WIDEST; k++) c->energy[k] = k % 3 == 0 || equal ? 1.0f : 0.01f;
    for (uint32_t l = 0; l < LAYERS; l++) {
        c->skip_kl[l] = 0.5f + (float)l;
        c->cosine[l] = 0.75f;
    }
    c->tokens = 1000;
    c->skip_tokens = 10;
}

static int begin(void **state) {
    (void)state;
    snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("calibrated.gguf"));
    snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("calibrated.qsf"));
    snprintf(second, sizeof second, "%s", qsf_test_tmp("second.qsf"));
    qsf_ledger_init(&ledger, 0);
    if (qsf_test_write_tiny_llama(gguf, &(QsfTinySpec){ .layers = LAYERS, .hidden = HIDDEN, .ffn = FFN }) !=
        0)
        return -1;
    make_scores(&scores, false);
    return 0;
}

static int end(void **state) {
    (void)state;
    unlink(gguf);
    unlink(qsf);
    unlink(second);
    qsf_calibration_free(&scores);
    qsf_ledger_destroy(&ledger);
    return 0;
}

static int pack(const char *from, const char *to, const char *type, const QsfCalibration *c, uint64_t target,
                QsfPackReport *r, QsfErr *e) {
    QsfPackOptions o = { .flags = QSFF_LINES, .threads = 2, .calibration = c, .target = target };
    QsfSource *s = open_ok(from);
    qsf_test_expect_ok(qsf_pack_type_parse(&o.type, type, e), e);
    int rc = qsf_pack(s, to, &o, r, e);
    qsf_source_close(s);
    return rc;
}

/* ---- weights */

static void read_row(const QsfSource *s, const char *name, const qk_table *kernels, uint64_t row, float *x) {
    QsfWeights w;
    QsfErr e = { 0 };
    uint8_t raw[WIDEST * sizeof(float)];
    const QsfTensor *t = qsf_source_find_tensor(s, name);
    assert_non_null(t);
    qsf_test_expect_ok(qsf_weights_open(&w, s, t, kernels, &e), &e);
    qsf_test_expect_ok(qsf_weights_read(&w, row, 1, raw, &e), &e);
    qsf_weights_unpack(&w, raw, 1, x);
}

/* Sum of the weighted squared errors of the quantized tensor. */
static double error_of(const char *name, const float *weights) {
    QsfSource *a = open_ok(gguf), *b = open_ok(qsf);
    qk_table kernels;
    float x[WIDEST], y[WIDEST];
    double sum = 0;
    qk_table_init(&kernels, QK_LEVEL_REF);
    const QsfTensor *t = qsf_source_find_tensor(a, name);
    assert_non_null(t);
    for (uint64_t r = 0; r < t->ne[1]; r++) {
        read_row(a, name, &kernels, r, x);
        read_row(b, name, &kernels, r, y);
        for (uint64_t i = 0; i < t->ne[0]; i++)
            sum += (double)weights[i] * pow((double)x[i] - (double)y[i], 2);
    }
    qsf_source_close(a);
    qsf_source_close(b);
    return sum;
}

static const char *const watched[] = { "blk.0.attn_q.weight",      "blk.1.attn_v.weight",
                                       "blk.1.attn_output.weight", "blk.1.ffn_up.weight",
                                       "blk.0.ffn_down.weight",    "output.weight" };
enum { N_WATCHED = sizeof watched / sizeof *watched };

static void errors(const char *type, const QsfCalibration *c, double out[N_WATCHED]) {
    QsfErr e = { 0 };
    qsf_test_expect_ok(pack(gguf, qsf, type, c, 0, NULL, &e), &e);
    for (int i = 0; i < N_WATCHED; i++) out[i] = error_of(watched[i], scores.energy);
}

static void test_search(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double part;
    } types[] = {
        /* types with a single parameter gain less */
        { "2bit", 0.99 }, { "2bit-asym", 0.9 }, { "3bit", 0.9 },
        { "4bit", 0.9 },  { "ternary", 0.99 },  { "q4_0", 0.95 },
    };
    double plain[N_WATCHED], weighted[N_WATCHED];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        errors(types[t].name, NULL, plain);
        errors(types[t].name, &scores, weighted);
        for (int i = 0; i < N_WATCHED; i++)
            if (!(weighted[i] < types[t].part * plain[i]))
                fail_msg("%s, %s: %g, without weights %g", types[t].name, watched[i], weighted[i], plain[i]);
    }
}

/* The statistics used by mixed and by a target size are weighted; if all weights are equal, nothing
 * changes. */
static void test_choice(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfPackReport r, same;
    QsfCalibration equal;
    make_scores(&equal, true);
    qsf_test_expect_ok(pack(gguf, qsf, "3bit", &scores, 0, &r, &e), &e);
    for (uint32_t k = 0; k < r.items.n; k++) {
        const QsfItem *i = &r.items.item[k];
        assert_int_equal(i->weights != NULL,
                         i->type == QSFT_HEAD || (i->type <= QSFT_DOWN && i->layer < LAYERS));
        if (i->weights == NULL) continue;
        assert_true(qsf_stats_heavy_snr(&i->stats) > qsf_stats_snr(&i->stats) + 0.5);
        assert_true(qsf_stats_heavy_cosine(&i->stats) > qsf_stats_cosine(&i->stats));
    }
    qsf_pack_report_free(&r);
    const uint64_t target = 80000;
    qsf_test_expect_ok(pack(gguf, qsf, "mixed", NULL, target, &r, &e), &e);
    qsf_test_expect_ok(pack(gguf, qsf, "mixed", &equal, target, &same, &e), &e);
    for (uint32_t k = 0; k < r.items.n; k++) assert_int_equal(r.items.item[k].code, same.items.item[k].code);
    qsf_pack_report_free(&r);
    qsf_pack_report_free(&same);
    qsf_calibration_free(&equal);
}

/* ---- scores */

static void check_importance(const char *path) {
    QsfSource *s = open_ok(path);
    QsfCalibration c;
    QsfFileHeader h;
    QsfIndexEntry entry;
    QsfErr e = { 0 };
    unsigned char b[QSFF_HEAD_BYTES];
    bool present;
    const QsfFile *f = qsf_source_file(s, 0);
    qsf_test_expect_ok(qsf_file_pread(f, b, sizeof b, 0, &e), &e);
    qsf_test_expect_ok(qsf_file_header_decode(&h, b, path, &e), &e);
    for (uint32_t l = 0; l < LAYERS; l++) {
        qsf_test_expect_ok(qsf_file_pread(f, b, QSFF_INDEX_BYTES, h.index_off + l * QSFF_INDEX_BYTES, &e),
                           &e);
        qsf_test_expect_ok(qsf_index_entry_decode(&entry, b, path, 0, &e), &e);
        assert_true(fabs((double)entry.importance - (1 - exp(-0.5 - l))) < 1e-6);
    }
    qsf_test_expect_ok(qsf_calibration_read(&c, s, LAYERS, &present, &e), &e);
    assert_true(present);
    assert_memory_equal(c.skip_kl, scores.skip_kl, LAYERS * sizeof(float));
    assert_memory_equal(c.cosine, scores.cosine, LAYERS * sizeof(float));
    assert_int_equal(c.tokens, 1000);
    assert_int_equal(c.skip_tokens, 10);
    qsf_calibration_free(&c);
    qsf_source_close(s);
}

static void test_scores(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfVerifyReport v;
    qsf_test_expect_ok(pack(gguf, qsf, "keep", &scores, 0, NULL, &e), &e);
    check_importance(qsf);
    qsf_test_expect_ok(qsf_verify_file(qsf, &ledger, &v, &e), &e);
    /* They are kept, requantized or not, until others replace them. */
    qsf_test_expect_ok(pack(qsf, second, "4bit", NULL, 0, NULL, &e), &e);
    check_importance(second);
    qsf_test_expect_ok(pack(second, qsf, "keep", &scores, 0, NULL, &e), &e);
    check_importance(qsf);
    qsf_test_expect_ok(qsf_verify_file(qsf, &ledger, &v, &e), &e);
}

/* An importance that does not match its score, with correct checksums. */
static void test_other_importance(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfVerifyReport v;
    const float half = 0.5f, want = (float)(1 - exp(-1.5));
    qsf_test_expect_ok(pack(gguf, qsf, "keep", &scores, 0, NULL, &e), &e);
    QsfImage m = qsf_image_load(qsf);
    assert_non_null(m.b);
    const QsfImageMap at = qsf_image_map(&m);
    unsigned char *of = m.b + at.index + QSFF_INDEX_BYTES + 24;
    for (int wrong = 1; wrong >= 0; wrong--) {
        memcpy(of, wrong ? &half : &want, sizeof half);
        qsf_image_fix(&m, &at);
        assert_int_equal(qsf_test_write_file(second, m.b, m.len), 0);
        if (!wrong) qsf_test_expect_ok(qsf_verify_file(second, &ledger, &v, &e), &e);
        if (!wrong) break;
        assert_int_equal(qsf_verify_file(second, &ledger, &v, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "importance of layer 1 at byte offset ");
        qsf_test_expect_err(&e, QSF_E_MODEL,
                            "is 0.5, expected 0.77687 from its qsf.calibration.skip_kl of 1.5");
        qsf_err_clear(&e);
    }
    free(m.b);
}

/* The file claims to have scores, but has none. */
static void test_bad_scores(void **state) {
    (void)state;
    static const struct {
        float v[3];
        uint64_t n;
        const char *words;
    } bad[] = {
        { { 1, 2, 3 }, 3, "'qsf.calibration.skip_kl' has 3 elements, expected one for each of 2 layers" },
        { { 1, -1, 0 }, 2, "'qsf.calibration.skip_kl': element 1 is -1" },
        { { NAN, 1, 0 }, 2, "'qsf.calibration.skip_kl': element 0" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfGgufBuild b = { 0 };
        QsfCalibration c;
        QsfErr e = { 0 };
        bool present;
        qsf_gb_str(&b, "general.architecture", "llama");
        qsf_gb_array(&b, "qsf.calibration.skip_kl", QSF_META_F32, bad[i].n, bad[i].v,
                     bad[i].n * sizeof(float));
        assert_int_equal(qsf_gb_write(&b, second), 0);
        qsf_gb_free(&b);
        QsfSource *s = open_ok(second);
        assert_int_equal(qsf_calibration_read(&c, s, 2, &present, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, bad[i].words);
        qsf_source_close(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_search), cmocka_unit_test(test_choice),
                                        cmocka_unit_test(test_scores),
                                        cmocka_unit_test(test_other_importance),
                                        cmocka_unit_test(test_bad_scores) };
    return cmocka_run_group_tests(tests, begin, end);
}
