/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line of the line mode on a terminal: readline edits and shows it, with history and completion. It
 * has the terminal only between ui_plain_begin and the end of the line. One thread. */
#ifndef QSF_UI_INPUT_PLAIN_H
#define QSF_UI_INPUT_PLAIN_H

#include <stdbool.h>

#include "ui/buf.h"
#include "ui/input.h"

struct UiApp;

typedef enum UiPlainRead { UI_PLAIN_MORE, UI_PLAIN_LINE, UI_PLAIN_END, UI_PLAIN_EDITOR } UiPlainRead;

/* app: for completion and no_save. history: as in ui_input_open. on_stderr: the line is shown on standard
 * error, otherwise on standard output. */
void ui_plain_open(const struct UiApp *app, const char *history, bool on_stderr);
bool ui_plain_is_open(void);
/* Shows the prompt and begins a line, unless one has begun. */
void ui_plain_begin(const char *prompt);
/* Lines that come back to the input, one at a time: each is the text of the next line that begins. */
void ui_plain_hold(const char *text, size_t len);
/* Reads what is typed, one byte: a line may be complete, which is in *line then, the input may have ended, or
 * the user wants an editor for the line. */
UiPlainRead ui_plain_read(UiBuf *line);
/* Takes the line from the screen while something is printed; false: there is none. ui_plain_show brings it
 * back. */
bool ui_plain_hide(void);
void ui_plain_show(void);
/* ^C: empties the line, or leaves a search. Up brings the text back, and those of ui_plain_hold. */
UiDiscarded ui_plain_discard(void);
/* Appends the text of the line. */
void ui_plain_text(UiBuf *out);
/* Replaces it, as a change that undo takes back. */
void ui_plain_replace(const char *text, size_t len);
/* The window has another size. */
void ui_plain_resized(void);
/* Gives the terminal away, and takes it back with the line. */
void ui_plain_release(void);
void ui_plain_take(void);
void ui_plain_close(void);

#endif
