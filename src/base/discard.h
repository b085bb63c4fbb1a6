/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Giving back pages of a mapping that stays. */
#ifndef QSF_BASE_DISCARD_H
#define QSF_BASE_DISCARD_H

#include <stdint.h>

/* What lies in [p, p + bytes) of memory from qsf_mem_map is worthless: its whole pages go back to the kernel
 * and read as zeros from now on; the rest of the range is left alone. What is charged stays charged. */
void qsf_mem_discard(void *p, uint64_t bytes);

#endif
