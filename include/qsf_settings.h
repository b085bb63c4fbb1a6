/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_settings.h: the settings of an engine; a part of qsf_engine.h, whose rules apply. */
#ifndef QSF_SETTINGS_H
#define QSF_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings: one table for options, /set, help and man pages -------------------------------- */

#define QSF_SETTING_TEXT 1024 /* bytes of any value as text, with its NUL */
#define QSF_SETTING_LINE 256  /* of values that are a name or a sentence */
#define QSF_SAMPLERS_MAX 24   /* stages of the sampler */

/* What an answer has to match. */
typedef enum QSFGrammarKind {
    QSF_GRAMMAR_NONE,
    QSF_GRAMMAR_GBNF,
    QSF_GRAMMAR_SCHEMA, /* JSON Schema */
    QSF_GRAMMAR_REGEX,  /* the whole answer matches a regular expression */
    QSF_GRAMMAR_WORDS,  /* each word matches a regular expression */
    QSF_GRAMMAR_N
} QSFGrammarKind;

/* Read once per token: a change takes effect with the next one. */
typedef struct QSFParams {
    float temperature;     /* 0 = argmax */
    float top_p;           /* (0, 1], 1 = off */
    float min_p;           /* [0, 1], 0 = off */
    float repeat_penalty;  /* 1 = off */
    float quality;         /* (0, 1]: about this part of the weights is used for each token; 1 = all, as 0 */
    int32_t top_k;         /* 0 = off */
    int32_t repeat_last_n; /* tokens the repeat penalty considers; -1 = all */
    int32_t max_tokens;    /* 0 = until the end of the turn or of the context */
    int32_t expert_top;    /* experts that a token uses at most of those that a router chooses; 0 = all */
    float expert_drop;     /* [0, 1]: none whose weight is below this part of the largest one; 0 = all */
    bool ignore_eos;
    bool allow_special; /* parse special tokens in message text; read once per prompt */
    uint8_t
        reasoning; /* value of the setting "reasoning", read once per prompt; 0 = the template's default */
    bool seed_set; /* false: each request draws its own seed and reports it */
    uint64_t seed;
    int32_t reasoning_limit; /* 1 + the tokens of reasoning after which an answer should begin (setting
                                "reasoning-budget"); 0 = no limit */
    char reasoning_message[QSF_SETTING_LINE]; /* written before reasoning is closed; read once per request */
    /* Sampling; stages whose first member is 0 are off. */
    uint8_t
        samplers[QSF_SAMPLERS_MAX];    /* the order of the stages (setting "samplers"); zeros = the default */
    float presence, frequency;         /* subtracted from logits of tokens used before: once, and each time */
    float dry, dry_base;               /* multiplier and base of the penalty for repeated sequences */
    int32_t dry_length;                /* that may be repeated without a penalty */
    float typical;                     /* (0, 1), 1 = off */
    float top_n_sigma;                 /* standard deviations below the largest logit */
    float xtc, xtc_threshold;          /* probability that the likeliest tokens are left out, and which are */
    float dynatemp, dynatemp_exponent; /* temperature is by entropy, this much above and below the other */
    int32_t mirostat;                  /* version 1 or 2 */
    float mirostat_tau, mirostat_eta;  /* surprise in bits, and learning rate */
    float adaptive_target, adaptive_decay; /* tokens about as likely as this, on average */
    float least;                           /* the unlikeliest token that has this probability */
    char dry_breakers[QSF_SETTING_LINE];   /* a list: sequences end at these texts */
    char logit_bias[QSF_SETTING_TEXT];     /* a list of TOKEN=X, TOKEN a text or #id */
    char ban[QSF_SETTING_TEXT];            /* a list of texts and #ids that the answer does not have */
    /* What the answer has to match, one of the settings "grammar", "json-schema", "regex" and "only"; read
     * once per request. A file, or "any" for any JSON; an expression; for words it and, after a blank, one
     * for the words between them. */
    uint8_t grammar_kind; /* QSFGrammarKind */
    char grammar[QSF_SETTING_TEXT];
} QSFParams;

#define QSF_PROTECT_NOTHING UINT32_MAX

/* A set of settings: bit i is row i of qsf_setting_at. */
__extension__ typedef unsigned __int128 QSFSettingSet;
#define QSF_SETTINGS_MAX 128u

typedef struct QSFSettings {
    QSFParams params;
    uint64_t ram_budget;  /* 0 = auto */
    uint32_t ram_percent; /* 1..100: percentage of available memory, instead of ram_budget; 0 = not used */
    uint64_t pin;         /* maximum bytes to pin; UINT64_MAX = no limit */
    uint32_t ctx;         /* 0 = min(model, 4096), may be lowered to fit */
    uint32_t batch;       /* prefill chunk in tokens; 0 = chosen by the engine */
    int32_t threads;      /* 0 = as many as are measured to be the fastest */
    uint32_t slots;       /* streaming buffers for weights, 1..4; 0 = chosen by the engine */
    char io[8];           /* "auto", "uring", "pread", "mmap" */
    char direct[8];       /* "auto", "on", "off": O_DIRECT */
    char kv[8];           /* type of the KV cache: "auto" = chosen by the engine, or a name: "f16", "q4" */
    char k[8], v[8];      /* the same for K or V alone; "auto" or "" = kv */
    uint8_t embedding;    /* value of the setting "embedding": 0 = chosen by the engine */
    char eviction[8];     /* "none", "sliding", "h2o", "snapkv"; "" = none */
    uint32_t eviction_window;  /* positions kept besides the protected ones; 0 = what the context holds */
    uint32_t protected_prefix; /* first positions that are never evicted; 0 = the system prompt, at least 4;
                                  QSF_PROTECT_NOTHING */
    uint32_t memory_threshold; /* MiB of available memory below which the cache shrinks; 0 = not watched */
    char cpu_mask[16];         /* "" = best */
    char chat_template[QSF_SETTING_LINE]; /* "" = the model's own */
    char expert_ahead[8];                 /* "auto", "on", "off": read experts before they are chosen */
    char speculate[8]; /* "auto", "off", or the source of drafts: "lookup", "nextn", "pinned" or
                          "draft"; "" = auto */
    char draft_model[QSF_SETTING_LINE];    /* a smaller model that drafts; "" = none */
    char trace_experts[QSF_SETTING_LINE];  /* file to which choices of experts are written; "" = none */
    char lora[QSF_SETTING_TEXT];           /* a list of FILE[:SCALE]: adapters in use; "" = none */
    char control_vector[QSF_SETTING_TEXT]; /* the same of control vectors */
    bool no_learn; /* which experts of a sparse model are used is neither read nor written: otherwise in a
                            file per model in $XDG_STATE_HOME/qsf/experts, which changes no result */
    bool show_thinking;  /* used by the programs: show reasoning instead of folding or omitting it */
    bool prefill_ahead;  /* used by qsf-chat: evaluate a message while it is typed (qsf_worker_ahead) */
    bool commands;       /* used by the programs, not a setting: messages name chat commands (/budget)
                            instead of options (--ram-budget) */
    uint64_t text_bytes; /* used by the programs, not a setting: bytes of the messages that a conversation has
                            when a model is loaded or planned again; an automatic budget has room for them */
    uint64_t owner_bytes; /* used by the programs, not a setting: memory that the program itself takes while a
                             model is loaded, beside what it had when that began; a part of every plan */
    uint32_t candidates;  /* used by the programs, not a setting: QSFToken.n, at most QSF_CANDIDATES_MOST; 0 =
                            QSF_CANDIDATES. Counts when a model is loaded */
    uint32_t
        ctx_tokens; /* the same in tokens, when planned again; 0 = not known. An automatic context that has
                            room for them, and for 256 of an answer, keeps it */
    QSFSettingSet user_set; /* the rows that qsf_setting_set has set */
} QSFSettings;

/* LIVE: takes effect with the next token. REPLAN: takes effect between two tokens, with a new memory plan;
 * the tokens do not change, unless CHANGES is set, too. RELOAD: takes effect when a model is
 * loaded or reloaded. LIST: items separated by ',', or "off"; an option adds one each time that it is
 * given. */
enum {
    QSF_SETTING_LIVE = 1,
    QSF_SETTING_RELOAD = 2,
    QSF_SETTING_REPLAN = 4,
    QSF_SETTING_CHANGES = 8,
    QSF_SETTING_LIST = 16,
    QSF_SETTING_MORE = 32, /* shown beside the conversation only while it has another value than by default */
    QSF_SETTING_HERE = 64  /* not kept with a session: it names a file that is written */
};

typedef struct QSFSetting {
    const char *name;      /* "top-p": also the long option */
    const char *aliases;   /* "top_p,topp" or "" */
    char short_name;       /* 'n', or 0 */
    const char *arg;       /* "F", "N", "SIZE", "NAME"; NULL for a switch */
    unsigned flags;        /* QSF_SETTING_* */
    const char *help;      /* one line, with range and default */
    double min, max, step; /* numbers: the range, and the step of a live key (0 = none) */
} QSFSetting;

/* Fills s with the programs' defaults; max_tokens is 0, as in the chat. Any thread. */
void qsf_settings_default(QSFSettings *s);
/* Returns the number of settings. */
size_t qsf_setting_count(void);
/* Returns row i, static; NULL when out of range. */
const QSFSetting *qsf_setting_at(size_t i);
/* Finds a row by name or alias ('_' equals '-'); NULL when unknown. */
const QSFSetting *qsf_setting_find(const char *name);
/* Parses, checks and stores value. Returns 0, or 2 with a message in err: the setting and its range. */
int qsf_setting_set(QSFSettings *s, const QSFSetting *row, const char *value, char *err, size_t cap);
/* Adds an item to a row with QSF_SETTING_LIST; one of the same token is replaced. The item is written as in
 * the list, but ',' needs no '\'. "off" clears the list; other rows are set. Errors as qsf_setting_set. */
int qsf_setting_add(QSFSettings *s, const QSFSetting *row, const char *item, char *err, size_t cap);
/* Removes the item of a token, whose "=X" may be missing; false when there is none. */
bool qsf_setting_remove(QSFSettings *s, const QSFSetting *row, const char *item);
/* Checks that no two settings exclude each other: a quality below 1, or a limit for experts, and an eviction
 * policy. Returns 0, or 2 with both and the reason in err. The programs and the worker refuse such settings.
 * Any thread. */
int qsf_settings_check(const QSFSettings *s, char *err, size_t cap);
/* Compiles the grammar that the parameters name, without a model, while the resident set of the process stays
 * below `budget` bytes (0 = no limit). 0, or a code with a message in err: what is wrong or not supported and
 * where, why the file cannot be read, or that it takes too much memory (4). Any thread. */
int qsf_grammar_check(const QSFParams *p, uint64_t budget, char *err, size_t cap);
/* Returns the first setting with which answers leave something out, and in *off its value with which they do
 * not (static); NULL: none does. */
const QSFSetting *qsf_settings_reducing(const QSFSettings *s, const char **off);
/* Prints the current value as text that qsf_setting_set reads back; "" when s or row is NULL. */
void qsf_setting_get(const QSFSettings *s, const QSFSetting *row, char *dst, size_t cap);
/* Has qsf_setting_set set this row? Then a model's recommendation does not replace it. */
bool qsf_setting_user_set(const QSFSettings *s, const QSFSetting *row);
/* Do x and y have different values of row? */
bool qsf_setting_differs(const QSFSettings *x, const QSFSettings *y, const QSFSetting *row);
/* Returns the flags (QSF_SETTING_*) of all rows that differ between x and y. */
unsigned qsf_settings_differ(const QSFSettings *x, const QSFSettings *y);
/* Copies the rows that have one of flags (QSF_SETTING_*) from src to dst, and whether they are user_set;
 * except values that qsf_setting_set would reject. */
void qsf_settings_take(QSFSettings *dst, const QSFSettings *src, unsigned flags);
/* Parses "200", "200M", "1.5G", "64K", "25%" (*bytes is 0, *percent is set) or "auto" (both 0). Plain numbers
 * are MB; all units are powers of 1024. false when malformed or out of range. */
bool qsf_parse_size(const char *text, uint64_t *bytes, uint32_t *percent);

/* ---- a token, and what the model said about it (qsf_engine.h) ---- */

#define QSF_CANDIDATES      8      /* of each token of an answer */
#define QSF_CANDIDATES_MOST 20     /* of an engine that is asked for more (QSFSettings.candidates) */
#define QSF_TOKENS_KNOWN    16384u /* tokens of an answer that can be a branch; later ones are not kept */
#define QSF_TOKENS_ROWS     2048u  /* of these, the last ones have rows */

typedef struct QSFCandidate {
    int32_t id;
    float p;
} QSFCandidate;

/* A token of an answer. Probabilities are those of the model itself: at temperature 1, without penalties and
 * filters. The token that ended the answer is the last one; it has no text. */
typedef struct QSFToken {
    int32_t id;
    float p;                          /* of this token */
    float entropy;                    /* of all tokens at this place, in bits */
    uint32_t text_end, reasoning_end; /* bytes of the answer and of its reasoning up to the end of this token.
                                         Text that was held back belongs to the token that completed it */
    uint32_t n;                       /* candidates */
    QSFCandidate top[QSF_CANDIDATES_MOST]; /* (n) the likeliest tokens, likeliest first */
} QSFToken;

#ifdef __cplusplus
}
#endif

#endif
