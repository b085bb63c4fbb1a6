/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_engine.h: the background engine. One thread of its own loads models and generates; the
 * caller submits, cancels, changes parameters and reads events, and never waits for a token.
 *
 * Functions of one worker are called from one thread (the owner) unless a comment says "any
 * thread"; there are no callbacks. Sizes are bytes, times nanoseconds, counts tokens.
 *
 * A NULL pointer that no comment allows is an error, never a crash: a function that reports errors reports
 * it (0 for a request id, false, NULL, or code 2), a function that does not does nothing. err may be NULL.
 * Pointers that are handed in are borrowed for the call. */
#ifndef QSF_ENGINE_H
#define QSF_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings: one table for options, /set, help and man pages -------------------------------- */

/* Read once per token: a change acts on the very next one. */
typedef struct QSFParams {
    float temperature;     /* 0 = argmax */
    float top_p;           /* (0, 1], 1 = off */
    float min_p;           /* [0, 1], 0 = off */
    float repeat_penalty;  /* 1 = off */
    int32_t top_k;         /* 0 = off */
    int32_t repeat_last_n; /* tokens the penalty looks back on; -1 = all */
    int32_t max_tokens;    /* 0 = until the end of the turn or of the context */
    bool ignore_eos;
    bool allow_special;    /* messages that spell special tokens become them; read once per prompt */
    uint8_t reasoning;     /* of the setting of that name: 0 = as the template has it; read once per prompt */
    bool seed_set;         /* false: each request draws its own seed and reports it */
    uint64_t seed;
} QSFParams;

#define QSF_SETTING_TEXT 256

typedef struct QSFSettings {
    QSFParams params;
    uint64_t ram_budget;    /* 0 = auto */
    uint32_t ram_percent;   /* 1..100: of available memory instead of ram_budget; 0 = not used */
    uint64_t pin;           /* most bytes to pin; UINT64_MAX = no cap */
    uint32_t ctx;           /* 0 = min(model, 4096), may be lowered to fit */
    uint32_t batch;         /* prefill chunk; 0 = chosen */
    int32_t threads;        /* 0 = one per CPU */
    uint32_t slots;         /* buffers that weights stream through, 1..4; 0 = chosen */
    char io[8];             /* "auto", "uring", "pread", "mmap" */
    char direct[8];         /* "auto", "on", "off": O_DIRECT */
    char kv[8];             /* "auto", "f16", "f32" */
    char cpu_mask[16];      /* "" = best */
    char chat_template[QSF_SETTING_TEXT]; /* "" = the model's own */
    bool show_thinking;     /* of the programs: reasoning is shown, not folded or left out */
    bool commands;          /* of the programs, no setting: messages name commands of the chat (/budget), not options
                               (--ram-budget) */
    uint32_t user_set;        /* rows that qsf_setting_set has set, whatever to: bit qsf_setting_at's i */
} QSFSettings;

/* LIVE: acts on the next token. REPLAN: acts between two tokens too, memory is planned anew, the same tokens follow.
 * RELOAD: acts when a model is (re)loaded. */
enum { QSF_SETTING_LIVE = 1, QSF_SETTING_RELOAD = 2, QSF_SETTING_REPLAN = 4 };

typedef struct QSFSetting {
    const char *name;     /* "top-p": also the long option */
    const char *aliases;  /* "top_p,topp" or "" */
    char short_name;      /* 'n', or 0 */
    const char *arg;      /* "F", "N", "SIZE", "NAME"; NULL for a switch */
    unsigned flags;       /* QSF_SETTING_* */
    const char *help;     /* one line, with range and default */
    double min, max, step;/* numbers: range, and the step of a live key (0 = none) */
} QSFSetting;

/* program defaults of design §12; max_tokens is 0 (the chat's). Any thread. */
void qsf_settings_default(QSFSettings *s);
size_t qsf_setting_count(void);
const QSFSetting *qsf_setting_at(size_t i);
/* By name or alias ('_' and '-' are the same), NULL when unknown. */
const QSFSetting *qsf_setting_find(const char *name);
/* Parses and checks value. 0, or 2 with a sentence that names the setting and its range in err. */
int qsf_setting_set(QSFSettings *s, const QSFSetting *row, const char *value, char *err, size_t cap);
/* Current value as text that qsf_setting_set reads back; "" when s or row is NULL. */
void qsf_setting_get(const QSFSettings *s, const QSFSetting *row, char *dst, size_t cap);
/* Has qsf_setting_set set this row? Then no model's recommendation takes its place. */
bool qsf_setting_user_set(const QSFSettings *s, const QSFSetting *row);
/* Do x and y have different values of row? */
bool qsf_setting_differs(const QSFSettings *x, const QSFSettings *y, const QSFSetting *row);
/* QSF_SETTING_* of all rows that differ between x and y. */
unsigned qsf_settings_differ(const QSFSettings *x, const QSFSettings *y);
/* Copies the rows that have one of flags (QSF_SETTING_*) from src to dst. A value that the table would refuse leaves
 * dst's. */
void qsf_settings_take(QSFSettings *dst, const QSFSettings *src, unsigned flags);
/* "200", "200M", "1.5G", "64K", "25%" (percent: *bytes 0, *percent set), "auto" (both 0). Bare
 * numbers are MB; all units are powers of 1024. false when malformed or out of range. */
bool qsf_parse_size(const char *text, uint64_t *bytes, uint32_t *percent);

/* ---- the worker ------------------------------------------------------------------------------- */

typedef struct QSFWorker QSFWorker;

/* Starts the thread, with no model. base settings are copied. NULL with a sentence in err. */
QSFWorker *qsf_worker_start(const QSFSettings *s, char *err, size_t cap);
/* Cancels what runs, stops and joins the thread, frees all. Returns within about 100 ms of the next
 * cancellation point (between layers, between reads). NULL allowed. */
void qsf_worker_stop(QSFWorker *w);

/* Metadata to replace in every model that is loaded from now on: "KEY=TYPE:VALUE" (str, int, float, bool) or
 * "KEY=null" (as if absent), NULL-terminated; borrowed until the worker stops. A malformed one fails the load. */
void qsf_worker_override(QSFWorker *w, const char *const *specs);

/* Becomes readable when events are waiting; owned by the worker; drained by qsf_worker_next. -1 when w is NULL. */
int qsf_worker_fd(const QSFWorker *w);

typedef struct QSFMessage {
    const char *role;    /* "system", "user", "assistant" */
    const char *content;
    size_t len;
    const char *reasoning; /* (reasoning_len) bytes: what QSF_EVENT_REASONING gave for this answer, all of it; NULL =
                              none. Past answers' reaches the model only where the template asks for it; with
                              continue_last the last answer goes on behind exactly this text */
    size_t reasoning_len;
} QSFMessage;

typedef struct QSFRequest {
    const QSFMessage *messages; /* (n_messages), deep-copied */
    size_t n_messages;
    bool continue_last;         /* go on with the last (assistant) message */
    const char *const *stop;    /* (n_stop) strings that end the answer and are not part of it; reasoning may hold
                                   them */
    size_t n_stop;
} QSFRequest;

/* All three return a request id > 0, or 0 when a request is still running (the typed text stays
 * with the caller), without memory, or when w, path, s, r, or an array or string of r that is not empty is NULL
 * (a message's role always has to be there). Loading replaces the model; when it fails the old one is gone unless the file could not
 * even be opened. settings: as the caller wants them from now on (copied). */
uint64_t qsf_worker_load(QSFWorker *w, const char *path, const QSFSettings *s);
uint64_t qsf_worker_unload(QSFWorker *w);
uint64_t qsf_worker_submit(QSFWorker *w, const QSFRequest *r);
/* Stops the running request, if any; its text so far is kept in the KV cache. Any thread, and
 * async-signal-safe. */
void qsf_worker_cancel(QSFWorker *w);
bool qsf_worker_busy(const QSFWorker *w); /* any thread */

/* Live parameters. Any thread; never blocks on a token. */
void qsf_worker_set_params(QSFWorker *w, const QSFParams *p);
void qsf_worker_get_params(QSFWorker *w, QSFParams *p);

/* What the loaded model's metadata recommends for sampling (general.sampling.*), put into the rows of s that nobody has
 * user_set; those that it says nothing about, all of them without a model, become the program's defaults. The caller hands
 * the result to qsf_worker_set_params: to be called on QSF_EVENT_LOADED. */
void qsf_worker_model_defaults(QSFWorker *w, QSFSettings *s);

/* Takes over all QSF_SETTING_REPLAN settings of s without loading anew, also in the middle of an answer: between two
 * tokens, or at once when idle. A later call replaces one that has not been taken yet. Each taken call ends in one
 * QSF_EVENT_PLAN; without a model nothing happens but the event. Any state; never blocks on a token. */
void qsf_worker_replan(QSFWorker *w, const QSFSettings *s);
/* Would these settings be refused for the loaded model, by qsf_worker_replan or by loading it again? 0, also without a
 * model, or the exit-code number with a sentence in err. Nothing changes; a later refusal is still possible (memory that
 * was free is taken, a file is gone). Owner's thread; waits only while a model is replaced. */
int qsf_worker_check(QSFWorker *w, const QSFSettings *s, char *err, size_t cap);
/* The settings in force now. */
void qsf_worker_settings(QSFWorker *w, QSFSettings *s);

typedef enum QSFEventType {
    QSF_EVENT_NONE,
    QSF_EVENT_LOADED,   /* text: the model's name */
    QSF_EVENT_NOTICE,   /* text: one sentence (what the plan lowered, which template was taken, ...) */
    QSF_EVENT_TEXT,     /* text: more of the answer, whole UTF-8 sequences */
    QSF_EVENT_DONE,     /* the request ended; stop, tokens, prompt_tokens, seed */
    QSF_EVENT_ERROR,    /* the request ended; code, text; what was delivered stays valid */
    QSF_EVENT_PLAN,     /* qsf_worker_replan was taken: code 0 and a sentence about what holds now, or the exit-code
                           number and why nothing changed (qsf_worker_settings has what is in force); ends nothing.
                           request: the running one, 0 when idle */
    QSF_EVENT_REASONING /* text: more of what the model thinks before its answer, with the tags around it, whole UTF-8
                           sequences; followed by the answer's own TEXT, if it comes to that */
} QSFEventType;

typedef enum QSFStop { QSF_STOP_EOS, QSF_STOP_STRING, QSF_STOP_LENGTH, QSF_STOP_CONTEXT, QSF_STOP_INTERRUPTED } QSFStop;

typedef struct QSFEvent {
    QSFEventType type;
    uint64_t request;
    const char *text;      /* NUL-terminated, text_len bytes; valid until the next qsf_worker_next */
    size_t text_len;
    int code;              /* ERROR: exit-code number */
    bool file;             /* ERROR: the model file could not be read: the same request may work when it can */
    QSFStop stop;          /* DONE */
    uint32_t tokens;       /* DONE: generated; TEXT, REASONING: tokens behind this text */
    uint32_t reasoning_tokens; /* DONE: of tokens, the reasoning's */
    uint32_t prompt_tokens;/* DONE: of the whole prompt, reused ones included */
    uint32_t reused_tokens;/* DONE: of them, found in the KV cache */
    uint64_t seed;         /* DONE: the seed that was used */
} QSFEvent;

/* Takes the oldest event; false when there is none. Text of one request is merged when the reader
 * is slow: nothing is ever dropped. */
bool qsf_worker_next(QSFWorker *w, QSFEvent *e);
/* The part of an answer's reasoning that people want to read: without the tags and the white space around. Points into
 * text, which may be NULL; body_len must not be. Any thread. */
const char *qsf_reasoning_body(const char *text, size_t len, size_t *body_len);
/* "eos", "stop", "length", "context", "interrupted". */
const char *qsf_stop_name(QSFStop s);

/* ---- what the engine is doing ----------------------------------------------------------------- */

#define QSF_STATS_MEM 12

typedef enum QSFState { QSF_STATE_EMPTY, QSF_STATE_LOADING, QSF_STATE_IDLE, QSF_STATE_PREFILL, QSF_STATE_DECODE } QSFState;

typedef struct QSFMemRow {
    const char *name;  /* static */
    uint64_t used, planned;
} QSFMemRow;

typedef struct QSFStats {
    QSFState state;
    uint64_t elapsed_ns;            /* in this state */
    uint64_t pin_done, pin_total;   /* bytes of weights in RAM, and planned to be: pinning goes on behind typing and
                                       answering */
    char model_name[128];           /* clean UTF-8; file name when the model has no name */
    char model_path[512];
    char model_desc[128];           /* "llama 1.1B Q4_0" */
    char template_name[64];         /* "model", "chatml", "none" */
    char backend[16];               /* ISA level */
    char plan_note[256];
    uint32_t n_layers, layer;       /* layer being computed */
    uint32_t threads;
    uint32_t ctx_used, ctx_size;
    uint32_t ctx_train;             /* longest context that the model was trained for; 0 = the file does not say */
    uint32_t prefill_done, prefill_total;
    uint32_t out_tokens, max_tokens;/* of the running or last answer; max 0 = none */
    double prefill_tps, decode_tps; /* of the running or last request; 0 = not known yet */
    double ttft_ms;                 /* time to the first token of the last request */
    double token_p, token_entropy;  /* of the last token: probability after the filters, entropy in bits before them */
    uint64_t budget, rss, peak_rss;
    QSFMemRow mem[QSF_STATS_MEM];
    uint32_t n_mem;
    uint64_t pinned_bytes, streamed_bytes;  /* weights in RAM; weights read per token */
    uint64_t bytes_read;            /* since the request began */
    double bytes_per_token, io_gbps, stall; /* stall: fraction of the time waiting for the disk */
    double wait_ms, compute_ms;     /* of the running or last request */
    char io_name[32];               /* "io_uring, direct"; "" when nothing is read */
    char io_notice[160];            /* why it is not what was asked for, or "" */
    uint64_t embed_hits, embed_misses; /* of the embedding row cache */
} QSFStats;

/* One layer, for the heat strip and tables; the last one is the head. Of the running or last request. */
typedef struct QSFLayerStats {
    uint64_t weight_bytes, pinned_bytes;
    uint64_t read_bytes, wait_ns, compute_ns;
} QSFLayerStats;

/* A consistent snapshot by value. Any thread; cheap enough for 20 calls a second. */
void qsf_worker_stats(QSFWorker *w, QSFStats *out);
/* Fills out[0..min(n, max)) and returns n, the number of layers and one for the head; 0 without a model or memory. out
 * may be NULL. Any thread. */
uint32_t qsf_worker_layers(QSFWorker *w, QSFLayerStats *out, uint32_t max);

/* Model facts for /show: newline-terminated text, malloc'ed; what is "model", "template",
 * "plan" or "memory" (the ledger's categories and regions, now). NULL when no model is loaded or without memory. */
char *qsf_worker_describe(QSFWorker *w, const char *what);
/* The prompt that a request would be answered from, as people read it: each special token stands between U+27E6 and
 * U+27E7; the last line says how many tokens it has. malloc'ed; NULL with a sentence in err (no model, the template
 * refuses, too long to be shown now). Also while an answer is being written. */
char *qsf_worker_prompt(QSFWorker *w, const QSFRequest *r, char *err, size_t cap);
/* Number of tokens of that prompt; -1 where qsf_worker_prompt would fail. Owner's thread; takes as long as tokenizing
 * the messages. Also while an answer is being written. */
int64_t qsf_worker_count(QSFWorker *w, const QSFRequest *r);
/* Names of the loaded model's own named templates, as qsf_template_names: values of the setting template. */
char *qsf_worker_templates(QSFWorker *w);
/* The model that is shipped with the programs, as a MODEL argument. */
#define QSF_GUIDE "guide"
/* The file that a MODEL argument means, malloc'ed: for QSF_GUIDE models/guide.qsf of the installed data (where it is, or
 * else where it ought to be), for anything else itself ("./guide" is a file). NULL without memory. Any thread. */
char *qsf_model_file(const char *name);
/* Names of the template files, sorted, NUL-separated, ended by an empty name; free() it. */
char *qsf_template_names(void);
const char *qsf_version(void);

#ifdef __cplusplus
}
#endif

#endif
