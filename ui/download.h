/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models that are downloaded while the chat continues (qsf_fetch.h): one at a time, loaded when it is
 * complete. The line mode takes no line before that, since the next one may be a message for the new model;
 * nor do the lines of a file that began it. One thread. */
#ifndef QSF_UI_DOWNLOAD_H
#define QSF_UI_DOWNLOAD_H

#include "qsf_fetch.h"

typedef struct UiApp UiApp;

typedef struct UiDownload {
    QSFFetch fetch;       /* fetch.pid 0: none is running */
    char name[300];       /* as the user wrote it */
    uint64_t done, total; /* bytes; total 0 = unknown */
    double rate;          /* bytes per second, 0 = unknown */
    bool by_source;       /* a line of /source began it */
} UiDownload;

bool ui_download_running(const UiApp *a);
/* Readable when there is something for ui_download_pump; -1 = none is running. */
int ui_download_fd(const UiApp *a);
/* Seconds until it is complete, -1 = unknown. */
double ui_download_left(const UiApp *a);
/* Begins to download `name`, which is then loaded. false: it cannot begin (reported). */
bool ui_download_begin(UiApp *a, const char *name);
/* Takes its events; true if something changed. */
bool ui_download_pump(UiApp *a);
/* Stops it and says so; false if none is running. What is there is kept. */
bool ui_download_stop(UiApp *a);

#endif
