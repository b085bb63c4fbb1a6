/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: argument checks and error texts around a runtime and its timeline. */
#include "qsf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/live.h"
#include "src/engine/timeline.h"
#include "src/sample/rng.h"

#define THREADS_MAX 256
#define CTX_MAX     (1 << 24)
#define MIB         1048576.0

struct QSFConfig {
    QsfLive *live;        /* budget and threads, shared with engines */
    QSFSettings settings; /* the rest */
    float quality;
};

struct QSFEngine {
    QsfRuntime rt;
    QsfTimeline timeline;
    QsfFollower follower;
    bool generating;
};

_Static_assert(sizeof(int) == sizeof(int32_t), "token ids of the public functions are int");

/* Of this thread's last call. */
static _Thread_local QsfErr last;

static QsfErr *begin(void) {
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
    QSFConfig *c = calloc(1, sizeof *c);
    if (c != NULL) config_init(c);
    if (c != NULL) c->live = qsf_live_new(&c->settings);
    if (c != NULL && c->live != NULL) return c;
    free(c);
    qsf_err_memory(begin(), "the configuration");
    return NULL;
}

static uint64_t budget_bytes(size_t megabytes) {
    const size_t most = SIZE_MAX >> 24; /* an exabyte: sums of sizes stay far from overflow */
    return (uint64_t)(megabytes < most ? megabytes : most) << 20;
}

void qsf_config_set_ram_budget(QSFConfig *c, size_t megabytes) {
    qsf_live_set_budget(c->live, budget_bytes(megabytes));
}

void qsf_config_set_threads(QSFConfig *c, int n) {
    qsf_live_set_threads(c->live, n <= 0 ? 0 : n < THREADS_MAX ? n : THREADS_MAX);
}

void qsf_config_set_max_seq_len(QSFConfig *c, int n) {
    c->settings.ctx = n <= 0 ? 0 : n < CTX_MAX ? (uint32_t)n : (uint32_t)CTX_MAX;
}

void qsf_config_set_quality(QSFConfig *c, float quality) { c->quality = quality; }

void qsf_config_free(QSFConfig *c) {
    if (c == NULL) return;
    qsf_live_release(c->live);
    free(c);
}

/* ---- engine ---- */

static int open_engine(QSFEngine *e, const char *path, const QSFConfig *c, QsfErr *err) {
    if (!(c->quality == 1.0f))
        return qsf_err_set(err, QSF_E_USAGE, "quality %.2f: 1.0 is the only quality there is yet",
                           (double)c->quality);
    QsfRuntimeOptions o = { .settings = c->settings };
    qsf_follower_init(&e->follower, c->live, &o.settings);
    int rc = qsf_runtime_open(&e->rt, path, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_timeline_init(&e->timeline, &e->rt, err);
    if (rc != QSF_OK) qsf_runtime_close(&e->rt);
    return rc;
}

QSFEngine *qsf_load(const char *model_path, QSFConfig *config) {
    QsfErr *err = begin();
    QSFConfig c = { 0 };
    if (model_path == NULL) {
        qsf_err_set(err, QSF_E_USAGE, "no model path was given");
        return NULL;
    }
    config_init(&c);
    if (config != NULL) c = *config;
    QSFEngine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        qsf_err_memory(err, "the engine");
        return NULL;
    }
    if (open_engine(e, model_path, &c, err) == QSF_OK) return e;
    qsf_follower_end(&e->follower);
    free(e);
    return NULL;
}

void qsf_free(QSFEngine *e) {
    if (e == NULL) return;
    qsf_timeline_free(&e->timeline);
    qsf_runtime_close(&e->rt);
    qsf_follower_end(&e->follower);
    free(e);
}

/* ---- the budget, live ---- */

/* Takes over what was set in the configuration meanwhile. What cannot be met is left alone: the old plan goes
 * on. */
static void follow(QSFEngine *e) {
    QSFSettings s = e->rt.settings;
    char note[512];
    if (qsf_follower_take(&e->follower, &s)) qsf_runtime_replan(&e->rt, &s, note, sizeof note, NULL);
}

int qsf_set_ram_budget(QSFEngine *e, size_t megabytes) {
    QsfErr *err = begin();
    char note[512];
    if (e == NULL) return qsf_err_set(err, QSF_E_USAGE, "engine is NULL");
    if (e->generating)
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "a callback cannot change its engine: use qsf_config_set_ram_budget");
    QSFSettings s = e->rt.settings;
    s.ram_budget = budget_bytes(megabytes);
    s.ram_percent = 0;
    return qsf_runtime_replan(&e->rt, &s, note, sizeof note, err);
}

size_t qsf_ram_budget(const QSFEngine *e) { return e != NULL ? (size_t)(e->rt.budget >> 20) : 0; }

/* ---- text ---- */

static int encode(QSFEngine *e, const char *text, QsfIds *ids, QsfErr *err) {
    if (e == NULL || text == NULL) return qsf_err_set(err, QSF_E_USAGE, "engine or text is NULL");
    return qsf_tokenizer_encode(e->rt.tok, text, strlen(text), QSF_TOK_BOS, ids, err);
}

int *qsf_tokenize(QSFEngine *e, const char *text, int *num_tokens) {
    QsfErr *err = begin();
    QsfIds ids = { 0 };
    if (num_tokens == NULL) {
        qsf_err_set(err, QSF_E_USAGE, "num_tokens is NULL");
        return NULL;
    }
    if (encode(e, text, &ids, err) != QSF_OK || ids.n > INT32_MAX) {
        qsf_err_set(err, QSF_E_RUNTIME, "the text has too many tokens");
        qsf_ids_free(&ids);
        return NULL;
    }
    int *out = malloc((ids.n + 1) * sizeof *out);
    if (out == NULL)
        qsf_err_memory(err, "%zu token ids", ids.n);
    else if (ids.n > 0)
        memcpy(out, ids.data, ids.n * sizeof *out);
    *num_tokens = out != NULL ? (int)ids.n : 0;
    qsf_ids_free(&ids);
    return out;
}

char *qsf_detokenize(QSFEngine *e, const int *tokens, int num_tokens) {
    QsfErr *err = begin();
    if (e == NULL || num_tokens < 0 || (tokens == NULL && num_tokens > 0)) {
        qsf_err_set(err, QSF_E_USAGE, "engine or tokens are NULL, or their number is negative");
        return NULL;
    }
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfDetok d;
    char *piece = e->timeline.piece;
    qsf_detok_init(&d, e->rt.tok, false, false);
    /* Behind a BOS a text still begins: so qsf_tokenize's ids give back its text. */
    int begins = num_tokens > 0 && tokens[0] >= 0 && tokens[0] == qsf_tokenizer_bos(e->rt.tok);
    for (int i = begins; i < num_tokens; i++)
        qsf_strbuf_add(&b, piece, qsf_detok_feed(&d, tokens[i], piece, QSF_TIMELINE_PIECE));
    qsf_strbuf_add(&b, piece, qsf_detok_flush(&d, piece, QSF_TIMELINE_PIECE));
    char *out = qsf_strbuf_take(&b, NULL);
    if (out == NULL) qsf_err_memory(err, "the text of %d tokens", num_tokens);
    return out;
}

/* ---- generation ---- */

typedef struct Call {
    QSFParams params;
    QSFTokenCallback callback;
    void *user_data;
    QSFEngine *engine;
} Call;

static void on_params(void *arg, QSFParams *out) { *out = ((const Call *)arg)->params; }

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    const Call *c = arg;
    (void)len; /* text is NUL-terminated */
    if (c->callback != NULL) c->callback(id, text, c->user_data);
    return 0;
}

static void on_between(void *arg) { follow(((const Call *)arg)->engine); }

static int check_sampling(float temperature, float top_p, QsfErr *err) {
    if (!(temperature >= 0 && isfinite(temperature)))
        return qsf_err_set(err, QSF_E_USAGE, "temperature %g: it must be 0 or more", (double)temperature);
    if (!(top_p > 0 && top_p <= 1))
        return qsf_err_set(err, QSF_E_USAGE, "top_p %g: it must be above 0 and at most 1", (double)top_p);
    return QSF_OK;
}

static QSFParams sampling(float temperature, float top_p) {
    return (QSFParams){ .temperature = temperature, .top_p = top_p, .repeat_penalty = 1 };
}

int qsf_generate(QSFEngine *e, const char *prompt, int max_tokens, float temperature, float top_p,
                 QSFTokenCallback callback, void *user_data) {
    QsfErr *err = begin();
    QsfIds ids = { 0 };
    if (max_tokens < 0)
        return qsf_err_set(err, QSF_E_USAGE, "max_tokens %d: it must not be negative", max_tokens);
    int rc = check_sampling(temperature, top_p, err);
    if (rc == QSF_OK) rc = encode(e, prompt, &ids, err);
    if (rc == QSF_OK && max_tokens > 0) {
        Call c = { sampling(temperature, top_p), callback, user_data, e };
        follow(e);
        c.params.max_tokens = max_tokens;
        QsfGenerate g = { .prompt = ids.data,
                          .n_prompt = ids.n,
                          .continues = true,
                          .params = on_params,
                          .text = on_text,
                          .between = on_between,
                          .arg = &c };
        QsfGenerated out;
        e->generating = true;
        rc = qsf_timeline_generate(&e->timeline, &g, &out, err);
        e->generating = false;
        if (rc == QSF_OK && out.stop == QSF_STOP_CONTEXT)
            rc = qsf_err_set(err, QSF_E_CONTEXT, "the context of %u tokens is full",
                             (unsigned)qsf_forward_ctx(e->rt.fwd));
    }
    qsf_ids_free(&ids);
    return rc;
}

float *qsf_forward(QSFEngine *e, const int *tokens, int num_tokens) {
    QsfErr *err = begin();
    if (e == NULL || tokens == NULL || num_tokens < 1) {
        qsf_err_set(err, QSF_E_USAGE, "engine or tokens are NULL, or there is no token");
        return NULL;
    }
    follow(e);
    if (qsf_timeline_prefill(&e->timeline, tokens, (size_t)num_tokens, NULL, err) != QSF_OK) return NULL;
    return qsf_forward_logits(e->rt.fwd);
}

int qsf_sample(const float *logits, int vocab_size, float temperature, float top_p) {
    static _Thread_local bool seeded;
    static _Thread_local QsfRng rng;
    QsfErr *err = begin();
    QsfLedger ledger;
    qk_table table;
    QsfSampler *s;
    QsfSampled out = { .id = -1 };
    if (logits == NULL || vocab_size < 1) {
        qsf_err_set(err, QSF_E_USAGE, "there are no logits to sample from");
        return -1;
    }
    if (check_sampling(temperature, top_p, err) != QSF_OK) return -1;
    if (!seeded) qsf_rng_seed(&rng, qsf_random_seed());
    seeded = true;
    qk_table_init(&table, qk_cpu_best());
    qsf_ledger_init(&ledger, 0);
    if (qsf_sampler_create(&s, (uint32_t)vocab_size, &table, &ledger, err) == QSF_OK) {
        QSFParams p = sampling(temperature, top_p);
        qsf_sampler_seed(s, qsf_rng_next(&rng));
        qsf_sampler_next(s, logits, &p, NULL, 0, NULL, 0, &out);
        qsf_sampler_destroy(s);
    }
    qsf_ledger_destroy(&ledger);
    return out.id;
}

/* ---- statistics ---- */

static double rate(uint64_t n, uint64_t ns) { return ns > 0 ? (double)n * 1e9 / (double)ns : 0; }

void qsf_print_stats(QSFEngine *e) {
    begin();
    if (e == NULL) return;
    QsfLedger l;
    QsfForwardStats f;
    qsf_ledger_snapshot(&e->rt.ledger, &l);
    qsf_forward_stats(e->rt.fwd, &f);
    for (unsigned i = 0; i < QSF_MEM_N; i++)
        fprintf(stderr, "%-20s %10.2f MB\n", qsf_mem_cat_name((QsfMemCat)i), (double)l.used[i] / MIB);
    fprintf(stderr, "%-20s %10.2f MB of %.2f MB\n", "in all", (double)l.total / MIB,
            (double)e->rt.budget / MIB);
    fprintf(stderr, "%-20s %10.2f MB, at most %.2f MB\n", "resident", (double)qsf_rss_bytes() / MIB,
            (double)qsf_peak_rss_bytes() / MIB);
    fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "prefill", rate(f.prefill_tokens, f.prefill_ns),
            (unsigned long long)f.prefill_tokens);
    fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "decode", rate(f.decode_tokens, f.decode_ns),
            (unsigned long long)f.decode_tokens);
    fprintf(stderr, "%-20s %10.2f MB, %.2f GB/s, %.0f ms waited\n", "read", (double)f.bytes_read / MIB,
            rate(f.bytes_read, f.read_ns) / 1e9, (double)f.wait_ns / 1e6);
}
