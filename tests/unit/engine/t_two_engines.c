/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two engines in one process, as a server of two models uses them: each answers in its own thread, while a
 * third one changes threads and budget of both. Their memory comes and goes at the same addresses. For the
 * thread sanitizer (make check-tsan), too. */
#include "tests/harness/qsf_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "qsf.h"
#include "tests/harness/gguf_build.h"

#define ENGINES 2
#define ROUNDS  3
#define TOKENS  40
#define TEXT    2048
#define MORE    24 /* MB above the smallest budget: everything is in RAM, in the largest batches */

static char models[ENGINES][256];
static const char *const prompts[ENGINES] = { "hello world and so on", "the other one says" };

typedef struct Speaker {
    QSFEngine *engine;
    QSFConfig *config;
    size_t least; /* the smallest budget, MB */
    const char *prompt;
    atomic_uint *heard; /* tokens of all engines */
    atomic_uint *turns; /* changes of settings, of which there will be more than ROUNDS; NULL = none */
    char text[TEXT];    /* of the running answer */
    char first[TEXT];   /* what it should be */
    size_t len;
    int failed; /* the result of the first call that failed */
    bool differs;
    pthread_t thread;
} Speaker;

static void hear(int id, const char *text, void *arg) {
    Speaker *s = arg;
    const size_t n = strlen(text);
    (void)id;
    if (s->len + n < sizeof s->text) {
        memcpy(s->text + s->len, text, n + 1);
        s->len += n;
    }
    atomic_fetch_add(s->heard, 1);
}

static int answer(Speaker *s) {
    s->len = 0;
    s->text[0] = '\0';
    return qsf_generate(s->engine, s->prompt, TOKENS, 0, 1, hear, s);
}

static bool is_to_speak(const Speaker *s, int round) {
    return s->failed == 0 && (round < ROUNDS || (s->turns != NULL && atomic_load(s->turns) <= ROUNDS));
}

static void *speak(void *arg) {
    Speaker *s = arg;
    for (int i = 0; is_to_speak(s, i); i++) {
        s->failed = answer(s);
        s->differs |= strcmp(s->text, s->first) != 0;
    }
    return NULL;
}

/* Returns the smallest budget, in MB, that loads a model here: the program itself counts, and with a
 * sanitizer it is large. */
static size_t smallest(const char *path, QSFConfig *c) {
    static const char least[] = "smallest budget that works: ";
    qsf_config_set_ram_budget(c, 1);
    assert_null(qsf_load(path, c));
    const char *at = strstr(qsf_error(), least);
    assert_non_null(at);
    return strtoul(at + strlen(least), NULL, 10);
}

/* With everything in RAM; the first answer is what later ones must be. */
static void open_engine(Speaker *s, int i, atomic_uint *heard) {
    *s = (Speaker){ .prompt = prompts[i], .heard = heard, .config = qsf_config_default() };
    qsf_config_set_max_seq_len(s->config, 512);
    qsf_config_set_threads(s->config, 2);
    assert_int_equal(qsf_config_set_kv_types(s->config, "f16", "f16"),
                     0); /* the same tokens with any budget */
    s->least = smallest(models[i], s->config);
    qsf_config_set_ram_budget(s->config, s->least + MORE);
    s->engine = qsf_load(models[i], s->config);
    if (s->engine == NULL) fail_msg("%s", qsf_error());
    assert_int_equal(answer(s), 0);
    memcpy(s->first, s->text, sizeof s->first);
    assert_true(s->len > 0);
}

static void close_engine(Speaker *s) {
    qsf_free(s->engine);
    qsf_config_free(s->config);
}

/* Other settings for one of the engines after every few tokens, until the answers are over. */
static void turn_the_knobs(Speaker *s, atomic_uint *heard, atomic_uint *running, atomic_uint *count) {
    unsigned turns = 0, last = atomic_load(heard);
    while (atomic_load(running) > 0) {
        const unsigned now = atomic_load(heard);
        if (now - last < 3) {
            usleep(100);
            continue;
        }
        last = now;
        const Speaker *x = &s[turns % ENGINES];
        qsf_config_set_threads(x->config, 1 + (int)(turns / ENGINES % 3));
        qsf_config_set_ram_budget(x->config, x->least + MORE / 4 * (turns / ENGINES % 5));
        atomic_store(count, ++turns);
    }
}

typedef struct Run {
    Speaker *s;
    atomic_uint *running;
} Run;

static void *run(void *arg) {
    Run *r = arg;
    (void)speak(r->s);
    atomic_fetch_sub(r->running, 1);
    return NULL;
}

static void both_answer_while_settings_change(void **state) {
    (void)state;
    static Speaker s[ENGINES];
    Run runs[ENGINES];
    atomic_uint heard = 0, running = ENGINES, turns = 0;
    for (int i = 0; i < ENGINES; i++) open_engine(&s[i], i, &heard);
    for (int i = 0; i < ENGINES; i++) s[i].turns = &turns;
    for (int i = 0; i < ENGINES; i++) {
        runs[i] = (Run){ &s[i], &running };
        assert_int_equal(pthread_create(&s[i].thread, NULL, run, &runs[i]), 0);
    }
    turn_the_knobs(s, &heard, &running, &turns);
    for (int i = 0; i < ENGINES; i++) {
        pthread_join(s[i].thread, NULL);
        assert_int_equal(s[i].failed, 0);
        assert_false(s[i].differs);
        close_engine(&s[i]);
    }
    assert_true(atomic_load(&turns) > ROUNDS);
}

/* So that one engine gets addresses that the other one had. */
static void one_opens_while_the_other_answers(void **state) {
    (void)state;
    static Speaker s, other;
    atomic_uint heard = 0, running = 1;
    open_engine(&s, 0, &heard);
    Run r = { &s, &running };
    assert_int_equal(pthread_create(&s.thread, NULL, run, &r), 0);
    do {
        open_engine(&other, 1, &heard);
        close_engine(&other);
    } while (atomic_load(&running) > 0);
    pthread_join(s.thread, NULL);
    assert_int_equal(s.failed, 0);
    assert_false(s.differs);
    close_engine(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(both_answer_while_settings_change),
                                        cmocka_unit_test(one_opens_while_the_other_answers) };
    for (int i = 0; i < ENGINES; i++) {
        (void)snprintf(models[i], sizeof models[i], "%s", qsf_test_tmp(i == 0 ? "one.gguf" : "two.gguf"));
        const QsfTinySpec spec = {
            .layers = 4, .hidden = 128, .ffn = 512, .vocab = 2000, .ctx = 512, .seed = 3 + (uint64_t)i
        };
        if (qsf_test_write_tiny_llama(models[i], &spec) != 0) return 1;
    }
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < ENGINES; i++) unlink(models[i]);
    return rc;
}
