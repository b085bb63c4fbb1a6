/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM ledger and the mapped memory that is charged to it. */
#include "src/base/ledger.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/ledger_impl.h"
#include "src/base/platform.h"
#include "src/base/strbuf.h"

#define MIB 1048576.0

static const char *const cat_names[QSF_MEM_N] = {
    [QSF_MEM_PINNED] = "pinned weights",
    [QSF_MEM_SLOTS] = "layer slots",
    [QSF_MEM_KV] = "KV cache",
    [QSF_MEM_ACTIVATIONS] = "activations",
    [QSF_MEM_LOGITS] = "logits",
    [QSF_MEM_EMBED] = "embedding",
    [QSF_MEM_TOKENIZER] = "tokenizer",
    [QSF_MEM_META] = "metadata",
    [QSF_MEM_TRANSCRIPT] = "transcript",
    [QSF_MEM_STACKS] = "thread stacks",
    [QSF_MEM_CODE] = "code and libraries",
    [QSF_MEM_KERNEL] = "kernel",
};

const char *qsf_mem_cat_name(QsfMemCat cat) { return (unsigned)cat < QSF_MEM_N ? cat_names[cat] : "unknown"; }

void qsf_ledger_init(QsfLedger *l, uint64_t limit) {
    memset(l, 0, sizeof *l);
    l->limit = limit == 0 ? UINT64_MAX : limit;
    pthread_mutex_init(&l->lock, NULL);
}

void qsf_ledger_destroy(QsfLedger *l) { pthread_mutex_destroy(&l->lock); }

void qsf_ledger_set_limit(QsfLedger *l, uint64_t limit) {
    pthread_mutex_lock(&l->lock);
    l->limit = limit == 0 ? UINT64_MAX : limit;
    pthread_mutex_unlock(&l->lock);
}

void qsf_ledger_freeze(QsfLedger *l) {
    pthread_mutex_lock(&l->lock);
    l->frozen++;
    pthread_mutex_unlock(&l->lock);
}

void qsf_ledger_thaw(QsfLedger *l) {
    pthread_mutex_lock(&l->lock);
    if (l->frozen > 0) l->frozen--;
    pthread_mutex_unlock(&l->lock);
}

static int refuse_frozen(QsfMemCat cat, uint64_t bytes, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "internal: memory is frozen, %s (%s) may not allocate %llu bytes now", what,
                       qsf_mem_cat_name(cat), (unsigned long long)bytes);
}

static int refuse_budget(const QsfLedger *seen, QsfMemCat cat, uint64_t bytes, const char *what,
                         QsfErr *err) {
    return qsf_err_set(
        err, QSF_E_BUDGET,
        "RAM budget exceeded: %s (%s) needs %.2f MB (%llu bytes), %.2f MB are in use of %.2f MB", what,
        qsf_mem_cat_name(cat), (double)bytes / MIB, (unsigned long long)bytes, (double)seen->total / MIB,
        (double)seen->limit / MIB);
}

/* With the lock held. */
static void charge(QsfLedger *l, QsfMemCat cat, uint64_t bytes) {
    l->total += bytes;
    l->used[cat] += bytes;
    if (l->used[cat] > l->peak[cat]) l->peak[cat] = l->used[cat];
    if (l->total > l->total_peak) l->total_peak = l->total;
}

int qsf_ledger_reserve(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, QsfErr *err) {
    pthread_mutex_lock(&l->lock);
    const QsfLedger seen = { .limit = l->limit, .total = l->total };
    bool frozen = l->frozen > 0, fits = l->total <= l->limit && bytes <= l->limit - l->total;
    if (frozen)
        l->refused_frozen++;
    else if (fits)
        charge(l, cat, bytes);
    pthread_mutex_unlock(&l->lock);
    if (frozen) return refuse_frozen(cat, bytes, what, err);
    return fits ? QSF_OK : refuse_budget(&seen, cat, bytes, what, err);
}

int qsf_ledger_recharge(QsfLedger *l, QsfMemCat cat, uint64_t old, uint64_t bytes, const char *what,
                        QsfErr *err) {
    if (bytes <= old) {
        qsf_ledger_release(l, cat, old - bytes);
        return QSF_OK;
    }
    pthread_mutex_lock(&l->lock);
    const QsfLedger seen = { .limit = l->limit, .total = l->total };
    const bool fits = l->total <= l->limit && bytes - old <= l->limit - l->total;
    if (fits) charge(l, cat, bytes - old);
    pthread_mutex_unlock(&l->lock);
    return fits ? QSF_OK : refuse_budget(&seen, cat, bytes - old, what, err);
}

uint64_t qsf_ledger_left(QsfLedger *l) {
    pthread_mutex_lock(&l->lock);
    const uint64_t left = l->total < l->limit ? l->limit - l->total : 0;
    pthread_mutex_unlock(&l->lock);
    return left;
}

void qsf_ledger_release(QsfLedger *l, QsfMemCat cat, uint64_t bytes) {
    pthread_mutex_lock(&l->lock);
    /* Releasing more than is charged is a bug in the caller; clamping keeps the sum consistent. */
    if (bytes > l->used[cat]) bytes = l->used[cat];
    l->used[cat] -= bytes;
    l->total -= bytes;
    pthread_mutex_unlock(&l->lock);
}

void qsf_ledger_snapshot(QsfLedger *l, QsfLedger *out) {
    pthread_mutex_lock(&l->lock);
    out->limit = l->limit;
    memcpy(out->used, l->used, sizeof out->used);
    memcpy(out->peak, l->peak, sizeof out->peak);
    out->total = l->total;
    out->total_peak = l->total_peak;
    memcpy(out->region, l->region, sizeof out->region);
    out->n_regions = l->n_regions;
    out->frozen = l->frozen;
    out->refused_frozen = l->refused_frozen;
    pthread_mutex_unlock(&l->lock);
}

/* ---- regions: all with the lock held ---- */

static QsfRegion *region_named(QsfLedger *l, QsfMemCat cat, const char *what) {
    for (uint32_t i = 0; i < l->n_regions; i++) {
        QsfRegion *r = &l->region[i];
        if (r->count > 0 && r->cat == cat && strcmp(r->name, what) == 0) return r;
    }
    return l->n_regions == QSF_LEDGER_REGIONS ? &l->region[QSF_LEDGER_REGIONS - 1] : NULL;
}

/* Returns an unused entry. When the table is full, further names share its last entry. */
static QsfRegion *region_begin(QsfLedger *l, QsfMemCat cat, const char *what) {
    const uint32_t last = QSF_LEDGER_REGIONS - 1;
    uint32_t i = 0;
    while (i < l->n_regions && l->region[i].count > 0) i++;
    if (i > last) return &l->region[last];
    if (i == l->n_regions) l->n_regions++;
    l->region[i] = (QsfRegion){ .name = i == last ? "others" : what, .cat = cat };
    return &l->region[i];
}

static QsfRegion *region_for(QsfLedger *l, QsfMemCat cat, const char *what) {
    QsfRegion *r = region_named(l, cat, what);
    bool shared = r == &l->region[QSF_LEDGER_REGIONS - 1];
    return r == NULL || shared ? region_begin(l, cat, what) : r;
}

/* Guesses the region of mapping p when the caller does not name it: the region whose newest mapping is p,
 * else the region with the most mappings. */
static QsfRegion *region_at(QsfLedger *l, QsfMemCat cat, const void *p) {
    QsfRegion *most = NULL;
    for (uint32_t i = 0; i < l->n_regions; i++) {
        QsfRegion *r = &l->region[i];
        if (r->count == 0) continue;
        if (r->at == p) return r;
        if (r->cat == cat && (most == NULL || r->count > most->count)) most = r;
    }
    return most;
}

void qsf_region_add(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t bytes) {
    pthread_mutex_lock(&l->lock);
    QsfRegion *r = region_for(l, cat, what);
    r->count++;
    r->bytes += bytes;
    r->at = p;
    pthread_mutex_unlock(&l->lock);
}

void qsf_region_change(QsfLedger *l, QsfMemCat cat, const char *what, const void *p, uint64_t old,
                       const void *q, uint64_t bytes) {
    pthread_mutex_lock(&l->lock);
    QsfRegion *r = what != NULL ? region_named(l, cat, what) : region_at(l, cat, p);
    if (r != NULL && r->count > 0) {
        r->bytes = r->bytes + bytes > old ? r->bytes + bytes - old : 0;
        if (bytes == 0) r->count--;
        if (r->at == p) r->at = bytes == 0 ? NULL : q;
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- mapped memory ---- */

uint64_t qsf_page_bytes(void) {
    static atomic_uint_fast64_t known; /* threads that ask at the same time learn the same */
    uint64_t page = atomic_load_explicit(&known, memory_order_relaxed);
    if (page != 0) return page;
    page = qsf_os_page_bytes();
    atomic_store_explicit(&known, page, memory_order_relaxed);
    return page;
}

static atomic_uint_fast64_t fail_in; /* number of mappings until one fails; 0 = off */

void qsf_mem_inject_failure(uint64_t n) { atomic_store(&fail_in, n); }

bool qsf_mem_fails_now(void) {
    uint_fast64_t n = atomic_load_explicit(&fail_in, memory_order_relaxed);
    while (n > 0 && !atomic_compare_exchange_weak(&fail_in, &n, n - 1)) {
    }
    return n == 1;
}

int qsf_mem_none(const char *what, uint64_t bytes, QsfErr *err) {
    return qsf_err_memory(err, "%s needs %.2f MB: %s", what, (double)bytes / MIB, strerror(ENOMEM));
}

int qsf_mem_map(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, void **out, QsfErr *err) {
    *out = NULL;
    if (bytes == 0) return QSF_OK;
    int rc = qsf_ledger_reserve(l, cat, bytes, what, err);
    if (rc != QSF_OK) return rc;
    /* No machine has half the address space as memory; the kernel refuses the rest. */
    void *p = bytes > SIZE_MAX / 2 || qsf_mem_fails_now() ? MAP_FAILED : qsf_os_map((size_t)bytes);
    if (p == MAP_FAILED) {
        qsf_ledger_release(l, cat, bytes);
        return qsf_mem_none(what, bytes, err);
    }
    qsf_region_add(l, cat, what, p, bytes);
    *out = p;
    return QSF_OK;
}

void qsf_mem_unmap_named(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes, const char *what) {
    if (p == NULL || bytes == 0) return;
    qsf_region_change(l, cat, what, p, bytes, NULL, 0);
    qsf_os_unmap(p, (size_t)bytes);
    qsf_ledger_release(l, cat, bytes);
}

void qsf_mem_unmap(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes) {
    qsf_mem_unmap_named(l, cat, p, bytes, NULL);
}

int qsf_mem_resize(QsfLedger *l, QsfMemCat cat, uint64_t old, uint64_t bytes, const char *what, void **p,
                   QsfErr *err) {
    if (bytes == old) return QSF_OK;
    if (old != 0 && bytes != 0 && qsf_mem_fails_now()) return qsf_mem_none(what, bytes, err);
    if (bytes < old) {
        qsf_region_change(l, cat, what, *p, old, *p, bytes);
        if (bytes == 0)
            qsf_os_unmap(*p, (size_t)old);
        else
            *p = qsf_os_remap(*p, (size_t)old, (size_t)bytes);
        qsf_ledger_release(l, cat, old - bytes);
        if (bytes == 0) *p = NULL;
        return QSF_OK;
    }
    if (old == 0) return qsf_mem_map(l, cat, bytes, what, p, err);
    int rc = qsf_ledger_reserve(l, cat, bytes - old, what, err);
    if (rc != QSF_OK) return rc;
    void *q = bytes > SIZE_MAX / 2 ? MAP_FAILED : qsf_os_remap(*p, (size_t)old, (size_t)bytes);
    if (q == MAP_FAILED) {
        qsf_ledger_release(l, cat, bytes - old);
        return qsf_mem_none(what, bytes, err);
    }
    qsf_region_change(l, cat, what, *p, old, q, bytes);
    *p = q;
    return QSF_OK;
}

void qsf_mem_discard(void *p, uint64_t bytes) {
    const uintptr_t from = (uintptr_t)qsf_pages((uintptr_t)p),
                    to = ((uintptr_t)p + (uintptr_t)bytes) & ~(uintptr_t)(qsf_page_bytes() - 1);
    if (p != NULL && from < to) qsf_os_discard((void *)from, to - from);
}

/* --- the table for users --- */

static void row(QsfStrbuf *b, const char *name, uint64_t used, uint64_t peak) {
    qsf_strbuf_addf(b, "%-28s %10.2f MB   peak %10.2f MB\n", name, (double)used / MIB, (double)peak / MIB);
}

static void regions(QsfStrbuf *b, const QsfLedger *l) {
    for (uint32_t i = 0; i < l->n_regions; i++) {
        const QsfRegion *r = &l->region[i];
        if (r->count == 0) continue;
        qsf_strbuf_addf(b, "  %-26s %10.2f MB   in %s", r->name, (double)r->bytes / MIB,
                        qsf_mem_cat_name(r->cat));
        if (r->count > 1) qsf_strbuf_addf(b, ", %lu mappings", (unsigned long)r->count);
        qsf_strbuf_addf(b, "\n");
    }
}

char *qsf_ledger_text(QsfLedger *l) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfLedger now;
    qsf_ledger_snapshot(l, &now);
    for (unsigned i = 0; i < QSF_MEM_N; i++)
        row(&b, qsf_mem_cat_name((QsfMemCat)i), now.used[i], now.peak[i]);
    row(&b, "sum", now.total, now.total_peak);
    if (now.limit != UINT64_MAX) qsf_strbuf_addf(&b, "%-28s %10.2f MB\n", "budget", (double)now.limit / MIB);
    regions(&b, &now);
    if (now.refused_frozen > 0)
        qsf_strbuf_addf(&b, "%llu allocations were refused while memory was frozen: please report this\n",
                        (unsigned long long)now.refused_frozen);
    return qsf_strbuf_take(&b, NULL);
}
