/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Themes of the configuration file: sections [theme NAME]. One thread. */
#ifndef QSF_UI_THEME_CONFIG_H
#define QSF_UI_THEME_CONFIG_H

#include "qsf_config.h"
#include "ui/theme.h"

/* As QSFCli.check_theme: key is a role of ui_theme_set, or "base", a built-in theme that has the roles which
 * are not named (auto unless it is given). */
bool ui_theme_check(const char *theme, const char *key, const char *value, char *err, size_t cap);
/* Is it built in, or in the file (NULL = none)? */
bool ui_theme_known(const QSFConfigFile *c, const char *name);
/* The theme of that name; what auto is if it is not known. */
void ui_theme_make(UiTheme *t, const QSFConfigFile *c, const char *name, UiBackground background);

#endif
