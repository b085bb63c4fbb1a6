/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory plan: sums hold, the order of giving way holds, what streams lies evenly, refusals tell the
 * truth. */
#include "src/stream/plan.h"
#include "src/stream/units.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

#define MIB (1ull << 20)
enum { F32 = 0, Q4_0 = 2, Q4_K = 12 };

static const QsfShapeSpec small = {
    22, 2048, 32, 4, 5632, 32000, 2048, false, Q4_K
}; /* 1.1B, grouped queries */
static const QsfShapeSpec big = { 32, 4096, 32, 32, 11008, 32000, 4096, false, Q4_0 }; /* 7B */
static const QsfShapeSpec tied = {
    16, 2048, 32, 8, 8192, 128256, 131072, true, Q4_0
};                                                                          /* 1B, large vocabulary */
static const QsfShapeSpec tiny = { 5, 64, 8, 4, 172, 512, 512, true, F32 }; /* 260K */
static const QsfShapeSpec huge = { 80, 8192, 64, 8, 28672, 32003, 8192, false, Q4_K }; /* 70B in many files */
static const QsfShapeSpec *const shapes[] = { &small, &big, &tied, &tiny, &huge };
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* Places for the tensors of a shape, as a file has them: at multiples of 32 bytes, in files of 4 GiB. */
static void lay_out(QsfModel *m) {
    uint64_t at = 927232;
    uint32_t file = 0;
    for (uint32_t l = 0; l <= m->hp.n_layers; l++) {
        for (unsigned r = 0; r < QSF_ROLE_N; r++) {
            bool whole = r >= QSF_ROLE_LAYER_N;
            QsfTensor *t =
                (QsfTensor *)(uintptr_t)qsf_model_tensor(m, (QsfRole)r, l < m->hp.n_layers ? l : 0);
            if (t == NULL || whole != (l == m->hp.n_layers)) continue;
            if (at + t->bytes > 4096 * MIB) file++, at = 4000;
            t->file = file;
            t->offset = at;
            at = (at + t->bytes + 31) / 32 * 32;
        }
    }
}

static void open_shape(QsfModel *m, const QsfShapeSpec *s) {
    qsf_shape_model(m, s);
    lay_out(m);
}

static QsfPlanOptions options(uint64_t budget) {
    return (QsfPlanOptions){ .budget = budget,
                             .available = 16384 * MIB,
                             .kv = -1,
                             .pin_cap = UINT64_MAX,
                             .threads = 2,
                             .base_bytes = 6 * MIB,
                             .tokenizer_bytes = 3 * MIB,
                             .meta_bytes = MIB / 4,
                             .transcript_bytes = MIB / 2 };
}

static void make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_plan_make(p, m, o, &err), &err);
}

static uint64_t sum_of(const uint64_t *rows) {
    uint64_t sum = 0;
    for (int i = 0; i < QSF_MEM_N; i++) sum += rows[i];
    return sum;
}

/* Bytes that one pass reads, windows and all. */
static uint64_t read_per_pass(const QsfModel *m, const QsfPlan *p) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        QsfChunk c;
        qsf_unit_at(m, i, &u);
        uint32_t at = p->pinned_items[i], step = qsf_unit_chunk_items(&u, u.items - at, p->slot_bytes);
        for (; at < u.items; at += step) {
            assert_true(step > 0);
            qsf_chunk_make(&u, at, at + step < u.items ? at + step : u.items, &c);
            assert_true(c.bytes <= p->slot_bytes);
            sum += c.bytes;
        }
    }
    return sum;
}

static void check_pins(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o) {
    uint64_t pinned = 0, held = 0, all = 0;
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        uint32_t n = p->pinned_items[i];
        assert_true(n == u.items || (n < u.items && n % QSF_ROW_QUANTUM == 0));
        pinned += qsf_unit_item_bytes(&u, 0, n);
        held += qsf_unit_pinned_bytes(&u, n);
        all += u.bytes;
    }
    assert_int_equal(pinned, p->pinned_bytes);
    assert_int_equal(all, p->weight_bytes);
    assert_int_equal(all - pinned, p->streamed_bytes);
    assert_true(p->rows[QSF_MEM_PINNED] >= held);
    assert_true(pinned <= o->pin_cap);
    /* Windows cost at most 2 % of what is not pinned, where slots are of a useful size. */
    uint64_t windows = read_per_pass(m, p) - p->streamed_bytes;
    if (p->slot_bytes >= MIB) assert_true(windows <= p->streamed_bytes / 50 + 6 * QSF_WINDOW);
}

/* What must be true of every plan. */
static void check_plan(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o) {
    assert_int_equal(sum_of(p->rows), p->total);
    assert_true(p->total <= p->budget);
    assert_int_equal(p->n_units, qsf_unit_count(m));
    check_pins(m, p, o);
    assert_true(p->n_slots <= 4 && p->rows[QSF_MEM_SLOTS] == p->n_slots * p->slot_bytes);
    assert_int_equal(p->slot_bytes % QSF_WINDOW, 0);
    assert_true(p->streamed_bytes == 0 || p->n_slots > 0);
    assert_true(p->ctx >= 1 && p->ctx >= o->ctx_floor && p->batch >= 1 && p->batch <= 512);
    assert_true(p->rows[QSF_MEM_KERNEL] >= MIB + p->budget / 1000 * 3);
    assert_true(p->embed_rows <= 1024 && (!p->embed_resident || p->embed_rows == 0));
    if (!p->embed_resident)
        assert_true(p->rows[QSF_MEM_EMBED] >=
                    p->embed_rows * (qsf_model_tensor(m, QSF_ROLE_EMBED, 0)->bytes / m->hp.n_vocab));
    if (o->slots != 0 && p->n_slots != 0) assert_int_equal(p->n_slots, o->slots);
}

/* A piece, its rounding, and what is set aside for a few more columns of prefill. */
static uint64_t tolerance(const QsfPlan *p) {
    return p->slot_bytes + MIB + p->rows[QSF_MEM_ACTIVATIONS] / p->batch * 4;
}

/* Budgets from the smallest to twice of what holds everything: all hold, more memory never pins less and
 * never shortens the context, and the budget is used. */
static void sweep(const QsfModel *m, QsfPlanOptions o) {
    uint64_t least = qsf_plan_smallest(m, &o), last = 0, most;
    uint32_t last_ctx = 0;
    QsfPlan p;
    o.budget = 1ull << 40;
    make(&p, m, &o);
    most = 2 * p.total;
    qsf_plan_free(&p);
    for (uint64_t i = 0; i <= 60; i++) {
        o.budget = i < 8 ? least + i * MIB : least + (most - least) / 60 * i;
        make(&p, m, &o);
        check_plan(m, &p, &o);
        assert_int_equal(p.budget, o.budget);
        assert_true(p.pinned_bytes >= last);
        assert_true(p.ctx >= last_ctx || p.streamed_bytes == 0);
        if (p.pinned_bytes > 0 && p.streamed_bytes > 0) assert_true(p.budget - p.total <= tolerance(&p));
        last = p.pinned_bytes;
        last_ctx = p.ctx;
        qsf_plan_free(&p);
    }
    assert_int_equal(last, p.weight_bytes);
}

static void test_sweep(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        QsfModel m;
        open_shape(&m, shapes[s]);
        QsfPlanOptions o = options(0);
        sweep(&m, o);
        o.ctx = 300;
        sweep(&m, o);
        o.slots = 1;
        o.batch = 32;
        sweep(&m, o);
        qsf_shape_model_free(&m);
    }
}

/* Megabyte by megabyte, where the knobs are turned. */
static void test_every_megabyte(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SHAPES; s++) {
        QsfModel m;
        QsfPlan p;
        open_shape(&m, shapes[s]);
        QsfPlanOptions o = options(0);
        uint64_t last = 0, least;
        o.ctx = 256;
        least = qsf_plan_smallest(&m, &o);
        for (o.budget = least; o.budget < least + 150 * MIB; o.budget += MIB) {
            make(&p, &m, &o);
            check_plan(&m, &p, &o);
            assert_true(p.pinned_bytes >= last);
            last = p.pinned_bytes;
            qsf_plan_free(&p);
        }
        assert_true(last > 0);
        qsf_shape_model_free(&m);
    }
}

static uint64_t advised(const QsfErr *err) {
    const char *last = strrchr(err->msg, '\n');
    unsigned long long mb = 0;
    int end = 0;
    if (last == NULL || sscanf(last, "\nsmallest budget that works: %llu MB%n", &mb, &end) != 1 ||
        last[end] != '\0') {
        fail_msg("no advice at the end of: %s", err->msg);
    }
    return mb * MIB;
}

/* The smallest budget works and one MiB less does not; the refusal names one that works even when the program
 * starts out a little bigger the next time, and at most one MiB more than the smallest. */
static void check_smallest(const QsfModel *m, QsfPlanOptions o, uint64_t jitter) {
    QsfPlan p;
    QsfErr err = { 0 };
    uint64_t smallest = o.budget = qsf_plan_smallest(m, &o);
    assert_int_equal(o.budget % MIB, 0);
    make(&p, m, &o);
    check_plan(m, &p, &o);
    qsf_plan_free(&p);
    o.budget -= MIB;
    assert_int_equal(qsf_plan_make(&p, m, &o, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "sum ");
    o.budget = advised(&err);
    assert_true(o.budget == smallest || o.budget == smallest + MIB);
    o.base_bytes += jitter;
    make(&p, m, &o);
    qsf_plan_free(&p);
}

static void test_smallest(void **state) {
    (void)state;
    for (size_t s = 0; s < N_SHAPES * 6; s++) {
        QsfModel m;
        open_shape(&m, shapes[s % N_SHAPES]);
        QsfPlanOptions o = options(0);
        if (s / N_SHAPES == 1) o.ctx = 300;
        if (s / N_SHAPES == 2) o.pin_cap = 0;
        if (s / N_SHAPES == 3) o.batch = 100, o.exact = true;
        if (s / N_SHAPES == 4) o.slots = 4, o.ctx_floor = 200;
        if (s / N_SHAPES == 5) o.threads = 16, o.pin_cap = MIB / 2;
        check_smallest(&m, o, s % 2 == 0 ? 200 * 1024 : 0);
        qsf_shape_model_free(&m);
    }
}

static void test_refusal_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    open_shape(&m, &small);
    QsfPlanOptions o = options(5 * MIB);
    o.ctx = 2048;
    assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
    for (int i = 0; i < QSF_MEM_N; i++) {
        bool listed = strstr(err.msg, qsf_mem_cat_name((QsfMemCat)i)) != NULL;
        assert_true(listed || i == QSF_MEM_EMBED);
    }
    assert_non_null(strstr(err.msg, "sum "));
    assert_non_null(strstr(err.msg, "--ctx"));
    assert_non_null(strstr(err.msg, "5 MB"));
    qsf_shape_model_free(&m);
}

static void test_user_values_stay(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(0);
    o.ctx = 1000;
    o.batch = 48;
    o.kv = QK_KV_F32;
    for (o.slots = 0; o.slots <= 4; o.slots++) {
        for (o.budget = qsf_plan_smallest(&m, &o); o.budget < 900 * MIB; o.budget += 37 * MIB) {
            make(&p, &m, &o);
            check_plan(&m, &p, &o);
            assert_int_equal(p.ctx, 1000);
            assert_int_equal(p.batch, 48);
            assert_int_equal(p.kv, QK_KV_F32);
            assert_true(o.slots == 0 || p.n_slots == o.slots || p.streamed_bytes == 0);
            qsf_plan_free(&p);
        }
    }
    qsf_shape_model_free(&m);
}

/* Positions that are in use stay, whatever the budget; a wish below them is raised to them. */
static void test_ctx_floor(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    open_shape(&m, &big);
    QsfPlanOptions o = options(0);
    o.ctx_floor = 777;
    for (o.budget = qsf_plan_smallest(&m, &o); o.budget < 4000 * MIB; o.budget += 211 * MIB) {
        make(&p, &m, &o);
        check_plan(&m, &p, &o);
        assert_true(p.ctx >= 777);
        qsf_plan_free(&p);
    }
    o.budget = qsf_plan_smallest(&m, &o);
    make(&p, &m, &o);
    assert_true(p.ctx < 777 + 32); /* it is lowered that far */
    qsf_plan_free(&p);
    o.ctx = 300;
    make(&p, &m, &o);
    assert_int_equal(p.ctx, 777);
    qsf_plan_free(&p);
    o.ctx = 2000; /* set, so not lowered, though the floor would allow it */
    assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
    qsf_shape_model_free(&m);
}

/* What gives way, and in which order: context down to 512, kept embedding rows, slots, context down to 128.
 */
static void test_order(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(0);
    uint64_t least = qsf_plan_smallest(&m, &o);
    bool saw[4] = { false };
    for (o.budget = least; o.budget < least + 80 * MIB; o.budget += MIB / 4) {
        make(&p, &m, &o);
        uint64_t want = o.budget / 64 / (1152 + 48); /* rows of 1152 bytes, and what each costs beside */
        bool rows = p.embed_rows < (want < 1024 ? want : 1024);
        bool slots = p.n_slots < 4 || p.slot_bytes < MIB;
        if (rows || slots) assert_true(p.ctx <= 512 && p.pinned_bytes == 0);
        if (p.ctx > 512) assert_true(!rows && !slots);
        if (slots && p.ctx == 512)
            assert_true(rows); /* what is left over when the context is shorter is another matter */
        if (p.ctx < 2048) assert_non_null(strstr(p.note, "context lowered from 2048 to "));
        if (slots) assert_non_null(strstr(p.note, " layer slot"));
        if (p.ctx == 2048 && p.pinned_bytes > 0) assert_string_equal(p.note, "");
        saw[0] |= p.ctx > 512 && p.ctx < 2048;
        saw[1] |= p.ctx == 512;
        saw[2] |= slots;
        saw[3] |= p.ctx < 512;
        qsf_plan_free(&p);
    }
    for (int i = 0; i < 4; i++) assert_true(saw[i]);
    qsf_shape_model_free(&m);
}

/* Where a step of the context is big, what it leaves over does not lie idle. */
static void test_spare(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    unsigned seen = 0;
    open_shape(&m, &big);
    QsfPlanOptions o = options(0);
    uint64_t least = qsf_plan_smallest(&m, &o);
    for (o.budget = least; o.budget < 230 * MIB; o.budget += MIB) {
        make(&p, &m, &o);
        if (p.ctx < 512 && p.budget - p.total > 2 * MIB) {
            assert_true(p.n_slots == 4 && p.slot_bytes == MIB && p.embed_rows > 256 && p.batch > 16);
            seen++;
        }
        qsf_plan_free(&p);
    }
    assert_true(seen > 10);
    qsf_shape_model_free(&m);
}

/* A model no bigger than the slots it would stream through rather has a shorter context; and streams all the
 * same when it is told to. */
static void test_toy(void **state) {
    (void)state;
    const QsfShapeSpec toy = { 1, 256, 4, 4, 256, 1000, 4096, false, F32 };
    QsfModel m;
    QsfPlan p;
    bool shorter = false;
    open_shape(&m, &toy);
    QsfPlanOptions o = options(0);
    uint64_t least = qsf_plan_smallest(&m, &o);
    for (o.budget = least + 4 * MIB; o.budget < least + 30 * MIB; o.budget += MIB / 2) {
        make(&p, &m, &o);
        check_plan(&m, &p, &o);
        assert_true(p.n_slots == 0 && p.streamed_bytes == 0);
        shorter |= p.ctx >= 512 && p.ctx < 4096;
        qsf_plan_free(&p);
    }
    assert_true(shorter);
    sweep(&m, options(0));
    o.pin_cap = MIB;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.n_slots == 4 && p.streamed_bytes > 0);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_pin_cap(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(2000 * MIB);
    o.pin_cap = 0;
    make(&p, &m, &o);
    assert_int_equal(p.pinned_bytes, 0);
    assert_int_equal(p.streamed_bytes, p.weight_bytes);
    assert_true(p.n_slots == 4 && p.slot_bytes == 4 * MIB && !p.embed_resident && p.embed_rows == 1024);
    assert_false(p.keep_cached);
    qsf_plan_free(&p);
    o.pin_cap = 100 * MIB;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.pinned_bytes > 99 * MIB);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_all_fits(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(900 * MIB);
    o.io = QSF_IO_PREAD;
    o.direct = QSF_DIRECT_ON;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.n_slots == 0 && p.streamed_bytes == 0 && p.embed_resident && p.batch == 512 &&
                p.ctx == 2048);
    assert_string_equal(p.note, "");
    assert_true(p.io == QSF_IO_PREAD && p.direct == QSF_DIRECT_ON);
    assert_true(p.keep_cached);
    qsf_plan_free(&p);
    o.available = 1300 * MIB; /* the page cache would have to give the file up again */
    make(&p, &m, &o);
    assert_false(p.keep_cached);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_auto(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(0);
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.streamed_bytes == 0 && p.batch == 512);
    assert_true(p.budget < p.total + 4 * MIB); /* what it needs, not what there is */
    qsf_plan_free(&p);
    o.available = 800 * MIB;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.budget <= 400 * MIB && p.streamed_bytes > 0);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* The streamed bytes up to any unit are the streamed share of the weights up to there, but for one piece;
 * pieces are of a megabyte or more, or a whole unit; between two of them lies no more than their distance and
 * one unit. */
static void check_spread(const QsfModel *m, const QsfPlan *p) {
    double share = (double)p->streamed_bytes / (double)p->weight_bytes, due = 0, gap = 0;
    double piece = (double)(p->slot_bytes > MIB ? p->slot_bytes : 2 * MIB), widest = 0, n = 0;
    for (uint32_t i = 0; i + 1 < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        double streamed = (double)qsf_unit_item_bytes(&u, p->pinned_items[i], u.items);
        due += share * (double)u.bytes - streamed;
        assert_true(due > -piece && due < piece + share * 64 * 1024);
        gap += (double)u.bytes - streamed;
        if (streamed == 0) continue;
        assert_true(streamed > 0.95 * MIB || streamed == (double)u.bytes);
        assert_true(gap <= piece / share + (double)u.bytes + piece);
        if (gap > widest) widest = gap;
        gap = 0;
        n++;
    }
    if (p->streamed_bytes > 16 * MIB) assert_true(n >= 4);
}

static void test_spread(void **state) {
    (void)state;
    static const unsigned percent[] = { 3, 10, 20, 35, 50, 65, 79, 85, 92, 97 };
    for (size_t s = 0; s < N_SHAPES; s++) {
        QsfModel m;
        if (shapes[s] == &tiny) continue;
        open_shape(&m, shapes[s]);
        for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
            QsfPlan p;
            QsfPlanOptions o = options(1ull << 40);
            o.ctx = 512;
            make(&p, &m, &o);
            uint64_t all = p.weight_bytes;
            qsf_plan_free(&p);
            o.pin_cap = all / 100 * percent[i];
            o.budget = all + 1024 * MIB;
            make(&p, &m, &o);
            check_plan(&m, &p, &o);
            check_spread(&m, &p);
            assert_true(o.pin_cap - p.pinned_bytes < 2 * MIB);
            qsf_plan_free(&p);
        }
        qsf_shape_model_free(&m);
    }
}

/* At 92 % of a 1.1B file some 50 MB stream, in pieces of one slot; everything but pinned weights takes 45 MB.
 */
static void test_small_at_560(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    unsigned pieces = 0;
    open_shape(&m, &small);
    QsfPlanOptions o = options(560 * MIB);
    o.ctx = 512;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    check_spread(&m, &p);
    for (uint32_t i = 0; i + 1 < p.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(&m, i, &u);
        uint64_t streamed = qsf_unit_item_bytes(&u, p.pinned_items[i], u.items);
        if (streamed == 0) continue;
        pieces++;
        assert_true(streamed <= 3 * MIB);
    }
    assert_true(pieces >= (p.streamed_bytes / MIB) / 2 - 6);
    assert_true(p.total - p.pinned_bytes <= 45 * MIB);
    assert_true(p.n_slots == 4 && p.slot_bytes > MIB && p.batch >= 64);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* A 7B model answers in 200 MB, with the context lowered and said so; no slot holds a layer of 108 MB. */
static void test_7b_in_200(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &big);
    QsfPlanOptions o = options(QSF_BUDGET_DEFAULT);
    o.tokenizer_bytes = 4 * MIB;
    make(&p, &m, &o);
    check_plan(&m, &p, &o);
    assert_true(p.ctx >= QSF_CTX_MIN && p.ctx < 512); /* 512 tokens of f16 keys and values take 256 MB */
    assert_non_null(strstr(p.note, "context lowered from 4096 to"));
    assert_true(p.slot_bytes <= MIB);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    open_shape(&m, &small);
    QsfPlanOptions o = options(200 * MIB);
    o.io = QSF_IO_URING;
    static const char *const words[] = {
        "200.00 MB\n",          "\npinned ",         " %\nstreamed per token ", "\nslots ",
        " 4 of 1.00 MB\n",      "\nembedding rows ", "the last 1024 kept\n",    "\nio ",
        " uring, direct auto\n"
    };
    make(&p, &m, &o);
    char *text = qsf_plan_text(&p);
    assert_non_null(text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (int i = 0; i < QSF_MEM_N; i++) assert_non_null(strstr(text, qsf_mem_cat_name((QsfMemCat)i)));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i]) == NULL) fail_msg("no '%s' in\n%s", words[i], text);
    }
    free(text);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_every_megabyte),
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_refusal_text),
        cmocka_unit_test(test_user_values_stay),
        cmocka_unit_test(test_ctx_floor),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_toy),
        cmocka_unit_test(test_pin_cap),
        cmocka_unit_test(test_all_fits),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_small_at_560),
        cmocka_unit_test(test_7b_in_200),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
