/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mappings of which a part is charged: QsfPartial of space.h. */
#include <sys/mman.h>

#include "src/base/ledger_impl.h"
#include "src/base/platform.h"
#include "src/base/space.h"

/* A huge page would touch more than was asked for. */
static void keep_small(const QsfPartial *p) {
    if (p->mem != NULL && p->charged < p->bytes) qsf_os_small_pages(p->mem, (size_t)p->bytes);
}

/* Changes the mapping; MAP_FAILED when there is no memory for it. */
static void *remap(const QsfPartial *p, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2 || (bytes > 0 && qsf_mem_fails_now())) return MAP_FAILED;
    if (bytes == 0) {
        qsf_os_unmap(p->mem, (size_t)p->bytes);
        return NULL;
    }
    if (p->mem == NULL) return qsf_os_map((size_t)bytes);
    return qsf_os_remap(p->mem, (size_t)p->bytes, (size_t)bytes);
}

static void note_partial(const QsfPartial *old, const QsfPartial *now, QsfLedger *l, QsfMemCat cat,
                         const char *what) {
    if (old->mem == NULL)
        qsf_region_add(l, cat, what, now->mem, now->charged);
    else
        qsf_region_change(l, cat, what, old->mem, old->charged, now->mem, now->charged);
}

int qsf_partial_set(QsfPartial *p, QsfLedger *l, QsfMemCat cat, const char *what, uint64_t bytes,
                    uint64_t charged, QsfErr *err) {
    QsfPartial now = { .mem = p->mem, .bytes = bytes, .charged = charged };
    const bool more = charged > p->charged;
    int rc = more ? qsf_ledger_recharge(l, cat, p->charged, charged, what, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    void *mem = bytes != p->bytes ? remap(p, bytes) : p->mem;
    if (mem == MAP_FAILED) {
        if (more) qsf_ledger_release(l, cat, charged - p->charged);
        return qsf_mem_none(what, bytes, err);
    }
    now.mem = mem;
    if (!more) qsf_ledger_release(l, cat, p->charged - charged);
    if (charged != p->charged || mem != p->mem) note_partial(p, &now, l, cat, what);
    *p = now;
    keep_small(p);
    return QSF_OK;
}
