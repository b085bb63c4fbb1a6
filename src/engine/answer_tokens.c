/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of the last answer. */
#include "src/engine/answer_tokens.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define NAME "tokens of the last answer"
#define PAGE 4096u

#define TOKENS (QSF_CANDIDATES + 1u)

/* A QSFWhy of TOKENS candidates. Probabilities are -log2(p) * SCALE, GONE = 0. */
struct QsfPackedWhy {
    uint32_t number; /* 1 + that of the token; 0 = empty */
    int32_t id, candidate[TOKENS];
    uint32_t n_vocab;
    float random;
    uint16_t p[TOKENS];
    uint8_t n, n_stages, decided; /* decided: 1 + it */
    struct {
        const char *name;
        uint32_t kept;
        uint16_t p[TOKENS];
    } stage[QSF_WHY_STAGES];
};
#define SCALE 1024.0
#define GONE  UINT16_MAX

static uint32_t candidates(uint32_t n_top) {
    if (n_top == 0) return QSF_CANDIDATES;
    return n_top < QSF_CANDIDATES_MOST ? n_top : QSF_CANDIDATES_MOST;
}

static size_t row_bytes(uint32_t n_top) { return offsetof(QSFToken, top) + n_top * sizeof(QSFCandidate); }

/* The last row is a whole QSFToken. */
static uint64_t rows_bytes(uint32_t n_top) {
    return (QSF_TOKENS_ROWS - 1) * row_bytes(n_top) + sizeof(QSFToken);
}

uint64_t qsf_answer_tokens_bytes(uint32_t n_top) {
    const uint64_t ids = QSF_TOKENS_KNOWN * sizeof(int32_t),
                   n = ids + rows_bytes(candidates(n_top)) + QSF_WHY_KNOWN * sizeof(QsfPackedWhy);
    return (n + PAGE - 1) / PAGE * PAGE;
}

void qsf_answer_tokens_init(QsfAnswerTokens *a) {
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
}

void qsf_answer_tokens_destroy(QsfAnswerTokens *a) { pthread_mutex_destroy(&a->lock); }

int qsf_answer_tokens_open(QsfAnswerTokens *a, uint32_t n_top, QsfLedger *ledger, QsfErr *err) {
    void *mem;
    int rc = qsf_mem_map(ledger, QSF_MEM_TRANSCRIPT, qsf_answer_tokens_bytes(n_top), NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    pthread_mutex_lock(&a->lock);
    a->why = mem; /* first: their alignment is the largest */
    a->n_top = candidates(n_top);
    a->rows = (char *)(a->why + QSF_WHY_KNOWN);
    a->ids = (int32_t *)(void *)(a->rows + rows_bytes(a->n_top));
    pthread_mutex_unlock(&a->lock);
    return QSF_OK;
}

void qsf_answer_tokens_close(QsfAnswerTokens *a, QsfLedger *ledger) {
    pthread_mutex_lock(&a->lock);
    void *mem = a->why;
    a->why = NULL;
    a->rows = NULL;
    a->ids = NULL;
    a->info = (QSFTokens){ 0 };
    pthread_mutex_unlock(&a->lock);
    if (mem != NULL) qsf_mem_unmap(ledger, QSF_MEM_TRANSCRIPT, mem, qsf_answer_tokens_bytes(a->n_top));
}

static QSFToken *row(const QsfAnswerTokens *a, uint32_t i) {
    return (QSFToken *)(void *)(a->rows + i % QSF_TOKENS_ROWS * row_bytes(a->n_top));
}

void qsf_answer_tokens_begin(QsfAnswerTokens *a, uint64_t request, uint32_t n, bool more) {
    pthread_mutex_lock(&a->lock);
    if (n > a->info.n) n = a->info.n;
    if (n == 0 || n < a->info.first) a->info.first = n;
    for (uint32_t i = 0; a->why != NULL && i < QSF_WHY_KNOWN; i++)
        if (a->why[i].number > n) a->why[i].number = 0;
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
    memcpy(r, token, row_bytes(a->n_top));
    if (r->n > a->n_top) r->n = a->n_top;
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
    for (; first >= a->info.first && first + n < a->info.n && n < max; n++)
        memcpy(&out[n], row(a, first + n), row_bytes(a->n_top));
    pthread_mutex_unlock(&a->lock);
    return n;
}

static uint16_t pack(float p) {
    const double v = p > 0 ? -log2((double)p) * SCALE : GONE;
    return v < 0 ? 0 : v < GONE - 1 ? (uint16_t)(v + 0.5) : p > 0 ? GONE - 1 : GONE;
}

static float unpack(uint16_t v) { return v == GONE ? 0 : (float)exp2(-(double)v / SCALE); }

/* The likeliest tokens, and the chosen one: at i of the candidates. */
static uint32_t packed_place(const QSFWhy *w, uint32_t i) {
    if (i + 1 < TOKENS || w->n <= TOKENS) return i;
    for (uint32_t k = i; k < w->n; k++)
        if (w->candidate[k] == w->id) return k;
    return i;
}

void qsf_answer_tokens_why(QsfAnswerTokens *a, const QSFWhy *w) {
    if (a->why == NULL) return;
    pthread_mutex_lock(&a->lock);
    QsfPackedWhy *p = &a->why[a->info.n % QSF_WHY_KNOWN];
    *p = (QsfPackedWhy){ .number = w->n_stages > 0 ? a->info.n + 1 : 0, .id = w->id, .n_vocab = w->n_vocab };
    p->random = (float)w->random;
    p->n = (uint8_t)(w->n < TOKENS ? w->n : TOKENS);
    p->n_stages = (uint8_t)w->n_stages;
    p->decided = (uint8_t)(w->decided + 1);
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t k = packed_place(w, i);
        p->candidate[i] = w->candidate[k];
        p->p[i] = pack(w->p[k]);
        for (uint32_t s = 0; s < w->n_stages; s++) p->stage[s].p[i] = pack(w->stage[s].p[k]);
    }
    for (uint32_t s = 0; s < w->n_stages; s++) {
        p->stage[s].name = w->stage[s].name;
        p->stage[s].kept = w->stage[s].kept;
    }
    pthread_mutex_unlock(&a->lock);
}

bool qsf_answer_tokens_get_why(QsfAnswerTokens *a, uint32_t i, QSFWhy *w) {
    pthread_mutex_lock(&a->lock);
    const QsfPackedWhy *p = a->why != NULL ? &a->why[i % QSF_WHY_KNOWN] : NULL;
    const bool known = p != NULL && i < a->info.n && p->number == i + 1;
    *w = (QSFWhy){ .id = -1, .decided = -1, .random = -1 };
    if (known) {
        w->id = p->id;
        w->n = p->n;
        w->n_vocab = p->n_vocab;
        w->n_stages = p->n_stages;
        w->random = (double)p->random;
        w->decided = (int32_t)p->decided - 1;
    }
    for (uint32_t s = 0; s < w->n_stages; s++) {
        w->stage[s].name = p->stage[s].name;
        w->stage[s].kept = p->stage[s].kept;
        for (uint32_t k = 0; k < w->n; k++) w->stage[s].p[k] = unpack(p->stage[s].p[k]);
    }
    for (uint32_t k = 0; k < w->n; k++) {
        w->candidate[k] = p->candidate[k];
        w->p[k] = unpack(p->p[k]);
    }
    pthread_mutex_unlock(&a->lock);
    return known;
}
