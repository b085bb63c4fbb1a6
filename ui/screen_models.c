/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full screen: the list of models, and what is loaded when no model was given. */
#include <stdlib.h>
#include <string.h>

#include "qsf_fetch.h"
#include "ui/download.h"
#include "ui/guide.h"
#include "ui/screen.h"
#include "ui/server_models.h"

/* For the first model, at the start: the search takes seconds on a busy machine or a slow disk. */
#define WAIT_SECONDS 10.0

static void start_scan(UiScreen *s, const char *only) {
    UiApp *a = s->app;
    if (!ui_model_scan_start(&s->models.scan, a->model_dirs, only, &a->settings))
        ui_app_say(a, UI_NOTICE, "cannot look for models: the process for it cannot be started");
}

void ui_screen_models_leave(UiScreen *s) {
    UiApp *a = s->app;
    if (!s->choosing && !s->models.open) return;
    s->choosing = false;
    ui_model_picker_close(&s->models);
    if (!a->model_path && !a->want_model) ui_guide_open(a);
    s->again = true;
}

void ui_screen_models_begin(UiScreen *s) {
    if (!s->app->choose_model) return;
    s->app->choose_model = false;
    s->choosing = true;
    s->choosing_until = ui_now() + WAIT_SECONDS;
    start_scan(s, s->app->models_dir);
    if (s->app->models_dir) ui_model_picker_open(&s->models, "", s->app->models_dir);
    if (s->models.scan.pid == 0) ui_screen_models_leave(s);
}

void ui_screen_models_open(UiScreen *s) {
    UiApp *a = s->app;
    s->choosing = false;
    ui_model_picker_close(&s->models);
    if (!ui_server_models_list(a, &s->models.scan)) start_scan(s, NULL);
    ui_model_picker_open(&s->models, ui_buf_str(&a->view_text), NULL);
}

int ui_screen_models_fd(const UiScreen *s) { return s->models.scan.pid ? s->models.scan.fd : -1; }

bool ui_screen_models_read(UiScreen *s, double now) {
    bool any = ui_model_scan_read(&s->models.scan);
    const bool found = s->models.scan.n > 0, ended = s->models.scan.pid == 0;
    if (s->choosing && !s->models.open) {
        if (found)
            ui_model_picker_open(&s->models, "", NULL);
        else if (ended || now >= s->choosing_until)
            ui_screen_models_leave(s);
        any = any || !s->choosing;
    }
    if (s->models.open && any) ui_model_picker_update(&s->models);
    return any;
}

bool ui_screen_models_key(UiScreen *s, const UiKey *k) {
    if (!s->models.open) {
        if (s->choosing)
            ui_screen_models_leave(s); /* the user does not wait: the key is for the input line */
        return false;
    }
    if (k->action == UI_DO_SUSPEND) return false;
    const UiModelPick pick = ui_model_picker_key(&s->models, k, s->body_rows);
    const char *path = ui_model_picker_path(&s->models);
    if (pick == UI_MODEL_PICK_REFUSED) {
        ui_screen_flash(s, "%.150s", ui_model_picker_verdict(&s->models));
    } else if (pick == UI_MODEL_PICK_LOAD && path) {
        char *copy = strdup(path);
        if (copy && ui_guide_is(copy))
            ui_guide_open(s->app);
        else if (copy && qsf_fetch_is_remote(copy))
            (void)ui_download_begin(s->app, copy);
        else if (copy)
            ui_app_load(s->app, copy);
        free(copy);
        ui_screen_models_leave(s);
        ui_chatview_end(&s->view);
    } else if (pick == UI_MODEL_PICK_CLOSED) {
        ui_screen_models_leave(s);
    }
    s->again = s->again || k->action == UI_DO_REDRAW;
    return true;
}
