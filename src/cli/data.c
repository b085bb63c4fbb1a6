/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "qsf_data.h"

#include <string.h>

#include "src/base/paths.h"

bool qsf_data_path(const char *sub, char *dst, size_t cap) {
    char path[QSF_PATH_MAX];
    const bool found = qsf_path_data(sub, path) && strlen(path) < cap;
    if (cap > 0) dst[0] = '\0';
    if (found) memcpy(dst, path, strlen(path) + 1);
    return found;
}
