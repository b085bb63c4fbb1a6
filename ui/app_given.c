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

void ui_own_free(UiOwn *own) { ui_stops_clear(&own->stops); }

void ui_own_record(UiOwn *own, const QSFLogRecord *r) {
    char err[200];
    if (!r->name || !r->text) return;
    const QSFSetting *row = qsf_setting_find(r->name);
    if (row) (void)qsf_setting_set(&own->settings, row, r->text, err, sizeof err);
    if (strcmp(r->name, UI_STOP_SETTING) != 0) return;
    if (*r->text)
        (void)ui_stops_add(&own->stops, r->text);
    else
        ui_stops_clear(&own->stops);
}

/* Values of the command line belong to the session from now on. */
static void save_setting(UiApp *a, const UiOwn *own, const QSFSetting *row) {
    char value[QSF_SETTING_TEXT];
    if (qsf_setting_user_set(&own->settings, row) && !qsf_setting_differs(&a->settings, &own->settings, row))
        return;
    qsf_setting_get(&a->settings, row, value, sizeof value);
    ui_session_simple(&a->session, QSF_LOG_SET, row->name, value, 0);
}

/* In the order of the table: kv-type replaces what the session has for K or V alone. */
void ui_own_settings(const UiApp *a, const UiOwn *own, QSFSettings *s) {
    const QSFSettings *given = &a->given.settings;
    char value[QSF_SETTING_TEXT], err[200];
    *s = own->settings;
    s->commands = a->settings.commands;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(given, row)) continue;
        qsf_setting_get(given, row, value, sizeof value);
        (void)qsf_setting_set(s, row, value, err, sizeof err);
    }
}

static void take_settings(UiApp *a, const UiOwn *own) {
    ui_own_settings(a, own, &a->settings);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (qsf_setting_user_set(&a->given.settings, row)) save_setting(a, own, row);
    }
    ui_app_settle(a);
}

static bool same_stops(const UiStops *x, const UiStops *y) {
    bool same = x->n == y->n;
    for (size_t i = 0; same && i < x->n; i++) same = strcmp(x->text[i], y->text[i]) == 0;
    return same;
}

static void copy_stops(UiStops *to, const UiStops *from) {
    ui_stops_clear(to);
    for (size_t i = 0; i < from->n; i++) (void)ui_stops_add(to, from->text[i]);
}

static void take_stops(UiApp *a, UiOwn *own) {
    const bool given = a->given.stops.n > 0, save = given && !same_stops(&a->given.stops, &own->stops);
    copy_stops(&a->stops, given ? &a->given.stops : &own->stops);
    if (save) ui_app_save_stops(a, true);
}

void ui_own_take(UiApp *a, UiOwn *own, bool system) {
    take_settings(a, own);
    take_stops(a, own);
    if (!system && a->given.system.len > 0) ui_app_set_system(a, ui_buf_str(&a->given.system));
}
