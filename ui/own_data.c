/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/own_data.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_data.h"

bool ui_own_locale(void) {
    char dir[4096];
    const char *was = getenv("LOCPATH");
    char *old = was ? strdup(was) : NULL;
    if ((was && !old) || !qsf_data_path("locale", dir, sizeof dir) || setenv("LOCPATH", dir, 1) != 0) {
        free(old);
        return false;
    }
    const bool ok = setlocale(LC_CTYPE, "C.UTF-8") != NULL;
    /* Commands that are started later find the locales of the system. */
    if (old)
        (void)setenv("LOCPATH", old, 1);
    else
        (void)unsetenv("LOCPATH");
    free(old);
    return ok;
}

bool ui_own_terminals(void) {
    char dir[4096], list[8300];
    const char *dirs = getenv("TERMINFO_DIRS");
    if (!qsf_data_path("terminfo", dir, sizeof dir)) return false;
    if (dirs && strstr(dirs, dir)) return true;
    /* An empty name is the directory that ncurses was made with. */
    const int n = snprintf(list, sizeof list, "%s:%s", dirs ? dirs : "", dir);
    return n > 0 && (size_t)n < sizeof list && setenv("TERMINFO_DIRS", list, 1) == 0;
}
