/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions over the transcript: what is typed filters it, one is chosen. Pure but for reading the
 * sessions. One thread. */
#ifndef QSF_UI_SESSION_PICKER_H
#define QSF_UI_SESSION_PICKER_H

#include "ui/chooser.h"
#include "ui/session_rows.h"

#define UI_PICKER_MOST 1000 /* sessions that are read */

typedef struct UiPicker {
    bool open;
    bool asking; /* whether the chosen one should be deleted */
    UiSessionRows list;
    UiChooser at;
    double now;    /* of the ages, seconds since 1970 */
    char note[60]; /* sessions that were not searched, or "" */
    UiBuf search;  /* the expression that was searched for, "" = none */
    char current[QSF_LOG_NAME];
} UiPicker;

/* What a key asks the owner to do with ui_picker_name. */
typedef enum UiPick { UI_PICK_NOTHING, UI_PICK_LOAD, UI_PICK_DELETE } UiPick;

/* Reads the sessions and opens the list; search: an expression that they have to contain, "" = all. `current`
 * is marked. Returns false, and it stays closed, if there is nothing to show. */
bool ui_picker_open(UiPicker *p, const char *current, const char *search);
/* Reads them again, after one was deleted; the filter stays. */
void ui_picker_refresh(UiPicker *p);
/* Closes it and frees everything. */
void ui_picker_close(UiPicker *p);
/* Handles a key; rows is the height. */
UiPick ui_picker_key(UiPicker *p, const UiKey *k, int rows);
/* The chosen session, or NULL. */
const char *ui_picker_name(const UiPicker *p);
/* Draws it at `row` and below, over the whole width. now: seconds since 1970. */
void ui_picker_draw(UiPicker *p, UiCanvas *c, int row, int rows, int cols, double now);

#endif
