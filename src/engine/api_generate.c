/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf.h: text and tokens, generation, logits and sampling, with checks of the arguments. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/api_impl.h"
#include "src/engine/prompt.h"
#include "src/sample/rng.h"

_Static_assert(sizeof(int) == sizeof(int32_t), "token ids of the public functions are int");

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
    out->quality = qsf_api_quality(c->engine);
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    const Call *c = arg;
    (void)len; /* text is NUL-terminated */
    if (c->callback != NULL) c->callback(id, text, c->user_data);
    return atomic_load(&c->engine->use) == QSF_USE_FREED;
}

static void on_between(void *arg) { qsf_api_follow(((const Call *)arg)->engine); }

static int check_sampling(float temperature, float top_p, QsfErr *err) {
    if (!(temperature >= 0 && isfinite(temperature)))
        return qsf_err_set(err, QSF_E_USAGE, "temperature is %g, must be 0 or more", (double)temperature);
    if (!(top_p > 0 && top_p <= 1))
        return qsf_err_set(err, QSF_E_USAGE, "top_p is %g, must be above 0 and at most 1", (double)top_p);
    return QSF_OK;
}

static QSFParams sampling(float temperature, float top_p) {
    return (QSFParams){ .temperature = temperature, .top_p = top_p, .repeat_penalty = 1 };
}

static int generate(Call *c, const QsfIds *prompt, QsfErr *err) {
    QSFEngine *e = c->engine;
    QsfGenerate g = { .prompt = prompt->data,
                      .n_prompt = prompt->n,
                      .continues = true,
                      .params = on_params,
                      .text = on_text,
                      .between = on_between,
                      .arg = c };
    QsfGeneration out;
    int rc = qsf_api_enter(e, "qsf_generate", err);
    if (rc != QSF_OK) return rc;
    qsf_api_follow(e);
    rc = qsf_timeline_generate(&e->timeline, &g, &out, err);
    if (rc == QSF_OK && out.stop == QSF_STOP_CONTEXT)
        rc = qsf_err_set(err, QSF_E_CONTEXT, "the context of %u tokens is full",
                         (unsigned)qsf_forward_ctx(e->rt.fwd));
    if (qsf_api_leave(e) && rc == QSF_OK)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "generation stopped: the callback freed the engine");
    return rc;
}

int qsf_generate(QSFEngine *e, const char *prompt, int max_tokens, float temperature, float top_p,
                 QSFTokenCallback callback, void *user_data) {
    QsfErr err = { 0 };
    QsfIds ids = { 0 };
    Call c = { sampling(temperature, top_p), callback, user_data, e };
    c.params.max_tokens = max_tokens;
    int rc = check_sampling(temperature, top_p, &err);
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
    if (qsf_api_enter(e, "qsf_forward", err) != QSF_OK) return NULL;
    qsf_api_follow(e);
    int rc = qsf_timeline_prefill(&e->timeline, tokens, (size_t)num_tokens, NULL, err);
    float *logits = rc == QSF_OK ? qsf_forward_logits(e->rt.fwd) : NULL;
    qsf_api_leave(e);
    return logits;
}

/* ---- sampling ---- */

/* Can a token be sampled: is there a logit that is neither NaN nor -infinity? */
static bool any_choice(const float *logits, int n) {
    for (int i = 0; i < n; i++)
        if (logits[i] > -INFINITY) return true;
    return false;
}

int qsf_sample(const float *logits, int vocab_size, float temperature, float top_p) {
    static _Thread_local bool seeded;
    static _Thread_local QsfRng rng;
    QsfErr *err = qsf_api_begin();
    QsfLedger ledger;
    qk_table table;
    QsfSampler *s;
    QsfSample out = { .id = -1 };
    if (logits == NULL || vocab_size < 1) {
        qsf_err_set(err, QSF_E_USAGE, "logits is NULL or empty");
        return -1;
    }
    if (check_sampling(temperature, top_p, err) != QSF_OK) return -1;
    if (!any_choice(logits, vocab_size)) {
        qsf_err_set(err, QSF_E_USAGE, "cannot sample: all %d logits are NaN or -infinity", vocab_size);
        return -1;
    }
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
