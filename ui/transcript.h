/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation as data: messages, notices and command output. Raw text is stored for the model, the
 * session and exports; a cleaned copy for the screen only where cleaning changes it. One thread. */
#ifndef QSF_UI_TRANSCRIPT_H
#define QSF_UI_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "qsf_text.h"
#include "ui/buf.h"

typedef enum UiKind {
    UI_USER,
    UI_ANSWER,
    UI_NOTICE,  /* a message of the program */
    UI_ERROR,   /* the same, something failed */
    UI_COMMAND, /* a command, above the lines it printed */
    UI_OUTPUT,  /* those lines */
    UI_THOUGHT  /* the reasoning before an answer: part of its item, never alone */
} UiKind;

/* Where the text of a message is in the file of its session, while it is not in memory. */
typedef struct UiPlaces {
    uint64_t *at; /* (n) records, QSFLogRecord.at */
    size_t n, cap;
    uint64_t bytes, lines; /* of its text and reasoning */
    uint64_t text;         /* bytes of its text */
    bool exact;            /* the last record has an exact text */
    uint64_t ids;          /* bytes of the tokens in the last record */
} UiPlaces;

typedef struct UiItem {
    UiKind kind;
    bool in_context;  /* part of the next request to the model */
    bool past;        /* a message of an earlier conversation that is only still shown */
    bool open;        /* an answer still being written */
    bool about;       /* tokens are pieces of a text that a server sent, not counted by it */
    bool differs;     /* shown holds the text to display; otherwise raw is displayed */
    uint32_t id;      /* unique in the transcript, never 0 */
    uint32_t version; /* grows with every change of the text */
    uint32_t number;  /* of the message in the session, 1...: that of /tree; 0 for summaries and notices */
    uint32_t node;    /* of the message in the tree of the session (ui/tree.h), 0 = none */
    uint32_t nth, of; /* an answer: which version of how many; 0 = unknown */
    uint32_t tokens;  /* generated, for answers */
    uint32_t prompt, reused; /* tokens of the prompt of an answer, and of them those that were not evaluated
                                again; prompt 0 = unknown */
    uint64_t seed;
    double time;            /* seconds since 1970 */
    double tps;             /* tokens per second, 0 = unknown */
    char label[64];         /* the model's name for answers; the setting for notices of a change */
    double seconds;         /* duration of the reasoning; 0 = unknown */
    char stop[16];          /* why the answer ended, "" while it is open or unknown; of reasoning that the
                               limit ended: "cut" */
    char *ids;              /* of an answer: its tokens (ui/token_ids.h), or NULL */
    char *exact;            /* of an answer that was cut: QSFMessage.exact, or NULL */
    struct UiItem *thought; /* of an answer: the reasoning before it, tags included; NULL = none */
    UiPlaces *places;       /* NULL: the text is in memory */
    UiBuf raw, shown;
    UiBuf plain; /* of reasoning in several blocks: shown or raw without the tags */
    QSFClean clean;
} UiItem;

/* A position in an answer: bytes of its reasoning and of its text. */
typedef struct UiPlace {
    size_t thought, text;
} UiPlace;

typedef struct UiTranscript {
    UiItem **items; /* (n) */
    size_t n, cap;
    uint32_t next_id;
    uint32_t next_number; /* the greatest number so far: none is given twice */
    size_t n_said;        /* items that are not messages; the oldest are dropped when there are too many */
    bool ascii;           /* the terminal cannot show UTF-8 */
} UiTranscript;

/* Adds an item with text; NULL without memory. */
UiItem *ui_transcript_add(UiTranscript *t, UiKind kind, const char *text, size_t len);
/* The same, before the first item whose id is greater than after; at the end if there is none. */
UiItem *ui_transcript_insert(UiTranscript *t, uint32_t after, UiKind kind, const char *text, size_t len);
/* Appends text to it. */
bool ui_item_append(UiTranscript *t, UiItem *it, const char *text, size_t len);
/* Appends reasoning before an answer, with its number of tokens. */
bool ui_item_think(UiTranscript *t, UiItem *it, const char *text, size_t len, uint32_t tokens);
/* Replaces its exact text; takes ownership of text, which may be NULL. */
void ui_item_set_exact(UiItem *it, char *text);
/* Replaces its tokens; takes ownership of ids, which may be NULL. */
void ui_item_set_ids(UiItem *it, char *ids);
/* Whether there is reasoning with text. Models told not to reason leave an empty one. */
bool ui_item_thought(const UiItem *it);
/* Its current end. */
UiPlace ui_item_end(const UiItem *it);
/* Shows other text instead of its own. */
void ui_item_show_as(UiTranscript *t, UiItem *it, const char *text, size_t len);
/* Ends the text: shows the bytes held back by cleaning. */
void ui_item_close(UiItem *it);
/* The text to display; for reasoning the part between its tags. */
const char *ui_item_shown(const UiItem *it, size_t *len);

void ui_transcript_remove(UiTranscript *t, UiItem *it);
void ui_transcript_clear(UiTranscript *t);
/* Starts an empty conversation: the messages stay on the screen and leave the context permanently. */
void ui_transcript_begin(UiTranscript *t);
/* The last message that the model sees, or NULL. */
UiItem *ui_transcript_last(const UiTranscript *t);
/* The last item of that kind in this conversation, or NULL. */
UiItem *ui_transcript_last_of(const UiTranscript *t, UiKind kind);
/* Removes the last n messages that the model sees, and the program's output after each of them; messages that
 * the model does not see stay, with the output after them. Returns how many were removed. */
uint32_t ui_transcript_drop(UiTranscript *t, uint32_t n);
/* The first n messages that the model sees leave the context permanently and stay on the screen.
 * Returns how many there were. */
uint32_t ui_transcript_forget(UiTranscript *t, uint32_t n);
/* Moves all messages of `from`, which keep their numbers, to the end of t; false without memory: nothing was
 * moved. */
bool ui_transcript_take(UiTranscript *t, UiTranscript *from);
/* Puts a summary, a message of the user and an answer without numbers, before the first message that the
 * model sees. false without memory: nothing was added. */
bool ui_transcript_prepend(UiTranscript *t, const char *question, const char *text, size_t len);
#define UI_ITEM_BYTES 480 /* memory of an item without its text */
/* Returns the bytes of memory that all items take, without their lines on the screen. */
uint64_t ui_transcript_held(const UiTranscript *t);
/* Returns the bytes of the messages that are part of the next request. */
size_t ui_transcript_bytes(const UiTranscript *t);
/* Number of messages that the model sees, and of them the user's. */
size_t ui_transcript_count(const UiTranscript *t, size_t *of_user);

#endif
