/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses cannot be reserved: each part of a space is a separate allocation, which moves when it grows. */
#include "src/base/space.h"

#include <sys/mman.h>

#include "src/base/ledger_impl.h"
#include "src/base/platform.h"

int qsf_space_open(QsfSpace *s, uint64_t bytes, const char *what, QsfErr *err) {
    (void)bytes;
    (void)what;
    (void)err;
    *s = (QsfSpace){ 0 };
    return QSF_OK;
}

void qsf_space_close(QsfSpace *s) { *s = (QsfSpace){ 0 }; }

static void *allocate(uint8_t *p, uint64_t old, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2) return MAP_FAILED;
    return old == 0 ? qsf_os_map((size_t)bytes) : qsf_os_remap(p, (size_t)old, (size_t)bytes);
}

static int grow(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t **p, uint64_t old, uint64_t bytes,
                QsfErr *err) {
    int rc = qsf_ledger_reserve(l, cat, bytes - old, what, err);
    if (rc != QSF_OK) return rc;
    void *to = allocate(*p, old, bytes);
    if (to == MAP_FAILED) {
        qsf_ledger_release(l, cat, bytes - old);
        return qsf_mem_none(what, bytes - old, err);
    }
    if (old == 0)
        qsf_region_add(l, cat, what, to, bytes);
    else
        qsf_region_change(l, cat, what, *p, old, to, bytes);
    *p = to;
    return QSF_OK;
}

int qsf_space_resize(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t **p, uint64_t old, uint64_t bytes,
                     QsfErr *err) {
    if (bytes > old) return grow(l, cat, what, p, old, bytes, err);
    if (bytes == old) return QSF_OK;
    qsf_region_change(l, cat, what, *p, old, *p, bytes);
    if (bytes == 0) {
        qsf_os_unmap(*p, (size_t)old);
        *p = NULL;
    } else {
        *p = qsf_os_remap(*p, (size_t)old, (size_t)bytes);
    }
    qsf_ledger_release(l, cat, old - bytes);
    return QSF_OK;
}
