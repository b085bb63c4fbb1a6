/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Themes of the configuration file. */
#include "ui/theme_config.h"

#include <stdio.h>
#include <string.h>

static bool check_base(const char *value, char *err, size_t cap) {
    if (ui_theme_is_built_in(value)) return true;
    (void)snprintf(err, cap, "base: expected auto, dark, light, ansi or mono, not '%.40s'", value);
    return false;
}

bool ui_theme_check(const char *theme, const char *key, const char *value, char *err, size_t cap) {
    const char *roles[UI_STYLE_COUNT + 2];
    size_t n = 0;
    if (!key) {
        if (!ui_theme_is_built_in(theme)) return true;
        (void)snprintf(err, cap, "a theme cannot be called %s: that is a built-in one", theme);
        return false;
    }
    if (strcmp(key, "base") == 0) return check_base(value, err, cap);
    for (; ui_theme_role(n); n++) roles[n] = ui_theme_role(n);
    roles[n++] = "base";
    const char *near = qsf_nearest(key, roles, n);
    bool known = false;
    for (size_t i = 0; i < n; i++) known = known || strcmp(roles[i], key) == 0;
    if (known) return ui_theme_set(NULL, key, value, err, cap);
    if (near)
        (void)snprintf(err, cap, "unknown role '%.40s': did you mean %s?", key, near);
    else
        (void)snprintf(err, cap,
                       "unknown role '%.40s': expected base or a role such as user, answer, code or link",
                       key);
    return false;
}

static bool is_in(const QSFConfigFile *c, const char *name) {
    const char *at;
    for (size_t i = 0; (at = qsf_config_theme_at(c, i)) != NULL; i++)
        if (strcmp(at, name) == 0) return true;
    return false;
}

bool ui_theme_known(const QSFConfigFile *c, const char *name) {
    return ui_theme_is_built_in(name) || is_in(c, name);
}

void ui_theme_make(UiTheme *t, const QSFConfigFile *c, const char *name, UiBackground background) {
    const bool own = !ui_theme_is_built_in(name);
    const char *base = own ? "auto" : name;
    char err[300];
    const QSFConfigEntry *e = NULL;
    while (own && (e = qsf_config_theme(c, name, e)) != NULL)
        if (strcmp(e->key, "base") == 0) base = e->value;
    (void)ui_theme_begin(t, base, background);
    while (own && (e = qsf_config_theme(c, name, e)) != NULL)
        if (strcmp(e->key, "base") != 0) (void)ui_theme_set(t, e->key, e->value, err, sizeof err);
}
