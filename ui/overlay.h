/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What curses cannot draw: links (OSC 8) and strike-through (SGR 9). Text that has them is written a second
 * time after each refresh, where it changed. Sequences: ECMA-48, and "Hyperlinks in terminal emulators". One
 * thread. */
#ifndef QSF_UI_OVERLAY_H
#define QSF_UI_OVERLAY_H

#include "ui/canvas.h"

typedef struct UiOverlayRow {
    uint64_t over, all; /* hashes of its text with links and strike-through (0 = none) and of all of it */
} UiOverlayRow;

typedef struct UiOverlay {
    UiOverlayRow *rows; /* (n) as last shown */
    int n;
} UiOverlay;

/* Compares a row with the one last shown. *renew: it had text that must lose its link: everything in the row
 * has to be written by the refresh. Returns whether ui_overlay_write is to be called after it. again:
 * everything is written by the refresh. */
bool ui_overlay_row(UiOverlay *o, const UiCanvas *c, int row, bool again, bool *renew);
/* Appends what writes the text of a row with links and strike-through, each with attributes of its own: the
 * cursor and the attributes are somewhere afterwards. paints: (UI_STYLE_COUNT) the styles. */
void ui_overlay_write(const UiCanvas *c, int row, const UiPaint *paints, UiBuf *out);
void ui_overlay_free(UiOverlay *o);
/* Does the terminal that these variables of the environment describe open links? FORCE_HYPERLINK decides if
 * it is set (0 = no). */
bool ui_overlay_links(const char *(*env)(const char *name));

#endif
