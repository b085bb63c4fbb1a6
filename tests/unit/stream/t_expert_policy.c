/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which experts stay in memory: those that are used most, also when fewer fit than one token uses, and when
 * others come once; after a change of subject the new ones. What is counted for other numbers of slots is
 * what happens with them; and what was learned before is read first. */
#include <errno.h>

#include "src/base/file.h"
#include "tests/unit/stream/expert_rig.h"

static uint32_t state = 1;

static uint32_t random_below(uint32_t n) { return ((state = state * 1664525u + 1013904223u) >> 8) % n; }

/* Three of the six experts that begin with `hot`, and any other one. */
static void choose(uint32_t hot, uint32_t *id) {
    const uint32_t first = random_below(6);
    for (uint32_t k = 0; k < 3; k++) id[k] = (hot + (first + k) % 6) % EXPERTS;
    id[3] = (hot + 6 + random_below(EXPERTS - 6)) % EXPERTS;
}

/* One token of all layers; returns how many experts were read. */
static uint32_t token(Rig *r, uint32_t hot) {
    uint32_t misses = 0;
    qsf_expert_pool_begin_pass(r->pool, 1);
    qsf_expert_pool_note_position(r->pool, &r->counters);
    for (uint32_t layer = 0; layer < r->layers; layer++) {
        uint32_t id[USED], unit[USED];
        choose(hot + layer, id);
        for (uint32_t k = 0; k < USED; k++) {
            unit[k] = 2 * (layer * EXPERTS + id[k]);
            misses += !qsf_expert_pool_has(r->pool, unit[k]);
            qsf_expert_pool_use(r->pool, unit[k], 0);
        }
        for (uint32_t k = 0; k < USED; k++) {
            qsf_expert_pool_note(r->pool, unit[k], true, &r->counters);
            qsf_expert_pool_request(r->pool, unit[k]);
        }
        qsf_expert_pool_read_ahead(r->pool, false);
        for (uint32_t i = 0; i < 2 * USED; i++) {
            QsfErr err = { 0 };
            const uint8_t *data;
            QsfChunk c;
            qsf_test_expect_ok(qsf_expert_pool_acquire(r->pool, unit[i / 2] + i % 2, &c, &data, &err), &err);
            assert_int_equal(c.unit, unit[i / 2] + i % 2);
            qsf_expert_pool_release(r->pool, unit[i / 2] + i % 2);
        }
    }
    return misses;
}

/* Share of the chosen experts that are there, of n tokens. */
static double hits(Rig *r, uint32_t hot, uint32_t n) {
    uint32_t misses = 0;
    for (uint32_t i = 0; i < n; i++) misses += token(r, hot);
    return 1 - (double)misses / (n * r->layers * USED);
}

static void expect_hits(double least, double most, double h) {
    if (h < least || h > most) fail_msg("%.2f hits, expected %.2f to %.2f", h, least, most);
}

/* Room for the six of each layer, and some more. */
static void often_used_ones_stay(void **unused) {
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * 8);
    (void)hits(&r, 0, 100);
    expect_hits(0.74, 0.85, hits(&r, 0, 200));
    close_rig(&r);
}

/* Of each layer half of what one token uses: what was used least recently would always be needed next. */
static void less_than_a_token(void **unused) {
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * USED / 2);
    (void)hits(&r, 0, 100);
    expect_hits(0.15, 0.5, hits(&r, 0, 200));
    close_rig(&r);
}

static void another_subject(void **unused) {
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * 8);
    (void)hits(&r, 0, 1000);
    (void)hits(&r, 13, 48); /* three half-lives */
    expect_hits(0.7, 0.85, hits(&r, 13, 100));
    close_rig(&r);
}

/* All of them fit: each is read once. Rates are scaled on the way. */
static void all_fit(void **unused) {
    Rig r;
    (void)unused;
    open_rig(&r, ALL);
    (void)hits(&r, 0, 9000);
    assert_int_equal(token(&r, 0), 0);
    close_rig(&r);
}

/* Of the last positions, by what was counted with other slots. */
static double counted_hits(const Rig *r, uint32_t slots) {
    uint32_t depth[QSF_EXPERT_DEPTHS];
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++)
        depth[i] = (uint32_t)atomic_load(&r->counters.expert_depth[i]);
    return qsf_expert_hits_of(depth, slots, r->layers * EXPERTS);
}

static void other_numbers_of_slots(void **unused) {
    static const uint32_t slots[] = { LAYERS * USED / 2, LAYERS * 5, LAYERS * 8, ALL / 2, ALL };
    enum { N = sizeof slots / sizeof *slots };
    double counted[N];
    Rig r;
    (void)unused;
    state = 7;
    open_rig(&r, LAYERS * 6);
    (void)hits(&r, 0, 256 + 255);
    for (unsigned i = 0; i < N; i++) counted[i] = counted_hits(&r, slots[i]);
    close_rig(&r);
    for (unsigned i = 0; i < N; i++) {
        state = 7;
        open_rig(&r, slots[i]);
        (void)hits(&r, 0, 128); /* what was counted in the first 255 positions counts half */
        const double h = hits(&r, 0, 256 + 255 - 128);
        expect_hits(h - 0.04, h + 0.04, counted[i]);
        close_rig(&r);
    }
    assert_true(counted[0] < counted[2] && counted[2] < counted[4]);
}

/* Of more than 2048 experts only a part is in the list. */
static void a_part_of_many(void **unused) {
    static const uint32_t slots[] = { MANY * 3, MANY * 8 };
    double counted[2];
    static Rig r;
    (void)unused;
    state = 9;
    open_rig_of(&r, MANY, MANY * 4);
    assert_int_equal(qsf_expert_pool_every(r.pool), 2);
    (void)hits(&r, 0, 60);
    for (unsigned i = 0; i < 2; i++) counted[i] = counted_hits(&r, slots[i]);
    close_rig(&r);
    for (unsigned i = 0; i < 2; i++) {
        state = 9;
        open_rig_of(&r, MANY, slots[i]);
        const double h = hits(&r, 0, 60);
        expect_hits(h - 0.04, h + 0.04, counted[i]);
        close_rig(&r);
    }
}

static void too_few_to_say(void **unused) {
    uint32_t depth[QSF_EXPERT_DEPTHS] = { 255 };
    (void)unused;
    assert_true(qsf_expert_hits_of(NULL, 1, 64) < 0 && qsf_expert_hits_of(depth, 1, 64) < 0);
    depth[1] = 85;
    assert_true(qsf_expert_hits_of(depth, 1, 64) == 0.75);
    assert_true(qsf_expert_hits_of(depth, 64, 64) == 1);
    assert_true(qsf_expert_hits_of(depth, 1, 32) == 1 && qsf_expert_hits_of(depth, 1, 128) == 0.375);
}

/* Fills some slots and returns how many of the `n` most used experts are there. */
static uint32_t filled(Rig *r, uint32_t slots, uint32_t n) {
    QsfErr err = { 0 };
    uint32_t there = 0;
    bool more = true;
    while (more) qsf_test_expect_ok(qsf_expert_pool_fill(r->pool, QSF_WINDOW, &more, &err), &err);
    for (uint32_t i = 0, k = 0; i < ALL && k < n; i += 5, k++) there += qsf_expert_pool_has(r->pool, 2 * i);
    assert_int_equal(qsf_expert_pool_slots(r->pool), slots);
    assert_int_equal(atomic_load(&r->counters.wait_ns), 0); /* between passes nothing waits for it */
    return there;
}

static void learned_ones_are_read_first(void **unused) {
    uint16_t uses[ALL] = { 0 };
    Rig r;
    (void)unused;
    open_rig(&r, 24);
    assert_true(filled(&r, 24, 24) < 12);
    close_rig(&r);
    for (uint32_t i = 0, k = 0; k < 24; i += 5, k++) uses[i] = (uint16_t)(100 + k);
    open_rig(&r, 24);
    qsf_expert_pool_learned(r.pool, uses, ALL - 1, 1000); /* of another model */
    qsf_expert_pool_learned(r.pool, uses, ALL, 0);
    assert_true(filled(&r, 24, 24) < 12);
    close_rig(&r);
    open_rig(&r, 24);
    qsf_expert_pool_learned(r.pool, uses, ALL, 1000);
    assert_int_equal(filled(&r, 24, 24), 24);
    close_rig(&r);
}

static void uses_are_taken_once(void **unused) {
    uint32_t uses[ALL], sum = 0;
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * 6);
    (void)hits(&r, 0, 20);
    assert_int_equal(qsf_expert_pool_take_uses(r.pool, uses, ALL - 1), 0);
    assert_int_equal(qsf_expert_pool_take_uses(r.pool, uses, ALL), 20);
    for (uint32_t i = 0; i < ALL; i++) sum += uses[i];
    assert_int_equal(sum, 20 * LAYERS * USED);
    assert_int_equal(qsf_expert_pool_take_uses(r.pool, uses, ALL), 0);
    close_rig(&r);
}

/* The counter of experts in memory, layer by layer, when slots are removed too. */
static void resident_ones_are_counted(void **unused) {
    QsfLayerCounters layer[LAYERS + 1] = { { 0 } };
    QsfErr err = { 0 };
    uint32_t n = 0, there = 0;
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * 6);
    r.counters.layer = layer;
    (void)hits(&r, 0, 20);
    qsf_test_expect_ok(qsf_expert_pool_resize(r.pool, 20, &err), &err);
    (void)hits(&r, 0, 3);
    for (uint32_t i = 0; i < LAYERS; i++) n += (uint32_t)atomic_load(&layer[i].experts_in);
    for (uint32_t i = 0; i < ALL; i++) there += qsf_expert_pool_has(r.pool, 2 * i);
    assert_int_equal(n, there);
    assert_int_equal(atomic_load(&r.counters.expert_slots), 20);
    close_rig(&r);
    for (uint32_t i = 0; i < LAYERS; i++) assert_int_equal(atomic_load(&layer[i].experts_in), 0);
}

/* ---- what is read ahead ---- */

/* One token of all layers, each of which chooses two of the first experts; the predictions are right, or two
 * of the last ones. Returns in how many layers there were any. */
static uint32_t predicted_token(Rig *r, bool right) {
    uint32_t guesses = 0, next[2] = { random_below(EXPERTS / 2), EXPERTS / 2 + random_below(EXPERTS / 4) };
    qsf_expert_pool_begin_pass(r->pool, 1);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        const uint32_t now[2] = { 2 * (layer * EXPERTS + next[0]), 2 * (layer * EXPERTS + next[1]) };
        for (unsigned k = 0; k < 2; k++) qsf_expert_pool_use(r->pool, now[k], 0);
        for (unsigned k = 0; k < 2; k++) qsf_expert_pool_request(r->pool, now[k]);
        qsf_expert_pool_read_ahead(r->pool, false);
        next[0] = random_below(EXPERTS / 2);
        next[1] = EXPERTS / 2 + random_below(EXPERTS / 4);
        if (layer + 1 < LAYERS && qsf_expert_pool_guesses(r->pool)) {
            uint32_t unit[2];
            for (unsigned k = 0; k < 2; k++)
                unit[k] = 2 *
                          ((layer + 1) * EXPERTS + (right ? next[k] : EXPERTS - 1 - next[k] % (EXPERTS / 4)));
            guesses++;
            qsf_expert_pool_guess(r->pool, unit, 2);
        }
        for (unsigned i = 0; i < 4; i++) {
            QsfErr err = { 0 };
            const uint8_t *data;
            QsfChunk c;
            qsf_test_expect_ok(qsf_expert_pool_acquire(r->pool, now[i / 2] + i % 2, &c, &data, &err), &err);
            qsf_expert_pool_release(r->pool, now[i / 2] + i % 2);
        }
    }
    return guesses;
}

/* Predictions that are not right end by themselves, and are tried again later; with `on` they never end. */
static void only_where_it_pays(void **unused) {
    uint32_t with = 0, late = 0;
    Rig r;
    (void)unused;
    for (unsigned right = 0; right < 2; right++) {
        for (unsigned always = 0; always < 2; always++) {
            open_rig_ahead(&r, LAYERS * 8, always ? QSF_GUESSING_ON : QSF_GUESSING_AUTO);
            const unsigned n = always || right ? 50 : 300;
            with = late = 0;
            for (unsigned i = 0; i < n; i++) with += predicted_token(&r, right);
            for (unsigned i = 0; i < n; i++) late += predicted_token(&r, right);
            const uint64_t read = atomic_load(&r.counters.ahead_read),
                           got = atomic_load(&r.counters.ahead_used),
                           lost = atomic_load(&r.counters.ahead_wasted);
            assert_true(read > 0 && got + lost <= read);
            if (right) assert_true(got >= read / 10 * 9);
            if (!right) assert_int_equal(got, 0);
            if (right || always) assert_int_equal(with + late, 2 * n * (LAYERS - 1));
            if (!right && !always)
                assert_true(with > 0 && with < 50 * LAYERS && late > 0 && late < 50 * LAYERS);
            close_rig(&r);
        }
    }
}

/* Slots of experts that are used all the time are not taken for predictions. */
static void never_for_what_is_wanted(void **unused) {
    Rig r;
    (void)unused;
    open_rig_ahead(&r, USED, QSF_GUESSING_ON);
    for (unsigned i = 0; i < 50; i++) {
        const uint32_t guess[2] = { 2 * (EXPERTS + 5), 2 * (EXPERTS + 6) };
        qsf_expert_pool_begin_pass(r.pool, 1);
        for (uint32_t k = 0; k < USED; k++) qsf_expert_pool_use(r.pool, 2 * k, 0);
        for (uint32_t k = 0; k < USED; k++) qsf_expert_pool_request(r.pool, 2 * k);
        qsf_expert_pool_read_ahead(r.pool, false);
        for (uint32_t u = 0; u < 2 * USED; u++) {
            QsfErr err = { 0 };
            const uint8_t *data;
            QsfChunk c;
            qsf_test_expect_ok(qsf_expert_pool_acquire(r.pool, u, &c, &data, &err), &err);
            qsf_expert_pool_release(r.pool, u);
        }
        if (i >= 40) qsf_expert_pool_guess(r.pool, guess, 2);
    }
    assert_int_equal(atomic_load(&r.counters.ahead_read), 0);
    for (uint32_t k = 0; k < USED; k++) assert_true(qsf_expert_pool_has(r.pool, 2 * k));
    close_rig(&r);
}

static int use_one(Rig *r, uint32_t unit, QsfErr *err) {
    const uint8_t *data;
    QsfChunk c;
    qsf_expert_pool_begin_pass(r->pool, 1);
    qsf_expert_pool_use(r->pool, unit, 0);
    qsf_expert_pool_request(r->pool, unit);
    qsf_expert_pool_read_ahead(r->pool, false);
    int rc = qsf_expert_pool_acquire(r->pool, unit, &c, &data, err);
    if (rc == QSF_OK) rc = qsf_expert_pool_acquire(r->pool, unit + 1, &c, &data, err);
    if (rc == QSF_OK) qsf_expert_pool_release(r->pool, unit);
    if (rc == QSF_OK) qsf_expert_pool_release(r->pool, unit + 1);
    if (rc != QSF_OK) qsf_expert_pool_reset(r->pool);
    return rc;
}

/* What was predicted cannot be read: that is an error when it is chosen, and not before. */
static void failed_prediction(void **unused) {
    enum { GUESS = 20 };
    const uint32_t guess = GUESS;
    QsfErr err = { 0 };
    Rig r;
    (void)unused;
    open_rig_ahead(&r, LAYERS * 8, QSF_GUESSING_ON);
    qsf_test_expect_ok(use_one(&r, 0, &err), &err);
    qsf_file_inject_fault(GUESS * QSF_WINDOW + 5, EIO);
    qsf_expert_pool_guess(r.pool, &guess, 1);
    qsf_test_expect_ok(use_one(&r, 2, &err), &err);
    assert_int_equal(use_one(&r, GUESS, &err), QSF_E_RUNTIME);
    qsf_err_clear(&err);
    assert_int_equal(atomic_load(&r.counters.ahead_used) + atomic_load(&r.counters.ahead_wasted),
                     2 * QSF_WINDOW);
    qsf_file_inject_fault(UINT64_MAX, 0);
    qsf_test_expect_ok(use_one(&r, 4, &err), &err);
    qsf_test_expect_ok(use_one(&r, GUESS, &err), &err);
    close_rig(&r);
}

/* Starting a read is not computing: what is in the page cache is copied then. */
static void starting_is_waiting(void **unused) {
    QsfErr err = { 0 };
    const uint8_t *data;
    QsfChunk c;
    Rig r;
    (void)unused;
    open_rig(&r, LAYERS * 8);
    qsf_expert_pool_begin_pass(r.pool, 1);
    qsf_expert_pool_request(r.pool, 0);
    qsf_expert_pool_read_ahead(r.pool, false);
    assert_int_equal(atomic_load(&r.counters.bytes_read), 0); /* nothing was waited for */
    assert_true(atomic_load(&r.counters.wait_ns) > 0);
    for (uint32_t unit = 0; unit < 2; unit++) {
        qsf_test_expect_ok(qsf_expert_pool_acquire(r.pool, unit, &c, &data, &err), &err);
        qsf_expert_pool_release(r.pool, unit);
    }
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(often_used_ones_stay),   cmocka_unit_test(less_than_a_token),
        cmocka_unit_test(another_subject),        cmocka_unit_test(all_fit),
        cmocka_unit_test(other_numbers_of_slots), cmocka_unit_test(a_part_of_many),
        cmocka_unit_test(too_few_to_say),         cmocka_unit_test(learned_ones_are_read_first),
        cmocka_unit_test(uses_are_taken_once),    cmocka_unit_test(resident_ones_are_counted),
        cmocka_unit_test(only_where_it_pays),     cmocka_unit_test(never_for_what_is_wanted),
        cmocka_unit_test(failed_prediction),      cmocka_unit_test(starting_is_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
