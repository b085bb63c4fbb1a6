/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The clipboard: by the terminal (ui/osc.h) while the full screen is open, and by the first of wl-copy,
 * xclip, xsel, pbcopy and clip.exe that is installed and has its display. The programs are started without
 * a shell and read the text from a file without a name, so neither waits for the other. One thread. */
#ifndef QSF_UI_CLIPBOARD_H
#define QSF_UI_CLIPBOARD_H

#include <stdbool.h>
#include <stddef.h>

/* Sets the clipboard to text[0..len), UTF-8; takes at most a tenth of a second. Writes to how (cap bytes)
 * by what, "OSC 52 and wl-copy"; that a terminal accepted the sequence cannot be known. Returns false if
 * there is no way: how says why, and what would help. */
bool ui_clipboard_set(const char *text, size_t len, char *how, size_t cap);

#endif
