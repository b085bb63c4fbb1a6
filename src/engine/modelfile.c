/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a MODEL argument means. */
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/base/paths.h"

#define GUIDE_FILE "models/guide.qsf"

char *qsf_model_file(const char *name) {
    if (name == NULL) return NULL;
    if (strcmp(name, QSF_GUIDE) != 0) return strdup(name);
    char path[QSF_PATH_MAX];
    return strdup(qsf_path_data(GUIDE_FILE, path) ? path : QSF_DATADIR "/" GUIDE_FILE);
}
