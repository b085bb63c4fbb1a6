/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Whether the files that weights are read from are still what was opened. */
#ifndef QSF_STREAM_CHANGED_H
#define QSF_STREAM_CHANGED_H

#include "src/file/source.h"

/* QSF_E_RUNTIME when a file of the model has changed since it was opened. Any thread. */
int qsf_source_check_unchanged(const QsfSource *src, QsfErr *err);

#endif
