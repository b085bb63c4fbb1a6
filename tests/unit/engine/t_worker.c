/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The background engine as seen by its owner: events, cancellation in every phase, live parameters, failed
 * loads, statistics from another thread. */
#include "tests/harness/qsf_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "qsf_cli.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

static char tiny[256],
    big[256]; /* answers of the large one are too long to end before they are interrupted */

static void without_a_model(void **state) {
    (void)state;
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "hello"));
    assert_int_equal(s->end.type, QSF_EVENT_ERROR);
    assert_int_equal(s->end.code, QSF_EXIT_MODEL);
    assert_string_equal(s->end_text, "no model is loaded: /model FILE");
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_EMPTY);
    assert_true(st.budget == QSF_RIG_BUDGET && st.rss > 0 && st.peak_rss >= st.rss);
    assert_null(qsf_worker_describe(w, "model"));
    s = qsf_rig_finish(w, qsf_worker_unload(w));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    qsf_worker_stop(w);
    qsf_worker_stop(NULL);
}

static void it_answers_and_reuses_the_prefix(void **state) {
    (void)state;
    QSFStats st;
    static char first[sizeof(((QsfSeen *)0)->text)];
    QSFWorker *w = qsf_rig_worker_with(tiny, 30);
    QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_int_equal(s->end.stop, QSF_STOP_LENGTH);
    assert_int_equal(s->end.tokens, 30);
    assert_true(s->tokens <= 30 && s->len > 0);
    assert_int_equal(s->end.reused_tokens, 0);
    uint32_t prompt = s->end.prompt_tokens;
    size_t first_len = s->len;
    memcpy(first, s->text, s->len + 1);
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_IDLE);
    assert_int_equal(st.out_tokens, 30);
    assert_int_equal(st.max_tokens, 30);
    assert_int_equal(st.prefill_total, prompt);
    assert_int_equal(st.ctx_used, prompt + 29);
    assert_true(st.decode_tps > 0 && st.prefill_tps > 0 && st.ttft_ms > 0);
    assert_true(st.token_p == 1.0);
    s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    assert_int_equal(s->end.reused_tokens, prompt - 1);
    assert_int_equal(s->len, first_len);
    assert_memory_equal(s->text, first, first_len);

    /* The conversation continues: the answer is in the cache too. */
    QSFMessage m[] = { { .role = "user", .content = "hello there", .len = 11 },
                       { .role = "assistant", .content = first, .len = first_len } };
    QSFRequest r = { .messages = m, .n_messages = 2, .continue_last = true };
    s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_true(s->end.reused_tokens >= prompt);
    qsf_worker_stop(w);
}

static void statistics_and_descriptions(void **state) {
    (void)state;
    QSFStats st;
    uint64_t used = 0;
    QSFWorker *w = qsf_rig_worker_with(tiny, 10);
    qsf_rig_finish(w, qsf_rig_submit(w, "a"));
    qsf_worker_stats(w, &st);
    assert_string_equal(st.model_path, tiny);
    assert_true(st.model_name[0] != '\0');
    assert_memory_equal(st.model_desc, "llama", 5);
    assert_string_equal(st.template_name, "none");
    assert_int_equal(st.n_layers, 2);
    assert_int_equal(st.threads, 2);
    assert_true(st.backend[0] != '\0' && st.ctx_size > 0);
    assert_int_equal(st.budget, QSF_RIG_BUDGET);
    assert_int_equal(st.n_mem, QSF_STATS_MEM);
    for (uint32_t i = 0; i < st.n_mem; i++) {
        assert_non_null(st.mem[i].name);
        used += st.mem[i].used;
    }
    assert_true(used > 0 && used <= st.budget);
    assert_true(st.pinned_bytes > 0 && st.streamed_bytes == 0);
    static const char *const whats[] = { "model", "plan", "quality", "threads", "template" };
    for (size_t i = 0; i < 5; i++) {
        char *text = qsf_worker_describe(w, whats[i]);
        assert_non_null(text);
        if (i < 4) assert_true(text[0] != '\0' && text[strlen(text) - 1] == '\n');
        free(text);
    }
    assert_null(qsf_worker_describe(w, "weather"));
    qsf_rig_finish(w, qsf_worker_unload(w));
    assert_null(qsf_worker_describe(w, "model"));
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_EMPTY);
    qsf_worker_stop(w);
}

/* The number in the last line of a displayed prompt: "...\n5 tokens, ...". */
static int64_t tokens_of(const char *text) {
    const char *end = strstr(text, " tokens, ");
    while (end > text && end[-1] != '\n') end--;
    return strtoll(end, NULL, 10);
}

static void the_prompt_is_shown_at_any_time(void **state) {
    (void)state;
    char err[300] = "", *text;
    QSFMessage m = { .role = "user", .content = "a <s> b", .len = 7 };
    QSFRequest r = { .messages = &m, .n_messages = 1 };
    QSFWorker *w = qsf_rig_worker();
    assert_null(qsf_worker_prompt(w, &r, err, sizeof err));
    assert_non_null(strstr(err, "no model is loaded"));
    assert_int_equal(qsf_worker_count(w, &r), -1);
    qsf_worker_stop(w);
    w = qsf_rig_worker_with(big, 0);
    text = qsf_worker_prompt(w, &r, err, sizeof err);
    assert_non_null(text);
    assert_non_null(strstr(text, "\u27e6<s>\u27e7")); /* BOS is marked */
    assert_non_null(strstr(text, "a <s> b\n"));       /* typed text is not */
    assert_non_null(strstr(text, " tokens, 1 of them special"));
    assert_int_equal(qsf_worker_count(w, &r), tokens_of(text));
    free(text);
    m = (QSFMessage){ .role = "user", .content = "a\0b\0\0 c", .len = 7 };
    text = qsf_worker_prompt(w, &r, err, sizeof err);
    assert_non_null(text);
    assert_non_null(strstr(text, "a^@b^@^@ c\n"));
    assert_int_equal(qsf_worker_count(w, &r), tokens_of(text));
    free(text);
    m = (QSFMessage){ .role = "user", .content = "a <s> b", .len = 7 };
    uint64_t id = qsf_rig_submit(w, "one");
    text = qsf_worker_prompt(w, &r, err, sizeof err);
    assert_non_null(text);
    free(text);
    char *many = malloc(100000);
    assert_non_null(many);
    memset(many, 'a', 100000);
    m = (QSFMessage){ .role = "user", .content = many, .len = 100000 };
    assert_null(qsf_worker_prompt(w, &r, err, sizeof err));
    assert_non_null(strstr(err, "too long to be shown while"));
    qsf_worker_cancel(w);
    qsf_rig_finish(w, id);
    text = qsf_worker_prompt(w, &r, err, sizeof err);
    assert_non_null(text);
    free(text);
    free(many);
    qsf_worker_stop(w);
}

/* Metadata overridden by the owner, and the option that parses special tokens in text. */
static void overrides_and_special_text(void **state) {
    (void)state;
    static const char *const specs[] = { "tokenizer.chat_template.rag=str:{{ messages[0].content }}!", NULL };
    char err[300] = "", *text;
    QSFMessage m = { .role = "user", .content = "a <s> b", .len = 7 };
    QSFRequest r = { .messages = &m, .n_messages = 1 };
    QSFSettings s = qsf_rig_settings();
    QSFParams p;
    QSFWorker *w = qsf_rig_worker();
    qsf_worker_override(w, specs);
    qsf_rig_load(w, tiny, &s);
    text = qsf_worker_templates(w);
    assert_string_equal(text, "model:rag");
    free(text);
    qsf_worker_get_params(w, &p);
    p.allow_special = true;
    qsf_worker_set_params(w, &p);
    text = qsf_worker_prompt(w, &r, err, sizeof err);
    assert_non_null(text);
    assert_non_null(strstr(text, "b!\n"));
    assert_non_null(strstr(text, ", 2 of them special"));
    free(text);
    qsf_worker_stop(w);
}

static void a_second_request_is_refused_while_one_runs(void **state) {
    (void)state;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker_with(big, 0);
    uint64_t id = qsf_rig_submit(w, "one");
    assert_true(id > 0 && qsf_worker_busy(w));
    assert_int_equal(qsf_rig_submit(w, "two"), 0);
    assert_int_equal(qsf_worker_load(w, tiny, &s), 0);
    assert_int_equal(qsf_worker_unload(w), 0);
    qsf_worker_cancel(w);
    QsfSeen *seen = qsf_rig_finish(w, id);
    assert_int_equal(seen->end.stop, QSF_STOP_INTERRUPTED);
    assert_false(qsf_worker_busy(w)); /* free from the moment DONE can be read */
    qsf_rig_set_max(w, 3);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, "two"));
    assert_int_equal(seen->end.tokens, 3);
    qsf_worker_stop(w);
}

static void cancel_while_decoding_keeps_the_text(void **state) {
    (void)state;
    QSFStats st;
    QsfSeen seen = { 0 };
    QSFWorker *w = qsf_rig_worker_with(big, 0);
    uint64_t id = qsf_rig_submit(w, "tell me");
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_DECODE);
    const uint64_t t = qsf_test_cpu_ns();
    qsf_worker_cancel(w);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_true(qsf_test_cpu_ns() - t < 2000000000u);
    assert_int_equal(seen.end.type, QSF_EVENT_DONE);
    assert_int_equal(seen.end.stop, QSF_STOP_INTERRUPTED);
    assert_true(seen.end.tokens > 0 && seen.len > 0);
    uint32_t prompt = seen.end.prompt_tokens;
    qsf_rig_set_max(w, 2);
    QsfSeen *again = qsf_rig_finish(w, qsf_rig_submit(w, "tell me"));
    assert_int_equal(again->end.reused_tokens, prompt - 1);
    qsf_worker_stop(w);
}

static void cancel_while_reading_the_prompt(void **state) {
    (void)state;
    char text[801];
    QSFWorker *w = qsf_rig_worker_with(big, 0);
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    uint64_t id = qsf_rig_submit(w, text);
    qsf_worker_cancel(w);
    QsfSeen *seen = qsf_rig_finish(w, id);
    assert_int_equal(seen->end.type, QSF_EVENT_DONE);
    assert_int_equal(seen->end.stop, QSF_STOP_INTERRUPTED);
    qsf_worker_stop(w);
}

/* Follows the prefill of a long prompt in one batch; returns how often `done` moved, and in *first the
 * seconds left when it was first seen. */
static uint32_t watch_prefill(QSFWorker *w, const char *text, double *first) {
    QSFStats st;
    uint32_t moves = 0, last = 0;
    uint64_t id = qsf_rig_submit(w, text);
    *first = -1;
    do {
        qsf_worker_stats(w, &st);
        (void)usleep(100); /* leaves the processor to the engine */
        if (st.state != QSF_STATE_PREFILL) continue;
        if (*first < 0) *first = st.prefill_left;
        assert_true(st.prefill_done >= last && st.prefill_done <= st.prefill_total);
        moves += st.prefill_done > last;
        last = st.prefill_done;
    } while (st.state == QSF_STATE_PREFILL ||
             (*first < 0 && st.state != QSF_STATE_DECODE && qsf_worker_busy(w)));
    qsf_worker_cancel(w);
    qsf_rig_finish(w, id);
    return moves;
}

/* Watches prompts until one has moved often, and the time left was known at the first look if `known`: this
 * thread may get no processor while the engine reads one of them. */
static void prefill_moves(QSFWorker *w, char *text, bool known) {
    double first = -1;
    for (int i = 0; i < 1000; i++) {
        text[0] = (char)('a' + i % 26); /* nothing of the last one is reused */
        text[1] = (char)('a' + i / 26 % 26);
        if (watch_prefill(w, text, &first) > 3 && (first > 0 || !known)) return;
    }
    fail_msg("the progress does not move, or the time left is unknown: %f s", first);
}

/* Within a batch the progress moves with the layers, and with a speed known from before the
 * time left is known at once. */
static void progress_of_the_prefill(void **state) {
    (void)state;
    char path[512], text[601];
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("layers.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = 20, .ctx = 2048, .seed = 5 }),
                     0);
    QSFSettings s = qsf_rig_settings();
    s.batch = 2048;
    s.threads = 1;
    (void)snprintf(s.cpu_mask, sizeof s.cpu_mask, "ref");
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    prefill_moves(w, text, false);
    prefill_moves(w, text, true);
    qsf_worker_stop(w);
    unlink(path);
}

static void cancel_while_loading(void **state) {
    (void)state;
    QSFStats st;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker();
    QsfSeen *seen;
    int tries = 0;
    do { /* this thread may be too late */
        qsf_rig_finish(w, qsf_worker_unload(w));
        const uint64_t id = qsf_worker_load(w, big, &s);
        qsf_worker_cancel(w);
        seen = qsf_rig_finish(w, id);
    } while (seen->end.type == QSF_EVENT_LOADED && ++tries < 1000);
    assert_int_equal(seen->end.type, QSF_EVENT_ERROR);
    assert_int_equal(seen->end.code, QSF_EXIT_INT);
    assert_string_equal(seen->end_text, "loading was cancelled");
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_EMPTY);
    qsf_rig_load(w, tiny, &s); /* an old cancellation does not affect a new request */
    qsf_worker_stop(w);
}

static void parameters_change_in_the_middle_of_an_answer(void **state) {
    (void)state;
    QsfSeen seen = { 0 };
    QSFWorker *w = qsf_rig_worker_with(big, 0);
    uint64_t id = qsf_rig_submit(w, "on and on");
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    qsf_rig_set_max(w, 1);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_int_equal(seen.end.stop, QSF_STOP_LENGTH);
    assert_true(seen.end.tokens >= 1);
    qsf_worker_stop(w);
}

static void a_slow_reader_gets_everything_in_one_read(void **state) {
    (void)state;
    QSFWorker *w = qsf_rig_worker_with(tiny, 60);
    uint64_t id = qsf_rig_submit(w, "hello");
    while (qsf_worker_busy(w)) {
        struct timespec nap = { .tv_nsec = 2000000 };
        nanosleep(&nap, NULL);
    }
    QsfSeen *s = qsf_rig_finish(w, id);
    assert_int_equal(s->text_events, 1);
    assert_true(s->tokens > 0 && s->end.tokens == 60);
    qsf_worker_stop(w);
}

/* The smaller limit of a request's own and the parameter's. */
static void a_request_has_its_own_limit(void **state) {
    static const struct {
        int32_t param;
        uint32_t own, is;
    } cases[] = { { 0, 3, 3 }, { 5, 3, 3 }, { 2, 3, 2 }, { 4, 0, 4 } };
    const QSFMessage m = { .role = "user", .content = "hello there", .len = 11 };
    (void)state;
    QSFWorker *w = qsf_rig_worker_with(tiny, 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const QSFRequest r = { .messages = &m, .n_messages = 1, .max_tokens = cases[i].own };
        qsf_rig_set_max(w, cases[i].param);
        const QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
        assert_int_equal(s->end.tokens, cases[i].is);
        assert_int_equal(s->end.stop, QSF_STOP_LENGTH);
    }
    qsf_worker_stop(w);
}

static void a_failed_load_keeps_the_previous_state(void **state) {
    (void)state;
    QSFStats st;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker_with(tiny, 5);
    QsfSeen *seen = qsf_rig_finish(w, qsf_worker_load(w, "/nonexistent.gguf", &s));
    assert_int_equal(seen->end.type, QSF_EVENT_ERROR);
    assert_int_equal(seen->end.code, QSF_EXIT_MODEL);
    assert_non_null(strstr(seen->end_text, "/nonexistent.gguf"));
    s.params.max_tokens = 5;
    qsf_worker_set_params(w, &s.params);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, "still there"));
    assert_int_equal(seen->end.tokens, 5);
    s.ram_budget = 1u << 20;
    seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->end.code, QSF_EXIT_BUDGET);
    assert_non_null(strstr(seen->end_text, "smallest budget that works: "));
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_EMPTY);
    qsf_worker_stop(w);
}

static void a_vocabulary_answers_nothing(void **state) {
    (void)state;
    QsfGgufBuild b = { 0 };
    QSFSettings s = qsf_rig_settings();
    const char *path = qsf_test_tmp("worker_vocab.gguf");
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_tiny_vocab(&b, 300);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    QSFWorker *w = qsf_rig_worker();
    QsfSeen *seen = qsf_rig_finish(w, qsf_worker_load(w, path, &s));
    assert_int_equal(seen->end.code, QSF_EXIT_MODEL);
    assert_non_null(strstr(seen->end_text, "it can only tokenize"));
    qsf_worker_stop(w);
    unlink(path);
}

static void a_template_is_changed_without_reading_the_weights_again(void **state) {
    (void)state;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker_with(tiny, 5);
    qsf_rig_finish(w, qsf_rig_submit(w, "hello"));
    snprintf(s.chat_template, sizeof s.chat_template, "raw");
    qsf_rig_load(w, tiny, &s);
    qsf_rig_set_max(w, 5);
    QsfSeen *seen = qsf_rig_finish(w, qsf_rig_submit(w, "hello"));
    assert_true(seen->end.reused_tokens > 0); /* the cache is kept */
    s.ctx = 128;
    qsf_rig_load(w, tiny, &s);
    qsf_rig_set_max(w, 5);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, "hello"));
    assert_int_equal(seen->end.reused_tokens, 0);
    qsf_worker_stop(w);
}

static void streaming_with_free_memory_is_reported(void **state) {
    (void)state;
    QSFSettings s = qsf_rig_settings();
    memcpy(s.chat_template, "raw", sizeof "raw"); /* no notice about the missing one */
    s.ctx = 1024;
    QSFWorker *w = qsf_rig_worker();
    QsfSeen *seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->end.type, QSF_EVENT_LOADED);
    assert_int_equal(seen->notices, 0); /* all of it is pinned */
    s.pin = 0;                          /* asked for: no notice */
    seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->notices, 0);
    QSFStats st;
    qsf_worker_stats(w, &st);
    assert_true(st.streamed_bytes > 0 && st.pinned_bytes == 0);
    qsf_rig_set_max(w, 5);
    seen = qsf_rig_finish(w, qsf_rig_submit(w, "hello"));
    qsf_worker_stats(w, &st);
    assert_true(st.bytes_read > 0 && st.io_gbps > 0 && st.stall >= 0 && st.stall <= 1);
    assert_true(st.bytes_per_token > 0);

    /* A little more than the smallest budget: the notice names one that pins everything. */
    static const char least[] = "smallest budget that works: ";
    s.pin = qsf_rig_settings().pin;
    s.ram_budget = 1u << 20;
    seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->end.code, QSF_EXIT_BUDGET);
    const char *at = strstr(seen->end_text, least);
    assert_non_null(at);
    s.ram_budget = (strtoull(at + strlen(least), NULL, 10) + 8) << 20;
    seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->end.type, QSF_EVENT_LOADED);
    qsf_worker_stats(w, &st);
    assert_true(st.streamed_bytes > 0);
    at = strstr(seen->notice, "--ram-budget ");
    assert_non_null(at);
    s.ram_budget = strtoull(at + strlen("--ram-budget "), NULL, 10) << 20;
    seen = qsf_rig_finish(w, qsf_worker_load(w, big, &s));
    assert_int_equal(seen->end.type, QSF_EVENT_LOADED);
    qsf_worker_stats(w, &st);
    assert_true(st.streamed_bytes == 0);
    qsf_worker_stop(w);
}

typedef struct Watch {
    QSFWorker *w;
    atomic_bool stop;
    atomic_uint states; /* one bit per state seen */
} Watch;

static void *watch(void *arg) {
    Watch *v = arg;
    QSFStats st;
    QSFParams p;
    while (!atomic_load(&v->stop)) {
        qsf_worker_stats(v->w, &st);
        atomic_fetch_or(&v->states, 1u << st.state);
        if (st.ctx_size > 0 && st.ctx_used > st.ctx_size) atomic_fetch_or(&v->states, 1u << 31);
        qsf_worker_get_params(v->w, &p);
        qsf_worker_busy(v->w);
        free(qsf_worker_describe(v->w, "model"));
    }
    return NULL;
}

static bool saw(Watch *v, unsigned bit) { return (atomic_load(&v->states) & 1u << bit) != 0; }

static void another_thread_may_read_at_any_time(void **state) {
    (void)state;
    static QsfSeen seen;
    QSFSettings s = qsf_rig_settings();
    QSFWorker *w = qsf_rig_worker();
    Watch v = { .w = w };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, watch, &v), 0);
    for (int i = 0; i < 3; i++) {
        s.params.max_tokens = i == 1 ? 20 : 0;
        qsf_rig_load(w, i == 1 ? tiny : big, &s);
        uint64_t id = qsf_rig_submit(w, "hello there, what do you see");
        while (qsf_rig_take(w, id, &seen)) {
            if (saw(&v, QSF_STATE_DECODE)) qsf_rig_set_max(w, 20); /* the other thread had its turn */
        }
        qsf_rig_finish(w, qsf_worker_unload(w));
    }
    atomic_store(&v.stop, true);
    pthread_join(thread, NULL);
    assert_true(saw(&v, QSF_STATE_DECODE) && !saw(&v, 31));
    qsf_worker_stop(w);
}

static void stop_does_not_wait_for_the_answer(void **state) {
    (void)state;
    QSFWorker *w = qsf_rig_worker_with(big, 0);
    assert_true(qsf_rig_submit(w, "an endless story") > 0);
    const uint64_t t = qsf_test_cpu_ns();
    qsf_worker_stop(w);
    assert_true(qsf_test_cpu_ns() - t < 2000000000u);
    QSFSettings s = qsf_rig_settings();
    w = qsf_rig_worker();
    assert_true(qsf_worker_load(w, big, &s) > 0);
    qsf_worker_stop(w);
}

static void the_real_model_answers(void **state) {
    (void)state;
    char path[1024], want[1024] = "";
    const char *found = qsf_test_data("models/stories260K.gguf");
    if (found == NULL) skip();
    snprintf(path, sizeof path, "%s", found);
    const char *text = qsf_test_data("models/stories260K.greedy.txt");
    if (text == NULL) skip();
    FILE *f = fopen(text, "rb");
    assert_non_null(f);
    want[fread(want, 1, sizeof want - 1, f)] = '\0';
    fclose(f);
    QSFWorker *w = qsf_rig_worker_with(path, 80);
    QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "Once upon a time"));
    assert_string_equal(s->text, want + strlen("Once upon a time"));

    /* A stop string is found however the tokens split it. */
    static const char *const stop[] = { "red ball" };
    QSFMessage m = { .role = "user", .content = "Once upon a time", .len = 16 };
    QSFRequest r = { .messages = &m, .n_messages = 1, .stop = stop, .n_stop = 1 };
    s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(s->end.stop, QSF_STOP_STRING);
    assert_int_equal(s->len, (size_t)(strstr(want, "red ball") - want) - 16);
    QSFStats st;
    qsf_worker_stats(w, &st);
    printf("stories260K: decode %.0f tok/s, peak %.1f MB of %.1f MB\n", st.decode_tps,
           (double)st.peak_rss / 1048576, (double)st.budget / 1048576);
    qsf_worker_stop(w);
}

static void names(void **state) {
    (void)state;
    assert_string_equal(qsf_stop_name(QSF_STOP_EOS), "eos");
    assert_string_equal(qsf_stop_name(QSF_STOP_STRING), "stop");
    assert_string_equal(qsf_stop_name(QSF_STOP_INTERRUPTED), "interrupted");
    assert_true(qsf_version()[0] >= '0' && qsf_version()[0] <= '9');
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("worker_tiny.gguf"));
    snprintf(big, sizeof big, "%s", qsf_test_tmp("worker_big.gguf"));
    const QsfTinySpec spec = {
        .layers = 6, .hidden = 256, .heads = 8, .kv_heads = 4, .ffn = 1024, .ctx = 16384, .vocab = 2000
    };
    return qsf_test_write_tiny_llama(tiny, NULL) != 0 || qsf_test_write_tiny_llama(big, &spec) != 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(tiny) | unlink(big);
}

/* The quality is read for each token; what is left out is in the statistics and in the plan. */
static void test_quality(void **state) {
    char path[512];
    QSFStats st;
    QSFParams p;
    (void)state;
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("deep.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = 8, .seed = 5 }), 0);
    QSFWorker *w = qsf_rig_worker();
    QSFSettings s = qsf_rig_settings();
    s.pin = 0;
    qsf_rig_load(w, path, &s);
    qsf_rig_set_max(w, 20);
    qsf_worker_stats(w, &st);
    assert_true(st.quality == 1.0f && st.quality_layers == 8 && st.experts == 0);
    const uint64_t streamed = st.streamed_bytes;
    char *full = strdup(qsf_rig_finish(w, qsf_rig_submit(w, "hello there"))->text);
    qsf_worker_get_params(w, &p);
    p.quality = 0.5f;
    qsf_worker_set_params(w, &p);
    assert_non_null(full);
    assert_string_not_equal(qsf_rig_finish(w, qsf_rig_submit(w, "hello there"))->text, full);
    qsf_worker_stats(w, &st);
    assert_true(st.quality == 0.5f && st.quality_layers < 6 && st.streamed_bytes < streamed * 3 / 4);
    p.quality = 0; /* as 1 */
    qsf_worker_set_params(w, &p);
    assert_string_equal(qsf_rig_finish(w, qsf_rig_submit(w, "hello there"))->text, full);
    qsf_worker_stats(w, &st);
    assert_true(st.quality == 1.0f && st.quality_layers == 8 && st.streamed_bytes == streamed);
    qsf_worker_stop(w);
    free(full);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_of_the_prefill),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(without_a_model),
        cmocka_unit_test(it_answers_and_reuses_the_prefix),
        cmocka_unit_test(statistics_and_descriptions),
        cmocka_unit_test(the_prompt_is_shown_at_any_time),
        cmocka_unit_test(overrides_and_special_text),
        cmocka_unit_test(a_second_request_is_refused_while_one_runs),
        cmocka_unit_test(cancel_while_decoding_keeps_the_text),
        cmocka_unit_test(cancel_while_reading_the_prompt),
        cmocka_unit_test(cancel_while_loading),
        cmocka_unit_test(parameters_change_in_the_middle_of_an_answer),
        cmocka_unit_test(a_slow_reader_gets_everything_in_one_read),
        cmocka_unit_test(a_request_has_its_own_limit),
        cmocka_unit_test(a_failed_load_keeps_the_previous_state),
        cmocka_unit_test(a_vocabulary_answers_nothing),
        cmocka_unit_test(a_template_is_changed_without_reading_the_weights_again),
        cmocka_unit_test(streaming_with_free_memory_is_reported),
        cmocka_unit_test(another_thread_may_read_at_any_time),
        cmocka_unit_test(stop_does_not_wait_for_the_answer),
        cmocka_unit_test(the_real_model_answers),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
