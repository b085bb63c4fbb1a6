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

#define QSF_LEDGER_REGIONS 40

/* What one name holds: the sub-arenas of spec Phase 2.1, for reports. */
typedef struct QsfRegion {
    const char *name;  /* static storage: as given to qsf_mem_map or an arena */
    QsfMemCat cat;
    uint32_t count;    /* mappings */
    uint64_t bytes;
    const void *at;    /* the newest of them, to tell which region a mapping belongs to */
} QsfRegion;

typedef struct QsfLedger {
    pthread_mutex_t lock;
    uint64_t limit;             /* budget; UINT64_MAX = none */
    uint64_t used[QSF_MEM_N];
    uint64_t peak[QSF_MEM_N];
    uint64_t total, total_peak;
    QsfRegion region[QSF_LEDGER_REGIONS]; /* (n_regions) what is mapped, by name; names beyond share the last one */
    uint32_t n_regions;
    uint32_t frozen;            /* > 0: nothing may be charged or mapped (the token loop) */
    uint64_t refused_frozen;    /* attempts while frozen: a defect when not 0 */
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

/* Between the two nothing may be charged or mapped: the token loop allocates nothing. An attempt fails with
 * QSF_E_RUNTIME ("internal: ... is frozen") and is counted. Calls nest. Releasing stays allowed. */
void qsf_ledger_freeze(QsfLedger *l);
void qsf_ledger_thaw(QsfLedger *l);

/* The categories with used and peak, and below them the named regions, as a table for people (--verbose,
 * /mem); newline-terminated, malloc'ed, NULL without memory. */
char *qsf_ledger_text(QsfLedger *l);

/* Test hook: the n-th qsf_mem_map or qsf_mem_resize from now on (1 = the next) fails as if the machine had no
 * memory; 0 clears it. */
void qsf_mem_inject_failure(uint64_t n);

/* "pinned weights", "KV cache", ... static storage. */
const char *qsf_mem_cat_name(QsfMemCat cat);

/* Page-granular zeroed memory (anonymous mmap, so that freeing it really returns it to the
 * kernel), 64-byte aligned and more, charged to cat before it is mapped. *out = NULL on failure
 * (QSF_E_BUDGET or QSF_E_RUNTIME). bytes 0 gives *out = NULL and success. */
int qsf_mem_map(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, void **out, QsfErr *err);
/* bytes and cat as given to qsf_mem_map; p NULL is allowed. */
void qsf_mem_unmap(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes);
/* The same for one of several mappings under one name, `what`, so that the report of regions stays right. */
void qsf_mem_unmap_named(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes, const char *what);
/* Grows (the memory may move, its contents stay, the rest is zero) or shrinks (the tail goes back to the kernel)
 * a mapping; *p NULL with old 0 maps, bytes 0 unmaps and sets *p NULL. Sizes are multiples of the page. On failure
 * *p is as before. */
int qsf_mem_resize(QsfLedger *l, QsfMemCat cat, uint64_t old, uint64_t bytes, const char *what, void **p,
                   QsfErr *err);

#endif
