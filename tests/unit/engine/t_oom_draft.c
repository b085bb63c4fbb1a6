/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory failures while a draft model or pinned layers draft, and while plans change that: the answer is the
 * same (tests/harness/oom.h). */
#include "tests/harness/oom.h"

#include "src/base/clock.h"
#include "src/engine/timeline.h"
#include "tests/harness/gguf_build.h"

#if OWN_MALLOC

enum { TOKENS = 12, CTX = 96 };

static char model[256], right[256], mamba[256];

typedef struct Run {
    QsfRuntime rt;
    QsfTimeline t;
    QSFSettings settings;
    Outcome *o;
    bool open;
} Run;

static void set(Run *r, const char *speculate, const char *draft, int threads) {
    snprintf(r->settings.speculate, sizeof r->settings.speculate, "%s", speculate);
    snprintf(r->settings.draft_model, sizeof r->settings.draft_model, "%s", draft);
    r->settings.threads = threads;
}

static int open_step(Run *r, QsfErr *err) {
    const QsfRuntimeOptions o = { .settings = r->settings };
    int rc = qsf_runtime_open(&r->rt, model, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_timeline_init(&r->t, &r->rt, err);
    r->open = rc == QSF_OK;
    if (rc != QSF_OK) qsf_runtime_close(&r->rt);
    return rc;
}

static void on_params(void *arg, QSFParams *out) {
    (void)arg;
    *out = (QSFParams){ .top_p = 1, .repeat_penalty = 1, .max_tokens = TOKENS, .ignore_eos = true };
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    Run *r = arg;
    char number[16];
    (void)text, (void)len;
    snprintf(number, sizeof number, "%d ", (int)id);
    if (id >= 0) add_text(r->o, number);
    return 0;
}

static int answer_step(Run *r, QsfErr *err) {
    static const int32_t prompt[] = { 1, 270, 271, 280, 265, 290 };
    const size_t had = strlen(r->o->text);
    QsfGeneration out;
    const QsfGenerate g = { .prompt = prompt,
                            .n_prompt = sizeof prompt / sizeof *prompt,
                            .continues = true,
                            .params = on_params,
                            .text = on_text,
                            .arg = r };
    int rc = qsf_timeline_generate(&r->t, &g, &out, err);
    if (rc != QSF_OK) r->o->text[had] = '\0';
    return rc;
}

static int replan_step(Run *r, QsfErr *err) {
    char note[512];
    return qsf_runtime_replan(&r->rt, &r->settings, note, sizeof note, err);
}

/* Runs a step, and repeats it if it fails: memory fails only once. */
static bool twice(Run *r, int number, int (*step)(Run *, QsfErr *)) {
    for (int i = 0; i < 2; i++) {
        QsfErr err = { 0 };
        if (step(r, &err) == QSF_OK) return true;
        failed_step(r->o, number, err.msg);
        if (r->open && r->rt.lost) return false; /* the model would be reopened */
    }
    return false;
}

static void run(Outcome *o) {
    static Run r;
    static const struct {
        const char *speculate, *draft;
        int threads;
    } plans[] = { { "draft", right, 1 }, { "draft", mamba, 2 }, { "pinned", "", 1 }, { "auto", right, 1 } };
    r = (Run){ .o = o };
    qsf_settings_default(&r.settings);
    r.settings.ctx = CTX;
    r.settings.ram_budget = qsf_rss_bytes() + (1ull << 30); /* an emulator grows with each run */
    snprintf(r.settings.kv, sizeof r.settings.kv, "f16");
    set(&r, plans[0].speculate, plans[0].draft, plans[0].threads);
    bool ok = twice(&r, 1, open_step) && twice(&r, 2, answer_step);
    for (int i = 1; ok && i < 4; i++) {
        set(&r, plans[i].speculate, plans[i].draft, plans[i].threads);
        ok = twice(&r, 1 + 2 * i, replan_step) && twice(&r, 2 + 2 * i, answer_step);
    }
    if (!r.open) return;
    qsf_timeline_free(&r.t);
    qsf_runtime_close(&r.rt);
}

static void test_drafts(void **state) {
    const QsfTinySpec deep = { .layers = 5, .hidden = 32, .heads = 2, .kv_heads = 1, .ffn = 32 },
                      same = { .layers = 5, .hidden = 32, .heads = 2, .kv_heads = 1, .ffn = 32, .wtype = 1 };
    (void)state;
    (void)snprintf(model, sizeof model, "%s", qsf_test_tmp("oom.gguf"));
    (void)snprintf(right, sizeof right, "%s", qsf_test_tmp("oom-right.gguf"));
    (void)snprintf(mamba, sizeof mamba, "%s", qsf_test_tmp("oom-mamba.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(model, &deep), 0);
    assert_int_equal(qsf_test_write_tiny_llama(right, &same), 0);
    assert_int_equal(qsf_test_write_tiny_mamba(mamba, 3), 0);
    find_libc();
    sweep(run, ALLOCATION, 15, 5000);
    sweep(run, MAPPING, 5, 3000);
    unlink(model);
    unlink(right);
    unlink(mamba);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_drafts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
