/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long drafts are that cost something for each token. */
#include "src/speculate/length.h"
#include "tests/harness/qsf_test.h"

enum { MOST = QSF_DRAFT_MOST, ROUNDS = 512 };

/* A text of zeros, of which drafts guess the first `right` tokens. */
static uint32_t draft(QsfDraftLength *l, uint32_t *n, uint32_t right) {
    static const int32_t text[8 * ROUNDS * (MOST + 1)];
    int32_t ids[MOST];
    const QsfDraftView v = { text, *n };
    const uint32_t want = qsf_draft_length_next(l, &v, MOST);
    for (uint32_t i = 0; i < want; i++) ids[i] = i < right ? 0 : 1;
    qsf_draft_length_note(l, &v, ids, want);
    *n += MOST + 1;
    return want;
}

/* Of ROUNDS drafts the length that most have. */
static uint32_t usual(QsfDraftLength *l, uint32_t *n, uint32_t right) {
    uint32_t count[MOST + 1] = { 0 }, best = 0;
    for (int i = 0; i < ROUNDS; i++) count[draft(l, n, right)]++;
    for (uint32_t i = 0; i <= MOST; i++)
        if (count[i] > count[best]) best = i;
    return best;
}

static void as_long_as_it_is_right(void **state) {
    QsfDraftLength l;
    uint32_t n = 1;
    (void)state;
    qsf_draft_length_init(&l, false);
    assert_int_equal(draft(&l, &n, 1), 2);
    assert_int_equal(usual(&l, &n, 1), 1); /* the second token is always wrong */
    assert_int_equal(usual(&l, &n, MOST), MOST);
    assert_int_equal(usual(&l, &n, 3), 3);
    assert_int_equal(usual(&l, &n, 0), 1);
}

/* A token that is right in one of four cases pays only where passes mostly read. */
static void longer_where_passes_read(void **state) {
    uint32_t length[2] = { 0 };
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        QsfDraftLength l;
        uint32_t n = 1;
        qsf_draft_length_init(&l, streams);
        for (uint32_t i = 0; i < 4 * ROUNDS; i++) {
            const uint32_t want = draft(&l, &n, i % 4 == 0 ? 2 : 1);
            if (i >= ROUNDS && want > 1) length[streams]++;
        }
    }
    assert_true(length[0] < ROUNDS);
    assert_true(length[1] > 2 * ROUNDS);
}

/* What is not known yet is not wrong. */
static void the_end_says_nothing(void **state) {
    static const int32_t text[2];
    const int32_t ids[MOST] = { 0 };
    QsfDraftLength l;
    (void)state;
    qsf_draft_length_init(&l, false);
    const double before = l.rate[0];
    for (int i = 0; i < 8; i++) {
        const QsfDraftView v = { text, 2 };
        assert_int_equal(qsf_draft_length_next(&l, &v, 2), 2);
        qsf_draft_length_note(&l, &v, ids, 2);
    }
    assert_true(l.rate[0] >= before && l.rate[0] <= before);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_long_as_it_is_right),
                                        cmocka_unit_test(longer_where_passes_read),
                                        cmocka_unit_test(the_end_says_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
