/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys: bytes of a terminal split into key presses and pastes, and the table of actions. Pure. */
#ifndef QSF_UI_KEYS_H
#define QSF_UI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/text_limit.h"

#define UI_KEY_BYTES         32
#define UI_ESC_DELAY_MS      25   /* a lone ESC is the Esc key if nothing follows within this time */
#define UI_REPLY_DELAY_MS    1000 /* an answer of the terminal that is not complete is over after this one */
#define UI_PASTE_DELAY_MS    2000 /* a paste whose end never arrives is over after this silence */
#define UI_UNMARKED_DELAY_MS 40   /* a paste that the terminal does not mark is over after this one */

/* What a key does. UI_DO_EDIT: it belongs to the input line. */
typedef enum UiAction {
    UI_DO_EDIT,
    UI_DO_STOP, /* ^C */
    UI_DO_SUSPEND,
    UI_DO_REDRAW,
    UI_DO_ESCAPE,
    UI_DO_NEWLINE,
    UI_DO_EDITOR,
    UI_DO_HELP,
    UI_DO_PANE,
    UI_DO_THINK,
    UI_DO_ANSWER,
    UI_DO_KNOB_PREV,
    UI_DO_KNOB_NEXT,
    UI_DO_KNOB_DOWN,
    UI_DO_KNOB_UP,
    UI_DO_BUDGET_LESS,
    UI_DO_BUDGET_MORE,
    UI_DO_PAGE_UP,
    UI_DO_PAGE_DOWN,
    UI_DO_LINE_UP,
    UI_DO_LINE_DOWN,
    UI_DO_SEARCH,
    UI_DO_MESSAGE_UP,
    UI_DO_MESSAGE_DOWN,
    UI_DO_CODE_UP,
    UI_DO_CODE_DOWN,
    UI_DO_VERSION_PREV,
    UI_DO_VERSION_NEXT,
    UI_DO_TOKEN_BACK,
    UI_DO_TOKEN_NEXT,
    UI_DO_HOME,
    UI_DO_END,
    UI_DO_WHEEL_UP, /* of the mouse */
    UI_DO_WHEEL_DOWN,
    UI_DO_MOUSE, /* any other button: nothing */
    UI_DO_REPLY  /* not a key: the terminal answers a question (ESC ], OSC) */
} UiAction;

typedef struct UiBinding {
    UiAction action;
    const char *names;     /* displayed name of the keys */
    const char *help;      /* NULL: not listed */
    const char *sequences; /* what terminals send, separated by blanks; \e is ESC */
} UiBinding;

size_t ui_binding_count(void);
const UiBinding *ui_binding_at(size_t i);

typedef struct UiKey {
    UiAction action;
    bool paste; /* the paste buffer of the parser holds a complete paste */
    bool more;  /* bytes that came at the same time follow it; set by the reader */
    char bytes[UI_KEY_BYTES];
    size_t n;
} UiKey;

typedef struct UiKeys {
    char seq[UI_KEY_BYTES]; /* an escape sequence that is not complete */
    size_t n;
    char rest[UI_KEY_BYTES]; /* bytes after an Esc that began no sequence: they are keys by themselves */
    size_t n_rest;
    bool (*knows)(const char *seq,
                  size_t n); /* whether ESC with this byte is a key of the input line; NULL: all are */
    bool replies;            /* a question was asked: ESC ] may begin the answer */
    bool pasting;
    bool unmarked;   /* the end of the paste is marked only by silence */
    UiBuf paste;     /* text of the last paste, valid until the next one begins */
    UiTextLimit cut; /* of a paste that is too long; its limit may be set while !pasting */
} UiKeys;

/* Adds one byte; true if *out is a complete key. ESC and bytes that are not a sequence of a key are the Esc
 * key and these bytes: after true, ui_keys_more has to be called until it returns false. */
bool ui_keys_feed(UiKeys *k, char byte, UiKey *out);
/* Another key of the bytes so far. */
bool ui_keys_more(UiKeys *k, UiKey *out);
/* Whether the bytes of one read are a paste into a terminal that does not mark pastes. A line, its end and
 * more text in a single read cannot be typed. Never if there is a control key among them. */
bool ui_keys_are_paste(const UiKeys *k, const char *bytes, size_t n);
/* Begins a paste without an end mark: ui_keys_timeout ends it when no byte arrives for a while. */
void ui_keys_begin_paste(UiKeys *k);
/* Milliseconds until ui_keys_timeout should be called if no byte arrives; -1 = never. */
int ui_keys_wait_ms(const UiKeys *k);
/* That time is over: the pending bytes are a key; true if *out is one, and ui_keys_more may have others. */
bool ui_keys_timeout(UiKeys *k, UiKey *out);
void ui_keys_free(UiKeys *k);

#endif
