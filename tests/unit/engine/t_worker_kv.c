/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types of the KV cache that change while the background engine runs: in the middle of an answer, idle,
 * refused, and lowered by a plan. */
#include "tests/harness/qsf_test.h"

#include "qsf_cli.h"
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

/* Positions are converted in the middle of an answer: nothing is evaluated again. */
static void the_cache_is_converted_in_place(void **state) {
    (void)state;
    static QsfSeen seen;
    static const char *const types[][3] = { { "kv-type", "f32", "f32" }, { "k-type", "f16", "f16" },
                                            { "kv-type", "f16", "f16" }, { "kv-type", "q8", "q8" },
                                            { "kv-type", "q4", "q4" },   { "k-type", "q2", "q2" },
                                            { "kv-type", "q2", "q2" },   { "kv-type", "q8", "q8" },
                                            { "v-type", "f16", "q8" } };
    QSFSettings s = settings();
    QSFStats st;
    QSFWorker *w = qsf_rig_worker();
    s.ctx = LONG;
    qsf_rig_load(w, endless, &s);
    memset(&seen, 0, sizeof seen);
    uint64_t id = qsf_rig_submit(w, PROMPT);
    while (seen.text_events == 0) assert_true(qsf_rig_take(w, id, &seen));
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++) {
        set(&s, types[i][0], types[i][1]);
        qsf_worker_replan(w, &s);
        while (seen.plans <= i) assert_true(qsf_rig_take(w, id, &seen));
        if (seen.plan_code != 0) fail_msg("%s %s: %s", types[i][0], types[i][1], seen.plan_text);
        qsf_worker_stats(w, &st);
        assert_string_equal(st.k_type, types[i][2]);
        assert_non_null(strstr(st.kv_note, "as set"));
    }
    assert_string_equal(st.v_type, "f16");
    assert_non_null(strstr(seen.plan_text, "KV cache q8/f16"));
    qsf_rig_set_max(w, 1);
    while (qsf_rig_take(w, id, &seen)) {
    }
    assert_int_equal(seen.end.type, QSF_EVENT_DONE);
    assert_int_equal(seen.end.stop, QSF_STOP_LENGTH);
    qsf_worker_stats(w, &st);
    const uint32_t used = st.ctx_used;
    set(&s, "kv-type", "f32");
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    qsf_worker_stats(w, &st);
    assert_int_equal(st.ctx_used, used); /* the conversation stays */
    qsf_worker_stop(w);
}

/* A type that does not fit is refused, and nothing changes; a type that was chosen is lowered
 * only when nothing else helps. */
static void a_type_that_does_not_fit(void **state) {
    (void)state;
    QSFSettings s = settings(), now;
    QSFStats st;
    char err[600];
    s.ctx = 8192; /* the cache is most of what is needed */
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, big, &s);
    qsf_rig_set_max(w, 20);
    qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    set(&s, "kv-type", "f16");
    const uint64_t mb = least_mb(w, &s);
    s.ram_budget = (mb + 1) << 20;
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    set(&s, "kv-type", "f32");
    assert_int_equal(qsf_worker_check(w, &s, err, sizeof err), QSF_EXIT_BUDGET);
    qsf_worker_replan(w, &s);
    QsfSeen *seen = qsf_rig_plan(w);
    assert_int_equal(seen->plan_code, QSF_EXIT_BUDGET);
    assert_non_null(strstr(seen->plan_text, "use --kv-type q8"));
    qsf_worker_settings(w, &now);
    assert_string_equal(now.kv, "f16");
    qsf_worker_stats(w, &st);
    assert_string_equal(st.k_type, "f16");
    seen = qsf_rig_finish(w, qsf_rig_submit(w, PROMPT));
    assert_memory_equal(seen->text, whole, seen->len);
    /* auto: kept while it fits */
    set(&s, "kv-type", "auto");
    s.ram_budget = QSF_RIG_BUDGET;
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    s.ram_budget = (mb + 1) << 20;
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    qsf_worker_stats(w, &st);
    assert_string_equal(st.k_type, "f16");
    for (uint64_t b = mb; strcmp(st.k_type, "f16") == 0; b--) {
        s.ram_budget = b << 20;
        qsf_worker_replan(w, &s);
        seen = qsf_rig_plan(w);
        if (seen->plan_code != 0) fail_msg("%s", seen->plan_text);
        qsf_worker_stats(w, &st);
    }
    assert_string_equal(st.k_type, "q8");
    assert_non_null(strstr(seen->plan_text, "KV cache q8 instead of f16"));
    /* and never raised again for what is there */
    s.ram_budget = QSF_RIG_BUDGET;
    qsf_worker_replan(w, &s);
    assert_int_equal(qsf_rig_plan(w)->plan_code, 0);
    qsf_worker_stats(w, &st);
    assert_string_equal(st.k_type, "q8");
    qsf_worker_stop(w);
}

static int setup(void **state) {
    (void)state;
    unsetenv("QSF_CPU_MASK");
    snprintf(big, sizeof big, "%s", qsf_test_tmp("kv_big.gguf"));
    snprintf(endless, sizeof endless, "%s", qsf_test_tmp("kv_endless.gguf"));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_is_converted_in_place),
        cmocka_unit_test(a_type_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
