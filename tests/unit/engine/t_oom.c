/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures in the engine and its worker, and in the log of a conversation (tests/harness/oom.h). */
#include "tests/harness/oom.h"

#include <poll.h>

#include "qsf.h"
#include "qsf_chatlog.h"
#include "qsf_engine.h"
#include "src/base/clock.h"
#include "tests/harness/gguf_build.h"

#if OWN_MALLOC

/* --- the synchronous interface --- */

static char tiny[256];

/* A budget: MB beside what the process has now, which is much in an emulator. */
static size_t budget_mb(size_t mb) { return mb + (size_t)(qsf_rss_bytes() >> 20); }

static void hear(int id, const char *text, void *arg) {
    (void)id;
    add_text(arg, text);
}

static QSFEngine *open_sync(Outcome *o, QSFConfig **config) {
    *config = qsf_config_default();
    if (*config == NULL) {
        failed_step(o, 1, "no configuration");
        return NULL;
    }
    qsf_config_set_threads(*config, 2);
    qsf_config_set_max_seq_len(*config, 128);
    qsf_config_set_ram_budget(*config, budget_mb(16));
    QSFEngine *e = qsf_load(tiny, *config);
    if (e != NULL) return e;
    failed_step(o, 2, qsf_error());
    qsf_config_free(*config);
    *config = NULL;
    return NULL;
}

/* One answer to o->text; after a failure the text is cleared and the request is repeated. */
static bool answer_sync(Outcome *o, QSFEngine *e, int step, const char *prompt) {
    size_t keep = strlen(o->text);
    for (int i = 0; i < 2; i++) {
        o->text[keep] = '\0';
        if (qsf_generate(e, prompt, 6, 0, 1, hear, o) == 0) return true;
        failed_step(o, step, qsf_error());
        if (o->again_failed) break;
    }
    return false;
}

static void run_sync(Outcome *o) {
    QSFConfig *c;
    QSFEngine *e = open_sync(o, &c);
    if (e == NULL) e = open_sync(o, &c);
    if (e == NULL) return;
    if (answer_sync(o, e, 3, "a the in")) {
        qsf_config_set_ram_budget(c, budget_mb(20));
        qsf_config_set_threads(c, 1);
        if (qsf_set_ram_budget(e, budget_mb(18)) != 0) {
            failed_step(o, 4, qsf_error());
            if (!o->again_failed && qsf_set_ram_budget(e, budget_mb(18)) != 0) failed_step(o, 4, qsf_error());
        }
        answer_sync(o, e, 5, "x y z");
    }
    qsf_config_free(c);
    qsf_free(e);
}

static void answers_survive_an_allocation_that_fails(void **state) {
    (void)state;
    sweep(run_sync, ALLOCATION, 20, 20000);
}
static void answers_end_cleanly_when_memory_stays_exhausted(void **state) {
    (void)state;
    sweep(run_sync, ALLOCATIONS_FROM_THEN_ON, 20, 20000);
}
static void answers_survive_a_mapping_that_fails(void **state) {
    (void)state;
    sweep(run_sync, MAPPING, 10, 2000);
}

/* --- the background engine: one event per request, and a worker that survives --- */

typedef struct Reply {
    QSFEventType type;
    char text[2048], why[600];
} Reply;

static bool next_event(QSFWorker *w, QSFEvent *e) {
    while (!qsf_worker_next(w, e)) {
        struct pollfd p = { .fd = qsf_worker_fd(w), .events = POLLIN };
        if (poll(&p, 1, 60000) != 1) return false;
    }
    return true;
}

/* Waits for the end of request id; 0 (not submitted) is a failure without a message. */
static bool reply_to(QSFWorker *w, uint64_t id, Reply *r) {
    QSFEvent e = { 0 };
    *r = (Reply){ .type = QSF_EVENT_ERROR, .why = "not taken" };
    while (id != 0 && e.type != QSF_EVENT_LOADED && e.type != QSF_EVENT_DONE && e.type != QSF_EVENT_ERROR) {
        assert_true(next_event(w, &e));
        size_t have = strlen(r->text);
        if (e.type == QSF_EVENT_TEXT) snprintf(r->text + have, sizeof r->text - have, "%s", e.text);
        if (e.type == QSF_EVENT_ERROR) snprintf(r->why, sizeof r->why, "%s", e.text);
        r->type = e.type;
    }
    return r->type != QSF_EVENT_ERROR;
}

static uint64_t submit(QSFWorker *w, const char *text) {
    const QSFMessage m[] = { { .role = "system", .content = "be kind", .len = 7 },
                             { .role = "user", .content = text, .len = strlen(text) } };
    const QSFRequest r = { .messages = m, .n_messages = 2 };
    return qsf_worker_submit(w, &r);
}

/* Each step is tried twice: memory fails only once. */
static bool load_step(Outcome *o, QSFWorker *w, const QSFSettings *s) {
    Reply r;
    for (int i = 0; i < 2; i++) {
        if (reply_to(w, qsf_worker_load(w, tiny, s), &r)) return true;
        failed_step(o, 2, r.why);
    }
    return false;
}

static bool answer_step(Outcome *o, QSFWorker *w, int step, const char *prompt) {
    Reply r;
    for (int i = 0; i < 2; i++) {
        if (reply_to(w, submit(w, prompt), &r)) {
            add_text(o, r.text);
            return true;
        }
        failed_step(o, step, r.why);
    }
    return false;
}

static void replan_step(Outcome *o, QSFWorker *w, const QSFSettings *s) {
    QSFEvent e = { 0 };
    for (int i = 0; i < 2; i++) {
        qsf_worker_replan(w, s);
        do assert_true(next_event(w, &e));
        while (e.type != QSF_EVENT_PLAN);
        if (e.code == 0) return;
        failed_step(o, 4, e.text);
    }
}

static QSFSettings settings(void) {
    QSFSettings s;
    qsf_settings_default(&s);
    s.threads = 2;
    s.ctx = 128;
    s.pin = 0;
    s.ram_budget = (uint64_t)budget_mb(20) << 20;
    s.params.temperature = 0;
    s.params.max_tokens = 6;
    s.params.ignore_eos = true;
    return s;
}

static void run_worker(Outcome *o) {
    char why[256] = "";
    QSFSettings s = settings();
    QSFWorker *w = qsf_worker_start(&s, why, sizeof why);
    if (w == NULL) {
        failed_step(o, 1, why);
        w = qsf_worker_start(&s, why, sizeof why);
    }
    if (w == NULL) return;
    if (load_step(o, w, &s) && answer_step(o, w, 3, "a the in")) {
        s.pin = UINT64_MAX;
        s.threads = 1;
        replan_step(o, w, &s);
        answer_step(o, w, 5, "x y z");
        free(qsf_worker_describe(w, "memory"));
    }
    qsf_worker_stop(w);
}

static void the_worker_survives_an_allocation_that_fails(void **state) {
    (void)state;
    sweep(run_worker, ALLOCATION, 20, 20000);
}
static void the_worker_ends_when_memory_stays_exhausted(void **state) {
    (void)state;
    sweep(run_worker, ALLOCATIONS_FROM_THEN_ON, 20, 20000);
}
static void the_worker_survives_a_mapping_that_fails(void **state) {
    (void)state;
    sweep(run_worker, MAPPING, 10, 2000);
}
/* --- saving and resuming a conversation: what was reported as saved is there and complete --- */

static bool collect(void *arg, const QSFLogRecord *r) {
    add_text(arg, r->text != NULL ? r->text : "");
    add_text(arg, "|");
    return true;
}

static void append_step(Outcome *o, QSFChatLog **log, const char *role, const char *text) {
    char why[256] = "";
    const QSFLogRecord r = {
        .kind = QSF_LOG_MESSAGE, .role = role, .text = text, .len = strlen(text), .time = 1
    };
    for (int i = 0; i < 2; i++) {
        if (*log == NULL) *log = qsf_chatlog_open("oom", why, sizeof why);
        if (*log != NULL && qsf_chatlog_append(*log, &r, why, sizeof why)) return;
        failed_step(o, *log == NULL ? 1 : 2, why);
    }
}

static void run_log(Outcome *o) {
    char why[256] = "";
    uint32_t damaged = 0;
    QSFChatLog *log = NULL;
    append_step(o, &log, "user", "what is said \xC3\xA4");
    append_step(o, &log, "assistant", "and answered\nin lines");
    qsf_chatlog_close(log);
    for (int i = 0; i < 2; i++) {
        o->text[0] = '\0';
        if (qsf_chatlog_read("oom", collect, o, &damaged, why, sizeof why) && damaged == 0) break;
        failed_step(o, 3, damaged != 0 ? "damaged records" : why);
    }
    char path[400];
    snprintf(path, sizeof path, "%s/qsf/sessions/oom.jsonl", getenv("XDG_DATA_HOME"));
    unlink(path);
}

static void conversations_survive_an_allocation_that_fails(void **state) {
    (void)state;
    char dir[300];
    snprintf(dir, sizeof dir, "%s", qsf_test_tmp("oom-data"));
    setenv("XDG_DATA_HOME", dir, 1);
    sweep(run_log, ALLOCATION, 3, 20000);
    sweep(run_log, ALLOCATIONS_FROM_THEN_ON, 3, 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_survive_an_allocation_that_fails),
        cmocka_unit_test(answers_end_cleanly_when_memory_stays_exhausted),
        cmocka_unit_test(answers_survive_a_mapping_that_fails),
        cmocka_unit_test(the_worker_survives_an_allocation_that_fails),
        cmocka_unit_test(the_worker_ends_when_memory_stays_exhausted),
        cmocka_unit_test(the_worker_survives_a_mapping_that_fails),
        cmocka_unit_test(conversations_survive_an_allocation_that_fails),
    };
    find_libc();
    unsetenv("QSF_CPU_MASK");
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("oom.gguf"));
    const QsfTinySpec spec = {
        .chat_template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}{% endfor %}"
    };
    if (qsf_test_write_tiny_llama(tiny, &spec) != 0) return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(tiny);
    return rc;
}

#endif
