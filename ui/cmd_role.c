/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /role: a system prompt and settings of the configuration file become those of the session, and the other
 * way round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/opts.h"

#define ABOUT 60 /* bytes of a system prompt in the list */

/* "* coder: You write C. Answer with ...": the system prompt says what the role is for. */
static void list_one(const UiApp *a, const char *name, UiBuf *b) {
    const QSFConfigEntry *e = qsf_config_text(a->config, NULL, name, "system,system-file", NULL);
    const char *about = e && e->layer == QSF_CONFIG_ROLE ? e->value : "";
    size_t n = strcspn(about, "\n");
    if (n > ABOUT) n = ABOUT;
    while (n > 0 && ((unsigned char)about[n] & 0xc0) == 0x80) n--;
    char *clean = qsf_clean_dup(name, strlen(name), true), *text = qsf_clean_dup(about, n, true);
    ui_buf_printf(b, "%s%s %s", b->len ? "\n" : "", strcmp(name, a->role) == 0 ? "*" : " ",
                  clean ? clean : "");
    if (text && *text) ui_buf_printf(b, ": %s%s", text, about[n] ? "..." : "");
    free(text);
    free(clean);
}

/* Roles come from it; reported if there is none. */
static bool has_file(UiApp *a, const char *name) {
    if (a->no_config) ui_app_say(a, UI_ERROR, "/%s: there is no configuration file (--no-config)", name);
    return !a->no_config;
}

static void list(UiApp *a) {
    const char *name;
    UiBuf b = { 0 };
    for (size_t i = 0; (name = qsf_config_role_at(a->config, i)) != NULL; i++) list_one(a, name, &b);
    if (b.len > 0)
        ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    else
        ui_app_say(a, UI_NOTICE, "there are no roles%s",
                   a->no_config
                       ? " without a configuration file (--no-config)"
                       : "; /role save NAME makes one of the system prompt and the settings that you "
                         "have changed");
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

/* ---- saving ---- */

/* Settings of the conversation, in contrast to those of the model and the machine. */
static bool belongs(const QSFSetting *row) {
    return (row->flags & QSF_SETTING_LIVE) && strcmp(row->name, "prefill-ahead") != 0;
}

/* A file is found from every folder. */
static void set_whole_path(QSFSettings *s, const QSFSetting *row) {
    char value[QSF_SETTING_TEXT], err[300];
    qsf_setting_get(s, row, value, sizeof value);
    char *whole = row->arg && strcmp(row->arg, "FILE") == 0 && *value != '/' ? realpath(value, NULL) : NULL;
    if (whole) (void)qsf_setting_set(s, row, whole, err, sizeof err);
    free(whole);
}

/* What the user has chosen, into *s; done: their names; left: those of others. */
static void collect(UiApp *a, QSFSettings *s, UiBuf *done, UiBuf *left) {
    *s = a->settings;
    s->user_set &= ~a->by_config;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char value[QSF_SETTING_TEXT];
        if (!qsf_setting_user_set(s, row)) continue;
        if (!belongs(row)) {
            s->user_set &= ~ui_setting_bit(row);
            ui_buf_printf(left, "%s%s", left->len ? ", " : "", row->name);
            continue;
        }
        set_whole_path(s, row);
        qsf_setting_get(s, row, value, sizeof value);
        ui_buf_printf(done, "%s%s %s", done->len ? ", " : "", row->name, value);
    }
}

/* Writes the change, and reads the file again. */
static bool edit_file(UiApp *a, const char *name, const QSFRoleEdit *edit) {
    QSFConfigFile *c = NULL;
    char err[600];
    const char *path = a->config ? qsf_config_path(a->config) : NULL;
    if (!has_file(a, name)) return false;
    if (ui_options_edit_role(&c, path, edit, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "/%s %s %s: %s", name, edit->remove ? "delete" : "save", edit->name, err);
        return false;
    }
    qsf_config_close(a->edited);
    a->config = a->edited = c;
    return true;
}

static bool save(UiApp *a, const char *name, const char *role, bool replace) {
    QSFSettings s;
    UiBuf done = { 0 }, left = { 0 };
    if (a->system.len > 0) ui_buf_puts(&done, "system prompt");
    collect(a, &s, &done, &left);
    if (a->stops.n > 0) ui_buf_printf(&done, "%sstop strings", done.len ? ", " : "");
    bool ok = done.len > 0;
    if (!ok)
        ui_app_say(a, UI_ERROR, "/%s save %s: there is no system prompt, and no setting was changed%s%s",
                   name, role, left.len ? " but those of the model and the machine: " : "",
                   ui_buf_str(&left));
    ok = ok && edit_file(a, name,
                         &(QSFRoleEdit){ .name = role,
                                         .replace = replace,
                                         .system = a->system.len > 0 ? ui_buf_str(&a->system) : NULL,
                                         .settings = &s,
                                         .stops = (const char *const *)a->stops.text,
                                         .n_stops = a->stops.n });
    if (ok)
        ui_app_say(a, UI_NOTICE, "role %s saved in %s: %s%s%s", role, qsf_config_path(a->config),
                   ui_buf_str(&done), left.len ? "; without those of the model and the machine: " : "",
                   ui_buf_str(&left));
    ui_buf_free(&done);
    ui_buf_free(&left);
    return ok;
}

static bool delete_role(UiApp *a, const char *name, const char *role) {
    if (!edit_file(a, name, &(QSFRoleEdit){ .name = role, .remove = true })) return false;
    ui_app_say(a, UI_NOTICE, "role %s deleted from %s", role, qsf_config_path(a->config));
    return true;
}

/* "WORD NAME" -> NAME, "" without one; NULL: it is another word. */
static const char *after(const char *args, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(args, word, n) != 0 || (args[n] != ' ' && args[n] != '\0')) return NULL;
    return args + n + strspn(args + n, " ");
}

/* save, save! and delete; false: it is the name of a role. */
static bool edits(UiApp *a, const char *name, const char *args, bool *ok) {
    const char *saved = after(args, "save"), *again = after(args, "save!"), *deleted = after(args, "delete");
    const char *role = saved ? saved : again ? again : deleted;
    if (!role || qsf_config_has_role(a->config, args)) return false;
    *ok = *role != '\0';
    if (!*ok)
        ui_app_say(a, UI_ERROR, "/%s %s needs the name of a role", name, args);
    else
        *ok = deleted ? delete_role(a, name, role) : save(a, name, role, again != NULL);
    return true;
}

static bool take(UiApp *a, const char *name, const char *args) {
    UiBuf done = { 0 };
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    if (!qsf_config_has_role(a->config, args)) {
        if (has_file(a, name))
            ui_app_say(a, UI_ERROR, "there is no role %s; /%s lists them, /%s save %s makes one", args, name,
                       name, args);
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

bool ui_cmd_role(UiApp *a, const char *name, const char *args) {
    bool ok = true;
    if (!*args)
        list(a);
    else if (!edits(a, name, args, &ok))
        ok = take(a, name, args);
    return ok;
}
