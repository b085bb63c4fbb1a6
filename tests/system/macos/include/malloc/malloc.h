/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_MALLOC_MALLOC_H
#define STUB_MALLOC_MALLOC_H
#include <stddef.h>
typedef struct stub_zone malloc_zone_t;
size_t malloc_zone_pressure_relief(malloc_zone_t *zone, size_t goal);
#endif
