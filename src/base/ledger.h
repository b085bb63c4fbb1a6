/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM ledger (design §4): every byte the process holds is charged to one category, and the
 * sum never passes the budget. All sizes are bytes. Every function may be called from any
 * thread; charges are per allocation, never per token. */
#ifndef QSF_BASE_LEDGER_H
#define QSF_BASE_LEDGER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

typedef enum QsfMemCat {
    QSF_MEM_PINNED,      /* weights that stay in RAM */
    QSF_MEM_SLOTS,       /* buffers that weights stream through */
    QSF_MEM_KV,          /* KV cache */
    QSF_MEM_ACTIVATIONS, /* activation and scratch buffers of the forward pass */
    QSF_MEM_LOGITS,      /* logits and the sampler's candidate lists */
    QSF_MEM_EMBED,       /* resident embedding table or its row cache */
    QSF_MEM_TOKENIZER,   /* vocabulary, merges, template */
    QSF_MEM_META,        /* tensor index, hyperparameters, plan */
    QSF_MEM_TRANSCRIPT,  /* messages, token ids of the conversation, event queue */
    QSF_MEM_STACKS,      /* thread stacks */
    QSF_MEM_CODE,        /* program, libraries, libc heap, screen */
    QSF_MEM_KERNEL,      /* page tables, kernel stacks, rings: 1 MiB + 0.3 % */
    QSF_MEM_N
} QsfMemCat;

typedef struct QsfLedger {
    pthread_mutex_t lock;
    uint64_t limit;             /* budget; UINT64_MAX = none */
    uint64_t used[QSF_MEM_N];
    uint64_t peak[QSF_MEM_N];
    uint64_t total, total_peak;
} QsfLedger;

/* limit 0 means no limit. Never fails. */
void qsf_ledger_init(QsfLedger *l, uint64_t limit);
void qsf_ledger_destroy(QsfLedger *l);
void qsf_ledger_set_limit(QsfLedger *l, uint64_t limit);

/* Charges bytes to cat, or returns QSF_E_BUDGET with a message naming what, the bytes asked for,
 * the bytes in use and the budget, and charges nothing. `what` names the buffer for people. */
int qsf_ledger_reserve(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, QsfErr *err);
void qsf_ledger_release(QsfLedger *l, QsfMemCat cat, uint64_t bytes);

/* A consistent copy of the counters (the lock member of *out is meaningless). */
void qsf_ledger_snapshot(QsfLedger *l, QsfLedger *out);

/* "pinned weights", "KV cache", ... static storage. */
const char *qsf_mem_cat_name(QsfMemCat cat);

/* Page-granular zeroed memory (anonymous mmap, so that freeing it really returns it to the
 * kernel), 64-byte aligned and more, charged to cat before it is mapped. *out = NULL on failure
 * (QSF_E_BUDGET or QSF_E_RUNTIME). bytes 0 gives *out = NULL and success. */
int qsf_mem_map(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, void **out, QsfErr *err);
/* bytes and cat as given to qsf_mem_map; p NULL is allowed. */
void qsf_mem_unmap(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes);

#endif
