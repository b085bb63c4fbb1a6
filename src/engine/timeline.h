/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of one conversation and the KV cache: a new prompt keeps the longest common prefix and
 * evaluates only the rest; then tokens are generated one by one, with stop strings. Synchronous; used by the
 * worker, qsf.h and qsf-run. One thread. */
#ifndef QSF_ENGINE_TIMELINE_H
#define QSF_ENGINE_TIMELINE_H

#include "src/engine/grammar_hold.h"

typedef struct QsfTimeline {
    QsfRuntime *rt;
    int32_t *ids; /* (n_ids), the tokens whose K/V is in the cache; sized for the plan's
                     wanted_ctx, TRANSCRIPT */
    uint32_t n_ids,
        cap;        /* with an eviction policy there may be more than the context; the memory grows then */
    uint64_t bytes; /* of the mapping that contains ids and piece */
    char *piece;    /* (QSF_TIMELINE_PIECE), text of one token */
    QsfQualityWish quality; /* of the tokens that are generated, in force */
    bool last_apart;        /* a prefill evaluates the last token by itself, so that the state before it is a
                        checkpoint of a recurrent model: the same prompt then needs one token only */
    uint32_t lead;          /* of qsf_timeline_lead */
} QsfTimeline;

/* An empty conversation for the model of rt, which outlives t. QSF_E_BUDGET, QSF_E_RUNTIME; qsf_timeline_free
 * is allowed in any case. */
int qsf_timeline_init(QsfTimeline *t, QsfRuntime *rt, QsfErr *err);
/* Frees the tokens; the KV cache stays as it is. */
void qsf_timeline_free(QsfTimeline *t);
/* After a replan: makes room for the context of the plan in force. On failure (QSF_E_BUDGET,
 * QSF_E_RUNTIME) nothing has changed, and no plan with a longer context than before may stay
 * in force. Between two tokens. */
int qsf_timeline_fit(QsfTimeline *t, QsfErr *err);
/* Makes room for n tokens, in steps. QSF_E_BUDGET, QSF_E_RUNTIME. Not while the ledger is frozen. */
int qsf_timeline_grow(QsfTimeline *t, size_t n, QsfErr *err);
/* Removes tokens from the cache so that at most n are left. Not while an answer is generated. */
void qsf_timeline_cut(QsfTimeline *t, uint32_t n);

/* The first n tokens of the next prompt are those that other conversations begin with, too, such as the
 * system prompt; 0 = none. They are evaluated by themselves, and the state of a recurrent model after them
 * is kept as long as possible, in memory and in snapshots. Without effect if the plan has too few copies of
 * states. */
void qsf_timeline_lead(QsfTimeline *t, uint32_t n);

/* Updates n_ids after an evaluation of ids, which begin at position `at`: the forward pass knows how many of
 * them reached the cache. */
void qsf_timeline_store(QsfTimeline *t, const int32_t *ids, uint32_t at);
/* Does an eviction policy make room? */
bool qsf_timeline_evicts(const QsfTimeline *t);

/* How ids are evaluated ahead. */
typedef struct QsfAhead {
    uint32_t piece;                          /* tokens of an evaluation */
    uint32_t least;                          /* fewer are left for the prompt */
    void (*progress)(void *arg, uint32_t n); /* n of the ids are in the cache; after each piece */
    void *arg;
} QsfAhead;

/* Brings ids[0..n) into the cache, piece by piece, as far as nothing leaves it for them; ids has one more.
 * What is in the cache already stays there, also behind them. *kept: tokens that were kept; t->n_ids if
 * nothing was done. Codes of qsf_forward_eval; the pieces before a failure stay. The ledger is not frozen:
 * other threads may charge it. */
int qsf_timeline_ahead(QsfTimeline *t, const int32_t *ids, size_t n, const QsfAhead *o, uint32_t *kept,
                       QsfErr *err);

typedef struct QsfGenerate {
    const int32_t *prompt; /* (n_prompt) >= 1 */
    size_t n_prompt;
    bool continues; /* the answer continues text that the reader sees (base model, continue_last) */
    const char *const *stop;
    size_t n_stop;
    uint32_t max_tokens; /* of this answer; 0 = only that of the parameters */
    /* Read before every token (live parameters). With a quality below 1 prompts are evaluated with
     * everything all the same, and tokens of the answer with less; the next prompt evaluates those again.
     * Raised, it evaluates the answer so far again. */
    void (*params)(void *arg, QSFParams *out);
    /* Receives whole UTF-8 text that can no longer become part of a stop string; may be called with len 0
     * for a token without text, and with id -1 for text that was held back until the end of the answer.
     * Without stop strings the text is followed by a NUL. May be NULL. A non-zero result stops generation as
     * interrupted. */
    int (*text)(void *arg, int32_t id, const char *text, size_t len);
    /* Called after prefill (s NULL) and after each sampled token, before its text; may be NULL. */
    void (*tick)(void *arg, const QsfSample *s);
    /* Called before each token is sampled, when nothing is being computed: the plan may be changed here. May
     * be NULL. The ledger is frozen during the rest of the token loop. */
    void (*between)(void *arg);
    /* Called when another quality, and perhaps another plan, is in force; may be NULL. */
    void (*quality)(void *arg);
    /* Called after an eviction policy has removed positions from the KV cache, with their
     * number; may be NULL. */
    void (*evicted)(void *arg, uint64_t positions);
    /* Called when memory is short for the first time: a sentence; may be NULL. */
    void (*memory)(void *arg, const char *text);
    /* Receives the text of the reasoning, like text(); it is not searched for stop strings. NULL: all text
     * is treated as answer. Each token is passed to one of the two callbacks. */
    int (*reasoning)(void *arg, int32_t id, const char *text, size_t len);
    /* Whether reasoning is to be closed now, before every token; may be NULL. */
    bool (*answer_now)(void *arg);
    /* Called when reasoning is closed, with its number of tokens (reasoning_limit.h); may be NULL. */
    void (*reasoning_cut)(void *arg, uint32_t tokens);
    const QsfGrammarText *grammar; /* for this answer instead of the one of the parameters, or NULL */
    const char *written;           /* (n_written) bytes: the text of the answer that the prompt ends with */
    size_t n_written;
    QsfThinkPrompt think; /* where the answer begins, of qsf_think_encode */
    uint32_t
        begun;   /* the last tokens of the prompt, fewer than all: the answer begins with them. Their text is
                       passed on, and they count as generated */
    bool score;  /* nothing is generated: token() is called for the tokens that are begun */
    bool chosen; /* the next token is chosen_id, of the vocabulary, instead of a sampled one */
    int32_t chosen_id;
    /* May change the logits (n) before each token is sampled, as in QsfSamplerInput; may be NULL. */
    void (*change)(void *arg, float *logits, uint32_t n);
    /* Receives how each token was chosen (id), before token(); NULL = not needed. n_why: of the likeliest
     * tokens in it. */
    void (*why)(void *arg, const QSFWhy *why);
    uint32_t n_why;
    /* Called after the text of each token, and for the one that ended the answer, which has no text; may be
     * NULL. The token is valid during the call. Costs a pass over the logits at most (sampler.h). */
    void (*token)(void *arg, const QSFToken *token);
    uint32_t n_candidates; /* of the token; 0 = QSF_CANDIDATES */
    void *arg;
} QsfGenerate;

typedef struct QsfGeneration {
    QSFStop stop;
    uint32_t prompt_tokens, reused_tokens, tokens;
    uint32_t text_bytes, reasoning_bytes; /* of all text that was passed on */
    uint64_t evicted;                     /* positions that an eviction policy removed */
    uint32_t reasoning_tokens;            /* of tokens */
    bool thinking;                        /* it ended inside reasoning */
    bool grammar_cut;                     /* it ended before its grammar was complete */
    bool reasoning_cut;                   /* its reasoning was closed by the limit or by answer_now */
    uint32_t hidden_tokens;               /* of reasoning that was opened again after that; not emitted */
    int32_t last_id;                      /* the last of tokens, whether or not it is in the cache */
    uint64_t seed;
    uint64_t prefill_ns, decode_ns, ttft_ns;
} QsfGeneration;

/* Returns how many of ids[0..n) a prefill would find in the cache. */
uint32_t qsf_timeline_reusable(const QsfTimeline *t, const int32_t *ids, size_t n);

/* Brings ids[0..n), n >= 1, into the cache: keeps the longest common prefix and evaluates the rest, at least
 * one token, for its logits. *reused (may be NULL) is the number of tokens kept. Codes of qsf_forward_eval;
 * the message for QSF_E_CONTEXT also says how to set a longer context. */
int qsf_timeline_prefill(QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *reused, QsfErr *err);

/* Generates an answer to its end. A prompt longer than the context: QSF_E_CONTEXT before anything is
 * computed. A context that becomes full while generating is not an error: stop = QSF_STOP_CONTEXT. With an
 * eviction policy neither happens: positions are evicted. The ids of evicted positions stay in t->ids, so
 * that a prompt that continues them finds the cache; one that differs before the last eviction is evaluated
 * whole. Cancel: success with stop = QSF_STOP_INTERRUPTED (also during prefill). QSF_E_RUNTIME on I/O
 * failure: the text delivered so far is valid, and the same prompt may be submitted again. The id that ended
 * the answer (EOS) is neither shown nor kept. */
int qsf_timeline_generate(QsfTimeline *t, const QsfGenerate *g, QsfGeneration *out, QsfErr *err);

#endif
