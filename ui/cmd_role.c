/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /role: a system prompt and settings of the configuration file become those of the session. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/opts.h"

static void list(UiApp *a) {
    const char *name;
    UiBuf b = { 0 };
    for (size_t i = 0; (name = qsf_config_role_at(a->config, i)) != NULL; i++) {
        char *clean = qsf_clean_dup(name, strlen(name), true);
        ui_buf_printf(&b, "%s%s %s", i ? "\n" : "", strcmp(name, a->role) == 0 ? "*" : " ",
                      clean ? clean : "");
        free(clean);
    }
    if (b.len > 0)
        ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    else
        ui_app_say(a, UI_NOTICE,
                   "there are no roles: a section [role NAME] of the configuration file makes one%s%s",
                   a->config ? "; it is " : "", qsf_config_path(a->config));
    ui_buf_free(&b);
}

/* Whether all settings of the role work together with the others: nothing of it applies otherwise. */
static bool is_possible(UiApp *a, const char *name, const char *role) {
    QSFSettings next = a->settings;
    char err[600];
    qsf_config_role_settings(a->config, role, &next);
    if (qsf_settings_check(&next, err, sizeof err) == 0) return true;
    ui_app_say(a, UI_ERROR, "/%s %s: %s", name, role, err);
    return false;
}

/* Returns false if one was refused, which was reported. */
static bool take_settings(UiApp *a, const char *role, UiBuf *done) {
    QSFSettings s;
    char value[QSF_SETTING_TEXT];
    bool ok = true;
    ui_settings_default(&s);
    qsf_config_role_settings(a->config, role, &s);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&s, row)) continue;
        qsf_setting_get(&s, row, value, sizeof value);
        if (ui_app_set(a, row, value, true))
            ui_buf_printf(done, "%s%s %s", done->len ? ", " : "", row->name, value);
        else
            ok = false;
    }
    return ok;
}

static bool take_texts(UiApp *a, const char *role, UiBuf *done) {
    UiOptions texts;
    char err[600] = "";
    const bool ok = ui_options_texts(&texts, a->config, NULL, role, true, err, sizeof err);
    if (!ok) ui_app_say(a, UI_ERROR, "%s", err);
    if (ok && texts.has_system) {
        ui_app_set_system(a, ui_buf_str(&texts.system));
        ui_buf_printf(done, "%ssystem prompt", done->len ? ", " : "");
    }
    if (ok && texts.stops.n > 0) {
        (void)ui_app_change_stops(a, "");
        for (size_t i = 0; i < texts.stops.n; i++) (void)ui_app_change_stops(a, texts.stops.text[i]);
        ui_buf_printf(done, "%sstop strings", done->len ? ", " : "");
    }
    ui_options_free(&texts);
    return ok;
}

bool ui_cmd_role(UiApp *a, const char *name, const char *args) {
    UiBuf done = { 0 };
    if (!*args) {
        list(a);
        return true;
    }
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    if (!qsf_config_has_role(a->config, args)) {
        ui_app_say(a, UI_ERROR, "there is no role %s; /%s lists them", args, name);
        return false;
    }
    if (!is_possible(a, name, args)) return false;
    ui_session_because(&a->session, "role", true); /* one change */
    const bool texts = take_texts(a, args, &done), settings = take_settings(a, args, &done);
    ui_session_because(&a->session, "role", false);
    ui_app_set_role(a, args);
    ui_session_because(&a->session, NULL, false);
    ui_app_say(a, UI_NOTICE, "role %s: %s", args, done.len ? ui_buf_str(&done) : "nothing is set");
    ui_buf_free(&done);
    return texts && settings;
}
