/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prompts: what is in memory of the layers that are to come stays until they were computed; the experts of
 * the next layer are read while this one is computed. And free slots are filled during passes with what was
 * learned before. */
#include "tests/unit/stream/expert_rig.h"

enum { PROMPT = 64 };

static uint32_t experts_read(const Rig *r) {
    return (uint32_t)atomic_load(&r->counters.bytes_read) / (2 * QSF_WINDOW);
}

static void fill(Rig *r) {
    QsfErr err = { 0 };
    bool more = true;
    while (more) qsf_test_expect_ok(qsf_expert_pool_fill(r->pool, UINT64_MAX, &more, &err), &err);
}

/* The first n experts of a layer are computed, one after the other. Returns how many were not there when they
 * were requested. */
static uint32_t compute(Rig *r, uint32_t layer, uint32_t n) {
    uint32_t missing = 0;
    for (uint32_t e = 0; e < n; e++)
        for (uint32_t pos = 0; pos < PROMPT; pos++)
            qsf_expert_pool_use(r->pool, 2 * (layer * EXPERTS + e), PROMPT - 1 - pos);
    for (uint32_t e = 0; e < n; e++) {
        missing += !qsf_expert_pool_has(r->pool, 2 * (layer * EXPERTS + e));
        qsf_expert_pool_note(r->pool, 2 * (layer * EXPERTS + e), false, &r->counters);
        qsf_expert_pool_request(r->pool, 2 * (layer * EXPERTS + e));
    }
    qsf_expert_pool_read_ahead(r->pool, false);
    for (uint32_t i = 0; i < 2 * n; i++) {
        const uint32_t unit = 2 * layer * EXPERTS + i;
        QsfErr err = { 0 };
        const uint8_t *data;
        QsfChunk c;
        qsf_test_expect_ok(qsf_expert_pool_acquire(r->pool, unit, &c, &data, &err), &err);
        assert_int_equal(c.unit, unit);
        qsf_expert_pool_release(r->pool, unit);
    }
    return missing;
}

static uint32_t resident(const Rig *r, uint32_t from, uint32_t to) {
    uint32_t n = 0;
    for (uint32_t e = from; e < to; e++) n += qsf_expert_pool_has(r->pool, 2 * e);
    return n;
}

/* A prompt that chooses the first n experts of each layer; returns the sum of all layers but the first. idle:
 * between two layers there is time to read a whole one. */
static uint32_t prompt(Rig *r, uint32_t n, bool idle) {
    uint32_t missing = 0;
    qsf_expert_pool_begin_pass(r->pool, PROMPT);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const uint32_t here = compute(r, layer, n), next = (layer + 1) * EXPERTS;
        missing += layer > 0 ? here : 0;
        while (idle && next < ALL && resident(r, next, next + EXPERTS) < EXPERTS)
            qsf_expert_pool_poll(r->pool);
    }
    return missing;
}

/* Each expert is read once at most, those that are in memory only if their slots are needed at once. */
static void what_is_there_is_used(void **unused) {
    const uint32_t slots = ALL / 2;
    Rig r;
    (void)unused;
    for (unsigned ahead = QSF_GUESSING_AUTO; ahead < QSF_GUESSING_N; ahead++) {
        open_rig_as(&r, LAYERS, slots, (QsfGuessing)ahead);
        fill(&r);
        const uint32_t filled = experts_read(&r);
        assert_int_equal(filled, slots);
        for (unsigned i = 0; i < 3; i++) {
            const uint32_t before = experts_read(&r);
            (void)prompt(&r, EXPERTS, false);
            const uint32_t read = experts_read(&r) - before;
            if (read < ALL - slots || read > ALL - slots + EXPERTS) fail_msg("%u experts read", read);
        }
        close_rig(&r);
    }
}

/* The next layer is there when it is computed, if all of it is needed and may be read ahead. */
static void next_layer_is_read(void **unused) {
    Rig r;
    (void)unused;
    open_rig_ahead(&r, 2 * EXPERTS, QSF_GUESSING_AUTO);
    assert_int_equal(prompt(&r, EXPERTS, true), 0);
    assert_int_equal(experts_read(&r), ALL);
    assert_int_equal(atomic_load(&r.counters.ahead_wasted), 0);
    close_rig(&r);
    open_rig_ahead(&r, 2 * EXPERTS, QSF_GUESSING_OFF);
    assert_int_equal(prompt(&r, EXPERTS, false), ALL - EXPERTS);
    assert_int_equal(atomic_load(&r.counters.ahead_read), 0);
    close_rig(&r);
    open_rig_ahead(&r, 2 * EXPERTS, QSF_GUESSING_ON);
    (void)prompt(&r, EXPERTS / 2, false);
    assert_int_equal(atomic_load(&r.counters.ahead_read), 0);
    close_rig(&r);
}

/* One position that uses one expert, and then waits until n are there. */
static void token(Rig *r, uint32_t n) {
    qsf_expert_pool_begin_pass(r->pool, 1);
    (void)compute(r, 0, 1);
    do qsf_expert_pool_poll(r->pool);
    while (resident(r, 0, ALL) < n);
}

/* Those that were used in earlier conversations, as long as there are free slots, but not before the weights
 * that are pinned; without that knowledge nothing is read that was not chosen. */
static void free_slots_are_filled(void **unused) {
    const uint32_t slots = ALL / 2, known = ALL / 4;
    uint16_t uses[ALL] = { 0 };
    Rig r;
    (void)unused;
    for (uint32_t e = 0; e < known; e++) uses[3 * e] = 100;
    open_rig(&r, slots);
    token(&r, 1);
    qsf_expert_pool_reset(r.pool); /* waits for reads */
    assert_int_equal(experts_read(&r), 1);
    close_rig(&r);
    open_rig(&r, slots);
    qsf_expert_pool_learned(r.pool, uses, ALL, 1000);
    atomic_store(&r.counters.pin_total, 1);
    token(&r, 1);
    qsf_expert_pool_reset(r.pool);
    assert_int_equal(resident(&r, 0, ALL), 1);
    atomic_store(&r.counters.pin_done, 1);
    token(&r, known);
    for (uint32_t e = 0; e < known; e++) assert_true(qsf_expert_pool_has(r.pool, 6 * e));
    assert_int_equal(experts_read(&r), known);
    assert_int_equal(atomic_load(&r.counters.ahead_read), 0); /* it is not a prediction */
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_there_is_used),
                                        cmocka_unit_test(next_layer_is_read),
                                        cmocka_unit_test(free_slots_are_filled) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
