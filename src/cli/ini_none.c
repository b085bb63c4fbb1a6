/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces ini.c in builds without inih: a file that is there cannot be read. */
#include "src/cli/ini.h"

#ifdef QSF_WITHOUT_INIH

#include <unistd.h>

int qsf_ini_read(const char *path, bool (*fn)(void *arg, const QsfIniItem *item, unsigned *line, QsfErr *why),
                 void *arg, bool *missing, QsfErr *err) {
    (void)fn, (void)arg;
    if (missing) *missing = access(path, F_OK) != 0;
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "%s: cannot read: this program was built without inih (--no-config)", path);
}

#endif
