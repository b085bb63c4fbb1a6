/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A session is repeated: its messages are answered again, with its model, its settings and the seed of each
 * answer, and the answers are compared with the recorded ones. */
#ifndef QSF_UI_RERUN_H
#define QSF_UI_RERUN_H

#include "ui/app.h"

/* Repeats session `name` with a chat that has no session and no messages. given: the model that is loaded, or
 * being loaded, answers instead of the session's own. Prints a line to standard output for each answer. The
 * result is the exit status of the program: 0 if every answer is the same, 1 if one differs. Failures are
 * reported on standard error. Ends at SIGINT and SIGTERM. */
int ui_rerun(UiApp *a, const char *name, bool given);

#endif
