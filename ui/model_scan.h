/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The models on this machine, looked for by its own process (qsf-chat --list-models): it may take as much
 * memory as headers need, and it is abandoned when a folder does not answer. One thread. */
#ifndef QSF_UI_MODEL_SCAN_H
#define QSF_UI_MODEL_SCAN_H

#include <sys/types.h>

#include "qsf_models.h"
#include "ui/buf.h"

#define UI_SCAN_LINE 16384 /* bytes of a line of that process; longer ones are dropped */

/* Fields of a line, separated by tabs. */
typedef enum UiModelField {
    UI_MODEL_NAME,
    UI_MODEL_BYTES,
    UI_MODEL_TYPE,
    UI_MODEL_ARCH,
    UI_MODEL_VERDICT, /* "" = its header was not read yet */
    UI_MODEL_PLACE,
    UI_MODEL_PATH,
    UI_MODEL_FIELDS
} UiModelField;

typedef struct UiModelRow {
    char *line; /* owned; the fields are parts of it */
    const char *field[UI_MODEL_FIELDS];
    uint64_t bytes;
} UiModelRow;

typedef struct UiModelScan {
    pid_t pid; /* 0: none was started, or it has ended */
    int fd;    /* its output, while pid is not 0 */
    UiBuf part;
    UiModelRow *rows; /* (n) in the order in which they were found, the last model first */
    size_t n, cap;
    char *last;     /* path of the model that was loaded last, or NULL */
    char note[160]; /* what the process says about all of it, or "" */
} UiModelScan;

/* Starts looking in dirs (NULL-terminated, or NULL), the current folder and caches, or only in one folder;
 * with the settings that the user chose. false: the process cannot be started. */
bool ui_model_scan_start(UiModelScan *s, const char *const *dirs, const char *only,
                         const QSFSettings *settings);
/* Takes what it has written; true if rows are new or known better. Does not wait. */
bool ui_model_scan_read(UiModelScan *s);
/* Waits until it has ended, at most `seconds`. */
void ui_model_scan_finish(UiModelScan *s, double seconds);
/* Ends the process, if it runs, and frees the rows. */
void ui_model_scan_stop(UiModelScan *s);
/* Adds a row, or replaces the one with its path: the line that --list-models prints. */
bool ui_model_scan_add(UiModelScan *s, const char *line, size_t len);
/* Its header says that it cannot be loaded. */
bool ui_model_row_refused(const UiModelRow *row);
/* Replaces b with everything that is known about it, for filters. */
void ui_model_row_text(const UiModelRow *row, UiBuf *b);

#endif
