/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands for lists of tokens and texts: /bias and /ban; and /least. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"

#define LEAST "0.01" /* the floor of /least on */

/* The items of a list, one in a line. */
static void list(UiApp *a, const QSFSetting *row, const char *none) {
    char value[QSF_SETTING_TEXT];
    UiBuf b = { 0 };
    qsf_setting_get(&a->settings, row, value, sizeof value);
    if (strcmp(value, "off") == 0) {
        ui_app_say(a, UI_OUTPUT, "%s", none);
        return;
    }
    for (const char *p = value; *p != '\0'; p++) {
        if (*p == ',') {
            ui_buf_puts(&b, "\n");
            continue;
        }
        ui_buf_add(&b, p, 1);
        if (*p == '\\' && p[1] != '\0') ui_buf_add(&b, ++p, 1);
    }
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

/* Where the quoted text at s ends, after its quote; NULL if it does not. */
static const char *after_quotes(const char *s) {
    for (s++; *s != '\0' && *s != '"'; s++)
        if (*s == '\\' && s[1] != '\0') s++;
    return *s == '"' ? s + 1 : NULL;
}

/* The item that args mean: quotes are for blanks at the ends. false: reported. */
static bool read_item(UiApp *a, const char *name, const char *args, char *item, size_t cap) {
    const char *end = *args == '"' ? after_quotes(args) : NULL;
    const bool quoted = end != NULL && (*end == '\0' || *end == '=');
    const int n = quoted ? snprintf(item, cap, "%.*s%s", (int)(end - args - 2), args + 1, end)
                         : snprintf(item, cap, "%s", args);
    if (n >= 0 && (size_t)n < cap) return true;
    ui_app_say(a, UI_ERROR, "/%s: the text is too long", name);
    return false;
}

static bool take_out(UiApp *a, const QSFSetting *row, const char *name, const char *item) {
    char value[QSF_SETTING_TEXT];
    QSFSettings next = a->settings;
    if (!qsf_setting_remove(&next, row, item)) {
        ui_app_say(a, UI_ERROR, "/%s: '%s' is not in the list; /%s shows it", name, item, name);
        return false;
    }
    qsf_setting_get(&next, row, value, sizeof value);
    return ui_app_set(a, row, value, false);
}

static bool put_in(UiApp *a, const QSFSetting *row, const char *item) {
    char value[QSF_SETTING_TEXT], err[400];
    QSFSettings next = a->settings;
    if (qsf_setting_add(&next, row, item, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    qsf_setting_get(&next, row, value, sizeof value);
    return ui_app_set(a, row, value, false);
}

static bool change(UiApp *a, const char *setting, const char *name, const char *args, const char *none) {
    const QSFSetting *row = qsf_setting_find(setting);
    char item[QSF_SETTING_TEXT];
    if (!*args) {
        list(a, row, none);
        return true;
    }
    if (strcmp(args, "off") == 0) args = "";
    const bool removes = strncmp(args, "off ", 4) == 0;
    if (removes) args += 4 + strspn(args + 4, " ");
    if (*args && !read_item(a, name, args, item, sizeof item)) return false;
    ui_session_because(&a->session, name, false); /* each is a separate change for /undo */
    const bool ok = !*args    ? ui_app_set(a, row, "off", false)
                    : removes ? take_out(a, row, name, item)
                              : put_in(a, row, item);
    ui_session_because(&a->session, NULL, false);
    return ok;
}

bool ui_cmd_bias(UiApp *a, const char *name, const char *args) {
    return change(a, "logit-bias", name, args, "no token has a bias");
}

bool ui_cmd_ban(UiApp *a, const char *name, const char *args) {
    return change(a, "ban", name, args, "nothing is banned");
}

/* Without an argument it toggles. */
bool ui_cmd_least(UiApp *a, const char *name, const char *args) {
    const QSFSetting *row = qsf_setting_find("least");
    (void)name;
    if (strcmp(args, "off") == 0) args = "0";
    if (strcmp(args, "on") == 0) args = LEAST;
    if (!*args) args = a->settings.params.least > 0 ? "0" : LEAST;
    return ui_app_set(a, row, args, false);
}
