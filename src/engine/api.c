/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: errors, configuration, opening and freeing engines, budget and statistics. The rest is in
 * api_generate.c. */
#include "src/engine/api_impl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/engine/runtime_replan.h"

#define THREADS_MAX 256
#define CTX_MAX     (1 << 24)
#define MIB         1048576.0

struct QSFConfig {
    QsfLive *live;        /* budget, threads and quality, shared with engines */
    QSFSettings settings; /* the rest */
    float quality;        /* as it was set, even if it is out of range */
};

/* The error of this thread's last call. */
static _Thread_local QsfErr last;

QsfErr *qsf_api_begin(void) {
    qsf_err_clear(&last);
    return &last;
}

const char *qsf_error(void) { return last.msg; }

/* ---- configuration ---- */

static void config_init(QSFConfig *c) {
    qsf_settings_default(&c->settings);
    c->quality = 1.0f;
}

QSFConfig *qsf_config_default(void) {
    QsfErr *err = qsf_api_begin();
    QSFConfig *c = calloc(1, sizeof *c);
    if (c != NULL) config_init(c);
    if (c != NULL) c->live = qsf_live_new(&c->settings);
    if (c != NULL && c->live != NULL) return c;
    free(c);
    qsf_err_memory(err, "the configuration");
    return NULL;
}

static uint64_t budget_bytes(size_t megabytes) {
    const size_t max = SIZE_MAX >> 24; /* in MB: sums of sizes cannot overflow */
    return (uint64_t)(megabytes < max ? megabytes : max) << 20;
}

static bool is_config(const QSFConfig *c) {
    QsfErr *err = qsf_api_begin();
    if (c == NULL) qsf_err_set(err, QSF_E_USAGE, "the configuration is NULL");
    return c != NULL;
}

void qsf_config_set_ram_budget(QSFConfig *c, size_t megabytes) {
    if (is_config(c)) qsf_live_set_budget(c->live, budget_bytes(megabytes));
}

void qsf_config_set_threads(QSFConfig *c, int n) {
    if (is_config(c)) qsf_live_set_threads(c->live, n <= 0 ? 0 : n < THREADS_MAX ? n : THREADS_MAX);
}

void qsf_config_set_max_seq_len(QSFConfig *c, int n) {
    if (is_config(c)) c->settings.ctx = n <= 0 ? 0 : n < CTX_MAX ? (uint32_t)n : (uint32_t)CTX_MAX;
}

int qsf_config_set_kv_types(QSFConfig *c, const char *k, const char *v) {
    char text[256];
    if (!is_config(c)) return QSF_E_USAGE;
    QSFSettings s = c->settings;
    int rc = qsf_setting_set(&s, qsf_setting_find("k-type"), k != NULL ? k : "auto", text, sizeof text);
    if (rc == 0)
        rc = qsf_setting_set(&s, qsf_setting_find("v-type"), v != NULL ? v : "auto", text, sizeof text);
    if (rc != 0) return qsf_err_set(qsf_api_begin(), QSF_E_USAGE, "%s", text);
    c->settings = s;
    return 0;
}

static int check_quality(float quality, QsfErr *err) {
    if (quality > 0 && quality <= 1) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "quality is %g, must be above 0 and at most 1", (double)quality);
}

void qsf_config_set_quality(QSFConfig *c, float quality) {
    if (!is_config(c)) return;
    c->quality = quality;
    if (check_quality(quality, qsf_api_begin()) == QSF_OK) qsf_live_set_quality(c->live, quality);
}

void qsf_config_free(QSFConfig *c) {
    if (c == NULL) return;
    qsf_live_release(c->live);
    free(c);
}

/* ---- engine ---- */

static int open_engine(QSFEngine *e, const char *path, const QSFConfig *c, QsfErr *err) {
    int rc = check_quality(c->quality, err);
    if (rc != QSF_OK) return rc;
    QsfRuntimeOptions o = { .settings = c->settings };
    qsf_follower_init(&e->follower, c->live, &o.settings);
    atomic_init(&e->quality, o.settings.params.quality);
    rc = qsf_runtime_open(&e->rt, path, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_timeline_init(&e->timeline, &e->rt, err);
    if (rc != QSF_OK) qsf_runtime_close(&e->rt);
    return rc;
}

/* Says once for a process that the default budget, which the caller did not choose, is why weights are read for every
 * token. */
static void say_default_budget(const QSFEngine *e) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const QsfRuntime *rt = &e->rt;
    if (e->follower.budget_seen > 0) return; /* set by the caller */
    const uint64_t need = qsf_plan_full_budget(&rt->model, &rt->plan_options, &rt->plan);
    if (need == 0 || atomic_flag_test_and_set(&said)) return;
    fprintf(
        stderr,
        "qsf: %.0f MB of weights stream from disk for each token; qsf_config_set_ram_budget(config, %llu) keeps them in RAM\n",
        (double)rt->plan.streamed_bytes / MIB, (unsigned long long)(need >> 20));
}

QSFEngine *qsf_load(const char *model_path, QSFConfig *config) {
    QsfErr *err = qsf_api_begin();
    QSFConfig c = { 0 };
    if (model_path == NULL) {
        qsf_err_set(err, QSF_E_USAGE, "the model path is missing");
        return NULL;
    }
    config_init(&c);
    if (config != NULL) c = *config;
    QSFEngine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        qsf_err_memory(err, "the engine");
        return NULL;
    }
    if (open_engine(e, model_path, &c, err) == QSF_OK) {
        say_default_budget(e);
        return e;
    }
    qsf_follower_end(&e->follower);
    free(e);
    return NULL;
}

static void destroy(QSFEngine *e) {
    qsf_timeline_free(&e->timeline);
    qsf_runtime_close(&e->rt);
    qsf_follower_end(&e->follower);
    free(e);
}

/* When called from a callback, the running call still needs the engine and destroys it at its end. */
void qsf_free(QSFEngine *e) {
    int use = QSF_USE_BUSY;
    if (e == NULL || atomic_compare_exchange_strong(&e->use, &use, QSF_USE_FREED)) return;
    if (use == QSF_USE_IDLE) destroy(e);
}

/* ---- one call at a time ---- */

int qsf_api_enter(QSFEngine *e, const char *function, QsfErr *err) {
    int use = QSF_USE_IDLE;
    if (e == NULL) return qsf_err_set(err, QSF_E_USAGE, "the engine is NULL");
    if (atomic_compare_exchange_strong(&e->use, &use, QSF_USE_BUSY)) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the engine is busy; do not call this from a callback",
                       function);
}

bool qsf_api_leave(QSFEngine *e) {
    int use = QSF_USE_BUSY;
    if (atomic_compare_exchange_strong(&e->use, &use, QSF_USE_IDLE)) return false;
    destroy(e);
    return true;
}

/* ---- live budget ---- */

void qsf_api_follow(QSFEngine *e) {
    QSFSettings s = e->rt.settings;
    char note[512];
    if (qsf_follower_update(&e->follower, &s)) qsf_runtime_replan(&e->rt, &s, note, sizeof note, NULL);
}

int qsf_set_ram_budget(QSFEngine *e, size_t megabytes) {
    QsfErr *err = qsf_api_begin();
    char note[512];
    int rc = qsf_api_enter(e, "qsf_set_ram_budget", err);
    if (rc != QSF_OK) return rc;
    QSFSettings s = e->rt.settings;
    s.ram_budget = budget_bytes(megabytes);
    s.ram_percent = 0;
    rc = qsf_runtime_replan(&e->rt, &s, note, sizeof note, err);
    qsf_api_leave(e);
    return rc;
}

float qsf_api_quality(QSFEngine *e) {
    float quality;
    if (qsf_follower_quality(&e->follower, &quality)) atomic_store(&e->quality, quality);
    return atomic_load(&e->quality);
}

int qsf_set_quality(QSFEngine *e, float quality) {
    QsfErr *err = qsf_api_begin();
    if (e == NULL) return qsf_err_set(err, QSF_E_USAGE, "the engine is NULL");
    int rc = check_quality(quality, err);
    if (rc == QSF_OK) atomic_store(&e->quality, quality);
    return rc;
}

float qsf_quality(const QSFEngine *e) { return e != NULL ? atomic_load(&e->quality) : 0; }

size_t qsf_ram_budget(const QSFEngine *e) { return e != NULL ? (size_t)(e->rt.budget >> 20) : 0; }

/* ---- statistics ---- */

static double rate(uint64_t n, uint64_t ns) { return ns > 0 ? (double)n * 1e9 / (double)ns : 0; }

void qsf_print_stats(QSFEngine *e) {
    QsfErr *err = qsf_api_begin();
    if (e == NULL) {
        qsf_err_set(err, QSF_E_USAGE, "the engine is NULL");
        return;
    }
    QsfLedger l;
    QsfForwardStats f;
    qsf_ledger_snapshot(&e->rt.ledger, &l);
    qsf_forward_stats(e->rt.fwd, &f);
    for (unsigned i = 0; i < QSF_MEM_N; i++)
        fprintf(stderr, "%-20s %10.2f MB\n", qsf_mem_cat_name((QsfMemCat)i), (double)l.used[i] / MIB);
    fprintf(stderr, "%-20s %10.2f MB of %.2f MB\n", "total", (double)l.total / MIB,
            (double)e->rt.budget / MIB);
    fprintf(stderr, "%-20s %10.2f MB, at most %.2f MB, with the budget in force %.2f MB\n", "resident",
            (double)qsf_rss_bytes() / MIB, (double)qsf_peak_rss_bytes() / MIB,
            (double)qsf_recent_peak_rss_bytes() / MIB);
    fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "prefill", rate(f.prefill_tokens, f.prefill_ns),
            (unsigned long long)f.prefill_tokens);
    fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "decode", rate(f.decode_tokens, f.decode_ns),
            (unsigned long long)f.decode_tokens);
    fprintf(stderr, "%-20s %10.2f MB, %.2f GB/s, %.0f ms waited\n", "read", (double)f.bytes_read / MIB,
            rate(f.bytes_read, f.read_ns) / 1e9, (double)f.wait_ns / 1e6);
}
