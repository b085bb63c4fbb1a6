/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning: the block in front of an answer that some models write between two tags. Which tags a model uses,
 * the split of its output into reasoning and answer while it comes, and prompts that end inside a block.
 *
 * The text of the reasoning is exact: both tags are in it, and the white space around them, so that reasoning and
 * answer one after the other are what the model wrote, and an answer can be gone on with. qsf_reasoning_body
 * (qsf_engine.h) finds what people want to read. */
#ifndef QSF_TEXT_THINK_H
#define QSF_TEXT_THINK_H

#include "src/text/chat.h"

typedef struct QsfThinkTags {
    const char *open, *close;
} QsfThinkTags;

/* How one model reasons. */
typedef struct QsfThink {
    const QsfThinkTags *tags;  /* NULL: it does not; static */
    int32_t open_id, close_id; /* the tags where they are one token of the vocabulary, else -1 */
} QsfThink;

/* By the text of the template (len bytes), or else by the tokens of the vocabulary. source NULL: no template, so
 * no reasoning: text that is continued is all answer. */
void qsf_think_detect(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len);
/* Is this the text of a tag, of any model? */
bool qsf_think_is_tag(const char *text, size_t len);
/* The text of id when it is a tag that the detokenizer hides (a control token), else NULL. */
const char *qsf_think_hidden(const QsfThink *t, const QsfTokenizer *tok, int32_t id);

/* ---- while it comes ---- */

typedef enum QsfThinkState {
    QSF_THINK_START, /* nothing but white space yet: a block may open */
    QSF_THINK_INSIDE,
    QSF_THINK_AFTER, /* a block is closed and only white space followed: another may open */
    QSF_THINK_ANSWER /* to the end: an answer may speak of tags */
} QsfThinkState;

/* Gets text that is decided: a part of the reasoning, tags included, or of the answer. */
typedef void (*QsfThinkPut)(void *arg, bool reasoning, const char *text, size_t len);

typedef struct QsfThinkSplit {
    const QsfThinkTags *tags;
    QsfThinkState state;
    char *buf; /* (cap): what is not decided, and the text of one call */
    size_t len, cap;
    size_t said; /* bytes at the front of buf that were given out before */
} QsfThinkSplit;

/* Where an answer begins. */
typedef struct QsfThinkPrompt {
    QsfThinkState state;
    /* the prompt's own opening tag with what stands behind it: the reasoning's first text; or "" */
    char opened[64];
    /* INSIDE: so many bytes of the closing tag stand there already, which was cut in the middle */
    size_t begun;
} QsfThinkPrompt;

/* piece_max: longest text of one feed. QSF_E_RUNTIME without memory. Allocates nothing afterwards. */
int qsf_think_open(QsfThinkSplit *s, const QsfThink *t, const QsfThinkPrompt *where, size_t piece_max,
                   QsfErr *err);
void qsf_think_close(QsfThinkSplit *s); /* a zeroed one is allowed */
/* Whole UTF-8 sequences in, whole ones out. */
void qsf_think_feed(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg);
/* The output has ended: what is still held back. */
void qsf_think_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg);

/* ---- prompts ---- */

/* As qsf_chat_encode. With QSF_CHAT_CONTINUE and a last message that has reasoning, the prompt goes on behind exactly
 * that text: inside the block when there is no answer yet. */
int qsf_think_encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                     const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *out, QsfThinkPrompt *where,
                     QsfErr *err);

/* Name under which a template with this text reads the reasoning of earlier answers, or NULL: it does not. */
const char *qsf_think_field(const char *source, size_t len);

#endif
