/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files that implement think.h. */
#ifndef QSF_CHAT_THINK_IMPL_H
#define QSF_CHAT_THINK_IMPL_H

#include "src/chat/chat_impl.h"
#include "src/chat/think.h"

/* Maximum white space before a block; more is an answer. */
#define QSF_THINK_BLANKS 64

/* --- think.c --- */
/* The text that opens and closes reasoning and opens the answer, for formats other than TAGS. */
typedef struct QsfThinkDialect {
    const char *reasoning, *end, *next, *answer; /* next: the head of the assistant's next message */
    const char *start;                           /* the token that begins a message */
    const char *const *tokens;                   /* all tokens of the format, NULL-terminated */
} QsfThinkDialect;
/* NULL for NONE and TAGS. */
const QsfThinkDialect *qsf_think_dialect(QsfThinkFormat f);

/* The text that opens a message of reasoning. */
const char *qsf_think_reasoning_head(QsfThinkFormat f, bool commentary);
/* A block or message of reasoning, without its tags. */
typedef struct QsfThinkBlock {
    const char *text;
    size_t len;
    bool commentary; /* its channel */
} QsfThinkBlock;
/* Finds the first block at or after *at, and moves *at to its end. Returns false if there is none. */
bool qsf_think_block(const char *text, size_t len, size_t *at, QsfThinkBlock *b);

/* --- think_prompt.c --- */
/* Start of the last message in the template's own text at the end of the prompt, or the length
 * of the prompt. */
size_t qsf_think_last_message(const QsfThinkDialect *d, const QsfRendered *r);
/* Removes everything after `at`. */
void qsf_think_cut(QsfRendered *r, size_t at);

/* --- think_calls.c: answers that call tools --- */
/* A part of the text of an answer: text, or a call. */
typedef struct QsfCallPart {
    const char *name; /* (name_len); NULL: text */
    size_t name_len;
    const char *text; /* (len): of a call, its arguments */
    size_t len;
} QsfCallPart;
/* The part at the start of the text; returns what follows it, NULL at the end of the text. Only the first
 * part can be text. */
const char *qsf_call_next(const char *text, const char *end, QsfCallPart *p);

/* Where calls are messages: */
/* Returns the messages to render: the given ones, or a copy (*held, to be freed) in which such answers are
 * replaced. NULL: out of memory. */
const QsfMsg *qsf_think_hold_calls(const QsfThink *t, const QsfMsg *msgs, size_t n, QsfMsg **held,
                                   QsfErr *err);
/* Replaces it in the rendering by messages that call. msgs: the given ones. */
int qsf_think_put_calls(const QsfThink *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                        QsfRendered *r, QsfErr *err);

/* --- think_tags.c: TAGS --- */
/* mark: QSF_MARK_* of the bytes, with FIRST only for the first one. */
void qsf_think_tags_feed(QsfThinkSplit *s, const char *text, size_t len, unsigned mark, QsfThinkPut put,
                         void *arg);
/* An answer has begun with this text, or without any. */
void qsf_think_tags_answered(QsfThinkSplit *s, const char *text, size_t len);
void qsf_think_tags_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg);

/* --- think_parts.c: formats of messages and elements --- */
void qsf_think_parts_text(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg);
void qsf_think_parts_token(QsfThinkSplit *s, const char *text, size_t len, bool hidden, QsfThinkPut put,
                           void *arg);
void qsf_think_parts_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg);

#endif
