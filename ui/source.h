/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /source: the lines of a file as if they were typed, each when what the one before it began is finished. A
 * file may name others. One thread; no function blocks. */
#ifndef QSF_UI_SOURCE_H
#define QSF_UI_SOURCE_H

#include <sys/types.h>

#include "ui/quoted.h"

struct UiApp;

#define UI_SOURCE_DEPTH 8                 /* files that name each other */
#define UI_SOURCE_FILES 1000              /* that one command may lead to */
#define UI_SOURCE_MAX   ((size_t)1 << 20) /* bytes of a file */

typedef struct UiSourceFile {
    char *name;
    UiBuf text;
    size_t at;     /* byte of the next line */
    unsigned line; /* number of the last one that was read */
    dev_t dev;
    ino_t ino;
    UiLines lines;
} UiSourceFile;

/* Zeroed nothing is read. */
typedef struct UiSource {
    UiSourceFile files[UI_SOURCE_DEPTH]; /* (depth) */
    unsigned depth, opened;
    bool running;    /* a line is being submitted */
    char where[300]; /* "FILE:LINE" of the last one, until what it began is finished; "" otherwise */
} UiSource;

/* Submits lines until one of them begins something that takes time. */
void ui_source_run(struct UiApp *a);
/* Leaves out the rest, and says so; false if there is none. */
bool ui_source_drop(struct UiApp *a);
void ui_source_free(UiSource *s);

#endif
