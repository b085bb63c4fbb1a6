/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces ini.c in builds without inih: a file that is there cannot be read. */
#include "src/cli/ini.h"

#ifdef QSF_WITHOUT_INIH

#include <unistd.h>

static int without_inih(const char *path, const char *cannot, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot %s: this program was built without inih (--no-config)",
                       path, cannot);
}

int qsf_ini_read(const char *path, QsfIniHandler fn, void *arg, bool *missing, QsfErr *err) {
    (void)fn, (void)arg;
    if (missing) *missing = access(path, F_OK) != 0;
    return without_inih(path, "read", err);
}

int qsf_ini_read_text(const char *path, const char *text, size_t len, QsfIniHandler fn, void *arg,
                      QsfErr *err) {
    (void)text, (void)len, (void)fn, (void)arg;
    return without_inih(path, "change", err);
}

#endif
