/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The installed headers used incorrectly: calls from callbacks, NULL, lengths and numbers out of range. */
#include "tests/harness/qsf_test.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include "qsf.h"
#include "qsf_engine.h"
#include "tests/harness/gguf_build.h"

#define PROMPT "hello"

static char tiny[256];

/* One generation, and what its callback does in one of its calls. */
typedef struct Answer {
    QSFEngine *engine;
    QSFConfig *config;
    void (*act)(struct Answer *a, const char *text);
    int act_at, calls;
    char text[4096];
} Answer;

static void on_token(int token_id, const char *text, void *user_data) {
    Answer *a = user_data;
    (void)token_id;
    if (++a->calls == a->act_at && a->act != NULL) a->act(a, text);
    assert_true(strlen(a->text) + strlen(text) < sizeof a->text);
    strcat(a->text, text);
}

static QSFEngine *load(QSFConfig *config) {
    QSFConfig *c = config != NULL ? config : qsf_config_default();
    assert_non_null(c);
    qsf_config_set_threads(c, 2);
    qsf_config_set_max_seq_len(c, 128);
    QSFEngine *e = qsf_load(tiny, c);
    if (config == NULL) qsf_config_free(c);
    if (e == NULL) fail_msg("%s", qsf_error());
    return e;
}

static void assert_error(const char *words) {
    if (strstr(qsf_error(), words) == NULL) fail_msg("\"%s\" does not mention \"%s\"", qsf_error(), words);
}

static int generate(Answer *a, int max_tokens) {
    return qsf_generate(a->engine, PROMPT, max_tokens, 0, 1, on_token, a);
}

/* ---- callbacks ---- */

static void use_the_engine(Answer *a, const char *text) {
    static const int ids[] = { 1, 270, 280 };
    Answer inner = { .engine = a->engine };
    char before[64];
    int n;
    snprintf(before, sizeof before, "%s", text);
    assert_int_equal(generate(&inner, 5), 1);
    assert_int_equal(inner.calls, 0);
    assert_error("qsf_generate");
    assert_null(qsf_forward(a->engine, ids, 3));
    assert_error("qsf_forward");
    assert_int_equal(qsf_set_ram_budget(a->engine, 300), 1);
    assert_error("qsf_set_ram_budget");
    int *tokens = qsf_tokenize(a->engine, "hello world", &n);
    assert_non_null(tokens);
    char *again = qsf_detokenize(a->engine, tokens, n);
    assert_string_equal(again, "hello world");
    assert_string_equal(text, before); /* its text is still there */
    assert_int_equal(qsf_ram_budget(a->engine), 200);
    free(again);
    free(tokens);
}

static void a_callback_cannot_change_its_engine(void **state) {
    (void)state;
    Answer calm = { .engine = load(NULL) }, busy = { .engine = calm.engine, .act = use_the_engine };
    assert_int_equal(generate(&calm, 40), 0);
    assert_true(calm.calls > 3);
    for (busy.act_at = 1; busy.act_at < 4; busy.act_at++) {
        busy.calls = 0;
        busy.text[0] = '\0';
        assert_int_equal(generate(&busy, 40), 0);
        assert_string_equal(qsf_error(), ""); /* an error in the callback does not fail the outer call */
        assert_string_equal(busy.text, calm.text);
        assert_int_equal(busy.calls, calm.calls);
    }
    qsf_free(calm.engine);
}

static void fail_in_the_callback(Answer *a, const char *text) {
    (void)text;
    assert_int_equal(qsf_set_ram_budget(a->engine, 300), 1);
    a->act_at++; /* the next time too */
}

static void the_outer_error_is_its_own(void **state) {
    (void)state;
    char text[512];
    memset(text, 'q', 110);
    text[110] = '\0';
    Answer a = { .engine = load(NULL), .act = fail_in_the_callback, .act_at = 1 };
    int rc = qsf_generate(a.engine, text, 400, 0, 1, on_token, &a);
    assert_true(rc == 0 || rc == 5); /* 0: the model ended by itself */
    if (rc == 5)
        assert_error("the context of 128 tokens is full");
    else
        assert_string_equal(qsf_error(), "");
    qsf_free(a.engine);
}

static void free_the_engine(Answer *a, const char *text) {
    (void)text;
    qsf_free(a->engine);
    qsf_free(a->engine); /* not freed yet */
}

static void a_callback_frees_its_engine(void **state) {
    (void)state;
    for (int at = 1; at <= 3; at++) {
        Answer a = { .engine = load(NULL), .act = free_the_engine, .act_at = at };
        assert_int_equal(generate(&a, 40), 1);
        assert_error("freed");
        assert_int_equal(a.calls, at); /* nothing after it */
    }
    Answer last = { .engine = load(NULL), .act = free_the_engine, .act_at = 1 };
    assert_int_equal(generate(&last, 1), 1); /* it would have ended anyway */
    assert_error("freed");
}

static void *forward_elsewhere(void *arg) {
    static const int ids[] = { 1, 270 };
    Answer *a = arg;
    assert_null(qsf_forward(a->engine, ids, 2));
    assert_error("busy");
    return NULL;
}

static void use_another_thread(Answer *a, const char *text) {
    pthread_t t;
    (void)text;
    assert_int_equal(pthread_create(&t, NULL, forward_elsewhere, a), 0);
    pthread_join(t, NULL);
}

static void use_another_engine(Answer *a, const char *text) {
    (void)text;
    Answer other = { .engine = load(NULL) };
    assert_int_equal(generate(&other, 5), 0);
    assert_true(other.calls > 0);
    qsf_free(other.engine);
    qsf_config_set_ram_budget(a->config, 300);
    qsf_config_free(a->config);
}

static void other_threads_and_engines(void **state) {
    (void)state;
    QSFConfig *c = qsf_config_default();
    Answer calm = { .engine = load(c) }, a = calm, b = calm;
    assert_int_equal(generate(&calm, 20), 0);
    a.act = use_another_thread;
    a.act_at = b.act_at = 2;
    assert_int_equal(generate(&a, 20), 0);
    assert_string_equal(a.text, calm.text);
    b.act = use_another_engine;
    b.config = c;
    assert_int_equal(generate(&b, 20), 0);
    assert_string_equal(b.text, calm.text);
    assert_int_equal(qsf_ram_budget(b.engine), 300);
    qsf_free(calm.engine);
}

/* ---- NULL and numbers ---- */

static void null_is_an_error(void **state) {
    (void)state;
    int n = 7, id = 1;
    float logit = 1;
    qsf_config_set_ram_budget(NULL, 100);
    assert_error("NULL");
    qsf_config_set_threads(NULL, 1);
    qsf_config_set_max_seq_len(NULL, 1);
    qsf_config_set_quality(NULL, 1);
    assert_error("NULL");
    assert_int_equal(qsf_config_set_kv_types(NULL, "f16", "f16"), 2);
    assert_error("NULL");
    qsf_config_free(qsf_config_default());
    assert_string_equal(qsf_error(), "");
    assert_null(qsf_load(NULL, NULL));
    assert_error("path");
    assert_null(qsf_load("", NULL));
    assert_true(qsf_error()[0] != '\0');
    assert_int_equal(qsf_generate(NULL, "x", 5, 0, 1, NULL, NULL), 2);
    assert_int_equal(qsf_generate(NULL, "x", 0, 0, 1, NULL, NULL), 2);
    assert_null(qsf_tokenize(NULL, "x", &n));
    assert_int_equal(n, 0);
    assert_null(qsf_tokenize(NULL, "x", NULL));
    assert_null(qsf_detokenize(NULL, &id, 1));
    assert_null(qsf_forward(NULL, &id, 1));
    assert_error("NULL");
    assert_int_equal(qsf_set_ram_budget(NULL, 100), 2);
    assert_int_equal(qsf_sample(NULL, 1, 0, 1), -1);
    qsf_print_stats(NULL);
    assert_error("NULL");
    assert_int_equal(qsf_sample(&logit, 1, 0, 1), 0);
    assert_string_equal(qsf_error(), "");
}

static void numbers_out_of_range(void **state) {
    (void)state;
    static const int odd[] = { -1, INT_MIN, INT_MAX, 300, 100000 };
    int n;
    Answer a = { .engine = load(NULL) };
    char *text = qsf_detokenize(a.engine, odd, 5);
    assert_string_equal(text, "");
    free(text);
    assert_null(qsf_detokenize(a.engine, odd, -1));
    assert_null(qsf_detokenize(a.engine, odd, INT_MIN));
    for (int i = 0; i < 5; i++) assert_null(qsf_forward(a.engine, odd + i, 1));
    assert_error("100000");
    assert_null(qsf_forward(a.engine, odd, INT_MAX)); /* longer than the context: not even read */
    assert_error("context");
    assert_null(qsf_forward(a.engine, odd, -5));
    assert_null(qsf_forward(a.engine, NULL, 1));
    int *ids = qsf_tokenize(a.engine, "", &n); /* BOS alone */
    assert_non_null(ids);
    free(ids);
    assert_int_equal(qsf_generate(a.engine, "", 3, 0, 1, NULL, NULL), 0);
    int rc = generate(&a, INT_MAX);
    assert_true(rc == 0 || rc == 5);
    assert_int_equal(generate(&a, INT_MIN), 2);
    assert_int_equal(qsf_generate(a.engine, PROMPT, 3, INFINITY, 1, NULL, NULL), 2);
    assert_int_equal(qsf_generate(a.engine, PROMPT, 3, 1, NAN, NULL, NULL), 2);
    assert_int_equal(qsf_set_ram_budget(a.engine, SIZE_MAX), 0);
    assert_int_equal(qsf_generate(a.engine, PROMPT, 3, FLT_MAX, FLT_MIN, NULL, NULL), 0);
    qsf_free(a.engine);
}

static void extreme_configurations(void **state) {
    (void)state;
    QSFConfig *c = qsf_config_default();
    qsf_config_set_threads(c, INT_MIN);
    qsf_config_set_max_seq_len(c, INT_MIN);
    QSFEngine *e = qsf_load(tiny, c);
    assert_non_null(e);
    qsf_free(e);
    qsf_config_set_max_seq_len(c, INT_MAX);
    assert_null(qsf_load(tiny, c)); /* does not fit 200 MB */
    assert_true(qsf_error()[0] != '\0');
    qsf_config_set_max_seq_len(c, 64);
    qsf_config_set_quality(c, NAN);
    assert_null(qsf_load(tiny, c));
    assert_error("quality");
    qsf_config_free(c);
}

static void logits_without_sampling(void **state) {
    (void)state;
    float l[40];
    for (int i = 0; i < 40; i++) l[i] = NAN;
    for (int t = 0; t < 2; t++) {
        assert_int_equal(qsf_sample(l, 40, (float)t, 1), -1);
        assert_error("NaN");
    }
    for (int i = 0; i < 40; i += 2) l[i] = -INFINITY;
    assert_int_equal(qsf_sample(l, 40, 1, 0.5f), -1);
    l[33] = -1e20f;
    for (int t = 0; t < 2; t++) {
        assert_int_equal(qsf_sample(l, 40, (float)t, 0.9f), 33);
        assert_string_equal(qsf_error(), "");
    }
    l[7] = INFINITY;
    assert_int_equal(qsf_sample(l, 40, 1, 1), 7);
    assert_int_equal(qsf_sample(l, -1, 1, 1), -1);
    assert_int_equal(qsf_sample(l, 40, -1, 1), -1);
    assert_error("temperature");
    assert_int_equal(qsf_sample(l, 40, 1, 2), -1);
    assert_error("top_p");
}

/* ---- qsf_engine.h ---- */

static void settings_take_null(void **state) {
    (void)state;
    QSFSettings s;
    char text[64] = "x";
    uint64_t bytes;
    uint32_t percent;
    const QSFSetting *row = qsf_setting_at(0);
    qsf_settings_default(NULL);
    qsf_settings_default(&s);
    assert_null(qsf_setting_find(NULL));
    assert_null(qsf_setting_at(SIZE_MAX));
    assert_int_equal(qsf_setting_set(NULL, row, "1", text, sizeof text), 2);
    assert_true(text[0] != '\0');
    assert_int_equal(qsf_setting_set(&s, NULL, "1", text, sizeof text), 2);
    assert_int_equal(qsf_setting_set(&s, row, "no number", NULL, 0), 2);
    assert_int_equal(qsf_setting_set(&s, row, "no number", NULL, 10), 2);
    qsf_setting_get(&s, NULL, text, sizeof text);
    assert_string_equal(text, "");
    qsf_setting_get(&s, row, NULL, 0);
    assert_false(qsf_setting_user_set(NULL, row));
    assert_false(qsf_setting_user_set(&s, NULL));
    assert_false(qsf_parse_size(NULL, &bytes, &percent));
    assert_false(qsf_parse_size("1", NULL, NULL));
    assert_null(qsf_model_file(NULL));
    size_t n = 9;
    assert_null(qsf_reasoning_body(NULL, 0, &n));
    assert_int_equal(n, 0);
}

static void a_worker_refuses_null(void **state) {
    (void)state;
    QSFMessage m = { .role = NULL, .content = "x", .len = 1 };
    QSFRequest r = { .messages = &m, .n_messages = 1 };
    QSFSettings s;
    QSFEvent e;
    char err[200];
    const char *const no_stop[] = { NULL };
    QSFWorker *w = qsf_worker_start(NULL, NULL, 0);
    assert_non_null(w);
    qsf_settings_default(&s);
    assert_int_equal(qsf_worker_load(w, NULL, &s), 0);
    assert_int_equal(qsf_worker_load(w, tiny, NULL), 0);
    assert_int_equal(qsf_worker_submit(w, NULL), 0);
    assert_int_equal(qsf_worker_submit(w, &r), 0); /* without a role */
    assert_null(qsf_worker_prompt(w, &r, err, sizeof err));
    assert_non_null(strstr(err, "NULL"));
    assert_null(qsf_worker_prompt(w, NULL, NULL, 0));
    m = (QSFMessage){ .role = "user", .content = NULL, .len = 1 };
    assert_int_equal(qsf_worker_submit(w, &r), 0);
    m = (QSFMessage){ .role = "user", .content = "x", .len = 1, .reasoning_len = 3 };
    assert_int_equal(qsf_worker_submit(w, &r), 0);
    r = (QSFRequest){ .messages = NULL, .n_messages = 1 };
    assert_int_equal(qsf_worker_submit(w, &r), 0);
    r = (QSFRequest){ .stop = no_stop, .n_stop = 1 };
    assert_int_equal(qsf_worker_submit(w, &r), 0);
    qsf_worker_set_params(w, NULL);
    qsf_worker_get_params(w, NULL);
    qsf_worker_model_defaults(w, NULL);
    qsf_worker_replan(w, NULL);
    qsf_worker_settings(w, NULL);
    qsf_worker_stats(w, NULL);
    assert_int_equal(qsf_worker_layers(w, NULL, UINT32_MAX), 0);
    assert_null(qsf_worker_describe(w, NULL));
    assert_false(qsf_worker_next(w, NULL));
    assert_false(qsf_worker_next(w, &e)); /* and no part of it was started */
    assert_false(qsf_worker_busy(w));
    qsf_worker_stop(w);
}

static void no_worker_is_refused(void **state) {
    (void)state;
    QSFSettings s;
    QSFRequest r = { 0 };
    QSFEvent e;
    char err[200];
    qsf_settings_default(&s);
    qsf_worker_stop(NULL);
    qsf_worker_override(NULL, NULL);
    assert_int_equal(qsf_worker_fd(NULL), -1);
    assert_int_equal(qsf_worker_load(NULL, tiny, &s), 0);
    assert_int_equal(qsf_worker_unload(NULL), 0);
    assert_int_equal(qsf_worker_submit(NULL, &r), 0);
    qsf_worker_cancel(NULL);
    assert_false(qsf_worker_busy(NULL));
    qsf_worker_set_params(NULL, &s.params);
    qsf_worker_get_params(NULL, &s.params);
    qsf_worker_model_defaults(NULL, &s);
    qsf_worker_replan(NULL, &s);
    qsf_worker_settings(NULL, &s);
    assert_false(qsf_worker_next(NULL, &e));
    qsf_worker_stats(NULL, NULL);
    assert_int_equal(qsf_worker_layers(NULL, NULL, 0), 0);
    assert_null(qsf_worker_describe(NULL, "model"));
    assert_null(qsf_worker_prompt(NULL, &r, err, sizeof err));
    assert_null(qsf_worker_templates(NULL));
}

/* A buffer of two where the caller claims any size. */
static void layers_are_counted(void **state) {
    (void)state;
    QSFSettings s;
    QSFEvent e = { 0 };
    QSFWorker *w = qsf_worker_start(NULL, NULL, 0);
    qsf_settings_default(&s);
    s.ctx = 64;
    assert_true(qsf_worker_load(w, tiny, &s) > 0);
    while (e.type != QSF_EVENT_LOADED && e.type != QSF_EVENT_ERROR)
        if (!qsf_worker_next(w, &e)) usleep(1000);
    assert_int_equal(e.type, QSF_EVENT_LOADED);
    uint32_t n = qsf_worker_layers(w, NULL, 0);
    assert_true(n > 1);
    QSFLayerStats *l = calloc(n, sizeof *l);
    assert_int_equal(qsf_worker_layers(w, l, UINT32_MAX), n);
    assert_true(l[0].weight_bytes > 0 && l[n - 1].weight_bytes > 0);
    free(l);
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("api_misuse.gguf"));
    return qsf_test_write_tiny_llama(tiny, NULL);
}

static int teardown(void **state) {
    (void)state;
    return unlink(tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_cannot_change_its_engine),
        cmocka_unit_test(the_outer_error_is_its_own),
        cmocka_unit_test(a_callback_frees_its_engine),
        cmocka_unit_test(other_threads_and_engines),
        cmocka_unit_test(null_is_an_error),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(extreme_configurations),
        cmocka_unit_test(logits_without_sampling),
        cmocka_unit_test(settings_take_null),
        cmocka_unit_test(a_worker_refuses_null),
        cmocka_unit_test(no_worker_is_refused),
        cmocka_unit_test(layers_are_counted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
