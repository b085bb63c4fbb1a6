/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat in line mode: messages and commands from standard input, answers to standard output, all else to
 * standard error. Never opens the terminal. */
#ifndef QSF_UI_LINE_H
#define QSF_UI_LINE_H

#include "ui/app.h"

typedef struct UiLineOptions {
    bool quiet;            /* only answers, errors and what commands print */
    bool json;             /* events instead of text (ui/line_events.h) */
    unsigned top_logprobs; /* with json: 1 + N, 0 = without them */
    const char *script;    /* the file that is standard input, or NULL: errors name it and the line */
} UiLineOptions;

/* Runs until the input ends; the exit status of the program. Waits for a load that was already started; one
 * that fails ends the run. */
int ui_line_run(UiApp *a, const UiLineOptions *o);

#endif
