/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-get: the parts of the program. */
#ifndef QSF_GET_PROGRAM_H
#define QSF_GET_PROGRAM_H

#include "get/report.h"
#include "qsf_cli.h"

extern const QSFCli get_cli;

typedef struct GetOptions {
    const char *model;
    bool list;     /* only say what there is */
    bool offline;  /* only what is on this machine */
    uint64_t room; /* bytes for weights */
} GetOptions;

/* Finds the model on this machine, or downloads it, and reports its path, or with list what a repository has.
 * Errors: those of list.h and blob.h, and QSF_E_MODEL if it is offline and not there. */
int get_run(const GetOptions *o, GetReport *report, QsfErr *err);

#endif
