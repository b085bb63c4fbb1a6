/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is known of the sessions on disk without opening them in the chat: title, model, number of messages.
 * Text from the files is cleaned. One thread. */
#ifndef QSF_UI_SESSION_ROWS_H
#define QSF_UI_SESSION_ROWS_H

#include "qsf_chatlog.h"
#include "qsf_search.h"
#include "ui/buf.h"

#define UI_WHEN 16 /* cells of a time */

typedef struct UiSessionRow {
    QSFLogInfo info;
    char when[UI_WHEN + 1];     /* of the last use, local time */
    char *name, *model, *title; /* clean, on one line; the title is that of /rename, or the beginning of the
                                   first message; NULL without memory */
    size_t messages;            /* those that were forgotten too */
    char state[48];             /* the problem with it, "[in use] ", "" = none */
    char kept[16];              /* size of its snapshot, "-" = none */
    bool found;                 /* the search has found something in its title or in a message */
} UiSessionRow;

typedef struct UiSessionRows {
    UiSessionRow *rows; /* (n), newest first */
    size_t n, all;      /* rows, and sessions that there are */
    size_t skipped;     /* sessions that could not be searched, because they are too large */
    uint64_t snapshots; /* bytes of the snapshots of all of them */
} UiSessionRows;

/* Reads the newest `most` sessions, as far as their files have at most 128 MB together; with search (may be
 * NULL; then 1 GB) only those remain in which it finds something. `current` is open in this chat: it is not
 * "in use". false without memory. */
bool ui_session_rows_read(UiSessionRows *r, const char *current, size_t most, QSFSearch *search);
void ui_session_rows_free(UiSessionRows *r);
/* One session. left: bytes of files that may still be read. */
void ui_session_row_read(UiSessionRow *row, const QSFLogInfo *info, const char *current, QSFSearch *search,
                         uint64_t *left);
void ui_session_row_free(UiSessionRow *row);

#endif
