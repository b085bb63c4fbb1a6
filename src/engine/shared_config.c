/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A value is stored before its counter is incremented, so that a thread that sees the new counter sees that
 * value or a later one. */
#include "src/engine/shared_config.h"

#include <stdatomic.h>
#include <stdlib.h>

struct QsfSharedConfig {
    atomic_int refs;
    atomic_uint_fast64_t budget;
    atomic_int threads;
    _Atomic float quality;
    atomic_uint budget_n, threads_n, quality_n; /* how often each was set */
};

QsfSharedConfig *qsf_shared_config_new(const QSFSettings *s) {
    QsfSharedConfig *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    atomic_init(&l->refs, 1);
    atomic_init(&l->budget, s->ram_budget);
    atomic_init(&l->threads, s->threads);
    atomic_init(&l->quality, s->params.quality);
    return l;
}

void qsf_shared_config_release(QsfSharedConfig *l) {
    if (l != NULL && atomic_fetch_sub(&l->refs, 1) == 1) free(l);
}

void qsf_shared_config_set_budget(QsfSharedConfig *l, uint64_t bytes) {
    atomic_store(&l->budget, bytes);
    atomic_fetch_add(&l->budget_n, 1);
}

void qsf_shared_config_set_threads(QsfSharedConfig *l, int32_t threads) {
    atomic_store(&l->threads, threads);
    atomic_fetch_add(&l->threads_n, 1);
}

void qsf_shared_config_set_quality(QsfSharedConfig *l, float quality) {
    atomic_store(&l->quality, quality);
    atomic_fetch_add(&l->quality_n, 1);
}

static bool update_budget(QsfFollower *f, QSFSettings *s) {
    unsigned n = atomic_load(&f->config->budget_n);
    if (n == f->budget_seen) return false;
    f->budget_seen = n;
    s->ram_budget = atomic_load(&f->config->budget);
    s->ram_percent = 0;
    return true;
}

static bool update_threads(QsfFollower *f, QSFSettings *s) {
    unsigned n = atomic_load(&f->config->threads_n);
    if (n == f->threads_seen) return false;
    f->threads_seen = n;
    s->threads = atomic_load(&f->config->threads);
    return true;
}

bool qsf_follower_quality(QsfFollower *f, float *quality) {
    if (f->config == NULL) return false;
    unsigned n = atomic_load(&f->config->quality_n);
    if (n == f->quality_seen) return false;
    f->quality_seen = n;
    *quality = atomic_load(&f->config->quality);
    return true;
}

void qsf_follower_init(QsfFollower *f, QsfSharedConfig *l, QSFSettings *s) {
    *f = (QsfFollower){ .config = l };
    if (l == NULL) return;
    atomic_fetch_add(&l->refs, 1);
    qsf_follower_update(f, s);
    qsf_follower_quality(f, &s->params.quality);
}

void qsf_follower_end(QsfFollower *f) {
    qsf_shared_config_release(f->config);
    f->config = NULL;
}

bool qsf_follower_update(QsfFollower *f, QSFSettings *s) {
    if (f->config == NULL) return false;
    bool budget = update_budget(f, s), threads = update_threads(f, s);
    return budget || threads;
}
