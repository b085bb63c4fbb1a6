/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/partial.h"

#include <sys/mman.h>

#include "src/base/ledger_impl.h"

/* A huge page would touch more than was asked for. */
static void keep_small(const QsfPartial *p) {
#ifdef MADV_NOHUGEPAGE
    if (p->mem != NULL && p->charged < p->bytes) madvise(p->mem, (size_t)p->bytes, MADV_NOHUGEPAGE);
#else
    (void)p;
#endif
}

/* Changes the mapping; MAP_FAILED when there is no memory for it. */
static void *remap(const QsfPartial *p, uint64_t bytes) {
    if (bytes > SIZE_MAX / 2 || (bytes > 0 && qsf_mem_fails_now())) return MAP_FAILED;
    if (bytes == 0) {
        munmap(p->mem, (size_t)p->bytes);
        return NULL;
    }
    if (p->mem == NULL)
        return mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return qsf_mem_remap(p->mem, p->bytes, bytes);
}

static void note_region(const QsfPartial *old, const QsfPartial *now, QsfLedger *l, QsfMemCat cat,
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
    if (charged != p->charged || mem != p->mem) note_region(p, &now, l, cat, what);
    *p = now;
    keep_small(p);
    return QSF_OK;
}
