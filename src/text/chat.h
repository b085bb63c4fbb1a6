/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From messages to the token ids of a prompt. A template is a small Jinja program from a stranger (the
 * model file, or a file of templates/): it runs with limits on steps, depth, memory and output.
 * It renders to segments that remember what they come from: special tokens are recognised only in
 * text of the template itself, never in what a user or a file said. */
#ifndef QSF_TEXT_CHAT_H
#define QSF_TEXT_CHAT_H

#include "src/base/strbuf.h"
#include "src/text/tokenizer.h"

typedef struct QsfMsg {
    const char *role;     /* "system", "user", "assistant" */
    const char *content;  /* bytes, any */
    size_t len;
    const char *reasoning; /* (reasoning_len) of an answer, tags included (src/text/think.h); NULL = none */
    size_t reasoning_len;
} QsfMsg;

/* A run of rendered text. trusted: written by the template itself. */
typedef struct QsfSegment {
    size_t off, len;      /* in QsfRendered.text */
    bool trusted;
} QsfSegment;

typedef struct QsfRendered {
    QsfStrbuf text;
    QsfSegment *segs;     /* (n_segs), in order, covering text */
    size_t n_segs, cap_segs;
} QsfRendered;
void qsf_rendered_free(QsfRendered *r);

typedef struct QsfChatTemplate QsfChatTemplate;

/* Chooses and compiles a template.
 *   name NULL     the one in the model's metadata (tokenizer.chat_template); none: *out = NULL and
 *                 success, the model is a base model and text is continued as it is
 *   name "raw"    *out = NULL and success
 *   name          a file of the template folders (chatml, llama3, ...; with or without .jinja), or a
 *                 path to a file
 * A model's template that uses a construct we do not have falls back to a file of templates/ that
 * makes the same special tokens, with a notice; where none fits, to the closest by the special tokens of the
 * vocabulary (ChatML where <|im_start|> exists, ...).
 * notice gets one sentence for the user or "" (may be NULL). QSF_E_MODEL / QSF_E_USAGE (unknown name:
 * lists the known ones). */
int qsf_chat_template_open(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, const char *name,
                           char *notice, size_t notice_cap, QsfErr *err);
void qsf_chat_template_close(QsfChatTemplate *t); /* NULL allowed */
/* "model" or the name of the file that is used. */
const char *qsf_chat_template_name(const QsfChatTemplate *t);
/* Its source text, for /show template. */
const char *qsf_chat_template_source(const QsfChatTemplate *t);

/* Renders. add_generation_prompt opens the assistant's turn. When the last message is the assistant's
 * and continue_last is set, the render stops right after its content so that generation goes on with it.
 * A template that raises (raise_exception) or breaks a limit: QSF_E_RUNTIME with its message.
 * A system message that the template refuses is put in front of the first user message. */
int qsf_chat_render(const QsfChatTemplate *t, const QsfMsg *msgs, size_t n, bool add_generation_prompt,
                    bool continue_last, QsfRendered *out, QsfErr *err);

/* Renders and tokenizes segment by segment (special tokens only in trusted ones); adds BOS where the vocabulary
 * wants it and the text does not begin with it already. t NULL: the contents one after another, as plain
 * text, separated by a newline. */
int qsf_chat_encode(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                    bool add_generation_prompt, bool continue_last, QsfIds *out, QsfErr *err);

/* The token that the template writes behind an answer, whether or not the metadata names it as an end; -1 when it
 * writes none, cannot render a conversation, or is NULL. QSF_E_RUNTIME without memory. */
int qsf_chat_turn_end(const QsfChatTemplate *t, const QsfTokenizer *tok, int32_t *id, QsfErr *err);

/* Names of the files found in the template folders, sorted, NUL-separated, ended by an empty name;
 * free() it. */
char *qsf_chat_template_list(void);

#endif
