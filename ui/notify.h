/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells a user who looks elsewhere that an answer is finished: a bell or a notification of the terminal, and
 * the title of its window. The full screen only. One thread. */
#ifndef QSF_UI_NOTIFY_H
#define QSF_UI_NOTIFY_H

#include "ui/buf.h"

#define UI_NOTIFY_SECONDS 10.0 /* what took longer is told */

typedef enum UiNotify {
    UI_NOTIFY_AUTO, /* a notification where the terminal is known to show it, otherwise a bell */
    UI_NOTIFY_BELL,
    UI_NOTIFY_OSC,
    UI_NOTIFY_OFF
} UiNotify;

/* Parses "auto", "bell", "osc" or "off". */
bool ui_notify_parse(const char *word, UiNotify *out);

/* What the environment says about the terminal; each may be NULL. */
typedef struct UiNotifyTerm {
    const char *term, *program, *vte, *tmux; /* $TERM, $TERM_PROGRAM, $VTE_VERSION, $TMUX */
} UiNotifyTerm;

/* Appends the bytes that tell `text`, cleaned text of one line; nothing for OFF. */
void ui_notify_bytes(UiNotify how, const UiNotifyTerm *t, const char *text, UiBuf *out);
/* Appends the bytes that set the title of the window, if the terminal has one; text NULL: that of the chat is
 * taken back. */
void ui_notify_title(const UiNotifyTerm *t, const char *text, UiBuf *out);

/* When to tell. Zeroed it waits for an answer. */
typedef struct UiNotifyWatch {
    bool running, told;
    double since;
} UiNotifyWatch;

typedef enum UiNotifyDo { UI_NOTIFY_NOTHING, UI_NOTIFY_TELL, UI_NOTIFY_TAKE_BACK } UiNotifyDo;
/* To be called with each event. writing: an answer is being generated; key: the user has pressed a key, so he
 * looks at the screen; stopped: he ended the answer. TELL: an answer that took long has ended; TAKE_BACK: the
 * first key after that. */
UiNotifyDo ui_notify_watch(UiNotifyWatch *w, bool writing, bool stopped, bool key, double now);

#endif
