/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The synchronous interface of qsf.h, used like an external program does. */
#include "tests/harness/qsf_test.h"

#include <math.h>
#include <pthread.h>

#include "qsf.h"
#include "src/base/sanitizer.h"
#include "tests/harness/gguf_build.h"

static char tiny[256];

typedef struct Heard {
    char text[4096];
    size_t len;
    int calls;
} Heard;

static void hear(int token_id, const char *text, void *user_data) {
    Heard *h = user_data;
    size_t n = strlen(text);
    assert_true(token_id >= -1 && h->len + n < sizeof h->text);
    memcpy(h->text + h->len, text, n + 1);
    h->len += n;
    h->calls += token_id >= 0;
}

static QSFEngine *load(const char *path) {
    QSFConfig *c = qsf_config_default();
    assert_non_null(c);
    qsf_config_set_threads(c, 2);
    qsf_config_set_max_seq_len(c, 128);
    QSFEngine *e = qsf_load(path, c);
    qsf_config_free(c);
    if (e == NULL) fail_msg("%s", qsf_error());
    assert_string_equal(qsf_error(), "");
    return e;
}

static void loading_fails_with_a_reason(void **state) {
    (void)state;
    assert_null(qsf_load("/nonexistent.gguf", NULL));
    assert_non_null(strstr(qsf_error(), "/nonexistent.gguf"));
    assert_null(qsf_load(NULL, NULL));
    QSFConfig *c = qsf_config_default();
    for (int i = 0; i < 4; i++) {
        const float bad[] = { 0, -0.5f, 1.5f, NAN };
        qsf_config_set_quality(c, bad[i]);
        assert_non_null(strstr(qsf_error(), "quality"));
        assert_null(qsf_load(tiny, c));
        assert_non_null(strstr(qsf_error(), "quality"));
    }
    qsf_config_set_quality(c, 1.0f);
    qsf_config_set_ram_budget(c, 1);
    assert_null(qsf_load(tiny, c));
    assert_non_null(strstr(qsf_error(), "smallest budget that works"));
    qsf_config_free(c);
    qsf_config_free(NULL);
    qsf_free(NULL);
}

/* Does qsf_print_stats print this? */
static bool stats_have(QSFEngine *e, const char *part) {
    char text[8192];
    FILE *f = tmpfile();
    const int old = dup(STDERR_FILENO);
    assert_true(f != NULL && old >= 0);
    assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
    qsf_print_stats(e);
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    close(old);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return strstr(text, part) != NULL;
}

static void types_of_the_cache(void **state) {
    (void)state;
    QSFConfig *c = qsf_config_default();
    assert_int_equal(qsf_config_set_kv_types(c, "f16", "q9"), 2);
    assert_non_null(strstr(qsf_error(), "v-type takes "));
    assert_int_equal(qsf_config_set_kv_types(c, "F32", "q8"), 0);
    assert_string_equal(qsf_error(), "");
    QSFEngine *e = qsf_load(tiny, c);
    assert_non_null(e);
    assert_true(stats_have(e, " f32 for K, q8 for V\n"));
    assert_int_equal(qsf_generate(e, "a", 4, 0, 1, NULL, NULL), 0);
    qsf_free(e);
    assert_int_equal(qsf_config_set_kv_types(c, NULL, "auto"), 0);
    e = qsf_load(tiny, c);
    assert_non_null(e);
    assert_true(stats_have(e, " f16 for K, f16 for V\n"));
    qsf_free(e);
    qsf_config_free(c);
}

static void text_and_tokens(void **state) {
    (void)state;
    int n = -1;
    QSFEngine *e = load(tiny);
    int *ids = qsf_tokenize(e, "hello world", &n);
    assert_non_null(ids);
    assert_true(n > 1);
    char *text = qsf_detokenize(e, ids, n);
    assert_string_equal(text, "hello world");
    free(text);
    free(ids);
    text = qsf_detokenize(e, NULL, 0);
    assert_string_equal(text, "");
    free(text);
    assert_null(qsf_tokenize(e, NULL, &n));
    assert_true(qsf_error()[0] != '\0');
    assert_null(qsf_detokenize(e, NULL, 3));
    qsf_free(e);
}

/* Lowers the quality of an engine, or raises it, after some tokens. */
typedef struct Turn {
    QSFEngine *engine;
    QSFConfig *config;
    float to;
    int at, calls;
    char text[512];
} Turn;

static void turn(int id, const char *text, void *arg) {
    Turn *t = arg;
    (void)id;
    const size_t n = strlen(t->text);
    (void)snprintf(t->text + n, sizeof t->text - n, "%s", text);
    if (++t->calls != t->at) return;
    if (t->config != NULL)
        qsf_config_set_quality(t->config, t->to);
    else
        assert_int_equal(qsf_set_quality(t->engine, t->to), 0);
}

static void generate_turning(QSFEngine *e, QSFConfig *c, float from, float to, int at, Turn *out) {
    *out = (Turn){ .engine = e, .config = c, .to = to, .at = at };
    assert_int_equal(qsf_set_quality(e, from), 0);
    assert_int_equal(qsf_generate(e, "hello", 24, 0, 1, turn, out), 0);
}

/* During an answer, too. What follows a rise is what follows the same text. */
static void quality_is_live(void **state) {
    char path[512];
    Turn full, again, low, falls, rises, follows;
    (void)state;
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("quality.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = 8, .seed = 5 }), 0);
    QSFConfig *c = qsf_config_default();
    QSFEngine *e = qsf_load(path, c);
    assert_non_null(e);
    assert_true(qsf_quality(e) == 1.0f && qsf_quality(NULL) == 0.0f);
    generate_turning(e, NULL, 1, 1, -1, &full);
    generate_turning(e, NULL, 0.4f, 1, -1, &low);
    assert_string_not_equal(low.text, full.text);
    assert_true(qsf_quality(e) == 0.4f);
    generate_turning(e, NULL, 1, 0.4f, 4, &falls);
    generate_turning(e, c, 0.4f, 1, 4, &rises);
    assert_true(qsf_quality(e) == 1.0f);
    generate_turning(e, NULL, 1, 1, -1, &again);
    assert_string_equal(again.text, full.text);
    generate_turning(e, NULL, 0.4f, 1, -1, &follows);
    assert_string_equal(follows.text, low.text);
    assert_string_not_equal(falls.text, full.text);
    assert_string_not_equal(rises.text, low.text);
    assert_int_equal(qsf_set_quality(e, 0), 2);
    assert_int_equal(qsf_set_quality(e, 1.01f), 2);
    assert_int_equal(qsf_set_quality(NULL, 1), 2);
    qsf_free(e);
    qsf_config_free(c);
    unlink(path);
}

/* The next prompt evaluates the answer again: the logits are those of a new engine. */
static void prompts_are_exact_after_reduced_answers(void **state) {
    char path[512];
    int n = 0, n_vocab = 300;
    Turn low;
    (void)state;
    (void)snprintf(path, sizeof path, "%s", qsf_test_tmp("exact.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = 8, .seed = 5 }), 0);
    QSFEngine *e = qsf_load(path, NULL), *fresh = qsf_load(path, NULL);
    assert_true(e != NULL && fresh != NULL);
    generate_turning(e, NULL, 0.4f, 1, -1, &low);
    char text[600];
    (void)snprintf(text, sizeof text, "hello%s and more", low.text);
    int *ids = qsf_tokenize(e, text, &n);
    assert_non_null(ids);
    const float *a = qsf_forward(e, ids, n), *b = qsf_forward(fresh, ids, n);
    assert_true(a != NULL && b != NULL);
    assert_memory_equal(a, b, (size_t)n_vocab * sizeof *a);
    free(ids);
    qsf_free(e);
    qsf_free(fresh);
    unlink(path);
}

static void generate_delivers_and_reports_the_end(void **state) {
    (void)state;
    Heard a = { 0 }, b = { 0 }, c = { 0 };
    QSFEngine *e = load(tiny);
    assert_int_equal(qsf_generate(e, "hello", 20, 0, 1, hear, &a), 0);
    assert_true(a.calls <= 20);
    assert_int_equal(qsf_generate(e, "hello", 20, 0, 1, hear, &b), 0);
    assert_int_equal(a.calls, b.calls);
    assert_string_equal(a.text, b.text);
    assert_int_equal(qsf_generate(e, "hello", 0, 0, 1, hear, &c), 0);
    assert_int_equal(c.calls, 0);
    assert_int_equal(qsf_generate(e, "hello", 5, 0.7f, 0.9f, NULL, NULL), 0);
    assert_int_equal(qsf_generate(e, "hello", -1, 0, 1, hear, &c), 2);
    assert_int_equal(qsf_generate(e, "hello", 5, NAN, 1, hear, &c), 2);
    assert_non_null(strstr(qsf_error(), "temperature"));
    assert_int_equal(qsf_generate(e, "hello", 5, 1, 0, hear, &c), 2);
    assert_non_null(strstr(qsf_error(), "top_p"));
    assert_int_equal(qsf_generate(e, NULL, 5, 1, 1, hear, &c), 2);
    assert_int_equal(qsf_generate(NULL, "x", 5, 1, 1, hear, &c), 2);
    char longer[1024];
    memset(longer, 'q', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(qsf_generate(e, longer, 5, 0, 1, hear, &c), 5);
    assert_non_null(strstr(qsf_error(), "128"));
    qsf_print_stats(e);
    qsf_free(e);
}

typedef struct Live {
    Heard heard;
    QSFConfig *config;
    QSFEngine *engine;
    int refused; /* result of qsf_set_ram_budget within the callback */
} Live;

/* Changes a setting every few tokens, from within the callback. */
static void change_and_hear(int token_id, const char *text, void *user_data) {
    Live *l = user_data;
    hear(token_id, text, &l->heard);
    if (token_id < 0) return;
    if (l->heard.calls == 5) qsf_config_set_ram_budget(l->config, 300);
    if (l->heard.calls == 8) qsf_config_set_threads(l->config, 1);
    if (l->heard.calls == 10) qsf_config_set_ram_budget(l->config, 1); /* cannot be met: not changed */
    if (l->heard.calls == 12) l->refused = qsf_set_ram_budget(l->engine, 400);
    if (l->heard.calls == 15) qsf_config_set_threads(l->config, 3);
}

static void a_configuration_is_followed_live(void **state) {
    (void)state;
    Live l = { .config = qsf_config_default() };
    Heard calm = { 0 };
    assert_non_null(l.config);
    qsf_config_set_ram_budget(l.config, 500);
    qsf_config_set_max_seq_len(l.config, 128);
    l.engine = qsf_load(tiny, l.config);
    if (l.engine == NULL) fail_msg("%s", qsf_error());
    assert_int_equal(qsf_ram_budget(l.engine), 500);
    assert_int_equal(qsf_generate(l.engine, "hello", 40, 0, 1, hear, &calm), 0);
    assert_int_equal(qsf_generate(l.engine, "hello", 40, 0, 1, change_and_hear, &l), 0);
    assert_string_equal(l.heard.text, calm.text);
    assert_int_equal(qsf_ram_budget(l.engine), 300);
    if (l.heard.calls >= 12) assert_int_equal(l.refused, 1);

    /* Also before the next call, and after the configuration is freed. */
    qsf_config_set_ram_budget(l.config, 600);
    assert_int_equal(qsf_ram_budget(l.engine), 300);
    qsf_config_free(l.config);
    Heard again = { 0 };
    assert_int_equal(qsf_generate(l.engine, "hello", 40, 0, 1, hear, &again), 0);
    assert_string_equal(again.text, calm.text);
    assert_int_equal(qsf_ram_budget(l.engine), 600);
    qsf_free(l.engine);
}

static void a_budget_is_applied_immediately_or_refused(void **state) {
    (void)state;
    static const char least[] = "smallest budget that works: ";
    QSFEngine *e = load(tiny);
    assert_int_equal(qsf_ram_budget(e), 200);
    assert_int_equal(qsf_set_ram_budget(e, 1), 4);
    const char *at = strstr(qsf_error(), least);
    assert_non_null(at);
    size_t mb = strtoul(at + strlen(least), NULL, 10);
    assert_int_equal(qsf_ram_budget(e), 200);
    assert_int_equal(qsf_set_ram_budget(e, mb), 0);
    assert_string_equal(qsf_error(), "");
    assert_int_equal(qsf_ram_budget(e), mb);
    assert_int_equal(qsf_generate(e, "hello", 5, 0, 1, NULL, NULL), 0);
    assert_int_equal(qsf_set_ram_budget(e, 0), 0); /* auto */
    assert_true(qsf_ram_budget(e) > 0);
    assert_int_equal(qsf_set_ram_budget(NULL, 100), 2);
    assert_int_equal(qsf_ram_budget(NULL), 0);
    qsf_free(e);
}

static void *turn_the_knobs(void *arg) {
    Live *l = arg;
    for (int i = 0; i < 200; i++) {
        qsf_config_set_ram_budget(l->config, 200 + (size_t)i % 3 * 50);
        qsf_config_set_threads(l->config, 1 + i % 2);
        usleep(500);
    }
    return NULL;
}

static void another_thread_changes_the_settings(void **state) {
    (void)state;
    Live l = { .config = qsf_config_default() };
    Heard calm = { 0 };
    pthread_t t;
    qsf_config_set_max_seq_len(l.config, 128);
    l.engine = qsf_load(tiny, l.config);
    assert_non_null(l.engine);
    assert_int_equal(qsf_generate(l.engine, "hello", 60, 0, 1, hear, &calm), 0);
    assert_int_equal(pthread_create(&t, NULL, turn_the_knobs, &l), 0);
    for (int i = 0; i < 10; i++) {
        Heard h = { 0 };
        assert_int_equal(qsf_generate(l.engine, "hello", 60, 0, 1, hear, &h), 0);
        assert_string_equal(h.text, calm.text);
    }
    pthread_join(t, NULL);
    qsf_free(l.engine);
    qsf_config_free(l.config);
}

static void forward_gives_the_last_logits(void **state) {
    (void)state;
    static const int ids[] = { 1, 270, 280, 290, 265, 266 };
    float kept[300];
    QSFEngine *e = load(tiny);
    float *l = qsf_forward(e, ids, 6);
    assert_non_null(l);
    memcpy(kept, l, sizeof kept);
    assert_non_null(qsf_forward(e, ids, 3));
    assert_memory_not_equal(qsf_forward(e, ids, 3), kept, sizeof kept);
    l = qsf_forward(e, ids, 6); /* now a suffix, with the same bits */
    assert_memory_equal(l, kept, sizeof kept);
    int best = qsf_sample(l, 300, 0, 1);
    for (int i = 0; i < 300; i++) assert_true(l[i] <= l[best]);
    static const int bad[] = { 1, 100000 };
    assert_null(qsf_forward(e, bad, 2));
    assert_true(qsf_error()[0] != '\0');
    assert_null(qsf_forward(e, ids, 0));
    qsf_free(e);
}

static void sample_follows_the_logits(void **state) {
    (void)state;
    static const float logits[4] = { 0, 2, 1, 2 };
    int count[4] = { 0 };
    assert_int_equal(qsf_sample(logits, 4, 0, 1), 1);
    for (int i = 0; i < 400; i++) count[qsf_sample(logits, 4, 1, 0.7f)]++;
    assert_int_equal(count[0] + count[2], 0); /* the two most likely have 0.77 together */
    assert_true(count[1] > 100 && count[3] > 100);
    assert_int_equal(qsf_sample(logits, 0, 1, 1), -1);
    assert_int_equal(qsf_sample(NULL, 4, 1, 1), -1);
}

static void *fail_elsewhere(void *arg) {
    (void)arg;
    qsf_load("/nowhere.gguf", NULL);
    return NULL;
}

static void errors_belong_to_their_thread(void **state) {
    (void)state;
    pthread_t t;
    qsf_load("/mine.gguf", NULL);
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, NULL), 0);
    pthread_join(t, NULL);
    assert_non_null(strstr(qsf_error(), "/mine.gguf"));
}

typedef struct Ids {
    int want, others, calls;
    QSFEngine *engine;
} Ids;

static void count_id(int token_id, const char *text, void *user_data) {
    Ids *ids = user_data;
    (void)text;
    if (token_id < 0) return;
    ids->calls++;
    ids->others += token_id != ids->want;
}

static void prefer(float *logits, int n, void *user_data) {
    Ids *ids = user_data;
    if (ids->want < n) logits[ids->want] = 500;
    assert_int_equal(qsf_set_logits_callback(ids->engine, NULL, NULL), 1); /* not from here */
}

static void nothing_is_left(float *logits, int n, void *user_data) {
    (void)user_data;
    for (int i = 0; i < n; i++) logits[i] = -INFINITY;
}

static void logits_can_be_changed(void **state) {
    (void)state;
    QSFConfig *c = qsf_config_default();
    Ids ids = { .want = 70 };
    assert_int_equal(qsf_config_set_logit_bias(NULL, 70, 1), 2);
    assert_int_equal(qsf_config_set_logit_bias(c, -1, 1), 2);
    assert_int_equal(qsf_config_set_logit_bias(c, 70, NAN), 2);
    assert_int_equal(qsf_config_set_logit_bias(c, 70, 1e9f), 2);
    assert_int_equal(qsf_config_set_logit_bias(c, 71, 900), 0);
    assert_int_equal(qsf_config_set_logit_bias(c, 71, 0), 0); /* removed */
    assert_int_equal(qsf_config_set_logit_bias(c, 70, 300), 0);
    QSFEngine *e = qsf_load(tiny, c);
    assert_non_null(e);
    assert_int_equal(qsf_generate(e, "hello", 9, 0.5f, 1, count_id, &ids), 0);
    assert_true(ids.calls == 9 && ids.others == 0);
    ids = (Ids){ .want = 80, .engine = e };
    assert_int_equal(qsf_set_logits_callback(NULL, prefer, &ids), 2);
    assert_int_equal(qsf_set_logits_callback(e, prefer, &ids), 0);
    assert_int_equal(qsf_generate(e, "hello", 9, 0, 1, count_id, &ids), 0);
    assert_true(ids.calls == 9 && ids.others == 0);
    assert_int_equal(qsf_set_logits_callback(e, nothing_is_left, NULL), 0);
    assert_int_equal(qsf_generate(e, "hello", 9, 0, 1, NULL, NULL), 1);
    assert_non_null(strstr(qsf_error(), "allowed"));
    assert_int_equal(qsf_set_logits_callback(e, NULL, NULL), 0);
    assert_int_equal(qsf_generate(e, "hello", 2, 0, 1, NULL, NULL), 0);
    qsf_free(e);
    assert_int_equal(qsf_config_set_logit_bias(c, 100000000, -INFINITY), 0);
    e = qsf_load(tiny, c);
    assert_int_equal(qsf_generate(e, "hello", 9, 0, 1, NULL, NULL), 2);
    assert_non_null(strstr(qsf_error(), "#100000000"));
    qsf_free(e);
    qsf_config_free(c);
}

static void set_grammar_in_callback(int token_id, const char *text, void *user_data) {
    (void)token_id;
    (void)text;
    assert_int_equal(qsf_set_grammar(user_data, "regex", "x"), 1);
}

static void grammars_hold(void **state) {
    (void)state;
    QSFConfig *c = qsf_config_default();
    Heard h = { 0 };
    assert_int_equal(qsf_config_set_grammar(NULL, "regex", "a"), 2);
    assert_int_equal(qsf_config_set_grammar(c, "perl", "a"), 2);
    assert_non_null(strstr(qsf_error(), "gbnf, json-schema, regex or words"));
    assert_int_equal(qsf_config_set_grammar(c, "regex", "(ab"), 2);
    assert_non_null(strstr(qsf_error(), "regex: "));
    assert_int_equal(qsf_config_set_grammar(c, "json-schema", "{\"type\": \"object\", \"not\": {}}"), 2);
    assert_non_null(strstr(qsf_error(), "not"));
    assert_int_equal(qsf_config_set_grammar(c, "regex", "(?:ab ){3}c"), 0);
    assert_int_equal(qsf_config_set_grammar(c, "gbnf", "root ::= x"), 2); /* the one before stays */
    QSFEngine *e = qsf_load(tiny, c);
    assert_non_null(e);
    assert_int_equal(qsf_config_set_grammar(c, NULL, NULL), 0);
    qsf_config_free(c);
    assert_int_equal(qsf_generate(e, "hello", 30, 1, 1, hear, &h), 0);
    assert_string_equal(h.text, "ab ab ab c");
    assert_int_equal(qsf_generate(e, "hello", 3, 1, 1, NULL, NULL), 1);
    assert_non_null(strstr(qsf_error(), "before its grammar was complete"));
    h = (Heard){ 0 };
    assert_int_equal(qsf_set_grammar(e, "gbnf", "root ::= [0-4] \"-\" [5-9]"), 0);
    assert_int_equal(qsf_generate(e, "hello", 30, 1, 1, hear, &h), 0);
    assert_true(strlen(h.text) == 3 && h.text[0] >= '0' && h.text[0] <= '4' && h.text[2] >= '5');
    assert_int_equal(qsf_set_grammar(e, "words", "a+\nbe"), 0);
    assert_int_equal(qsf_set_grammar(NULL, "words", "a+"), 2);
    assert_int_equal(qsf_generate(e, "hello", 1, 0, 1, set_grammar_in_callback, e), 0);
    assert_int_equal(qsf_set_grammar(e, NULL, NULL), 0);
    assert_int_equal(qsf_generate(e, "hello", 2, 0, 1, NULL, NULL), 0);
    qsf_free(e);
}

/* The memory of a sanitizer differs from run to run by more than a grammar needs. */
#if !QSF_ADDRESS_SANITIZER && !QSF_THREAD_SANITIZER
/* The budget that the last error names, in MB. */
static size_t named_budget(void) {
    const char *at = strstr(qsf_error(), "smallest budget that works: ");
    if (at == NULL) fail_msg("%s", qsf_error());
    return strtoul(at + strlen("smallest budget that works: "), NULL, 10);
}

static QSFEngine *load_with(size_t megabytes) {
    QSFConfig *c = qsf_config_default();
    qsf_config_set_ram_budget(c, megabytes);
    QSFEngine *e = qsf_load(tiny, c);
    qsf_config_free(c);
    return e;
}

/* Counts make a grammar larger than a plan expects; then the budget that the refusal names is enough. */
static void a_large_grammar_fits_the_named_budget(void **state) {
    (void)state;
    static const char large[] = "{\"type\": \"array\", \"maxItems\": 300, \"minItems\": 1, \"items\": "
                                "{\"type\": \"string\", \"maxLength\": 15}}";
    assert_null(load_with(1));
    const size_t least = named_budget() + 1;
    QSFEngine *e = load_with(least);
    if (e == NULL) fail_msg("%s", qsf_error());
    assert_int_equal(qsf_set_grammar(e, "json-schema", large), 0);
    assert_int_equal(qsf_generate(e, "a", 20, 1, 1, NULL, NULL), 4);
    const size_t named = named_budget();
    qsf_free(e);
    e = load_with(named + 1); /* the process has grown a little since */
    if (e == NULL) fail_msg("%s", qsf_error());
    assert_int_equal(qsf_set_grammar(e, "json-schema", large), 0);
    if (qsf_generate(e, "a", 20, 1, 1, NULL, NULL) != 0) fail_msg("%zu MB: %s", named, qsf_error());
    qsf_free(e);
    print_message("%zu MB without a grammar, %zu MB with it\n", least, named);
    assert_true(named > least && named < least + 24);
}
#endif

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
    Heard h = { 0 };
    QSFEngine *e = qsf_load(path, NULL);
    assert_non_null(e);
    assert_int_equal(qsf_generate(e, "Once upon a time", 80, 0, 1, hear, &h), 0);
    assert_string_equal(h.text, want + strlen("Once upon a time"));
    assert_int_equal(h.calls, 80);
    qsf_free(e);
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(tiny, sizeof tiny, "%s", qsf_test_tmp("api.gguf"));
    return qsf_test_write_tiny_llama(tiny, NULL);
}

static int teardown(void **state) {
    (void)state;
    return unlink(tiny);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading_fails_with_a_reason),
        cmocka_unit_test(text_and_tokens),
        cmocka_unit_test(types_of_the_cache),
        cmocka_unit_test(generate_delivers_and_reports_the_end),
        cmocka_unit_test(quality_is_live),
        cmocka_unit_test(prompts_are_exact_after_reduced_answers),
        cmocka_unit_test(a_configuration_is_followed_live),
        cmocka_unit_test(a_budget_is_applied_immediately_or_refused),
        cmocka_unit_test(another_thread_changes_the_settings),
        cmocka_unit_test(forward_gives_the_last_logits),
        cmocka_unit_test(sample_follows_the_logits),
        cmocka_unit_test(errors_belong_to_their_thread),
        cmocka_unit_test(logits_can_be_changed),
        cmocka_unit_test(grammars_hold),
#if !QSF_ADDRESS_SANITIZER && !QSF_THREAD_SANITIZER
        cmocka_unit_test(a_large_grammar_fits_the_named_budget),
#endif
        cmocka_unit_test(the_real_model_answers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
