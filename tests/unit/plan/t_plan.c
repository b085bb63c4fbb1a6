/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory plan, case by case: what is reduced and in which order, what the user set, what the messages
 * say. t_plan_sweep.c has the properties of all plans. */
#include "src/plan/options.h"
#include "src/plan/units.h"
#include "tests/harness/plans.h"
#include "tests/harness/qsf_test.h"

static void test_refusal_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(5 * MIB);
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
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0);
    o.ctx = 1000;
    o.batch = 48;
    o.k = o.v = QK_KV_F32;
    for (o.slots = 0; o.slots <= 4; o.slots++) {
        for (o.budget = qsf_plan_smallest(&m, &o); o.budget < 900 * MIB; o.budget += 37 * MIB) {
            qsf_plans_make(&p, &m, &o);
            qsf_plans_check(&m, &p, &o);
            assert_int_equal(p.ctx, 1000);
            assert_int_equal(p.batch, 48);
            assert_int_equal(p.kv.k, QK_KV_F32);
            assert_int_equal(p.kv.v, QK_KV_F32);
            assert_true(o.slots == 0 || p.n_slots == o.slots || p.streamed_bytes == 0);
            qsf_plan_free(&p);
        }
    }
    qsf_shape_model_free(&m);
}

/* A pass cannot have more columns than the context, or than the slack of a ring. */
static void test_batch_limits(void **state) {
    static const struct {
        uint32_t ctx, window, batch;
        const char *note;
    } rows[] = {
        { 8192, 0, 4096, "" },
        { 8192, 512, 1024, "prefill chunk of 1024 instead of 4096 tokens, which is all that a model with" },
        { 1536, 512, 1536, "prefill chunk of 1536 instead of 4096 tokens, which is all that the context" },
        { 2048, 0, 2048, "prefill chunk of 2048 instead of 4096 tokens, which is all that the context" }
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfModel m;
        QsfPlan p, fewer;
        qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
        m.prog.kv[0].window = rows[i].window;
        QsfPlanOptions o = qsf_plans_options(1ull << 40);
        o.ctx = rows[i].ctx;
        o.batch = 4096;
        qsf_plans_make(&p, &m, &o);
        assert_int_equal(p.batch, rows[i].batch);
        assert_memory_equal(p.note, rows[i].note, strlen(rows[i].note));
        if (rows[i].note[0] == '\0') assert_int_equal(p.note[0], '\0');
        o.batch = rows[i].batch;
        qsf_plans_make(&fewer, &m, &o);
        assert_int_equal(p.rows[QSF_MEM_ACTIVATIONS], fewer.rows[QSF_MEM_ACTIVATIONS]);
        assert_string_equal(fewer.note, "");
        qsf_plan_free(&p);
        qsf_plan_free(&fewer);
        qsf_shape_model_free(&m);
    }
}

/* Positions in use are kept, whatever the budget; a lower context setting is raised to them. */
static void test_ctx_floor(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    qsf_plans_open_shape(&m, QSF_SHAPE_BIG);
    QsfPlanOptions o = qsf_plans_options(0);
    o.ctx_floor = 777;
    for (o.budget = qsf_plan_smallest(&m, &o); o.budget < 4000 * MIB; o.budget += 211 * MIB) {
        qsf_plans_make(&p, &m, &o);
        qsf_plans_check(&m, &p, &o);
        assert_true(p.ctx >= 777);
        qsf_plan_free(&p);
    }
    o.budget = qsf_plan_smallest(&m, &o);
    qsf_plans_make(&p, &m, &o);
    assert_true(p.ctx < 777 + 32); /* it is lowered to that value */
    qsf_plan_free(&p);
    o.ctx = 300; /* set by the user, so not raised */
    assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "the context cannot be 300 tokens: 776 are in use");
    qsf_err_clear(&err);
    o.ctx = 2000; /* set by the user, so not lowered, though the floor would allow it */
    assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
    qsf_shape_model_free(&m);
}

/* The order of reductions: context down to 512, cached embedding rows, slots, context down to 128. */
static void test_order(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0);
    uint64_t least = qsf_plan_smallest(&m, &o);
    bool saw[4] = { false };
    for (o.budget = least; o.budget < least + 80 * MIB; o.budget += MIB / 4) {
        qsf_plans_make(&p, &m, &o);
        uint64_t want = o.budget / 64 / (1152 + 48); /* rows of 1152 bytes, and the overhead of each */
        bool rows = p.embed_rows < (want < 1024 ? want : 1024);
        bool slots = p.n_slots < 4 || p.slot_bytes < MIB;
        if (rows || slots) assert_true(p.ctx <= 512 && p.pinned_bytes == 0);
        if (p.ctx > 512) assert_true(!rows && !slots);
        if (slots && p.ctx == 512)
            assert_true(rows); /* the leftover with a shorter context is not tested here */
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

/* Where a step of the context is large, its leftover is used. */
static void test_spare(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    unsigned seen = 0;
    qsf_plans_open_shape(&m, QSF_SHAPE_BIG);
    QsfPlanOptions o = qsf_plans_options(0);
    o.k = o.v = QK_KV_F16;
    uint64_t least = qsf_plan_smallest(&m, &o);
    for (o.budget = least; o.budget < 230 * MIB; o.budget += MIB) {
        qsf_plans_make(&p, &m, &o);
        if (p.ctx < 512 && p.budget - p.total > 2 * MIB) {
            assert_true(p.n_slots == 4 && p.slot_bytes == MIB && p.embed_rows > 256 && p.batch > 16);
            seen++;
        }
        qsf_plan_free(&p);
    }
    assert_true(seen > 10);
    qsf_shape_model_free(&m);
}

static void test_pin_cap(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(2000 * MIB);
    o.pin_cap = 0;
    qsf_plans_make(&p, &m, &o);
    assert_int_equal(p.pinned_bytes, 0);
    assert_int_equal(p.streamed_bytes, p.weight_bytes);
    assert_true(p.n_slots == 4 && p.slot_bytes == 4 * MIB && !p.embed_resident && p.embed_rows == 1024);
    assert_false(p.stream.keep_cached);
    qsf_plan_free(&p);
    o.pin_cap = 100 * MIB;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_true(p.pinned_bytes > 99 * MIB);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

static void test_all_fits(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(900 * MIB);
    o.stream.kind = QSF_IO_PREAD;
    o.stream.direct = QSF_DIRECT_ON;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_true(p.n_slots == 0 && p.streamed_bytes == 0 && p.embed_resident && p.batch == 512 &&
                p.ctx == 2048);
    assert_string_equal(p.note, "");
    assert_true(p.stream.kind == QSF_IO_PREAD && p.stream.direct == QSF_DIRECT_ON);
    assert_true(p.stream.keep_cached);
    qsf_plan_free(&p);
    o.available = 1300 * MIB; /* the page cache would have to drop the file */
    qsf_plans_make(&p, &m, &o);
    assert_false(p.stream.keep_cached);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* resident holds the table also while weights stream, and of a tied model the head; lru has no table of its
 * own. The refusal names a budget that works. */
static void test_embedding(void **state) {
    static const QsfPlanShape shapes[] = { QSF_SHAPE_SMALL, QSF_SHAPE_TIED };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        QsfModel m;
        QsfPlan p;
        QsfUnit head;
        QsfErr err = { 0 };
        const bool tied = shapes[i] == QSF_SHAPE_TIED;
        qsf_plans_open_shape(&m, shapes[i]);
        qsf_unit_at(&m, qsf_unit_count(&m) - 1, &head);
        QsfPlanOptions o = qsf_plans_options(0);
        const uint64_t least = qsf_plan_smallest(&m, &o);
        o.embedding = QSF_EMBEDDING_RESIDENT;
        const uint64_t table = tied ? head.bytes : m.prog.embed->bytes, more = qsf_plan_smallest(&m, &o);
        assert_true(more >= least + table / MIB * MIB / 2 && more <= least + table + 4 * MIB);
        o.budget = more - MIB;
        assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_BUDGET);
        for (o.budget = more; o.budget < more + 200 * MIB; o.budget += 50 * MIB) {
            qsf_plans_make(&p, &m, &o);
            qsf_plans_check(&m, &p, &o);
            assert_true(p.embed_resident && p.embed_rows == 0 && p.streamed_bytes > 0);
            assert_true(tied ? p.pinned_items[head.index] == head.items : p.rows[QSF_MEM_EMBED] >= table);
            qsf_plan_free(&p);
        }
        o.pin_cap = 0;
        if (tied) {
            err = (QsfErr){ 0 };
            assert_int_equal(qsf_plan_make(&p, &m, &o, &err), QSF_E_USAGE);
            assert_non_null(strstr(err.msg, "pin 0 MB does not allow"));
        } else {
            qsf_plans_make(&p, &m, &o);
            assert_true(p.embed_resident && p.pinned_bytes == 0);
            qsf_plan_free(&p);
        }
        o.pin_cap = UINT64_MAX;
        o.embedding = QSF_EMBEDDING_LRU;
        o.budget = 2000 * MIB;
        qsf_plans_make(&p, &m, &o);
        assert_true(p.streamed_bytes == 0 && p.embed_resident == tied && (p.embed_rows > 0) == !tied);
        assert_true(p.rows[QSF_MEM_EMBED] < m.prog.embed->bytes);
        qsf_plan_free(&p);
        qsf_shape_model_free(&m);
    }
}

static void test_auto(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0);
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_true(p.streamed_bytes == 0 && p.batch == 512);
    assert_true(p.budget < p.total + 12 * MIB); /* what it needs, with room for long messages */
    const uint64_t empty = p.budget;
    qsf_plan_free(&p);
    o.text_bytes = 6 * MIB; /* and for those of a session */
    qsf_plans_make(&p, &m, &o);
    assert_true(p.budget >= empty + 60 * MIB && p.budget < empty + 64 * MIB);
    qsf_plan_free(&p);
    o.text_bytes = UINT64_MAX / 2;
    qsf_plans_make(&p, &m, &o);
    assert_int_equal(p.budget, o.available / 2);
    qsf_plan_free(&p);
    o.text_bytes = 0;
    o.available = 800 * MIB;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_true(p.budget <= 400 * MIB && p.streamed_bytes > 0);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* Where no plan fits half of what is available, the smallest one and a little more is taken, up to three
 * quarters; beyond that the model is refused. */
static void test_auto_above_half(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0);
    const uint64_t least = qsf_plan_smallest_beside(&m, &o, 0);
    const struct {
        uint64_t available, budget; /* 0: refused */
    } rows[] = { { 2 * least, least },
                 { 2 * qsf_plan_smallest(&m, &o) - 2 * MIB, (least + least / 16) / MIB * MIB },
                 { least / 3 * 4 + 2 * MIB, least },
                 { least / 3 * 4 - 2 * MIB, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[96];
        QsfErr err = { 0 };
        o.available = rows[i].available;
        const int rc = qsf_plan_make(&p, &m, &o, &err);
        assert_int_equal(rc, rows[i].budget == 0 ? QSF_E_BUDGET : QSF_OK);
        if (rows[i].budget == 0) {
            snprintf(text, sizeof text, "three quarters of the %.5g MB that are available, is too little",
                     (double)o.available / MIB);
            assert_non_null(strstr(err.msg, text));
            snprintf(text, sizeof text, "\nsmallest budget that works: %u MB", (unsigned)(least / MIB));
            assert_non_null(strstr(err.msg, text));
            continue;
        }
        qsf_plans_check(&m, &p, &o);
        assert_in_range(p.budget, rows[i].budget, rows[i].budget + MIB);
        assert_true(p.budget <= o.available / 4 * 3 + MIB);
        snprintf(text, sizeof text, "automatic RAM budget of %u MB because half of the %u MB",
                 (unsigned)(p.budget / MIB), (unsigned)(o.available / MIB));
        assert_true((strstr(p.note, text) != NULL) == (i > 0));
        qsf_plan_free(&p);
    }
    qsf_shape_model_free(&m);
}

/* At 92 % of a 1.1B file some 50 MB stream, in pieces of one slot; everything except pinned weights takes 45
 * MB. */
static void test_small_at_560(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    unsigned pieces = 0;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(560 * MIB);
    o.ctx = 512;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    qsf_plans_check_spread(&m, &p);
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

/* Speculation takes no context and, but for what it needs itself, no pins. */
static void test_drafts(void **state) {
    static const uint32_t budgets[] = { 60, 90, 120, 200, 560, 800, 2000 };
    QsfModel m;
    (void)state;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        QsfPlanOptions o = qsf_plans_options(budgets[i] * MIB);
        QsfPlan on, off;
        QsfErr err = { 0 };
        o.drafting = QSF_DRAFTING_OFF;
        if (qsf_plan_make(&off, &m, &o, &err) != QSF_OK) continue;
        o.drafting = QSF_DRAFTING_AUTO;
        qsf_plans_make(&on, &m, &o);
        assert_int_equal(off.draft_cols, 0);
        assert_int_equal(off.lookup_tokens, 0);
        assert_int_equal(on.ctx, off.ctx);
        assert_true(qsf_kv_types_equal(on.kv, off.kv));
        const uint64_t drafts = 4ull * QSF_DRAFT_COLS * m.hp.n_vocab + qsf_lookup_bytes(on.lookup_tokens) +
                                MIB;
        assert_true(on.pinned_bytes + (on.draft_cols > 0 ? drafts : 0) >= off.pinned_bytes);
        if (off.note[0] != '\0' && off.pinned_bytes == 0) assert_int_equal(on.draft_cols, 0);
        if (budgets[i] >= 560) assert_int_equal(on.draft_cols, QSF_DRAFT_COLS);
        qsf_plan_free(&on);
        qsf_plan_free(&off);
    }
    qsf_shape_model_free(&m);
}

/* --- types of the KV cache --- */

static unsigned bits_of(QsfKvTypes t) { return 64 * qsf_kv_type_bits(t.k) + qsf_kv_type_bits(t.v); }

/* Fewer bits only once the context is 512 tokens, and a shorter context only with the fewest; more memory
 * never means fewer bits. A type that the user set stays. */
static void test_kv_order(void **state) {
    (void)state;
    static const int set[][2] = { { -1, -1 }, { QK_KV_F16, -1 }, { -1, QK_KV_F32 }, { QK_KV_Q8, QK_KV_F16 } };
    const QsfKvTypes lowest = qsf_kv_choice(qsf_kv_choices() - 1);
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_BIG);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        QsfPlanOptions o = qsf_plans_options(0);
        o.k = set[i][0];
        o.v = set[i][1];
        const uint64_t least = qsf_plan_smallest(&m, &o);
        unsigned before = 0;
        for (o.budget = least; o.budget < least + 400 * MIB; o.budget += 3 * MIB) {
            qsf_plans_make(&p, &m, &o);
            const bool low = p.why_k == QSF_KV_LOWERED || p.why_v == QSF_KV_LOWERED;
            assert_true(o.k < 0 || (p.kv.k == (qk_kv)o.k && p.why_k == QSF_KV_SET));
            assert_true(o.v < 0 || (p.kv.v == (qk_kv)o.v && p.why_v == QSF_KV_SET));
            assert_true(bits_of(p.kv) >= before);
            if (low) assert_true(p.ctx <= 512 && strstr(p.note, "KV cache ") != NULL);
            if (p.ctx < 512)
                assert_true((o.k >= 0 || p.kv.k == lowest.k) && (o.v >= 0 || p.kv.v == lowest.v));
            if (!low) assert_null(strstr(p.note, "KV cache "));
            before = bits_of(p.kv);
            qsf_plan_free(&p);
        }
        assert_int_equal(before, bits_of((QsfKvTypes){ o.k < 0 ? QK_KV_F16 : (qk_kv)o.k,
                                                       o.v < 0 ? QK_KV_F16 : (qk_kv)o.v }));
    }
    qsf_shape_model_free(&m);
}

/* A context that the user set is never shortened: then fewer bits are all that helps. */
static void test_kv_of_set_ctx(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0), f16 = qsf_plans_options(0);
    o.ctx = f16.ctx = 8192;
    f16.k = f16.v = QK_KV_F16;
    o.budget = f16.budget = qsf_plan_smallest(&m, &f16) - MIB;
    assert_int_equal(qsf_plan_make(&p, &m, &f16, &err), QSF_E_BUDGET);
    assert_non_null(strstr(err.msg, "use --kv-type q8, "));
    qsf_plans_make(&p, &m, &o);
    assert_true(p.ctx == 8192 && p.kv.k == QK_KV_Q8);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* Positions that are there keep their types: with more memory and, if anything else can be
 * lowered, with less. */
static void test_kv_kept(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(900 * MIB), f16;
    o.ctx_floor = 600;
    o.keep_k = o.keep_v = true;
    o.kv_now = (QsfKvTypes){ QK_KV_Q8, QK_KV_Q8 };
    qsf_plans_make(&p, &m, &o);
    assert_true(qsf_kv_types_equal(p.kv, o.kv_now) && p.why_k == QSF_KV_LOWERED);
    assert_non_null(strstr(p.note, "KV cache q8 instead of f16 because it is not empty"));
    qsf_plan_free(&p);
    o.kv_now = (QsfKvTypes){ QK_KV_F16, QK_KV_F16 };
    f16 = o;
    f16.k = f16.v = QK_KV_F16;
    o.budget = qsf_plan_smallest(&m, &f16);
    qsf_plans_make(&p, &m, &o);
    assert_true(qsf_kv_types_equal(p.kv, o.kv_now));
    qsf_plan_free(&p);
    o.budget -= MIB;
    qsf_plans_make(&p, &m, &o);
    assert_true(p.kv.k == QK_KV_Q8 && p.kv.v == QK_KV_Q8 && p.ctx >= 600);
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* A 7B model runs in 200 MB, with a lowered context, an 8-bit cache, and a message about them; no
 * slot holds a layer of 108 MB. */
static void test_7b_in_200(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_BIG);
    QsfPlanOptions o = qsf_plans_options(QSF_BUDGET_DEFAULT);
    o.tokenizer_bytes = 4 * MIB;
    qsf_plans_make(&p, &m, &o);
    qsf_plans_check(&m, &p, &o);
    assert_int_equal(p.ctx, 512); /* 512 tokens of f16 keys and values take 256 MB */
    assert_true(p.kv.k == QK_KV_Q8 && p.kv.v == QK_KV_Q8);
    assert_non_null(strstr(p.note, "context lowered from 4096 to 512 tokens, KV cache q8 instead of f16"));
    assert_true(p.slot_bytes <= MIB);
    assert_true(p.pinned_bytes > 20 * MIB); /* what fewer bits save beyond what was missing */
    qsf_plan_free(&p);
    qsf_shape_model_free(&m);
}

/* The reason that is shown for the types: set, or because caches cannot have what was set. */
static void check_kv_text(QsfModel *m, int k, int v, const char *expected) {
    char text[QSF_PLAN_KV_TEXT];
    QsfPlan p;
    QsfPlanOptions o = qsf_plans_options(8000 * MIB);
    o.k = k;
    o.v = v;
    qsf_plans_make(&p, m, &o);
    qsf_plan_kv_text(&p, text, sizeof text);
    assert_string_equal(text, expected);
    qsf_plan_free(&p);
}

static void test_kv_text(void **state) {
    (void)state;
    QsfModel m;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    for (uint32_t i = 0; i < m.prog.n_kv; i++) m.prog.kv[i].read_once = true;
    check_kv_text(&m, -1, -1, "f16 (the default)");
    check_kv_text(&m, QK_KV_Q2, QK_KV_Q2, "q2 (as set)");
    m.prog.kv[3].read_once = false;
    check_kv_text(&m, QK_KV_Q2, QK_KV_Q2, "q2 (as set, q4 where the model cannot store it)");
    check_kv_text(&m, QK_KV_F16, QK_KV_Q2, "f16/q2 (K as set, V as set, q4 where the model cannot store it)");
    for (uint32_t i = 0; i < m.prog.n_kv; i++) m.prog.kv[i].read_once = false;
    check_kv_text(&m, QK_KV_Q2, QK_KV_Q2, "q4 (because the model cannot store q2)");
    check_kv_text(&m, QK_KV_Q2, -1, "q4/f16 (K because the model cannot store q2, V the default)");
    for (uint32_t i = 0; i < m.prog.n_kv; i++) m.prog.kv[i].v_is_k = true;
    check_kv_text(&m, QK_KV_Q8, QK_KV_Q4, "q8 (as set)");
    check_kv_text(&m, QK_KV_Q4, -1, "q8 (because the model cannot store q4)");
    qsf_shape_model_free(&m);
}

/* With a short context q2 takes more than q4, which is said. */
static void test_two_bits(void **state) {
    (void)state;
    QsfModel m;
    qsf_plans_open_shape(&m, QSF_SHAPE_BIG);
    for (uint32_t i = 0; i < m.prog.n_kv; i++) m.prog.kv[i].read_once = true;
    for (uint32_t ctx = 512; ctx <= 2048; ctx *= 4) {
        uint64_t kv[2];
        for (int i = 0; i < 2; i++) {
            QsfPlan p;
            QsfPlanOptions o = qsf_plans_options(6000 * MIB);
            o.ctx = ctx;
            o.k = o.v = i == 0 ? QK_KV_Q2 : QK_KV_Q4;
            qsf_plans_make(&p, &m, &o);
            kv[i] = p.rows[QSF_MEM_KV];
            const bool noted =
                strstr(p.note, "KV cache q2 takes 99.00 MB for 512 tokens, q4 would take 66.00") != NULL;
            assert_true(noted == (i == 0 && ctx == 512));
            assert_true(noted || p.note[0] == '\0');
            qsf_plan_free(&p);
        }
        assert_true((kv[0] > kv[1]) == (ctx == 512));
    }
    qsf_shape_model_free(&m);
}

/* A budget that was chosen, and one that the machine does not have; a cgroup of the budget's
 * size is not one. */
static void test_budget_notice(void **state) {
    (void)state;
    char text[256];
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0);
    for (int i = 0; i < 4; i++) {
        static const struct {
            uint64_t budget, available;
            const char *text;
        } rows[] = {
            { 0, 16384 * MIB, "RAM budget " },
            { 200 * MIB, 190 * MIB, "" },
            { 99999999 * MIB, 23398 * MIB,
              "the RAM budget of 99999999 MB is more than the 23398 MB that are available; the plan uses " },
            { 99999999 * MIB, 300 * MIB, ", so the machine may swap, or stop the program" }
        };
        o.budget = rows[i].budget;
        o.available = rows[i].available;
        qsf_plans_make(&p, &m, &o);
        qsf_plan_budget_notice(&o, &p, text, sizeof text);
        assert_true(rows[i].text[0] != '\0' ? strstr(text, rows[i].text) != NULL : text[0] == '\0');
        if (i == 2) assert_null(strstr(text, "may swap"));
        qsf_plan_free(&p);
    }
    qsf_shape_model_free(&m);
}

/* A budget that the machine does not have is lowered to what it has, and so is what counts page tables. */
static void test_budget_limit(void **state) {
    (void)state;
    static const struct {
        uint64_t asked;
        unsigned percent;
        uint64_t limit, budget;
    } rows[] = { { 99999999 * MIB, 0, 500 * MIB + 7, 500 },
                 { 300 * MIB, 0, 500 * MIB, 300 },
                 { 0, 90, 100 * MIB, 100 },
                 { 0, 0, 500 * MIB, 0 },
                 { 99999999 * MIB, 0, UINT64_MAX, 99999999 },
                 { 99999999 * MIB, 0, 0, 99999999 } };
    char text[256];
    QsfModel m;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QSFSettings s;
        QsfPlanOptions o;
        QsfPlan p;
        const QsfPlanFacts facts = { .resident = 0 };
        const QsfPlanMemory memory = { .available = 400 * MIB, .limit = rows[i].limit };
        qsf_settings_default(&s);
        s.ram_budget = rows[i].asked;
        s.ram_percent = rows[i].percent;
        assert_int_equal(qsf_settings_budget(&s, memory), rows[i].budget * MIB);
        qsf_plan_options_first(&o, &s, &facts, memory);
        qsf_plans_make(&p, &m, &o);
        qsf_plan_budget_notice(&o, &p, text, sizeof text);
        if (i == 0) {
            assert_non_null(strstr(text, "the RAM budget of 99999999 MB is lowered to 500 MB"));
            assert_int_equal(p.rows[QSF_MEM_KERNEL], MIB + 500 * MIB / 1000 * 3);
        }
        qsf_plan_free(&p);
    }
    qsf_shape_model_free(&m);
}

static void test_text(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(200 * MIB);
    o.stream.kind = QSF_IO_URING;
    static const char *const words[] = { "200.00 MB\n",
                                         "\npinned ",
                                         " %\nstreamed per token ",
                                         "\npinned at start ",
                                         " %\nstreamed at start ",
                                         "\nslots ",
                                         " 4 of 1.00 MB\n",
                                         "\nembedding rows ",
                                         "1024 cached\n",
                                         "\nio ",
                                         " uring, direct auto\n" };
    qsf_plans_make(&p, &m, &o);
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

/* What drafts beside the model is given up before a budget is refused. */
static void test_drafts_give_way(void **state) {
    (void)state;
    QsfModel m;
    QsfPlan p;
    QsfErr err = { 0 };
    qsf_plans_open_shape(&m, QSF_SHAPE_SMALL);
    QsfPlanOptions o = qsf_plans_options(0), with = o;
    with.beside[QSF_MEM_PINNED] = 100 * MIB;
    with.hold_head = true;
    o.budget = with.budget = qsf_plan_smallest(&m, &o);
    assert_int_equal(qsf_plan_smallest(&m, &with), o.budget);
    assert_int_equal(qsf_plan_smallest_beside(&m, &with, 0), qsf_plan_smallest_beside(&m, &o, 0));
    assert_int_equal(qsf_plan_make(&p, &m, &with, &err), QSF_E_BUDGET);
    assert_int_equal(qsf_plan_check(&m, &with, &err), QSF_OK);
    qsf_model_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusal_text),
        cmocka_unit_test(test_user_values_stay),
        cmocka_unit_test(test_batch_limits),
        cmocka_unit_test(test_ctx_floor),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_pin_cap),
        cmocka_unit_test(test_all_fits),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_above_half),
        cmocka_unit_test(test_small_at_560),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_7b_in_200),
        cmocka_unit_test(test_kv_order),
        cmocka_unit_test(test_kv_of_set_ctx),
        cmocka_unit_test(test_kv_kept),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_two_bits),
        cmocka_unit_test(test_kv_text),
        cmocka_unit_test(test_budget_notice),
        cmocka_unit_test(test_budget_limit),
        cmocka_unit_test(test_drafts_give_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
