/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The menu of completions: which are shown and which one is chosen. Pure. */
#ifndef QSF_UI_MENU_H
#define QSF_UI_MENU_H

#include "ui/buf.h"
#include "ui/complete.h"

/* { .chosen = -1 } is empty. */
typedef struct UiMenu {
    UiCompletion list;
    UiBuf of;     /* the text before the cursor that it completes */
    bool asked;   /* requested with Tab or an arrow */
    bool used;    /* the key that is being handled belonged to it */
    size_t first; /* the first one that is shown */
    size_t page;  /* how many are shown at once, 0 = not known yet */
    long chosen;  /* that Enter puts into the line, -1 = none */
} UiMenu;

/* As while one types: the first page, nothing chosen. */
void ui_menu_shut(UiMenu *m);
/* Empties it. */
void ui_menu_forget(UiMenu *m);
void ui_menu_free(UiMenu *m);
/* Fills the menu for the word that ends at line[point], unless it is filled for that word
 * already. a as in ui_complete. */
void ui_menu_fill(UiMenu *m, const struct UiApp *a, const char *line, size_t point);
/* After a key: what did not use the menu shuts it. */
void ui_menu_key_done(UiMenu *m);

/* All of these need list.n > 0. Whether there are more choices than a page has. */
bool ui_menu_pages(const UiMenu *m);
/* Chooses the next one (1) or the one before (-1), in a circle. */
void ui_menu_choose(UiMenu *m, int by);
/* Shows the next page (1) or the one before (-1), in a circle; if all are on one page, chooses. */
void ui_menu_turn(UiMenu *m, int by);
/* The chosen one; NULL: none. */
const UiChoice *ui_menu_chosen(const UiMenu *m);

#endif
