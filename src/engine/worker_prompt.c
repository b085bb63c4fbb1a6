/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The owner's use of tokenizer and template: prompts as readable text, names of templates. The engine thread
 * waits for it only when it replaces a model or a template. */
#include <stdio.h>
#include <stdlib.h>

#include "src/engine/worker_impl.h"

#define BYTES_PER_TEXT_BYTE 8u          /* rendered text, ids, and the text made of them */
#define BUSY_MAX            (96u << 10) /* bytes of messages that fit into the slack of every plan */

void qsf_worker_lend_text(QSFWorker *w, bool ready) {
    pthread_mutex_lock(&w->text_lock);
    w->text_ready = ready;
    pthread_mutex_unlock(&w->text_lock);
}

/* out: the prompt as text; NULL: only count it. */
typedef struct Prompt {
    QsfStrbuf *out;
    size_t tokens;
} Prompt;

static int make(QSFWorker *w, const QsfRequestCopy *r, Prompt *p, QsfErr *err) {
    QsfIds ids = { 0 };
    size_t special = 0;
    QsfThinkPrompt where;
    int rc = qsf_think_encode(&w->rt.think, w->rt.tmpl, w->rt.tok, r->messages, r->n_messages,
                              qsf_worker_chat_flags(w, r), &ids, &where, err);
    if (rc == QSF_OK && p->out != NULL) {
        rc = qsf_chat_show(w->rt.tok, &ids, p->out, &special, err);
        qsf_strbuf_addf(p->out,
                        "\n%zu tokens, %zu of them special (between " QSF_CHAT_MARK_OPEN
                        " and " QSF_CHAT_MARK_CLOSE ")\n",
                        ids.n, special);
    }
    p->tokens = ids.n;
    qsf_ids_free(&ids);
    return rc;
}

/* While an answer is generated nothing may be charged, so long conversations are rejected. */
static int charge_and_make(QSFWorker *w, const QsfRequestCopy *r, Prompt *p, QsfErr *err) {
    uint64_t bytes = (uint64_t)r->text_bytes * BYTES_PER_TEXT_BYTE;
    if (!w->text_ready) return qsf_err_set(err, QSF_E_MODEL, "no model is loaded: /model FILE opens one");
    if (atomic_load(&w->busy)) {
        if (r->text_bytes <= BUSY_MAX) return make(w, r, p, err);
        return qsf_err_set(err, QSF_E_BUDGET,
                           "the conversation is too long to be shown while an answer is generated");
    }
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the prompt", err);
    if (rc != QSF_OK) return rc;
    rc = make(w, r, p, err);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
    return rc;
}

static int prompt(QSFWorker *w, const QSFRequest *r, Prompt *p, QsfErr *err) {
    QsfRequestCopy *copy = qsf_request_copy(r);
    if (copy == NULL) return qsf_err_memory(err, "the prompt as text");
    pthread_mutex_lock(&w->text_lock);
    int rc = charge_and_make(w, copy, p, err);
    pthread_mutex_unlock(&w->text_lock);
    free(copy);
    return rc;
}

char *qsf_worker_prompt(QSFWorker *w, const QSFRequest *r, char *err, size_t cap) {
    QsfErr e = { 0 };
    QsfStrbuf out = QSF_STRBUF_INIT;
    Prompt p = { .out = &out };
    if (err == NULL) cap = 0;
    if (w == NULL || !qsf_request_ok(r)) {
        snprintf(err, cap, "the worker, the request or a string in it is NULL");
        return NULL;
    }
    int rc = prompt(w, r, &p, &e);
    char *text = rc == QSF_OK ? qsf_strbuf_take(&out, NULL) : NULL;
    if (text == NULL) snprintf(err, cap, "%s", rc == QSF_OK ? "out of memory" : e.msg);
    qsf_strbuf_free(&out);
    return text;
}

int64_t qsf_worker_count(QSFWorker *w, const QSFRequest *r) {
    QsfErr e = { 0 };
    Prompt p = { 0 };
    if (w == NULL || !qsf_request_ok(r)) return -1;
    return prompt(w, r, &p, &e) == QSF_OK ? (int64_t)p.tokens : -1;
}

char *qsf_worker_templates(QSFWorker *w) {
    if (w == NULL) return NULL;
    pthread_mutex_lock(&w->text_lock);
    char *names = w->text_ready ? qsf_chat_template_variants(w->rt.model.src) : calloc(1, 1);
    pthread_mutex_unlock(&w->text_lock);
    return names;
}
