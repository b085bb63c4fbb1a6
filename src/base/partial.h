/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A mapping of which only a part is charged: the owner touches no more pages than that, wherever they are,
 * and asks for more before it touches more. */
#ifndef QSF_BASE_PARTIAL_H
#define QSF_BASE_PARTIAL_H

#include "src/base/ledger.h"

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
