/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prompts within the RAM budget: implements prompt.h. */
#include "src/engine/prompt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/engine/request.h"

#define COUNTED \
    (64u << 10) /* bytes of a text that is tokenized all the same, so that its tokens can be told */

int qsf_prompt_too_long(const QsfRuntime *r, size_t n, bool more, QsfErr *err) {
    return qsf_err_set(
        err, QSF_E_CONTEXT,
        "%s: the prompt has %s%zu tokens, more than the context of %u: shorten it or set a larger %s",
        qsf_source_path(r->model.src), more ? "more than " : "", n, (unsigned)qsf_forward_ctx(r->fwd),
        qsf_option_name(QSF_OPTION_CTX, r->settings.commands));
}

int qsf_prompt_check(const QsfRuntime *r, const char *text, size_t len, QsfErr *err) {
    if (r->fwd == NULL || qsf_forward_evicts(r->fwd)) return QSF_OK;
    const uint32_t ctx = qsf_forward_ctx(r->fwd);
    const size_t least = len > COUNTED ? qsf_tokenizer_least(r->tok, text, len) : 0;
    return least > ctx ? qsf_prompt_too_long(r, least - 1, true, err) : QSF_OK;
}

/* Templates may drop white space around a message, and what a message with another role says. */
static int check_newest(const QsfRuntime *r, const QsfMsg *m, QsfErr *err) {
    const char *s = m->content, *end = s + m->len;
    if (strcmp(m->role, "user") != 0) return QSF_OK;
    while (r->tmpl != NULL && s < end && (unsigned char)*s <= ' ') s++;
    while (r->tmpl != NULL && s < end && (unsigned char)end[-1] <= ' ') end--;
    return qsf_prompt_check(r, s, (size_t)(end - s), err);
}

uint64_t qsf_prompt_need(const QsfRuntime *r, const char *text, size_t len) {
    QsfErr none = { 0 };
    QsfWords words = { 0 };
    const uint64_t copies = (uint64_t)len * QSF_REQUEST_BYTES;
    if (qsf_prompt_check(r, text, len, &none) != QSF_OK) return copies;
    qsf_words_feed(&words, text, len);
    return copies + qsf_tokenizer_need(r->tok, len, words.longest);
}

/* A plan that streams uses what there is, so the budget named may be the one that holds all weights. */
int qsf_prompt_advise(const QsfRuntime *r, uint64_t need, QsfErr *err) {
    char text[QSF_ERR_MSG_MAX];
    QsfPlanOptions next = r->plan_options;
    if (err == NULL || err->code != QSF_E_BUDGET) return err != NULL ? err->code : QSF_OK;
    next.keep_k = next.keep_v = false;
    const uint64_t least = qsf_plan_smallest_beside(&r->model, &next, need);
    snprintf(text, sizeof text, "%.*s\nsmallest budget that works: %" PRIu64 " MB", QSF_ERR_MSG_MAX - 64,
             err->msg, least >> 20);
    qsf_err_clear(err);
    return qsf_err_lines(err, QSF_E_BUDGET, text);
}

static uint64_t messages_need(const QsfRuntime *r, const QsfMsg *msgs, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += qsf_prompt_need(r, msgs[i].content, msgs[i].len);
        sum += (msgs[i].reasoning_len + msgs[i].exact_len) * (uint64_t)QSF_REQUEST_BYTES;
    }
    return sum;
}

static uint64_t text_bytes(const QsfMsg *msgs, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += msgs[i].len + msgs[i].reasoning_len + msgs[i].exact_len;
    return sum;
}

int qsf_prompt_encode(QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err) {
    const uint64_t bytes = text_bytes(msgs, n) * QSF_REQUEST_BYTES;
    int rc = n > 0 ? check_newest(r, &msgs[n - 1], err) : QSF_OK;
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the conversation", err);
    if (rc == QSF_OK) {
        ids->ledger = &r->ledger;
        rc = qsf_think_encode(&r->think, r->tmpl, r->tok, msgs, n, flags, ids, where, err);
        qsf_ledger_release(&r->ledger, QSF_MEM_TRANSCRIPT, bytes);
    }
    if (rc == QSF_E_BUDGET && r->fwd != NULL) qsf_prompt_advise(r, messages_need(r, msgs, n), err);
    return rc;
}
