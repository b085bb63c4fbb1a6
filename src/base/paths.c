/* SPDX-License-Identifier: GPL-3.0-or-later */
/* XDG base directories (freedesktop.org basedir-spec 0.8) and the installed data files. */
#include "src/base/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/strbuf.h"

/* a + b + c as malloc'ed memory, NULL without any. */
static char *join(const char *a, const char *b, const char *c) {
    QsfStrbuf s = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&s, a);
    qsf_strbuf_adds(&s, b);
    qsf_strbuf_adds(&s, c);
    return qsf_strbuf_take(&s, NULL);
}

/* $variable/qsf, else $HOME/fallback/qsf. Relative values are ignored, as the specification says. */
static char *xdg(const char *variable, const char *fallback) {
    const char *dir = getenv(variable), *home = getenv("HOME");
    if (dir != NULL && dir[0] == '/') return join(dir, "/qsf", "");
    if (home == NULL || home[0] != '/') return NULL;
    return join(home, fallback, "/qsf");
}

char *qsf_path_data_home(void) { return xdg("XDG_DATA_HOME", "/.local/share"); }
char *qsf_path_state_home(void) { return xdg("XDG_STATE_HOME", "/.local/state"); }
char *qsf_path_config_home(void) { return xdg("XDG_CONFIG_HOME", "/.config"); }

/* Directory of the running program; false where the system does not say. */
static bool exe_dir(char out[PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0) return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return true;
}

/* base + middle + sub when that exists, else NULL. */
static char *existing(const char *base, const char *middle, const char *sub) {
    struct stat st;
    char *path = join(base, middle, sub);
    if (path != NULL && stat(path, &st) == 0) return path;
    free(path);
    return NULL;
}

char *qsf_path_data(const char *sub) {
    const char *env = getenv("QSF_DATADIR");
    char dir[PATH_MAX];
    char *path = env != NULL && *env != '\0' ? existing(env, "/", sub) : NULL;
    if (path == NULL && exe_dir(dir)) {
        path = existing(dir, "/", sub);
        if (path == NULL) path = existing(dir, "/../share/qsf/", sub);
    }
#ifdef QSF_DATADIR
    if (path == NULL) path = existing(QSF_DATADIR, "/", sub);
#endif
    return path;
}

static int cannot_make(const char *path, int reason, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot create directory: %s", path, strerror(reason));
}

int qsf_path_make_dirs(const char *path, QsfErr *err) {
    struct stat st;
    char *part = strdup(path);
    if (part == NULL) return qsf_err_memory(err, "%s", path);
    int failed = 0;
    for (char *p = part + (*part == '/'); failed == 0 && *p != '\0'; p++) {
        if (*p != '/') continue;
        *p = '\0'; /* a parent may exist and forbid us to make it: only its absence counts */
        if (mkdir(part, 0700) != 0 && stat(part, &st) != 0) failed = errno;
        *p = '/';
    }
    if (failed == 0 && mkdir(part, 0700) != 0 && errno != EEXIST) failed = errno;
    free(part);
    if (failed == 0 && stat(path, &st) != 0) failed = errno;
    if (failed == 0 && !S_ISDIR(st.st_mode)) failed = ENOTDIR;
    return failed == 0 ? QSF_OK : cannot_make(path, failed, err);
}
