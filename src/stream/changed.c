/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All files of a source, one after the other. */
#include "src/stream/changed.h"

int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err) {
    for (uint32_t i = 0; i < qsf_source_n_files(src); i++) {
        int rc = qsf_file_unchanged(qsf_source_file(src, i), err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}
