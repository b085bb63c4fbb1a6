/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The terminal: shows a canvas, hands out the bytes of keys, and is put back as it was whatever happens. One
 * at a time; one thread (the fatal-signal path needs none). */
#ifndef QSF_UI_TERM_H
#define QSF_UI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/canvas.h"

/* Takes the terminal of standard input and output over. color: styles may use colours. false with a
 * sentence in err when no description of this kind of terminal exists: nothing was changed then. notice (cap
 * bytes,
 * "" = none) names the terminal description used instead. */
bool ui_term_open(bool color, char *notice, char *err, size_t cap);
/* Restores it. Harmless when not open. */
void ui_term_close(void);
/* Size of the window, at least 1x1. */
void ui_term_size(int *rows, int *cols);
/* The window changed. */
void ui_term_resized(void);
/* Shows c: writes only what differs from what is there; again: everything, as after ^L. */
void ui_term_show(const UiCanvas *c, bool again);
/* Bytes of keys that wait, at most cap; 0 when none do, -1 when the terminal is gone. */
long ui_term_read(char *buf, size_t cap);
/* Gives the terminal back and stops the program's process group, as ^Z does; returns after it was continued.
 */
void ui_term_suspend(void);
/* Takes the terminal again after something else stopped and continued the program. */
void ui_term_continued(void);
void ui_term_beep(void);

#endif
