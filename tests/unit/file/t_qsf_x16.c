/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layout 1 of QSF files: the bytes of groups compared with the man page, conversion in both directions, the
 * same results from groups and rows at every level, and damage. */
#include "tests/harness/source_rig.h"

#include "src/convert/pack/pack.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/verify.h"
#include "src/file/rows.h"
#include "src/plan/units.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

static char gguf[512], qsf[512], back[512];

/* --- bytes --- */

/* man/qsf-format.5: the offsets of the planes' dwords and the halves' words in a block. */
typedef struct Form {
    uint32_t dtype;
    /* code: a QSF type, whose planes are assembled from elements */
    unsigned plane_at, planes, half_at, halves, code;
} Form;

enum { NONE = 99, Q5 = 98 };

static const Form forms[] = {
    { 2, 2, 4, 0, 1, NONE },
    { 3, 4, 4, 0, 2, NONE },
    { 6, 2, 5, 0, 1, Q5 },
    { 7, 4, 5, 0, 2, Q5 },
    { 8, 2, 8, 0, 1, NONE },
    { 20, 2, 4, 0, 1, NONE },
    { 12, 4, 35, 0, 2, NONE },
    { 13, 4, 43, 0, 2, NONE },
    { 14, 0, 52, 208, 1, NONE },
    { 10, 0, 20, 80, 2, NONE },
    { 11, 0, 27, 108, 1, NONE },
    { 23, 4, 33, 0, 2, NONE },
    { 34, 0, 13, 52, 1, NONE },
    { 35, 0, 16, 64, 1, NONE },
    { 36, 0, 8, 0, 0, NONE },
    { QK_GGML_QSF2, 4, 4, 0, 2, 1 },
    { QK_GGML_QSF3, 4, 6, 0, 2, 2 },
    { QK_GGML_QSF4, 4, 8, 0, 2, 3 },
    { QK_GGML_QSFT, 2, 4, 0, 1, 4 },
    { QK_GGML_QSB2, 4, 19, 0, 2, 10 },
    { QK_GGML_QSB3, 4, 27, 0, 2, 11 },
    { QK_GGML_QSB4, 4, 35, 0, 2, 12 },
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* Element e of a stream of n-bit elements. */
static uint32_t bits_of(const uint8_t *p, unsigned e, unsigned n) {
    uint32_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint32_t)(p[(e * n + i) / 8] >> (e * n + i) % 8 & 1) << i;
    return v;
}

/* Of 64 elements at p, with codes 1 to 4: q of element e. */
static uint32_t q_of(const uint8_t *p, unsigned code, unsigned e) {
    if (code < 4) return bits_of(p, e, code + 1);
    return bits_of(p + 8, e, 1) ? 1 : bits_of(p, e, 1) ? 0 : 2;
}

/* The planes of 64 elements; returns their number. */
static unsigned planes_of(uint32_t *w, const uint8_t *p, unsigned code) {
    const unsigned n = code == 3 ? 8 : 4, low = code == 3 ? 4 : 2, steps = 64 / n / 4;
    memset(w, 0, 8 * sizeof *w);
    for (unsigned e = 0; e < 64; e++) {
        const unsigned i = e % 4, s = e / 4 % steps, q = q_of(p, code, e);
        w[e / (64 / n)] |= (q & (code == 3 ? 15u : 3u)) << (8 * i + low * s);
        if (code == 2) w[4 + e / 32] |= (q >> 2) << (8 * i + e / 4 % 8);
    }
    return code == 2 ? 6 : n;
}

static void dwords(const Form *f, const uint8_t *block, uint32_t *w) {
    memcpy(w, block + f->plane_at, f->planes * 4);
    if (f->code == Q5) {
        const uint32_t high = w[0];
        w[0] = 0;
        for (unsigned e = 0; e < 32; e++) w[0] |= (high >> e & 1) << (8 * (e % 4) + e / 4);
    } else if (f->code < 5) {
        (void)planes_of(w, block + f->plane_at, f->code);
    } else if (f->code <= 12) {
        for (unsigned n = 3, part = 0; part < 4; part++)
            n += planes_of(w + n, block + 16 + part * 8 * (f->code - 8), f->code - 9);
    }
}

/* Layout 2 of Q3_K and Q6_K: the planes of layout 1 that come first to last. */
static unsigned by_use(uint32_t dtype, unsigned order[52]) {
    unsigned n = 0;
    if (dtype == 11) {
        for (unsigned i = 24; i < 27; i++) order[n++] = i;
        for (unsigned i = 0; i < 8; i++, n += 2) order[n] = i, order[n + 1] = 8 + i;
        for (unsigned i = 16; i < 24; i++) order[n++] = i;
    }
    for (unsigned half = 0; dtype == 14 && half < 2; half++) {
        order[n++] = 48 + 2 * half;
        for (unsigned i = 0; i < 8; i++, n += 2) order[n] = 32 + 8 * half + i, order[n + 1] = 16 * half + i;
        order[n++] = 49 + 2 * half;
        for (unsigned i = 8; i < 16; i++) order[n++] = 16 * half + i;
    }
    return n;
}

static void sort_planes(uint32_t dtype, uint32_t *w) {
    uint32_t was[64];
    unsigned order[52], n = by_use(dtype, order);
    memcpy(was, w, sizeof was);
    for (unsigned i = 0; i < n; i++) w[i] = was[order[i]];
}

/* The group made from a block of 16 rows; rows after the first n are zeros. */
static void expect_group(const Form *f, const uint8_t *rows, size_t block, size_t row_bytes, unsigned n,
                         uint8_t *out) {
    const QsfDtype *d = qsf_dtype(f->dtype);
    memset(out, 0, 16 * d->block_bytes);
    for (unsigned r = 0; r < n; r++) {
        const uint8_t *b = rows + r * row_bytes + block * d->block_bytes;
        uint32_t w[64] = { 0 };
        dwords(f, b, w);
        sort_planes(f->dtype, w);
        for (unsigned p = 0; p < f->planes; p++) memcpy(out + p * 64 + r * 4, &w[p], 4);
        for (unsigned h = 0; h < f->halves; h++)
            memcpy(out + f->planes * 64 + h * 32 + r * 2, b + f->half_at + 2 * h, 2);
    }
}

typedef struct Bytes {
    uint8_t b[1 << 16];
    size_t n;
} Bytes;

static int take(void *arg, const void *data, size_t len, QsfErr *err) {
    Bytes *b = arg;
    (void)err;
    assert_true(b->n + len <= sizeof b->b);
    memcpy(b->b + b->n, data, len);
    b->n += len;
    return QSF_OK;
}

/* 19 rows of two blocks: a full group, and a padded one. */
static void test_bytes(void **state) {
    (void)state;
    enum { ROWS = 19 };
    static Bytes have;
    static uint8_t rows[ROWS * 2 * 300], want[16 * 300];
    QsfErr e = { 0 };
    qk_table kernels;
    qk_table_init(&kernels, QK_LEVEL_REF);
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < N_FORMS; i++) {
        const Form *f = &forms[i];
        const QsfDtype *d = qsf_dtype(f->dtype);
        const size_t row = 2 * d->block_bytes, all = ROWS * row;
        QsfGrouper g;
        have.n = 0;
        assert_int_equal(qsf_group_planes(f->dtype), f->planes);
        assert_int_equal(4 * f->planes + 2 * f->halves, d->block_bytes);
        qsf_test_expect_ok(qsf_grouper_open(&g, f->dtype, 2 * d->block_elems, &kernels, take, &have, &e), &e);
        for (size_t at = 0; at < all; at += 100) /* pieces that are not rows */
            qsf_test_expect_ok(qsf_grouper_add(&g, rows + at, all - at < 100 ? all - at : 100, &e), &e);
        qsf_test_expect_ok(qsf_grouper_end(&g, &e), &e);
        qsf_grouper_close(&g);
        assert_int_equal(have.n, 32 * row);
        for (size_t k = 0; k < 4; k++) {
            expect_group(f, rows + k / 2 * 16 * row, k % 2, row, k < 2 ? 16 : 3, want);
            if (memcmp(have.b + k * 16 * d->block_bytes, want, 16 * d->block_bytes) != 0)
                fail_msg("%s, block %zu", d->name, k);
            assert_int_equal(qsf_group_spare(want, f->dtype, k < 2 ? 16 : 3), UINT32_MAX);
        }
        memset(want, 0, sizeof want);
        /* of row 2 in the first plane, of row 15 in the very last */
        want[2 * 4 + 3] = want[16 * d->block_bytes - 1] = 1;
        assert_int_equal(qsf_group_spare(want, f->dtype, 2), 2 * 4 + 3);
        assert_int_equal(qsf_group_spare(want, f->dtype, 3), 16 * d->block_bytes - 1);
        assert_int_equal(qsf_group_spare(want, f->dtype, 16), UINT32_MAX);
    }
}

/* The kernels determine which types have groups. */
static void test_types(void **state) {
    (void)state;
    qk_table kernels;
    qk_table_init(&kernels, QK_LEVEL_REF);
    for (uint32_t i = 0; qsf_dtype_at(i) != NULL; i++) {
        const uint32_t id = qsf_dtype_at(i)->id;
        const qk_type t = qk_type_of(id);
        assert_int_equal(qsf_group_planes(id) > 0, t != QK_NONE && kernels.weight[t].pack != NULL);
    }
    unsigned char odd_bytes[16 * QK_BYTES_MXFP4] = { 0 }; /* one byte of each row is not in a plane or half */
    odd_bytes[sizeof odd_bytes - 1] = 1;
    assert_int_equal(qsf_group_spare(odd_bytes, QK_GGML_MXFP4, 3), sizeof odd_bytes - 1);
    qsf_group_clear(odd_bytes, 1, QK_GGML_MXFP4, 3);
    assert_int_equal(qsf_group_spare(odd_bytes, QK_GGML_MXFP4, 3), UINT32_MAX);
    assert_int_equal(qsf_group_rows(0), 0);
    assert_int_equal(qsf_group_rows(17), 32);
    assert_int_equal(qsf_group_rows(UINT32_MAX), (uint64_t)1 << 32);
}

/* One row of ternary codes, written by hand: elements 0, 1, 2 are -1, 0, +1, all others 0; the scale is 1. */
static void test_by_hand(void **state) {
    (void)state;
    static Bytes have;
    uint8_t row[18] = { 0x00, 0x3C, 0x03 }; /* the sign of element 1, which is 0, is dropped */
    QsfErr e = { 0 };
    QsfGrouper g;
    qk_table kernels;
    memset(row + 10, 0xFF, 8);
    row[10] = 0xFA;
    qk_table_init(&kernels, QK_LEVEL_REF);
    have.n = 0;
    qsf_test_expect_ok(qsf_grouper_open(&g, QK_GGML_QSFT, 64, &kernels, take, &have, &e), &e);
    qsf_test_expect_ok(qsf_grouper_add(&g, row, sizeof row, &e), &e);
    qsf_test_expect_ok(qsf_grouper_end(&g, &e), &e);
    qsf_grouper_close(&g);
    /* element 4s + i in byte i, bits 2s: 0, 1, 2, 1 lowest, then 1 */
    uint8_t want[288] = { 0x54, 0x55, 0x56, 0x55 };
    for (int p = 1; p < 4; p++) memset(want + 64 * p, 0x55, 4);
    want[257] = 0x3C;
    assert_int_equal(have.n, sizeof want);
    assert_memory_equal(have.b, want, sizeof want);
    kernels.weight[QK_QSFT].unpack_row(have.b + 300, have.b, 0, 64);
    row[2] = 0x01;
    assert_memory_equal(have.b + 300, row, sizeof row);
}

/* --- files --- */

/* K and V have 24 rows, the head 300: their last groups are padded. */
static const QsfTinySpec odd = {
    .hidden = 96, .heads = 4, .kv_heads = 1, .head_dim = 24, .ffn = 224, .wtype = 2, .biases = true
};

static int write_odd(void **state) {
    (void)state;
    return qsf_test_write_tiny_llama(gguf, &odd);
}

/* Types whose groups are in another order in memory. */
static const QsfTinySpec q6_k = { .hidden = 256, .heads = 4, .kv_heads = 1, .ffn = 512, .wtype = 14 };
static const QsfTinySpec q3_k = { .hidden = 256, .heads = 4, .kv_heads = 1, .ffn = 512, .wtype = 11 };

static void convert(const char *from, const char *to, bool x16) {
    const QsfPackOptions o = { .flags = QSFF_PAGES | QSFF_LINES, .x16 = x16 };
    QsfErr e = { 0 };
    QsfSource *s;
    QsfVerifyReport r;
    qsf_test_expect_ok(qsf_source_open(&s, from, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_pack(s, to, &o, NULL, &e), &e);
    qsf_source_close(s);
    qsf_test_expect_ok(qsf_verify_file(to, &ledger, &r, &e), &e);
}

static void test_round_trip_types(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfSource *s;
    convert(gguf, qsf, true);
    qsf_test_expect_ok(qsf_source_open(&s, qsf, &ledger, &e), &e);
    const QsfTensor *k = qsf_source_find_tensor(s, "blk.0.attn_k.weight"),
                    *n = qsf_source_find_tensor(s, "blk.0.attn_norm.weight");
    assert_true(k != NULL && k->x16 && k->ne[1] == 24 && k->bytes == 32 * 54);
    assert_true(n != NULL && !n->x16 && !qsf_source_find_tensor(s, "token_embd.weight")->x16);
    assert_true(qsf_source_find_tensor(s, "output.weight")->x16);
    uint8_t row[54];
    QsfRowReader r;
    qk_table kernels;
    qk_table_init(&kernels, QK_LEVEL_REF);
    qsf_test_expect_ok(qsf_rowreader_open(&r, s, k, &kernels, &e), &e);
    assert_int_equal(qsf_rowreader_copy(&r, 24, 1, row, sizeof row, NULL, NULL, &e),
                     QSF_E_RUNTIME); /* padding rows do not count */
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_read_stored(s, k, 0, 1, row, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "are interleaved");
    qsf_rowreader_close(&r);
    qsf_source_close(s);
    convert(qsf, back, false);
    convert(gguf, qsf, false);
    char two[512];
    (void)snprintf(two, sizeof two, "%s", qsf_test_tmp("x16.two.qsf"));
    convert(qsf, two, false); /* its metadata is generated from the header, as in the other file */
    QsfImage a = load(back), b = load(two);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.b, b.b, a.len);
    free(a.b);
    free(b.b);
    unlink(two);
}

/* --- numbers --- */

enum { N_TOKENS = 9, N_VOCAB = 300 };

static void logits_of(const QsfRigOptions *o, float *x) {
    QsfErr e = { 0 };
    QsfRig r;
    int32_t ids[N_TOKENS];
    for (int i = 0; i < N_TOKENS; i++) ids[i] = 3 + 17 * i % 200;
    qsf_test_expect_ok(qsf_rig_open(&r, o, &e), &e);
    assert_int_equal(r.model.hp.n_vocab, N_VOCAB);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, N_TOKENS - 1, NULL, NULL, &e), &e);
    /* a second pass */
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + N_TOKENS - 1, 1, NULL, NULL, &e), &e);
    memcpy(x, qsf_forward_logits(r.fwd), N_VOCAB * sizeof *x);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* All pinned, half of it, streamed in the smallest slots, with float activations; in the layouts that the
 * kernels of each level need. */
/* A file of layout 1, as it was written before there was layout 2. */
static void with_layout_1(const char *path) {
    QsfErr e = { 0 };
    QsfSource *s;
    qk_table kernels;
    QsfImage m = load(path);
    const QsfImageMap map = qsf_image_map(&m);
    qk_table_init(&kernels, QK_LEVEL_REF);
    qsf_test_expect_ok(qsf_source_open(&s, path, &ledger, &e), &e);
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        if (!t->x16) continue;
        const qk_weight_ops *ops = &kernels.weight[qk_type_of(t->dtype)];
        const uint64_t rows = qsf_group_rows(t->ne[1]), group = t->bytes / rows * 16;
        assert_int_equal(m.b[t->offset - 3], 2);
        m.b[t->offset - 3] = 1;
        for (uint64_t at = 0; at < t->bytes; at += group)
            ops->by_block(m.b + t->offset + at, (size_t)t->ne[0]);
    }
    qsf_source_close(s);
    qsf_image_fix(&m, &map);
    assert_int_equal(qsf_test_write_file(path, m.b, m.len), 0);
    free(m.b);
}

/* layout_1: the same after with_layout_1. */
static void same_logits(const QsfTinySpec *spec, bool layout_1) {
    static const QsfRigOptions ways[] = { { .threads = 2 },
                                          { .threads = 2, .pin_cap = 60000 },
                                          { .stream = true, .slot_bytes = 1 },
                                          { .exact = true } };
    float want[N_VOCAB], have[N_VOCAB];
    assert_int_equal(qsf_test_write_tiny_llama(gguf, spec), 0);
    convert(gguf, qsf, true);
    if (layout_1) with_layout_1(qsf);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int level = QK_LEVEL_REF; level < QK_LEVEL_N; level++) {
            QsfRigOptions o = ways[i];
            o.level = (qk_level)level;
            if (!qk_cpu_has(o.level)) continue;
            o.path = gguf;
            logits_of(&o, want);
            o.path = qsf;
            logits_of(&o, have);
            assert_memory_equal(want, have, sizeof want);
        }
}

static void test_same_logits(void **state) {
    (void)state;
    for (int layout_1 = 0; layout_1 < 2; layout_1++) {
        same_logits(&q6_k, layout_1);
        same_logits(&q3_k, layout_1);
    }
    same_logits(&odd, false);
}

/* Rows come back from layout 1 as from layout 2. */
static void test_rows_of_layouts(void **state) {
    (void)state;
    static const QsfTinySpec *const specs[] = { &q6_k, &q3_k };
    QsfImage image[2];
    QsfErr e = { 0 };
    QsfVerifyReport r;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(qsf_test_write_tiny_llama(gguf, specs[i]), 0);
        convert(gguf, qsf, true);
        for (int layout_1 = 0; layout_1 < 2; layout_1++) {
            if (layout_1) with_layout_1(qsf);
            qsf_test_expect_ok(qsf_verify_file(qsf, &ledger, &r, &e), &e);
            convert(qsf, back, false);
            image[layout_1] = load(back);
        }
        assert_int_equal(image[0].len, image[1].len);
        assert_memory_equal(image[0].b, image[1].b, image[0].len);
        free(image[0].b);
        free(image[1].b);
    }
}

/* With a sketch of the head, whose rows are read a few at a time, into x. */
static void sketched_logits(const char *path, qk_level level, float *x, uint32_t n_vocab) {
    const QsfRigOptions o = { .path = path, .level = level, .stream = true, .quality = 0.9f };
    QsfErr e = { 0 };
    QsfForwardStats stats;
    QsfRig r;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &e), &e);
    assert_true(r.plan.sketch_bytes > 0);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, (int32_t[]){ 3, 20, 37 }, 3, NULL, NULL, &e), &e);
    qsf_test_expect_ok(qsf_forward_decode(r.fwd, &(int32_t){ 54 }, 1, NULL, NULL, &e), &e);
    qsf_forward_stats(r.fwd, &stats);
    assert_int_equal(stats.head_sketched, 1);
    memcpy(x, qsf_forward_logits(r.fwd), n_vocab * sizeof *x);
    qsf_rig_close(&r);
}

static void test_sketch(void **state) {
    (void)state;
    enum { VOCAB = 33000 };
    QsfTinySpec spec = q6_k;
    float *want = malloc(VOCAB * sizeof *want), *have = malloc(VOCAB * sizeof *have);
    assert_true(want != NULL && have != NULL);
    spec.vocab = VOCAB;
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    convert(gguf, qsf, true);
    for (int layout_1 = 0; layout_1 < 2; layout_1++) {
        const qk_level levels[] = { qk_cpu_best(), QK_LEVEL_REF };
        if (layout_1) with_layout_1(qsf);
        for (size_t i = 0; i < 2; i++) {
            sketched_logits(gguf, levels[i], want, VOCAB);
            sketched_logits(qsf, levels[i], have, VOCAB);
            assert_memory_equal(want, have, VOCAB * sizeof *want);
        }
    }
    free(want);
    free(have);
}

/* Another plan between two tokens: the given percentage of each unit is pinned. */
static void move(QsfRig *r, uint32_t percent) {
    uint32_t items[16];
    QsfErr e = { 0 };
    QsfPool *pool;
    QsfPlan p = r->plan;
    p.pinned_items = items;
    assert_true(p.n_units <= sizeof items / sizeof *items);
    for (uint32_t i = 0; i < p.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(&r->model, i, &u);
        items[i] = percent == 100 ? u.items : u.items * percent / 100 / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
        assert_int_equal(qsf_unit_item_bytes(&u, 0, u.items), u.bytes);
    }
    p.n_slots = percent < 100 ? 2 : 0;
    p.slot_bytes = percent < 100 ? 1 << 16 : 0;
    qsf_test_expect_ok(qsf_pool_create(&pool, 2, &r->ledger, &e), &e);
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &p, pool, &e), &e);
    qsf_pool_destroy(r->pool);
    r->pool = pool;
}

/* Pages that hold both kept and dropped rows, as groups (level of this machine) and converted to rows
 * (reference). */
static void other_plans(const QsfTinySpec *spec, bool layout_1) {
    static const uint32_t percents[] = { 40, 70, 10, 100, 55, 0, 100 };
    enum { N = sizeof percents / sizeof *percents };
    float want[N][N_VOCAB];
    assert_int_equal(qsf_test_write_tiny_llama(gguf, spec), 0);
    convert(gguf, qsf, true);
    if (layout_1) with_layout_1(qsf);
    for (int way = 0; way < 4; way++) {
        const QsfRigOptions o = { .path = way % 2 ? qsf : gguf,
                                  .threads = 2,
                                  .level = way / 2 ? QK_LEVEL_REF : qk_cpu_best() };
        QsfErr e = { 0 };
        QsfRig r;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &e), &e);
        for (int32_t i = 0; i < N; i++) {
            if (way % 2) move(&r, percents[i]);
            qsf_test_expect_ok(qsf_forward_eval(r.fwd, &(int32_t){ 5 + 7 * i }, 1, NULL, NULL, &e), &e);
            if (way % 2)
                assert_memory_equal(want[i], qsf_forward_logits(r.fwd), sizeof want[i]);
            else
                memcpy(want[i], qsf_forward_logits(r.fwd), sizeof want[i]);
        }
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
}

static void test_other_plans(void **state) {
    (void)state;
    for (int layout_1 = 0; layout_1 < 2; layout_1++) {
        other_plans(&q6_k, layout_1);
        other_plans(&q3_k, layout_1);
    }
    other_plans(&odd, false);
}

/* --- damage --- */

typedef struct Damage {
    const char *tensor; /* NULL: the header of the file */
    int at;             /* from the start of its data; for the header from the start of the file */
    unsigned char v;
    const char *part; /* of the message; verify_only: the reader does not check this */
    bool verify_only;
} Damage;

static int verdict(const QsfImage *m, bool verify, QsfErr *e) {
    QsfSource *s;
    QsfVerifyReport r;
    assert_int_equal(qsf_test_write_file(back, m->b, m->len), 0);
    qsf_err_clear(e);
    if (verify) return qsf_verify_file(back, &ledger, &r, e);
    int rc = qsf_source_open(&s, back, &ledger, e);
    if (rc == QSF_OK) qsf_source_close(s);
    return rc;
}

static uint64_t place_of(const char *tensor) {
    QsfErr e = { 0 };
    QsfSource *s;
    qsf_test_expect_ok(qsf_source_open(&s, qsf, &ledger, &e), &e);
    uint64_t off = tensor == NULL ? 0 : qsf_source_find_tensor(s, tensor)->offset;
    qsf_source_close(s);
    return off;
}

/* The head's last group has the rows 288 to 299: row 300 is the first padding row. */
#define SPARE (18 * 16 * 54 + 12 * 4)

static void test_damage(void **state) {
    (void)state;
    static const Damage list[] = {
        /* clang-format off */
        { "blk.0.attn_q.weight", -3, 3, "layout of a tensor", false },
        { "blk.0.attn_q.weight", -3, 2, "has layout 2, which its quantization type does not have", false },
        { "blk.0.attn_norm.weight", -3, 1, "(attn_norm.weight) at byte offset", false },
        { "blk.0.attn_norm.weight", -3, 1, "cannot be interleaved by 16 rows", false },
        { "blk.0.attn_q.weight", -4, QSFF_F16, "interleaved by 16 rows, which its quantization type does not support", false },
        { "blk.0.attn_q.weight", -4, QSFF_GGML + 9, "interleaved by 16 rows, which its quantization type does not support", false },
        { "blk.0.attn_k.weight", -3, 0, "byte offset", false }, /* shorter than it is */
        { "blk.0.attn_q.weight", -12, 97, "byte offset", false }, /* longer: one more row is one more group */
        { "token_embd.weight", -15, 1, "embedding are interleaved", false },
        { NULL, 124, QSFF_PAGES | QSFF_LINES, "interleaved by 16 rows, which the flags do not declare", false },
        { "output.weight", SPARE, 1, "fills up the last 16 of output.weight", true },
        { "output.weight", 19 * 16 * 54 - 1, 0x80, "fills up the last 16 of output.weight", true }, /* of the last row's scale */
        /* clang-format on */
    };
    QsfErr e = { 0 };
    convert(gguf, qsf, true);
    QsfImage m = load(qsf);
    const QsfImageMap map = qsf_image_map(&m);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        unsigned char *b = m.b + (int64_t)place_of(list[i].tensor) + list[i].at, old = *b;
        *b = list[i].v;
        qsf_image_fix(&m, &map);
        for (int verify = 0; verify < 2; verify++) {
            int rc = verdict(&m, verify, &e);
            if (list[i].verify_only && !verify)
                assert_int_equal(rc, QSF_OK);
            else
                qsf_test_expect_err(&e, QSF_E_MODEL, list[i].part);
        }
        *b = old;
    }
    qsf_image_fix(&m, &map);
    qsf_test_expect_ok(verdict(&m, true, &e), &e);
    free(m.b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test_setup(test_round_trip_types, write_odd),
        cmocka_unit_test(test_same_logits),
        cmocka_unit_test(test_other_plans),
        cmocka_unit_test(test_rows_of_layouts),
        cmocka_unit_test(test_sketch),
        cmocka_unit_test_setup(test_damage, write_odd),
    };
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("x16.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("x16.qsf"));
    (void)snprintf(back, sizeof back, "%s", qsf_test_tmp("x16.back.qsf"));
    qsf_ledger_init(&ledger, 0);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(gguf);
    unlink(qsf);
    unlink(back);
    qsf_ledger_destroy(&ledger);
    return rc;
}
