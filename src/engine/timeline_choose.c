/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which token comes next: by the sampler, a grammar and the limit of reasoning, given logits. */
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/quality/quality.h"
#include "src/engine/timeline_impl.h"

/* Reasoning does not end an answer whose grammar has not been matched. */
static bool must_answer(QsfRun *r) {
    const QsfThinkSplit *split = qsf_run_split(r);
    return !r->held && r->hold.c != NULL && split != NULL && split->t->format == QSF_THINK_TAGS &&
           !qsf_grammar_hold_may_end(&r->hold);
}

static int sample(QsfRun *r, QsfSample *s, QsfErr *err) {
    const QsfTimeline *t = r->t;
    const QsfRuntime *rt = t->rt;
    const uint64_t *allowed = NULL;
    if (r->first && r->g->chosen) {
        *s = (QsfSample){ .id = r->g->chosen_id, .p = 1, .kept = 1, .plain = -1 };
        return QSF_OK;
    }
    if (r->held) {
        int rc = qsf_grammar_hold_allowed(&r->hold, qsf_run_split(r), &allowed, err);
        if (rc != QSF_OK) return rc;
    }
    QsfSamplerInput in = { .logits = r->logits,
                           .params = &r->params,
                           .recent = t->ids,
                           .n_recent = t->n_ids,
                           .banned = rt->eog,
                           .n_banned = r->params.ignore_eos || must_answer(r) ? rt->n_eog : 0 };
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

/* With a grammar, a token with the end of reasoning and text of the answer is replaced by that end: the
 * grammar has to choose what follows. */
static int cut_at_answer(const QsfRun *r, int32_t *id, QsfErr *err) {
    const QsfTokenizer *tok = r->t->rt->tok;
    char *piece = r->t->piece;
    const QsfThinkSplit *split = qsf_run_split(r);
    QsfIds ids = { 0 };
    if (r->hold.c == NULL || r->held || split == NULL || split->t->format != QSF_THINK_TAGS ||
        qsf_tokenizer_type(tok, *id) != QSF_TOKEN_NORMAL)
        return QSF_OK;
    size_t len = qsf_tokenizer_piece(tok, *id, false, piece, QSF_TIMELINE_PIECE);
    if (len > QSF_TIMELINE_PIECE) len = QSF_TIMELINE_PIECE;
    const size_t n = qsf_think_rest(split, piece, len);
    if (n + qsf_think_blanks(piece + n, len - n) == len) return QSF_OK;
    const int rc = qsf_tokenizer_encode(tok, piece, n, QSF_TOK_NO_PREFIX, &ids, err);
    if (rc == QSF_OK && ids.n > 0) *id = ids.data[0];
    qsf_ids_free(&ids);
    return rc;
}

/* Takes a token that closes reasoning instead of the sampled one, if it is time. */
static bool close_reasoning(QsfRun *r, QsfSample *s) {
    const QsfRuntime *rt = r->t->rt;
    if (r->first && r->g->chosen) return false;
    const bool now = r->g->answer_now != NULL && r->g->answer_now(r->g->arg);
    const int32_t id = qsf_reasoning_limit_next(&r->limit, &r->params, r->logits,
                                                qsf_tokenizer_n_vocab(rt->tok), s->id,
                                                r->out->reasoning_tokens, qsf_run_reasons(r), now);
    if (id < 0) return false;
    *s = (QsfSample){ .id = id, .p = 1, .entropy = s->entropy, .kept = 1, .plain = s->plain };
    if (!r->out->reasoning_cut && r->g->reasoning_cut != NULL)
        r->g->reasoning_cut(r->g->arg, r->out->reasoning_tokens);
    r->out->reasoning_cut = true;
    return true;
}

static bool is_long(const QsfRun *r) {
    const uint32_t n = r->out->tokens;
    return (r->params.max_tokens > 0 && n >= (uint32_t)r->params.max_tokens) ||
           (r->g->max_tokens > 0 && n >= r->g->max_tokens);
}

void qsf_run_look(QsfRun *r, const float *logits, int32_t id, float plain) {
    QSFToken token;
    if (r->why.id != id) r->why = (QSFWhy){ .id = id, .decided = -1, .random = -1 };
    if (r->g->why != NULL) r->g->why(r->g->arg, &r->why);
    const uint32_t n = r->g->n_candidates > 0 ? r->g->n_candidates : QSF_CANDIDATES;
    const bool known = qsf_sampler_look_why(&r->why, n, &token);
    r->why.id = -1;
    if (r->g->token == NULL) return;
    if (!known) qsf_sampler_look(r->t->rt->sampler, logits, id, plain, n, &token);
    token.text_end = r->out->text_bytes;
    token.reasoning_end = r->out->reasoning_bytes;
    r->g->token(r->g->arg, &token);
}

int qsf_run_add(QsfRun *r, int32_t id, QsfErr *err) {
    QsfTimeline *t = r->t;
    int rc = qsf_grammar_hold_take(&r->hold, t->rt, qsf_run_split(r), &r->detok, id, t->piece,
                                   QSF_TIMELINE_PIECE, err);
    if (rc != QSF_OK) return rc;
    r->out->tokens++;
    r->out->last_id = id;
    qsf_token_rules_wrote(&r->rules, id);
    qsf_run_deliver(r, id);
    return QSF_OK;
}

/* Positions that still fit. In a pass whose positions may be taken back, those that were evaluated count only
 * as far as they stay. */
static uint32_t room(const QsfRun *r) {
    return r->verifies ? r->room - (r->t->n_ids - r->past) : qsf_forward_room(r->t->rt->fwd);
}

uint32_t qsf_run_left(const QsfRun *r) {
    const uint32_t n = r->out->tokens;
    uint32_t most = qsf_timeline_evicts(r->t) ? UINT32_MAX : room(r) + 1;
    if (r->params.max_tokens > 0 && (uint32_t)r->params.max_tokens - n < most)
        most = (uint32_t)r->params.max_tokens - n;
    if (r->g->max_tokens > 0 && r->g->max_tokens - n < most) most = r->g->max_tokens - n;
    return most;
}

bool qsf_run_is_whole(const QsfRun *r) {
    const QsfQualityWish all = { .value = 1 };
    return qsf_quality_wish_equal(&all, &r->t->quality);
}

/* How many tokens without a choice may be taken at once: 0 where an answer leaves something out. */
static uint32_t room_for_forced(const QsfRun *r) {
    const QsfTimeline *t = r->t;
    if (!r->held || (r->first && r->g->chosen) || qsf_timeline_evicts(t) || !qsf_run_is_whole(r)) return 0;
    uint32_t most = QSF_GRAMMAR_HOLD_IDS < t->cap - t->n_ids ? QSF_GRAMMAR_HOLD_IDS : t->cap - t->n_ids;
    if (qsf_run_left(r) - 1 < most) most = qsf_run_left(r) - 1;
    return most;
}

/* May a token that ends the answer be chosen? */
static bool may_end(QsfRun *r) {
    const QsfRuntime *rt = r->t->rt;
    for (size_t i = 0; !r->params.ignore_eos && i < rt->n_eog; i++)
        if (qsf_token_rules_allow(&r->rules, &rt->eog[i], 1) == 1) return true;
    return false;
}

/* What a grammar leaves no choice about: *n tokens to ids, or the end of the answer. */
static int without_choice(QsfRun *r, int32_t *ids, uint32_t *n, QsfErr *err) {
    const uint32_t most = room_for_forced(r);
    if (r->hold.closing && r->hold.at == r->hold.n) {
        qsf_run_end(r, QSF_STOP_LENGTH);
        return QSF_OK;
    }
    int rc = qsf_token_rules_update(&r->rules, &r->params, err);
    if (rc == QSF_OK && qsf_grammar_hold_is_over(&r->hold) && !may_end(r)) {
        qsf_run_end(r, QSF_STOP_EOS);
        return QSF_OK;
    }
    if (rc == QSF_OK && most >= 2) rc = qsf_grammar_hold_forced(&r->hold, r->t->rt, ids, most, n, err);
    return rc;
}

int qsf_run_turn(QsfRun *r, int32_t *ids, uint32_t *n, QsfErr *err) {
    *n = 0;
    r->held = qsf_grammar_hold_counts(&r->hold, qsf_run_split(r), &r->detok);
    return r->held ? without_choice(r, ids, n, err) : QSF_OK;
}

/* The token that comes next. */
static int choose(QsfRun *r, QsfSample *s, QsfErr *err) {
    QsfGrammarHold *h = &r->hold;
    *s = (QsfSample){ .p = 1, .kept = 1, .plain = -1 };
    if (r->held && h->closing) {
        s->id = h->ids[h->at++];
        return QSF_OK;
    }
    int rc = sample(r, s, err);
    if (rc != QSF_OK || !r->held || (r->first && r->g->chosen)) return rc;
    rc = qsf_grammar_hold_limit(h, r->t->rt, qsf_run_left(r), &s->id, err);
    if (h->finished) qsf_run_end(r, QSF_STOP_LENGTH);
    return rc;
}

bool qsf_run_goes_on(QsfRun *r) {
    if (is_long(r)) qsf_run_end(r, QSF_STOP_LENGTH);
    if (room(r) == 0 && !qsf_timeline_evicts(r->t)) qsf_run_end(r, QSF_STOP_CONTEXT);
    if (qsf_run_cancelled(r)) qsf_run_end(r, QSF_STOP_INTERRUPTED);
    return !r->done;
}

int qsf_run_next(QsfRun *r, int32_t *id, QsfErr *err) {
    QsfSample s;
    int rc = choose(r, &s, err);
    if (rc != QSF_OK || r->done) return rc;
    const bool closes = r->splits && close_reasoning(r, &s);
    if (!closes && (rc = cut_at_answer(r, &s.id, err)) != QSF_OK) return rc;
    if (r->first) r->out->ttft_ns = qsf_now_ns() - r->start_ns;
    r->first = false;
    *id = s.id;
    const bool last = !closes && !r->params.ignore_eos && qsf_runtime_ends(r->t->rt, s.id);
    if (!last && r->g->tick != NULL) r->g->tick(r->g->arg, &s);
    if (!last) rc = qsf_run_add(r, s.id, err);
    if (rc != QSF_OK) return rc;
    qsf_run_look(r, r->logits, s.id, s.plain);
    if (last) qsf_run_end(r, QSF_STOP_EOS);
    (void)(last || qsf_run_goes_on(r));
    return QSF_OK;
}
