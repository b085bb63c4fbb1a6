/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: errors, configuration, engines, text and tokens, generation, logits, statistics, with
 * checks of the arguments. */
#include "qsf.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/interrupt.h"
#include "src/base/plural.h"
#include "src/engine/api_impl.h"
#include "src/engine/number.h"
#include "src/engine/prompt.h"
#include "src/engine/shared_config.h"
#include "src/engine/timeline.h"
#include "src/sample/rng.h"

_Static_assert(sizeof(int) == sizeof(int32_t), "token ids of the public functions are int");

#define THREADS_MAX 256
#define CTX_MAX     (1 << 24)
#define MIB         1048576.0

typedef enum QsfUse {
    QSF_USE_IDLE,
    QSF_USE_BUSY, /* a call that changes the engine is running */
    QSF_USE_FREED /* BUSY, and the engine is destroyed when that call returns */
} QsfUse;

struct QSFEngine {
    QsfRuntime rt;
    QsfTimeline timeline;
    QsfFollower follower;
    atomic_int use;        /* QsfUse */
    _Atomic float quality; /* of the next token */
    QSFLogitsCallback change;
    void *change_data;
    QsfApiGrammar grammar;
};

struct QSFConfig {
    QsfSharedConfig *shared; /* budget, threads and quality, shared with engines */
    QSFSettings settings;    /* the rest */
    float quality;           /* as it was set, even if it is out of range */
    QsfApiGrammar grammar;
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
    if (c != NULL) c->shared = qsf_shared_config_new(&c->settings);
    if (c != NULL && c->shared != NULL) return c;
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
    if (is_config(c)) qsf_shared_config_set_budget(c->shared, budget_bytes(megabytes));
}

void qsf_config_set_threads(QSFConfig *c, int n) {
    if (is_config(c))
        qsf_shared_config_set_threads(c->shared, n <= 0 ? 0 : n < THREADS_MAX ? n : THREADS_MAX);
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
    if (check_quality(quality, qsf_api_begin()) == QSF_OK) qsf_shared_config_set_quality(c->shared, quality);
}

int qsf_config_set_logit_bias(QSFConfig *c, int token_id, float bias) {
    char item[64], number[40], why[300] = "";
    if (!is_config(c)) return QSF_E_USAGE;
    const QSFSetting *row = qsf_setting_find("logit-bias");
    if (token_id < 0 || isnan(bias))
        return qsf_err_set(qsf_api_begin(), QSF_E_USAGE, "token %d with a bias of %g: an id is 0 or more",
                           token_id, (double)bias);
    snprintf(item, sizeof item, "#%d", token_id);
    if (bias == 0.0f) {
        (void)qsf_setting_remove(&c->settings, row, item);
        return QSF_OK;
    }
    qsf_number_print(bias, number, sizeof number);
    snprintf(item, sizeof item, "#%d=%s", token_id, bias == -INFINITY ? "-inf" : number);
    if (qsf_setting_add(&c->settings, row, item, why, sizeof why) == 0) return QSF_OK;
    return qsf_err_set(qsf_api_begin(), QSF_E_USAGE, "%s", why);
}

int qsf_config_set_grammar(QSFConfig *c, const char *kind, const char *text) {
    return is_config(c) ? qsf_api_grammar_set(&c->grammar, kind, text, qsf_api_begin()) : QSF_E_USAGE;
}

void qsf_config_free(QSFConfig *c) {
    if (c == NULL) return;
    qsf_api_grammar_free(&c->grammar);
    qsf_shared_config_release(c->shared);
    free(c);
}

/* ---- engine ---- */

static int open_engine(QSFEngine *e, const char *path, const QSFConfig *c, QsfErr *err) {
    int rc = check_quality(c->quality, err);
    if (rc == QSF_OK) rc = qsf_api_grammar_copy(&e->grammar, &c->grammar, err);
    if (rc != QSF_OK) return rc;
    QsfRuntimeOptions o = { .settings = c->settings };
    qsf_follower_init(&e->follower, c->shared, &o.settings);
    atomic_init(&e->quality, o.settings.params.quality);
    rc = qsf_runtime_open(&e->rt, path, &o, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_timeline_init(&e->timeline, &e->rt, err);
    if (rc != QSF_OK) qsf_runtime_close(&e->rt);
    return rc;
}

/* Says once for a process that the default budget, which the caller did not choose, is why
 * weights are read for every token. */
static void say_default_budget(const QSFEngine *e) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const QsfRuntime *rt = &e->rt;
    if (e->follower.budget_seen > 0) return; /* set by the caller */
    const uint64_t need = qsf_plan_full_budget(&rt->model, &rt->plan_options, &rt->plan);
    if (need == 0 || atomic_flag_test_and_set(&said)) return;
    fprintf(
        stderr,
        "qsf: %.1f MB of weights stream from disk for each token; qsf_config_set_ram_budget(config, %llu) "
        "keeps them in RAM\n",
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
    qsf_api_grammar_free(&e->grammar);
    free(e);
    return NULL;
}

static void destroy(QSFEngine *e) {
    qsf_timeline_free(&e->timeline);
    qsf_runtime_close(&e->rt);
    qsf_follower_end(&e->follower);
    qsf_api_grammar_free(&e->grammar);
    free(e);
}

/* When called from a callback, the running call still needs the engine and destroys it at its end. */
void qsf_free(QSFEngine *e) {
    int use = QSF_USE_BUSY;
    if (e == NULL || atomic_compare_exchange_strong(&e->use, &use, QSF_USE_FREED)) return;
    if (use == QSF_USE_IDLE) destroy(e);
}

/* ---- one call at a time ---- */

/* Begins a call that changes e. QSF_E_USAGE when e is NULL; QSF_E_RUNTIME, naming function, when such a call
 * is running already: this one comes from its callback or from another thread. */
static int api_enter(QSFEngine *e, const char *function, QsfErr *err) {
    int use = QSF_USE_IDLE;
    if (e == NULL) return qsf_err_set(err, QSF_E_USAGE, "the engine is NULL");
    if (atomic_compare_exchange_strong(&e->use, &use, QSF_USE_BUSY)) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the engine is busy; do not call this from a callback",
                       function);
}

/* Ends the call. true when qsf_free was called in between: e is destroyed. */
static bool api_leave(QSFEngine *e) {
    int use = QSF_USE_BUSY;
    if (atomic_compare_exchange_strong(&e->use, &use, QSF_USE_IDLE)) return false;
    destroy(e);
    return true;
}

/* ---- live budget ---- */

/* Applies what was set in the configuration since the last call; when it cannot be met, the
 * old plan stays. */
static void api_follow(QSFEngine *e) {
    QSFSettings s = e->rt.settings;
    char note[512];
    if (qsf_follower_update(&e->follower, &s)) qsf_runtime_replan(&e->rt, &s, note, sizeof note, NULL);
}

int qsf_set_ram_budget(QSFEngine *e, size_t megabytes) {
    QsfErr *err = qsf_api_begin();
    char note[512];
    int rc = api_enter(e, "qsf_set_ram_budget", err);
    if (rc != QSF_OK) return rc;
    QSFSettings s = e->rt.settings;
    s.ram_budget = budget_bytes(megabytes);
    s.ram_percent = 0;
    rc = qsf_runtime_replan(&e->rt, &s, note, sizeof note, err);
    api_leave(e);
    return rc;
}

/* Returns the quality of the next token, which may have been set in the configuration since the last one. */
static float api_quality(QSFEngine *e) {
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

int qsf_set_logits_callback(QSFEngine *e, QSFLogitsCallback callback, void *user_data) {
    QsfErr *err = qsf_api_begin();
    int rc = api_enter(e, "qsf_set_logits_callback", err);
    if (rc != QSF_OK) return rc;
    e->change = callback;
    e->change_data = user_data;
    api_leave(e);
    return QSF_OK;
}

int qsf_set_grammar(QSFEngine *e, const char *kind, const char *text) {
    QsfErr *err = qsf_api_begin();
    int rc = api_enter(e, "qsf_set_grammar", err);
    if (rc != QSF_OK) return rc;
    const QsfMemoryLimit before = qsf_memory_limit_begin(e->rt.budget);
    rc = qsf_api_grammar_set(&e->grammar, kind, text, err);
    rc = qsf_memory_limit_end(&before, rc, "the grammar", "the RAM budget", err);
    api_leave(e);
    return rc;
}

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
    fprintf(stderr, "%-20s %10s for K, %s for V\n", "KV cache types", qk_kv_name(e->rt.plan.kv.k),
            qk_kv_name(e->rt.plan.kv.v));
    fprintf(stderr, "%-20s %10.2f MB, at most %.2f MB, with the budget in force %.2f MB\n", "resident",
            (double)qsf_rss_bytes() / MIB, (double)qsf_peak_rss_bytes() / MIB,
            (double)qsf_recent_peak_rss_bytes() / MIB);
    qsf_plural_fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "prefill",
                       rate(f.prefill_tokens, f.prefill_ns), (unsigned long long)f.prefill_tokens);
    qsf_plural_fprintf(stderr, "%-20s %10.2f tok/s (%llu tokens)\n", "decode",
                       rate(f.decode_tokens, f.decode_ns), (unsigned long long)f.decode_tokens);
    fprintf(stderr, "%-20s %10.2f MB, %.2f GB/s, %.0f ms waited\n", "read", (double)f.bytes_read / MIB,
            rate(f.bytes_read, f.read_ns) / 1e9, (double)f.wait_ns / 1e6);
}

/* ---- text ---- */

static int encode(QSFEngine *e, const char *text, QsfIds *ids, QsfErr *err) {
    if (e == NULL || text == NULL) return qsf_err_set(err, QSF_E_USAGE, "the engine or the text is NULL");
    return qsf_tokenizer_encode(e->rt.tok, text, strlen(text), QSF_TOK_BOS, ids, err);
}

int *qsf_tokenize(QSFEngine *e, const char *text, int *num_tokens) {
    QsfErr *err = qsf_api_begin();
    QsfIds ids = { 0 };
    if (num_tokens == NULL) {
        qsf_err_set(err, QSF_E_USAGE, "num_tokens is NULL");
        return NULL;
    }
    *num_tokens = 0;
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
    QsfErr *err = qsf_api_begin();
    if (e == NULL || num_tokens < 0 || (tokens == NULL && num_tokens > 0)) {
        qsf_err_set(err, QSF_E_USAGE, "the engine or tokens is NULL, or num_tokens is negative");
        return NULL;
    }
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfDetok d;
    char *piece = malloc(QSF_TIMELINE_PIECE); /* t->piece holds the text that a callback is reading */
    if (piece == NULL) {
        qsf_err_memory(err, "the text of %d tokens", num_tokens);
        return NULL;
    }
    qsf_detok_init(&d, e->rt.tok, false, false);
    qsf_detok_clean(&d, false);
    /* A BOS does not count as text, so that the ids of qsf_tokenize give back the original text. */
    int begins = num_tokens > 0 && tokens[0] >= 0 && tokens[0] == qsf_tokenizer_bos(e->rt.tok);
    for (int i = begins; i < num_tokens; i++)
        qsf_strbuf_add(&b, piece, qsf_detok_feed(&d, tokens[i], piece, QSF_TIMELINE_PIECE));
    qsf_strbuf_add(&b, piece, qsf_detok_flush(&d, piece, QSF_TIMELINE_PIECE));
    free(piece);
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

static void on_params(void *arg, QSFParams *out) {
    const Call *c = arg;
    *out = c->params;
    out->quality = api_quality(c->engine);
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    const Call *c = arg;
    (void)len; /* text is NUL-terminated */
    if (c->callback != NULL) c->callback(id, text, c->user_data);
    return atomic_load(&c->engine->use) == QSF_USE_FREED;
}

static void on_logits(void *arg, float *logits, uint32_t n) {
    const QSFEngine *e = ((const Call *)arg)->engine;
    e->change(logits, (int)n, e->change_data);
}

static void on_between(void *arg) { api_follow(((const Call *)arg)->engine); }

static int generate(Call *c, const QsfIds *prompt, QsfErr *err) {
    QSFEngine *e = c->engine;
    QsfGrammarText grammar;
    QsfGenerate g = { .prompt = prompt->data,
                      .n_prompt = prompt->n,
                      .continues = true,
                      .params = on_params,
                      .text = on_text,
                      .between = on_between,
                      .change = e->change != NULL ? on_logits : NULL,
                      .grammar = &grammar,
                      .arg = c };
    QsfGeneration out;
    int rc = api_enter(e, "qsf_generate", err);
    if (rc != QSF_OK) return rc;
    memcpy(c->params.logit_bias, e->rt.settings.params.logit_bias, sizeof c->params.logit_bias);
    grammar = (QsfGrammarText){ e->grammar.kind, e->grammar.text, e->grammar.len };
    api_follow(e);
    rc = qsf_timeline_generate(&e->timeline, &g, &out, err);
    if (rc == QSF_OK && out.stop == QSF_STOP_CONTEXT)
        rc = qsf_err_set(err, QSF_E_CONTEXT, "the context of %u tokens is full",
                         (unsigned)qsf_forward_ctx(e->rt.fwd));
    if (rc == QSF_OK && out.grammar_cut)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "the answer was cut before its grammar was complete");
    if (api_leave(e) && rc == QSF_OK)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "generation stopped: the callback freed the engine");
    return rc;
}

int qsf_generate(QSFEngine *e, const char *prompt, int max_tokens, float temperature, float top_p,
                 QSFTokenCallback callback, void *user_data) {
    QsfErr err = { 0 };
    QsfIds ids = { 0 };
    Call c = { qsf_api_sampling(temperature, top_p), callback, user_data, e };
    c.params.max_tokens = max_tokens;
    int rc = qsf_api_check_sampling(temperature, top_p, &err);
    if (rc == QSF_OK && max_tokens < 0)
        rc = qsf_err_set(&err, QSF_E_USAGE, "max_tokens is %d, must not be negative", max_tokens);
    if (rc == QSF_OK && e != NULL && prompt != NULL)
        rc = qsf_prompt_check(&e->rt, prompt, strlen(prompt), &err);
    if (rc == QSF_OK) rc = encode(e, prompt, &ids, &err);
    if (rc == QSF_OK && max_tokens > 0) rc = generate(&c, &ids, &err);
    qsf_ids_free(&ids);
    *qsf_api_begin() = err;
    return rc;
}

float *qsf_forward(QSFEngine *e, const int *tokens, int num_tokens) {
    QsfErr *err = qsf_api_begin();
    if (tokens == NULL || num_tokens < 1) {
        qsf_err_set(err, QSF_E_USAGE, "tokens is NULL or empty");
        return NULL;
    }
    if (api_enter(e, "qsf_forward", err) != QSF_OK) return NULL;
    api_follow(e);
    int rc = qsf_timeline_prefill(&e->timeline, tokens, (size_t)num_tokens, NULL, err);
    float *logits = rc == QSF_OK ? qsf_forward_logits(e->rt.fwd) : NULL;
    api_leave(e);
    return logits;
}
