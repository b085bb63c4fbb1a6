/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operating system commands of terminals (xterm's ctlseqs): the one that sets the clipboard, OSC 52, how any
 * of them passes programs between this one and the terminal, and the question for its background. Any
 * thread. */
#ifndef QSF_UI_OSC_H
#define QSF_UI_OSC_H

#include "ui/buf.h"

#define UI_OSC_BACKGROUND "\x1b]11;?\a"

/* Bytes of text: 99,992 in base 64. Several terminals drop sequences longer than 100,000 bytes. */
#define UI_OSC52_MAX 74994

typedef enum UiOscWrap {
    UI_OSC_PLAIN,
    UI_OSC_TMUX,  /* also as a passthrough: which one works depends on tmux's options */
    UI_OSC_SCREEN /* in device control strings of at most 76 bytes, which GNU screen passes on */
} UiOscWrap;

/* Does a terminal with this $TERM, which may be NULL, answer questions? Others may show a part of them. */
bool ui_osc_answered(const char *term);
/* For the values of $TERM and $TMUX, either may be NULL. */
UiOscWrap ui_osc_wrap(const char *term, const char *tmux);
/* Appends a sequence so that it reaches the terminal. */
void ui_osc_put(UiBuf *b, UiOscWrap wrap, const UiBuf *sequence);
/* Appends the sequence that sets the clipboard to text[0..len). false if that is longer than UI_OSC52_MAX,
 * or without memory. */
bool ui_osc52(UiBuf *b, UiOscWrap wrap, const char *text, size_t len);

#endif
