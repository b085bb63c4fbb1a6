/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checksums of a QSF file's layers are verified while these are read: whichever bit of a weight is damaged,
 * pinned or streamed, evaluation fails with a message that names the layer, and keeps failing. */
#include "tests/harness/qsf_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_made.h"
#include "tests/harness/rig.h"

enum { N_TOKENS = 3, LONG = 400 };

static char gguf[256], qsf[256];

static void test_shift(void **state) {
    (void)state;
    unsigned char b[5000];
    for (size_t i = 0; i < sizeof b; i++) b[i] = (unsigned char)(i * 7919 >> 3);
    const uint32_t whole = qsf_crc32(0, b, sizeof b);
    static const size_t cuts[] = { 0, 1, 7, 64, 4095, 4096, 4999, 5000 };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        uint32_t first = qsf_crc32(0, b, cuts[i]), second = qsf_crc32(0, b + cuts[i], sizeof b - cuts[i]);
        assert_int_equal(qsf_crc32_shift(first, sizeof b - cuts[i]) ^ second, whole);
    }
    /* Longer than memory: shifting by 2^40 is shifting by 2^39 twice. */
    assert_int_equal(qsf_crc32_shift(whole, 1ull << 40),
                     qsf_crc32_shift(qsf_crc32_shift(whole, 1ull << 39), 1ull << 39));
}

static const QsfRigOptions ways[] = {
    { .threads = 2 },
    { .threads = 1, .stream = true },
    { .threads = 2, .stream = true, .n_slots = 1, .slot_bytes = 1, .batch = 2 },
    { .threads = 2, .pin_cap = 60000, .n_slots = 2, .batch = 1 },
    /* rows that are pinned, or not yet, when a long prompt takes their memory */
    { .threads = 2,
      .pin_cap = 60000,
      .n_slots = 1,
      .slot_bytes = 1,
      .ctx = 1024,
      .batch = 64,
      .kv_step = 128 },
};
enum { N_WAYS = sizeof ways / sizeof *ways };

/* Evaluates twice, then settles: the first error, or QSF_OK. */
static int compute(const QsfRigOptions *way, QsfErr *err) {
    QsfRigOptions o = *way;
    QsfRig r;
    QsfErr again = { 0 };
    const uint32_t n = way->kv_step > 0 ? LONG : N_TOKENS;
    int32_t ids[LONG];
    for (uint32_t i = 0; i < LONG; i++) ids[i] = (int32_t)(5 + i * 65 % 97);
    o.path = qsf;
    o.level = QK_LEVEL_UNKNOWN;
    int rc = qsf_rig_open(&r, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_forward_eval(r.fwd, ids, n, NULL, NULL, err);
    int second = qsf_forward_eval(r.fwd, ids, n, NULL, NULL, rc == QSF_OK ? err : &again);
    if (rc != QSF_OK && second != rc) fail_msg("failed once (%s), then ended with %d", err->msg, second);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return rc == QSF_OK ? second : rc;
}

static void flip(uint64_t off) {
    FILE *f = fopen(qsf, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)off, SEEK_SET), 0);
    int c = fgetc(f);
    assert_int_equal(fseek(f, (long)off, SEEK_SET), 0);
    assert_int_equal(fputc(c ^ 0x10, f), c ^ 0x10);
    assert_int_equal(fclose(f), 0);
}

static void make_as(const QsfTinySpec *spec, uint32_t flags, uint8_t press) {
    const QsfPackOptions how = { .flags = flags, .codec = press };
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    assert_int_equal(qsf_test_write_tiny_llama(gguf, spec), 0);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, gguf, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_pack(s, qsf, &how, NULL, &e), &e);
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
}

static void make(const QsfTinySpec *spec, uint32_t flags) { make_as(spec, flags, QSFF_STORED); }

/* Bytes in the middle of tensors: [first, last] of each matrix of the second layer, and of the head or tied
 * embedding. */
static size_t places(uint64_t *off, size_t cap, bool head) {
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    size_t n = 0;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, qsf, &ledger, &e), &e);
    for (uint64_t i = 0; i < qsf_source_n_tensors(s) && n + 2 <= cap; i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        bool wanted = head ? !strcmp(t->name, "output.weight")
                           : !strncmp(t->name, "blk.1.", 6) && t->ne[1] > 1;
        if (!wanted) continue;
        off[n++] = t->offset;
        off[n++] = t->offset + t->bytes - 1;
    }
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
    return n;
}

static void expect_damage(uint64_t off, const char *part) {
    for (size_t w = 0; w < N_WAYS; w++) {
        QsfErr e = { 0 };
        flip(off);
        int rc = compute(&ways[w], &e);
        flip(off);
        if (rc != QSF_E_MODEL || strstr(e.msg, part) == NULL || strstr(e.msg, "damaged: checksum") == NULL)
            fail_msg("byte %llu, way %zu: %d %s", (unsigned long long)off, w, rc, e.msg);
    }
}

static void test_damage(void **state) {
    (void)state;
    static const QsfTinySpec specs[] = {
        { .wtype = 0, .layers = 3 }, { .wtype = 2, .hidden = 128, .ffn = 352, .layers = 3, .biases = true }
    };
    uint64_t off[32];
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        make(&specs[k], k == 0 ? 0 : QSFF_PAGES | QSFF_LINES);
        for (size_t w = 0; w < N_WAYS; w++) {
            QsfErr e = { 0 };
            qsf_test_expect_ok(compute(&ways[w], &e), &e);
        }
        size_t n = places(off, 32, false);
        assert_int_equal(n, 14);
        for (size_t i = 0; i < n; i++) expect_damage(off[i], "layer 1 from byte offset");
        n = places(off, 32, true);
        assert_int_equal(n, 2);
        for (size_t i = 0; i < n; i++) expect_damage(off[i], "the final section from byte offset");
    }
}

/* Units so large that they are pinned in several pieces, the later ones stored before the first in memory. */
static void test_pieces(void **state) {
    (void)state;
    QsfErr e = { 0 };
    uint64_t off[32];
    make(&(QsfTinySpec){ .layers = 2, .hidden = 512, .ffn = 2048, .heads = 8, .kv_heads = 8 }, QSFF_LINES);
    qsf_test_expect_ok(compute(&ways[0], &e), &e);
    size_t n = places(off, 32, false);
    flip(off[n - 1]);
    assert_int_equal(compute(&ways[0], &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "layer 1 from byte offset");
}

/* A damaged norm is not in a matrix, and is detected all the same. */
static void test_between(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    make(&(QsfTinySpec){ .wtype = 8, .layers = 2 }, QSFF_LINES);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, qsf, &ledger, &e), &e);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.ffn_norm.weight");
    assert_non_null(t);
    uint64_t off = t->offset + 2; /* a bit whose change leaves a finite number */
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
    expect_damage(off, "layer 0 from byte offset");
}

/* Any byte of a compressed layer. */
static void test_compressed(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    make_as(&(QsfTinySpec){ .wtype = 1, .layers = 3, .twins = true }, QSFF_LINES, QSFF_LZ4);
    for (size_t w = 0; w < N_WAYS; w++) qsf_test_expect_ok(compute(&ways[w], &e), &e);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&s, qsf, &ledger, &e), &e);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.1.ffn_up.weight");
    assert_non_null(t);
    assert_non_null(t->compressed);
    uint64_t first = t->compressed->off, last = first + t->compressed->bytes - 1;
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
    for (uint64_t off = first; off <= last; off += (last - first) / 3)
        expect_damage(off, "layer 1 from byte offset");
    expect_damage(last, "layer 1 from byte offset");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shift), cmocka_unit_test(test_damage),
                                        cmocka_unit_test(test_pieces), cmocka_unit_test(test_between),
                                        cmocka_unit_test(test_compressed) };
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("sums.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("sums.qsf"));
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(gguf);
    unlink(qsf);
    return rc;
}
