/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reasoning: the block before an answer that some models write between two tags. Which tags a model uses,
 * splitting its output into reasoning and answer as it is generated, and prompts that end inside a block.
 *
 * The text of the reasoning is exact: it includes both tags and the white space around them, so that
 * reasoning followed by answer is what the model wrote, and an answer can be continued. qsf_reasoning_body
 * (qsf_engine.h) finds the part to display. */
#ifndef QSF_TEXT_THINK_H
#define QSF_TEXT_THINK_H

#include "src/text/chat.h"

typedef struct QsfThinkTags {
    const char *open, *close;
} QsfThinkTags;

/* How a model marks reasoning. */
typedef struct QsfThink {
    const QsfThinkTags *tags;  /* NULL: no reasoning; static */
    int32_t open_id, close_id; /* the tags if they are single tokens of the vocabulary, otherwise -1 */
} QsfThink;

/* Determined by the text of the template (len bytes), or else by the tokens of the vocabulary. source NULL:
 * no template, so no reasoning: continued text is all answer. */
void qsf_think_detect(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len);
/* Whether this is the text of a tag of any model. */
bool qsf_think_is_tag(const char *text, size_t len);
/* The text of id if it is a tag that the detokenizer hides (a control token), otherwise NULL. */
const char *qsf_think_hidden(const QsfThink *t, const QsfTokenizer *tok, int32_t id);

/* ---- streaming ---- */

typedef enum QsfThinkState {
    QSF_THINK_START, /* only white space so far: a block may open */
    QSF_THINK_INSIDE,
    QSF_THINK_AFTER, /* a block was closed and only white space followed: another may open */
    QSF_THINK_ANSWER /* to the end: an answer may mention tags */
} QsfThinkState;

/* Receives decided text: a part of the reasoning, including tags, or of the answer. */
typedef void (*QsfThinkPut)(void *arg, bool reasoning, const char *text, size_t len);

typedef struct QsfThinkSplit {
    const QsfThinkTags *tags;
    QsfThinkState state;
    char *buf; /* (cap): undecided text, and the text of one call */
    size_t len, cap;
    size_t said; /* bytes at the start of buf that were already emitted */
} QsfThinkSplit;

/* Where an answer begins. */
typedef struct QsfThinkPrompt {
    QsfThinkState state;
    /* the prompt's own opening tag and the text after it: the start of the reasoning; or "" */
    char opened[64];
    /* INSIDE: number of bytes of a partial closing tag at the end */
    size_t begun;
    size_t lost; /* as QsfRendered.lost */
} QsfThinkPrompt;

/* piece_max: maximum text of one feed. QSF_E_RUNTIME without memory. Allocates nothing afterwards. */
int qsf_think_open(QsfThinkSplit *s, const QsfThink *t, const QsfThinkPrompt *where, size_t piece_max,
                   QsfErr *err);
void qsf_think_close(QsfThinkSplit *s); /* a zeroed one is allowed */
/* Whole UTF-8 sequences in, whole ones out. */
void qsf_think_feed(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg);
/* Ends the output: emits the text still held back. */
void qsf_think_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg);

/* ---- prompts ---- */

/* As qsf_chat_encode. With QSF_CHAT_CONTINUE and a last message that has reasoning, the prompt continues
 * after exactly that text: inside the block if there is no answer yet. */
int qsf_think_encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                     const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *out, QsfThinkPrompt *where,
                     QsfErr *err);

/* Name by which a template with this text reads the reasoning of earlier answers, or NULL if it does not. */
const char *qsf_think_field(const char *source, size_t len);

#endif
