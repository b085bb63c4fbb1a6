/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The policies: implements evict.h. A policy gives each tile a worth; the tiles of least worth
 * go, the oldest of equals first. */
#include "src/plan/evict.h"

#include <strings.h>

#define POOL 7 /* positions over which SnapKV averages: Li et al. 2024 */

typedef struct Policy {
    const char *name;
    bool observes;
    uint32_t (*recent)(const QsfEvictView *v); /* last tiles that stay */
    uint64_t (*worth)(const QsfEvictView *v, uint32_t e);
} Policy;

static uint32_t recent_none(const QsfEvictView *v) {
    (void)v;
    return 1;
}

/* Half of what stays besides the protected tiles: Zhang et al. 2023 (H2O). */
static uint32_t recent_half(const QsfEvictView *v) { return (v->n - v->protect - v->drop + 1) / 2; }

static uint32_t recent_observed(const QsfEvictView *v) {
    (void)v;
    return QSF_EVICT_OBSERVED / QK_KV_TILE + 1;
}

static uint64_t worth_age(const QsfEvictView *v, uint32_t e) { return v->list[e].tile; }

static const uint64_t *mass_of(const QsfEvictView *v, uint32_t e) {
    return v->mass + (size_t)v->list[e].slot * QK_KV_TILE;
}

static uint64_t worth_sum(const QsfEvictView *v, uint32_t e) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < QK_KV_TILE; i++) sum += mass_of(v, e)[i];
    return sum;
}

/* The largest sum of POOL neighbours around a position of the tile. */
static uint64_t worth_pooled(const QsfEvictView *v, uint32_t e) {
    uint64_t best = 0;
    for (int i = 0; i < QK_KV_TILE; i++) {
        uint64_t sum = 0;
        for (int j = i - POOL / 2; j <= i + POOL / 2; j++) {
            if ((j < 0 && e == 0) || (j >= QK_KV_TILE && e + 1 == v->n)) continue;
            const uint32_t at = j < 0 ? e - 1 : j >= QK_KV_TILE ? e + 1 : e;
            sum += mass_of(v, at)[(j + QK_KV_TILE) % QK_KV_TILE];
        }
        if (sum > best) best = sum;
    }
    return best;
}

static const Policy policies[QSF_EVICT_N] = {
    [QSF_EVICT_NONE] = { "none", false, recent_none, worth_age },
    [QSF_EVICT_SLIDING] = { "sliding", false, recent_none, worth_age },
    [QSF_EVICT_H2O] = { "h2o", true, recent_half, worth_sum },
    [QSF_EVICT_SNAPKV] = { "snapkv", true, recent_observed, worth_pooled },
};

QsfEvictKind qsf_evict_parse(const char *name) {
    unsigned k = 0;
    while (k < QSF_EVICT_N && strcasecmp(name, policies[k].name) != 0) k++;
    return (QsfEvictKind)k;
}

const char *qsf_evict_name(QsfEvictKind k) { return policies[k].name; }

bool qsf_evict_observes(QsfEvictKind k) { return policies[k].observes; }

void qsf_evict_choose(QsfEvictKind k, const QsfEvictView *v) {
    const Policy *p = &policies[k];
    const uint32_t most = v->n - v->protect - v->drop, wanted = p->recent(v);
    const uint32_t end = v->n - (wanted < most ? wanted : most);
    if (!p->observes) { /* the list is by age */
        for (uint32_t i = 0; i < v->drop; i++) v->out[v->protect + i] = 1;
        return;
    }
    for (uint32_t i = 0; i < v->drop; i++) {
        uint32_t least = end;
        uint64_t worth = UINT64_MAX;
        for (uint32_t e = v->protect; e < end; e++) {
            if (v->out[e]) continue;
            const uint64_t x = p->worth(v, e);
            if (x >= worth && least < end) continue;
            worth = x;
            least = e;
        }
        v->out[least] = 1;
    }
}
