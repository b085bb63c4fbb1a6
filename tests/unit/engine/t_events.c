/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The event logs: merging, order, the wake pipe, a slow reader, a full log. */
#include "tests/harness/qsf_test.h"

#include <poll.h>
#include <time.h>

#include "src/engine/events.h"

static atomic_int cancel;

static void open_queue(QsfEvents *q) {
    QsfErr err = { 0 };
    atomic_store(&cancel, 0);
    qsf_test_expect_ok(qsf_events_init(q, &cancel, &err), &err);
}

static void push_text(QsfEvents *q, uint64_t request, const char *text, size_t len) {
    QSFEvent e = { .type = QSF_EVENT_TEXT, .request = request, .text = text, .text_len = len, .tokens = 1 };
    qsf_events_push(q, &e, NULL);
}

static void push_done(QsfEvents *q, uint64_t request, atomic_bool *busy) {
    QSFEvent e = { .type = QSF_EVENT_DONE, .request = request, .stop = QSF_STOP_LENGTH, .seed = 99 };
    qsf_events_push(q, &e, busy);
}

static bool readable(const QsfEvents *q) {
    struct pollfd p = { .fd = q->wake.fd[0], .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

static void text_of_one_request_merges(void **state) {
    (void)state;
    QsfEvents q;
    QSFEvent e;
    open_queue(&q);
    push_text(&q, 1, "Once", 4);
    push_text(&q, 1, " upon", 5);
    push_text(&q, 2, "x", 1);
    push_done(&q, 2, NULL);
    push_text(&q, 2, "y", 1);
    assert_true(qsf_events_next(&q, &e));
    assert_string_equal(e.text, "Once upon");
    assert_int_equal(e.text_len, 9);
    assert_int_equal(e.tokens, 2);
    push_text(&q, 2, "z", 1); /* while the first half is read */
    assert_true(qsf_events_next(&q, &e) && e.request == 2 && strcmp(e.text, "x") == 0);
    assert_true(qsf_events_next(&q, &e) && e.type == QSF_EVENT_DONE && e.seed == 99 && e.text[0] == '\0');
    assert_true(qsf_events_next(&q, &e) && strcmp(e.text, "y") == 0);
    assert_true(qsf_events_next(&q, &e) && strcmp(e.text, "z") == 0);
    assert_false(qsf_events_next(&q, &e));
    qsf_events_free(&q);
}

static void the_pipe_wakes_until_all_is_read(void **state) {
    (void)state;
    QsfEvents q;
    QSFEvent e;
    open_queue(&q);
    assert_false(readable(&q));
    for (int round = 0; round < 3; round++) {
        push_done(&q, 1, NULL);
        push_done(&q, 2, NULL);
        assert_true(readable(&q));
        assert_true(qsf_events_next(&q, &e));
        assert_true(readable(&q)); /* one is left */
        assert_true(qsf_events_next(&q, &e));
        assert_false(qsf_events_next(&q, &e));
        assert_false(readable(&q));
    }
    qsf_events_free(&q);
}

enum { PIECE = 700, PIECES = 3000 }; /* 2 MB: many times the size of the log */

static void *produce(void *arg) {
    QsfEvents *q = arg;
    char text[PIECE];
    for (int i = 0; i < PIECES; i++) {
        for (int j = 0; j < PIECE; j++) text[j] = (char)('a' + (i + j) % 26);
        push_text(q, 1, text, PIECE);
    }
    push_done(q, 1, NULL);
    return NULL;
}

static void a_slow_reader_loses_nothing(void **state) {
    (void)state;
    QsfEvents q;
    pthread_t thread;
    QSFEvent e = { 0 };
    size_t got = 0, tokens = 0;
    open_queue(&q);
    assert_int_equal(pthread_create(&thread, NULL, produce, &q), 0);
    while (e.type != QSF_EVENT_DONE) {
        struct timespec nap = { .tv_nsec = 3000000 };
        nanosleep(&nap, NULL);
        if (!qsf_events_next(&q, &e) || e.type != QSF_EVENT_TEXT) continue;
        assert_true(e.text_len <= QSF_EVENTS_SOFT);
        for (size_t i = 0; i < e.text_len; i++, got++)
            if (e.text[i] != 'a' + (char)((got / PIECE + got % PIECE) % 26))
                fail_msg("byte %zu is wrong", got);
        tokens += e.tokens;
    }
    assert_int_equal(got, (size_t)PIECE * PIECES);
    assert_int_equal(tokens, PIECES);
    pthread_join(thread, NULL);
    qsf_events_free(&q);
}

/* Pushes until the log is full and blocks there. */
static void *produce_forever(void *arg) {
    QsfEvents *q = arg;
    char text[PIECE];
    memset(text, 'x', sizeof text);
    while (atomic_load(&cancel) == 0) push_text(q, 1, text, PIECE);
    push_done(q, 1, NULL);
    return NULL;
}

static bool nearly_full(QsfEvents *q) {
    pthread_mutex_lock(&q->lock);
    bool full = q->fill.len > QSF_EVENTS_SOFT - 2 * PIECE;
    pthread_mutex_unlock(&q->lock);
    return full;
}

static void a_cancellation_ends_the_wait_for_a_reader(void **state) {
    (void)state;
    QsfEvents q;
    pthread_t thread;
    QSFEvent e = { 0 };
    struct timespec nap = { .tv_nsec = 10000000 };
    open_queue(&q);
    assert_int_equal(pthread_create(&thread, NULL, produce_forever, &q), 0);
    while (!nearly_full(&q)) nanosleep(&nap, NULL);
    for (int i = 0; i < 10; i++) nanosleep(&nap, NULL); /* it waits for space now */
    atomic_store(&cancel, 1);
    pthread_join(thread, NULL); /* hangs if the engine still waits */
    assert_true(q.fill.len > QSF_EVENTS_SOFT - 2 * PIECE && q.fill.len <= QSF_EVENTS_HARD);
    while (qsf_events_next(&q, &e)) {
    }
    assert_int_equal(e.type, QSF_EVENT_DONE);
    qsf_events_free(&q);
}

/* After a cancellation, the longest possible last piece and the end of the request still fit. */
static void the_end_fits_into_a_full_log(void **state) {
    (void)state;
    static char big[QSF_EVENT_TEXT_MAX];
    QsfEvents q;
    QSFEvent e;
    size_t text = 0;
    atomic_bool busy = true;
    open_queue(&q);
    memset(big, 'x', sizeof big);
    push_text(&q, 1, big, sizeof big);
    atomic_store(&cancel, 1);
    push_text(&q, 1, big, sizeof big);
    push_text(&q, 1, big, 8192);
    push_done(&q, 1, &busy);
    assert_false(atomic_load(&busy));
    while (qsf_events_next(&q, &e)) {
        if (e.type == QSF_EVENT_TEXT)
            text += e.text_len;
        else
            assert_int_equal(e.type, QSF_EVENT_DONE);
    }
    assert_int_equal(text, 2 * sizeof big + 8192);
    assert_int_equal(e.type, QSF_EVENT_DONE);
    qsf_events_free(&q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_one_request_merges),
        cmocka_unit_test(the_pipe_wakes_until_all_is_read),
        cmocka_unit_test(a_slow_reader_loses_nothing),
        cmocka_unit_test(a_cancellation_ends_the_wait_for_a_reader),
        cmocka_unit_test(the_end_fits_into_a_full_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
