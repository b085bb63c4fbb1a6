/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The token loop. It allocates nothing, unless a grammar finds new states: the detokenizer and the stop
 * strings use buffers allocated before it. */
#include "src/engine/timeline_impl.h"

#include <string.h>

#include "src/base/clock.h"
#include "src/engine/memory_pressure.h"
#include "src/engine/quality/quality.h"
#include "src/sample/rng.h"

static bool cancelled(const QsfRun *r) {
    const atomic_int *c = r->t->rt->cancel;
    return c != NULL && atomic_load(c) != 0;
}

static const QsfThinkSplit *split_of(const QsfRun *r) { return r->splits ? &r->split : NULL; }

static int sample(QsfRun *r, QsfSample *s, QsfErr *err) {
    const QsfTimeline *t = r->t;
    const QsfRuntime *rt = t->rt;
    const uint64_t *allowed = NULL;
    if (r->first && r->g->chosen) {
        *s = (QsfSample){ .id = r->g->chosen_id, .p = 1, .kept = 1, .plain = -1 };
        return QSF_OK;
    }
    if (r->held) {
        int rc = qsf_hold_allowed(&r->hold, split_of(r), &allowed, err);
        if (rc != QSF_OK) return rc;
    }
    QsfSamplerInput in = { .logits = qsf_forward_logits(rt->fwd),
                           .params = &r->params,
                           .recent = t->ids,
                           .n_recent = t->n_ids,
                           .banned = rt->eog,
                           .n_banned = r->params.ignore_eos ? rt->n_eog : 0 };
    int rc = qsf_token_rules_update(&r->rules, &r->params, err);
    if (rc != QSF_OK) return rc;
    qsf_token_rules_input(&r->rules, &in);
    if (r->g->why != NULL) in.why = &r->why;
    in.n_why = r->g->n_why;
    in.change = r->g->change;
    in.change_arg = r->g->arg;
    if (r->held) in.allowed = allowed;
    rc = qsf_sampler_next(rt->sampler, &in, s, err);
    if (rc != QSF_OK && r->held)
        qsf_err_prefix(err, r->rules.n_bias + r->rules.bans.n > 0 ? "the grammar with bans and biases"
                                                                  : "the grammar");
    return rc;
}

/* Takes a token that closes reasoning instead of the sampled one, if it is time. */
static bool close_reasoning(QsfRun *r, QsfSample *s) {
    const QsfRuntime *rt = r->t->rt;
    if (r->first && r->g->chosen) return false;
    const bool now = r->g->answer_now != NULL && r->g->answer_now(r->g->arg);
    const int32_t id = qsf_reasoning_limit_next(&r->limit, &r->params, qsf_forward_logits(rt->fwd),
                                                qsf_tokenizer_n_vocab(rt->tok), s->id,
                                                r->out->reasoning_tokens, qsf_run_reasons(r), now);
    if (id < 0) return false;
    *s = (QsfSample){ .id = id, .p = 1, .entropy = s->entropy, .kept = 1, .plain = s->plain };
    if (!r->out->reasoning_cut && r->g->reasoning_cut != NULL)
        r->g->reasoning_cut(r->g->arg, r->out->reasoning_tokens);
    r->out->reasoning_cut = true;
    return true;
}

/* Tells what was evicted since the last call. */
static void note_evictions(QsfRun *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->t->rt->fwd, &s);
    const uint64_t more = s.evicted - r->evicted - r->out->evicted;
    if (more == 0) return;
    r->out->evicted += more;
    if (r->g->evicted != NULL) r->g->evicted(r->g->arg, more);
}

static bool is_long(const QsfRun *r) {
    const uint32_t n = r->out->tokens;
    return (r->params.max_tokens > 0 && n >= (uint32_t)r->params.max_tokens) ||
           (r->g->max_tokens > 0 && n >= r->g->max_tokens);
}

/* Passes on what the model says about a token, given the logits before it. */
static void look(QsfRun *r, const float *logits, int32_t id, float plain) {
    QSFToken token;
    if (r->why.id != id) r->why = (QSFWhy){ .id = id, .decided = -1, .random = -1 };
    if (r->g->why != NULL) r->g->why(r->g->arg, &r->why);
    const bool known = qsf_sampler_look_why(&r->why, &token);
    r->why.id = -1;
    if (r->g->token == NULL) return;
    if (!known) qsf_sampler_look(r->t->rt->sampler, logits, id, plain, &token);
    token.text_end = r->out->text_bytes;
    token.reasoning_end = r->out->reasoning_bytes;
    r->g->token(r->g->arg, &token);
}

/* Counts a token of the answer and emits its text. QSF_E_USAGE: it does not match the grammar. */
static int add(QsfRun *r, int32_t id, QsfErr *err) {
    QsfTimeline *t = r->t;
    int rc = qsf_hold_take(&r->hold, t->rt, split_of(r), &r->detok, id, t->piece, QSF_TIMELINE_PIECE, err);
    if (rc != QSF_OK) return rc;
    r->out->tokens++;
    r->out->last_id = id;
    qsf_token_rules_wrote(&r->rules, id);
    qsf_run_deliver(r, id);
    return QSF_OK;
}

/* Tokens that the answer may still have. */
static uint32_t left(const QsfRun *r) {
    const uint32_t n = r->out->tokens;
    uint32_t most = qsf_timeline_evicts(r->t) ? UINT32_MAX : qsf_forward_room(r->t->rt->fwd) + 1;
    if (r->params.max_tokens > 0 && (uint32_t)r->params.max_tokens - n < most)
        most = (uint32_t)r->params.max_tokens - n;
    if (r->g->max_tokens > 0 && r->g->max_tokens - n < most) most = r->g->max_tokens - n;
    return most;
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
    f->rc = add(r, id, f->err);
    look(r, logits, id, -1);
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
    if (cancelled(r)) qsf_run_end(r, QSF_STOP_INTERRUPTED);
    return rc == QSF_OK ? f.rc : rc;
}

/* How many tokens without a choice may be taken at once: 0 where an answer leaves something out. */
static uint32_t room_for_forced(const QsfRun *r) {
    const QsfTimeline *t = r->t;
    const QsfQualityWish all = { .value = 1 };
    if (!r->held || (r->first && r->g->chosen) || qsf_timeline_evicts(t)) return 0;
    if (!qsf_quality_wish_equal(&all, &t->quality)) return 0;
    uint32_t most = QSF_HOLD_IDS < t->cap - t->n_ids ? QSF_HOLD_IDS : t->cap - t->n_ids;
    if (left(r) - 1 < most) most = left(r) - 1;
    return most;
}

/* May a token that ends the answer be chosen? */
static bool may_end(QsfRun *r) {
    const QsfRuntime *rt = r->t->rt;
    for (size_t i = 0; !r->params.ignore_eos && i < rt->n_eog; i++)
        if (qsf_token_rules_allow(&r->rules, &rt->eog[i], 1) == 1) return true;
    return false;
}

/* Tokens whose choice is not the model's: *taken is true if one was taken, or the answer has ended. */
static int step_held(QsfRun *r, bool *taken, QsfErr *err) {
    const QsfRuntime *rt = r->t->rt;
    int32_t ids[QSF_HOLD_IDS];
    uint32_t n = 0;
    const uint32_t most = room_for_forced(r);
    *taken = true;
    if (r->hold.closing && r->hold.at == r->hold.n) {
        qsf_run_end(r, QSF_STOP_LENGTH);
        return QSF_OK;
    }
    int rc = qsf_token_rules_update(&r->rules, &r->params, err);
    if (rc == QSF_OK && qsf_hold_is_over(&r->hold) && !may_end(r)) {
        qsf_run_end(r, QSF_STOP_EOS);
        return QSF_OK;
    }
    if (rc == QSF_OK && most >= 2) rc = qsf_hold_forced(&r->hold, rt, ids, most, &n, err);
    if (rc == QSF_OK && n > 0) return step_forced(r, ids, n, err);
    *taken = false;
    return rc;
}

/* The token that comes next. */
static int choose(QsfRun *r, QsfSample *s, QsfErr *err) {
    QsfHold *h = &r->hold;
    *s = (QsfSample){ .p = 1, .kept = 1, .plain = -1 };
    if (r->held && h->closing) {
        s->id = h->ids[h->at++];
        return QSF_OK;
    }
    int rc = sample(r, s, err);
    if (rc != QSF_OK || !r->held || (r->first && r->g->chosen)) return rc;
    rc = qsf_hold_limit(h, r->t->rt, left(r), &s->id, err);
    if (h->finished) qsf_run_end(r, QSF_STOP_LENGTH);
    return rc;
}

/* Samples, emits and evaluates one token. */
static int step(QsfRun *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfForward *f = t->rt->fwd;
    QsfSample s;
    bool taken = false;
    r->held = qsf_hold_counts(&r->hold, split_of(r), &r->detok);
    int rc = r->held ? step_held(r, &taken, err) : QSF_OK;
    if (rc != QSF_OK || taken) return rc;
    rc = choose(r, &s, err);
    if (rc != QSF_OK || r->done) return rc;
    const bool closes = r->splits && close_reasoning(r, &s);
    const int32_t id = s.id;
    if (r->first) r->out->ttft_ns = qsf_now_ns() - r->start_ns;
    r->first = false;
    const bool last = !closes && !r->params.ignore_eos && qsf_runtime_ends(t->rt, id);
    if (!last && r->g->tick != NULL) r->g->tick(r->g->arg, &s);
    if (!last) rc = add(r, id, err);
    if (rc != QSF_OK) return rc;
    look(r, qsf_forward_logits(f), id, s.plain);
    if (last) qsf_run_end(r, QSF_STOP_EOS);
    if (last) return QSF_OK;
    if (is_long(r)) qsf_run_end(r, QSF_STOP_LENGTH);
    if (qsf_forward_room(f) == 0 && !qsf_timeline_evicts(t)) qsf_run_end(r, QSF_STOP_CONTEXT);
    if (cancelled(r)) qsf_run_end(r, QSF_STOP_INTERRUPTED);
    if (r->done) return QSF_OK;
    rc = qsf_forward_decode(f, &id, 1, NULL, NULL, err);
    qsf_timeline_store(t, &id, t->n_ids);
    return rc;
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

/* Reads the parameters for the next token. */
static int follow_params(QsfRun *r, QsfErr *err) {
    QsfTimeline *t = r->t;
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
    if (!last || !qsf_runtime_ends(r->t->rt, id)) (void)add(r, id, NULL); /* one that ended it has no text */
    look(r, logits, id, -1);
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
    for (uint32_t i = 0; rc == QSF_OK && i < r->g->begun; i++) rc = add(r, begun(r)[i], err);
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
    const bool whole = r->hold.c == NULL ||
                       (qsf_hold_counts(&r->hold, split_of(r), &r->detok) && qsf_hold_may_end(&r->hold));
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
    int rc = qsf_hold_begin(&r->hold, rt, &r->params, g->grammar, g->written, g->n_written, err);
    if (rc == QSF_E_BUDGET && qsf_hold_make_room(rt)) {
        qsf_err_clear(err);
        if (g->quality != NULL) g->quality(g->arg);
        rc = qsf_timeline_fit(r->t, err);
        if (rc == QSF_OK)
            rc = qsf_hold_begin(&r->hold, rt, &r->params, g->grammar, g->written, g->n_written, err);
    }
    r->hold.rules = &r->rules;
    return rc;
}

int qsf_timeline_generate(QsfTimeline *t, const QsfGenerate *g, QsfGeneration *out, QsfErr *err) {
    QsfErr own = { 0 };
    if (err == NULL) err = &own;
    QsfRun r = { .t = t, .g = g, .out = out, .id = -1, .first = true, .start_ns = qsf_now_ns() };
    r.rules.rt = t->rt;
    r.rules.piece = &t->piece;
    r.rules.piece_cap = QSF_TIMELINE_PIECE;
    memset(out, 0, sizeof *out);
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
