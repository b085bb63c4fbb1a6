/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/download.h"

#include <stdio.h>
#include <stdlib.h>

#include "qsf_cli.h"
#include "ui/app.h"

bool ui_download_running(const UiApp *a) { return a->download.fetch.pid != 0; }

double ui_download_left(const UiApp *a) {
    const UiDownload *d = &a->download;
    return d->rate > 0 && d->total > d->done ? (double)(d->total - d->done) / d->rate : -1;
}

int ui_download_fd(const UiApp *a) { return ui_download_running(a) ? a->download.fetch.fd : -1; }

/* Its progress is on standard error. */
static bool wait_for_it(UiApp *a, const char *name) {
    char err[500];
    int code;
    char *path = qsf_fetch(name, a->offline, a->quiet, &code, err, sizeof err);
    if (path)
        ui_app_load(a, path);
    else
        ui_app_say(a, UI_ERROR, "%s",
                   *err                   ? err
                   : code == QSF_EXIT_INT ? "the download was stopped"
                                          : "the model was not downloaded");
    if (!path && code != 0) a->exit_code = code;
    free(path);
    return path != NULL;
}

bool ui_download_begin(UiApp *a, const char *name) {
    UiDownload *d = &a->download;
    char err[500];
    if (ui_download_running(a)) {
        ui_app_say(a, UI_ERROR, "%s is being downloaded: ^C stops that, when no answer is written", d->name);
        return false;
    }
    if (!a->full_screen) return wait_for_it(a, name);
    d->done = d->total = 0;
    d->rate = 0;
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    if (!qsf_fetch_start(&d->fetch, name, a->offline, 0, err, sizeof err)) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    ui_app_say(a, UI_NOTICE, "%s is being looked for", name);
    return true;
}

bool ui_download_pump(UiApp *a) {
    UiDownload *d = &a->download;
    static QSFFetchEvent e; /* 8 KB */
    bool any = false;
    for (; ui_download_running(a); any = true) {
        qsf_fetch_next(&d->fetch, &e);
        switch (e.kind) {
        case QSF_FETCH_NOTHING: return any;
        case QSF_FETCH_PROGRESS:
            if (d->total == 0 && e.total > 0 && e.done < e.total)
                ui_app_say(a, UI_NOTICE, "downloading %.*f %s; it is loaded when it is there, ^C stops it",
                           e.total < 1000000000u ? 1 : 2,
                           (double)e.total / (e.total < 1000000000u ? 1e6 : 1e9),
                           e.total < 1000000000u ? "MB" : "GB");
            d->done = e.done;
            d->total = e.total;
            d->rate = e.rate;
            break;
        case QSF_FETCH_NOTE: ui_app_say(a, UI_NOTICE, "%s", e.text); break;
        case QSF_FETCH_DONE: ui_app_load(a, e.text); break;
        case QSF_FETCH_FAILED: ui_app_say(a, UI_ERROR, "%s", e.text); break;
        }
    }
    return any;
}

bool ui_download_stop(UiApp *a) {
    if (!ui_download_running(a)) return false;
    qsf_fetch_stop(&a->download.fetch);
    if (a->full_screen)
        ui_app_say(a, UI_NOTICE, "the download was stopped; /model %s continues it", a->download.name);
    return true;
}
