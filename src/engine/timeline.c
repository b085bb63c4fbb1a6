/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token loop. It allocates nothing, unless a grammar finds new states: the detokenizer and the stop
 * strings use buffers allocated before it. */
#include "src/engine/timeline_impl.h"

#include <string.h>

#include "src/base/clock.h"
#include "src/engine/memory_pressure.h"
#include "src/engine/quality/quality.h"
#include "src/sample/rng.h"

/* Tells what was evicted since the last call. */
static void note_evictions(QsfRun *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->t->rt->fwd, &s);
    const uint64_t more = s.evicted - r->evicted - r->out->evicted;
    if (more == 0) return;
    r->out->evicted += more;
    if (r->g->evicted != NULL) r->g->evicted(r->g->arg, more);
}

/* Tokens without a choice. */
typedef struct Forced {
    QsfRun *r;
    const int32_t *ids; /* (n) */
    uint32_t n, at;
    int rc;
    QsfErr *err;
} Forced;

/* The logits at a position are what the model says about the next token. */
static void on_forced(void *arg, uint32_t pos, const float *logits) {
    Forced *f = arg;
    QsfRun *r = f->r;
    (void)pos;
    if (f->at == f->n || f->rc != QSF_OK || r->done) return;
    const int32_t id = f->ids[f->at++];
    const QsfSample s = { .id = id, .p = 1, .kept = 1, .plain = -1 };
    if (r->g->tick != NULL) r->g->tick(r->g->arg, &s);
    f->rc = qsf_run_add(r, id, f->err);
    qsf_run_look(r, logits, id, -1);
}

/* Evaluates them in one pass. */
static int step_forced(QsfRun *r, const int32_t *ids, uint32_t n, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfForward *fwd = t->rt->fwd;
    Forced f = { .r = r, .ids = ids, .n = n, .err = err };
    if (r->first) r->out->ttft_ns = qsf_now_ns() - r->start_ns;
    r->first = false;
    on_forced(&f, 0, qsf_forward_logits(fwd));
    if (f.rc != QSF_OK || r->done) return f.rc;
    int rc = qsf_forward_eval(fwd, ids, n, on_forced, &f, err);
    qsf_timeline_store(t, ids, t->n_ids);
    if (qsf_run_cancelled(r)) qsf_run_end(r, QSF_STOP_INTERRUPTED);
    return rc == QSF_OK ? f.rc : rc;
}

/* A pass with drafts. */
typedef struct Verified {
    QsfRun *r;
    const QsfDraft *d;
    uint32_t at; /* positions that stay so far */
    int rc;
    QsfErr *err;
} Verified;

/* A position that stays was evaluated: chooses what comes after it. true: it is the next draft. */
static bool on_verified(void *arg, uint32_t pos, const float *logits) {
    Verified *v = arg;
    QsfRun *r = v->r;
    QsfTimeline *t = r->t;
    int32_t ids[QSF_GRAMMAR_HOLD_IDS], id;
    uint32_t forced;
    (void)pos;
    t->ids[t->n_ids++] = v->d->ids[v->at++];
    r->logits = logits;
    r->next = -1;
    r->g->params(r->g->arg, &r->params);
    const QsfQualityWish quality = qsf_quality_of(&r->params);
    if (!qsf_quality_wish_equal(&quality, &t->quality)) return false;
    v->rc = qsf_run_turn(r, ids, &forced, v->err);
    if (v->rc != QSF_OK || r->done || forced > 0) return false; /* the next step takes them */
    v->rc = qsf_run_next(r, &id, v->err);
    if (v->rc != QSF_OK || r->done) return false;
    if (v->at <= v->d->n && v->d->ids[v->at] == id) return true;
    r->next = id;
    return false;
}

static int verify(QsfRun *r, const QsfDraft *d, uint32_t *accepted, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfForward *f = t->rt->fwd;
    const uint32_t past = t->n_ids;
    Verified v = { .r = r, .d = d, .err = err };
    r->verifies = true;
    r->past = past;
    r->room = qsf_forward_room(f);
    int rc = qsf_forward_verify(f, d->ids, d->n + 1, on_verified, &v, err);
    r->verifies = false;
    qsf_timeline_store(t, d->ids, past);
    *accepted = v.at > 0 ? v.at - 1 : 0;
    return rc == QSF_OK ? v.rc : rc;
}

/* How many drafts may follow the next token. */
static uint32_t most_drafts(const QsfRun *r, const char **why) {
    const QsfTimeline *t = r->t;
    const uint32_t cols = qsf_forward_verifiable(t->rt->fwd, why);
    const uint32_t limits[] = { t->cap - t->n_ids, qsf_run_left(r) };
    uint32_t n = cols;
    if (!qsf_run_is_whole(r))
        *why = t->quality.value < 1 ? "quality is below 1"
                                    : "a token uses fewer experts than the router chose";
    for (unsigned i = 0; i < 2; i++)
        if (limits[i] < n) n = limits[i];
    return n > 0 ? n - 1 : 0;
}

/* Evaluates the token that was chosen, and the drafts behind it that turn out to be right. */
static int evaluate(QsfRun *r, int32_t id, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfForward *f = t->rt->fwd;
    const char *why;
    const uint32_t most = most_drafts(r, &why), past = t->n_ids;
    uint32_t accepted = 0;
    QsfDraft d;
    t->ids[past] = id;
    const QsfDraftView view = { t->ids, past + 1 };
    qsf_speculate_begin(&t->rt->speculator, &view, most, why, &d);
    int rc;
    if (d.n > 0) {
        rc = verify(r, &d, &accepted, err);
    } else {
        rc = qsf_forward_decode(f, &id, 1, NULL, NULL, err);
        qsf_timeline_store(t, &id, past);
    }
    if (rc == QSF_OK) qsf_speculate_end(&t->rt->speculator, &view, &d, accepted);
    return rc;
}

/* Chooses and emits a token, unless that was done at the end of a pass with drafts, and evaluates it. */
static int step(QsfRun *r, QsfErr *err) {
    int32_t ids[QSF_GRAMMAR_HOLD_IDS], id = r->next;
    uint32_t n = 0;
    int rc = QSF_OK;
    r->next = -1;
    if (id >= 0) return qsf_run_goes_on(r) ? evaluate(r, id, err) : QSF_OK;
    r->logits = qsf_forward_logits(r->t->rt->fwd);
    rc = qsf_run_turn(r, ids, &n, err);
    if (rc != QSF_OK || r->done) return rc;
    if (n > 0) return step_forced(r, ids, n, err);
    rc = qsf_run_next(r, &id, err);
    return rc == QSF_OK && !r->done ? evaluate(r, id, err) : rc;
}

static void relieve(QsfRun *r) {
    char note[320];
    if (qsf_runtime_relieve(r->t->rt, note, sizeof note) && r->g->memory != NULL)
        r->g->memory(r->g->arg, note);
}

/* Evaluates with everything what was evaluated with less; the logits then are those of the
 * last token again. */
static int restore(QsfTimeline *t, QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    const uint32_t n = t->n_ids, exact = qsf_forward_exact(f);
    if (exact >= n) return QSF_OK;
    const uint32_t keep = qsf_forward_truncate(f, exact);
    int rc = qsf_forward_eval(f, t->ids + keep, n - keep, NULL, NULL, err);
    t->n_ids = qsf_forward_n_past(f);
    return rc;
}

static void set_quality(QsfRun *r, const QsfQualityWish *quality) {
    r->t->quality = *quality;
    if (qsf_runtime_quality(r->t->rt, quality) && r->g->quality != NULL) r->g->quality(r->g->arg);
}

/* Reads the parameters for the next token, unless it was chosen by the last ones. */
static int follow_params(QsfRun *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    if (r->next >= 0) return QSF_OK;
    r->g->params(r->g->arg, &r->params);
    const QsfQualityWish quality = qsf_quality_of(&r->params);
    if (qsf_quality_wish_equal(&quality, &t->quality) && !r->first)
        return QSF_OK; /* the prompt has shown more of what matters */
    int rc = qsf_quality_wishes_more(&t->quality, &quality) || qsf_timeline_evicts(t) ? restore(t, err)
                                                                                      : QSF_OK;
    if (rc != QSF_OK) return rc;
    qsf_ledger_thaw(&t->rt->ledger);
    set_quality(r, &quality);
    qsf_ledger_freeze(&t->rt->ledger);
    return QSF_OK;
}

static int between(QsfRun *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfLedger *l = &t->rt->ledger;
    const bool watched = t->rt->settings.memory_threshold > 0 || t->rt->pressed;
    note_evictions(r);
    if (r->g->between == NULL && t->n_ids < t->cap && !watched) return follow_params(r, err);
    qsf_ledger_thaw(l);
    if (watched) relieve(r);
    if (r->g->between != NULL) r->g->between(r->g->arg);
    int rc = qsf_timeline_grow(t, (size_t)t->n_ids + 1, err);
    qsf_ledger_freeze(l);
    return rc == QSF_OK ? follow_params(r, err) : rc;
}

static int loop(QsfRun *r, QsfErr *err) {
    QsfLedger *l = &r->t->rt->ledger;
    int rc = QSF_OK;
    uint64_t start = qsf_now_ns();
    qsf_ledger_freeze(l);
    while (rc == QSF_OK && !r->done) {
        rc = between(r, err);
        if (rc == QSF_OK) rc = step(r, err);
    }
    note_evictions(r);
    qsf_ledger_thaw(l);
    r->out->decode_ns = qsf_now_ns() - start;
    qsf_quality_note(r->t->rt, r->out->tokens - r->g->begun, r->out->decode_ns);
    return rc;
}

/* The tokens that the answer begins with. */
static const int32_t *begun(const QsfRun *r) { return r->g->prompt + (r->g->n_prompt - r->g->begun); }

/* The logits at a position are what the model says about the next token. */
static void on_scored(void *arg, uint32_t pos, const float *logits) {
    QsfRun *r = arg;
    (void)pos;
    const int32_t id = begun(r)[r->out->tokens];
    const bool last = r->out->tokens + 1 == r->g->begun;
    if (!last || !qsf_runtime_ends(r->t->rt, id))
        (void)qsf_run_add(r, id, NULL); /* one that ended it has no text */
    qsf_run_look(r, logits, id, -1);
}

/* Evaluates the tokens that are begun, but the last one, which is only looked at. */
static int score(QsfRun *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    const uint32_t n = r->g->begun;
    if (n == 0) return QSF_OK;
    int rc = qsf_timeline_grow(t, r->g->n_prompt, err);
    if (rc != QSF_OK) return rc;
    qsf_ledger_freeze(&t->rt->ledger);
    on_scored(r, 0, qsf_forward_logits(t->rt->fwd));
    rc = qsf_forward_eval(t->rt->fwd, begun(r), n - 1, on_scored, r, err);
    qsf_timeline_store(t, begun(r), t->n_ids);
    qsf_ledger_thaw(&t->rt->ledger);
    if (rc == QSF_OK) qsf_run_end(r, QSF_STOP_LENGTH);
    return rc;
}

/* Emits the text of the tokens that are begun, and generates the others. */
static int go_on(QsfRun *r, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < r->g->begun; i++) rc = qsf_run_add(r, begun(r)[i], err);
    return rc == QSF_OK ? loop(r, err) : rc;
}

static int run(QsfRun *r, QsfErr *err) {
    const QsfGenerate *g = r->g;
    const size_t n = g->n_prompt - (g->score ? g->begun : 0);
    int rc = qsf_timeline_prefill(r->t, g->prompt, n, &r->out->reused_tokens, err);
    r->out->prefill_ns = qsf_now_ns() - r->start_ns;
    if (rc == QSF_OK && g->tick != NULL) g->tick(g->arg, NULL);
    if (rc == QSF_OK && r->splits && g->think.opened[0] != '\0')
        qsf_run_emit(r, true, g->think.opened, strlen(g->think.opened));
    if (rc == QSF_OK) rc = g->score ? score(r, err) : go_on(r, err);
    if (rc == QSF_E_INTERRUPTED) {
        qsf_err_clear(err);
        qsf_run_end(r, QSF_STOP_INTERRUPTED);
        rc = QSF_OK;
    }
    const bool whole = r->hold.c == NULL || (qsf_grammar_hold_counts(&r->hold, qsf_run_split(r), &r->detok) &&
                                             qsf_grammar_hold_may_end(&r->hold));
    r->out->grammar_cut = !whole;
    qsf_run_flush(r);
    return rc;
}

/* One piece of output is at most a token's text, or what the split held back. */
static int open_filters(QsfRun *r, QsfErr *err) {
    const QsfGenerate *g = r->g;
    r->splits = g->reasoning != NULL && g->think.split.t != NULL &&
                g->think.split.t->format != QSF_THINK_NONE;
    if (r->splits) r->split = g->think.split;
    const size_t longest = r->splits ? qsf_think_piece_max(QSF_TIMELINE_PIECE) : QSF_TIMELINE_PIECE;
    return qsf_stopper_open(&r->stopper, g->stop, g->n_stop, longest, err);
}

/* A plan without memory for the grammar is replaced. */
static int begin_hold(QsfRun *r, QsfErr *err) {
    const QsfGenerate *g = r->g;
    QsfRuntime *rt = r->t->rt;
    int rc = qsf_grammar_hold_begin(&r->hold, rt, &r->params, g->grammar, g->written, g->n_written, err);
    if (rc == QSF_E_BUDGET && qsf_grammar_hold_make_room(rt)) {
        qsf_err_clear(err);
        if (g->quality != NULL) g->quality(g->arg);
        rc = qsf_timeline_fit(r->t, err);
        if (rc == QSF_OK)
            rc = qsf_grammar_hold_begin(&r->hold, rt, &r->params, g->grammar, g->written, g->n_written, err);
    }
    r->hold.rules = &r->rules;
    return rc;
}

int qsf_timeline_generate(QsfTimeline *t, const QsfGenerate *g, QsfGeneration *out, QsfErr *err) {
    QsfErr own = { 0 };
    if (err == NULL) err = &own;
    QsfRun r = { .t = t, .g = g, .out = out, .id = -1, .next = -1, .first = true, .start_ns = qsf_now_ns() };
    r.rules.rt = t->rt;
    r.rules.piece = &t->piece;
    r.rules.piece_cap = QSF_TIMELINE_PIECE;
    memset(out, 0, sizeof *out);
    qsf_speculate_reset_counts(&t->rt->speculator);
    out->prompt_tokens = (uint32_t)g->n_prompt;
    int rc = open_filters(&r, err);
    if (rc != QSF_OK) return rc;
    qsf_detok_init(&r.detok, t->rt->tok, false, g->continues);
    g->params(g->arg, &r.params);
    if (r.splits)
        rc = qsf_reasoning_limit_init(&r.limit, t->rt, g->think.split.t, r.params.reasoning_message, err);
    if (rc == QSF_OK && !g->score) rc = begin_hold(&r, err);
    if (rc != QSF_OK) {
        qsf_stopper_close(&r.stopper);
        return rc;
    }
    out->seed = r.params.seed_set ? r.params.seed : qsf_random_seed();
    qsf_sampler_seed(t->rt->sampler, out->seed);
    QsfForwardStats before;
    qsf_forward_stats(t->rt->fwd, &before);
    r.evicted = before.evicted;
    rc = run(&r, err);
    qsf_stopper_close(&r.stopper);
    return rc;
}
