/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sleeping on a word, with condition variables: each word belongs to one of a few, by its address. Its lock
 * is taken to look at the word before sleeping, and to wake after the word has changed, so that no wake-up
 * comes in between. A sleeper may be woken for another word. */
#include "src/base/platform.h"

#define BUCKETS 16u

typedef struct Bucket {
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t changed;
} Bucket;

#define BUCKET \
    { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER }
#define BUCKETS4 BUCKET, BUCKET, BUCKET, BUCKET

static Bucket buckets[BUCKETS] = { BUCKETS4, BUCKETS4, BUCKETS4, BUCKETS4 };

/* The words of a pool are on cache lines of their own. */
static Bucket *bucket_of(const atomic_uint *word) { return &buckets[(uintptr_t)word / 64 % BUCKETS]; }

void qsf_os_sleep(atomic_uint *word, unsigned seen) {
    Bucket *b = bucket_of(word);
    pthread_mutex_lock(&b->lock);
    if (atomic_load(word) == seen) pthread_cond_wait(&b->changed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* Always all: one alone could be a sleeper of another word. */
void qsf_os_wake(atomic_uint *word, bool all) {
    Bucket *b = bucket_of(word);
    (void)all;
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}
