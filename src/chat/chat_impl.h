/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that implement chat.h. */
#ifndef QSF_CHAT_CHAT_IMPL_H
#define QSF_CHAT_CHAT_IMPL_H

#include "src/base/json.h"
#include "src/chat/chat.h"
#include "src/jinja/jinja.h"

#define QSF_CHAT_VARS         32       /* special token variables of a template */
#define QSF_CHAT_MORE         256      /* additional_special_tokens */
#define QSF_CHAT_SAMPLE_STEPS 4000000u /* of all samples; templates of models need thousands for one */
#define QSF_CHAT_SWITCHES     24       /* variables that switch reasoning */

/* A special token that the template may name: bos_token, ... */
typedef struct QsfChatVar {
    char *name, *text;
} QsfChatVar;

/* Roles whose contents are lists of parts. */
enum { QSF_CHAT_USER = 1, QSF_CHAT_ASSISTANT = 2, QSF_CHAT_SYSTEM = 4 };

/* How a template reads the reasoning of an earlier answer as a part {"type": "thinking",
 * "thinking": ...} of its content. */
enum {
    QSF_CHAT_THINKING_NONE,
    QSF_CHAT_THINKING_TEXT, /* its text is a string */
    QSF_CHAT_THINKING_PARTS /* its text is a list of parts */
};

/* The value of a variable that switches reasoning. */
typedef struct QsfChatValue {
    enum { QSF_CHAT_UNSET, QSF_CHAT_BOOL, QSF_CHAT_INT, QSF_CHAT_WORD } kind;
    int number;
    const char *word; /* static */
} QsfChatValue;

typedef struct QsfChatSwitch {
    const char *name; /* static */
    QsfChatValue value[QSF_REASON_N];
} QsfChatSwitch;

struct QsfChatTemplate {
    QsfJinja *jinja;
    char *name;  /* "model", "model:NAME" or a file name without its extension */
    char *given; /* name or path of a file as it was given, for messages; otherwise NULL */
    char *model; /* for a model's own template: the model's file, for messages; otherwise NULL */
    char *source;
    size_t source_len;
    QsfChatVar vars[QSF_CHAT_VARS]; /* (n_vars) */
    size_t n_vars;
    char *more[QSF_CHAT_MORE]; /* (n_more) */
    size_t n_more;
    unsigned listed;                           /* QSF_CHAT_USER, ... */
    int thinking;                              /* QSF_CHAT_THINKING_NONE, ... */
    bool hides_user;                           /* the text of a user appears in no form */
    QsfChatSwitch switches[QSF_CHAT_SWITCHES]; /* (n_switches) */
    size_t n_switches;
    bool takes_switch;     /* one of them makes a difference */
    uint64_t sample_steps; /* that are left for finding out the above */
    bool guesses_off;      /* the template has no known word for off: the one that is used has no effect */
    bool lowers;           /* reasoning cannot be switched off: it has the lowest effort */
};

/* How messages name a template: "the model's chat template", or "chat template NAME"; of a file, the name or
 * path that was given. */
typedef struct QsfChatLabel {
    char text[280];
} QsfChatLabel;
QsfChatLabel qsf_chat_label(const QsfChatTemplate *t);

/* --- chat/token_variables.c: the special tokens available to a template --- */
/* From the vocabulary and its metadata, overridden by a tokenizer_config.json (config, may be NULL). */
int qsf_chat_vars_init(QsfChatTemplate *t, const QsfSource *src, const QsfTokenizer *tok,
                       const QsfJson *config, QsfErr *err);
void qsf_chat_vars_free(QsfChatTemplate *t);
void qsf_chat_vars_bind(const QsfChatTemplate *t, QsfJinjaVars *v);

/* --- chat/reasoning_variables.c --- */
/* Finds the variables and values of t->switches. QSF_E_RUNTIME without memory. */
int qsf_chat_find_switches(QsfChatTemplate *t, QsfErr *err);
/* Sets the n variables s for the setting r; AUTO sets none. */
void qsf_chat_reason_bind(const QsfChatSwitch *s, size_t n, QsfReason r, QsfJinjaVars *v);

/* --- chat/template_families.c: files that replace templates that cannot be used --- */
/* The file for a template with this text, or for the vocabulary alone (text NULL), or NULL. */
const char *qsf_chat_family(const QsfSource *src, const QsfTokenizer *tok, const char *text, size_t len);
/* Why a model's own template is known not to be the one it was trained with (use *file), or NULL. */
const char *qsf_chat_placeholder(const char *text, size_t len, const char **file);

/* --- chat/message.c --- */
/* One rendering. */
typedef struct QsfChatRequest {
    const QsfChatTemplate *t;
    const QsfMsg *msgs; /* (n) */
    size_t n;
    bool generation;               /* add_generation_prompt */
    bool calls;                    /* answers have tool_calls */
    bool open_end;                 /* continue the last message; of qsf_chat_render */
    const QsfChatSwitch *switches; /* (n_switches) */
    size_t n_switches;
    QsfReason reason;   /* their values */
    uint64_t max_steps; /* 0 = those of the content */
} QsfChatRequest;

/* The result of a rendering that did not fail, and the reason why one did. */
typedef struct QsfChatOutcome {
    uint64_t steps;
    bool raised; /* the template called raise_exception */
    bool memory; /* memory ran out, so another rendering must not be used instead */
} QsfChatOutcome;

/* QSF_E_RUNTIME names the template, and the model that it is from. */
int qsf_chat_render_once(const QsfChatRequest *q, QsfRendered *out, QsfChatOutcome *oc, QsfErr *err);
/* Renders q with t to find out something, within t->sample_steps: *ok is false if the template fails or none
 * are left. QSF_E_RUNTIME only without memory, QSF_E_INTERRUPTED. */
int qsf_chat_sample(QsfChatTemplate *t, QsfChatRequest *q, QsfRendered *out, bool *ok, QsfErr *err);
/* Renders short conversations to test whether the template runs. *raised: it refused one by
 * raise_exception. */
int qsf_chat_try(const QsfChatTemplate *t, bool *raised, QsfErr *err);

/* Appends text to a rendering, as a new segment or to the last one. QSF_E_RUNTIME without memory. */
int qsf_rendered_add(QsfRendered *r, const char *text, size_t len, bool trusted, QsfErr *err);

/* --- chat/tool_calls.c --- */
/* Returns the value tool_calls of an answer that calls tools with JSON objects as arguments; missing for any
 * other message. *len: bytes of the content before the calls, or of all of it. */
QsfJVal qsf_chat_tool_calls(QsfJMem *m, const QsfMsg *msg, size_t *len);
/* Whether an answer of the request calls a tool and the template renders calls: name, keys and values. */
bool qsf_chat_takes_calls(const QsfChatRequest *q);

/* --- chat/json_calls.c --- */
/* The value of JSON that a client gave: the tools of a conversation; none if there are none. */
QsfJVal qsf_chat_tools_value(QsfJMem *m, const QsfMsg *msgs, size_t n);
/* The tool_calls of an answer, with arguments as objects; missing if it has none. */
QsfJVal qsf_chat_calls_value(QsfJMem *m, const QsfMsg *msg);
/* Whether the tools and calls of messages are JSON, and the template takes them. QSF_E_USAGE. */
int qsf_chat_check_tools(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, QsfErr *err);

/* --- chat/render.c --- */
/* Without a template messages are text: does msgs[i] begin a line? An answer continues what it answers, as it
 * was written; every other message is on its own lines. */
bool qsf_chat_breaks_line(const QsfMsg *msgs, size_t i);
/* qsf_chat_encode; *lost (may be NULL) as QsfRendered.lost. */
int qsf_chat_encode_checked(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                            unsigned flags, QsfIds *out, size_t *lost, QsfErr *err);
/* The second half of qsf_chat_encode; allow: QSF_CHAT_ALLOW_SPECIAL. */
int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, bool allow, QsfIds *out,
                             QsfErr *err);

#endif
