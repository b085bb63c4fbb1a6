/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reserved addresses are an inaccessible mapping; memory is added and removed by changing its protection.
 * Adjacent parts are then one mapping for the kernel, and huge pages can span them. */
#include "src/base/space.h"

#include <sys/mman.h>

#include "src/base/ledger_impl.h"
#include "src/base/platform.h"

#define HUGE ((uint64_t)2 << 20)

int qsf_space_open(QsfSpace *s, uint64_t bytes, const char *what, QsfErr *err) {
    *s = (QsfSpace){ .map_bytes = bytes == 0 ? 0 : bytes + HUGE };
    if (bytes == 0) return QSF_OK;
    void *p = bytes > SIZE_MAX / 2 || qsf_mem_fails_now()
                  ? MAP_FAILED
                  : mmap(NULL, (size_t)s->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return qsf_mem_none(what, bytes, err);
    s->map = p;
    s->base = (uint8_t *)p + (HUGE - (uintptr_t)p % HUGE) % HUGE;
    qsf_os_huge_pages(s->base, (size_t)bytes);
    return QSF_OK;
}

void qsf_space_close(QsfSpace *s) {
    if (s->map != NULL) munmap(s->map, (size_t)s->map_bytes);
    *s = (QsfSpace){ 0 };
}

static void shrink(uint8_t *from, uint64_t bytes) {
    qsf_os_split_page(from);
    qsf_os_split_page(from + bytes);
    void *p = mmap(from, (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED)
        qsf_os_discard(from, (size_t)bytes);
    else
        qsf_os_huge_pages(from, (size_t)bytes);
}

static void note_region(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t *p, uint64_t old,
                        uint64_t bytes) {
    if (old == 0)
        qsf_region_add(l, cat, what, p, bytes);
    else
        qsf_region_change(l, cat, what, p, old, p, bytes);
}

int qsf_space_resize(QsfLedger *l, QsfMemCat cat, const char *what, uint8_t **part, uint64_t old,
                     uint64_t bytes, QsfErr *err) {
    uint8_t *const p = *part;
    if (bytes == old) return QSF_OK;
    if (bytes < old) {
        const uint64_t from = qsf_pages(bytes), to = qsf_pages(old);
        if (from < to) shrink(p + from, to - from);
        qsf_ledger_release(l, cat, old - bytes);
    } else {
        const uint64_t from = qsf_pages(old), to = qsf_pages(bytes);
        if (qsf_mem_fails_now()) return qsf_mem_none(what, bytes - old, err);
        int rc = qsf_ledger_reserve(l, cat, bytes - old, what, err);
        if (rc != QSF_OK) return rc;
        if (from < to && mprotect(p + from, (size_t)(to - from), PROT_READ | PROT_WRITE) != 0) {
            qsf_ledger_release(l, cat, bytes - old);
            return qsf_mem_none(what, bytes - old, err);
        }
    }
    note_region(l, cat, what, p, old, bytes);
    return QSF_OK;
}
