/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of the last answer: rows, branches, and answers whose tokens are evaluated again. */
#include "tests/harness/qsf_test.h"

#include "qsf_cli.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/worker_rig.h"

#define TURNS  "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>{% endfor %}"
#define ANSWER "{% if add_generation_prompt %}<|assistant|>{% endif %}"

enum { MAX = 24 };

static char path[256];
static QSFToken rows[MAX + 8];

/* temperature 0 = argmax. */
static QSFWorker *tiny(float temperature) {
    const QsfTinySpec spec = { .chat_template = TURNS ANSWER };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("tokens.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    QSFSettings s = qsf_rig_settings();
    s.params.max_tokens = MAX;
    s.params.temperature = temperature;
    s.params.seed_set = true;
    s.params.seed = 7;
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    return w;
}

static QSFWorker *script(const char *text) {
    const QsfTinySpec spec = { .chat_template = TURNS ANSWER };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("tokens_script.gguf"));
    assert_int_equal(qsf_test_write_script_llama(path, text, &spec), 0);
    QSFSettings s = qsf_rig_settings();
    s.params.ignore_eos = false;
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, path, &s);
    return w;
}

static void done(QSFWorker *w) {
    qsf_worker_stop(w);
    unlink(path);
}

/* The rows of all tokens that are known, and how many there are. */
static uint32_t known(QSFWorker *w) {
    QSFTokens t;
    qsf_worker_tokens(w, &t);
    assert_int_equal(t.first, 0);
    assert_int_equal(qsf_worker_token_rows(w, 0, rows, MAX + 8), t.n);
    assert_int_equal(qsf_worker_token_rows(w, t.n, rows, MAX + 8), 0);
    return t.n;
}

static const QSFMessage question = { .role = "user", .content = "hello there", .len = 11 };

static QsfSeen *branch(QSFWorker *w, uint32_t at, int32_t id) {
    QSFRequest r = { .messages = &question, .n_messages = 1, .branch = at + 1, .branch_id = id };
    return qsf_rig_finish(w, qsf_worker_submit(w, &r));
}

static QsfSeen *score(QSFWorker *w, const char *answer, size_t len) {
    const QSFMessage m[2] = { question, { .role = "assistant", .content = answer, .len = len } };
    QSFRequest r = { .messages = m, .n_messages = 2, .score = true };
    return qsf_rig_finish(w, qsf_worker_submit(w, &r));
}

static void rows_describe_the_answer(void **state) {
    (void)state;
    for (int hot = 0; hot < 2; hot++) {
        QSFWorker *w = tiny(hot ? 0.9f : 0);
        QSFTokens t;
        qsf_worker_tokens(w, &t);
        assert_true(t.n == 0 && t.request == 0);
        QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
        qsf_worker_tokens(w, &t);
        assert_true(t.request == s->end.request);
        assert_int_equal(known(w), MAX);
        uint32_t text = 0;
        for (uint32_t i = 0; i < MAX; i++) {
            const QSFToken *k = &rows[i];
            double sum = 0;
            assert_int_equal(k->n, QSF_CANDIDATES);
            for (uint32_t c = 0; c < k->n; c++) {
                assert_true(c == 0 || k->top[c].p <= k->top[c - 1].p);
                if (k->top[c].id == k->id) assert_true(k->top[c].p == k->p);
                sum += (double)k->top[c].p;
            }
            if (!hot) assert_int_equal(k->id, k->top[0].id);
            assert_true(sum > 0 && sum <= 1.001 && k->p >= 0 && k->p <= k->top[0].p && k->entropy > 0);
            assert_true(k->text_end >= text && k->reasoning_end == 0);
            text = k->text_end;
        }
        assert_int_equal(text, s->len);
        done(w);
    }
}

/* A branch that takes what was taken before is the same answer; nothing before it is evaluated again. */
static void a_branch_goes_on_from_its_token(void **state) {
    static char first[65536];
    (void)state;
    QSFWorker *w = tiny(0);
    QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    const uint32_t prompt = s->end.prompt_tokens;
    memcpy(first, s->text, s->len + 1);
    (void)known(w);
    QSFToken was[MAX];
    memcpy(was, rows, sizeof was);
    s = branch(w, 10, was[10].id);
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_string_equal(s->text, first);
    assert_int_equal(s->end.tokens, MAX);
    assert_int_equal(s->end.prompt_tokens, prompt + 10);
    assert_true(s->end.reused_tokens + 1 >= prompt + 10);
    assert_int_equal(known(w), MAX);
    assert_memory_equal(rows, was, sizeof was);
    /* Another token: what precedes it stays. */
    s = branch(w, 10, was[10].top[1].id);
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_memory_equal(s->text, first, was[9].text_end);
    assert_int_equal(known(w), MAX);
    assert_memory_equal(rows, was, 10 * sizeof *was);
    assert_int_equal(rows[10].id, was[10].top[1].id);
    assert_true(rows[10].p == was[10].top[1].p && rows[10].entropy == was[10].entropy);
    assert_memory_equal(rows[10].top, was[10].top, sizeof rows[10].top);
    assert_true(s->end.reused_tokens + 1 >= prompt + 10);
    /* And from the beginning. */
    s = branch(w, 0, was[0].id);
    assert_string_equal(s->text, first);
    done(w);
}

static void branches_that_are_refused(void **state) {
    (void)state;
    QSFWorker *w = tiny(0);
    QsfSeen *s = branch(w, 0, 5);
    assert_int_equal(s->end.code, QSF_EXIT_USAGE);
    assert_string_equal(s->end_text, "the last answer has no token 1");
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    assert_int_equal(branch(w, MAX, 5)->end.code, QSF_EXIT_USAGE);
    assert_int_equal(branch(w, 3, -1)->end.code, QSF_EXIT_USAGE);
    s = branch(w, 3, 300);
    assert_string_equal(s->end_text, "token 300 is outside the vocabulary");
    assert_int_equal(known(w), MAX); /* nothing was lost */
    done(w);
}

/* The same rows as while it was written; then it can be a branch. */
static void an_answer_is_evaluated_again(void **state) {
    static char first[65536];
    (void)state;
    QSFWorker *w = script("_one _two <x>");
    QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    assert_int_equal(s->end.stop, QSF_STOP_EOS);
    memcpy(first, s->text, s->len + 1);
    assert_int_equal(known(w), 4); /* with the end */
    assert_int_equal(rows[3].text_end, rows[2].text_end);
    assert_int_equal(rows[2].text_end, strlen(first));
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "other"));
    s = score(w, first, strlen(first));
    if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
    assert_int_equal(s->len, 0);
    const uint32_t n = known(w);
    assert_true(n > 0);
    assert_int_equal(rows[n - 1].text_end, strlen(first));
    s = branch(w, 0, rows[0].id);
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    s = score(w, "a<x>b", 5); /* the vocabulary puts a space after <x> */
    assert_string_equal(s->end_text, "the tokens of this answer cannot be determined from its text");
    assert_int_equal(known(w), 0);
    done(w);
    w = tiny(0);
    s = qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    s = score(w, "ab ab", 5);
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_int_equal(rows[known(w) - 1].text_end, 5);
    QSFMessage m = question;
    QSFRequest r = { .messages = &m, .score = true };
    s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(s->end.type, QSF_EVENT_ERROR);
    done(w);
}

static QsfSeen *score_tokens(QSFWorker *w, const char *answer, const int32_t *ids, uint32_t n) {
    const QSFMessage m[2] = { question, { .role = "assistant", .content = answer, .len = strlen(answer) } };
    QSFRequest r = { .messages = m, .n_messages = 2, .score = true, .tokens = ids, .n_tokens = n };
    return qsf_rig_finish(w, qsf_worker_submit(w, &r));
}

/* Asks for an answer, something else, and for the tokens of the answer: the rows are the same. */
static void known_again(QSFWorker *w, const QSFRequest *r) {
    static char text[65536];
    int32_t ids[MAX + 8];
    QSFToken was[MAX + 8];
    QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    memcpy(text, s->text, s->len + 1);
    const uint32_t n = known(w);
    assert_true(n > 0);
    memcpy(was, rows, sizeof was);
    assert_int_equal(qsf_worker_token_ids(w, 0, ids, MAX + 8), n);
    assert_int_equal(qsf_worker_token_ids(w, n, ids, 1), 0);
    assert_int_equal(qsf_worker_token_ids(NULL, 0, ids, 1), 0);
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "other"));
    s = score_tokens(w, text, ids, n);
    if (s->end.type != QSF_EVENT_DONE) fail_msg("%s", s->end_text);
    assert_int_equal(known(w), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(rows[i].id, was[i].id);
        assert_int_equal(rows[i].text_end, was[i].text_end);
        assert_float_equal(rows[i].p, was[i].p, 1e-3);
    }
    s = branch(w, n - 1, ids[n - 1]);
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "other"));
    ids[0] = -1;
    assert_string_equal(score_tokens(w, text, ids, n)->end_text, "token -1 is outside the vocabulary");
    ids[0] = 0;
    assert_string_equal(
        score_tokens(w, "another text, much longer than that of these tokens", ids, 1)->end_text,
        "the tokens of this answer cannot be determined from its text");
}

/* Of answers whose text has other tokens: cut anywhere, ended by a stop string, with hidden tokens. */
static void known_tokens_are_evaluated(void **state) {
    static const char *const texts[] = { "_one _two <x>", "a<x>b _two _", "_one !<ctl> <0xF0>",
                                         "<a> <b> <c> <d>" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int max = 0; max < 5; max++) {
            QSFWorker *w = script(texts[i]);
            qsf_rig_set_max(w, max);
            const QSFRequest r = { .messages = &question, .n_messages = 1 };
            known_again(w, &r);
            done(w);
        }
    QSFWorker *w = script("_one _two _three");
    const char *const stop = "wo";
    const QSFRequest r = { .messages = &question, .n_messages = 1, .stop = &stop, .n_stop = 1 };
    known_again(w, &r);
    done(w);
    w = tiny(0);
    const QSFRequest plain = { .messages = &question, .n_messages = 1 };
    known_again(w, &plain);
    done(w);
}

/* The tokens of a text that is evaluated. */
typedef struct Scored {
    int32_t ids[MAX];
    float p[MAX];
    uint32_t n;
} Scored;

static void take_scored(void *arg, const QSFToken *t) {
    Scored *s = arg;
    if (s->n == MAX) return;
    s->ids[s->n] = t->id;
    s->p[s->n++] = t->p;
}

/* A prompt of ids is that of the text which has them; nothing is put before it. */
static void a_prompt_of_ids(void **state) {
    static char text[65536];
    Scored want = { .n = 0 }, got = { .n = 0 };
    QSFRequest r = { .messages = &question, .n_messages = 1, .raw = true };
    (void)state;
    QSFWorker *w = tiny(0);
    QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_true(s->len > 0);
    const uint32_t n = s->end.prompt_tokens;
    memcpy(text, s->text, s->len + 1);
    r.score = true;
    r.scored = take_scored;
    r.scored_arg = &want;
    (void)qsf_rig_finish(w, qsf_worker_submit(w, &r));
    assert_int_equal(want.n, n);
    QSFRequest ids = { .raw = true, .tokens = want.ids, .n_tokens = n };
    s = qsf_rig_finish(w, qsf_worker_submit(w, &ids));
    assert_string_equal(s->text, text);
    assert_int_equal(s->end.prompt_tokens, n);
    ids.score = true;
    ids.scored = take_scored;
    ids.scored_arg = &got;
    s = qsf_rig_finish(w, qsf_worker_submit(w, &ids));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    assert_int_equal(got.n, n);
    assert_memory_equal(got.ids, want.ids, n * sizeof *got.ids);
    for (uint32_t i = 0; i < n; i++) assert_float_equal(got.p[i], want.p[i], 1e-3);
    ids.score = false;
    ids.n_tokens = 1;
    assert_int_equal(qsf_rig_finish(w, qsf_worker_submit(w, &ids))->end.prompt_tokens, 1);
    ids.messages = &question;
    ids.n_messages = 1;
    assert_int_equal(qsf_worker_submit(w, &ids), 0); /* one of both */
    ids.n_messages = 0;
    want.ids[0] = 1 << 30;
    s = qsf_rig_finish(w, qsf_worker_submit(w, &ids));
    assert_string_equal(s->end_text, "token 1073741824 is outside the vocabulary");
    assert_int_equal(s->end.code, QSF_E_USAGE);
    done(w);
}

/* /continue adds to the rows; other requests forget them. */
static void continuing_adds_rows(void **state) {
    (void)state;
    QSFWorker *w = script("<a> <b> <c> <d>");
    qsf_rig_set_max(w, 2);
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    assert_int_equal(known(w), 2);
    qsf_rig_set_max(w, 0);
    const QSFMessage m[2] = { question, { .role = "assistant", .content = "<a><b>", .len = 6 } };
    char *exact = qsf_worker_describe(w, "answer");
    QSFMessage with[2] = { m[0], m[1] };
    with[1].exact = exact;
    with[1].exact_len = exact ? strlen(exact) : 0;
    QSFRequest r = { .messages = with, .n_messages = 2, .continue_last = true };
    QsfSeen *s = qsf_rig_finish(w, qsf_worker_submit(w, &r));
    free(exact);
    assert_string_equal(s->text, "<c><d>");
    assert_int_equal(known(w), 5);
    assert_int_equal(rows[1].text_end, 6);
    assert_int_equal(rows[4].text_end, 12);
    s = branch(w, 1, rows[1].id);
    assert_string_equal(s->text, "<a><b><c><d>");
    done(w);
}

static void text_of_tokens(void **state) {
    char text[32];
    bool special;
    (void)state;
    QSFWorker *w = script("_one !<ctl> <0xF0>");
    (void)qsf_rig_finish(w, qsf_rig_submit(w, "hello there"));
    const uint32_t n = known(w);
    assert_true(n >= 3);
    assert_int_equal(qsf_worker_token_text(w, rows[0].id, text, sizeof text, &special), 4);
    assert_memory_equal(text, " one", 4);
    assert_false(special);
    assert_int_equal(qsf_worker_token_text(w, rows[1].id, text, sizeof text, &special), 5);
    assert_memory_equal(text, "<ctl>", 5);
    assert_true(special);
    assert_int_equal(qsf_worker_token_text(w, rows[2].id, text, sizeof text, &special), 1);
    assert_int_equal((unsigned char)text[0], 0xF0);
    assert_int_equal(qsf_worker_token_text(w, -1, text, sizeof text, &special), 0);
    assert_int_equal(qsf_worker_token_text(w, 1 << 30, text, sizeof text, NULL), 0);
    assert_int_equal(qsf_worker_token_text(NULL, 1, text, sizeof text, NULL), 0);
    (void)qsf_rig_finish(w, qsf_worker_unload(w));
    assert_int_equal(qsf_worker_token_text(w, rows[0].id, text, sizeof text, &special), 0);
    assert_int_equal(known(w), 0);
    done(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_describe_the_answer),   cmocka_unit_test(a_branch_goes_on_from_its_token),
        cmocka_unit_test(branches_that_are_refused),  cmocka_unit_test(an_answer_is_evaluated_again),
        cmocka_unit_test(known_tokens_are_evaluated), cmocka_unit_test(a_prompt_of_ids),
        cmocka_unit_test(continuing_adds_rows),       cmocka_unit_test(text_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
