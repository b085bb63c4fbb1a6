/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The terminal: shows a canvas, returns the bytes of keys, and is restored in any case. One at a time; one
 * thread (the fatal-signal path needs none). */
#ifndef QSF_UI_TERM_H
#define QSF_UI_TERM_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/canvas.h"

/* Is there a description of the terminal that TERM names? One of a self-contained installation counts, and
 * is found from then on (ui/own_data.h). Before the terminal is opened. */
bool ui_term_described(void);
/* Takes over the terminal of standard input and output. color: styles may use colors; mouse: its wheel and
 * buttons are keys. The theme is ansi (ui/theme.h). Returns false with a message in err if there is no
 * description of this kind of terminal: nothing was changed then. notice (cap bytes, "" = none) names the
 * terminal description used instead. */
bool ui_term_open(bool color, bool mouse, char *notice, char *err, size_t cap);
/* Styles look as in t from the next frame, which should be drawn again. */
void ui_term_theme(const UiTheme *t);
/* Asks the terminal for its background, if it may know the question; false: it was not asked. The answer, if
 * there is one, comes with the keys (ui/keys.h). */
bool ui_term_ask(void);
/* The answer has come. */
void ui_term_answered(void);
/* Restores it. Harmless if not open. What an unanswered question would leave in the input of the next program
 * is dropped if it was asked recently. */
void ui_term_close(void);
/* Size of the screen, at least 1x1: that of the window, up to the cells of ui_term_limit (default
 * UI_CELLS_MAX) and 1000 columns. Returns whether the window is larger; the rest of it stays blank. While the
 * terminal is open, the window is that of the last ui_term_resized: it may have become larger meanwhile than
 * there is memory for. */
bool ui_term_size(int *rows, int *cols);
/* Sets the maximum of its cells; takes effect with the next ui_term_resized. */
void ui_term_limit(size_t cells);
/* Takes the size of the window, which may have changed. */
void ui_term_resized(void);
/* Shows c: writes only what differs from the screen; again: everything, as after ^L. */
void ui_term_show(const UiCanvas *c, bool again);
/* Does the open terminal have links behind texts, and text that is struck through? */
bool ui_term_links(void);
bool ui_term_strikes(void);
/* Bytes of pending keys, at most cap; 0 if there are none, -1 if the terminal is gone. */
long ui_term_read(char *buf, size_t cap);
/* Writes a sequence that does not change the screen, between frames. false if the terminal is not open. */
bool ui_term_send(const char *bytes, size_t len);
/* Releases the terminal and stops the program's process group, as ^Z does; returns after it was continued.
 * After this and the next functions the window may have another size: call ui_term_resized. */
void ui_term_suspend(void);
/* Releases the terminal for another program. */
void ui_term_release(void);
/* Takes it again. */
void ui_term_take(void);
/* Takes the terminal again after something else stopped and continued the program. */
void ui_term_continued(void);

#endif
