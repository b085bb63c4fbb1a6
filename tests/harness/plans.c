/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes for plans, and the checks of plans. */
#include "tests/harness/plans.h"

#include "src/plan/kv_lend.h"
#include "src/plan/layout.h"
#include "src/plan/units.h"
#include "tests/harness/qsf_test.h"

static const QsfShapeSpec shapes[QSF_SHAPE_COUNT] = {
    [QSF_SHAPE_SMALL] = { 22, 2048, 32, 4, 5632, 32000, 2048, false, QSF_SHAPE_Q4_K },
    [QSF_SHAPE_BIG] = { 32, 4096, 32, 32, 11008, 32000, 4096, false, QSF_SHAPE_Q4_0 },
    [QSF_SHAPE_TIED] = { 16, 2048, 32, 8, 8192, 128256, 131072, true, QSF_SHAPE_Q4_0 },
    [QSF_SHAPE_TINY] = { 5, 64, 8, 4, 172, 512, 512, true, QSF_SHAPE_F32 },
    [QSF_SHAPE_HUGE] = { 80, 8192, 64, 8, 28672, 32003, 8192, false, QSF_SHAPE_Q4_K },
};

/* Places for the tensors of a shape, as a file has them: at multiples of 32 bytes, in files of 4 GiB. */
static void lay_out(QsfModel *m) {
    QsfTensor *const *tensor;
    uint64_t at = 927232;
    uint32_t file = 0, n = qsf_shape_tensors(m, &tensor);
    for (uint32_t i = 0; i < n; i++) {
        QsfTensor *t = tensor[i];
        if (at + t->bytes > 4096 * MIB) file++, at = 4000;
        t->file = file;
        t->offset = at;
        at = (at + t->bytes + 31) / 32 * 32;
    }
}

void qsf_plans_open(QsfModel *m, const QsfShapeSpec *s) {
    qsf_shape_model(m, s);
    lay_out(m);
}

void qsf_plans_open_shape(QsfModel *m, QsfPlanShape shape) { qsf_plans_open(m, &shapes[shape]); }

QsfCompressed *qsf_plans_press(QsfModel *m) {
    QsfCompressed *all = calloc(m->hp.n_layers, sizeof *all);
    QsfTensor *const *tensor;
    const uint32_t n = qsf_shape_tensors(m, &tensor);
    uint64_t off = 4096;
    assert_non_null(all);
    for (uint32_t l = 0; l < m->hp.n_layers; l++) {
        QsfCompressed *c = &all[l];
        char prefix[32];
        snprintf(prefix, sizeof prefix, "blk.%u.", l);
        for (uint32_t i = 0; i < n && l % 3 < 2; i++) {
            QsfTensor *t = tensor[i];
            if (strncmp(t->name, prefix, strlen(prefix)) != 0) continue;
            t->file = UINT32_MAX;
            t->offset = (c->whole_bytes + 16 + 63) / 64 * 64;
            t->compressed = c;
            c->whole_bytes = t->offset + t->bytes;
        }
        *c = (QsfCompressed){
            .layer = l, .off = off, .bytes = c->whole_bytes / 5 * 3, .whole_bytes = c->whole_bytes, .how = 1
        };
        off += c->bytes;
    }
    return all;
}

QsfPlanOptions qsf_plans_options(uint64_t budget) {
    return (QsfPlanOptions){ .budget = budget,
                             .available = 16384 * MIB,
                             .k = -1,
                             .v = -1,
                             .pin_cap = UINT64_MAX,
                             .threads = 2,
                             .base_bytes = 6 * MIB,
                             .tokenizer_bytes = 3 * MIB,
                             .meta_bytes = MIB / 4,
                             .transcript_bytes = MIB / 2 };
}

void qsf_plans_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o) {
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
        if (u.compressed != NULL) { /* no windows but those of the layer, which are checked elsewhere */
            assert_true(at == u.items || (at == 0 && step >= u.items));
            sum += at == 0 ? u.bytes : 0;
            continue;
        }
        for (; at < u.items; at += step) {
            assert_true(step > 0);
            qsf_chunk_make(&u, at, at + step < u.items ? at + step : u.items, &c);
            assert_true(c.bytes <= p->slot_bytes);
            sum += c.bytes;
        }
    }
    return sum;
}

/* A compressed layer is pinned whole or not at all, fits a slot, and is read to a stage. */
static void check_compressed(const QsfModel *m, const QsfPlan *p, uint32_t i, const QsfUnit *u) {
    QsfUnit first;
    uint32_t i0 = u->layer_first;
    qsf_unit_at(m, i0, &first);
    assert_int_equal(p->pinned_items[i] == u->items, p->pinned_items[i0] == first.items);
    assert_true(p->pinned_items[i] == 0 || p->pinned_items[i] == u->items);
    assert_true(p->pinned_items[i] != 0 || p->slot_bytes >= u->compressed->whole_bytes);
    assert_true(p->n_stages > 0 && p->stage_bytes >= qsf_compressed_windows(u->compressed));
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
        if (u.compressed != NULL) check_compressed(m, p, i, &u);
    }
    assert_int_equal(pinned, p->pinned_bytes);
    assert_int_equal(all, p->weight_bytes);
    assert_int_equal(all - pinned, p->streamed_bytes);
    assert_true(p->rows[QSF_MEM_PINNED] >= held);
    assert_true(pinned <= o->pin_cap);
}

/* Whatever the length of the context: the KV cache and the weights in the memory that it does not use yet fit
 * what was planned for both, and a longer context never pins more. */
static void check_lend(const QsfModel *m, const QsfPlan *p) {
    const QsfProgram *prog = &m->prog;
    const uint64_t all = qsf_kv_bytes(prog->kv, prog->n_kv, p->kv, p->ctx);
    uint32_t *before = malloc((p->n_lend + 1) * sizeof *before);
    assert_true(p->kv_step > 0 || p->n_lend == 0);
    for (uint32_t part = 0; p->n_lend > 0 && part <= 4; part++) {
        const uint32_t n = qsf_lend_positions(p->ctx / 4 * part, p->kv_step, p->ctx);
        uint64_t room = all - qsf_lend_kv_bytes(prog->kv, prog->n_kv, p->kv, p->ctx, n), was = room, more = 0,
                 held = 0;
        for (uint32_t i = 0; i < p->n_lend; i++) {
            QsfUnit u;
            qsf_unit_at(m, p->lend[i], &u);
            const uint32_t from = p->pinned_items[u.index], items = qsf_lend_items(&u, from, &room);
            assert_true(items >= from && (items == u.items || items % QSF_ROW_QUANTUM == 0));
            assert_true(part == 0 || items <= before[i]);
            if (items < u.items) room = 0;
            more += qsf_unit_item_bytes(&u, from, items);
            held += qsf_unit_pinned_bytes(&u, items) - qsf_unit_pinned_bytes(&u, from);
            before[i] = items;
        }
        assert_true(held <= was && (more == 0 || n < p->ctx));
        if (part == 0) assert_int_equal(more, p->lent_weight);
    }
    free(before);
}

/* Windows cost at most 2 % of what is not pinned, where slots and matrices are of a useful size. */
static void check_windows(const QsfModel *m, const QsfPlan *p) {
    uint64_t windows = read_per_pass(m, p) - p->streamed_bytes;
    if (p->slot_bytes >= MIB && m->hp.hidden >= 1024)
        assert_true(windows <= p->streamed_bytes / 50 + 6 * QSF_WINDOW);
}

/* What must be true of every plan. */
void qsf_plans_check(const QsfModel *m, const QsfPlan *p, const QsfPlanOptions *o) {
    assert_int_equal(sum_of(p->rows), p->total);
    assert_true(p->total <= p->budget);
    assert_int_equal(p->n_units, qsf_unit_count(m));
    check_pins(m, p, o);
    check_windows(m, p);
    check_lend(m, p);
    assert_true(p->n_slots <= 4 &&
                p->rows[QSF_MEM_SLOTS] == p->n_slots * p->slot_bytes + p->n_stages * p->stage_bytes);
    assert_true(p->disk_bytes <= p->streamed_bytes);
    assert_int_equal(p->slot_bytes % QSF_WINDOW, 0);
    assert_true(p->streamed_bytes == 0 || p->n_slots > 0);
    assert_true(p->ctx >= 1 && p->ctx >= o->ctx_floor && p->batch >= 1 && p->batch <= 512);
    assert_true(p->rows[QSF_MEM_KERNEL] >= MIB + p->budget / 1000 * 3);
    assert_true(p->embed_rows <= 1024 && (!p->embed_resident || p->embed_rows == 0));
    if (!p->embed_resident)
        assert_true(p->rows[QSF_MEM_EMBED] >= p->embed_rows * (m->prog.embed->bytes / m->hp.n_vocab));
    if (o->slots != 0 && p->n_slots != 0) assert_int_equal(p->n_slots, o->slots < 4 ? o->slots : 4);
}

/* The streamed bytes up to any unit are the streamed share of the weights up to there, but for one piece;
 * pieces are of a megabyte or more, or a whole unit; between two of them lies no more than their distance and
 * one unit. */
void qsf_plans_check_spread(const QsfModel *m, const QsfPlan *p) {
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

uint64_t qsf_plans_advised(const QsfErr *err) {
    const char *last = strrchr(err->msg, '\n');
    unsigned long long mb = 0;
    int end = 0;
    if (last == NULL || sscanf(last, "\nsmallest budget that works: %llu MB%n", &mb, &end) != 1 ||
        last[end] != '\0') {
        fail_msg("no advice at the end of: %s", err->msg);
    }
    return mb * MIB;
}
