/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runtime and timeline on a tiny model and on a real one: reuse of the prefix, live parameters, every way an
 * answer can end; none of it changes a token. */
#include <unistd.h>

#include "tests/harness/qsf_test.h"

#include "src/base/file.h"
#include "src/engine/model_info.h"
#include "src/engine/runtime.h"
#include "src/engine/timeline.h"
#include "tests/harness/gguf_build.h"

#define MOST 512

typedef struct Answer {
    QSFParams params;
    char text[16384];
    size_t len;
    int32_t ids[MOST];
    uint32_t n;
    uint32_t asked; /* how often parameters were read */
    uint32_t ticks;
    atomic_int *cancel; /* set at token cancel_at */
    uint32_t cancel_at, refuse_at;
    uint32_t colder_at; /* temperature becomes 0 there */
    uint32_t all_at;    /* limits for experts end there */
} Answer;

static const char *model_path;
static atomic_int cancel;

static void on_params(void *arg, QSFParams *out) {
    Answer *a = arg;
    a->asked++;
    if (a->colder_at > 0 && a->n >= a->colder_at) a->params.temperature = 0;
    if (a->all_at > 0 && a->n >= a->all_at) a->params.expert_top = 0, a->params.expert_drop = 0;
    *out = a->params;
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    Answer *a = arg;
    memcpy(a->text + a->len, text, len);
    a->len += len;
    a->text[a->len] = '\0';
    if (id >= 0) a->ids[a->n++] = id;
    if (a->cancel_at > 0 && a->n == a->cancel_at) atomic_store(a->cancel, 1);
    return a->refuse_at > 0 && a->n >= a->refuse_at;
}

static void on_tick(void *arg, const QsfSample *s) {
    if (s != NULL) ((Answer *)arg)->ticks++;
}

static QsfRuntimeOptions options(uint32_t ctx, uint64_t pin, int threads) {
    QsfRuntimeOptions o = { .cancel = &cancel };
    qsf_settings_default(&o.settings);
    o.settings.ctx = ctx;
    o.settings.pin = pin;
    o.settings.threads = threads;
    return o;
}

static void open_at(QsfRuntime *rt, QsfTimeline *t, const char *path, const QsfRuntimeOptions *o) {
    QsfErr err = { 0 };
    atomic_store(&cancel, 0);
    qsf_test_expect_ok(qsf_runtime_open(rt, path, o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(t, rt, &err), &err);
}

static void open_tiny(QsfRuntime *rt, QsfTimeline *t, uint32_t ctx, uint64_t pin) {
    QsfRuntimeOptions o = options(ctx, pin, 1);
    open_at(rt, t, model_path, &o);
}

static void close_both(QsfRuntime *rt, QsfTimeline *t) {
    qsf_timeline_free(t);
    qsf_runtime_close(rt);
}

static Answer asking(float temperature, uint64_t seed, int32_t max_tokens) {
    Answer a = { .cancel = &cancel };
    a.params = (QSFParams){ .temperature = temperature,
                            .top_p = 1,
                            .repeat_penalty = 1,
                            .repeat_last_n = 64,
                            .max_tokens = max_tokens,
                            .seed_set = true,
                            .seed = seed,
                            .ignore_eos = true };
    return a;
}

static int generate_stop(QsfTimeline *t, const int32_t *prompt, size_t n, const char *const *stop,
                         size_t n_stop, Answer *a, QsfGeneration *out, QsfErr *err) {
    QsfGenerate g = { .prompt = prompt,
                      .n_prompt = n,
                      .continues = true,
                      .stop = stop,
                      .n_stop = n_stop,
                      .params = on_params,
                      .text = on_text,
                      .tick = on_tick,
                      .arg = a };
    atomic_store(&cancel, 0);
    return qsf_timeline_generate(t, &g, out, err);
}

static QsfGeneration generate(QsfTimeline *t, const int32_t *prompt, size_t n, Answer *a) {
    QsfGeneration out;
    QsfErr err = { 0 };
    qsf_test_expect_ok(generate_stop(t, prompt, n, NULL, 0, a, &out, &err), &err);
    assert_int_equal(out.prompt_tokens, n);
    assert_int_equal(out.tokens, a->n);
    assert_int_equal(a->ticks, a->n);
    assert_int_equal(t->rt->ledger.refused_frozen, 0);
    return out;
}

static const int32_t prompt[] = { 1, 270, 271, 280, 265, 290, 299, 277, 262, 261, 288, 295 };
#define N_PROMPT (sizeof prompt / sizeof prompt[0])

enum { N_LOGITS = 300 };

/* Generates, and keeps the last logits. */
static void generate_with(QsfTimeline *t, const int32_t *ids, size_t n, Answer *a, float last[N_LOGITS]) {
    generate(t, ids, n, a);
    memcpy(last, qsf_forward_logits(t->rt->fwd), N_LOGITS * sizeof *last);
}

/* Limits for experts that end in the middle of an answer: what follows is what follows the same text without
 * them; and after a limited answer, the next prompt is evaluated as if there had been none. */
static void limits_leave_nothing_behind(void **state) {
    static float all_last[N_LOGITS], last[N_LOGITS], changed[N_LOGITS], other[N_LOGITS];
    char path[512];
    QsfRuntime rt;
    QsfTimeline t;
    int32_t ids[N_PROMPT + 40];
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("limits.gguf"));
    assert_int_equal(qsf_test_write_tiny_experts(path, 5), 0);
    for (unsigned way = 0; way < 2; way++) { /* a limit to one expert, and to the heaviest ones */
        const QsfRuntimeOptions o = options(128, way == 0 ? UINT64_MAX : 300000, 1);
        Answer all = asking(0, 1, 24), some = all, rest = asking(0, 1, 12), after = rest, same = rest;
        some.params.expert_top = way == 0;
        some.params.expert_drop = way == 0 ? 0 : 0.9f;
        Answer limited = some;
        some.all_at = 12;
        open_at(&rt, &t, path, &o);
        generate_with(&t, prompt, N_PROMPT, &all, all_last);
        generate_with(&t, prompt, N_PROMPT, &limited, last);
        assert_memory_not_equal(last, all_last, sizeof last);
        memcpy(ids, prompt, sizeof prompt);
        memcpy(ids + N_PROMPT, limited.ids, 24 * sizeof *ids);
        generate_with(&t, ids, N_PROMPT + 24, &after, last);
        generate_with(&t, prompt, N_PROMPT, &some, changed);
        assert_memory_equal(some.ids, limited.ids, 12 * sizeof *some.ids);
        close_both(&rt, &t);
        open_at(&rt, &t, path, &o); /* nothing was limited in this one */
        generate_with(&t, ids, N_PROMPT + 24, &same, other);
        assert_memory_equal(last, other, sizeof last);
        generate_with(&t, ids, N_PROMPT + 12, &rest, other);
        assert_memory_equal(rest.ids, some.ids + 12, 12 * sizeof *ids);
        assert_memory_equal(changed, other, sizeof changed);
        close_both(&rt, &t);
    }
    unlink(path);
}

static void the_prefix_is_reused_and_changes_nothing(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    int32_t longer[MOST];
    open_tiny(&rt, &t, 128, UINT64_MAX);
    Answer first = asking(0.9f, 7, 20), again = asking(0.9f, 7, 20);
    QsfGeneration g = generate(&t, prompt, N_PROMPT, &first);
    assert_int_equal(g.reused_tokens, 0);
    assert_int_equal(g.stop, QSF_STOP_LENGTH);
    assert_int_equal(g.tokens, 20);
    assert_int_equal(g.seed, 7);
    g = generate(&t, prompt, N_PROMPT, &again);
    assert_int_equal(g.reused_tokens, N_PROMPT - 1); /* one is evaluated for its logits */
    assert_memory_equal(first.ids, again.ids, sizeof first.ids);

    /* The next turn: all of the first one, plus more. The last token of the answer was never evaluated. */
    memcpy(longer, prompt, sizeof prompt);
    memcpy(longer + N_PROMPT, again.ids, 20 * sizeof(int32_t));
    memcpy(longer + N_PROMPT + 20, prompt + 1, 5 * sizeof(int32_t));
    Answer turn = asking(0.9f, 8, 20), fresh = asking(0.9f, 8, 20);
    g = generate(&t, longer, N_PROMPT + 25, &turn);
    assert_int_equal(g.reused_tokens, N_PROMPT + 19);
    close_both(&rt, &t);

    open_tiny(&rt, &t, 128, 0); /* streamed, nothing in the cache */
    assert_true(rt.plan.streamed_bytes > 0);
    g = generate(&t, longer, N_PROMPT + 25, &fresh);
    assert_int_equal(g.reused_tokens, 0);
    assert_memory_equal(turn.ids, fresh.ids, sizeof turn.ids);
    close_both(&rt, &t);
}

static void seeds_decide(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    open_tiny(&rt, &t, 128, UINT64_MAX);
    Answer a = asking(2, 1, 30), b = asking(2, 2, 30), c = asking(2, 0, 30), d = asking(2, 0, 30);
    generate(&t, prompt, N_PROMPT, &a);
    generate(&t, prompt, N_PROMPT, &b);
    assert_memory_not_equal(a.ids, b.ids, sizeof a.ids);
    c.params.seed_set = false;
    QsfGeneration g = generate(&t, prompt, N_PROMPT, &c);
    d.params.seed = g.seed; /* what was reported repeats it */
    generate(&t, prompt, N_PROMPT, &d);
    assert_memory_equal(c.ids, d.ids, sizeof c.ids);
    close_both(&rt, &t);
}

static void the_context_ends_it(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfErr err = { 0 };
    QsfGeneration out;
    int32_t many[MOST];
    open_tiny(&rt, &t, 128, UINT64_MAX);
    for (int i = 0; i < MOST; i++) many[i] = 260 + i % 40;
    Answer a = asking(1, 1, 0);
    QsfGeneration g = generate(&t, prompt, N_PROMPT, &a);
    assert_int_equal(g.stop, QSF_STOP_CONTEXT);
    assert_int_equal(g.tokens, 128 - N_PROMPT + 1);
    assert_int_equal(t.n_ids, 128);
    Answer b = asking(1, 1, 0);
    assert_int_equal(generate_stop(&t, many, 129, NULL, 0, &b, &out, &err), QSF_E_CONTEXT);
    assert_non_null(strstr(err.msg, "129"));
    assert_non_null(strstr(err.msg, "128"));
    assert_int_equal(b.n, 0);
    assert_int_equal(t.n_ids, 128); /* nothing was computed, nothing dropped */
    Answer c = asking(1, 1, 0);
    g = generate(&t, many, 128, &c); /* exactly full: one more token can still be sampled */
    assert_int_equal(g.stop, QSF_STOP_CONTEXT);
    assert_int_equal(g.tokens, 1);
    close_both(&rt, &t);
}

static void parameters_act_on_the_next_token(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    int32_t joined[MOST];
    open_tiny(&rt, &t, 128, UINT64_MAX);
    Answer a = asking(3, 5, 30), greedy = asking(0, 5, 20);
    a.colder_at = 10;
    generate(&t, prompt, N_PROMPT, &a);
    assert_int_equal(a.asked, 31); /* once for the seed, then per token */
    memcpy(joined, prompt, sizeof prompt);
    memcpy(joined + N_PROMPT, a.ids, 10 * sizeof(int32_t));
    generate(&t, joined, N_PROMPT + 10, &greedy);
    assert_memory_equal(a.ids + 10, greedy.ids, 20 * sizeof(int32_t));
    close_both(&rt, &t);
}

static void a_stopped_answer_stays_in_the_cache(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    int32_t joined[MOST];
    open_tiny(&rt, &t, 128, 0);
    Answer whole = asking(1, 3, 30), part = asking(1, 3, 30), rest = asking(0, 3, 5),
           refused = asking(1, 3, 30);
    generate(&t, prompt, N_PROMPT, &whole);
    part.cancel_at = 12;
    QsfGeneration g = generate(&t, prompt, N_PROMPT, &part);
    assert_int_equal(g.stop, QSF_STOP_INTERRUPTED);
    assert_int_equal(g.tokens, 12);
    assert_memory_equal(part.ids, whole.ids, 12 * sizeof(int32_t));
    memcpy(joined, prompt, sizeof prompt);
    memcpy(joined + N_PROMPT, part.ids, 12 * sizeof(int32_t));
    g = generate(&t, joined, N_PROMPT + 12, &rest);
    assert_int_equal(g.reused_tokens, N_PROMPT + 11);
    refused.refuse_at = 4;
    g = generate(&t, prompt, N_PROMPT, &refused);
    assert_int_equal(g.stop, QSF_STOP_INTERRUPTED);
    assert_int_equal(g.tokens, 4);
    close_both(&rt, &t);
}

static void cancelling_the_prefill_keeps_whole_chunks(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfErr err = { 0 };
    QsfGeneration out;
    open_tiny(&rt, &t, 128, UINT64_MAX);
    Answer a = asking(0, 1, 5), b = asking(0, 1, 5);
    QsfGenerate g = {
        .prompt = prompt, .n_prompt = N_PROMPT, .params = on_params, .text = on_text, .arg = &a
    };
    atomic_store(&cancel, 1);
    qsf_test_expect_ok(qsf_timeline_generate(&t, &g, &out, &err), &err);
    assert_int_equal(out.stop, QSF_STOP_INTERRUPTED);
    assert_int_equal(out.tokens, 0);
    assert_int_equal(t.n_ids, qsf_forward_n_past(rt.fwd));
    out = generate(&t, prompt, N_PROMPT, &b);
    assert_int_equal(out.tokens, 5);
    close_both(&rt, &t);
}

/* If a stop string is any piece of the answer, the answer ends before it. */
static void stop_strings_cross_tokens(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    open_tiny(&rt, &t, 128, UINT64_MAX);
    Answer whole = asking(1, 3, 40);
    generate(&t, prompt, N_PROMPT, &whole);
    unsigned tried = 0;
    for (size_t at = 1; at + 6 < whole.len; at++) {
        char word[8] = { 0 };
        const char *stop[] = { "never in it \x7f", word };
        size_t n = 3 + at % 4;
        memcpy(word, whole.text + at, n);
        QsfErr err = { 0 };
        QsfGeneration out;
        Answer cut = asking(1, 3, 40);
        int rc = generate_stop(&t, prompt, N_PROMPT, stop, 2, &cut, &out, &err);
        if (rc == QSF_E_USAGE) continue; /* the piece is not UTF-8 */
        qsf_test_expect_ok(rc, &err);
        assert_int_equal(out.stop, QSF_STOP_STRING);
        assert_int_equal(cut.len, (size_t)(strstr(whole.text, word) - whole.text));
        assert_memory_equal(cut.text, whole.text, cut.len);
        if (++tried == 20) break;
    }
    assert_true(tried > 0);
    close_both(&rt, &t);
}

/* ---- between two tokens ---- */

typedef struct Between {
    Answer answer;
    QsfTimeline *t;
    uint32_t calls, frozen, replans;
    uint32_t every; /* a new plan at each n-th call; 0 = none */
} Between;

static void between_params(void *arg, QSFParams *out) { on_params(&((Between *)arg)->answer, out); }
static int between_text(void *arg, int32_t id, const char *text, size_t len) {
    Between *b = arg;
    void *p;
    QsfErr err = { 0 };
    /* The token loop must not allocate memory. */
    int rc = qsf_mem_map(&b->t->rt->ledger, QSF_MEM_META, 4096, "a test", &p, &err);
    if (rc != QSF_OK)
        b->frozen++;
    else
        qsf_mem_unmap(&b->t->rt->ledger, QSF_MEM_META, p, 4096);
    return on_text(&b->answer, id, text, len);
}

static void on_between(void *arg) {
    Between *b = arg;
    QsfRuntime *rt = b->t->rt;
    QSFSettings s = rt->settings;
    QsfErr err = { 0 };
    char note[512];
    void *p;
    qsf_test_expect_ok(qsf_mem_map(&rt->ledger, QSF_MEM_META, 4096, "a test", &p, &err), &err);
    qsf_mem_unmap(&rt->ledger, QSF_MEM_META, p, 4096);
    if (b->every == 0 || ++b->calls % b->every != 0) return;
    s.pin = b->replans % 2 == 0 ? 0 : UINT64_MAX;
    s.threads = 1 + (int32_t)b->replans % 3;
    s.slots = 1 + b->replans % 4;
    qsf_test_expect_ok(qsf_runtime_replan(rt, &s, note, sizeof note, &err), &err);
    assert_true(rt->settings.pin == s.pin && rt->threads == s.threads);
    assert_true(rt->ledger.limit == rt->budget && rt->ledger.total <= rt->budget);
    b->replans++;
}

static Between run_between(QsfTimeline *t, uint32_t every) {
    Between b = { .answer = asking(0.9f, 7, 40), .t = t, .every = every };
    QsfGenerate g = { .prompt = prompt,
                      .n_prompt = N_PROMPT,
                      .continues = true,
                      .params = between_params,
                      .text = between_text,
                      .between = on_between,
                      .arg = &b };
    QsfGeneration out;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_timeline_generate(t, &g, &out, &err), &err);
    assert_int_equal(out.tokens, 40);
    return b;
}

static void plans_change_between_tokens(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfRuntimeOptions o = options(128, UINT64_MAX, 1);
    strcpy(o.settings.speculate, "off"); /* a pass then adds one token */
    open_at(&rt, &t, model_path, &o);
    Between calm = run_between(&t, 0), busy = run_between(&t, 3);
    assert_int_equal(busy.replans, 13);
    assert_memory_equal(calm.answer.ids, busy.answer.ids, sizeof calm.answer.ids);
    assert_int_equal(calm.frozen, 40);
    assert_int_equal(busy.frozen, 40);
    assert_int_equal(rt.ledger.frozen, 0);
    close_both(&rt, &t);
}

/* The context follows the budget, but never drops below the tokens in use. */
static void the_context_follows_the_budget(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfErr err = { 0 };
    char note[512];
    open_tiny(&rt, &t, 0, UINT64_MAX);
    uint32_t ctx = qsf_forward_ctx(rt.fwd);
    assert_int_equal(ctx, rt.plan.wanted_ctx);
    Answer whole = asking(0.9f, 7, 150), first = asking(0.9f, 7, 150), more = asking(0, 1, 1);
    generate(&t, prompt, N_PROMPT, &whole);
    QSFSettings s = rt.settings;
    s.ram_budget = 1u << 20;
    assert_int_equal(qsf_runtime_replan(&rt, &s, note, sizeof note, &err), QSF_E_BUDGET);
    assert_int_equal(qsf_forward_ctx(rt.fwd), ctx);
    const char *at = strstr(err.msg, "smallest budget that works: ");
    assert_non_null(at);
    s.ram_budget = strtoull(at + strlen("smallest budget that works: "), NULL, 10) << 20;
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_runtime_replan(&rt, &s, note, sizeof note, &err), &err);
    assert_true(qsf_forward_ctx(rt.fwd) >= t.n_ids + 1);
    s.ram_budget = 200u << 20;
    qsf_test_expect_ok(qsf_runtime_replan(&rt, &s, note, sizeof note, &err), &err);
    assert_int_equal(qsf_forward_ctx(rt.fwd), ctx);
    generate(&t, prompt, N_PROMPT, &first);
    assert_memory_equal(whole.ids, first.ids, sizeof whole.ids);
    QsfGeneration g = generate(&t, t.ids, t.n_ids, &more); /* the cache is still valid */
    assert_int_equal(g.reused_tokens, g.prompt_tokens - 1);
    close_both(&rt, &t);
}

/* Not enough memory: nothing changed, and the answer continues. */
static void a_failed_change_changes_nothing(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    char note[512];
    open_tiny(&rt, &t, 128, 0);
    Answer whole = asking(0.9f, 7, 20);
    generate(&t, prompt, N_PROMPT, &whole);
    uint64_t total = rt.ledger.total;
    unsigned failed = 0;
    for (uint64_t n = 1; n < 200; n++) {
        QSFSettings s = rt.settings;
        QsfErr err = { 0 };
        Answer again = asking(0.9f, 7, 20);
        s.pin = UINT64_MAX;
        s.threads = 2;
        qsf_mem_inject_failure(n);
        int rc = qsf_runtime_replan(&rt, &s, note, sizeof note, &err);
        qsf_mem_inject_failure(0);
        if (rc == QSF_OK) break;
        failed++;
        assert_int_equal(rc, QSF_E_RUNTIME);
        assert_true(rt.settings.pin == 0 && rt.threads == 1);
        assert_true(rt.ledger.limit == rt.budget && rt.ledger.total == total);
        generate(&t, prompt, N_PROMPT, &again);
        assert_memory_equal(whole.ids, again.ids, sizeof whole.ids);
    }
    assert_true(failed > 0 && rt.settings.pin == UINT64_MAX && rt.threads == 2);
    close_both(&rt, &t);
}

static void eos_ends_it_unless_ignored(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    open_tiny(&rt, &t, 256, UINT64_MAX);
    assert_true(rt.n_eog >= 1);
    for (uint64_t seed = 1;; seed++) {
        assert_true(seed < 50);
        Answer a = asking(5, seed, 100), b = asking(5, seed, 100);
        a.params.ignore_eos = false;
        QsfGeneration g = generate(&t, prompt, N_PROMPT, &a);
        if (g.stop != QSF_STOP_EOS) continue;
        for (uint32_t i = 0; i < a.n; i++) assert_false(qsf_tokenizer_is_eog(rt.tok, a.ids[i]));
        assert_int_equal(t.n_ids, N_PROMPT + a.n); /* the EOS itself is not kept */
        g = generate(&t, prompt, N_PROMPT, &b);
        assert_int_equal(g.stop, QSF_STOP_LENGTH);
        for (uint32_t i = 0; i < b.n; i++) assert_false(qsf_tokenizer_is_eog(rt.tok, b.ids[i]));
        break;
    }
    close_both(&rt, &t);
}

static void a_read_fault_is_an_error_and_can_be_tried_again(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfErr err = { 0 };
    QsfGeneration out;
    open_tiny(&rt, &t, 128, 0);
    Answer whole = asking(1, 3, 10), broken = asking(1, 3, 10), again = asking(1, 3, 10);
    generate(&t, prompt, N_PROMPT, &whole);
    const QsfTensor *down = qsf_source_find_tensor(rt.model.src, "blk.1.ffn_down.weight");
    qsf_file_inject_fault(down->offset + 8, 5);
    int rc = generate_stop(&t, prompt, N_PROMPT, NULL, 0, &broken, &out, &err);
    qsf_file_inject_fault(UINT64_MAX, 0);
    assert_int_equal(rc, QSF_E_RUNTIME);
    assert_non_null(strstr(err.msg, model_path));
    generate(&t, prompt, N_PROMPT, &again);
    assert_memory_equal(whole.ids, again.ids, sizeof whole.ids);
    close_both(&rt, &t);
}

static void the_real_model_answers(void **state) {
    (void)state;
    const char *found = qsf_test_data("models/stories260K.gguf");
    if (found == NULL) skip();
    char path[1024], want[1024] = "Once upon a time";
    snprintf(path, sizeof path, "%s", found);
    const char *text = qsf_test_data("models/stories260K.greedy.txt");
    if (text == NULL) skip();
    FILE *f = fopen(text, "rb");
    assert_non_null(f);
    size_t n = fread(want, 1, sizeof want - 1, f);
    want[n] = '\0';
    fclose(f);
    for (int way = 0; way < 3; way++) {
        QsfRuntime rt;
        QsfTimeline t;
        QsfErr err = { 0 };
        QsfIds ids = { 0 };
        QsfRuntimeOptions o = options(0, way == 2 ? 0 : UINT64_MAX, way == 1 ? 2 : 1);
        open_at(&rt, &t, path, &o);
        const char *start = "Once upon a time";
        qsf_test_expect_ok(qsf_tokenizer_encode(rt.tok, start, strlen(start), QSF_TOK_BOS, &ids, &err), &err);
        Answer a = asking(0, 1, 80);
        generate(&t, ids.data, ids.n, &a);
        assert_string_equal(a.text, want + strlen(start));
        qsf_ids_free(&ids);
        close_both(&rt, &t);
    }
}

static void expect_refusal(const char *path, const QsfRuntimeOptions *o, int code, const char *part) {
    QsfRuntime rt;
    QsfErr err = { 0 };
    assert_int_equal(qsf_runtime_open(&rt, path, o, &err), code);
    qsf_test_expect_err(&err, code, part);
    assert_null(rt.model.src);
    qsf_runtime_close(&rt);
}

static void refusals(void **state) {
    (void)state;
    QsfRuntimeOptions o = options(128, UINT64_MAX, 1);
    atomic_store(&cancel, 0);
    expect_refusal("/nonexistent/model.gguf", &o, QSF_E_MODEL, "/nonexistent/model.gguf");
    o.settings.ram_budget = 2u << 20;
    expect_refusal(model_path, &o, QSF_E_BUDGET, "smallest budget that works: ");
    o.settings.ram_budget = 200u << 20;
    setenv("QSF_CPU_MASK", "mmx", 1);
    expect_refusal(model_path, &o, QSF_E_USAGE, "QSF_CPU_MASK");
    snprintf(o.settings.cpu_mask, sizeof o.settings.cpu_mask, "%s",
             qk_cpu_has(QK_LEVEL_SSE42) ? "neon" : "avx2");
    expect_refusal(model_path, &o, QSF_E_RUNTIME, "cpu-mask");
    unsetenv("QSF_CPU_MASK");
    o.settings.cpu_mask[0] = '\0';
    atomic_store(&cancel, 1);
    expect_refusal(model_path, &o, QSF_E_INTERRUPTED, "cancelled");
    atomic_store(&cancel, 0);

    QsfGgufBuild b = { 0 };
    const char *vocab = qsf_test_tmp("vocab.gguf");
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_tiny_vocab(&b, 300);
    assert_int_equal(qsf_gb_write(&b, vocab), 0);
    qsf_gb_free(&b);
    QsfRuntime rt;
    QsfErr err = { 0 };
    assert_int_equal(qsf_runtime_open(&rt, vocab, &o, &err), QSF_E_MODEL);
    assert_non_null(strstr(err.msg, "it can only tokenize"));
    assert_null(strstr(err.msg, "open that file")); /* itself, or another file of the folder */
    qsf_err_clear(&err);
    o.text_only = true;
    qsf_test_expect_ok(qsf_runtime_open(&rt, vocab, &o, &err), &err);
    assert_int_equal(qsf_tokenizer_n_vocab(rt.tok), 300);
    qsf_runtime_close(&rt);
    unlink(vocab);
}

/* The level of the environment is used, and the smallest budget named by a refusal is accepted. */
static void the_named_budget_works(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfErr err = { 0 };
    QsfRuntimeOptions o = options(128, UINT64_MAX, 1);
    setenv("QSF_CPU_MASK", "ref", 1);
    o.settings.ram_budget = 1u << 20;
    assert_int_equal(qsf_runtime_open(&rt, model_path, &o, &err), QSF_E_BUDGET);
    const char *line = strstr(err.msg, "smallest budget that works: ");
    assert_non_null(line);
    o.settings.ram_budget = strtoull(line + strlen("smallest budget that works: "), NULL, 10) << 20;
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_runtime_open(&rt, model_path, &o, &err), &err);
    assert_int_equal(rt.table.level, QK_LEVEL_REF);
    QsfTimeline t;
    qsf_test_expect_ok(qsf_timeline_init(&t, &rt, &err), &err);
    assert_true(rt.ledger.total <= o.settings.ram_budget);
    close_both(&rt, &t);
    unsetenv("QSF_CPU_MASK");
}

static void model_facts(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    char summary[128];
    open_tiny(&rt, &t, 128, UINT64_MAX);
    qsf_model_summary(&rt.model, summary, sizeof summary);
    assert_memory_equal(summary, "llama ", 6);
    assert_non_null(strstr(summary, "K F32"));
    char *text = qsf_model_text(&rt.model);
    assert_non_null(text);
    assert_non_null(strstr(text, "layers          2\n"));
    assert_non_null(strstr(text, model_path));
    free(text);
    close_both(&rt, &t);
}

/* Measured on request; a new plan only recomputes the ratios. */
static void a_prediction_follows_the_plan(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    QsfErr err = { 0 };
    char note[512];
    QsfRuntimeOptions o = options(128, UINT64_MAX, 1);
    open_at(&rt, &t, model_path, &o);
    assert_true(rt.prediction.tps == 0);
    close_both(&rt, &t);
    o.predict = true;
    open_at(&rt, &t, model_path, &o);
    QsfPrediction p = rt.prediction;
    assert_true(p.compute_bps > 0 && p.tps > 0 && p.tps == p.compute_tps && p.disk_tps == 0);
    QSFSettings s = rt.settings;
    s.pin = 0;
    qsf_test_expect_ok(qsf_runtime_replan(&rt, &s, note, sizeof note, &err), &err);
    assert_true(rt.prediction.compute_bps == p.compute_bps);
    assert_true(rt.prediction.tps == 0); /* the disk was not measured then */
    close_both(&rt, &t);
    o.plan_only = true;
    qsf_test_expect_ok(qsf_runtime_open(&rt, model_path, &o, &err), &err);
    assert_true(rt.prediction.tps > 0 && rt.fwd == NULL);
    qsf_runtime_close(&rt);
}

static int setup(void **state) {
    static char path[256];
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(path, sizeof path, "%s", qsf_test_tmp("timeline.gguf"));
    model_path = path;
    return qsf_test_write_tiny_llama(path, NULL);
}

static int teardown(void **state) {
    (void)state;
    return unlink(model_path);
}

static uint32_t recorded;
static void record(void *arg, const QSFToken *token) {
    (void)arg;
    assert_true(token->n == QSF_CANDIDATES && token->p > 0);
    recorded++;
}

/* What the model says about each token is recorded without a change of them, whatever the filters. */
static void recording_changes_nothing(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfTimeline t;
    static const float heats[] = { 0, 0.7f, 1 }, tops[] = { 1, 0.9f };
    open_tiny(&rt, &t, 128, UINT64_MAX);
    for (int i = 0; i < 6; i++) {
        QsfGeneration out;
        QsfErr err = { 0 };
        Answer plain = asking(heats[i / 2], 7, 20), looked = asking(heats[i / 2], 7, 20);
        plain.params.top_p = looked.params.top_p = tops[i % 2];
        (void)generate(&t, prompt, N_PROMPT, &plain);
        QsfGenerate g = { .prompt = prompt, .n_prompt = N_PROMPT, .continues = true, .params = on_params };
        g.text = on_text;
        g.token = record;
        g.arg = &looked;
        recorded = 0;
        qsf_test_expect_ok(qsf_timeline_generate(&t, &g, &out, &err), &err);
        assert_int_equal(recorded, 20);
        assert_memory_equal(plain.ids, looked.ids, sizeof plain.ids);
        assert_int_equal(t.rt->ledger.refused_frozen, 0);
    }
    close_both(&rt, &t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prefix_is_reused_and_changes_nothing),
        cmocka_unit_test(limits_leave_nothing_behind),
        cmocka_unit_test(seeds_decide),
        cmocka_unit_test(recording_changes_nothing),
        cmocka_unit_test(the_context_ends_it),
        cmocka_unit_test(parameters_act_on_the_next_token),
        cmocka_unit_test(a_stopped_answer_stays_in_the_cache),
        cmocka_unit_test(cancelling_the_prefill_keeps_whole_chunks),
        cmocka_unit_test(stop_strings_cross_tokens),
        cmocka_unit_test(plans_change_between_tokens),
        cmocka_unit_test(the_context_follows_the_budget),
        cmocka_unit_test(a_failed_change_changes_nothing),
        cmocka_unit_test(eos_ends_it_unless_ignored),
        cmocka_unit_test(a_read_fault_is_an_error_and_can_be_tried_again),
        cmocka_unit_test(the_real_model_answers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(the_named_budget_works),
        cmocka_unit_test(model_facts),
        cmocka_unit_test(a_prediction_follows_the_plan),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
