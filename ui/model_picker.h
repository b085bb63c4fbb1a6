/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of models over the transcript, which fills while they are looked for; after them is the built-in
 * guide and, if there are none, models of the hub to begin with. One thread. */
#ifndef QSF_UI_MODEL_PICKER_H
#define QSF_UI_MODEL_PICKER_H

#include "ui/chooser.h"
#include "ui/model_scan.h"

typedef struct UiModelPicker {
    bool open;
    bool moved; /* the user has chosen a row */
    UiModelScan scan;
    UiChooser at;
    char title[200]; /* "Models", "Models in DIR" */
} UiModelPicker;

typedef enum UiModelPick {
    UI_MODEL_PICK_NOTHING,
    UI_MODEL_PICK_LOAD,    /* ui_model_picker_path */
    UI_MODEL_PICK_REFUSED, /* the chosen one cannot be loaded: ui_model_picker_verdict */
    UI_MODEL_PICK_CLOSED
} UiModelPick;

/* Opens the list with what p->scan has, or will have; filter: what is typed already, "" = nothing. only: the
 * folder that is listed, or NULL. */
void ui_model_picker_open(UiModelPicker *p, const char *filter, const char *only);
/* Rows of p->scan are new. */
void ui_model_picker_update(UiModelPicker *p);
/* Closes it, ends the search and frees everything. */
void ui_model_picker_close(UiModelPicker *p);
UiModelPick ui_model_picker_key(UiModelPicker *p, const UiKey *k, int rows);
/* What the chosen row loads: a path, the guide, or "hf:..." to download; NULL = no row. */
const char *ui_model_picker_path(const UiModelPicker *p);
const char *ui_model_picker_verdict(const UiModelPicker *p);
void ui_model_picker_draw(UiModelPicker *p, UiCanvas *c, int row, int rows, int cols);
/* Cells for names, so that this one fits, too, unless it is very long. */
int ui_model_wider(int cells, const char *name);
/* Writes a row as a line: name, size, type, architecture, verdict; name_cells of the first. */
void ui_model_row_line(const UiModelRow *row, int name_cells, UiBuf *b);

#endif
