/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arrays that grow: implements heap.h. */
#include "src/base/heap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/platform.h"

#define LARGE (128u << 10) /* bytes */
/* Arrays of this size and more are in huge pages: the kernel takes half a second to free gigabytes of
 * small ones. */
#define HUGE_PAGES (16u << 20)

/* Huge pages only fill a mapping, which is charged as a whole. */
static void use_huge_pages(void *p, size_t bytes) {
    if (bytes >= HUGE_PAGES) qsf_os_huge_pages(p, bytes);
}

static void *take(size_t bytes) {
    if (bytes < LARGE) return malloc(bytes);
    void *p = bytes > SIZE_MAX / 2 ? MAP_FAILED : qsf_os_map(bytes);
    if (p == MAP_FAILED) return NULL;
    use_huge_pages(p, bytes);
    return p;
}

static void give_back(void *p, size_t bytes) {
    if (bytes < LARGE)
        free(p);
    else
        qsf_os_unmap(p, bytes);
}

/* NULL without memory: then p is unchanged. bytes > 0. */
static void *resize(void *p, size_t old, size_t bytes) {
    if (old == 0) return take(bytes);
    if (old < LARGE && bytes < LARGE) return realloc(p, bytes);
    if (old >= LARGE && bytes >= LARGE && bytes <= SIZE_MAX / 2) {
        void *q = qsf_os_remap(p, old, bytes);
        if (q == MAP_FAILED) return NULL;
        if (bytes > old) use_huge_pages(q, bytes);
        return q;
    }
    void *q = take(bytes);
    if (q == NULL) return NULL;
    memcpy(q, p, old < bytes ? old : bytes);
    give_back(p, old);
    return q;
}

int qsf_heap_resize(QsfLedger *l, QsfMemCat cat, size_t old, size_t bytes, const char *what, void **p,
                    QsfErr *err) {
    if (bytes == old) return QSF_OK;
    if (l != NULL && bytes > old) {
        int rc = qsf_ledger_reserve(l, cat, bytes - old, what, err);
        if (rc != QSF_OK) return rc;
    }
    void *q = NULL;
    if (bytes == 0)
        give_back(*p, old);
    else if ((q = resize(*p, old, bytes)) == NULL) {
        if (l != NULL && bytes > old) qsf_ledger_release(l, cat, bytes - old);
        return qsf_err_memory(err, "%s needs %zu bytes", what, bytes);
    }
    if (l != NULL && bytes < old) qsf_ledger_release(l, cat, old - bytes);
    *p = q;
    return QSF_OK;
}
