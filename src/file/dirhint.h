/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a directory without the expected files contains instead, for messages. */
#ifndef QSF_FILE_DIRHINT_H
#define QSF_FILE_DIRHINT_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_DIR_HINT 400

/* Writes what to open instead into buf (QSF_DIR_HINT bytes), as "; it contains model.gguf: open that file", or "" if
 * there is nothing to say. The directory is the first len characters of dir, with a slash at the end; len 0 is the
 * current directory. */
void qsf_dir_hint(const char *dir, size_t len, char *buf);
/* Sets the error for a directory without a vocabulary. weights: they are needed too, and if they are missing, the message
 * names them first. Returns QSF_E_MODEL. */
int qsf_dir_missing(const char *dir, bool weights, QsfErr *err);

#endif
