/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that grow: small ones on the libc heap, large ones as mappings, which grow without a copy and are
 * really returned when they are freed. */
#ifndef QSF_BASE_HEAP_H
#define QSF_BASE_HEAP_H

#include "src/base/ledger.h"

/* Resizes *p from old to bytes and keeps its contents. *p NULL with old 0 allocates; bytes 0 frees and sets
 * *p to NULL. More memory is charged to cat of l (NULL: to nothing) before it is allocated. old must be the
 * bytes of the last call. QSF_E_BUDGET as qsf_ledger_reserve, QSF_E_RUNTIME without memory: then *p is
 * unchanged. Any thread. */
int qsf_heap_resize(QsfLedger *l, QsfMemCat cat, size_t old, size_t bytes, const char *what, void **p,
                    QsfErr *err);

#endif
