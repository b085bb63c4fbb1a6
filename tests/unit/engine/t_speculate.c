/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers with drafts are those without, in every respect but speed: whatever samples, holds or ends them.
 * The second answer to the same prompt finds the first one, so its drafts are right; text that repeats with
 * other ends makes them wrong. */
#include <unistd.h>

#include "tests/harness/qsf_test.h"

#include "src/engine/timeline.h"
#include "tests/harness/gguf_build.h"

enum { CTX = 160, TOKENS = 60, MOST = 256 };

typedef struct Answer {
    QSFParams params;
    char text[8192];
    size_t len;
    int32_t ids[MOST];
    uint32_t n, ticks;
    double entropy; /* of all tokens, as looked at */
    uint32_t cancel_at, refuse_at;
} Answer;

static atomic_int cancel;

static void on_params(void *arg, QSFParams *out) { *out = ((Answer *)arg)->params; }

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    Answer *a = arg;
    memcpy(a->text + a->len, text, len);
    a->len += len;
    if (id >= 0) a->ids[a->n++] = id;
    if (a->cancel_at > 0 && a->n == a->cancel_at) atomic_store(&cancel, 1);
    return a->refuse_at > 0 && a->n == a->refuse_at;
}

static void on_tick(void *arg, const QsfSample *s) {
    if (s != NULL) ((Answer *)arg)->ticks++;
}

static void on_token(void *arg, const QSFToken *t) { ((Answer *)arg)->entropy += (double)t->entropy; }

/* ---- what is varied ---- */

typedef int (*Writer)(const char *path);

static int write_llama(const char *path) {
    const QsfTinySpec spec = { 0 };
    return qsf_test_write_tiny_llama(path, &spec);
}
static int write_mamba(const char *path) { return qsf_test_write_tiny_mamba(path, 3); }
static int write_experts(const char *path) { return qsf_test_write_tiny_experts(path, 5); }

static int write_copies(const char *path) {
    const QsfTinyNextn k = { .announced = 1, .extra = 1, .copies = true };
    return qsf_test_write_tiny_nextn(path, &k);
}
static int write_blocks(const char *path) {
    const QsfTinyNextn k = { .announced = 2, .extra = 2 };
    return qsf_test_write_tiny_nextn(path, &k);
}

/* Layers that can be skipped. */
static int write_deep(const char *path) {
    const QsfTinySpec spec = { .layers = 6 };
    return qsf_test_write_tiny_llama(path, &spec);
}

static const Writer writers[] = { write_llama, write_mamba, write_experts };

typedef struct Way {
    uint64_t pin;
    int threads;
    const char *kv, *eviction;
    bool none; /* no drafts are possible */
} Way;

static const Way ways[] = {
    { UINT64_MAX, 1, "auto", "none", false }, { 0, 2, "q8", "none", false },
    { UINT64_MAX, 2, "q2", "none", false },   { UINT64_MAX, 1, "f16", "sliding", false },
    { 300000, 1, "f32", "none", false },      { UINT64_MAX, 1, "auto", "h2o", true },
};

typedef struct Kind {
    float temperature;
    float repeat, dry;
    int32_t mirostat;
    const char *regex, *stop;
} Kind;

static const Kind kinds[] = {
    { 0, 1, 0, 0, NULL, NULL },
    { 0.8f, 1, 0, 0, NULL, NULL },
    { 0.3f, 1.3f, 0.8f, 0, NULL, NULL },
    { 0.7f, 1, 0, 2, NULL, NULL },
    { 0.9f, 1, 0, 0, "([a-c]x|hello world )*", NULL },
    { 0, 1, 0, 0, "(ab){3}(cd)*", NULL },
    { 0.5f, 1, 0, 0, NULL, "a" },
};

static QSFParams params_of(const Kind *k) {
    QSFParams p = { .temperature = k->temperature,
                    .top_p = 1,
                    .repeat_penalty = k->repeat,
                    .repeat_last_n = 32,
                    .dry = k->dry,
                    .dry_base = 1.75f,
                    .dry_length = 2,
                    .mirostat = k->mirostat,
                    .mirostat_tau = 3,
                    .mirostat_eta = 0.1f,
                    .max_tokens = TOKENS,
                    .seed_set = true,
                    .seed = 11,
                    .ignore_eos = k->regex == NULL };
    if (k->regex != NULL) {
        p.grammar_kind = QSF_GRAMMAR_REGEX;
        snprintf(p.grammar, sizeof p.grammar, "%s", k->regex);
    }
    return p;
}

static const int32_t prompt[] = { 1,   270, 271, 280, 265, 290, 299, 277, 262, 261, 288, 295, 270, 271,
                                  280, 265, 271, 280, 265, 270, 271, 280, 266, 290, 299, 270, 271, 280 };
#define N_PROMPT (sizeof prompt / sizeof *prompt)

typedef struct Rig {
    QsfRuntime rt;
    QsfTimeline t;
} Rig;

/* draft: a model that drafts; NULL = none. */
static void open_rig(Rig *r, const char *path, const Way *w, const char *speculate, const char *draft) {
    QsfErr err = { 0 };
    QsfRuntimeOptions o = { .cancel = &cancel, .may_draft = true };
    qsf_settings_default(&o.settings);
    o.settings.ctx = CTX;
    o.settings.ram_budget = 1ull << 30; /* sanitizers take some of it */
    o.settings.pin = w->pin;
    o.settings.threads = w->threads;
    snprintf(o.settings.kv, sizeof o.settings.kv, "%s", w->kv);
    snprintf(o.settings.eviction, sizeof o.settings.eviction, "%s", w->eviction);
    snprintf(o.settings.speculate, sizeof o.settings.speculate, "%s", speculate);
    if (draft != NULL) snprintf(o.settings.draft_model, sizeof o.settings.draft_model, "%s", draft);
    qsf_test_expect_ok(qsf_runtime_open(&r->rt, path, &o, &err), &err);
    qsf_test_expect_ok(qsf_timeline_init(&r->t, &r->rt, &err), &err);
}

static void close_rig(Rig *r) {
    qsf_timeline_free(&r->t);
    qsf_runtime_close(&r->rt);
}

static QsfGeneration answer(Rig *r, const int32_t *ids, size_t n, const Kind *k, Answer *a) {
    QsfGeneration out;
    QsfErr err = { 0 };
    *a = (Answer){ .params = params_of(k) };
    const QsfGenerate g = { .prompt = ids,
                            .n_prompt = n,
                            .continues = true,
                            .stop = &k->stop,
                            .n_stop = k->stop != NULL,
                            .params = on_params,
                            .text = on_text,
                            .tick = on_tick,
                            .token = on_token,
                            .arg = a };
    qsf_test_expect_ok(qsf_timeline_generate(&r->t, &g, &out, &err), &err);
    assert_int_equal(r->rt.ledger.refused_frozen, 0);
    return out;
}

/* A question, the same again, and a second question after the answer; TOKENS more than once, so that
 * positions are evicted where there is a policy. */
typedef struct Talk {
    Answer a[4];
    QsfGeneration g[4];
    QSFSpeculation s[4];
    uint32_t n_ids[4];
} Talk;

static void talk(Rig *r, const Kind *k, Talk *out) {
    int32_t ids[N_PROMPT + MOST + 8];
    size_t n = N_PROMPT;
    memcpy(ids, prompt, sizeof prompt);
    for (unsigned i = 0; i < 4; i++) {
        if (i >= 2) {
            memcpy(ids + n, out->a[i - 1].ids, out->a[i - 1].n * sizeof *ids);
            n += out->a[i - 1].n;
            memcpy(ids + n, prompt + 1, 4 * sizeof *ids);
            n += 4;
        }
        if (n + 2 > CTX && !qsf_timeline_evicts(&r->t)) n = CTX - 2;
        out->g[i] = answer(r, ids, n, k, &out->a[i]);
        out->n_ids[i] = r->t.n_ids;
        qsf_speculate_info(&r->rt.speculator, &out->s[i]);
    }
}

static uint64_t accepted(const QSFSpeculation *s) { return s->tokens - s->passes; }

static void compare(const Talk *off, const Talk *on, bool none) {
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(on->a[i].n, off->a[i].n);
        assert_memory_equal(on->a[i].ids, off->a[i].ids, off->a[i].n * sizeof *off->a[i].ids);
        assert_int_equal(on->a[i].len, off->a[i].len);
        assert_memory_equal(on->a[i].text, off->a[i].text, off->a[i].len);
        assert_int_equal(on->a[i].ticks, off->a[i].ticks);
        assert_true(on->a[i].entropy == off->a[i].entropy); /* in the same order */
        assert_int_equal(on->g[i].stop, off->g[i].stop);
        assert_int_equal(on->g[i].tokens, off->g[i].tokens);
        assert_int_equal(on->g[i].grammar_cut, off->g[i].grammar_cut);
        assert_int_equal(on->g[i].evicted, off->g[i].evicted);
        assert_int_equal(on->g[i].reused_tokens, off->g[i].reused_tokens);
        assert_int_equal(on->n_ids[i], off->n_ids[i]);
        assert_int_equal(accepted(&off->s[i]), 0);
        if (none) assert_int_equal(accepted(&on->s[i]), 0);
    }
}

/* write_draft: of a draft model, NULL = none. */
static void check(Writer write, Writer write_draft, const Way *w, const Kind *k, const char *source) {
    const bool lookup = strcmp(source, "lookup") == 0;
    static Talk off, on;
    char path[512], draft[512];
    Rig r;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("speculate.gguf"));
    snprintf(draft, sizeof draft, "%s", qsf_test_tmp("speculate_draft.gguf"));
    assert_int_equal(write(path), 0);
    if (write_draft != NULL) assert_int_equal(write_draft(draft), 0);
    open_rig(&r, path, w, "off", NULL);
    assert_int_equal(r.rt.plan.draft_cols, 0);
    talk(&r, k, &off);
    close_rig(&r);
    open_rig(&r, path, w, source, write_draft != NULL ? draft : NULL);
    assert_int_equal(r.rt.plan.draft_cols, QSF_DRAFT_COLS);
    if (strcmp(source, "draft") == 0) assert_non_null(r.rt.draft);
    talk(&r, k, &on);
    close_rig(&r);
    compare(&off, &on, w->none);
    /* The drafts of the second answer are the first one. */
    if (lookup && !w->none && on.a[1].n > 30 && k->regex == NULL)
        assert_true(on.s[1].passes * 3 / 2 < on.s[1].tokens);
    /* A block that says what the model says is always right, and so is the model itself. */
    if ((write == write_copies || write == write_draft) && !w->none && k == &kinds[0])
        assert_true(on.s[0].passes * 3 / 2 < on.s[0].tokens);
    unlink(path);
    unlink(draft);
}

static void answers_are_the_same(void **state) {
    (void)state;
    for (size_t m = 0; m < sizeof writers / sizeof *writers; m++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                if (qsf_test_quick() && (m + w + k) % 3 != 0) continue;
                check(writers[m], NULL, &ways[w], &kinds[k], k % 4 != 3 ? "lookup" : "auto");
            }
}

/* An answer ends at any token, in the middle of a pass or not, and the conversation continues as after one
 * without drafts. */
static void ends_anywhere(Rig *r, const Kind *k, const Answer *whole, uint32_t at, unsigned how) {
    static Answer a, rest;
    QsfGeneration out;
    QsfErr err = { 0 };
    int32_t ids[N_PROMPT + MOST];
    a = (Answer){ .params = params_of(k), .cancel_at = how == 0 ? at : 0, .refuse_at = how == 1 ? at : 0 };
    if (how == 2) a.params.max_tokens = (int32_t)at;
    const QsfGenerate g = {
        .prompt = prompt, .n_prompt = N_PROMPT, .params = on_params, .text = on_text, .arg = &a
    };
    qsf_test_expect_ok(qsf_timeline_generate(&r->t, &g, &out, &err), &err);
    atomic_store(&cancel, 0);
    assert_int_equal(a.n, at);
    assert_memory_equal(a.ids, whole->ids, at * sizeof *a.ids);
    assert_int_equal(r->t.n_ids, N_PROMPT + at - 1); /* the last token is not evaluated */
    assert_int_equal(qsf_forward_n_past(r->rt.fwd), r->t.n_ids);
    memcpy(ids, prompt, sizeof prompt);
    memcpy(ids + N_PROMPT, a.ids, at * sizeof *ids);
    out = answer(r, ids, N_PROMPT + at, k, &rest);
    assert_int_equal(out.reused_tokens, N_PROMPT + at - 1);
    if (k->temperature <= 0) assert_memory_equal(rest.ids, whole->ids + at, (TOKENS - at) * sizeof *ids);
}

static void passes_end_anywhere(void **state) {
    static Answer whole;
    char path[512];
    Rig r;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("speculate_ends.gguf"));
    for (size_t m = 0; m < 2; m++) {
        assert_int_equal(writers[m](path), 0);
        open_rig(&r, path, &ways[0], "lookup", NULL);
        answer(&r, prompt, N_PROMPT, &kinds[0], &whole);
        for (uint32_t at = 1; at < TOKENS; at += 2) ends_anywhere(&r, &kinds[0], &whole, at, at / 2 % 3);
        close_rig(&r);
    }
    /* With drafts of the model itself, and of its layers. */
    for (size_t m = 0; m < 2; m++) {
        assert_int_equal(write_deep(path), 0);
        open_rig(&r, path, &ways[m], m == 0 ? "draft" : "pinned", m == 0 ? path : NULL);
        answer(&r, prompt, N_PROMPT, &kinds[0], &whole);
        for (uint32_t at = 1; at < TOKENS; at += 2) ends_anywhere(&r, &kinds[0], &whole, at, at / 2 % 3);
        close_rig(&r);
    }
    unlink(path);
}

static void blocks_draft(void **state) {
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (qsf_test_quick() && k > 0 && (w + k) % 3 != 0) continue;
            check((w + k) % 2 == 0 || k == 0 ? write_copies : write_blocks, NULL, &ways[w], &kinds[k],
                  "nextn");
        }
}

/* Of the model's architecture or another one, with its weights or others, and a shorter vocabulary. */
static int write_other(const char *path) {
    const QsfTinySpec spec = { .seed = 9, .vocab = 280, .ctx = 64 };
    return qsf_test_write_tiny_llama(path, &spec);
}

static void draft_models_draft(void **state) {
    static const Writer drafts[] = { write_llama, write_mamba, write_other };
    (void)state;
    for (size_t m = 0; m < sizeof writers / sizeof *writers; m++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                const Writer draft = k == 0 ? writers[m] : drafts[(m + w + k) % 3];
                if (qsf_test_quick() && k > 0 && (m + w + k) % 4 != 0) continue;
                check(writers[m], draft, &ways[w], &kinds[k], k % 3 != 2 || w == 1 ? "draft" : "auto");
            }
}

static void pinned_layers_draft(void **state) {
    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (qsf_test_quick() && (w + k) % 3 != 0) continue;
            check(write_deep, NULL, &ways[w], &kinds[k], "pinned");
        }
}

/* ---- other plans in the middle of an answer ---- */

/* What is in force after some tokens. */
typedef struct Change {
    const char *speculate;
    bool draft;
    uint64_t budget; /* MiB; sanitizers take hundreds */
    uint64_t pin;
    int32_t threads;
} Change;

static const Change changes[] = {
    { "draft", true, 2048, UINT64_MAX, 1 },  { "draft", true, 1800, 300000, 2 },
    { "pinned", true, 1800, UINT64_MAX, 2 }, { "auto", true, 2048, 0, 1 },
    { "draft", false, 2048, UINT64_MAX, 1 }, { "off", false, 1600, UINT64_MAX, 1 },
    { "draft", true, 2048, UINT64_MAX, 2 },  { "lookup", true, 2048, 200000, 2 },
};

typedef struct Changing {
    Answer a; /* first: the callbacks get it */
    Rig *r;
    const char *draft;
    unsigned done;
} Changing;

static void on_between(void *arg) {
    Changing *c = arg;
    QSFSettings s = c->r->rt.settings;
    char note[512];
    QsfErr err = { 0 };
    if (c->a.n < 7 * (c->done + 1) || c->done == sizeof changes / sizeof *changes) return;
    const Change *to = &changes[c->done++];
    s.ram_budget = to->budget << 20;
    s.pin = to->pin;
    s.threads = to->threads;
    snprintf(s.speculate, sizeof s.speculate, "%s", to->speculate);
    snprintf(s.draft_model, sizeof s.draft_model, "%s", to->draft ? c->draft : "");
    qsf_test_expect_ok(qsf_runtime_replan(&c->r->rt, &s, note, sizeof note, &err), &err);
    if (to->draft && strcmp(to->speculate, "draft") == 0) assert_non_null(c->r->rt.draft);
    if (!to->draft) assert_null(c->r->rt.draft);
    if (strcmp(to->speculate, "pinned") == 0) assert_true(c->r->rt.plan.holds);
}

static void answer_while_changing(Rig *r, const Kind *k, const char *draft, Changing *c) {
    QsfGeneration out;
    QsfErr err = { 0 };
    *c = (Changing){ .a = { .params = params_of(k) }, .r = r, .draft = draft };
    const QsfGenerate g = { .prompt = prompt,
                            .n_prompt = N_PROMPT,
                            .continues = true,
                            .params = on_params,
                            .text = on_text,
                            .between = draft != NULL ? on_between : NULL,
                            .arg = c };
    qsf_test_expect_ok(qsf_timeline_generate(&r->t, &g, &out, &err), &err);
}

static void plans_change_in_answers(void **state) {
    static const Writer drafts[] = { write_deep, write_mamba };
    static const Way way = { UINT64_MAX, 1, "f16", "none", false };
    static Changing off, on;
    char path[512], draft[512];
    Rig r;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("speculate.gguf"));
    snprintf(draft, sizeof draft, "%s", qsf_test_tmp("speculate_draft.gguf"));
    assert_int_equal(write_deep(path), 0);
    for (size_t i = 0; i < 4; i++) {
        const Kind *k = &kinds[i / 2];
        assert_int_equal(drafts[i % 2](draft), 0);
        open_rig(&r, path, &way, "off", NULL);
        answer_while_changing(&r, k, NULL, &off);
        close_rig(&r);
        open_rig(&r, path, &way, "off", NULL);
        answer_while_changing(&r, k, draft, &on);
        assert_int_equal(on.done, sizeof changes / sizeof *changes);
        close_rig(&r);
        assert_int_equal(on.a.n, off.a.n);
        assert_memory_equal(on.a.ids, off.a.ids, off.a.n * sizeof *off.a.ids);
    }
    unlink(path);
    unlink(draft);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_same), cmocka_unit_test(passes_end_anywhere),
        cmocka_unit_test(blocks_draft),         cmocka_unit_test(draft_models_draft),
        cmocka_unit_test(pinned_layers_draft),  cmocka_unit_test(plans_change_in_answers)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
