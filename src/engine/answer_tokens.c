/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of the last answer. */
#include "src/engine/answer_tokens.h"

#include <string.h>

#define NAME "tokens of the last answer"
#define PAGE 4096u

static uint64_t ids_bytes(void) { return QSF_TOKENS_KNOWN * sizeof(int32_t); }

uint64_t qsf_answer_tokens_bytes(void) {
    return (ids_bytes() + QSF_TOKENS_ROWS * sizeof(QSFToken) + PAGE - 1) / PAGE * PAGE;
}

void qsf_answer_tokens_init(QsfAnswerTokens *a) {
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
}

void qsf_answer_tokens_destroy(QsfAnswerTokens *a) { pthread_mutex_destroy(&a->lock); }

int qsf_answer_tokens_open(QsfAnswerTokens *a, QsfLedger *ledger, QsfErr *err) {
    void *mem;
    int rc = qsf_mem_map(ledger, QSF_MEM_TRANSCRIPT, qsf_answer_tokens_bytes(), NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    pthread_mutex_lock(&a->lock);
    a->rows = mem; /* first: their alignment is the larger one */
    a->ids = (int32_t *)(void *)(a->rows + QSF_TOKENS_ROWS);
    pthread_mutex_unlock(&a->lock);
    return QSF_OK;
}

void qsf_answer_tokens_close(QsfAnswerTokens *a, QsfLedger *ledger) {
    pthread_mutex_lock(&a->lock);
    void *mem = a->rows;
    a->rows = NULL;
    a->ids = NULL;
    a->info = (QSFTokens){ 0 };
    pthread_mutex_unlock(&a->lock);
    if (mem != NULL) qsf_mem_unmap(ledger, QSF_MEM_TRANSCRIPT, mem, qsf_answer_tokens_bytes());
}

static QSFToken *row(const QsfAnswerTokens *a, uint32_t i) { return &a->rows[i % QSF_TOKENS_ROWS]; }

void qsf_answer_tokens_begin(QsfAnswerTokens *a, uint64_t request, uint32_t n, bool more) {
    pthread_mutex_lock(&a->lock);
    if (n > a->info.n) n = a->info.n;
    if (n == 0 || n < a->info.first) a->info.first = n;
    const bool known = more && n > a->info.first;
    a->text = known ? row(a, n - 1)->text_end : 0;
    a->reasoning = known ? row(a, n - 1)->reasoning_end : 0;
    a->info.request = a->rows != NULL ? request : 0;
    a->info.n = n;
    a->ended = false;
    pthread_mutex_unlock(&a->lock);
}

void qsf_answer_tokens_add(QsfAnswerTokens *a, const QSFToken *token) {
    const uint32_t n = a->info.n;
    if (a->rows == NULL || n == QSF_TOKENS_KNOWN) return;
    pthread_mutex_lock(&a->lock);
    QSFToken *r = row(a, n);
    *r = *token;
    r->text_end += a->text;
    r->reasoning_end += a->reasoning;
    a->ids[n] = token->id;
    a->info.n = n + 1;
    if (a->info.n - a->info.first > QSF_TOKENS_ROWS) a->info.first = a->info.n - QSF_TOKENS_ROWS;
    pthread_mutex_unlock(&a->lock);
}

/* Text that was held back until the end belongs to the last token that has any. */
void qsf_answer_tokens_end(QsfAnswerTokens *a, uint32_t text, uint32_t reasoning, bool ended) {
    pthread_mutex_lock(&a->lock);
    const uint32_t n = a->info.n;
    a->ended = ended && n > 0;
    for (uint32_t i = n; i > a->info.first && n < QSF_TOKENS_KNOWN && n - i < (ended ? 2u : 1u); i--) {
        row(a, i - 1)->text_end = a->text + text;
        row(a, i - 1)->reasoning_end = a->reasoning + reasoning;
    }
    pthread_mutex_unlock(&a->lock);
}

void qsf_answer_tokens_cut(QsfAnswerTokens *a, uint32_t text) {
    pthread_mutex_lock(&a->lock);
    for (uint32_t i = a->info.n; i > a->info.first && row(a, i - 1)->text_end > text; i--)
        row(a, i - 1)->text_end = text;
    pthread_mutex_unlock(&a->lock);
}

uint32_t qsf_answer_tokens_match(const QsfAnswerTokens *a, const int32_t *ids, size_t n) {
    const uint32_t own = a->info.n - (a->ended ? 1 : 0);
    if (own == 0 || n < own || a->info.n == QSF_TOKENS_KNOWN) return 0;
    return memcmp(a->ids, ids + (n - own), own * sizeof *ids) == 0 ? own : 0;
}

void qsf_answer_tokens_info(QsfAnswerTokens *a, QSFTokens *out) {
    pthread_mutex_lock(&a->lock);
    *out = a->info;
    pthread_mutex_unlock(&a->lock);
}

uint32_t qsf_answer_tokens_ids(QsfAnswerTokens *a, uint32_t first, int32_t *out, uint32_t max) {
    pthread_mutex_lock(&a->lock);
    const uint32_t left = first < a->info.n ? a->info.n - first : 0, n = left < max ? left : max;
    if (n > 0) memcpy(out, a->ids + first, n * sizeof *out);
    pthread_mutex_unlock(&a->lock);
    return n;
}

uint32_t qsf_answer_tokens_rows(QsfAnswerTokens *a, uint32_t first, QSFToken *out, uint32_t max) {
    uint32_t n = 0;
    pthread_mutex_lock(&a->lock);
    for (; first >= a->info.first && first + n < a->info.n && n < max; n++) out[n] = *row(a, first + n);
    pthread_mutex_unlock(&a->lock);
    return n;
}
