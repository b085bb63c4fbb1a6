/* SPDX-License-Identifier: GPL-3.0-or-later */
/* File names as typed by the user. */
#include "ui/path.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/buf.h"

char *ui_path_expand(const char *typed) {
    size_t len = strlen(typed);
    UiBuf b = { 0 };
    if (len >= 2 && (typed[0] == '"' || typed[0] == '\'') && typed[len - 1] == typed[0])
        return ui_strdup_len(typed + 1, len - 2);
    const char *home = getenv("HOME");
    if (typed[0] == '~' && (typed[1] == '/' || typed[1] == '\0') && home) {
        ui_buf_puts(&b, home);
        typed++;
    }
    for (; *typed; typed++) {
        if (typed[0] == '\\' && typed[1] == ' ') typed++;
        ui_buf_add(&b, typed, 1);
    }
    if (!b.data) ui_buf_puts(&b, "");
    return b.data;
}

static bool is_folder(const char *dir, const char *name) {
    UiBuf b = { 0 };
    struct stat st;
    ui_buf_printf(&b, "%s/%s", dir, name);
    bool yes = !b.failed && stat(ui_buf_str(&b), &st) == 0 && S_ISDIR(st.st_mode);
    ui_buf_free(&b);
    return yes;
}

void ui_path_match(const char *typed, void (*fn)(void *arg, const char *name, bool is_dir), void *arg,
                   size_t max) {
    const char *slash = strrchr(typed, '/');
    const char *part = slash ? slash + 1 : typed;
    char *folder = ui_strdup_len(typed, (size_t)(part - typed));
    char *expanded = folder && *folder ? ui_path_expand(folder) : ui_strdup_len(".", 1);
    DIR *d = expanded ? opendir(expanded) : NULL;
    struct dirent *e;
    while (d && max > 0 && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, part, strlen(part)) != 0 || (e->d_name[0] == '.' && part[0] != '.') ||
            strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        UiBuf b = { 0 };
        ui_buf_printf(&b, "%s%s", folder, e->d_name);
        fn(arg, ui_buf_str(&b), is_folder(expanded, e->d_name));
        ui_buf_free(&b);
        max--;
    }
    if (d) closedir(d);
    free(expanded);
    free(folder);
}
