/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluating ahead what is typed: no answer changes, whatever was typed before; it stops for everything else;
 * nothing leaves the KV cache for it, and nothing of it reaches a snapshot. */
#include "tests/harness/qsf_test.h"

#include <sys/stat.h>

#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

static char tiny[256], big[256], mamba[256], snap[300];

#define LONG 8192 /* a context with room for a text that takes longer than this thread may be late */
#define LONG_TEXT \
    "the quick brown fox jumps over the lazy dog and then it comes back to the start of the sentence"

static const char templ[] =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}"
    "[assistant]{% endif %}";

/* A conversation of one exchange, and what is typed. */
typedef struct Talk {
    QSFMessage m[3];
    QSFRequest r;
    char answer[4096];
} Talk;

static QSFWorker *start(const char *model, const char *policy) {
    QSFSettings s = qsf_rig_settings();
    s.params = (QSFParams){ .temperature = 1, .top_p = 1, .repeat_penalty = 1.1f, .repeat_last_n = 64 };
    s.params.seed_set = s.params.ignore_eos = true;
    s.params.seed = 7;
    s.params.max_tokens = 20;
    s.ctx = model == big ? LONG : 1024;
    snprintf(s.eviction, sizeof s.eviction, "%s", policy);
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, model, &s);
    return w;
}

static void typed(Talk *t, const char *text) {
    t->m[2] = (QSFMessage){ .role = "user", .content = text, .len = strlen(text) };
    t->r = (QSFRequest){ .messages = t->m, .n_messages = 3, .snapshot = t->r.snapshot };
}

/* The first exchange. */
static void begin(QSFWorker *w, Talk *t, const char *snapshot) {
    t->m[0] = (QSFMessage){ .role = "user", .content = "hello there", .len = 11 };
    t->r = (QSFRequest){ .messages = t->m, .n_messages = 1, .snapshot = snapshot };
    const QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &t->r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_true(s->len < sizeof t->answer);
    memcpy(t->answer, s->text, s->len + 1);
    t->m[1] = (QSFMessage){ .role = "assistant", .content = t->answer, .len = s->len };
}

/* Waits for a piece (1) or the end (0); false if it has ended before. */
static bool wait_ahead(QSFWorker *w, int code) {
    QSFEvent e;
    do {
        qsf_rig_wait(w, &e);
        assert_int_equal(e.type, QSF_EVENT_AHEAD);
        assert_int_equal(e.request, 0);
    } while (e.code != code && e.code != 0);
    return e.code == code;
}

static uint32_t ahead(QSFWorker *w, Talk *t, const char *text) {
    QSFStats st;
    typed(t, text);
    assert_true(qsf_worker_ahead(w, &t->r));
    assert_true(wait_ahead(w, 0));
    qsf_worker_stats(w, &st);
    assert_int_equal(st.state, QSF_STATE_IDLE);
    assert_true(st.ahead_done <= st.ahead_total);
    return st.ahead_done;
}

static const QsfSeen *ask(QSFWorker *w, Talk *t, const char *text) {
    typed(t, text);
    const QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &t->r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    return s;
}

/* The answer without anything typed before. */
static QsfSeen *plain(const char *model, const char *policy, const char *text) {
    static QsfSeen expected;
    Talk t = { 0 };
    QSFWorker *w = start(model, policy);
    begin(w, &t, NULL);
    expected = *ask(w, &t, text);
    qsf_worker_stop(w);
    return &expected;
}

static void expect_same(const QsfSeen *is, const QsfSeen *expected) {
    assert_int_equal(is->len, expected->len);
    assert_memory_equal(is->text, expected->text, expected->len);
    assert_int_equal(is->end.prompt_tokens, expected->end.prompt_tokens);
    assert_int_equal(is->end.tokens, expected->end.tokens);
}

static void no_answer_changes(void **state) {
    (void)state;
    static const char *const before[][4] = {
        { LONG_TEXT " x" },                                               /* only the last word differs */
        { LONG_TEXT },                                                    /* all of it */
        { "the quick brown fox", LONG_TEXT, LONG_TEXT " and on and on" }, /* more and more, then less */
        { "something else that is longer than a few words", LONG_TEXT },
        { LONG_TEXT, "something else that is longer than a few words" },
        { "", "x", "the quick brown fox jumps over" },
    };
    const QsfSeen expected = *plain(tiny, "none", LONG_TEXT);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        Talk t = { 0 };
        QSFWorker *w = start(tiny, "none");
        begin(w, &t, NULL);
        for (size_t k = 0; k < 4 && before[i][k] != NULL; k++) (void)ahead(w, &t, before[i][k]);
        const QsfSeen *s = ask(w, &t, LONG_TEXT);
        expect_same(s, &expected);
        assert_true(s->end.reused_tokens >= expected.end.reused_tokens);
        if (i < 4) assert_true(s->end.reused_tokens >= expected.end.reused_tokens + 60);
        qsf_worker_stop(w);
    }
}

/* The numbers of the conversation are not those of what is typed. */
static void it_counts_apart(void **state) {
    (void)state;
    Talk t = { 0 };
    QSFStats before, st;
    QSFWorker *w = start(tiny, "none");
    begin(w, &t, NULL);
    qsf_worker_stats(w, &before);
    assert_int_equal(before.ahead_total, 0);
    const uint32_t done = ahead(w, &t, LONG_TEXT);
    qsf_worker_stats(w, &st);
    assert_true(done > before.ctx_used && st.ahead_total - done < 30);
    assert_int_equal(st.ctx_used, before.ctx_used);
    assert_int_equal(st.prefill_total, before.prefill_total);
    (void)ask(w, &t, LONG_TEXT);
    qsf_worker_stats(w, &st);
    assert_int_equal(st.ahead_total, 0);
    qsf_worker_stop(w);
}

static void it_stops_for_everything_else(void **state) {
    (void)state;
    static char text[LONG - 1024];
    Talk t = { 0 };
    QSFStats st;
    for (size_t i = 0; i + 2 < sizeof text; i++) text[i] = i % 6 == 5 ? ' ' : (char)('a' + i % 7);
    const QsfSeen expected = *plain(big, "none", "hi");
    QSFWorker *w = start(big, "none");
    begin(w, &t, NULL);
    typed(&t, text);
    assert_true(qsf_worker_ahead(w, &t.r));
    assert_true(wait_ahead(w, 1));
    qsf_worker_ahead(w, NULL); /* what is typed is gone */
    assert_true(wait_ahead(w, 0));
    qsf_worker_stats(w, &st);
    assert_true(st.ahead_done < st.ahead_total - 64);
    assert_true(qsf_worker_ahead(w, &t.r));
    assert_true(wait_ahead(w, 1));
    typed(&t, "hi"); /* Enter, with another text */
    const uint64_t id = qsf_worker_submit(w, &t.r);
    assert_true(id > 0);
    assert_false(qsf_worker_ahead(w, &t.r)); /* an answer is generated */
    QSFEvent e;
    static QsfSeen seen;
    memset(&seen, 0, sizeof seen);
    do qsf_rig_wait(w, &e);
    while (e.type == QSF_EVENT_AHEAD && e.code != 0);
    while (qsf_rig_take(w, id, &seen)) {
    }
    expect_same(&seen, &expected);
    typed(&t, text);
    assert_true(qsf_worker_ahead(w, &t.r));
    assert_true(wait_ahead(w, 1));
    qsf_worker_stop(w); /* quitting */
}

/* A new plan is one for the conversation. */
static void a_new_plan_takes_it_back(void **state) {
    (void)state;
    Talk t = { 0 };
    QSFStats st;
    QSFSettings s;
    const QsfSeen expected = *plain(tiny, "none", LONG_TEXT);
    QSFWorker *w = start(tiny, "none");
    begin(w, &t, NULL);
    qsf_worker_stats(w, &st);
    const uint32_t used = st.ctx_used;
    (void)ahead(w, &t, LONG_TEXT);
    qsf_worker_settings(w, &s);
    s.ctx = used + 32; /* too short for what is typed */
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    qsf_worker_stats(w, &st);
    assert_true(st.ctx_used > 0 && st.ctx_used <= used);
    assert_int_equal(ahead(w, &t, LONG_TEXT), 0); /* would not fit */
    s.ctx = 512;
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    assert_true(ahead(w, &t, LONG_TEXT) > used + 60);
    expect_same(ask(w, &t, LONG_TEXT), &expected);
    qsf_worker_stop(w);
}

static void nothing_leaves_the_cache_for_it(void **state) {
    (void)state;
    static const char *const rows[][3] = { { tiny, "sliding", "eviction policy" },
                                           { mamba, "none", "recurrent" },
                                           { tiny, "none", NULL } };
    for (size_t i = 0; i < 3; i++) {
        Talk t = { 0 };
        QSFStats st;
        QSFWorker *w = start(rows[i][0], rows[i][1]);
        begin(w, &t, NULL);
        const uint32_t done = ahead(w, &t, LONG_TEXT);
        char *why = qsf_worker_describe(w, "ahead");
        assert_non_null(why);
        if (rows[i][2] != NULL) assert_non_null(strstr(why, rows[i][2]));
        if (rows[i][2] == NULL) assert_string_equal(why, "");
        assert_true(rows[i][2] == NULL ? done > 0 : done == 0);
        free(why);
        qsf_worker_stats(w, &st);
        assert_int_equal(st.evicted, 0);
        qsf_worker_stop(w);
    }
}

/* A layer with a window forgets its oldest position when it has more than its ring has space for. */
static void a_window_is_not_pushed(void **state) {
    (void)state;
    static char text[3000];
    QSFStats st;
    Talk t = { 0 };
    const char *gemma = qsf_test_data("architectures/gemma3/model.gguf");
    if (gemma == NULL) skip();
    char path[300];
    snprintf(path, sizeof path, "%s", gemma);
    QSFSettings s = qsf_rig_settings();
    s.ctx = 4096;
    s.params.max_tokens = 4;
    for (size_t i = 0; i + 1 < sizeof text; i++) text[i] = i % 3 == 2 ? ' ' : (char)('a' + i / 3 % 26);
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    begin(w, &t, NULL);
    qsf_worker_stats(w, &st);
    const uint32_t ring = st.context.kind[QSF_LAYERS_WINDOW].positions;
    const uint32_t done = ahead(w, &t, text);
    qsf_worker_stats(w, &st);
    assert_true(ring > 0 && st.ahead_total > ring);
    assert_true(done <= ring && done + 64 > ring);
    qsf_worker_stop(w);
}

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* Also when the worker stops, which saves what is due. */
static void nothing_is_saved_of_it(void **state) {
    (void)state;
    Talk t = { 0 };
    unlink(snap);
    QSFWorker *w = start(tiny, "none");
    begin(w, &t, snap);
    qsf_worker_stop(w);
    const off_t saved = size_of(snap);
    assert_true(saved > 0);
    w = start(tiny, "none");
    assert_true(ahead(w, &t, LONG_TEXT) > 60); /* the conversation comes from the file */
    qsf_worker_stop(w);
    assert_int_equal(size_of(snap), saved);
    w = start(tiny, "none");
    (void)ahead(w, &t, LONG_TEXT);
    typed(&t, "another text");
    const QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &t.r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    qsf_worker_stop(w);
    assert_true(size_of(snap) > saved);
    w = start(tiny, "none");
    const uint32_t with = ask(w, &t, LONG_TEXT)->end.reused_tokens;
    assert_true(with < 80); /* what was typed and not sent is not there */
    qsf_worker_stop(w);
    unlink(snap);
}

static void what_is_no_typed_message(void **state) {
    (void)state;
    Talk t = { 0 };
    assert_false(qsf_worker_ahead(NULL, NULL));
    QSFWorker *w = qsf_rig_worker();
    typed(&t, LONG_TEXT);
    t.m[0] = t.m[2];
    t.r.n_messages = 1;
    assert_true(qsf_worker_ahead(w, &t.r)); /* without a model it ends at once */
    assert_true(wait_ahead(w, 0));
    assert_false(qsf_worker_ahead(w, NULL));
    t.r.n_messages = 0;
    assert_false(qsf_worker_ahead(w, &t.r));
    t.r.n_messages = 1;
    t.r.continue_last = true;
    assert_false(qsf_worker_ahead(w, &t.r));
    t.r.continue_last = false;
    t.m[0].role = "assistant";
    assert_false(qsf_worker_ahead(w, &t.r));
    t.m[0].role = NULL;
    assert_false(qsf_worker_ahead(w, &t.r));
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    const QsfTinySpec small = { .ctx = 1024, .chat_template = templ }, large = {
        .ctx = LONG, .chat_template = templ, .layers = 8, .hidden = 256, .ffn = 1024
    };
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("ahead.gguf"));
    snprintf(big, sizeof big, "%s", qsf_test_tmp("ahead_big.gguf"));
    snprintf(mamba, sizeof mamba, "%s", qsf_test_tmp("ahead_mamba.gguf"));
    snprintf(snap, sizeof snap, "%s", qsf_test_tmp("ahead.qsfsnap"));
    return qsf_test_write_tiny_llama(tiny, &small) != 0 || qsf_test_write_tiny_llama(big, &large) != 0 ||
           qsf_test_write_tiny_mamba(mamba, 3) != 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(tiny) | unlink(big) | unlink(mamba);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_answer_changes),
        cmocka_unit_test(it_counts_apart),
        cmocka_unit_test(it_stops_for_everything_else),
        cmocka_unit_test(a_new_plan_takes_it_back),
        cmocka_unit_test(nothing_leaves_the_cache_for_it),
        cmocka_unit_test(a_window_is_not_pushed),
        cmocka_unit_test(nothing_is_saved_of_it),
        cmocka_unit_test(what_is_no_typed_message),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
