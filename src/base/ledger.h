/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM ledger (docs/MEMORY.md): all memory of the process is charged to one category each, and the sum
 * never exceeds the budget. All sizes are in bytes. Any thread may call any function; charges are made per
 * allocation, never per token. */
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

/* The mappings of one name, for reports. */
typedef struct QsfRegion {
    const char *name; /* static storage: as given to qsf_mem_map or an arena */
    QsfMemCat cat;
    uint32_t count; /* mappings */
    uint64_t bytes;
    const void *at; /* the newest one, to find the region that a mapping belongs to */
} QsfRegion;

typedef struct QsfLedger {
    pthread_mutex_t lock;
    uint64_t limit; /* budget; UINT64_MAX = none */
    uint64_t used[QSF_MEM_N];
    uint64_t peak[QSF_MEM_N];
    uint64_t total, total_peak;
    QsfRegion region[QSF_LEDGER_REGIONS]; /* (n_regions) by name; excess names share the last one */
    uint32_t n_regions;
    uint32_t frozen;         /* > 0: nothing may be charged or mapped (the token loop) */
    uint64_t refused_frozen; /* attempts while frozen; any is a bug */
} QsfLedger;

/* limit 0 means no limit. Never fails. */
void qsf_ledger_init(QsfLedger *l, uint64_t limit);
/* Frees the lock. Nothing needs to be released before. */
void qsf_ledger_destroy(QsfLedger *l);
/* Sets another limit in bytes, 0 = none; what is charged stays, even if it is more. Any thread. */
void qsf_ledger_set_limit(QsfLedger *l, uint64_t limit);

/* Charges bytes to cat. QSF_E_BUDGET, with a message that names what, the bytes requested, the bytes in
 * use and the budget; then nothing is charged. `what` is the name of the buffer for messages. */
int qsf_ledger_reserve(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, QsfErr *err);
/* Returns the bytes below the limit that are not charged. */
uint64_t qsf_ledger_left(QsfLedger *l);
/* Takes back a charge of reserve; more than is charged to cat counts as all of it. Any thread. */
void qsf_ledger_release(QsfLedger *l, QsfMemCat cat, uint64_t bytes);
/* Changes what a mapping that exists is charged with from `old` to `bytes`, also while the ledger is frozen.
 * QSF_E_BUDGET as above; less never fails. */
int qsf_ledger_recharge(QsfLedger *l, QsfMemCat cat, uint64_t old, uint64_t bytes, const char *what,
                        QsfErr *err);

/* Copies the counters consistently (the lock member of *out is meaningless). */
void qsf_ledger_snapshot(QsfLedger *l, QsfLedger *out);

/* Forbid and permit charges and mappings: the token loop must not allocate. An attempt while frozen fails
 * with QSF_E_RUNTIME ("internal: ... is frozen") and is counted. Calls nest. Releasing is always allowed. */
void qsf_ledger_freeze(QsfLedger *l);
void qsf_ledger_thaw(QsfLedger *l);

/* Formats the categories with current and peak use, and the named regions of each, as a table for users
 * (--verbose, /mem). Returns malloc'ed, newline-terminated text; NULL if out of memory. */
char *qsf_ledger_text(QsfLedger *l);

/* Test hook: the n-th call of qsf_mem_map or qsf_mem_resize after this one (1 = the next) fails as if the
 * machine were out of memory; 0 clears it. */
void qsf_mem_inject_failure(uint64_t n);

/* Returns "pinned weights", "KV cache", ...; static storage. */
const char *qsf_mem_cat_name(QsfMemCat cat);

/* Returns the bytes of a page of the kernel: 4096, or more on some ARM64 systems (16384 on those of Apple and
 * on a Raspberry Pi 5). What is mapped and returned are whole ones. */
uint64_t qsf_page_bytes(void);
/* v rounded up to whole pages. */
static inline uint64_t qsf_pages(uint64_t v) {
    const uint64_t page = qsf_page_bytes();
    return (v + page - 1) & ~(page - 1);
}

/* Maps zeroed, page-aligned memory (anonymous mmap, so that freeing it really returns it to the
 * kernel) and charges it to cat first. *out = NULL on failure (QSF_E_BUDGET or QSF_E_RUNTIME). With
 * bytes 0, succeeds with *out = NULL. */
int qsf_mem_map(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what, void **out, QsfErr *err);
/* Unmaps and releases. bytes and cat must be those given to qsf_mem_map; p may be NULL. */
void qsf_mem_unmap(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes);
/* The same for one of several mappings with the name `what`, to keep the report of regions correct. */
void qsf_mem_unmap_named(QsfLedger *l, QsfMemCat cat, void *p, uint64_t bytes, const char *what);
/* Grows or shrinks a mapping. Growing may move it, keeps its contents and adds zeros; shrinking returns the
 * tail to the kernel. *p NULL with old 0 maps; bytes 0 unmaps and sets *p to NULL. Sizes are multiples of the
 * page size. On failure *p is unchanged. */
int qsf_mem_resize(QsfLedger *l, QsfMemCat cat, uint64_t old, uint64_t bytes, const char *what, void **p,
                   QsfErr *err);

/* Discards the contents of [p, p + bytes), which is part of a mapping from qsf_mem_map: full pages in the
 * range are returned to the kernel and read as zeros afterwards; partial pages are unchanged. The ledger is
 * unchanged. */
void qsf_mem_discard(void *p, uint64_t bytes);

#endif
