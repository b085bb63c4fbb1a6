/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: what the configuration file says. Its settings are defaults for the model that
 * is loaded, which are not saved in sessions: what a session, a command or the command line sets replaces
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/opts.h"

QSFSettingSet ui_setting_bit(const QSFSetting *row) {
    for (size_t i = 0; i < qsf_setting_count(); i++)
        if (qsf_setting_at(i) == row) return (QSFSettingSet)1 << i;
    return 0;
}

void ui_config_base(const UiApp *a, const char *model, QSFSettings *s) {
    ui_settings_default(s);
    qsf_config_settings(a->config, model, NULL, s);
}

bool ui_config_sets(const UiApp *a, const QSFSetting *row) {
    return (a->by_config & ui_setting_bit(row)) != 0;
}

void ui_config_chosen(UiApp *a, const QSFSetting *row) { a->by_config &= ~ui_setting_bit(row); }

void ui_config_unchosen(UiApp *a, const QSFSetting *row) {
    QSFSettings s;
    ui_config_base(a, a->model_path, &s);
    a->by_config |= s.user_set & ui_setting_bit(row);
}

/* Two values may exclude each other: the one of the file gives way. */
static void settle(UiApp *a, QSFSettings *s) {
    char err[400];
    const char *off;
    const QSFSetting *policy = qsf_setting_find("eviction-policy");
    while (qsf_settings_check(s, err, sizeof err) != 0) {
        const QSFSetting *row = qsf_settings_reducing(s, &off);
        if (!ui_config_sets(a, row) && !ui_config_sets(a, policy)) return;
        (void)qsf_setting_set(s, ui_config_sets(a, row) ? row : policy, ui_config_sets(a, row) ? off : "none",
                              err, sizeof err);
    }
}

void ui_config_apply(UiApp *a, const char *model, QSFSettingSet chosen) {
    QSFSettings s;
    char value[QSF_SETTING_TEXT], err[300];
    ui_config_base(a, model, &s);
    a->by_config = s.user_set & ~chosen;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!(chosen & ui_setting_bit(row))) continue;
        qsf_setting_get(&a->settings, row, value, sizeof value);
        (void)qsf_setting_set(&s, row, value, err, sizeof err);
    }
    settle(a, &s);
    s.commands = a->settings.commands;
    s.text_bytes = a->settings.text_bytes;
    s.ctx_tokens = a->settings.ctx_tokens;
    a->settings = s;
}

void ui_config_for_model(UiApp *a, const char *model) {
    if (!a->config) return;
    const QSFSettings before = a->settings;
    ui_config_apply(a, model, a->settings.user_set & ~a->by_config);
    if (qsf_settings_differ(&before, &a->settings) & QSF_SETTING_LIVE)
        a->engine.set_params(a->engine.self, &a->settings);
}

/* Before the session has a file: only the command line is not replaced. */
static void begin_role(UiApp *a, const char *role) {
    QSFSettings s;
    char value[QSF_SETTING_TEXT], err[300];
    ui_settings_default(&s);
    qsf_config_role_settings(a->config, role, &s);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&s, row) || qsf_setting_user_set(&a->given.settings, row)) continue;
        qsf_setting_get(&s, row, value, sizeof value);
        (void)qsf_setting_set(&a->settings, row, value, err, sizeof err);
        ui_config_chosen(a, row);
    }
    (void)snprintf(a->role, sizeof a->role, "%s", role);
    a->engine.set_params(a->engine.self, &a->settings);
}

bool ui_config_begin_session(UiApp *a, const char *model) {
    UiOptions texts;
    char err[600] = "";
    const char *role = a->role[0] ? NULL : qsf_config_default_role(a->config);
    if (a->kept || !a->config) return true;
    if (role) begin_role(a, role);
    const bool ok = ui_options_texts(&texts, a->config, model, role, false, err, sizeof err);
    if (ok && texts.has_system && a->given.system.len == 0) {
        ui_buf_clear(&a->system);
        ui_buf_puts(&a->system, ui_buf_str(&texts.system));
    }
    if (ok && a->given.stops.n == 0)
        for (size_t i = 0; i < texts.stops.n; i++) (void)ui_stops_add(&a->stops, texts.stops.text[i]);
    ui_options_free(&texts);
    if (!ok) ui_app_say(a, UI_ERROR, "%s", err);
    return ok;
}
