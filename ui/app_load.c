/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: a model was loaded, or not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"
#include "qsf_models.h"
#include "qsf_remote.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/guide.h"

/* A server says which of its models answers; sections of the configuration file may be for it. */
static void take_path(UiApp *a) {
    ui_app_refresh_stats(a);
    if (!qsf_connect_is(a->model_path) || !qsf_connect_is(a->stats.model_path)) return;
    if (strcmp(a->model_path, a->stats.model_path) == 0) return;
    char *path = ui_strdup_len(a->stats.model_path, strlen(a->stats.model_path));
    if (!path) return;
    free(a->model_path);
    a->model_path = path;
    ui_config_for_model(a, path);
    if (!a->good_path) (void)ui_config_begin_session(a, path); /* texts, too */
}

/* Adds the names of settings that are set, but do nothing: those of the configuration file, or the others. */
static void list_without_effect(UiApp *a, bool of_config, UiBuf *b) {
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&a->settings, row) || ui_config_sets(a, row) != of_config) continue;
        const UiEffect effect = a->engine.effect(a->engine.self, row);
        if (effect == UI_EFFECT_NONE || effect == UI_EFFECT_REFUSED)
            ui_buf_printf(b, "%s%s", b->len > 0 ? ", " : "", row->name);
    }
}

/* The configuration file is for all models: in a pipe, what it sets for others is not worth a line each
 * time. */
static void say_without_effect(UiApp *a) {
    UiBuf set = { 0 }, config = { 0 };
    list_without_effect(a, false, &set);
    if (a->full_screen || a->interactive) list_without_effect(a, true, &config);
    if (set.len > 0) ui_app_say(a, UI_NOTICE, "%s: %s", ui_buf_str(&set), ui_effect_text(UI_EFFECT_NONE));
    if (config.len > 0)
        ui_app_say(a, UI_NOTICE, "%s of the configuration file: %s", ui_buf_str(&config),
                   ui_effect_text(UI_EFFECT_NONE));
    ui_buf_free(&set);
    ui_buf_free(&config);
}

void ui_app_model_loaded(UiApp *a, const QSFEvent *e) {
    UiBuf advice = { 0 };
    a->model_ready = true;
    take_path(a);
    ui_app_take_model_defaults(a, &advice);
    free(a->good_path);
    a->good_path = ui_strdup_len(a->model_path, strlen(a->model_path));
    a->good_settings = a->settings;
    ui_app_refresh_stats(a);
    ui_app_drop_limits(a);
    ui_log_loaded(a);
    ui_guide_switch(a);
    ui_app_count_context(a);
    if (!a->model_unsaved) ui_app_save_model(a);
    if (a->remember_model && !ui_guide_is(a->model_path) && !qsf_connect_is(a->model_path))
        qsf_model_remember(a->model_path);
    a->resuming = false;
    ui_guide_welcome(a);
    if (a->hooks.loaded) a->hooks.loaded(a->hooks.arg);
    if (a->full_screen || a->interactive)
        ui_app_say(a, UI_NOTICE, "%s is ready: %s%s", e->text ? e->text : "the model", a->stats.model_desc,
                   ui_buf_str(&advice));
    ui_buf_free(&advice);
    say_without_effect(a);
    ui_app_say_long(a);
    ui_attach_announce(a);
    for (int i = 0; i < 2 && a->verbose; i++) {
        char *text = a->engine.describe(a->engine.self, i == 0 ? "plan" : "threads");
        if (text) ui_app_print(a, UI_OUTPUT, text);
        free(text);
    }
}

/* The model loaded before the failed load: its file and its settings, but the current sampling. */
static void go_back(UiApp *a) {
    free(a->model_path);
    a->model_path = ui_strdup_len(a->good_path, strlen(a->good_path));
    ui_config_for_model(a, a->model_path);
    if (a->config) a->engine.advise(a->engine.self, &a->settings);
    ui_app_take_back(a, &a->good_settings, QSF_SETTING_REPLAN | QSF_SETTING_RELOAD, true);
}

/* The session keeps the name of its own model until the other one gets a message. */
static void stay_with_old(UiApp *a) {
    if (!a->resuming) return;
    a->model_unsaved = true;
    if (ui_guide_is(a->good_path) == a->guide_talk)
        ui_app_say(a, UI_NOTICE, "session %s continues with %s", a->session.name, a->good_path);
}

/* If the file is not the model's but one that a setting names, the model works without it. */
static void say_without(UiApp *a, const char *error) {
    static const char *const names[] = { "lora", "control-vector" };
    const size_t len = strcspn(error, ":");
    for (size_t i = 0; len > 0 && i < sizeof names / sizeof *names; i++) {
        char value[QSF_SETTING_TEXT], path[QSF_SETTING_TEXT];
        qsf_setting_get(&a->settings, qsf_setting_find(names[i]), value, sizeof value);
        (void)snprintf(path, sizeof path, "%.*s", (int)(len < sizeof path ? len : sizeof path - 1), error);
        if (!strstr(value, path)) continue;
        ui_app_say(a, UI_NOTICE, "to use the model without it: %s%s off",
                   a->full_screen || a->interactive ? "/" : "--", names[i]);
    }
}

/* A draft model changes no token, so the chat does not end with its file, unless the command line names it.
 * The session keeps the setting. */
static bool drop_draft_model(UiApp *a, const char *error) {
    const QSFSetting *row = qsf_setting_find("draft-model");
    char err[300];
    if (strncmp(error, "draft-model: ", 13) != 0 || qsf_setting_user_set(&a->given.settings, row) ||
        !ui_setting_is_on(&a->settings, row))
        return false;
    UiBuf b = { 0 };
    ui_buf_printf(&b, "%s; it is not used", error);
    ui_app_print(a, UI_NOTICE, ui_buf_str(&b));
    ui_buf_free(&b);
    (void)qsf_setting_set(&a->settings, row, "off", err, sizeof err);
    a->want_reload = true;
    return true;
}

void ui_app_load_failed(UiApp *a, const QSFEvent *e) {
    bool replaced = a->stopping && (a->want_model || a->want_reload);
    ui_app_refresh_stats(a);
    if (replaced || drop_draft_model(a, e->text ? e->text : "")) return;
    if (a->exit_code == 0) a->exit_code = e->code > 0 && !a->started ? e->code : 1;
    ui_app_print(a, UI_ERROR, e->text && *e->text ? e->text : "the model was not loaded");
    if (e->code == QSF_EXIT_MODEL && e->text) say_without(a, e->text);
    if (e->code == QSF_EXIT_MODEL && ui_guide_is(a->model_path)) ui_guide_failed(a);
    /* If a file could not even be opened, the old model is still loaded. */
    a->model_ready = a->stats.state == QSF_STATE_IDLE && a->good_path;
    if (!a->good_path) {
        a->resuming = false;
        return;
    }
    stay_with_old(a);
    go_back(a);
    if (a->model_ready) {
        a->resuming = false;
        ui_guide_switch(a);
        return;
    }
    /* Only once: if this fails too, there is nothing to fall back to. */
    a->want_reload = true;
    free(a->good_path);
    a->good_path = NULL;
}
