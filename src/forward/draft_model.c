/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/draft_model.h"

#include <stdlib.h>
#include <string.h>

#include "src/forward/draft_plan.h"

#define BATCH       128u /* positions of a pass over a prompt */
#define CHECKPOINTS 3u   /* copies of recurrent states: the mark, and earlier positions to go back to */
#define PIECE       128u /* ids that are copied at a time */
#define SHORT       2048u

/* Position i of the forward pass is position base + i of the conversation. */
struct QsfDraftModel {
    QsfModel model;
    QsfPlan plan;
    QsfForward *fwd; /* NULL until loaded */
    QsfQuality quality;
    uint32_t n_vocab; /* tokens that both have */
    uint64_t meta_bytes;
    uint32_t base, known; /* the first `known` positions have the tokens of the conversation, */
    int32_t guess[QSF_DRAFT_MODEL_TOKENS]; /* (n_guessed) the ones after them these */
    uint32_t n_guessed;
    uint32_t mark; /* position of the last mark that the next one may replace */
};

/* ---- opening ---- */

int qsf_draft_model_create(QsfDraftModel **out, const char *path, QsfLedger *ledger, QsfErr *err) {
    const uint64_t before = ledger->used[QSF_MEM_META];
    *out = NULL;
    QsfDraftModel *x = calloc(1, sizeof *x);
    if (x == NULL) return qsf_err_memory(err, "draft model");
    int rc = qsf_model_open(&x->model, path, NULL, ledger, err);
    if (rc == QSF_OK && x->model.vocab_only)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: the model has no weights", path);
    if (rc != QSF_OK) {
        qsf_model_close(&x->model);
        free(x);
        return rc;
    }
    x->n_vocab = x->model.hp.n_vocab;
    x->meta_bytes = ledger->used[QSF_MEM_META] - before;
    *out = x;
    return QSF_OK;
}

void qsf_draft_model_destroy(QsfDraftModel *x) {
    if (x == NULL) return;
    qsf_forward_destroy(x->fwd);
    qsf_plan_free(&x->plan);
    qsf_model_close(&x->model);
    free(x);
}

const QsfSource *qsf_draft_model_source(const QsfDraftModel *x) { return x->model.src; }

void qsf_draft_model_set_vocab(QsfDraftModel *x, uint32_t n) {
    if (n < x->n_vocab) x->n_vocab = n;
}

/* ---- the plan ---- */

/* With 2 bits only some positions could be taken back. */
static qk_kv type_of(qk_kv model) {
    return model == QK_KV_F32 ? QK_KV_F16 : model == QK_KV_Q2 ? QK_KV_Q4 : model;
}

static bool has_experts(const QsfModel *m) {
    for (uint32_t i = 0; i < m->prog.n_units; i++)
        if (m->prog.unit[i].on_demand) return true;
    return false;
}

/* In a sparse model, passes with the sketch would also use fewer experts. */
static QsfQuality quality_of(const QsfModel *m, bool sketch) {
    QsfQuality q = { 0 };
    if (!sketch || has_experts(m)) return q;
    q.value = 0.5f; /* any below 1: no block is skipped */
    qsf_quality_sketch(&q, m);
    if (q.head.groups == 0) q.value = 0;
    return q;
}

static uint32_t context(const QsfModel *m, uint32_t ctx, bool less) {
    const uint32_t most = m->prog.max_ctx > 0 ? m->prog.max_ctx : m->hp.n_ctx_train;
    if (less && ctx > SHORT) ctx = SHORT;
    return most > 0 && ctx > most ? most : ctx;
}

int qsf_draft_model_plan(QsfDraftModel *x, const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, unsigned way,
                         uint64_t *rows, QsfErr *err) {
    static const struct {
        bool sketch, less;
    } ways[QSF_DRAFT_MODEL_WAYS] = { { true, false }, { false, false }, { false, true } };
    const QsfKvTypes types = { type_of(kv.k), type_of(kv.v) };
    QsfPlanOptions p = qsf_draft_plan_options(o, context(&x->model, ctx, ways[way].less), types, BATCH);
    p.exact = false;
    p.quality = quality_of(&x->model, ways[way].sketch);
    p.checkpoints = CHECKPOINTS;
    qsf_plan_free(&x->plan);
    int rc = qsf_plan_make(&x->plan, &x->model, &p, err);
    if (rc != QSF_OK) return rc;
    x->quality = p.quality;
    x->plan.rows[QSF_MEM_META] += x->meta_bytes;
    qsf_draft_plan_add(&x->plan, o, rows);
    return QSF_OK;
}

uint64_t qsf_draft_model_bytes(const QsfDraftModel *x) { return qsf_draft_plan_bytes(&x->plan); }

/* What the cache holds of a longer context is given up. */
int qsf_draft_model_replan(QsfDraftModel *x, QsfPool *pool, QsfErr *err) {
    if (qsf_forward_n_past(x->fwd) > x->plan.ctx) qsf_draft_model_cut(x, 0);
    int rc = qsf_forward_replan(x->fwd, &x->plan, pool, err);
    if (rc == QSF_OK) qsf_forward_set_quality(x->fwd, &x->quality);
    return rc;
}

int qsf_draft_model_load(QsfDraftModel *x, const QsfForwardOptions *o, QsfErr *err) {
    QsfForwardOptions fo = *o;
    fo.model = &x->model;
    fo.plan = &x->plan;
    fo.lender = NULL;
    int rc = qsf_forward_create(&x->fwd, &fo, err);
    if (rc != QSF_OK) return rc;
    qsf_forward_set_quality(x->fwd, &x->quality);
    qsf_forward_mark(x->fwd, 0);
    return QSF_OK;
}

QsfForward *qsf_draft_model_forward(const QsfDraftModel *x) { return x->fwd; }

/* ---- following the conversation ---- */

/* Positions of the cache become n or, where states are not kept for that, fewer; all of them are known. */
static void keep(QsfDraftModel *x, uint32_t n) {
    x->known = qsf_forward_truncate(x->fwd, n);
    x->n_guessed = 0;
}

static void begin_at(QsfDraftModel *x, uint32_t pos) {
    keep(x, 0);
    x->base = pos;
}

void qsf_draft_model_cut(QsfDraftModel *x, uint32_t n) {
    if (x->fwd == NULL || n >= x->base + x->known + x->n_guessed) return;
    if (n <= x->base)
        begin_at(x, 0);
    else if (n < x->base + x->known)
        keep(x, n - x->base);
}

/* Guesses that were evaluated, and turned out to be right, count. */
static void judge(QsfDraftModel *x, const int32_t *ids, uint32_t n) {
    uint32_t right = 0;
    const uint32_t end = x->base + x->known;
    while (right < x->n_guessed && end + right < n && ids[end + right] == x->guess[right]) right++;
    if (right < x->n_guessed || end + right > n - 1) {
        const uint32_t most = n - 1 - x->base;
        keep(x, x->known + right < most ? x->known + right : most);
        return;
    }
    x->known += right;
    x->n_guessed = 0;
}

/* A token that it does not know is any other: that makes guesses worse, not wrong answers. */
static int32_t readable(const QsfDraftModel *x, int32_t id) {
    return id >= 0 && (uint32_t)id < x->model.hp.n_vocab ? id : 0;
}

static int eval_piece(QsfDraftModel *x, const int32_t *ids, uint32_t n, QsfErr *err) {
    int32_t piece[PIECE];
    for (uint32_t i = 0; i < n; i++) piece[i] = readable(x, ids[i]);
    int rc = qsf_forward_decode(x->fwd, piece, n, NULL, NULL, err);
    x->known = qsf_forward_n_past(x->fwd);
    return rc;
}

/* Makes room for all of ids[0..n) and a draft: of what is too long, the second half stays. */
static void make_room(QsfDraftModel *x, uint32_t n) {
    const uint32_t ctx = qsf_forward_ctx(x->fwd);
    if (x->base < n && n - x->base + QSF_DRAFT_MODEL_TOKENS <= ctx) return;
    const uint32_t stay = ctx / 2;
    begin_at(x, n > stay ? n - stay : 0);
}

int qsf_draft_model_follow(QsfDraftModel *x, const int32_t *ids, uint32_t n, QsfErr *err) {
    int rc = QSF_OK;
    make_room(x, n);
    judge(x, ids, n);
    const uint32_t from = x->known;
    while (rc == QSF_OK && x->base + x->known < n) {
        const uint32_t at = x->base + x->known, left = n - at;
        rc = eval_piece(x, ids + at, left < PIECE ? left : PIECE, err);
    }
    if (rc != QSF_OK) return rc;
    qsf_forward_mark(x->fwd, x->mark);
    /* The end of a prompt stays: a conversation goes back to it. */
    x->mark = x->known - from > QSF_DRAFT_MODEL_TOKENS ? UINT32_MAX : x->known;
    return QSF_OK;
}

/* ---- guesses ---- */

static int eval_guess(QsfDraftModel *x, int32_t id) {
    QsfErr none = { 0 };
    int rc = qsf_forward_decode(x->fwd, &id, 1, NULL, NULL, &none);
    if (rc == QSF_OK) x->guess[x->n_guessed++] = id;
    return rc;
}

uint32_t qsf_draft_model_draft(QsfDraftModel *x, const int32_t *ids, uint32_t n, uint32_t most, float least,
                               int32_t *out, float *margin) {
    QsfErr none = { 0 };
    float ahead = 0;
    if (most > QSF_DRAFT_MODEL_TOKENS) most = QSF_DRAFT_MODEL_TOKENS;
    if (n == 0 || most == 0 || qsf_draft_model_follow(x, ids, n, &none) != QSF_OK) return 0;
    for (uint32_t i = 0; i < most; i++) {
        if (i > 0 && eval_guess(x, out[i - 1]) != QSF_OK) return i;
        out[i] = qsf_forward_likeliest(qsf_forward_logits(x->fwd), x->n_vocab, &ahead);
        if (i == 0) *margin = ahead;
        if (ahead < least) return i + 1;
    }
    return most;
}
