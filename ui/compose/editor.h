/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing a message in the user's editor. One thread. */
#ifndef QSF_UI_EDITOR_H
#define QSF_UI_EDITOR_H

#include "ui/buf.h"

typedef struct UiEditor {
    void *arg;
    /* Called again and again while the editor runs: waits until there is a signal (SIGCHLD must be among
     * those of ui_signals.h) or something else to do, and does that. Returns a signal that the editor should
     * get, too, or 0. */
    int (*wait)(void *arg);
    size_t room;       /* bytes that the text may have */
    char problem[400]; /* why the text did not change, "" = it was read */
} UiEditor;

/* Runs the command of $VISUAL, or of $EDITOR, on a private file (0600, in a directory of mode 0700 of its own
 * below $XDG_RUNTIME_DIR, $TMPDIR or /tmp) with this text, and reads it into out, without the newline at its
 * end. The terminal must be released. INT, QUIT and TSTP are ignored until the editor ends; when it stops,
 * this program does, too. The file is removed, unless its text is too long: then e->problem says where it is.
 * false, with e->problem, if the text should stay as it was: without an editor, if it cannot be run or fails,
 * if the file cannot be read. */
bool ui_editor_run(UiEditor *e, const char *text, size_t len, UiBuf *out);

#endif
