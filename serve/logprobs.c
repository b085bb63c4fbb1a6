/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The probabilities of tokens as OpenAI's interface has them. */
#include <math.h>

#include "serve/answer.h"
#include "src/base/json.h"

#define ROWS  16u
#define PIECE 256u   /* bytes of a token that are shown */
#define NEVER -9999. /* for a probability of 0, as in OpenAI's interface */

static double logprob(float p) { return p > 0 ? log((double)p) : NEVER; }

/* {"token": ..., "logprob": ..., "bytes": [...] and without the end: members may follow. */
static void put_token(QSFWorker *w, QsfStrbuf *b, int32_t id, float p) {
    char text[PIECE];
    size_t n = qsf_worker_token_text(w, id, text, sizeof text, NULL);
    if (n > sizeof text) n = sizeof text;
    qsf_strbuf_adds(b, "{\"token\": ");
    qsf_json_put_string(b, text, n);
    qsf_strbuf_addf(b, ", \"logprob\": %.6f, \"bytes\": [", logprob(p));
    for (size_t i = 0; i < n; i++)
        qsf_strbuf_addf(b, "%s%u", i > 0 ? ", " : "", (unsigned)(unsigned char)text[i]);
    qsf_strbuf_adds(b, "]");
}

static void put_chat(ServeAnswer *a, const QSFToken *t) {
    QsfStrbuf *b = &a->job->logprobs[0];
    const uint32_t top = a->job->request.top_logprobs;
    put_token(a->server->worker, b, t->id, t->p);
    qsf_strbuf_adds(b, ", \"top_logprobs\": [");
    for (uint32_t i = 0; i < t->n && i < top; i++) {
        if (i > 0) qsf_strbuf_adds(b, ", ");
        put_token(a->server->worker, b, t->top[i].id, t->top[i].p);
        qsf_strbuf_adds(b, "}");
    }
    qsf_strbuf_adds(b, "]}, ");
}

static void put_name(QSFWorker *w, QsfStrbuf *b, int32_t id) {
    char text[PIECE];
    size_t n = qsf_worker_token_text(w, id, text, sizeof text, NULL);
    qsf_json_put_string(b, text, n < sizeof text ? n : sizeof text);
}

/* The four arrays of completions. */
static void put_text(ServeAnswer *a, const QSFToken *t) {
    QsfStrbuf *b = a->job->logprobs;
    const uint32_t top = a->job->request.top_logprobs;
    put_name(a->server->worker, &b[0], t->id);
    qsf_strbuf_adds(&b[0], ", ");
    qsf_strbuf_addf(&b[1], "%.6f, ", logprob(t->p));
    qsf_strbuf_adds(&b[2], "{");
    for (uint32_t i = 0; i < t->n && i < top; i++) {
        if (i > 0) qsf_strbuf_adds(&b[2], ", ");
        put_name(a->server->worker, &b[2], t->top[i].id);
        qsf_strbuf_addf(&b[2], ": %.6f", logprob(t->top[i].p));
    }
    qsf_strbuf_adds(&b[2], "}, ");
    qsf_strbuf_addf(&b[3], "%u, ", a->text_begin + a->text_end);
}

/* The first token of a text has no probability. */
static void put_first(ServeAnswer *a, const QSFToken *t) {
    QsfStrbuf *b = a->job->logprobs;
    bool special;
    const size_t len = qsf_worker_token_text(a->server->worker, t->id, NULL, 0, &special);
    put_name(a->server->worker, &b[0], t->id);
    qsf_strbuf_adds(&b[0], ", ");
    qsf_strbuf_adds(&b[1], "null, ");
    qsf_strbuf_adds(&b[2], "null, ");
    qsf_strbuf_adds(&b[3], "0, ");
    a->text_begin = special ? 0 : (uint32_t)len;
}

void serve_logprobs_scored(void *arg, const QSFToken *t) {
    ServeAnswer *a = arg;
    pthread_mutex_lock(&a->server->lock);
    if (a->job->error.status == 0) {
        if (t->p < 0)
            put_first(a, t);
        else
            put_text(a, t);
        a->text_end = t->text_end;
        (void)serve_job_charge_or_fail(a->job); /* the answer sees the error */
    }
    pthread_mutex_unlock(&a->server->lock);
}

/* Is it a token of the answer: not of its reasoning, and not the one that ended it? */
static bool is_shown(const ServeAnswer *a, const QSFToken *t) {
    bool special = false;
    (void)qsf_worker_token_text(a->server->worker, t->id, NULL, 0, &special);
    if (t->text_end > a->text_end) return true;
    return !special && t->reasoning_end == 0;
}

void serve_logprobs_add(ServeAnswer *a) {
    QSFToken rows[ROWS];
    QSFTokens known;
    uint32_t n;
    if (!a->job->request.logprobs || a->scoring) return;
    qsf_worker_tokens(a->server->worker, &known);
    if (known.request != a->id) return; /* still those of another answer */
    while ((n = qsf_worker_token_rows(a->server->worker, a->row, rows, ROWS)) > 0) {
        pthread_mutex_lock(&a->server->lock);
        for (uint32_t i = 0; i < n; i++) {
            const bool chat = a->job->request.chat;
            if (a->job->error.status == 0 && is_shown(a, &rows[i]))
                chat ? put_chat(a, &rows[i]) : put_text(a, &rows[i]);
            a->text_end = rows[i].text_end;
            a->reasoning_end = rows[i].reasoning_end;
        }
        a->row += n;
        (void)serve_job_charge_or_fail(a->job);
        pthread_mutex_unlock(&a->server->lock);
    }
}
