/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bump allocator over ledger-charged pages. */
#include "src/base/arena.h"

#include <string.h>

#include "src/base/checked.h"

#define PAGE          4096u
#define LINE          64u
#define DEFAULT_BLOCK (64u * 1024)
#define MAX_BLOCK     (1024u * 1024)

struct QsfArenaBlock {
    _Alignas(LINE) QsfArenaBlock *next; /* aligned so that the data after the header starts a cache line */
    size_t bytes;                       /* size of the mapping, including this header */
    size_t used;                        /* offset of the next free byte */
};

void qsf_arena_init(QsfArena *a, QsfLedger *ledger, QsfMemCat cat, const char *name, size_t block_bytes) {
    uint64_t rounded;
    if (block_bytes == 0) block_bytes = DEFAULT_BLOCK;
    if (!qsf_align_up_u64(block_bytes, PAGE, &rounded)) rounded = MAX_BLOCK;
    *a = (QsfArena){ .ledger = ledger, .cat = cat, .name = name, .block_bytes = (size_t)rounded };
}

/* Returns the offset in b at which size bytes fit, or 0 if they do not (the header is at 0). */
static size_t fit(const QsfArenaBlock *b, size_t size, size_t align) {
    if (b == NULL) return 0;
    uint64_t start;
    if (!qsf_align_up_u64(b->used, align, &start) || !qsf_range_ok(start, size, b->bytes)) return 0;
    return (size_t)start; /* blocks are page-aligned, so offsets align like addresses */
}

static QsfArenaBlock *new_block(QsfArena *a, size_t size, size_t align, QsfErr *err) {
    uint64_t need;
    if (!qsf_add_u64(size, sizeof(QsfArenaBlock) + align, &need) || !qsf_align_up_u64(need, PAGE, &need)) {
        qsf_err_memory(err, "%s needs %zu bytes in one piece", a->name, size);
        return NULL;
    }
    bool ordinary = need <= a->block_bytes;
    if (ordinary) need = a->block_bytes;
    void *p;
    if (qsf_mem_map(a->ledger, a->cat, need, a->name, &p, err) != QSF_OK) return NULL;
    QsfArenaBlock *b = p;
    b->bytes = (size_t)need;
    b->used = sizeof *b;
    a->reserved += b->bytes;
    if (ordinary || a->head == NULL) {
        b->next = a->head;
        a->head = b;
        if (ordinary && a->block_bytes < MAX_BLOCK) a->block_bytes *= 2;
    } else { /* an oversized block goes after the head, which still has space for small ones */
        b->next = a->head->next;
        a->head->next = b;
    }
    return b;
}

void *qsf_arena_alloc(QsfArena *a, size_t size, size_t align, QsfErr *err) {
    if (a->frozen) {
        qsf_err_set(err, QSF_E_RUNTIME,
                    "internal: %s is frozen, nothing may be allocated (%zu bytes requested)", a->name, size);
        return NULL;
    }
    if (size == 0) size = 1;
    if (align == 0) align = LINE;
    QsfArenaBlock *b = a->head;
    size_t start = fit(b, size, align);
    if (start == 0) {
        b = new_block(a, size, align, err);
        if (b == NULL) return NULL;
        start = fit(b, size, align);
    }
    b->used = start + size;
    a->used += size;
    return (char *)b + start;
}

char *qsf_arena_strdup(QsfArena *a, const char *s, size_t len, QsfErr *err) {
    if (len == SIZE_MAX) {
        qsf_err_memory(err, "%s", a->name);
        return NULL;
    }
    char *p = qsf_arena_alloc(a, len + 1, 1, err);
    if (p != NULL && len > 0) memcpy(p, s, len);
    return p;
}

void qsf_arena_freeze(QsfArena *a, bool frozen) { a->frozen = frozen; }

static void free_blocks(QsfArena *a, QsfArenaBlock *b) {
    while (b != NULL) {
        QsfArenaBlock *next = b->next;
        a->reserved -= b->bytes;
        qsf_mem_unmap_named(a->ledger, a->cat, b, b->bytes, a->name);
        b = next;
    }
}

void qsf_arena_destroy(QsfArena *a) {
    free_blocks(a, a->head);
    a->head = NULL;
    a->used = 0;
}
