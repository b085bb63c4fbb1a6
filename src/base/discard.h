/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Returns pages of a mapping to the kernel without unmapping them. */
#ifndef QSF_BASE_DISCARD_H
#define QSF_BASE_DISCARD_H

#include <stdint.h>

/* Discards the contents of [p, p + bytes), which is part of a mapping from qsf_mem_map: full pages in the
 * range are returned to the kernel and read as zeros afterwards; partial pages are unchanged. The ledger is
 * unchanged. */
void qsf_mem_discard(void *p, uint64_t bytes);

#endif
