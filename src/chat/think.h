/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a model writes besides its answer: reasoning, tool calls, and the tokens that separate them. Which
 * format a model uses, splitting its output as it is generated, and prompts that end inside a block.
 *
 * A tag counts only where the vocabulary's tokens for it were generated. Characters that spell a tag are
 * text, unless the vocabulary has no such token.
 *
 * The text of the reasoning includes its opening tag, and the closing one where the format has one, so that a
 * reader of both texts can tell them apart. qsf_reasoning_body (qsf_engine.h) finds the part to display. */
#ifndef QSF_CHAT_THINK_H
#define QSF_CHAT_THINK_H

#include "src/chat/chat.h"
#include "src/token/tags.h"

/* How the output of a model is structured. */
typedef enum QsfThinkFormat {
    QSF_THINK_NONE,    /* all of it is the answer */
    QSF_THINK_TAGS,    /* reasoning between two tags, then the answer */
    QSF_THINK_HARMONY, /* messages with channels (gpt-oss) */
    QSF_THINK_SELF,    /* messages with recipients: to=self is reasoning (Muse) */
    QSF_THINK_BLOCKS,  /* messages whose first token is their kind (Solar Open) */
    QSF_THINK_ELEMENTS /* elements between <|open|>, <|close|> and <|sep|> (Kimi K3) */
} QsfThinkFormat;

/* Marks of bytes of the output. */
enum {
    QSF_MARK_TEXT,      /* of ordinary tokens */
    QSF_MARK_FIRST,     /* first byte of a control or user-defined token */
    QSF_MARK_REST,      /* any other byte of one */
    QSF_MARK_BYTE = 3,  /* mask of the above */
    QSF_MARK_HIDDEN = 4 /* of a token that is not shown */
};

#define QSF_THINK_TAG 40 /* bytes of the longest tag */

/* A tag, and which of its bytes must be tokens. */
typedef struct QsfThinkTag {
    char text[QSF_THINK_TAG];
    uint8_t mark[QSF_THINK_TAG]; /* (len) QSF_MARK_BYTE */
    size_t len;                  /* 0 = there is no such tag */
} QsfThinkTag;

/* How a model marks reasoning and answer. */
typedef struct QsfThink {
    QsfThinkFormat format;
    const QsfThinkTags *tags;              /* TAGS; static */
    QsfThinkTag open, close;               /* TAGS: as tokens of the vocabulary */
    QsfThinkTag answer_open, answer_close; /* TAGS: around the answer (<response>); never shown */
} QsfThink;

/* What ends reasoning: `close` ends the block or message, `after` is the head of the message that the answer
 * then begins with ("" where a block is followed by the answer). Static, or in the QsfThink. */
typedef struct QsfThinkClose {
    const char *close;
    char after[64];
} QsfThinkClose;
/* Returns false if the format has no reasoning. */
bool qsf_think_close(const QsfThink *t, QsfThinkClose *out);

/* Determined by the text of the template (len bytes) and the tokens of the vocabulary. source NULL: no
 * template: only formats of messages are recognized, continued text is otherwise all answer. */
void qsf_think_detect(QsfThink *t, const QsfTokenizer *tok, const char *source, size_t len);

/* ---- streaming ---- */

typedef enum QsfThinkState {
    QSF_THINK_START, /* only white space so far: a block may open */
    QSF_THINK_INSIDE,
    QSF_THINK_AFTER,  /* a block was closed and only white space followed: another may open */
    QSF_THINK_OPENED, /* the tag before the answer, and only white space after it */
    QSF_THINK_ANSWER  /* to the end, or to a tag whose tokens open a block again: characters may
                         mention tags */
} QsfThinkState;

/* Receives decided text: a part of the reasoning, including tags, or of the answer. */
typedef void (*QsfThinkPut)(void *arg, bool reasoning, const char *text, size_t len);

/* The kind of the text of a message or element. */
typedef enum QsfThinkPart {
    QSF_PART_NONE, /* between messages */
    QSF_PART_REASONING,
    QSF_PART_ANSWER,
    QSF_PART_CALL,  /* a tool call: shown with the answer */
    QSF_PART_SILENT /* a name or an id inside a call */
} QsfThinkPart;

/* What was shown of the arguments of a call whose elements become JSON. */
typedef enum QsfThinkArgs {
    QSF_ARGS_CLOSED, /* no call is open */
    QSF_ARGS_NONE,
    QSF_ARGS_SOME, /* the object is open */
    QSF_ARGS_RAW   /* it is JSON as the model wrote it */
} QsfThinkArgs;

#define QSF_THINK_BUF  768u /* undecided text */
#define QSF_THINK_HEAD 256u

/* The state of a split. Plain data: a copy continues where the original is. */
typedef struct QsfThinkSplit {
    const QsfThink *t;
    bool ended; /* the model began a message of another role: its turn is over */
    /* TAGS */
    QsfThinkState state;
    bool wrapped;                /* the answer began with its own tag */
    bool spaced;                 /* its text so far ends with white space */
    size_t len, said;            /* said: bytes at the start of buf that are not emitted */
    char buf[QSF_THINK_BUF];     /* (len): undecided text */
    uint8_t mark[QSF_THINK_BUF]; /* (len) */
    /* the others */
    QsfThinkPart part;
    bool heading;          /* inside the head of a message or element */
    bool closing;          /* of a closing one */
    bool started;          /* the head began with its token; otherwise it may be text without a head */
    bool reasoned, closed; /* reasoning was emitted; and what separates it from the answer */
    bool commentary;       /* the channel of the last message with a head */
    bool answered;         /* text of the answer was emitted */
    QsfThinkArgs args;     /* ELEMENTS: of the call that is open */
    bool quoted;           /* its argument is a string */
    size_t head_len;
    char head[QSF_THINK_HEAD]; /* (head_len) */
} QsfThinkSplit;

/* Where an answer begins. */
typedef struct QsfThinkPrompt {
    QsfThinkSplit split; /* after the prompt */
    /* the opening tag of the prompt's own block, and the text after it: the start of the reasoning; or "" */
    char opened[64];
    bool exact;  /* it continues QsfMsg.exact */
    size_t lost; /* as QsfRendered.lost */
} QsfThinkPrompt;

/* Number of bytes of white space at the start. */
size_t qsf_think_blanks(const char *text, size_t len);

/* The beginning of an answer. */
void qsf_think_start(QsfThinkSplit *s, const QsfThink *t);
/* Text of ordinary tokens: whole UTF-8 sequences in, whole ones out. put NULL: the text was
 * emitted before. */
void qsf_think_feed(QsfThinkSplit *s, const char *text, size_t len, QsfThinkPut put, void *arg);
/* The text of a control (hidden) or user-defined token. */
void qsf_think_feed_token(QsfThinkSplit *s, const char *text, size_t len, bool hidden, QsfThinkPut put,
                          void *arg);
/* Ends the output: emits the text still held back. */
void qsf_think_flush(QsfThinkSplit *s, QsfThinkPut put, void *arg);
/* What is fed next is text of the answer, even if it looks like the beginning of a tag (TAGS; elsewhere
 * nothing happens). Not while text is held back that may be a tag. */
void qsf_think_answer(QsfThinkSplit *s);
/* Returns how many bytes of the text, which would be fed next, belong to reasoning that is open; len: it
 * stays open. */
size_t qsf_think_rest(const QsfThinkSplit *s, const char *text, size_t len);
/* Returns whether the next text is reasoning, as far as is known. */
bool qsf_think_inside(const QsfThinkSplit *s);
/* Maximum length of one emitted piece if no fed one is longer than piece_max. */
size_t qsf_think_piece_max(size_t piece_max);

/* ---- prompts ---- */

/* As qsf_chat_encode. With QSF_CHAT_CONTINUE the prompt continues after the text of the last
 * message: exactly what was generated if it has QsfMsg.exact with tokens of this vocabulary;
 * otherwise its reasoning and its content. */
int qsf_think_encode(const QsfThink *think, const QsfChatTemplate *t, const QsfTokenizer *tok,
                     const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *out, QsfThinkPrompt *where,
                     QsfErr *err);

/* Name by which a template with this text reads the reasoning of earlier answers, or NULL if it does not. */
const char *qsf_think_field(const char *source, size_t len);

/* ---- exact text: QsfMsg.exact ----
 * Text in which each token that is not ordinary text is enclosed in these two control characters. */
#define QSF_EXACT_OPEN  '\x0E'
#define QSF_EXACT_CLOSE '\x0F'

/* Appends the exact text of the ids of an answer; continues as for qsf_detok_init. scratch: as for
 * qsf_detok_feed. *special: whether there is a token that is not ordinary text. false without memory, or if
 * the text itself has one of the control characters or NUL. */
bool qsf_exact_add(const QsfTokenizer *tok, const int32_t *ids, size_t n, bool continues, char *scratch,
                   size_t scratch_cap, QsfStrbuf *out, bool *special);
/* Returns the next part of exact text, *n bytes without its control characters; *token: it is a token, whose
 * control character follows it. The part after it begins after these bytes, and after that character. */
const char *qsf_exact_next(const char *exact, size_t len, size_t *n, bool *token);
/* Whether exact text is well-formed and all its tokens are in the vocabulary. */
bool qsf_exact_fits(const QsfTokenizer *tok, const char *exact, size_t len);

#endif
