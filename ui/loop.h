/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full-screen program: waits for keys, engine and signals, and draws at most 30 frames a second. */
#ifndef QSF_UI_LOOP_H
#define QSF_UI_LOOP_H

#include "ui/app.h"
#include "ui/notify.h"

typedef struct UiLoopOptions {
    bool color, unicode; /* what the terminal can show */
    bool mouse;          /* the wheel scrolls; text is selected with Shift */
    UiNotify notify;     /* tells that an answer is finished */
} UiLoopOptions;

/* Runs until the user quits; returns the exit status of the program, or -1 with a message in err if the
 * terminal cannot show a screen: nothing was changed then. */
int ui_loop_run(UiApp *a, const UiLoopOptions *o, char *err, size_t cap);

#endif
