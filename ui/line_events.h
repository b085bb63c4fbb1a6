/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat in line mode as events for other programs: one JSON object per line of standard output
 * (qsf-chat(1), JSON EVENTS). One thread. */
#ifndef QSF_UI_LINE_EVENTS_H
#define QSF_UI_LINE_EVENTS_H

#include "ui/app.h"

#define UI_EVENTS_VERSION 1 /* grows when an event changes; new fields and new events do not change it */

typedef struct UiLineEvents {
    UiApp *app;
    void (*write)(void *arg, const char *text, size_t len); /* a whole line */
    void *arg;
    bool quiet;            /* without notices */
    unsigned top_logprobs; /* 1 + N; 0 = without them */
    uint32_t asked;        /* id of the message that was written last */
    UiBuf line;
} UiLineEvents;

/* The hooks of the chat that write its events to e, which must outlive them. */
UiHooks ui_line_events(UiLineEvents *e);
/* The first and the last event: which program this is, and how it ended. */
void ui_line_events_begin(UiLineEvents *e);
void ui_line_events_end(UiLineEvents *e, int status);

#endif
