/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What qsf-get says: sentences and a line of progress on stderr, or with --json events on stdout, one object
 * per line. One thread. */
#ifndef QSF_GET_REPORT_H
#define QSF_GET_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "get/list.h"

typedef struct GetReport {
    bool json, quiet;
    bool list;           /* the models of a repository are the result */
    bool terminal;       /* stderr is one: progress is drawn on its line */
    uint64_t begun;      /* monotonic nanoseconds, when the first byte was expected */
    uint64_t shown;      /* when progress was last shown */
    uint64_t shown_done; /* what was shown then */
    uint64_t before;     /* bytes of the parts that are done */
    uint64_t total;      /* of all parts, 0 = unknown */
    uint64_t at_start;   /* bytes that were there already */
    unsigned percent;    /* last shown without a terminal */
    bool drawn;          /* the line has text */
} GetReport;

void get_report_init(GetReport *r, bool json, bool quiet, bool list);
/* A sentence for the user. */
void get_report_note(GetReport *r, const char *text);
/* The models of a repository, with the chosen one marked, and what each would do with room bytes of memory
 * for weights: on stdout if the list is what was asked for. hub: the folder that it would be in. */
void get_report_choices(GetReport *r, const GetList *l, const GetChoices *c, const char *hub, uint64_t room);
/* `done` bytes of the current part are on the disk. Cheap enough for every piece. */
void get_report_progress(GetReport *r, uint64_t done);
/* The result. */
void get_report_path(GetReport *r, const char *path);
void get_report_error(GetReport *r, const QsfErr *err);

#endif
