/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Converts messages to the token ids of a prompt. A template is a small, untrusted Jinja program (from the
 * model file or a file of templates/): it runs with limits on steps, depth, memory and output. It renders to
 * segments that remember their origin: special tokens are recognized only in text of the template itself,
 * never in text from a user or a file. */
#ifndef QSF_CHAT_CHAT_H
#define QSF_CHAT_CHAT_H

#include "src/base/json.h"
#include "src/base/strbuf.h"
#include "src/token/tokenizer.h"

typedef struct QsfMsg {
    const char *role;    /* "system", "user", "assistant" */
    const char *content; /* bytes, any */
    size_t len;
    const char *reasoning; /* (reasoning_len) of an answer, tags included (src/chat/think.h); NULL = none */
    size_t reasoning_len;
    uint8_t thought;   /* QSF_THOUGHT_* (qsf_engine.h): of the last message, whether it has tags */
    const char *exact; /* (exact_len) of an unfinished answer: exactly what was generated
                          (src/chat/think.h); NULL = unknown */
    size_t exact_len;
    const char *calls; /* (calls_len) JSON of an answer's tool_calls; NULL = none */
    size_t calls_len;
    const char *call_id, *name; /* of the result of a tool, or NULL */
    const char *tools;          /* of the first message: (tools_len) JSON of the tools that answers may
                                   call; NULL = none */
    size_t tools_len;
} QsfMsg;

/* A run of rendered text. trusted: written by the template itself. */
typedef struct QsfSegment {
    size_t off, len; /* in QsfRendered.text */
    bool trusted;
} QsfSegment;

typedef struct QsfRendered {
    QsfStrbuf text;
    QsfSegment *segs; /* (n_segs), in order, covering text */
    size_t n_segs, cap_segs;
    size_t lost; /* 1 + index of a message whose text the template left out, the newest one; 0 = none */
} QsfRendered;
/* Frees the text and its marks; a zeroed one is allowed. */
void qsf_rendered_free(QsfRendered *r);

typedef struct QsfChatTemplate QsfChatTemplate;

/* Chooses and compiles a template.
 *   name NULL     the one in the model's metadata (tokenizer.chat_template; only named ones there:
 *                 "default", or else the first, with a notice); none: *out = NULL and success, text is
 *                 continued unchanged, with a notice
 *   "model:NAME"  the model's tokenizer.chat_template.NAME ("model:default": the unnamed one, without a
 *                 fallback)
 *   name "raw"    *out = NULL and success
 *   name          as for qsf_chat_file_read; otherwise a named one of the model
 * A model's template that uses an unsupported construct, or fails when it runs, falls back to a file of
 * templates/ that produces the same special tokens, with a notice that names line and construct; if there is
 * none, to the closest by the special tokens of the vocabulary (ChatML where <|im_start|> exists, ...). So
 * does a template that is known to be a converter's placeholder.
 * notice gets one sentence for the user or "" (may be NULL). QSF_E_MODEL / QSF_E_USAGE (unknown name:
 * lists the known ones). */
int qsf_chat_template_open(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok,
                           const char *name, char *notice, size_t notice_cap, QsfErr *err);
void qsf_chat_template_close(QsfChatTemplate *t); /* NULL allowed */
/* Whether the vocabulary has no control tokens but the usual ones around a text: the model was not trained to
 * chat and needs no template. */
bool qsf_chat_is_base(const QsfTokenizer *tok);
/* "model", "model:NAME" or the name of the file that is used. */
const char *qsf_chat_template_name(const QsfChatTemplate *t);
/* Its source text, for /show template. */
const char *qsf_chat_template_source(const QsfChatTemplate *t);

/* Whether a model with optional reasoning should use it; AUTO leaves this to the template. */
typedef enum QsfReason {
    QSF_REASON_AUTO,
    QSF_REASON_ON,
    QSF_REASON_OFF,
    QSF_REASON_LOW, /* this and higher values: reasoning is on, with this effort */
    QSF_REASON_MEDIUM,
    QSF_REASON_HIGH,
    QSF_REASON_N
} QsfReason;
/* "auto", "on", "off", "low", "medium", "high"; parse returns _N if the word is unknown. */
QsfReason qsf_reason_parse(const char *word);
const char *qsf_reason_word(QsfReason r);
/* Returns a sentence for the user if the template ignores the setting r or does
 * something else; otherwise NULL. */
#define QSF_REASON_NO_SWITCH "reasoning: the model's chat template has no such switch, so it changes nothing"
#define QSF_REASON_LOWERS    "reasoning: the model's chat template cannot turn it off, only lower its effort"
#define QSF_REASON_SAME \
    "reasoning: with the model's chat template, off changes nothing: it names no word for it"
const char *qsf_chat_reasoning_note(const QsfChatTemplate *t, QsfReason r);

enum {
    QSF_CHAT_GENERATE = 1,      /* open the assistant's turn */
    QSF_CHAT_CONTINUE = 2,      /* continue the last message, which is the assistant's */
    QSF_CHAT_ALLOW_SPECIAL = 4, /* special tokens in contents are parsed too (when tokenizing) */
    QSF_CHAT_CALLS = 8,         /* tool calls in answers are tool_calls of a template that takes them */
    QSF_CHAT_RAW = 16,          /* no template: the contents are continued (qsf_prompt_encode) */
    QSF_CHAT_REASON = 32        /* multiplied by a QsfReason */
};

/* Renders. GENERATE opens the assistant's turn. If the last message is the assistant's and CONTINUE is set,
 * its content follows the opened turn unchanged, so that generation continues it. flags: QSF_CHAT_*. A
 * template that raises (raise_exception) or breaks a limit: QSF_E_RUNTIME with its message, after the names
 * of the file and the template. A system message that the template refuses is added before the first user
 * message. Tools, for a template that does not mention them, or that are not a JSON array: QSF_E_USAGE.
 * Contents are lists of typed parts where the template does not print strings. */
int qsf_chat_render(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, unsigned flags, QsfRendered *out,
                    QsfErr *err);

/* Renders and tokenizes segment by segment (special tokens only in trusted ones, unless allowed); adds BOS if
 * the vocabulary requires it and the text does not begin with it already. t NULL: the concatenated contents
 * as plain text, separated by newlines. flags: QSF_CHAT_*. */
int qsf_chat_encode(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                    unsigned flags, QsfIds *out, QsfErr *err);

/* A sentence for the user about the message that is QsfRendered.lost. */
void qsf_chat_lost_note(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, size_t lost, char *out,
                        size_t cap);

/* The marks around a special token in qsf_chat_show: U+27E6 and U+27E7. */
#define QSF_CHAT_MARK_OPEN  "\xE2\x9F\xA6"
#define QSF_CHAT_MARK_CLOSE "\xE2\x9F\xA7"
/* Appends a readable prompt: the text of the ids, with special tokens by name between the marks (user-defined
 * ones too, unless they are white space). *n_special (may be NULL) is the number of marked tokens.
 * QSF_E_RUNTIME without memory. */
int qsf_chat_show(const QsfTokenizer *tok, const QsfIds *ids, QsfStrbuf *out, size_t *n_special, QsfErr *err);

/* The token that the template writes after an answer, whether or not the metadata declares it as an end; -1
 * if it writes none, cannot render a conversation, or is NULL. QSF_E_RUNTIME without memory. */
int qsf_chat_turn_end(const QsfChatTemplate *t, const QsfTokenizer *tok, int32_t *id, QsfErr *err);

/* Names of the files found in the template folders, sorted, NUL-separated, terminated by an empty name;
 * free() it. */
char *qsf_chat_template_list(void);
/* The same for the named templates of a model, as "model:NAME", in the order of the file. */
char *qsf_chat_template_variants(const QsfSource *src);

/* The text of a template from a file. */
typedef struct QsfChatFile {
    char *text; /* (len), and a NUL */
    size_t len;
    char *name;         /* for display */
    QsfJson *config;    /* the tokenizer_config.json next to it, or NULL */
    const char *damage; /* a notice about its encoding (qsf_decode.h); static storage, or NULL */
} QsfChatFile;
/* name: a file of the template directories (chatml, llama3, ...; with or without .jinja), the path of a file,
 * or the path of a tokenizer_config.json or of its directory; a named template of one is PATH:NAME.
 * QSF_E_USAGE lists the available ones, QSF_E_MODEL if a file cannot be read. */
int qsf_chat_file_read(const char *name, QsfChatFile *out, QsfErr *err);
void qsf_chat_file_free(QsfChatFile *f); /* a zeroed one is allowed */

#endif
