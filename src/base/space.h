/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Address space that gets memory piece by piece: its parts grow and shrink, charged to the ledger, and never move.
 * What lies side by side in it can share huge pages. Those are asked for, and the kernel uses them only where all of
 * one is charged; so the resident set stays below what the ledger says. */
#ifndef QSF_BASE_SPACE_H
#define QSF_BASE_SPACE_H

#include "src/base/ledger.h"

typedef struct QsfSpace {
    uint8_t *base;   /* a multiple of 2 MiB */
    void *map;       /* what was mapped to find such a place */
    uint64_t map_bytes;
} QsfSpace;

/* Reserves bytes of address space, without any memory. QSF_E_RUNTIME. 0 bytes give base NULL. */
int qsf_space_open(QsfSpace *s, uint64_t bytes, const char *what, QsfErr *err);
/* After all parts were resized to 0. Zero-initialised is allowed. */
void qsf_space_close(QsfSpace *s);

/* The part at p holds `old` bytes and is to hold `bytes`; all are multiples of the page. What is new is zero, what is
 * given up goes back to the kernel at once. QSF_E_BUDGET, QSF_E_RUNTIME: nothing changed. Shrinking cannot fail. */
int qsf_space_resize(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t *p, uint64_t old, uint64_t bytes,
                     QsfErr *err);

#endif
