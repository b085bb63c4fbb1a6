/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The names of qsf_engine.h that need no worker: a MODEL argument, templates, reasons to stop,
 * the version. */
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/base/clock.h"
#include "src/base/paths.h"
#include "src/chat/chat.h"

#define GUIDE_FILE "models/guide.qsf"

char *qsf_model_file(const char *name) {
    if (name == NULL) return NULL;
    if (strcmp(name, QSF_GUIDE) != 0) return strdup(name);
    char path[QSF_PATH_MAX];
    return strdup(qsf_path_data(GUIDE_FILE, path) ? path : QSF_DATADIR "/" GUIDE_FILE);
}

const char *qsf_stop_name(QSFStop s) {
    static const char *const names[] = {
        [QSF_STOP_EOS] = "eos",
        [QSF_STOP_STRING] = "stop",
        [QSF_STOP_LENGTH] = "length",
        [QSF_STOP_CONTEXT] = "context",
        [QSF_STOP_INTERRUPTED] = "interrupted",
    };
    return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "unknown";
}

uint64_t qsf_memory_available(void) { return qsf_available_bytes(); }

char *qsf_template_names(void) { return qsf_chat_template_list(); }

const char *qsf_version(void) { return QSF_VERSION; }
