/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Eviction policies of the KV cache: which tiles of 16 positions go when no more fit. Whether and what is
 * evicted depends on positions and attention weights only, not on batches, threads or the budget, as long as
 * the plan's context is the same. */
#ifndef QSF_PLAN_EVICT_H
#define QSF_PLAN_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kv.h"

typedef enum QsfEvictKind {
    QSF_EVICT_NONE,
    QSF_EVICT_SLIDING,
    QSF_EVICT_H2O,
    QSF_EVICT_SNAPKV,
    QSF_EVICT_N
} QsfEvictKind;

/* Returns QSF_EVICT_N for an unknown name. */
QsfEvictKind qsf_evict_parse(const char *name);
/* Returns the name, static. */
const char *qsf_evict_name(QsfEvictKind k);
/* Does the policy need attention weights? */
bool qsf_evict_observes(QsfEvictKind k);

typedef struct QsfEvict {
    QsfEvictKind kind;
    uint32_t window;  /* positions kept besides the protected ones; 0 = what the context holds */
    uint32_t protect; /* first positions that are never evicted */
} QsfEvict;

#define QSF_EVICT_OBSERVED 32u /* queries that SnapKV looks at before it chooses */
#define QSF_EVICT_SINKS    4u  /* Xiao et al. 2023 (StreamingLLM) */
#define QSF_EVICT_MIN      64u /* least positions besides the protected ones */

/* Tiles of one cache. */
typedef struct QsfEvictView {
    const qk_kv_slot *list;
    uint32_t n, protect, drop; /* tiles; the first ones that stay; to be dropped */
    const uint64_t *mass;      /* by slot; NULL if the policy does not observe */
    uint8_t *out;              /* (n) set to 1 for those that go, of zeros */
} QsfEvictView;
/* drop <= n - protect. */
void qsf_evict_choose(QsfEvictKind k, const QsfEvictView *v);

#endif
