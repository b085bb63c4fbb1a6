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

bool ui_download_begin(UiApp *a, const char *name) {
    UiDownload *d = &a->download;
    char err[500];
    if (ui_download_running(a)) {
        ui_app_say(a, UI_ERROR, "%s is being downloaded: ^C stops that, when no answer is written", d->name);
        return false;
    }
    d->done = d->total = 0;
    d->rate = 0;
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    d->by_source = a->source.running;
    const unsigned how = (a->offline ? QSF_FETCH_OFFLINE : 0u) | (a->show_downloads ? QSF_FETCH_SHOWN : 0u) |
                         (a->quiet ? QSF_FETCH_QUIET : 0u);
    if (!qsf_fetch_start(&d->fetch, name, how, qsf_fetch_room(&a->settings), err, sizeof err)) {
        ui_app_say(a, UI_ERROR, "%s", err);
        if (!a->full_screen) a->exit_code = QSF_EXIT_RUNTIME;
        return false;
    }
    if (!a->show_downloads) ui_app_say(a, UI_NOTICE, "looking for %s", name);
    return true;
}

/* In a script what follows was meant for the model: that counts as a failure. */
static void say_stopped(UiApp *a) {
    ui_app_say(a, a->interactive ? UI_NOTICE : UI_ERROR, "the download was stopped; /model %s continues it",
               a->download.name);
    if (!a->interactive) a->exit_code = QSF_EXIT_INT;
}

static void say_failed(UiApp *a, const QSFFetchEvent *e) {
    if (e->code == QSF_EXIT_INT || e->code == QSF_EXIT_TERM) { /* ^C reached it first */
        say_stopped(a);
        return;
    }
    ui_app_say(a, UI_ERROR, "%s", e->text[0] ? e->text : "the model was not downloaded");
    if (!a->full_screen && e->code != 0) a->exit_code = e->code;
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
        case QSF_FETCH_FAILED: say_failed(a, &e); break;
        }
    }
    return any;
}

bool ui_download_stop(UiApp *a) {
    if (!ui_download_running(a)) return false;
    qsf_fetch_stop(&a->download.fetch);
    say_stopped(a);
    return true;
}
