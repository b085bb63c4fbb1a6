/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans that change while the background engine runs: in the middle of an answer, while loading, idle,
 * without a model, and refused. The tokens are always the same. */
#include "tests/harness/qsf_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "qsf_cli.h"
#include "src/base/clock.h"
#include "src/base/sanitizer.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

#define CTX    512
#define LONG   16384 /* an answer that is still running after many steps, however late this thread is */
#define PROMPT "on and on"

static char big[256], endless[256]; /* the same weights, with room for a context of LONG */
static char whole[65536];           /* the answer to PROMPT until the context is full, undisturbed */

static QSFSettings settings(void) {
    QSFSettings s = qsf_rig_settings();
    s.ctx = CTX;
    snprintf(s.kv, sizeof s.kv, "f16"); /* the same tokens under any budget */
    return s;
}

static QSFWorker *start(void) {
    QSFSettings s = settings();
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, big, &s);
    return w;
}

/* Settings in s, and a worker with a context of ctx tokens. */
static QSFWorker *start_endless(QSFSettings *s, uint32_t ctx) {
    QSFWorker *w = qsf_rig_worker();
    *s = settings();
    s->ctx = ctx;
    qsf_rig_load(w, endless, s);
    return w;
}

/* A text of any length is the beginning of the answer, or begins with it. */
static void check_text(const QsfSeen *s) {
    const size_t n = strlen(whole);
    assert_true(s->len > 0);
    assert_memory_equal(s->text, whole, s->len < n ? s->len : n);
}

static void set(QSFSettings *s, const char *name, const char *value) {
    char err[256];
    assert_int_equal(qsf_setting_set(s, qsf_setting_find(name), value, err, sizeof err), 0);
}

/* The smallest budget in MB named by a refusal. */
static uint64_t smallest(const char *text) {
    static const char last[] = "smallest budget that works: ";
    const char *at = strstr(text, last);
    if (at == NULL) fail_msg("no budget in: %s", text);
    return strtoull(at + strlen(last), NULL, 10);
}

/* The memory the worker would need now. */
static uint64_t least_mb(QSFWorker *w, const QSFSettings *s) {
    QSFSettings tight = *s;
    tight.ram_budget = 1u << 20;
    qsf_worker_replan(w, &tight);
    QsfSeen *seen = qsf_rig_plan(w);
    assert_int_equal(seen->plan_code, QSF_EXIT_BUDGET);
    return smallest(seen->plan_text);
}

typedef struct Step {
    const char *name, *value;
} Step;

/* Each is requested when the previous one was applied, in one answer. */
static const Step steps[] = {
    { "pin", "0" },
    { "threads", "1" },
    { "slots", "1" },
    { "slots", "4" },
    { "embedding", "lru" },
    { "io", "pread" },
    { "direct", "on" },
    { "direct", "off" },
    { "io", "mmap" },
    { "ram-budget", "" },
    { "pin", "auto" },
    { "ram-budget", "2G" },
    { "embedding", "resident" },
    { "threads", "3" },
    { "pin", "3M" },
    { "io", "auto" },
};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

static void next_step(QSFWorker *w, QSFSettings *s, uint32_t i, uint64_t least) {
    char value[32];
    snprintf(value, sizeof value, "%llu", (unsigned long long)least + 1);
    set(s, steps[i].name, steps[i].value[0] != '\0' ? steps[i].value : value);
    qsf_worker_replan(w, s);
}

static void the_same_tokens_under_any_plan(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFSettings s;
    QSFStats st;
    QSFWorker *w = start_endless(&s, LONG);
    uint64_t least = least_mb(w, &s);
    memset(&seen, 0, sizeof seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    for (uint32_t i = 0; i < N_STEPS; i++) {
        next_step(w, &s, i, least);
        while (seen.plans <= i) assert_true(qsf_rig_take(w, id, &seen));
        if (seen.plan_code != 0) fail_msg("%s %s: %s", steps[i].name, steps[i].value, seen.plan_text);
        assert_non_null(strstr(seen.plan_text, " MB"));
        qsf_worker_stats(w, &st);
        uint64_t sum = 0;
        for (uint32_t k = 0; k < st.n_mem; k++) sum += st.mem[k].used;
        assert_true(sum <= st.budget);
    }
    qsf_rig_set_max(w, 1);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_int_equal(seen.end.type, QSF_EVENT_DONE);
    assert_int_equal(seen.end.stop, QSF_STOP_LENGTH);
    check_text(&seen);
    assert_int_equal(st.threads, 3);
    assert_true(st.streamed_bytes > 0);
    qsf_worker_stop(w);
}

/* Queried before anything changes, idle and in the middle of an answer: the same reply as for the change
 * itself. */
static void a_check_knows_what_would_be_refused(void **state) {
    (void)state;
    char err[600];
    QSFSettings s = settings(), tight = s, longer = s, odd = s, both = s, policy = s;
    QSFWorker *w = qsf_rig_worker();
    set(&policy, "eviction-policy", "sliding");
    tight.ram_budget = 1u << 20;
    assert_int_equal(qsf_worker_check(w, &tight, err, sizeof err), 0); /* there is no model */
    qsf_rig_load(w, big, &s);
    tight.ram_budget = least_mb(w, &s) << 20;
    assert_int_equal(qsf_worker_check(w, &tight, err, sizeof err), 0);
    tight.ram_budget /= 2; /* the budget named by a refusal includes a reserve */
    longer.ctx = 16000000;
    set(&odd, "template", "no-such-template");
    set(&both, "quality", "0.5");
    set(&both, "eviction-policy", "sliding");
    uint64_t id = qsf_rig_submit(w, PROMPT);
    for (int idle = 0; idle < 2; idle++) {
        err[0] = '\0';
        assert_int_equal(qsf_worker_check(w, &s, err, sizeof err), 0);
        assert_int_equal(qsf_worker_check(w, &tight, err, sizeof err), QSF_EXIT_BUDGET);
        assert_true(smallest(err) >= tight.ram_budget >> 20);
        assert_int_equal(qsf_worker_check(w, &longer, err, sizeof err), QSF_EXIT_BUDGET);
        assert_int_equal(qsf_worker_check(w, &odd, err, sizeof err), QSF_EXIT_USAGE);
        assert_non_null(strstr(err, "no-such-template"));
        assert_int_equal(qsf_worker_check(w, &both, err, sizeof err), QSF_EXIT_USAGE);
        assert_non_null(strstr(err, "does not work with"));
        policy.ctx = s.ctx;
        assert_int_equal(qsf_worker_check(w, &policy, err, sizeof err), 0);
        policy.protected_prefix = 16000000; /* more than the context */
        assert_int_equal(qsf_worker_check(w, &policy, err, sizeof err), QSF_EXIT_CONTEXT);
        assert_non_null(strstr(err, "the eviction policy sliding needs a context of at least"));
        policy.protected_prefix = 0;
        if (idle == 0) qsf_worker_cancel(w);
        if (idle == 0) (void)qsf_rig_finish(w, id);
    }
    qsf_worker_settings(w, &odd);
    assert_true(odd.ram_budget == s.ram_budget && odd.ctx == s.ctx);
    qsf_worker_stop(w);
}

static void refused_and_the_answer_continues(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFSettings s, now;
    QSFWorker *w = start_endless(&s, LONG);
    memset(&seen, 0, sizeof seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    s.ram_budget = 1u << 20;
    qsf_worker_replan(w, &s);
    while (seen.plans == 0) assert_true(qsf_rig_take(w, id, &seen));
    assert_int_equal(seen.plan_code, QSF_EXIT_BUDGET);
    uint64_t mb = smallest(seen.plan_text);
    qsf_worker_settings(w, &now);
    assert_true(now.ram_budget == QSF_RIG_BUDGET);
    s.ram_budget = mb << 20; /* the budget named by the refusal works */
    qsf_worker_replan(w, &s);
    while (seen.plans == 1) assert_true(qsf_rig_take(w, id, &seen));
    if (seen.plan_code != 0) fail_msg("%s", seen.plan_text);
    qsf_worker_settings(w, &now);
    assert_true(now.ram_budget == mb << 20);
    s.ram_budget = QSF_RIG_BUDGET; /* otherwise it takes long: many small reads */
    qsf_worker_replan(w, &s);
    while (seen.plans == 2) assert_true(qsf_rig_take(w, id, &seen));
    qsf_rig_set_max(w, CTX);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_int_equal(seen.plans, 3);
    assert_int_equal(seen.end.stop, QSF_STOP_LENGTH);
    assert_true(seen.len > strlen(whole));
    check_text(&seen);
    qsf_worker_stop(w);
}

static uint32_t ctx_of(QSFWorker *w) {
    QSFStats st;
    qsf_worker_stats(w, &st);
    assert_true(st.context.kept == st.ctx_used && st.ctx_used <= st.ctx_size);
    return st.ctx_size;
}

static int plan_ctx(QSFWorker *w, QSFSettings *s, uint32_t ctx) {
    s->ctx = ctx;
    qsf_worker_replan(w, s);
    return qsf_rig_plan(w)->plan_code;
}

/* Longer and shorter in the middle of an answer, where what is in use is refused; between answers the cache
 * keeps what fits. Nothing is loaded again, and no token changes. */
static void the_context_changes_in_place(void **state) {
    (void)state;
    static QsfSeen seen;
    char err[600];
    QSFSettings s, now;
    QSFWorker *w = start_endless(&s, 100);
    assert_int_equal(ctx_of(w), 100);
    assert_int_equal(plan_ctx(w, &s, LONG / 2), 0);
    assert_int_equal(ctx_of(w), LONG / 2);
    memset(&seen, 0, sizeof seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    s.ctx = LONG; /* more than there is room for the tokens now */
    qsf_worker_replan(w, &s);
    while (seen.plans == 0) assert_true(qsf_rig_take(w, id, &seen));
    assert_int_equal(seen.plan_code, 0);
    assert_int_equal(ctx_of(w), LONG);
    s.ctx = 1;
    qsf_worker_replan(w, &s);
    while (seen.plans == 1) assert_true(qsf_rig_take(w, id, &seen));
    assert_int_equal(seen.plan_code, QSF_EXIT_CONTEXT);
    qsf_worker_settings(w, &now);
    assert_int_equal(now.ctx, LONG);
    qsf_rig_set_max(w, 60);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_int_equal(seen.end.stop, QSF_STOP_LENGTH);
    check_text(&seen);
    s.ctx = 40; /* fewer than are in the cache */
    assert_int_equal(qsf_worker_check(w, &s, err, sizeof err), 0);
    assert_int_equal(plan_ctx(w, &s, 40), 0);
    assert_int_equal(ctx_of(w), 40);
    qsf_rig_set_max(w, 0);
    QsfSeen *cut = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_int_equal(cut->end.stop, QSF_STOP_CONTEXT);
    assert_true(cut->end.reused_tokens + 1 == cut->end.prompt_tokens);
    assert_memory_equal(cut->text, whole, cut->len);
    assert_int_equal(plan_ctx(w, &s, CTX), 0);
    cut = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_string_equal(cut->text, whole);
    qsf_worker_stop(w);
}

static void without_a_model_the_next_one_gets_it(void **state) {
    (void)state;
    QSFSettings s = settings(), now;
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    s.ram_budget = 300u << 20;
    s.threads = 1;
    s.batch = 99; /* not related to plans */
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    qsf_worker_settings(w, &now);
    assert_true(now.ram_budget == 300u << 20 && now.threads == 1 && now.batch == 0);
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_EMPTY);
    assert_true(st.budget == 300u << 20);
    qsf_worker_stop(w);
}

static void while_loading_it_comes_right_after(void **state) {
    (void)state;
    QSFSettings s = settings();
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    uint64_t id = qsf_worker_load(w, big, &s);
    s.pin = 0;
    s.threads = 1;
    qsf_worker_replan(w, &s);
    QsfSeen *seen = qsf_rig_finish(w, id);
    assert_int_equal(seen->end.type, QSF_EVENT_LOADED);
    seen = qsf_rig_plan(w);
    if (seen->plan_code != 0) fail_msg("%s", seen->plan_text);
    qsf_worker_stats(w, &st);
    assert_true(st.threads == 1 && st.pinned_bytes == 0 && st.streamed_bytes > 0);
    qsf_rig_set_max(w, 20);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_memory_equal(seen->text, whole, seen->len);
    qsf_worker_stop(w);
}

static void idle_after_a_cancelled_answer(void **state) {
    (void)state;
    QSFSettings s = settings();
    QSFWorker *w = start();
    uint64_t id = qsf_rig_submit(w, PROMPT);
    qsf_worker_cancel(w);
    qsf_rig_finish(w, id);
    s.pin = 0;
    qsf_worker_replan(w, &s);
    QsfSeen *seen = qsf_rig_plan(w);
    if (seen->plan_code != 0) fail_msg("%s", seen->plan_text);
    s.pin = UINT64_MAX;
    qsf_worker_replan(w, &s);
    seen = qsf_rig_plan(w);
    if (seen->plan_code != 0) fail_msg("%s", seen->plan_text);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_string_equal(seen->text, whole);
    qsf_worker_stop(w);
}

static void memory_is_really_freed(void **state) {
    (void)state;
    if (getenv("QSF_SAN") != NULL && strcmp(getenv("QSF_SAN"), "yes") == 0) {
        printf("skip: sanitizers keep freed memory\n");
        skip();
    }
    QSFSettings s = settings();
    QSFStats st;
    QSFWorker *w = start();
    qsf_rig_set_max(w, 10);
    qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    uint64_t before = qsf_rss_bytes(), least = least_mb(w, &s);
    s.ram_budget = (least + 2) << 20;
    qsf_worker_replan(w, &s);
    QsfSeen *seen = qsf_rig_plan(w);
    if (seen->plan_code != 0) fail_msg("%s", seen->plan_text);
    qsf_worker_stats(w, &st);
    printf("%.1f MB, then %.1f MB, at most %.1f of %.1f MB\n", (double)before / 1048576,
           (double)st.rss / 1048576, (double)st.peak_rss / 1048576, (double)st.budget / 1048576);
    assert_true(st.budget == s.ram_budget && st.streamed_bytes > 0);
    assert_true(before > st.budget && st.rss <= st.budget);
    assert_true(st.peak_rss + (1u << 20) >= before); /* it is not hidden */
    const uint64_t id = qsf_rig_submit(w, PROMPT);
    memset(seen, 0, sizeof *seen);
    while (qsf_rig_take(w, id, seen)) assert_true(qsf_rss_bytes() <= st.budget);
    assert_memory_equal(seen->text, whole, seen->len);
    assert_true(qsf_rss_bytes() <= st.budget && qsf_peak_rss_bytes() + (1u << 20) >= before);
    qsf_worker_stop(w);
}

static void figures_of_layers_and_of_memory(void **state) {
    (void)state;
    QSFLayerStats l[16];
    QSFSettings s = settings();
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    assert_int_equal(qsf_worker_layers(w, l, 16), 0);
    assert_null(qsf_worker_describe(w, "memory"));
    s.pin = 8u << 20;
    qsf_rig_load(w, big, &s);
    qsf_rig_set_max(w, 10);
    qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    qsf_worker_stats(w, &st);
    assert_int_equal(qsf_worker_layers(w, NULL, 0), st.n_layers + 1);
    assert_int_equal(qsf_worker_layers(w, l, 16), st.n_layers + 1);
    uint64_t weights = 0, pinned = 0, read = 0;
    for (uint32_t i = 0; i <= st.n_layers; i++) {
        weights += l[i].weight_bytes;
        pinned += l[i].pinned_bytes;
        read += l[i].read_bytes;
        assert_true(l[i].compute_ns > 0);
    }
    assert_true(weights == st.pinned_bytes + st.streamed_bytes && pinned == st.pinned_bytes);
    assert_true(pinned > 0 && pinned <= 8u << 20 && read > 0);
    assert_true(st.pin_done == st.pin_total && st.pin_done == st.pinned_bytes);
    assert_true(st.compute_ms > 0 && st.io_name[0] != '\0');
    assert_true(st.bytes_per_token > 0.9 * (double)st.streamed_bytes);
    assert_true(st.bytes_per_token < 1.1 * (double)st.streamed_bytes);
    char *text = qsf_worker_describe(w, "memory");
    assert_non_null(text);
    assert_non_null(strstr(text, "pinned weights"));
    assert_true(text[strlen(text) - 1] == '\n');
    free(text);
    qsf_worker_stop(w);
}

static void another_model_while_weights_are_still_read(void **state) {
    (void)state;
    QSFSettings s = settings();
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    for (int i = 0; i < 4; i++) {
        qsf_rig_load(w, big, &s);
        qsf_worker_stats(w, &st);
        assert_true(st.pin_done <= st.pin_total && st.pin_total > 0);
    }
    qsf_rig_set_max(w, 10);
    QsfSeen *seen = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_memory_equal(seen->text, whole, seen->len);
    qsf_worker_stop(w);
}

typedef struct Watch {
    QSFWorker *w;
    atomic_bool stop;
} Watch;

static void *watch(void *arg) {
    Watch *v = arg;
    QSFLayerStats l[16];
    QSFSettings s;
    QSFStats st;
    while (!atomic_load(&v->stop)) {
        qsf_worker_stats(v->w, &st);
        qsf_worker_layers(v->w, l, 16);
        qsf_worker_settings(v->w, &s);
        free(qsf_worker_describe(v->w, "memory"));
        free(qsf_worker_describe(v->w, "plan"));
    }
    return NULL;
}

static void another_thread_may_read_concurrently(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFSettings s;
    QSFWorker *w = start_endless(&s, LONG);
    Watch v = { .w = w };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, watch, &v), 0);
    memset(&seen, 0, sizeof seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    for (uint32_t i = 0; i < 6; i++) {
        s.pin = i % 2 == 0 ? 0 : UINT64_MAX;
        s.threads = 1 + (int32_t)i % 3;
        qsf_worker_replan(w, &s);
        while (seen.plans <= i) assert_true(qsf_rig_take(w, id, &seen));
    }
    qsf_worker_cancel(w);
    while (qsf_rig_take(w, id, &seen)) {
    }
    atomic_store(&v.stop, true);
    pthread_join(thread, NULL);
    check_text(&seen);
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(big, sizeof big, "%s", qsf_test_tmp("plan_big.gguf"));
    snprintf(endless, sizeof endless, "%s", qsf_test_tmp("plan_endless.gguf"));
    QsfTinySpec spec = {
        .layers = 6, .hidden = 256, .heads = 8, .kv_heads = 4, .ffn = 1024, .ctx = 1024, .vocab = 2000
    };
    if (qsf_test_write_tiny_llama(big, &spec) != 0) return -1;
    spec.ctx = LONG;
    if (qsf_test_write_tiny_llama(endless, &spec) != 0) return -1;
    QSFWorker *w = start();
    snprintf(whole, sizeof whole, "%s", qsf_rig_finish(w, qsf_rig_submit(w, PROMPT))->text);
    qsf_worker_stop(w);
    return whole[0] == '\0';
}

static int teardown(void **state) {
    (void)state;
    return unlink(big) | unlink(endless);
}

/* What the owner holds is charged while a prompt is made; the budget that is named is enough for it. */
static void texts_of_the_owner(void **state) {
    (void)state;
    QSFWorker *w = qsf_rig_worker_with(big, 2);
    QSFMessage m = { .role = "user", .content = "a", .len = 1 };
    QSFRequest r = { .messages = &m, .n_messages = 1, .held = QSF_RIG_BUDGET };
    QSFTextSize size = { 0 };
    qsf_text_size_add(&size, "a word", 6);
    qsf_text_size_add(&size, "s and", 5);
    assert_true(size.bytes == 11 && size.longest == 5 && size.run == 3);
    assert_int_equal(qsf_worker_text_budget(NULL, &size, 0), 0);
    QsfSeen *seen = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(seen->end.code, QSF_E_BUDGET);
    const char *at = strstr(seen->end_text, "smallest budget that works: ");
    assert_non_null(at);
    const uint64_t named = strtoull(at + strlen("smallest budget that works: "), NULL, 10) << 20;
    assert_true(named > QSF_RIG_BUDGET);
    assert_in_range(qsf_worker_text_budget(w, &size, r.held), named - (1 << 20), named + (1 << 20));
    QSFSettings s = qsf_rig_settings();
    s.ram_budget = named;
    qsf_rig_load(w, big, &s);
    seen = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(seen->end.type, QSF_EVENT_DONE);
    qsf_worker_stop(w);
}

/* Each offered budget is accepted and does what was said; in the end there is nothing more to offer. */
static void steps_of_the_budget(void **state) {
    (void)state;
    QSFWorker *w = qsf_rig_worker_with(big, 2);
    QSFSettings s = qsf_rig_settings();
    QSFBudgetStep step;
    QSFStats st;
    char err[400];
    qsf_worker_budget_step(NULL, &s, true, &step);
    assert_int_equal(step.budget, 0);
    unsigned rounds = 0;
    for (bool more = false;; more = true) {
        qsf_worker_budget_step(w, &s, more, &step);
        qsf_worker_stats(w, &st);
        if (step.budget == 0) break;
        assert_true(rounds++ < 20);
        assert_true(more ? step.budget > st.budget : step.budget < st.budget);
        assert_int_equal(step.budget % (1 << 20), 0);
        assert_true(!more || step.streamed < step.now || (step.now == 0 && step.ctx > step.ctx_now));
        s.ram_budget = step.budget;
        assert_int_equal(qsf_worker_check(w, &s, err, sizeof err), 0);
        qsf_worker_replan(w, &s);
        assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
        qsf_worker_stats(w, &st);
        assert_int_equal(st.budget, step.budget);
        assert_int_equal(st.streamed_bytes, step.streamed);
        assert_int_equal(st.ctx_size, step.ctx);
    }
    assert_int_equal(st.streamed_bytes, 0); /* the last one keeps everything in RAM */
    assert_int_equal(step.now, 0);
    assert_int_equal(step.end, QSF_BUDGET_ALL);
    assert_int_equal(step.ctx_now, 1024);
    assert_true(step.available > 0);
    for (rounds = 0; rounds < 40; rounds++) {
        qsf_worker_budget_step(w, &s, false, &step);
        if (step.budget == 0) break;
        s.ram_budget = step.budget;
        qsf_worker_replan(w, &s);
        assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    }
    assert_in_range(rounds, 1, 39); /* down to the smallest */
    qsf_worker_stop(w);
}

/* Giving memory back leaves a conversation as it is, evaluated or not, with room for an answer; the other key
 * brings the rest of the context back. A budget that is named leaves its tokens. */
static void steps_keep_a_conversation(void **state) {
    (void)state;
    for (uint32_t tokens = 0; tokens <= 600; tokens += 600) {
        QSFWorker *w = qsf_rig_worker_with(big, 500);
        QSFSettings s = qsf_rig_settings();
        QSFBudgetStep step;
        QSFStats st;
        unsigned rounds = 0;
        if (tokens == 0)
            assert_int_equal(qsf_rig_finish(w, qsf_rig_submit(w, PROMPT))->end.type, QSF_EVENT_DONE);
        s.ctx_tokens = tokens;
        qsf_worker_stats(w, &st);
        const uint32_t used = tokens > 0 ? tokens : st.ctx_used, whole_ctx = st.ctx_size;
        char kv[sizeof st.kv_note];
        memcpy(kv, st.kv_note, sizeof kv);
        assert_in_range(used, 500, 700);
        for (;; rounds++) {
            qsf_worker_budget_step(w, &s, false, &step);
            if (step.budget == 0) break;
            assert_true(rounds < 40);
            s.ram_budget = step.budget;
            qsf_worker_replan(w, &s);
            assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
            qsf_worker_stats(w, &st);
            assert_in_range(st.ctx_size, used + 256, whole_ctx);
            if (tokens == 0) assert_string_equal(kv, st.kv_note);
        }
        assert_true(step.end == QSF_BUDGET_LEAST || step.end == QSF_BUDGET_KEEP);
#if !QSF_ADDRESS_SANITIZER /* its own memory leaves little to give back */
        assert_true(rounds > 1);
#endif
        s.ram_budget = least_mb(w, &s) << 20;
        qsf_worker_replan(w, &s);
        assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
        qsf_worker_stats(w, &st);
        assert_in_range(st.ctx_size, used + 1, whole_ctx);
        for (rounds = 0;; rounds++) {
            qsf_worker_budget_step(w, &s, true, &step);
            if (step.budget == 0) break;
            assert_true(rounds < 10);
            s.ram_budget = step.budget;
            qsf_worker_replan(w, &s);
            assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
        }
        qsf_worker_stats(w, &st);
        assert_int_equal(st.ctx_size, whole_ctx);
        qsf_worker_stop(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_the_budget),
        cmocka_unit_test(steps_keep_a_conversation),
        cmocka_unit_test(the_same_tokens_under_any_plan),
        cmocka_unit_test(a_check_knows_what_would_be_refused),
        cmocka_unit_test(refused_and_the_answer_continues),
        cmocka_unit_test(the_context_changes_in_place),
        cmocka_unit_test(without_a_model_the_next_one_gets_it),
        cmocka_unit_test(while_loading_it_comes_right_after),
        cmocka_unit_test(idle_after_a_cancelled_answer),
        cmocka_unit_test(memory_is_really_freed),
        cmocka_unit_test(texts_of_the_owner),
        cmocka_unit_test(figures_of_layers_and_of_memory),
        cmocka_unit_test(another_model_while_weights_are_still_read),
        cmocka_unit_test(another_thread_may_read_concurrently),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
