/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: the settings of a resumed session. They are the session's own or those of the
 * command line, never those of the session that was open before. */
#include <stdio.h>
#include <string.h>

#include "ui/app_internal.h"

void ui_given_free(UiGiven *g) {
    ui_stops_clear(&g->stops);
    ui_buf_free(&g->system);
    *g = (UiGiven){ 0 };
}

void ui_own_begin(UiOwn *own) {
    *own = (UiOwn){ 0 };
    ui_settings_default(&own->settings);
}

void ui_own_free(UiOwn *own) {
    ui_stops_clear(&own->stops);
    ui_buf_free(&own->system);
    *own = (UiOwn){ 0 };
}

/* A setting as a record has it: its value, or that it is no longer set. */
static void take_recorded(QSFSettings *s, const QSFSetting *row, const char *value) {
    char err[200];
    QSFSettings usual;
    if (!ui_setting_is_default(row, value)) {
        (void)qsf_setting_set(s, row, value, err, sizeof err);
        return;
    }
    ui_settings_default(&usual);
    ui_setting_unset(s, &usual, row);
}

void ui_own_set(UiApp *a, const QSFSetting *row, const char *value) {
    if (a->kept) take_recorded(&a->own.settings, row, value);
    if (ui_setting_is_default(row, value))
        ui_config_unchosen(a, row);
    else
        ui_config_chosen(a, row);
    if (!(row->flags & QSF_SETTING_HERE)) ui_session_simple(&a->session, QSF_LOG_SET, row->name, value, 0);
}

void ui_own_record(UiOwn *own, const QSFLogRecord *r) {
    if (!r->name || !r->text) return;
    const QSFSetting *row = qsf_setting_find(r->name);
    if (row && !(row->flags & QSF_SETTING_HERE)) take_recorded(&own->settings, row, r->text);
    if (strcmp(r->name, UI_STOP_SETTING) != 0) return;
    if (*r->text)
        (void)ui_stops_add(&own->stops, r->text);
    else
        ui_stops_clear(&own->stops);
}

static void save_setting(UiApp *a, const QSFSetting *row) {
    char value[QSF_SETTING_TEXT];
    qsf_setting_get(&a->settings, row, value, sizeof value);
    ui_own_set(a, row, value);
}

/* In the order of the table: kv-type replaces what the session has for K or V alone. */
void ui_own_settings(const UiApp *a, const UiOwn *own, QSFSettings *s) {
    const bool commands = a->settings.commands; /* s may be the settings of a */
    ui_config_base(a, a->want_model ? a->want_model : a->model_path, s);
    s->commands = commands;
    qsf_config_overlay(s, &own->settings);
    qsf_config_overlay(s, &a->given.settings);
}

static void take_settings(UiApp *a) {
    ui_own_settings(a, &a->own, &a->settings);
    ui_config_apply(a, a->want_model ? a->want_model : a->model_path,
                    a->own.settings.user_set | a->given.settings.user_set);
    for (size_t i = 0; !a->kept && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (qsf_setting_user_set(&a->given.settings, row)) save_setting(a, row);
    }
    ui_app_settle(a);
}

static void take_stops(UiApp *a) {
    const UiStops *from = a->given.stops.n > 0 ? &a->given.stops : &a->own.stops;
    ui_stops_clear(&a->stops);
    for (size_t i = 0; i < from->n; i++) (void)ui_stops_add(&a->stops, from->text[i]);
    if (!a->kept) ui_app_save_stops(a, &a->stops, false);
}

void ui_own_take(UiApp *a, bool system) {
    take_settings(a);
    take_stops(a);
    ui_buf_clear(&a->system);
    ui_buf_puts(&a->system, ui_buf_str(&a->own.system));
    if (!system && a->given.system.len > 0) ui_app_give_system(a, ui_buf_str(&a->given.system));
}
