/* SPDX-License-Identifier: GPL-3.0-or-later */
/* While the full screen waits for keys, the engine evaluates what is typed (qsf_worker_ahead): when the keys
 * have rested for a moment, so that a fluent typist costs nothing. Nothing of it is a message yet: neither
 * the conversation nor its file change. One thread. */
#ifndef QSF_UI_AHEAD_H
#define QSF_UI_AHEAD_H

#include <stdint.h>

#include "ui/buf.h"

struct UiApp;

#define UI_AHEAD_SECONDS 0.6 /* that the keys have to rest */

/* Zeroed it is empty. */
typedef struct UiAhead {
    UiBuf line;     /* the input line when it was looked at last */
    double changed; /* when it last changed */
    bool due;       /* the engine is to be asked once the keys rest */
    UiBuf asked;    /* the line for which it was asked last; empty = it has nothing to do */
    size_t stays;   /* bytes of it that the evaluated text comes from: a line that keeps them keeps that;
                       SIZE_MAX: every other line makes another message */
    int64_t tokens; /* of the message that it makes; 0 = unknown */
} UiAhead;

/* Looks at the input line, and asks the engine when it is time. Returns when it wants to be called again
 * without a key or an event (monotonic seconds), 0 = not. */
double ui_ahead_watch(struct UiApp *a, const char *line, size_t len, double now);
/* What is evaluated may have changed without the line: the conversation, the model, its plan. */
void ui_ahead_again(struct UiApp *a);
/* Tokens of the typed message, which has n, that are in the KV cache already. */
int64_t ui_ahead_ready(const struct UiApp *a, int64_t n);
/* Why this model evaluates nothing ahead; malloc'ed, one line; NULL = it does, or there is no model. */
char *ui_ahead_reason(const struct UiApp *a);
void ui_ahead_free(UiAhead *h);

#endif
