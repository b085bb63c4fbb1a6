/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The transcript as screen lines: wrapped once per change and width, scrolled, following its end. Answers are
 * laid out as Markdown (ui/md/answer.h). Holds no text, only places in it. One thread. */
#ifndef QSF_UI_CHATVIEW_H
#define QSF_UI_CHATVIEW_H

#include "ui/canvas.h"
#include "ui/md/answer.h"
#include "ui/transcript.h"
#include "ui/wrap.h"

/* Lines of one text. */
typedef struct UiWrapped {
    UiLine *lines; /* (n) */
    size_t n, cap;
    size_t text_len; /* of the text they were made from */
} UiWrapped;

/* Lines of one item. */
typedef struct UiBlock {
    uint32_t id, version;
    UiWrapped text, thought;
    UiMdAnswer *md; /* of an answer shown as Markdown: instead of text */
} UiBlock;

/* Text of an item up to a byte, exclusive. */
typedef struct UiTintSpan {
    uint32_t end;
    uint8_t style; /* UiStyle */
} UiTintSpan;

typedef struct UiChatView {
    UiBlock *blocks; /* (n), one per item of the transcript */
    size_t n, cap;
    int width, height;
    int max_width;           /* of text in cells, 0 = as wide as the window */
    bool raw;                /* answers are shown as they are, not as Markdown */
    uint32_t plain;          /* id of an answer that is shown as it is, 0 = none */
    const UiTintSpan *tints; /* (n_tints) styles of its text, in order; borrowed for drawing */
    size_t n_tints;
    UiMdLook look; /* what the terminal can show; width: 0 */
    bool compact;  /* labels before the text instead of above it */
    bool unfold;   /* reasoning is shown, not only a line about it */
    bool follow;   /* the last line stays in view */
    size_t top;    /* first line shown if it does not */
    size_t total;  /* lines of all items with labels and blank lines */
    /* as the lines were made */
    int made_width;
    bool made_raw;
    UiMdCache md;
    unsigned codes; /* blocks of code before the item being updated */
} UiChatView;

/* Updates the lines for the transcript and the size. Text added to an item only wraps its last line again.
 * Without memory the item is shown up to the previous state. */
void ui_chatview_sync(UiChatView *v, const UiTranscript *t, int width, int height);
/* Scrolls by lines (negative = back); reaching the end turns following on. */
void ui_chatview_scroll(UiChatView *v, long lines);
void ui_chatview_home(UiChatView *v);
void ui_chatview_end(UiChatView *v);
/* Scrolls so that the byte at off of an item's text is in view; nothing if there is no such item. */
void ui_chatview_show(UiChatView *v, const UiTranscript *t, uint32_t item, size_t off);
/* Scrolls to the beginning of the message before the first line (by -1) or of the next one (by 1). */
void ui_chatview_jump(UiChatView *v, const UiTranscript *t, int by);
/* Scrolls to the beginning of the block of code before the first line (by -1) or of the next one (by 1);
 * false if there is none. */
bool ui_chatview_jump_code(UiChatView *v, const UiTranscript *t, int by);
/* Number of lines below the last one shown. */
size_t ui_chatview_below(const UiChatView *v);
/* Draws it with its upper left corner at (row, col). */
void ui_chatview_draw(UiChatView *v, const UiTranscript *t, UiCanvas *c, int row, int col);
void ui_chatview_free(UiChatView *v);

#endif
