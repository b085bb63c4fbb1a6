/* SPDX-License-Identifier: GPL-3.0-or-later */
/* XDG base directories (freedesktop.org basedir-spec 0.8) and the installed data files. */
#include "src/base/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_data.h"
#include "qsf_system.h"

bool qsf_path_join(char out[QSF_PATH_MAX], const char *a, const char *b, const char *c) {
    int n = snprintf(out, QSF_PATH_MAX, "%s%s%s", a, b, c);
    if (n >= 0 && n < QSF_PATH_MAX) return true;
    out[0] = '\0';
    return false;
}

/* Returns $variable/qsf, else $HOME/fallback/qsf. The specification says to ignore relative values. */
static bool xdg(const char *variable, const char *fallback, char out[QSF_PATH_MAX]) {
    const char *dir = getenv(variable), *home = getenv("HOME");
    out[0] = '\0';
    if (dir != NULL && dir[0] == '/') return qsf_path_join(out, dir, "/qsf", "");
    return home != NULL && home[0] == '/' && qsf_path_join(out, home, fallback, "/qsf");
}

bool qsf_path_data_home(char out[QSF_PATH_MAX]) { return xdg("XDG_DATA_HOME", "/.local/share", out); }
bool qsf_path_state_home(char out[QSF_PATH_MAX]) { return xdg("XDG_STATE_HOME", "/.local/state", out); }
bool qsf_path_config_home(char out[QSF_PATH_MAX]) { return xdg("XDG_CONFIG_HOME", "/.config", out); }

const char *qsf_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool qsf_path_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Finds the directory of the running program; false if the system does not report it. */
static bool exe_dir(char out[QSF_PATH_MAX]) {
    if (!qsf_program_path(out, QSF_PATH_MAX)) return false;
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return true;
}

/* Sets out to base + middle + sub if that exists. */
static bool existing(char out[QSF_PATH_MAX], const char *base, const char *middle, const char *sub) {
    struct stat st;
    if (qsf_path_join(out, base, middle, sub) && stat(out, &st) == 0) return true;
    out[0] = '\0';
    return false;
}

bool qsf_path_data(const char *sub, char out[QSF_PATH_MAX]) {
    const char *env = getenv("QSF_DATADIR");
    char dir[QSF_PATH_MAX];
    if (env != NULL && *env != '\0' && existing(out, env, "/", sub)) return true;
    if (exe_dir(dir) && (existing(out, dir, "/", sub) || existing(out, dir, "/../share/qsf/", sub)))
        return true;
#ifdef QSF_DATADIR
    return existing(out, QSF_DATADIR, "/", sub);
#else
    out[0] = '\0';
    return false;
#endif
}

static int cannot_make(const char *path, int reason, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot create directory: %s", path, strerror(reason));
}

int qsf_path_make_dirs(const char *path, QsfErr *err) {
    struct stat st;
    char part[QSF_PATH_MAX];
    if (!qsf_path_join(part, path, "", "")) return cannot_make(path, ENAMETOOLONG, err);
    int failed = 0;
    for (char *p = part + (*part == '/'); failed == 0 && *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0'; /* mkdir of an existing parent may fail in other ways: only a missing one counts */
        int why = mkdir(part, 0700) != 0 ? errno : 0;
        if (why != 0 && stat(part, &st) != 0) failed = why;
        *p = '/';
    }
    if (failed == 0 && mkdir(part, 0700) != 0 && errno != EEXIST) failed = errno;
    if (failed == 0 && stat(path, &st) != 0) failed = errno;
    if (failed == 0 && !S_ISDIR(st.st_mode)) failed = ENOTDIR;
    return failed == 0 ? QSF_OK : cannot_make(path, failed, err);
}

/* ---- qsf_data.h ---- */

bool qsf_data_path(const char *sub, char *dst, size_t cap) {
    char path[QSF_PATH_MAX];
    const bool found = qsf_path_data(sub, path) && strlen(path) < cap;
    if (cap > 0) dst[0] = '\0';
    if (found) memcpy(dst, path, strlen(path) + 1);
    return found;
}
