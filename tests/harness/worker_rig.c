/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The helpers of worker_rig.h; all of them fail the running test on an error. */
#include "tests/harness/worker_rig.h"

#include <poll.h>

#include "tests/harness/qsf_test.h"

static QsfSeen seen;

void qsf_rig_wait(QSFWorker *w, QSFEvent *e) {
    while (!qsf_worker_next(w, e)) {
        struct pollfd p = { .fd = qsf_worker_fd(w), .events = POLLIN };
        if (poll(&p, 1, 60000) != 1) fail_msg("the engine printed nothing");
    }
    assert_int_equal(e->text[e->text_len], 0); /* the output of a model may contain NUL bytes */
}

static void take_text(QsfSeen *s, const QSFEvent *e) {
    const size_t room = sizeof s->text - 1 - s->len, n = e->text_len < room ? e->text_len : room;
    memcpy(s->text + s->len, e->text, n);
    s->len += n;
    s->text[s->len] = '\0';
    s->tokens += e->tokens;
    s->text_events++;
}

static void take_reasoning(QsfSeen *s, const QSFEvent *e) {
    assert_true(s->reasoning_len + e->text_len < sizeof s->reasoning);
    assert_int_equal(s->len, 0); /* it precedes the answer */
    memcpy(s->reasoning + s->reasoning_len, e->text, e->text_len + 1);
    s->reasoning_len += e->text_len;
}

static void take_plan(QsfSeen *s, const QSFEvent *e) {
    s->plans++;
    s->plan_code = e->code;
    snprintf(s->plan_text, sizeof s->plan_text, "%s", e->text);
}

bool qsf_rig_take(QSFWorker *w, uint64_t id, QsfSeen *s) {
    QSFEvent e;
    qsf_rig_wait(w, &e);
    assert_int_equal(e.request, id);
    switch (e.type) {
    case QSF_EVENT_TEXT: take_text(s, &e); return true;
    case QSF_EVENT_REASONING: take_reasoning(s, &e); return true;
    case QSF_EVENT_PLAN: take_plan(s, &e); return true;
    case QSF_EVENT_NOTICE:
        s->notices++;
        snprintf(s->notice, sizeof s->notice, "%s", e.text);
        return true;
    default:
        s->end = e;
        snprintf(s->end_text, sizeof s->end_text, "%s", e.text);
        return false;
    }
}

QsfSeen *qsf_rig_finish(QSFWorker *w, uint64_t id) {
    assert_true(id > 0);
    memset(&seen, 0, sizeof seen);
    while (qsf_rig_take(w, id, &seen)) {
    }
    return &seen;
}

QsfSeen *qsf_rig_plan(QSFWorker *w) {
    QSFEvent e;
    memset(&seen, 0, sizeof seen);
    qsf_rig_wait(w, &e);
    assert_int_equal(e.type, QSF_EVENT_PLAN);
    assert_int_equal(e.request, 0);
    take_plan(&seen, &e);
    return &seen;
}

QSFSettings qsf_rig_settings(void) {
    QSFSettings s;
    qsf_settings_default(&s);
    s.threads = 2;
    s.ram_budget = QSF_RIG_BUDGET;
    s.params.temperature = 0;
    s.params.ignore_eos = true;
    return s;
}

QSFWorker *qsf_rig_worker(void) {
    char err[256] = "";
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_worker_start(&s, err, sizeof err);
    if (w == NULL) fail_msg("%s", err);
    return w;
}

void qsf_rig_load(QSFWorker *w, const char *path, const QSFSettings *s) {
    QsfSeen *got = qsf_rig_finish(w, qsf_worker_load(w, path, s));
    if (got->end.type != QSF_EVENT_LOADED) fail_msg("%s", got->end_text);
}

QSFWorker *qsf_rig_worker_with(const char *path, int32_t max_tokens) {
    QSFSettings s = qsf_rig_settings();
    s.params.max_tokens = max_tokens;
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    return w;
}

uint64_t qsf_rig_submit(QSFWorker *w, const char *text) {
    QSFMessage m = { .role = "user", .content = text, .len = strlen(text) };
    QSFRequest r = { .messages = &m, .n_messages = 1 };
    return qsf_worker_submit(w, &r);
}

void qsf_rig_set_max(QSFWorker *w, int32_t n) {
    QSFParams p;
    qsf_worker_get_params(w, &p);
    p.max_tokens = n;
    qsf_worker_set_params(w, &p);
}
