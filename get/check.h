/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Refuses a model by the beginning of its file: that it cannot be run is seen after megabytes, not after all
 * of it. One thread. */
#ifndef QSF_GET_CHECK_H
#define QSF_GET_CHECK_H

#include <stdint.h>

#include "src/base/err.h"

/* The first `done` of total bytes are in fd. QSF_E_MODEL, with the reason and the name, if what is there
 * shows that qsf cannot run it, whatever follows; QSF_OK if it can, or if that cannot be said yet. */
int get_check(int fd, const char *name, uint64_t done, uint64_t total, QsfErr *err);

#endif
