/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of tiles: implements kv/list.h. */
#include "src/kv/list.h"

#include <string.h>

int qsf_kvlists_init(QsfKvLists *l, uint32_t n_caches, uint32_t ctx, uint32_t threads, QsfLedger *ledger,
                     QsfErr *err) {
    QsfKvListLayout p;
    void *mem;
    qsf_kv_list_layout(&p, n_caches, ctx, threads);
    int rc = qsf_mem_map(ledger, QSF_MEM_KV, p.total, "lists of the KV cache", &mem, err);
    if (rc != QSF_OK) return rc;
    *l = (QsfKvLists){
        .mem = mem, .bytes = p.total, .n_caches = n_caches, .threads = threads, .ledger = ledger
    };
    l->cap = (uint32_t)qk_kv_tiles(ctx);
    l->entry = (qk_kv_slot *)(void *)(l->mem + p.entry);
    l->spare = (uint32_t *)(void *)(l->mem + p.spare);
    l->moved = (uint32_t *)(void *)(l->mem + p.moved);
    l->drop = l->mem + p.drop;
    if (threads == 0) return QSF_OK;
    l->mass = (uint64_t *)(void *)(l->mem + p.mass);
    l->saved_mass = (uint64_t *)(void *)(l->mem + p.saved_mass);
    l->worker_mass = (uint64_t *)(void *)(l->mem + p.worker_mass);
    return QSF_OK;
}

void qsf_kvlists_free(QsfKvLists *l) {
    if (l->mem != NULL) qsf_mem_unmap(l->ledger, QSF_MEM_KV, l->mem, l->bytes);
    memset(l, 0, sizeof *l);
}

/* The lowest free slot is on top of the stack. */
void qsf_kvlist_sort_spare(QsfKvLists *l, uint32_t i) {
    uint32_t *spare = l->spare + (size_t)i * l->cap, n = 0;
    memset(l->drop, 0, l->cap);
    for (uint32_t e = 0; e < l->n[i]; e++) l->drop[qsf_kvlist(l, i)[e].slot] = 1;
    for (uint32_t s = l->cap; s-- > 0;)
        if (!l->drop[s]) spare[n++] = s;
}

/* ---- weights at earlier lengths ---- */

/* Entries of cache i while there are n_past positions. */
static uint32_t entries(const QsfKvLists *l, uint32_t i, uint32_t n_past) {
    return l->on ? l->n[i] : (uint32_t)qk_kv_tiles(n_past);
}

static uint64_t *entry_mass(const QsfKvLists *l, uint32_t i, uint32_t e) {
    return qsf_kvlist_mass(l, i) + (size_t)(l->on ? qsf_kvlist(l, i)[e].slot : e) * QK_KV_TILE;
}

void qsf_kvlists_save_weights(QsfKvLists *l, uint32_t n_past) {
    const size_t copy = (size_t)l->n_caches * l->cap * QK_KV_TILE;
    const uint32_t newest = l->n_saved > 0 ? l->saved_at[l->n_saved - 1] : 0;
    if (l->mass == NULL || n_past == 0 || newest == n_past || qsf_kvlists_ahead(l, n_past)) return;
    if (l->n_saved == QSF_KV_WEIGHT_COPIES) {
        l->n_saved--;
        memmove(l->saved_at, l->saved_at + 1, l->n_saved * sizeof *l->saved_at);
        memmove(l->saved_mass, l->saved_mass + copy, l->n_saved * copy * sizeof *l->saved_mass);
    }
    for (uint32_t i = 0; i < l->n_caches; i++)
        for (uint32_t e = 0; e < entries(l, i, n_past); e++)
            memcpy(qsf_kvlist_saved(l, l->n_saved, i) + (size_t)e * QK_KV_TILE, entry_mass(l, i, e),
                   QK_KV_TILE * sizeof *l->mass);
    l->saved_at[l->n_saved++] = n_past;
}

uint32_t qsf_kvlists_weighed(const QsfKvLists *l, uint32_t n) {
    uint32_t best = 0;
    if (!qsf_kvlists_ahead(l, n)) return n;
    for (uint32_t k = 0; k < l->n_saved && l->saved_at[k] <= n; k++) best = l->saved_at[k];
    return best;
}

void qsf_kvlists_restore_weights(QsfKvLists *l, uint32_t n) {
    while (l->n_saved > 0 && l->saved_at[l->n_saved - 1] > n) l->n_saved--;
    if (!qsf_kvlists_ahead(l, n)) return;
    l->weighed_end = n;
    for (uint32_t i = 0; n > 0 && i < l->n_caches; i++)
        for (uint32_t e = 0; e < entries(l, i, n); e++)
            memcpy(entry_mass(l, i, e), qsf_kvlist_saved(l, l->n_saved - 1, i) + (size_t)e * QK_KV_TILE,
                   QK_KV_TILE * sizeof *l->mass);
}

/* Copies that both have room for. */
static void keep_weights(QsfKvLists *to, const QsfKvLists *from, uint32_t cap) {
    to->n_saved = from->n_saved;
    to->weighed_end = from->weighed_end;
    memcpy(to->saved_at, from->saved_at, sizeof to->saved_at);
    for (uint32_t i = 0; i < from->n_caches; i++) {
        const size_t bytes = (size_t)cap * QK_KV_TILE * sizeof *to->mass;
        memcpy(qsf_kvlist_mass(to, i), qsf_kvlist_mass(from, i), bytes);
        for (uint32_t k = 0; k < from->n_saved; k++)
            memcpy(qsf_kvlist_saved(to, k, i), qsf_kvlist_saved(from, k, i), bytes);
    }
}

int qsf_kvlists_resize(QsfKvLists *l, uint32_t ctx, uint32_t threads, QsfErr *err) {
    QsfKvLists x = { 0 };
    int rc = qsf_kvlists_init(&x, l->n_caches, ctx, threads, l->ledger, err);
    if (rc != QSF_OK) return rc;
    x.on = l->on;
    x.evicted_at = l->evicted_at;
    const uint32_t cap = x.cap < l->cap ? x.cap : l->cap;
    if (x.mass != NULL && l->mass != NULL) keep_weights(&x, l, cap);
    for (uint32_t i = 0; i < l->n_caches; i++) {
        memcpy(qsf_kvlist_moved(&x, i), qsf_kvlist_moved(l, i), cap * sizeof *x.moved);
        x.n[i] = l->n[i];
        memcpy(qsf_kvlist(&x, i), qsf_kvlist(l, i), x.n[i] * sizeof *x.entry);
        if (x.on) qsf_kvlist_sort_spare(&x, i);
    }
    qsf_kvlists_free(l);
    *l = x;
    return QSF_OK;
}

void qsf_kvlists_start(QsfKvLists *l, uint32_t n_past) {
    l->on = true;
    memset(l->moved, 0, (size_t)l->n_caches * l->cap * sizeof *l->moved);
    for (uint32_t i = 0; i < l->n_caches; i++) {
        l->n[i] = (uint32_t)qk_kv_tiles(n_past);
        if (l->n[i] > l->cap) l->n[i] = 0; /* a ring */
        for (uint32_t t = 0; t < l->n[i]; t++)
            qsf_kvlist(l, i)[t] = (qk_kv_slot){ .tile = t, .slot = t, .kept = UINT16_MAX };
        qsf_kvlist_sort_spare(l, i);
    }
}

void qsf_kvlist_extend(QsfKvLists *l, uint32_t i, uint32_t end) {
    qk_kv_slot *entry = qsf_kvlist(l, i);
    uint32_t tile = l->n[i] > 0 ? entry[l->n[i] - 1].tile + 1 : 0;
    for (; (uint64_t)tile * QK_KV_TILE < end && l->n[i] < l->cap; tile++) {
        const uint32_t slot = l->spare[(size_t)i * l->cap + l->cap - l->n[i] - 1];
        if (l->mass != NULL)
            memset(qsf_kvlist_mass(l, i) + (size_t)slot * QK_KV_TILE, 0, QK_KV_TILE * sizeof *l->mass);
        qsf_kvlist_moved(l, i)[slot] = 0;
        entry[l->n[i]++] = (qk_kv_slot){ .tile = tile, .slot = slot, .kept = UINT16_MAX };
    }
}

void qsf_kvlist_truncate(QsfKvLists *l, uint32_t i, uint32_t n) {
    qk_kv_slot *entry = qsf_kvlist(l, i);
    while (l->n[i] > 0 && (uint64_t)entry[l->n[i] - 1].tile * QK_KV_TILE >= n) {
        l->n[i]--;
        l->spare[(size_t)i * l->cap + l->cap - l->n[i] - 1] = entry[l->n[i]].slot;
    }
    if (l->n[i] > 0 && entry[l->n[i] - 1].tile == n / QK_KV_TILE)
        entry[l->n[i] - 1].kept |= (uint16_t)(UINT16_MAX << n % QK_KV_TILE);
}

uint32_t qsf_kvlist_remove(QsfKvLists *l, uint32_t i) {
    qk_kv_slot *entry = qsf_kvlist(l, i);
    uint32_t *spare = l->spare + (size_t)i * l->cap, n = 0, free = l->cap - l->n[i];
    for (uint32_t e = 0; e < l->n[i]; e++) {
        if (!l->drop[e]) {
            entry[n++] = entry[e];
            continue;
        }
        spare[free++] = entry[e].slot;
    }
    const uint32_t gone = l->n[i] - n;
    l->n[i] = n;
    return gone;
}

uint32_t qsf_kvlist_slot(const QsfKvLists *l, uint32_t i, uint32_t tile) {
    const qk_kv_slot *entry = qsf_kvlist(l, i);
    uint32_t e = l->n[i] - 1;
    while (entry[e].tile != tile && e > 0) e--;
    return entry[e].slot;
}

void qsf_kvlist_gather(QsfKvLists *l, uint32_t i, uint32_t n_past) {
    const size_t each = (size_t)l->cap * QK_KV_TILE,
                 used = l->on ? each : qk_kv_tiles(n_past) * (size_t)QK_KV_TILE;
    uint64_t *to = qsf_kvlist_mass(l, i);
    for (uint32_t t = 0; t < l->threads; t++) {
        uint64_t *from = l->worker_mass + t * each;
        for (size_t x = 0; x < used; x++) to[x] += from[x];
        memset(from, 0, used * sizeof *from);
    }
}

void qsf_kvlists_forget(QsfKvLists *l, uint32_t n) {
    const uint32_t first = (uint32_t)qk_kv_tiles(n);
    for (uint32_t i = 0; l->mass != NULL && first < l->cap && i < l->n_caches; i++)
        memset(qsf_kvlist_mass(l, i) + (size_t)first * QK_KV_TILE, 0,
               (size_t)(l->cap - first) * QK_KV_TILE * sizeof *l->mass);
}
