/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a block changes of the values that pass from block to block, in programs made by hand. */
#include "src/model/residual.h"
#include "tests/harness/qsf_test.h"

enum { WIDTH = 8, BUFS = 4, BANK = 2, FIRST = 3 };

/* Buffer BANK holds two vectors; FIRST is left by block 0 for block 1. */
static QsfBuffer bufs[BUFS] = {
    { WIDTH, 16, 0, 0, 0 }, { WIDTH, 16, 0, 0, 16 }, { 2 * WIDTH, 16, 0, 0, 32 }, { WIDTH, 16, 0, 0, 48 }
};
static uint32_t runs[16]; /* all steps are one run */

static QsfSlice all_of(uint32_t buf) { return (QsfSlice){ buf, 0, bufs[buf].width }; }

static QsfStep step(QsfOp op, uint32_t block, QsfSlice in, QsfSlice out) {
    const QsfSlice none = { QSF_NONE, 0, 0 };
    return (
        QsfStep){ .op = op, .block = block, .in = in, .in2 = none, .in3 = none, .out = { out, none, none } };
}

static int make(QsfResidual *r, QsfStep *steps, uint32_t n, QsfErr *err) {
    static QsfSource *none;
    const QsfModel m = {
        .src = none,
        .prog = { .n_blocks = 2, .step = steps, .n_steps = n, .run = runs, .buf = bufs, .n_bufs = BUFS }
    };
    return qsf_residual_make(r, &m, err);
}

static void expect(const QsfResidual *r, uint32_t block, uint32_t n, QsfSlice first) {
    const QsfResidualBlock *b = &r->block[block];
    assert_int_equal(b->n, n);
    if (n == 0) return;
    const QsfSlice s = r->slice[b->first];
    assert_true(s.buf == first.buf && s.off == first.off && s.width == first.width);
}

static void test_streams(void **state) {
    (void)state;
    const QsfSlice x = all_of(QSF_BUF_X), y = all_of(QSF_BUF_BRANCH), second = { BANK, WIDTH, WIDTH },
                   front = { BANK, 0, WIDTH };
    QsfErr err = { 0 };
    QsfResidual r;
    QsfStep steps[] = {
        step(QSF_OP_COPY, 2, x, front),
        step(QSF_OP_NORM, 0, x, y),
        step(QSF_OP_COPY, 0, y, all_of(FIRST)), /* for block 1: not there before */
        step(QSF_OP_COPY, 0, x, second),        /* a vector that block 1 reads */
        step(QSF_OP_ADD, 0, y, x),
        step(QSF_OP_NORM, 1, all_of(BANK), y),
        step(QSF_OP_ADD, 1, all_of(FIRST), y),
        step(QSF_OP_ADD, 1, x, y), /* x stays as it is */
        step(QSF_OP_ADD, 1, y, front),
        step(QSF_OP_NORM, 2, x, y),
        step(QSF_OP_NORM, 2, all_of(BANK), y),
    };
    qsf_test_expect_ok(make(&r, steps, sizeof steps / sizeof *steps, &err), &err);
    assert_int_equal(r.block[0].begin, 1);
    assert_int_equal(r.block[1].end, 9);
    expect(&r, 0, 1, x);
    expect(&r, 1, 1, front);
    assert_int_equal(r.widest, WIDTH);
    qsf_residual_free(&r);
}

/* The whole of a buffer that changes in parts; a block without steps. */
static void test_parts(void **state) {
    (void)state;
    const QsfSlice part = { BANK, 4, WIDTH }, x = all_of(QSF_BUF_X);
    QsfErr err = { 0 };
    QsfResidual r;
    QsfStep steps[] = {
        step(QSF_OP_COPY, 2, x, all_of(BANK)),
        step(QSF_OP_SCALE, 1, (QsfSlice){ QSF_NONE, 0, 0 }, all_of(BANK)),
        step(QSF_OP_ADD, 1, x, part),
        step(QSF_OP_NORM, 2, all_of(BANK), all_of(QSF_BUF_BRANCH)),
    };
    qsf_test_expect_ok(make(&r, steps, sizeof steps / sizeof *steps, &err), &err);
    assert_int_equal(r.block[0].begin, r.block[0].end);
    expect(&r, 0, 0, x);
    expect(&r, 1, 1, all_of(BANK));
    qsf_residual_free(&r);
}

static QsfBlockSet alone(QsfStep *steps, uint32_t n) {
    const QsfProgram p = {
        .n_blocks = 2, .step = steps, .n_steps = n, .run = runs, .buf = bufs, .n_bufs = BUFS
    };
    QsfErr err = { 0 };
    QsfResidual r;
    QsfBlockSet set;
    qsf_test_expect_ok(make(&r, steps, n, &err), &err);
    qsf_test_expect_ok(qsf_residual_alone(&r, &p, &set, &err), &err);
    qsf_residual_free(&r);
    return set;
}

/* Blocks that get nothing but the residual stream; then one value passes beside it, from before the first
 * block or from that block to the next, until another step replaces it. */
static void test_alone(void **state) {
    (void)state;
    const QsfSlice x = all_of(QSF_BUF_X), y = all_of(QSF_BUF_BRANCH), beside = all_of(FIRST);
    QsfStep steps[] = {
        step(QSF_OP_COPY, 2, x, y), /* not read by others */
        step(QSF_OP_NORM, 0, x, y), step(QSF_OP_ADD, 0, y, x), step(QSF_OP_COPY, 1, x, y),
        step(QSF_OP_NORM, 1, x, y), step(QSF_OP_ADD, 1, y, x), step(QSF_OP_NORM, 2, x, y),
    };
    enum { N = sizeof steps / sizeof *steps };
    QsfBlockSet set = alone(steps, N);
    assert_true(qsf_blocks_have(&set, 0) && qsf_blocks_have(&set, 1));
    steps[0].out[0] = beside;
    steps[4].in = beside; /* of both blocks, since nothing replaces it */
    set = alone(steps, N);
    assert_int_equal(qsf_blocks_count(&set), 0);
    steps[1].out[0] = steps[2].in = beside; /* replaced in block 0: only the second one reads it */
    set = alone(steps, N);
    assert_true(qsf_blocks_have(&set, 0) && !qsf_blocks_have(&set, 1));
    steps[3].out[0] = beside; /* and there, too */
    set = alone(steps, N);
    assert_int_equal(qsf_blocks_count(&set), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_streams), cmocka_unit_test(test_parts),
                                        cmocka_unit_test(test_alone) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
