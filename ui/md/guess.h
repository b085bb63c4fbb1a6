/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a text that is still being written, as what it will most likely become: emphasis, code and links
 * that are open are closed, and characters that may be marks are held back until it is known whether they
 * are. Pure functions. */
#ifndef QSF_UI_MD_GUESS_H
#define QSF_UI_MD_GUESS_H

#include "ui/md/parse.h"

/* Returns how much of text[0..len) can be shown: its last line may be a mark of a block, or the first line of
 * a table. code: the end of text is in a block of code. */
size_t ui_md_shown(const char *text, size_t len, bool code);
/* d: text[0..len) parsed, at least one block. Returns how much of it can be shown, and appends to ends what
 * closes the open constructs of the last block there. */
size_t ui_md_guess(const UiMdDoc *d, const char *text, size_t len, UiBuf *ends);

#endif
