/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_engine.h: the background engine. A separate thread loads models and generates; the caller submits
 * requests, cancels, changes parameters and reads events, and never waits for a token.
 *
 * Functions of one worker are called from one thread (the owner) unless a comment says "any thread"; there
 * are no callbacks. Sizes are bytes, times nanoseconds, counts tokens.
 *
 * A NULL pointer that no comment allows is an error, never a crash: a function that reports errors reports it
 * (0 for a request id, false, NULL, or code 2), and one that does not report errors does nothing. err may be
 * NULL and gets a message, one sentence. Pointers that are passed in are borrowed for the call. */
#ifndef QSF_ENGINE_H
#define QSF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qsf_settings.h" /* installed beside this file */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the worker ------------------------------------------------------------------------------- */

typedef struct QSFWorker QSFWorker;

/* Starts the engine thread, without a model. s is copied. NULL with a message in err. */
QSFWorker *qsf_worker_start(const QSFSettings *s, char *err, size_t cap);
/* Cancels the running request, stops and joins the thread, and frees everything. Returns within about 100 ms
 * of the next cancellation point (between layers, between reads), after at most 5 s more for a snapshot that
 * is being written. NULL is allowed. */
void qsf_worker_stop(QSFWorker *w);

/* Sets metadata to replace in every model loaded later: "KEY=TYPE:VALUE" (str, int, float, bool) or
 * "KEY=null" (as if absent), NULL-terminated; borrowed until the worker stops. A malformed entry makes
 * loading fail. */
void qsf_worker_override(QSFWorker *w, const char *const *specs);

/* Returns a file descriptor that is readable while events are waiting; owned by the worker, drained by
 * qsf_worker_next. -1 when w is NULL. */
int qsf_worker_fd(const QSFWorker *w);

/* Reasoning as in events; or without marks: it is to be continued, or complete and an answer follows. */
enum { QSF_THOUGHT_MARKED, QSF_THOUGHT_OPEN, QSF_THOUGHT_CLOSED };

typedef struct QSFMessage {
    const char *role; /* "system", "user", "assistant", "tool" */
    const char *content;
    size_t len;
    const char *reasoning; /* (reasoning_len) all text of QSF_EVENT_REASONING; NULL = none. The model gets
                              that of past answers only where the template includes it */
    size_t reasoning_len;
    uint8_t thought;   /* QSF_THOUGHT_*: what the reasoning is */
    const char *exact; /* (exact_len) "answer" of qsf_worker_describe after an unfinished answer, or NULL:
                          that is continued, if it has only tokens of the model */
    size_t exact_len;
    const char *calls; /* (calls_len) JSON: the array tool_calls of an answer; for templates that have it */
    size_t calls_len;
    const char *call_id, *name; /* of a tool's result: the call, and the tool; NULL = not told */
} QSFMessage;

typedef struct QSFRequest {
    const QSFMessage *messages; /* (n_messages), deep-copied */
    size_t n_messages;
    bool raw;          /* the contents are text to continue, as if the setting template was "raw" */
    const char *tools; /* (tools_len) tools that the model may call, as in OpenAI's interface, or NULL */
    size_t tools_len;
    const char *call;        /* the tool that the answer has to call, "" = any; NULL = it need not. Not with
                                grammar, raw, continue_last. It cannot be done: QSF_EVENT_ERROR */
    bool one_call;           /* with call: one call */
    bool continue_last;      /* continue the last (assistant) message */
    const char *const *stop; /* (n_stop) strings that end the answer (not reasoning); not a part of it */
    size_t n_stop;
    uint32_t max_tokens;  /* limit of this answer, besides the setting max_tokens; 0 = none */
    const char *snapshot; /* a file (0600) that keeps the evaluated tokens of this conversation: what it has
                             is not evaluated, and the rest is added after the answer. NULL = none. *.qsfsnap
                             in its folder belong to the engine */
    const char *snapshot_from; /* one that is only read: its beginning may be longer. NULL = none */
    uint64_t snapshot_limit;   /* of all: the oldest are removed. 0 = a tenth of the free space, or 4 GiB */
    uint64_t held;        /* bytes of texts that the owner keeps and that the loaded model's plan does not
                                count: while the prompt is made they are charged to the RAM budget, too */
    uint8_t grammar_kind; /* QSFGrammarKind: the answer matches this grammar, whatever the parameters name */
    const char *grammar;  /* (grammar_len) bytes: its text, not a file. For words a newline is between the two
                             expressions. With tools an answer may call one instead of matching a schema */
    size_t grammar_len;
    uint32_t branch;   /* 1 + a token of qsf_worker_tokens: the answer begins with the tokens before it, then
                          has branch_id, and continues after it; 0 = none. Not with continue_last. The events
                          have its text from its beginning, and its tokens count as generated */
    int32_t branch_id; /* a token of the vocabulary */
    bool score; /* the last message, an answer, is evaluated for qsf_worker_tokens; nothing is generated. With
                   raw: all tokens of the prompt but the first are, and only `scored` has them */
    /* With score: called by the engine's thread for each token that is evaluated, in their order; with raw
     * also for the first token, whose p is -1. It may call qsf_worker_token_text. NULL = none. */
    void (*scored)(void *arg, const QSFToken *token);
    void *scored_arg;
    /* With score: the tokens of the answer (qsf_worker_token_ids), or NULL: those that its text has. With
     * raw: the prompt, as it is, instead of messages (n_messages 0). All must be in the vocabulary. */
    const int32_t *tokens;
    size_t n_tokens;
} QSFRequest;

/* Bytes of memory that a byte of the messages of a request takes while their prompt is made. */
#define QSF_REQUEST_BYTES 6u

/* The size of a text that is counted piece by piece and not kept. Zeroed it is empty. */
typedef struct QSFTextSize {
    uint64_t bytes;
    uint64_t longest, run; /* bytes of the longest word or white space; of that at the end so far */
    bool blank;            /* that at the end is white space */
} QSFTextSize;
/* Counts the next len bytes of the text. Any thread. */
void qsf_text_size_add(QSFTextSize *size, const char *text, size_t len);

/* Load, unload and submit return a request id above 0. They return 0 when a request is still running, when
 * out of memory, or when w, path, s, r, a non-empty array or string of r, or the role of a message is NULL.
 * Loading replaces the model, with the settings s (copied). When loading fails, the old model stays only if
 * the file could not be opened at all. */
uint64_t qsf_worker_load(QSFWorker *w, const char *path, const QSFSettings *s);
uint64_t qsf_worker_unload(QSFWorker *w);
uint64_t qsf_worker_submit(QSFWorker *w, const QSFRequest *r);
/* Evaluates the beginning of a request that may follow, while nothing else is to be done: the last message of
 * r (copied) is still being typed. Everything but its last word is brought into the KV cache, in pieces,
 * after each of which a QSF_EVENT_AHEAD follows and QSFStats.ahead_done grows. A later submit keeps what is
 * the same, and its answer is the same as without. Replaces a request that has not begun, and follows one
 * that runs; NULL stops both. Every other request stops it between two steps of the model. Nothing is
 * evaluated where it could not be taken back without loss: "ahead" of qsf_worker_describe says why. Returns
 * false if r will not be evaluated: another request runs, its last message is not the user's, it is invalid,
 * or its text does not fit in the budget. */
bool qsf_worker_ahead(QSFWorker *w, const QSFRequest *r);
/* Stops the running request, if any; its text so far stays in the KV cache. Any thread; async-signal-safe. */
void qsf_worker_cancel(QSFWorker *w);
/* Is a request running? Any thread. */
bool qsf_worker_busy(const QSFWorker *w);
/* Closes the reasoning of the running answer at the next token, and any that it opens again. Does nothing if
 * no answer is running. Any thread; async-signal-safe. */
void qsf_worker_answer_now(QSFWorker *w);

/* Set and get the live parameters. Any thread; never block on a token. With an eviction policy everything is
 * computed, whatever their quality (qsf_settings_check). */
void qsf_worker_set_params(QSFWorker *w, const QSFParams *p);
void qsf_worker_get_params(QSFWorker *w, QSFParams *p);

/* Fills the sampling rows of s that are not user_set with what the loaded model's metadata recommends
 * (general.sampling.*), or with the program's defaults where it recommends nothing or no model is loaded. To
 * be called on QSF_EVENT_LOADED; the caller passes the result to qsf_worker_set_params. Any thread. */
void qsf_worker_model_defaults(QSFWorker *w, QSFSettings *s);

/* Applies all QSF_SETTING_REPLAN settings of s without reloading the model: between two tokens of an answer,
 * or immediately when idle. A later call replaces one that is still pending. Each applied call ends in one
 * QSF_EVENT_PLAN; without a model that event is the only effect. Any state; never blocks on a token. */
void qsf_worker_replan(QSFWorker *w, const QSFSettings *s);
/* Checks whether qsf_worker_replan, or reloading the loaded model, would accept these settings. Returns 0
 * (also without a model), or the exit code with a message in err. Changes nothing; applying them can still
 * fail later (memory is used up, a file is gone). Owner's thread; waits only while a model is replaced. */
int qsf_worker_check(QSFWorker *w, const QSFSettings *s, char *err, size_t cap);
/* Why there is no other RAM budget: no model; all weights are in RAM, with the whole context; no more is
 * available; the setting pin limits it; no smaller one works, or leaves the conversation as it is. */
enum { QSF_BUDGET_NONE, QSF_BUDGET_ALL, QSF_BUDGET_FREE, QSF_BUDGET_PIN, QSF_BUDGET_LEAST, QSF_BUDGET_KEEP };
/* Another RAM budget for the loaded model, in bytes. */
typedef struct QSFBudgetStep {
    uint64_t budget;        /* a multiple of 1 MiB; 0 = there is none in this direction: end */
    uint64_t streamed, now; /* read per token at the start of a conversation: with it, and in force */
    uint64_t available;     /* for this process, with what it has */
    uint32_t ctx, ctx_now;  /* tokens of the context: with it, and in force */
    int end;                /* QSF_BUDGET_* */
} QSFBudgetStep;
/* Fills *out with the next budget to offer, with settings s otherwise. more: the smallest that keeps all
 * weights in RAM, or nine tenths of what is available, if less streams then; if nothing streams, one with a
 * longer automatic context. Otherwise three quarters, or the least with room for the conversation and an
 * answer. Zeros without a model. Changes nothing. Owner's thread; waits only while a model is replaced. */
void qsf_worker_budget_step(QSFWorker *w, const QSFSettings *s, bool more, QSFBudgetStep *out);
/* Copies the settings in force to s, with the live parameters. Any thread. */
void qsf_worker_settings(QSFWorker *w, QSFSettings *s);

typedef enum QSFEventType {
    QSF_EVENT_NONE,
    QSF_EVENT_LOADED,    /* text: the model's name */
    QSF_EVENT_NOTICE,    /* text: one sentence (what the plan lowered, which template is used, ...) */
    QSF_EVENT_TEXT,      /* text: more of the answer, whole UTF-8 sequences */
    QSF_EVENT_DONE,      /* the request ended; stop, tokens, prompt_tokens, seed */
    QSF_EVENT_ERROR,     /* the request ended; code, text; what was delivered stays valid */
    QSF_EVENT_PLAN,      /* qsf_worker_replan was applied: code 0 and a sentence about the new plan, or the
                            exit code and why nothing changed. request: the running one, 0 when idle */
    QSF_EVENT_REASONING, /* text: more of the reasoning, including its tags, whole UTF-8 sequences; then
                            follows the TEXT of the answer, if there is one, or reasoning again */
    QSF_EVENT_AHEAD,     /* qsf_worker_ahead has evaluated a piece, or ended; request: 0 */
    QSF_EVENT_EVICTED /* the eviction policy removed positions from the KV cache; text: a sentence. Once for
                         each prompt, and once for each eviction while the answer is generated */
} QSFEventType;

typedef enum QSFStop {
    QSF_STOP_EOS,
    QSF_STOP_STRING,
    QSF_STOP_LENGTH,
    QSF_STOP_CONTEXT,
    QSF_STOP_INTERRUPTED
} QSFStop;

typedef struct QSFEvent {
    QSFEventType type;
    uint64_t request;
    const char *text; /* NUL-terminated, text_len bytes; valid until the next qsf_worker_next */
    size_t text_len;
    int code;                  /* ERROR, PLAN: exit code */
    bool file;                 /* ERROR: the model file could not be read; the same request may work later */
    bool own;                  /* ERROR: the request is not the cause: memory, a file, numbers of the model */
    QSFStop stop;              /* DONE */
    uint32_t tokens;           /* DONE: tokens generated; TEXT, REASONING: tokens that this text came from */
    uint32_t reasoning_tokens; /* DONE: the part of tokens that was reasoning */
    uint32_t prompt_tokens;    /* DONE: tokens of the whole prompt, including reused ones */
    uint32_t reused_tokens;    /* DONE: prompt tokens found in the KV cache */
    uint64_t seed;             /* DONE: the seed that was used */
    uint32_t evicted;          /* EVICTED, DONE: positions; DONE: during the request */
    bool thinking;             /* DONE: it ended inside reasoning */
    bool grammar_cut;          /* DONE: it ended before its grammar was complete */
    bool reasoning_cut;        /* DONE: its reasoning was closed by the limit or by qsf_worker_answer_now */
    uint32_t hidden_tokens;    /* DONE: of reasoning that was opened again after that, without events */
    uint64_t needed, left;     /* ERROR: bytes that the request takes, and that the RAM budget has; or 0 */
} QSFEvent;

/* Removes the oldest event and copies it to e; false when there is none. When the reader is slow, text of one
 * request is merged; nothing is ever dropped. */
bool qsf_worker_next(QSFWorker *w, QSFEvent *e);
/* Returns the readable part of an answer's reasoning, without the tags and surrounding white space. Points
 * into text, which may be NULL; body_len must not be NULL. Any thread. */
const char *qsf_reasoning_body(const char *text, size_t len, size_t *body_len);
/* As qsf_reasoning_body, but copies to out (len bytes, not NUL-terminated) and puts an empty line where one
 * block of reasoning ends and the next begins: a model may think again in the middle of its answer. Returns
 * the length. Any thread. */
size_t qsf_reasoning_plain(const char *text, size_t len, char *out);
/* Returns "eos", "stop", "length", "context" or "interrupted", static; "unknown" for another number. */
const char *qsf_stop_name(QSFStop s);

/* ---- tokens of the last answer ---------------------------------------------------------------- */

/* The known tokens: of the last answer, also while it is written, until something else is evaluated. */
typedef struct QSFTokens {
    uint64_t request;  /* that wrote or evaluated the answer; 0 = no tokens are known */
    uint32_t n, first; /* tokens; the first one that has a row */
} QSFTokens;

/* Fills *out. Any thread. */
void qsf_worker_tokens(QSFWorker *w, QSFTokens *out);
/* Copies the rows of tokens first ... to out (max); returns how many, 0 if `first` has none. Any thread. */
uint32_t qsf_worker_token_rows(QSFWorker *w, uint32_t first, QSFToken *out, uint32_t max);
/* The same with the ids of tokens: all of them have one. */
uint32_t qsf_worker_token_ids(QSFWorker *w, uint32_t first, int32_t *out, uint32_t max);
/* Writes the bytes of a token to dst, at most cap of them: they may be a part of a UTF-8 sequence. Returns
 * their full number; *special (may be NULL): it is a control token, whose name this is. 0 for an id outside
 * the vocabulary, and while no model is loaded. Owner's thread, and that of the engine in a function that it
 * calls; fast. */
size_t qsf_worker_token_text(QSFWorker *w, int32_t id, char *dst, size_t cap, bool *special);

/* ---- why a token was chosen ---- */

#define QSF_WHY_TOKENS 21u  /* the likeliest tokens, and the chosen one */
#define QSF_WHY_STAGES 16u  /* stages of the sampler */
#define QSF_WHY_KNOWN  256u /* the last tokens of an answer that are known */

/* What a stage of the sampler left. */
typedef struct QSFWhyStage {
    const char *name;        /* static */
    uint32_t kept;           /* tokens */
    float p[QSF_WHY_TOKENS]; /* (n) probabilities after it; 0 = removed */
} QSFWhyStage;

/* How a token was chosen: only the stages that were applied, in their order. */
typedef struct QSFWhy {
    int32_t id;
    uint32_t n;                        /* candidates: the likeliest of the model, likeliest first, and id */
    int32_t candidate[QSF_WHY_TOKENS]; /* (n) */
    float p[QSF_WHY_TOKENS];           /* (n) at temperature 1, before the first stage */
    float entropy;                     /* of all tokens there, in bits */
    uint32_t n_vocab, n_stages;        /* n_stages 0: nothing is known, the token was given */
    QSFWhyStage stage[QSF_WHY_STAGES]; /* (n_stages) */
    int32_t decided;                   /* the stage that left a single token; -1 = none: it was drawn */
    double random;                     /* the random number of the draw, 0 to 1; -1 = none */
} QSFWhy;

/* Fills *out for token i of the answer (qsf_worker_tokens), with the 8 likeliest tokens; probabilities are
 * rounded to 0.1 % of themselves. false if it is not known. Any thread. */
bool qsf_worker_token_why(QSFWorker *w, uint32_t i, QSFWhy *out);

/* ---- statistics ------------------------------------------------------------------------------- */

#define QSF_STATS_MEM 12

typedef enum QSFState {
    QSF_STATE_EMPTY,
    QSF_STATE_LOADING,
    QSF_STATE_IDLE,
    QSF_STATE_PREFILL,
    QSF_STATE_DECODE
} QSFState;

typedef struct QSFMemRow {
    const char *name; /* static */
    uint64_t used, planned;
} QSFMemRow;

/* Kinds of layers, by how much of the past they store. */
typedef enum QSFLayerKind {
    QSF_LAYERS_FULL,      /* K and V of all positions */
    QSF_LAYERS_WINDOW,    /* of the last ones */
    QSF_LAYERS_MLA,       /* one compressed row for each position */
    QSF_LAYERS_RECURRENT, /* a state of fixed size */
    QSF_LAYERS_N
} QSFLayerKind;

/* All layers of one kind. */
typedef struct QSFLayerKindInfo {
    uint32_t layers;      /* 0: the model has none */
    uint32_t positions;   /* that a layer keeps at most; 0 for RECURRENT */
    uint64_t token_bytes; /* that one more position takes, as long as there are fewer; 0 for RECURRENT */
    uint64_t most_bytes;  /* when the context is full */
} QSFLayerKindInfo;

/* What the cache of the model holds; the next prompt reuses what is the same. */
typedef struct QSFContextInfo {
    uint32_t kept, evicted, n_protected; /* positions */
    bool converted; /* some were stored with another type first: the next tokens differ from
                       those of a new prompt */
    QSFLayerKindInfo kind[QSF_LAYERS_N];
} QSFContextInfo;

/* The experts of a sparse model. */
typedef struct QSFExpertInfo {
    uint64_t bytes;       /* of all; 0: the model has none, and everything else is 0 */
    uint64_t slot_bytes;  /* of a slot, which holds any one of them */
    uint32_t n, resident; /* of all layers; those in memory now */
    uint32_t slots;       /* for those that are used most; 0: all are in memory for good, or all are read when
                             they are chosen (resident tells) */
    double expected_hits; /* share of the chosen ones that are in memory, by the plan */
    double hits;          /* as it was, for single tokens of the running or last answer; 0 while uses is 0 */
    uint64_t uses, misses; /* that were chosen for these tokens, and those of them that were read */
} QSFExpertInfo;

/* Returns "full attention", "window", "MLA", "recurrent"; static. */
const char *qsf_layer_kind_name(QSFLayerKind kind);

#define QSF_SPECULATION_SOURCES   4u
#define QSF_SPECULATION_POSITIONS 8u
/* The drafts of one source, by their position behind the token that was chosen: how many were checked, and
 * how many of them were right, together with those before them. */
typedef struct QSFDraftedBy {
    char name[8]; /* "lookup" */
    uint64_t drafted[QSF_SPECULATION_POSITIONS], accepted[QSF_SPECULATION_POSITIONS];
} QSFDraftedBy;
/* Several tokens in a pass (setting "speculate"), of the running or last answer. */
typedef struct QSFSpeculation {
    uint32_t width; /* maximum of tokens of a pass; 0: the plan has no memory for drafts, or it is off */
    char why[96];   /* why the last token had no drafts; "" = nothing was against them */
    uint64_t passes, tokens; /* passes for tokens of the answer, and the tokens that they added */
    uint32_t n_sources;
    QSFDraftedBy source[QSF_SPECULATION_SOURCES];
} QSFSpeculation;

typedef struct QSFStats {
    QSFState state;
    uint64_t elapsed_ns;          /* in this state */
    uint64_t pin_done, pin_total; /* bytes of weights pinned so far, and planned: pinning continues in the
                                     background */
    char model_name[128];         /* clean UTF-8; file name when the model has no name */
    char model_path[512];
    char model_desc[128];   /* "llama 1.1B Q4_0" */
    char template_name[64]; /* "model", "chatml", "none" */
    char backend[16];       /* ISA level */
    char plan_note[352];
    uint32_t n_layers, layer;          /* layer being computed */
    uint32_t threads, prefill_threads; /* for tokens of an answer, and for prompts */
    uint32_t ctx_used, ctx_size;       /* ctx_used: positions in the KV cache, without evicted ones */
    char k_type[8], v_type[8];         /* of the KV cache: "f16", "q8", ... */
    char kv_note[128];                 /* both and why: "q8 (lowered to fit the budget)" */
    char eviction[8];                  /* policy in force */
    float quality;                     /* of the running or last answer; 1 = nothing is left out */
    uint32_t quality_layers;        /* computed for its tokens, of n_layers; with an early exit the average */
    uint32_t quality_exit;          /* tokens may end after this many layers; 0 = none */
    bool quality_head;              /* the logits that matter are found with a sketch of the head */
    uint32_t experts_used, experts; /* that a token uses at most, of those that the router chooses; 0 = it has
                                       none */
    uint32_t expert_top;            /* limits for experts in force (QSFParams); 0 = none */
    float expert_drop;
    uint64_t evictions, evicted; /* since the model was loaded: how often, and positions in all */
    uint64_t reliefs;            /* how often memory was given back because it was short */
    char memory_note[200];       /* with memory_threshold: what was available at the last look */
    QSFContextInfo context;
    uint32_t ctx_train;                   /* context that the model was trained for; 0 = unknown */
    uint32_t prefill_done, prefill_total; /* tokens; within a batch, done moves from layer to layer */
    double prefill_left; /* seconds that the running prefill still takes, by its speed and that of the last
                            one; 0 = not known yet */
    uint32_t ahead_done,
        ahead_total; /* tokens of the prompt of the last qsf_worker_ahead: in the KV cache, and
                                         all; 0 since another request */
    uint32_t out_tokens, max_tokens; /* of the running or last answer; max 0 = none */
    double prefill_tps, decode_tps;  /* of the running or last request; 0 = not known yet */
    double ttft_ms;                  /* time to the first token of the last request */
    double token_p, token_entropy;   /* last token: probability after filtering, entropy (bits) before it */
    uint64_t budget, rss;
    uint64_t peak_rss, recent_peak_rss; /* of the process since its start; since a smaller budget or a model
                                           with one took effect */
    QSFMemRow mem[QSF_STATS_MEM];
    uint32_t n_mem;
    uint64_t pinned_bytes, streamed_bytes;  /* weights in RAM; weights read per token */
    uint64_t bytes_read;                    /* since the request began */
    double bytes_per_token, io_gbps, stall; /* stall: fraction of the time spent waiting for the disk */
    double wait_ms, compute_ms;             /* of the running or last request */
    char io_name[32];                       /* "io_uring, direct"; "" when nothing is read */
    char io_notice[160];                    /* why it differs from the setting, or "" */
    uint64_t embed_hits, embed_misses;      /* of the embedding row cache */
    QSFExpertInfo expert;
    QSFSpeculation speculation;
} QSFStats;

/* Statistics of one layer for the running or last request; the last entry is the head. */
typedef struct QSFLayerStats {
    uint64_t weight_bytes, pinned_bytes;
    uint64_t read_bytes, wait_ns, compute_ns;
    uint32_t experts, experts_in;        /* in all, and in memory now; 0: the layer has none */
    uint64_t expert_uses, expert_misses; /* as in QSFExpertInfo */
} QSFLayerStats;

/* Copies a consistent snapshot to *out. Any thread; cheap enough for 20 calls a second. */
void qsf_worker_stats(QSFWorker *w, QSFStats *out);
/* Fills out[0..min(n, max)) and returns n, the number of layers plus one for the head; 0 without a model or
 * when out of memory. out may be NULL. Any thread. */
uint32_t qsf_worker_layers(QSFWorker *w, QSFLayerStats *out, uint32_t max);

#define QSF_EXPERT_BUDGETS 10u
/* What a RAM budget would mean for the experts. */
typedef struct QSFExpertBudget {
    uint64_t budget;
    double resident; /* share of all experts that would be in memory */
    double hits; /* expected share of the chosen ones, by what was chosen for the last 256 to 512 tokens and,
                    in the beginning, in earlier conversations */
    double tps;  /* tokens per second, roughly: by the time that computing and waiting for each byte read took
                   in the running or last answer; 0 = not known */
} QSFExpertBudget;
/* Fills out (max) with budgets, ascending: round ones, the one in force, and the smallest with which all
 * experts are in memory. Returns how many; 0 if the model has no experts, too few were chosen to say, or its
 * other weights do not all fit. Owner's thread; waits only while a model is replaced. */
uint32_t qsf_worker_expert_budgets(QSFWorker *w, QSFExpertBudget *out, uint32_t max);
/* Forgets which experts of the loaded model were used: removes its file, and drops what is not written yet.
 * Returns 0, or the exit code with a message in err: no model is loaded, it has no experts, the file cannot
 * be removed. Owner's thread; waits while a model is replaced. */
int qsf_worker_forget_experts(QSFWorker *w, char *err, size_t cap);

/* Describes the loaded model for /show: newline-terminated text, malloc'ed; what is "model", "template",
 * "plan", "quality" (a table of what each quality means), "memory" (the ledger's current categories and
 * regions), "threads" (their measured speeds), "ahead" (why qsf_worker_ahead evaluates nothing; else empty)
 * or "answer": for QSFMessage.exact, after a DONE event whose stop is LENGTH, CONTEXT or INTERRUPTED, if the
 * text of the answer does not determine its tokens. NULL without a model or when out of memory. */
char *qsf_worker_describe(QSFWorker *w, const char *what);
/* Renders the prompt for a request as readable text: each special token is enclosed in U+27E6 and U+27E7, a
 * NUL is ^@, and the last line gives the number of tokens. malloc'ed; NULL with a message in err (no model, a
 * template error, too long to show now). Works also while an answer is generated. */
char *qsf_worker_prompt(QSFWorker *w, const QSFRequest *r, char *err, size_t cap);
/* Returns the number of tokens of that prompt; -1 where qsf_worker_prompt would fail. Owner's thread; takes
 * as long as tokenizing the messages. Works also while an answer is generated. */
int64_t qsf_worker_count(QSFWorker *w, const QSFRequest *r);
/* Returns the smallest RAM budget, in bytes, with which a message of this size is sent while `held` bytes
 * (QSFRequest.held) are charged, too; 0 = unknown, because no model is loaded or it is being
 * replaced. Owner's thread; fast. */
uint64_t qsf_worker_text_budget(QSFWorker *w, const QSFTextSize *size, uint64_t held);
/* Lists the model's own named templates as values of the setting template, as qsf_template_names does; none
 * without a model. Owner's thread; waits only while a model is replaced. */
char *qsf_worker_templates(QSFWorker *w);
/* The MODEL argument that selects the bundled model. */
#define QSF_GUIDE "guide"
/* Returns the file that a MODEL argument refers to, malloc'ed: for QSF_GUIDE models/guide.qsf of the
 * installed data (its expected path when it is missing), for anything else a copy of name ("./guide" is a
 * file). NULL when out of memory. Any thread. */
char *qsf_model_file(const char *name);
/* Returns the bytes of memory that are available to this process: of MemAvailable or of what its cgroup has
 * left, whichever is less. Any thread. */
uint64_t qsf_memory_available(void);
/* Lists the names of the template files, sorted, NUL-separated, ended by an empty name; free() it. NULL when
 * out of memory. Any thread. */
char *qsf_template_names(void);
/* Returns the version, static. */
const char *qsf_version(void);

#ifdef __cplusplus
}
#endif

#endif
