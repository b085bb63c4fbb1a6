/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are installed with the programs. */
#ifndef QSF_DATA_H
#define QSF_DATA_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of installed file or directory `sub` ("locale") to dst: where QSF_DATADIR says, beside the
 * program, in ../share/qsf, or where it was configured to be. Returns false, and writes "", if it is in none
 * of these or its path has cap bytes or more. Any thread, as long as no other changes the environment. */
bool qsf_data_path(const char *sub, char *dst, size_t cap);

#endif
