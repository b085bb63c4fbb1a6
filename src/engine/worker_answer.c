/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the engine thread answers a request. */
#include <stdio.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/base/utf8.h"
#include "src/engine/prompt.h"
#include "src/engine/tool_choice.h"
#include "src/engine/worker_impl.h"
#include "src/forward/routes.h"

static void on_params(void *arg, QSFParams *out) { qsf_worker_get_params(arg, out); }

static int emit_text(QSFWorker *w, QSFEventType type, int32_t id, const char *text, size_t len) {
    if (id >= 0) w->unreported++;
    if (len == 0) return 0;
    QSFEvent e = {
        .type = type, .request = w->running, .text = text, .text_len = len, .tokens = w->unreported
    };
    w->unreported = 0;
    qsf_events_push(&w->events, &e, NULL);
    return 0;
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    return emit_text(arg, QSF_EVENT_TEXT, id, text, len);
}

static int on_reasoning(void *arg, int32_t id, const char *text, size_t len) {
    return emit_text(arg, QSF_EVENT_REASONING, id, text, len);
}

/* Instead of on_reasoning, so that reasoning is told from the answer all the same. */
static int on_nothing(void *arg, int32_t id, const char *text, size_t len) {
    (void)arg, (void)id, (void)text, (void)len;
    return 0;
}

static void on_tick(void *arg, const QsfSample *s) {
    QSFWorker *w = arg;
    QSFParams p;
    if (s == NULL) {
        qsf_live_stats_decode(&w->stats, qsf_forward_kept(w->rt.fwd));
        return;
    }
    qsf_worker_get_params(w, &p);
    qsf_live_stats_token(&w->stats, s, qsf_forward_kept(w->rt.fwd), p.max_tokens);
}

/* A sentence about positions that were evicted. */
static void emit_evicted(QSFWorker *w, uint64_t n) {
    char text[96];
    const int len = qsf_plural_snprintf(text, sizeof text, "%llu tokens left the context (%s)",
                                        (unsigned long long)n, w->rt.settings.eviction);
    QSFEvent e = { .type = QSF_EVENT_EVICTED,
                   .request = w->running,
                   .text = text,
                   .text_len = (size_t)len,
                   .evicted = (uint32_t)n };
    qsf_events_push(&w->events, &e, NULL);
}

static void on_evicted(void *arg, uint64_t n) { emit_evicted(arg, n); }

static void on_memory(void *arg, const char *text) { qsf_worker_emit(arg, QSF_EVENT_NOTICE, text); }

static bool on_answer_now(void *arg) { return atomic_load(&((QSFWorker *)arg)->answer_now); }

static void on_reasoning_cut(void *arg, uint32_t tokens) {
    char text[96];
    qsf_plural_snprintf(text, sizeof text, "thinking was cut after %u tokens", tokens);
    qsf_worker_emit(arg, QSF_EVENT_NOTICE, text);
}

static void on_why(void *arg, const QSFWhy *why) { qsf_answer_tokens_why(&((QSFWorker *)arg)->tokens, why); }

static void on_token(void *arg, const QSFToken *t) {
    QSFWorker *w = arg;
    qsf_answer_tokens_add(&w->tokens, t);
    if (w->scoring != NULL && w->scoring->scored != NULL) w->scoring->scored(w->scoring->scored_arg, t);
}

static void on_between(void *arg) { qsf_worker_do_pending_replan(arg); }

static void on_quality(void *arg) {
    QSFWorker *w = arg;
    qsf_live_stats_plan(&w->stats, qsf_forward_kept(w->rt.fwd));
    qsf_worker_publish_plan(w);
}

/* Reports, once per template, that the setting reasoning does not do what it says. */
static void note_reasoning(QSFWorker *w, const QSFParams *p) {
    const char *note = qsf_chat_reasoning_note(w->rt.tmpl, p->reasoning);
    if (note == NULL || w->rt.reasoning_noted) return;
    w->rt.reasoning_noted = true;
    qsf_worker_emit(w, QSF_EVENT_NOTICE, note);
}

/* Reports that the template leaves out a message: the newest one always, others once per template. */
static void note_lost(QSFWorker *w, const QsfRequestCopy *r, size_t lost) {
    char text[400];
    if (lost == 0 || (lost < r->n_messages && w->rt.lost_noted)) return;
    w->rt.lost_noted = w->rt.lost_noted || lost < r->n_messages;
    qsf_chat_lost_note(w->rt.tmpl, r->messages, r->n_messages, lost, text, sizeof text);
    qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
}

/* Says why the messages were not copied. */
static int refuse_text(QSFWorker *w, const QsfRequestCopy *r, QsfErr *err) {
    const uint64_t bytes = (uint64_t)r->text_bytes * QSF_REQUEST_BYTES + r->held;
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the conversation",
                                err);
    if (rc != QSF_OK) return rc;
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes); /* there is space now */
    return qsf_err_set(err, QSF_E_BUDGET,
                       "the text of the conversation did not fit in the RAM budget: ask again");
}

/* A prompt of tokens, while its copy is charged as texts are. */
static int take_ids(QSFWorker *w, const QsfRequestCopy *r, QsfIds *ids, QsfThinkPrompt *where, QsfErr *err) {
    const uint64_t bytes = r->text_bytes * (uint64_t)QSF_REQUEST_BYTES;
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the tokens of the prompt", err);
    if (rc == QSF_OK) {
        ids->ledger = &w->rt.ledger;
        rc = qsf_prompt_take_ids(&w->rt, r, ids, where, err);
        qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
    }
    return rc == QSF_E_BUDGET ? qsf_prompt_advise(&w->rt, bytes + r->n_tokens * sizeof *ids->data, err) : rc;
}

/* The prompt, while the texts of the owner are charged. */
static int encode_beside(QSFWorker *w, const QsfRequestCopy *r, unsigned flags, QsfIds *ids,
                         QsfThinkPrompt *where, QsfErr *err) {
    if (r->refused > 0) {
        (void)refuse_text(w, r, err);
        return qsf_prompt_advise(&w->rt, r->refused, err);
    }
    int rc = qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, r->held, "the text of the conversation",
                                err);
    if (rc != QSF_OK) return qsf_prompt_advise(&w->rt, r->text_bytes * (uint64_t)QSF_REQUEST_BYTES, err);
    rc = qsf_prompt_has_ids(r)
             ? take_ids(w, r, ids, where, err)
             : qsf_prompt_encode(&w->rt, r->messages, r->n_messages, flags, ids, where, err);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, r->held);
    return rc;
}

int qsf_worker_encode(QSFWorker *w, const QsfRequestCopy *r, QsfIds *ids, QsfThinkPrompt *where,
                      QsfErr *err) {
    QSFParams p;
    qsf_worker_get_params(w, &p);
    w->rt.needed = w->rt.left = 0;
    w->rt.text_held = r->held;
    int rc = encode_beside(w, r, qsf_request_chat_flags(r, &p), ids, where, err);
    w->rt.text_held = 0;
    return rc;
}

static int encode(QSFWorker *w, const QsfRequestCopy *r, QsfIds *ids, QsfThinkPrompt *where, QsfErr *err) {
    QSFParams p;
    qsf_worker_get_params(w, &p);
    if (r->refused == 0) note_reasoning(w, &p);
    int rc = qsf_worker_encode(w, r, ids, where, err);
    if (rc == QSF_OK) note_lost(w, r, where->lost);
    if (rc == QSF_OK) qsf_worker_set_lead(w, r, ids);
    return rc;
}

void qsf_worker_set_lead(QSFWorker *w, const QsfRequestCopy *r, const QsfIds *ids) {
    QsfRuntime *rt = &w->rt;
    QSFParams p;
    qsf_worker_get_params(w, &p);
    const bool evicts = qsf_forward_evicts(rt->fwd);
    uint32_t n = qsf_system_tokens(rt, r->messages, r->n_messages, qsf_request_chat_flags(r, &p), ids);
    qsf_runtime_protect(rt, n);
    if (evicts || (qsf_plan_streams(&rt->plan) && n < rt->plan.batch)) n = 0;
    qsf_timeline_lead(&w->timeline, n);
}

/* Memory per token while the exact text is made. */
#define BYTES_PER_TOKEN 32u

/* Appends the exact text of the tokens that were generated. false: there is none, or no memory. */
static bool add_generated(QSFWorker *w, const QsfIds *prompt, const QsfGeneration *g, bool continues,
                          QsfStrbuf *out, bool *special) {
    const QsfTimeline *t = &w->timeline;
    QsfIds ids = { 0 };
    QsfErr err = { 0 };
    const size_t cached = t->n_ids > prompt->n ? t->n_ids - prompt->n : 0;
    const size_t n = cached < g->tokens ? cached : g->tokens;
    if (n + 1 < g->tokens) return false; /* a context that became smaller lost some */
    bool ok = qsf_ids_append(&ids, t->ids + prompt->n, n, &err) == QSF_OK &&
              (n == g->tokens || qsf_ids_push(&ids, g->last_id, &err) == QSF_OK) &&
              qsf_exact_add(w->rt.tok, ids.data, ids.n, continues, t->piece, QSF_TIMELINE_PIECE, out,
                            special);
    qsf_ids_free(&ids);
    return ok;
}

/* Appends the exact text that the prompt ends with, if it continues an answer. false: it is not known. */
static bool add_continued(const QsfMsg *last, const QsfThinkPrompt *where, QsfStrbuf *out) {
    const QsfThinkFormat format = where->split.t->format;
    if (where->exact) {
        qsf_strbuf_add(out, last->exact, last->exact_len);
    } else if (last != NULL) {
        if (last->reasoning_len > 0 || (format != QSF_THINK_NONE && format != QSF_THINK_TAGS)) return false;
        if (last->len > 0) qsf_strbuf_add(out, last->content, last->len);
    }
    return qsf_strbuf_ok(out);
}

/* A prompt, and how its answer begins. */
typedef struct Asked {
    const QsfRequestCopy *r;
    QsfIds ids; /* of the prompt, and of the begin of the answer */
    QsfThinkPrompt where;
    uint32_t begun; /* the last ids: the answer begins with them */
    QsfStrbuf call; /* the grammar of an answer that has to call a tool */
} Asked;

/* Publishes what an unfinished answer consists of, if its text does not tell. */
static void publish_exact(QSFWorker *w, const Asked *q, const QsfGeneration *g) {
    const QsfRequestCopy *r = q->r;
    const QsfIds prompt = { .data = q->ids.data, .n = q->ids.n - q->begun };
    const QsfMsg *last = r->continue_last && r->n_messages > 0 ? &r->messages[r->n_messages - 1] : NULL;
    uint64_t bytes = (uint64_t)g->tokens * BYTES_PER_TOKEN + (last != NULL ? last->len + last->exact_len : 0);
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    bool special = false;
    if (g->stop == QSF_STOP_EOS || g->stop == QSF_STOP_STRING || g->tokens == 0) return;
    if (qsf_ledger_reserve(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the answer", &err) !=
        QSF_OK)
        return;
    bool ok = add_continued(last, &q->where, &b) &&
              add_generated(w, &prompt, g, w->rt.tmpl == NULL || r->raw || last != NULL, &b, &special);
    if (ok && (q->where.exact || special)) qsf_worker_set_text(w, &w->text_answer, qsf_strbuf_take(&b, NULL));
    qsf_strbuf_free(&b);
    qsf_ledger_release(&w->rt.ledger, QSF_MEM_TRANSCRIPT, bytes);
}

/* Which of the known tokens the answer keeps. One that continues keeps all, if the prompt ends with them. */
static void begin_tokens(QSFWorker *w, const Asked *q) {
    const uint32_t same = qsf_answer_tokens_match(&w->tokens, q->ids.data, q->ids.n);
    if (q->r->score)
        qsf_answer_tokens_begin(&w->tokens, q->r->raw ? 0 : w->running, 0, false);
    else if (q->r->branch > 0)
        qsf_answer_tokens_begin(&w->tokens, w->running, q->begun, false);
    else if (!q->r->continue_last)
        qsf_answer_tokens_begin(&w->tokens, w->running, 0, false);
    else if (same > 0)
        qsf_answer_tokens_begin(&w->tokens, w->running, same, true);
    else
        qsf_answer_tokens_begin(&w->tokens, 0, 0, false);
}

static QsfGenerate generation(QSFWorker *w, const Asked *q, const QsfGrammarText *grammar) {
    const QsfRequestCopy *r = q->r;
    const QsfMsg *last = r->continue_last && !r->score && r->n_messages > 0 ? &r->messages[r->n_messages - 1]
                                                                            : NULL;
    return (QsfGenerate){
        .prompt = q->ids.data,
        .n_prompt = q->ids.n,
        .begun = q->begun,
        .score = r->score,
        .chosen = r->branch > 0,
        .chosen_id = r->branch_id,
        .continues = w->rt.tmpl == NULL || r->raw || (r->continue_last && !r->score),
        .grammar = grammar->text != NULL ? grammar : NULL,
        .written = last != NULL ? last->content : NULL,
        .n_written = last != NULL ? last->len : 0,
        .stop = r->stop,
        .n_stop = r->score ? 0 : r->n_stop,
        .max_tokens = r->max_tokens,
        .params = on_params,
        .text = r->score ? NULL : on_text,
        .reasoning = r->score ? on_nothing : on_reasoning,
        .token = on_token,
        .n_candidates = w->tokens.n_top,
        .why = on_why,
        .n_why = QSF_CANDIDATES,
        .think = q->where,
        .tick = on_tick,
        .between = on_between,
        .evicted = on_evicted,
        .memory = on_memory,
        .quality = on_quality,
        .answer_now = on_answer_now,
        .reasoning_cut = on_reasoning_cut,
        .arg = w,
    };
}

/* Ends a request that did not fail. */
static void end_answer(QSFWorker *w, const QsfGeneration *out) {
    QSFEvent e = {
        .type = QSF_EVENT_DONE,
        .stop = out->stop,
        .tokens = out->tokens,
        .reasoning_tokens = out->reasoning_tokens,
        .thinking = out->thinking,
        .grammar_cut = out->grammar_cut,
        .reasoning_cut = out->reasoning_cut,
        .hidden_tokens = out->hidden_tokens,
        .prompt_tokens = out->prompt_tokens,
        .reused_tokens = out->reused_tokens,
        .seed = out->seed,
        .evicted = (uint32_t)out->evicted,
    };
    qsf_worker_end(w, &e, QSF_STATE_IDLE);
}

/* Tokens with another text are those of another answer: the template may change it, or the vocabulary. */
static int check_scored(QSFWorker *w, const Asked *q, const QsfGeneration *out, QsfErr *err) {
    if (q->r->raw) { /* these are of no answer */
        qsf_answer_tokens_begin(&w->tokens, 0, 0, false);
        return QSF_OK;
    }
    const QsfMsg *last = &q->r->messages[q->r->n_messages - 1];
    const bool given = q->r->n_tokens > 0, stopped = out->stop == QSF_STOP_INTERRUPTED;
    const bool same = out->text_bytes == last->len || (given && out->text_bytes > last->len);
    if (stopped || !same) qsf_answer_tokens_begin(&w->tokens, 0, 0, false);
    if (same && given) qsf_answer_tokens_cut(&w->tokens, (uint32_t)last->len);
    if (stopped || same) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "the tokens of this answer cannot be determined from its text");
}

/* The answer continues without the file, which cannot be written. */
static void report_trace(QSFWorker *w) {
    char text[QSF_ERR_MSG_MAX];
    if (!qsf_routes_failed(w->rt.routes, text, sizeof text)) return;
    text[qsf_utf8_clean(text, strlen(text), false)] = '\0';
    qsf_worker_emit(w, QSF_EVENT_NOTICE, text);
}

static void answer(QSFWorker *w, const Asked *q) {
    const QsfRequestCopy *r = q->r;
    QsfGrammarText grammar = { r->grammar_kind, r->grammar, r->grammar_len };
    if (q->call.len > 0)
        grammar = (QsfGrammarText){ QSF_GRAMMAR_GBNF, qsf_strbuf_str(&q->call), q->call.len };
    const QsfGenerate g = generation(w, q, &grammar);
    const QsfIds *ids = &q->ids;
    QsfGeneration out;
    QsfErr err = { 0 };
    QSFParams p;
    qsf_worker_get_params(w, &p);
    w->ahead_from = UINT32_MAX;
    qsf_forward_stats_reset(w->rt.fwd);
    qsf_worker_snapshot_load(w, r, ids);
    qsf_live_stats_prefill(&w->stats, (uint32_t)ids->n,
                           qsf_timeline_reusable(&w->timeline, ids->data, ids->n), p.max_tokens);
    begin_tokens(w, q);
    const uint64_t reserved = w->rt.hold_reserved;
    w->scoring = r->score ? r : NULL;
    if (r->score && r->raw && r->scored != NULL)
        r->scored(r->scored_arg, &(QSFToken){ .id = ids->data[0], .p = -1 });
    int rc = qsf_timeline_generate(&w->timeline, &g, &out, &err);
    w->scoring = NULL;
    const bool ended = r->score ? q->begun > 0 && qsf_runtime_ends(&w->rt, ids->data[ids->n - 1])
                                : out.stop == QSF_STOP_EOS;
    qsf_answer_tokens_end(&w->tokens, out.text_bytes, out.reasoning_bytes, rc == QSF_OK && ended);
    qsf_live_stats_done(&w->stats, qsf_forward_kept(w->rt.fwd));
    w->snap.due = w->snap.path != NULL;
    if (w->rt.hold_reserved != reserved) qsf_worker_publish_plan(w);
    report_trace(w);
    if (rc == QSF_OK && r->score) rc = check_scored(w, q, &out, &err);
    if (rc != QSF_OK) {
        qsf_worker_check_stale(w);
        qsf_worker_fail(w, &err);
        return;
    }
    if (!r->score) publish_exact(w, q, &out);
    end_answer(w, &out);
}

/* The tokens before the one that is replaced are the begin of the answer. */
static int begin_branch(QSFWorker *w, Asked *q, QsfErr *err) {
    const uint32_t at = q->r->branch - 1;
    const int32_t id = q->r->branch_id;
    if (at >= w->tokens.info.n || q->r->continue_last)
        return qsf_err_set(err, QSF_E_USAGE, "the last answer has no token %u", at + 1);
    if (id < 0 || (uint32_t)id >= qsf_tokenizer_n_vocab(w->rt.tok))
        return qsf_err_set(err, QSF_E_USAGE, "token %d is outside the vocabulary", (int)id);
    q->begun = at;
    return qsf_ids_append(&q->ids, w->tokens.ids, at, err);
}

/* The known tokens of the answer follow the prompt for it. */
static int take_given(QSFWorker *w, Asked *q, const QsfIds *prompt, const QsfThinkPrompt *where,
                      QsfErr *err) {
    const QsfRequestCopy *r = q->r;
    int rc = qsf_prompt_check_ids(&w->rt, r->tokens, r->n_tokens, err);
    if (rc != QSF_OK) return rc;
    if (r->n_tokens > QSF_TOKENS_KNOWN)
        return qsf_err_set(err, QSF_E_USAGE, "the answer has more than %u tokens", QSF_TOKENS_KNOWN);
    q->where = *where;
    q->begun = (uint32_t)r->n_tokens;
    q->ids.n = 0;
    rc = qsf_ids_append(&q->ids, prompt->data, prompt->n, err);
    return rc == QSF_OK ? qsf_ids_append(&q->ids, r->tokens, r->n_tokens, err) : rc;
}

/* An answer begins where the prompt for it ends: its tokens are those that the conversation has after that. A
 * template may put something else there for an answer that exists. */
static int begin_score(QSFWorker *w, Asked *q, QsfErr *err) {
    QsfRequestCopy before = *q->r;
    QsfIds ids = { 0 };
    QsfThinkPrompt where;
    size_t same = 0;
    if (q->r->raw && q->ids.n > 0) {
        q->begun = (uint32_t)q->ids.n - 1;
        return QSF_OK;
    }
    if (before.n_messages == 0 || q->ids.n == 0)
        return qsf_err_set(err, QSF_E_USAGE, "there is no answer whose tokens can be evaluated");
    before.n_messages--;
    before.continue_last = false;
    int rc = encode(w, &before, &ids, &where, err);
    if (rc == QSF_OK && q->r->n_tokens > 0) {
        rc = take_given(w, q, &ids, &where, err);
        qsf_ids_free(&ids);
        return rc;
    }
    while (rc == QSF_OK && same < ids.n && same + 1 < q->ids.n && ids.data[same] == q->ids.data[same]) same++;
    q->where = where;
    if (same + 1 < ids.n) {
        q->where = (QsfThinkPrompt){ 0 };
        qsf_think_start(&q->where.split, &w->rt.think);
    }
    q->begun = (uint32_t)(q->ids.n - same);
    qsf_ids_free(&ids);
    if (rc == QSF_OK && same == 0) return qsf_err_set(err, QSF_E_USAGE, "nothing precedes the answer");
    return rc;
}

void qsf_worker_do_submit(QSFWorker *w, const QsfRequestCopy *r) {
    QsfErr err = { 0 };
    Asked q = { .r = r };
    w->unreported = 0;
    qsf_worker_set_text(w, &w->text_answer, NULL);
    if (w->stale != NULL && qsf_worker_reload(w, &err) != QSF_OK) {
        qsf_worker_fail(w, &err);
        return;
    }
    if (!w->loaded) {
        qsf_err_set(&err, QSF_E_MODEL, "no model is loaded: /model FILE");
        qsf_worker_fail(w, &err);
        return;
    }
    QSFEvent stopped = { .type = QSF_EVENT_DONE, .stop = QSF_STOP_INTERRUPTED };
    int rc = encode(w, r, &q.ids, &q.where, &err);
    if (rc == QSF_OK && r->branch > 0) rc = begin_branch(w, &q, &err);
    if (rc == QSF_OK && r->score) rc = begin_score(w, &q, &err);
    if (rc == QSF_OK && qsf_tool_choice_counts(r)) rc = qsf_tool_choice_grammar(&w->rt, r, &q.call, &err);
    switch (rc) {
    case QSF_OK: answer(w, &q); break;
    case QSF_E_INTERRUPTED: qsf_worker_end(w, &stopped, QSF_STATE_IDLE); break;
    default: qsf_worker_fail(w, &err);
    }
    qsf_ids_free(&q.ids);
    qsf_strbuf_free(&q.call);
}
