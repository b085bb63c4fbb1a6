/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The background engine keeps which experts were used: what it writes and when, that the next start uses it,
 * and that no answer depends on it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/engine/habits/file.h"
#include "src/engine/stats.h"
#include "src/plan/layout.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"
#include "tests/harness/worker_rig.h"

enum { ALL = 2 * QSF_TINY_EXPERTS, SLOTS = 6 };

static char model[512], home[512], folder[700];
static QSFSettings settings; /* SLOTS experts in memory */

static int open_home(void **state) {
    const QsfRigOptions o = { .path = model };
    QsfRig r;
    QsfErr err = { 0 };
    QsfShape s;
    (void)state;
    snprintf(model, sizeof model, "%s", qsf_test_tmp("learn.gguf"));
    snprintf(home, sizeof home, "%s", qsf_test_tmp("learn-state"));
    snprintf(folder, sizeof folder, "%s/qsf/experts", home);
    setenv("XDG_STATE_HOME", home, 1);
    assert_int_equal(qsf_test_write_tiny_experts(model, 5), 0);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&s, &r.model, &r.table);
    qsf_rig_close(&r);
    settings = qsf_rig_settings();
    settings.pin = s.weight_bytes - s.expert_bytes + SLOTS * (s.expert_bytes / ALL);
    settings.params.max_tokens = 70;
    strcpy(settings.speculate, "off"); /* passes of one token are counted */
    return 0;
}

/* The one file of the folder; "" if there is none. */
static const char *found(void) {
    static char path[1000];
    DIR *d = opendir(folder);
    path[0] = '\0';
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') snprintf(path, sizeof path, "%s/%.200s", folder, e->d_name);
    if (d != NULL) closedir(d);
    return path;
}

static int close_home(void **state) {
    char path[600];
    (void)state;
    unlink(found());
    rmdir(folder);
    snprintf(path, sizeof path, "%s/qsf", home);
    rmdir(path);
    rmdir(home);
    unlink(model);
    return 0;
}

static QSFWorker *loaded(const QSFSettings *s) {
    QSFWorker *w = qsf_rig_worker();
    qsf_rig_load(w, model, s);
    return w;
}

static const char *answer(QSFWorker *w) {
    static char text[65536];
    const QsfSeen *s = qsf_rig_finish(w, qsf_rig_submit(w, "tell me"));
    assert_int_equal(s->end.type, QSF_EVENT_DONE);
    memcpy(text, s->text, s->len);
    text[s->len] = '\0';
    return text;
}

static void none_asked_for(void **state) {
    QSFSettings s = settings;
    (void)state;
    s.no_learn = true;
    QSFWorker *w = loaded(&s);
    (void)answer(w);
    qsf_worker_stop(w);
    assert_string_equal(found(), "");
}

/* Everything fits: there is nothing to learn. */
static void none_needed(void **state) {
    QSFExpertBudget b[QSF_EXPERT_BUDGETS];
    QSFStats stats;
    QSFSettings s = settings;
    (void)state;
    s.pin = UINT64_MAX;
    QSFWorker *w = loaded(&s);
    (void)answer(w);
    qsf_worker_stats(w, &stats);
    assert_int_equal(stats.expert.resident, ALL);
    assert_int_equal(stats.expert.slots, 0);
    assert_int_equal(stats.expert.misses, 0);
    /* No budget in MB has slots for a part of so small a model. */
    assert_int_equal(qsf_worker_expert_budgets(w, b, QSF_EXPERT_BUDGETS), 0);
    qsf_worker_stop(w);
    assert_string_equal(found(), "");
}

static void kept_and_used(void **state) {
    char first[65536];
    QSFStats before, after;
    QSFExpertBudget b[QSF_EXPERT_BUDGETS];
    (void)state;
    QSFWorker *w = loaded(&settings);
    qsf_worker_stats(w, &before);
    assert_int_equal(before.expert.n, ALL);
    assert_int_equal(qsf_worker_expert_budgets(w, b, QSF_EXPERT_BUDGETS), 0); /* nothing is known */
    snprintf(first, sizeof first, "%s", answer(w));
    qsf_worker_stop(w);
    assert_true(*found() != '\0');
    w = loaded(&settings);
    qsf_worker_stats(w, &after);
    assert_true(after.expert.expected_hits != before.expert.expected_hits);
    assert_true(qsf_worker_expert_budgets(w, b, QSF_EXPERT_BUDGETS) > 0); /* at once */
    assert_string_equal(answer(w), first);
    qsf_worker_stop(w);
}

/* What the file holds decides what is read into free slots. */
static void hottest_first(void **state) {
    static const uint32_t hot[] = { 7, 6, 15, 14, 5, 13 };
    uint32_t uses[ALL] = { 0 };
    QsfErr err = { 0 };
    QsfLedger ledger;
    QsfHabits h;
    QSFStats s;
    QSFLayerStats layer[8];
    (void)state;
    const uint64_t id = strtoull(strrchr(found(), '/') + 1, NULL, 16);
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_habits_init(&h, ALL, &ledger, &err), &err);
    uses[hot[0]] = uses[hot[1]] = uses[hot[4]] = 50; /* three of the first block */
    uses[hot[2]] = 40;                               /* one of the second, and no other */
    qsf_habits_add(&h, uses, 100, NULL);
    qsf_test_expect_ok(qsf_habits_write(&h, found(), id, &err), &err);
    qsf_habits_free(&h);
    QSFWorker *w = loaded(&settings);
    do qsf_worker_stats(w, &s); /* free slots are filled while nothing else is to be done */
    while (s.expert.resident < SLOTS);
    assert_int_equal(qsf_worker_layers(w, layer, 8), 3);
    assert_int_equal(layer[0].experts, QSF_TINY_EXPERTS);
    assert_int_equal(layer[0].experts_in, 4); /* the three, and the first id of all */
    assert_int_equal(layer[1].experts_in, 2);
    assert_int_equal(layer[2].experts, 0);
    qsf_worker_stop(w);
}

static void forgotten(void **state) {
    char err[200] = "";
    (void)state;
    QSFWorker *w = loaded(&settings);
    (void)answer(w);
    assert_int_equal(qsf_worker_forget_experts(w, err, sizeof err), 0);
    assert_string_equal(found(), "");
    qsf_worker_stop(w); /* what was counted before is forgotten, too */
    assert_string_equal(found(), "");
    w = qsf_rig_worker();
    assert_int_equal(qsf_worker_forget_experts(w, err, sizeof err), 3);
    assert_non_null(strstr(err, "no model"));
    qsf_worker_stop(w);
    assert_true(qsf_worker_forget_experts(NULL, err, sizeof err) != 0);
}

/* Nothing can be written: one notice, and the answers are as before. */
static void read_only(void **state) {
    char first[65536];
    QSFEvent e;
    (void)state;
    rmdir(folder);
    int fd = open(folder, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* in place of the folder, also for root */
    assert_true(fd >= 0);
    close(fd);
    QSFWorker *w = loaded(&settings);
    snprintf(first, sizeof first, "%s", answer(w));
    qsf_rig_wait(w, &e);
    assert_int_equal(e.type, QSF_EVENT_NOTICE);
    assert_non_null(strstr(e.text, "the usage of experts is not kept"));
    assert_string_equal(answer(w), first);
    assert_true(*answer(w) != '\0'); /* another notice would come before it */
    qsf_worker_stop(w);
    unlink(folder);
}

static double token_ms(QsfLiveStats *b) {
    QsfForwardStats s;
    QsfExpertFacts f;
    assert_true(qsf_live_stats_experts(b, &s, &f));
    return f.token_ns / 1e6;
}

/* The time of a token, from which the speed with other budgets is estimated, is that of tokens under the plan
 * in force, without the time in which its weights were pinned. */
static void time_of_a_token(void **state) {
    enum { PINNING_MS = 100 };
    const QsfRuntimeOptions o = { .settings = settings };
    const QsfSample token = { 0 };
    QsfErr err = { 0 };
    QsfRuntime rt;
    QsfLiveStats b;
    (void)state;
    qsf_test_expect_ok(qsf_runtime_open(&rt, model, &o, &err), &err);
    qsf_live_stats_init(&b, &settings);
    qsf_live_stats_model(&b, &rt, model, &settings);
    qsf_live_stats_prefill(&b, 4, 0, 10);
    for (uint32_t i = 0; i < 2; i++) qsf_live_stats_token(&b, &token, 4 + i, 10);
    assert_true(token_ms(&b) > 0);
    qsf_live_stats_plan(&b, 6);
    usleep(PINNING_MS * 1000);
    const uint64_t pinned = qsf_now_ns();
    qsf_live_stats_token(&b, &token, 7, 10);
    assert_true(token_ms(&b) == 0);
    qsf_live_stats_token(&b, &token, 8, 10);
    const double most = (double)(qsf_now_ns() - pinned) / 1e6;
    assert_true(token_ms(&b) > 0 && token_ms(&b) <= most);
    qsf_live_stats_model(&b, NULL, NULL, &settings);
    qsf_live_stats_free(&b);
    qsf_runtime_close(&rt);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_asked_for),  cmocka_unit_test(none_needed), cmocka_unit_test(kept_and_used),
        cmocka_unit_test(hottest_first),   cmocka_unit_test(forgotten),   cmocka_unit_test(read_only),
        cmocka_unit_test(time_of_a_token),
    };
    return cmocka_run_group_tests(tests, open_home, close_home);
}
