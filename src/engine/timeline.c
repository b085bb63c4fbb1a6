/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prefill after the common prefix, then the token loop. The loop allocates nothing: the detokenizer and the
 * stop strings use buffers allocated before it. */
#include "src/engine/timeline.h"

#include <string.h>

#include "src/base/clock.h"
#include "src/engine/memory_pressure.h"
#include "src/engine/prompt.h"
#include "src/engine/quality/quality.h"
#include "src/engine/reasoning_limit.h"
#include "src/engine/stopper.h"
#include "src/engine/token_rules.h"
#include "src/sample/rng.h"

#define NAME     "token ids of the conversation"
#define MORE_IDS 16384u /* when their memory grows */

/* One running generation. */
typedef struct Run {
    QsfTimeline *t;
    const QsfGenerate *g;
    QsfGeneration *out;
    QsfDetok detok;
    QsfThinkSplit split;
    bool splits; /* the output has more than an answer */
    QsfStopper stopper;
    QsfReasoningLimit limit;
    QsfTokenRules rules;
    QSFWhy why;
    bool hides; /* reasoning was closed: more of it is not emitted */
    int32_t id; /* the token whose text is emitted next, -1 after it was emitted */
    QSFParams params;
    bool first;                 /* no token was sampled yet */
    uint64_t start_ns, evicted; /* evicted: positions, before this generation */
    bool done;                  /* out->stop says why */
    bool refused;               /* the text callback stopped the generation */
} Run;

static void set_memory(QsfTimeline *t, void *mem, uint64_t bytes) {
    t->bytes = bytes;
    t->piece = mem; /* first, so that the ids can grow */
    t->ids = (int32_t *)(void *)((char *)mem + QSF_TIMELINE_PIECE);
    t->cap = (uint32_t)((bytes - QSF_TIMELINE_PIECE) / sizeof *t->ids);
}

int qsf_timeline_init(QsfTimeline *t, QsfRuntime *rt, QsfErr *err) {
    void *p;
    memset(t, 0, sizeof *t);
    t->rt = rt;
    t->quality = (QsfQualityWish){ .value = 1 };
    uint64_t bytes = qsf_plan_timeline_bytes(rt->plan.wanted_ctx);
    int rc = qsf_mem_map(&rt->ledger, QSF_MEM_TRANSCRIPT, bytes, NAME, &p, err);
    if (rc != QSF_OK) return rc;
    set_memory(t, p, bytes);
    return QSF_OK;
}

static bool evicts(const QsfTimeline *t) { return qsf_forward_evicts(t->rt->fwd); }

/* Gives the ids the memory for n. The ledger must not be frozen. */
static int resize(QsfTimeline *t, size_t n, QsfErr *err) {
    void *mem = t->piece;
    const uint64_t bytes = qsf_plan_timeline_bytes((uint32_t)n);
    int rc = qsf_mem_resize(&t->rt->ledger, QSF_MEM_TRANSCRIPT, t->bytes, bytes, NAME, &mem, err);
    if (rc == QSF_OK) set_memory(t, mem, bytes);
    return rc;
}

int qsf_timeline_grow(QsfTimeline *t, size_t n, QsfErr *err) {
    return n <= t->cap ? QSF_OK : resize(t, n + MORE_IDS, err);
}

void qsf_timeline_free(QsfTimeline *t) {
    if (t->piece != NULL) qsf_mem_unmap(&t->rt->ledger, QSF_MEM_TRANSCRIPT, t->piece, t->bytes);
    memset(t, 0, sizeof *t);
}

int qsf_timeline_fit(QsfTimeline *t, QsfErr *err) {
    const uint32_t ctx = t->rt->plan.wanted_ctx;
    return resize(t, ctx > t->n_ids ? ctx : t->n_ids, err);
}

void qsf_timeline_cut(QsfTimeline *t, uint32_t n) {
    if (t->n_ids > n) t->n_ids = qsf_forward_truncate(t->rt->fwd, n);
}

/* Updates n_ids after an evaluation; the forward pass knows how many of the tokens reached the cache. */
static void store_evaluated(QsfTimeline *t, const int32_t *ids, uint32_t at) {
    uint32_t past = qsf_forward_n_past(t->rt->fwd);
    if (past > at) memcpy(t->ids + at, ids, (past - at) * sizeof *ids);
    t->n_ids = past;
}

/* Positions that lack something are evaluated again. */
uint32_t qsf_timeline_reusable(const QsfTimeline *t, const int32_t *ids, size_t n) {
    const uint32_t exact = qsf_forward_exact(t->rt->fwd), most = exact < t->n_ids ? exact : t->n_ids;
    uint32_t keep = 0;
    while (keep < most && (size_t)keep + 1 < n && t->ids[keep] == ids[keep]) keep++;
    return qsf_forward_keeps(t->rt->fwd, keep);
}

int qsf_timeline_prefill(QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *reused, QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    uint32_t ctx = qsf_forward_ctx(f);
    if (reused != NULL) *reused = 0;
    if (n == 0) return qsf_err_set(err, QSF_E_USAGE, "the prompt is empty");
    if (n > ctx && !evicts(t)) return qsf_prompt_too_long(t->rt, n, false, err);
    int rc = qsf_timeline_grow(t, n, err);
    if (rc != QSF_OK) return rc;
    const uint32_t keep = qsf_forward_truncate(f, qsf_timeline_reusable(t, ids, n));
    t->n_ids = keep;
    if (reused != NULL) *reused = keep;
    qsf_forward_expect(f, (uint32_t)(n - keep));
    qsf_ledger_freeze(&t->rt->ledger);
    const size_t apart = t->last_apart && n - keep > 2 ? n - 1 : keep; /* evaluated before the rest */
    rc = qsf_forward_eval(f, ids + keep, apart - keep, NULL, NULL, err);
    if (rc == QSF_OK) rc = qsf_forward_eval(f, ids + apart, n - apart, NULL, NULL, err);
    qsf_ledger_thaw(&t->rt->ledger);
    store_evaluated(t, ids + keep, keep);
    return rc;
}

int qsf_timeline_ahead(QsfTimeline *t, const int32_t *ids, size_t n, const QsfAhead *o, uint32_t *kept,
                       QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    const uint32_t same = qsf_timeline_reusable(t, ids, n + 1);
    *kept = t->n_ids;
    o->progress(o->arg, same);
    if (n - same < o->least) return QSF_OK;
    *kept = t->n_ids = qsf_forward_truncate(f, same);
    qsf_forward_expect(f, (uint32_t)(n - *kept));
    int rc = QSF_OK;
    while (rc == QSF_OK && n - t->n_ids >= o->least) {
        const uint32_t at = t->n_ids, spare = qsf_forward_spare(f);
        /* No rest of less than `least`, unless only whole pieces are worth it. */
        const uint32_t with_rest = o->piece + (o->least < o->piece ? o->least - 1 : 0);
        const size_t left = n - at, m = left <= with_rest ? left : o->piece;
        if (spare < m) break;
        rc = qsf_forward_eval(f, ids + at, m, NULL, NULL, err);
        store_evaluated(t, ids + at, at);
        o->progress(o->arg, t->n_ids);
    }
    return rc;
}

static bool cancelled(const Run *r) {
    const atomic_int *c = r->t->rt->cancel;
    return c != NULL && atomic_load(c) != 0;
}

static void end(Run *r, QSFStop stop) {
    if (r->done) return;
    r->done = true;
    r->out->stop = stop;
}

/* Only the first text of a token carries its id. */
static void emit(Run *r, bool reasoning, const char *text, size_t len) {
    int (*to)(void *, int32_t, const char *, size_t) = reasoning ? r->g->reasoning : r->g->text;
    int32_t id = r->id;
    r->id = -1;
    *(reasoning ? &r->out->reasoning_bytes : &r->out->text_bytes) += (uint32_t)len;
    if (to == NULL || r->refused || (len == 0 && id < 0) || to(r->g->arg, id, text, len) == 0) return;
    r->refused = true;
    end(r, QSF_STOP_INTERRUPTED);
}

/* Receives text that is known to be reasoning or answer. */
static void on_part(void *arg, bool reasoning, const char *text, size_t len) {
    Run *r = arg;
    if (r->stopper.hit) return;
    /* White space after a block is passed to the reader as its end. */
    if (reasoning && r->hides && qsf_think_blanks(text, len) < len) return;
    if (!reasoning) text = qsf_stopper_feed(&r->stopper, text, len, &len);
    if (r->stopper.hit) end(r, QSF_STOP_STRING);
    if (len > 0) emit(r, reasoning, text, len);
}

static void feed_text(Run *r, size_t len) {
    if (r->splits)
        qsf_think_feed(&r->split, r->t->piece, len, on_part, r);
    else
        on_part(r, false, r->t->piece, len);
}

static bool in_reasoning(const Run *r) { return r->splits && qsf_think_inside(&r->split); }

/* A control or user-defined token may be a part of the format, whether it is shown or not. */
static void feed_token(Run *r, int32_t id, QsfTokenType type) {
    QsfTimeline *t = r->t;
    const bool hidden = type != QSF_TOKEN_USER;
    feed_text(r, qsf_detok_flush(&r->detok, t->piece, QSF_TIMELINE_PIECE));
    size_t n = qsf_detok_feed(&r->detok, id, t->piece, QSF_TIMELINE_PIECE);
    if (hidden) n = qsf_tokenizer_piece(t->rt->tok, id, true, t->piece, QSF_TIMELINE_PIECE);
    if (n > QSF_TIMELINE_PIECE) n = QSF_TIMELINE_PIECE;
    qsf_think_feed_token(&r->split, t->piece, n, hidden, on_part, r);
    if (r->split.ended) end(r, QSF_STOP_EOS);
}

/* Emits the decided text of a token. */
static void deliver(Run *r, int32_t id) {
    QsfTimeline *t = r->t;
    const bool before = in_reasoning(r);
    const QsfTokenType type = qsf_tokenizer_type(t->rt->tok, id);
    r->id = id;
    if (r->splits && (type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER))
        feed_token(r, id, type);
    else
        feed_text(r, qsf_detok_feed(&r->detok, id, t->piece, QSF_TIMELINE_PIECE));
    const bool reasoned = before || in_reasoning(r);
    r->out->reasoning_tokens += reasoned;
    r->out->hidden_tokens += reasoned && r->hides;
    if (r->limit.cut && !in_reasoning(r)) r->hides = true;
    if (r->id >= 0) emit(r, false, "", 0);
}

/* Emits what the detokenizer, tags and stop strings still hold back; after a stop string it is discarded. */
static void flush(Run *r) {
    size_t n;
    r->id = -1;
    r->out->thinking = in_reasoning(r);
    if (r->stopper.hit) return;
    feed_text(r, qsf_detok_flush(&r->detok, r->t->piece, QSF_TIMELINE_PIECE));
    if (r->splits) qsf_think_flush(&r->split, on_part, r);
    if (r->stopper.hit) {
        r->out->stop = QSF_STOP_STRING;
        return;
    }
    const char *text = qsf_stopper_flush(&r->stopper, &n);
    if (n > 0) emit(r, false, text, n);
}

static int sample(Run *r, QsfSample *s, QsfErr *err) {
    const QsfTimeline *t = r->t;
    const QsfRuntime *rt = t->rt;
    if (r->first && r->g->chosen) {
        *s = (QsfSample){ .id = r->g->chosen_id, .p = 1, .kept = 1, .plain = -1 };
        return QSF_OK;
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
    return qsf_sampler_next(rt->sampler, &in, s, err);
}

/* Takes a token that closes reasoning instead of the sampled one, if it is time. */
static bool close_reasoning(Run *r, QsfSample *s) {
    const QsfRuntime *rt = r->t->rt;
    if (r->first && r->g->chosen) return false;
    const bool now = r->g->answer_now != NULL && r->g->answer_now(r->g->arg);
    const int32_t id = qsf_reasoning_limit_next(&r->limit, &r->params, qsf_forward_logits(rt->fwd),
                                                qsf_tokenizer_n_vocab(rt->tok), s->id,
                                                r->out->reasoning_tokens, in_reasoning(r), now);
    if (id < 0) return false;
    *s = (QsfSample){ .id = id, .p = 1, .entropy = s->entropy, .kept = 1, .plain = s->plain };
    if (!r->out->reasoning_cut && r->g->reasoning_cut != NULL)
        r->g->reasoning_cut(r->g->arg, r->out->reasoning_tokens);
    r->out->reasoning_cut = true;
    return true;
}

/* Tells what was evicted since the last call. */
static void note_evictions(Run *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->t->rt->fwd, &s);
    const uint64_t more = s.evicted - r->evicted - r->out->evicted;
    if (more == 0) return;
    r->out->evicted += more;
    if (r->g->evicted != NULL) r->g->evicted(r->g->arg, more);
}

static bool is_long(const Run *r) {
    const uint32_t n = r->out->tokens;
    return (r->params.max_tokens > 0 && n >= (uint32_t)r->params.max_tokens) ||
           (r->g->max_tokens > 0 && n >= r->g->max_tokens);
}

/* Passes on what the model says about a token, given the logits before it. */
static void look(Run *r, const float *logits, int32_t id, float plain) {
    QSFToken token;
    if (r->why.id != id) r->why = (QSFWhy){ .id = id, .decided = -1, .random = -1 };
    if (r->g->why != NULL) r->g->why(r->g->arg, &r->why);
    r->why.id = -1;
    if (r->g->token == NULL) return;
    qsf_sampler_look(r->t->rt->sampler, logits, id, plain, &token);
    token.text_end = r->out->text_bytes;
    token.reasoning_end = r->out->reasoning_bytes;
    r->g->token(r->g->arg, &token);
}

/* Counts a token of the answer and emits its text. */
static void add(Run *r, int32_t id) {
    r->out->tokens++;
    r->out->last_id = id;
    qsf_token_rules_wrote(&r->rules, id);
    deliver(r, id);
}

/* Samples, emits and evaluates one token. */
static int step(Run *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    QsfForward *f = t->rt->fwd;
    QsfSample s;
    int rc = sample(r, &s, err);
    if (rc != QSF_OK) return rc;
    const bool closes = r->splits && close_reasoning(r, &s);
    const int32_t id = s.id;
    if (r->first) r->out->ttft_ns = qsf_now_ns() - r->start_ns;
    r->first = false;
    const bool last = !closes && !r->params.ignore_eos && qsf_runtime_ends(t->rt, id);
    if (!last && r->g->tick != NULL) r->g->tick(r->g->arg, &s);
    if (!last) add(r, id);
    look(r, qsf_forward_logits(f), id, s.plain);
    if (last) end(r, QSF_STOP_EOS);
    if (last) return QSF_OK;
    if (is_long(r)) end(r, QSF_STOP_LENGTH);
    if (qsf_forward_room(f) == 0 && !evicts(t)) end(r, QSF_STOP_CONTEXT);
    if (cancelled(r)) end(r, QSF_STOP_INTERRUPTED);
    if (r->done) return QSF_OK;
    rc = qsf_forward_decode(f, &id, 1, NULL, NULL, err);
    store_evaluated(t, &id, t->n_ids);
    return rc;
}

static void relieve(Run *r) {
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

static void set_quality(Run *r, const QsfQualityWish *quality) {
    r->t->quality = *quality;
    if (qsf_runtime_quality(r->t->rt, quality) && r->g->quality != NULL) r->g->quality(r->g->arg);
}

/* Reads the parameters for the next token. */
static int follow_params(Run *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    r->g->params(r->g->arg, &r->params);
    const QsfQualityWish quality = qsf_quality_of(&r->params);
    if (qsf_quality_wish_equal(&quality, &t->quality) && !r->first)
        return QSF_OK; /* the prompt has shown more of what matters */
    int rc = qsf_quality_wishes_more(&t->quality, &quality) || evicts(t) ? restore(t, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    qsf_ledger_thaw(&t->rt->ledger);
    set_quality(r, &quality);
    qsf_ledger_freeze(&t->rt->ledger);
    return QSF_OK;
}

static int between(Run *r, QsfErr *err) {
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

static int loop(Run *r, QsfErr *err) {
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
static const int32_t *begun(const Run *r) { return r->g->prompt + (r->g->n_prompt - r->g->begun); }

/* The logits at a position are what the model says about the next token. */
static void on_scored(void *arg, uint32_t pos, const float *logits) {
    Run *r = arg;
    (void)pos;
    const int32_t id = begun(r)[r->out->tokens];
    const bool last = r->out->tokens + 1 == r->g->begun;
    if (!last || !qsf_runtime_ends(r->t->rt, id)) add(r, id); /* one that ended it has no text */
    look(r, logits, id, -1);
}

/* Evaluates the tokens that are begun, but the last one, which is only looked at. */
static int score(Run *r, QsfErr *err) {
    QsfTimeline *t = r->t;
    const uint32_t n = r->g->begun;
    if (n == 0) return QSF_OK;
    int rc = qsf_timeline_grow(t, r->g->n_prompt, err);
    if (rc != QSF_OK) return rc;
    qsf_ledger_freeze(&t->rt->ledger);
    on_scored(r, 0, qsf_forward_logits(t->rt->fwd));
    rc = qsf_forward_eval(t->rt->fwd, begun(r), n - 1, on_scored, r, err);
    store_evaluated(t, begun(r), t->n_ids);
    qsf_ledger_thaw(&t->rt->ledger);
    if (rc == QSF_OK) end(r, QSF_STOP_LENGTH);
    return rc;
}

/* Emits the text of the tokens that are begun, and generates the others. */
static int go_on(Run *r, QsfErr *err) {
    for (uint32_t i = 0; i < r->g->begun; i++) add(r, begun(r)[i]);
    return loop(r, err);
}

static int run(Run *r, QsfErr *err) {
    const QsfGenerate *g = r->g;
    const size_t n = g->n_prompt - (g->score ? g->begun : 0);
    int rc = qsf_timeline_prefill(r->t, g->prompt, n, &r->out->reused_tokens, err);
    r->out->prefill_ns = qsf_now_ns() - r->start_ns;
    if (rc == QSF_OK && g->tick != NULL) g->tick(g->arg, NULL);
    if (rc == QSF_OK && r->splits && g->think.opened[0] != '\0')
        emit(r, true, g->think.opened, strlen(g->think.opened));
    if (rc == QSF_OK) rc = g->score ? score(r, err) : go_on(r, err);
    if (rc == QSF_E_INTERRUPTED) {
        qsf_err_clear(err);
        end(r, QSF_STOP_INTERRUPTED);
        rc = QSF_OK;
    }
    flush(r);
    return rc;
}

/* One piece of output is at most a token's text, or what the split held back. */
static int open_filters(Run *r, QsfErr *err) {
    const QsfGenerate *g = r->g;
    r->splits = g->reasoning != NULL && g->think.split.t != NULL &&
                g->think.split.t->format != QSF_THINK_NONE;
    if (r->splits) r->split = g->think.split;
    const size_t longest = r->splits ? qsf_think_piece_max(QSF_TIMELINE_PIECE) : QSF_TIMELINE_PIECE;
    return qsf_stopper_open(&r->stopper, g->stop, g->n_stop, longest, err);
}

int qsf_timeline_generate(QsfTimeline *t, const QsfGenerate *g, QsfGeneration *out, QsfErr *err) {
    QsfErr own = { 0 };
    if (err == NULL) err = &own;
    Run r = { .t = t, .g = g, .out = out, .id = -1, .first = true, .start_ns = qsf_now_ns() };
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
