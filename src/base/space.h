/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reserved address space whose parts get memory as needed: they grow and shrink, charged to the ledger, and
 * do not move; where the system cannot reserve addresses (src/base/web/space.c) they may, when they grow.
 * Adjacent parts can share huge pages, which are requested; the kernel uses one only if all of it is charged,
 * so the resident set stays below the ledger's total. */
#ifndef QSF_BASE_SPACE_H
#define QSF_BASE_SPACE_H

#include "src/base/ledger.h"

typedef struct QsfSpace {
    uint8_t *base; /* a multiple of 2 MiB; NULL where the system cannot reserve addresses */
    void *map;     /* the mapping that contains base */
    uint64_t map_bytes;
} QsfSpace;

/* Reserves address space without memory. QSF_E_RUNTIME. With 0 bytes, base is NULL. */
int qsf_space_open(QsfSpace *s, uint64_t bytes, const char *what, QsfErr *err);
/* Releases the address space; all parts must have been resized to 0. s may be zero-initialized. */
void qsf_space_close(QsfSpace *s);

/* Resizes the part at *p from `old` to `bytes`. *p is a multiple of the page size, and parts share no page;
 * it changes if the part moves, with its contents. New memory is zeroed, except in a page that was used in
 * part; released pages return to the kernel immediately. On QSF_E_BUDGET or QSF_E_RUNTIME nothing has
 * changed. Shrinking cannot fail. */
int qsf_space_resize(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t **p, uint64_t old, uint64_t bytes,
                     QsfErr *err);

/* A mapping of which only a part is charged: the owner touches no more pages than that, wherever they are,
 * and asks for more before it touches more. */
typedef struct QsfPartial {
    uint8_t *mem;   /* NULL: nothing is mapped */
    uint64_t bytes; /* mapped */
    uint64_t charged;
} QsfPartial;

/* Maps, resizes (which may move it; contents stay up to the smaller size, the rest is zero) or
 * unmaps (bytes 0), and charges `charged` <= bytes of it. Without a change of bytes it also works
 * while the ledger is frozen. QSF_E_BUDGET, QSF_E_RUNTIME: nothing has changed. Less never fails.
 * Sizes are multiples of the page size. */
int qsf_partial_set(QsfPartial *p, QsfLedger *l, QsfMemCat cat, const char *what, uint64_t bytes,
                    uint64_t charged, QsfErr *err);

#endif
