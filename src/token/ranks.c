/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of merges. */
#include "src/token/ranks.h"

#include <string.h>

#include "src/base/interrupt.h"

#define KEY_MERGES "tokenizer.ggml.merges"
#define EMPTY      UINT32_MAX
#define ID_BITS    21
#define ID_MASK    ((1u << ID_BITS) - 1)
#define LOW_BITS   (32 - ID_BITS)
#define MAX_MERGES (1u << 24)

static uint32_t slots_for(uint32_t n) { return n + n / 2 + 8; }

uint64_t qsf_ranks_bytes(uint32_t n) { return (uint64_t)slots_for(n) * sizeof(QsfRank) + 16; }

int qsf_ranks_count(const QsfSource *src, uint32_t *n, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, KEY_MERGES, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    const char *path = qsf_source_path(src);
    if (!present) return qsf_err_set(err, QSF_E_MODEL, "%s: byte-level BPE without %s", path, KEY_MERGES);
    uint64_t count = a.count;
    qsf_meta_array_close(&a);
    if (count > MAX_MERGES) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s has %llu merges, more than the limit of %u", path,
                           KEY_MERGES, (unsigned long long)count, MAX_MERGES);
    }
    *n = (uint32_t)count;
    return QSF_OK;
}

/* First slot to check: a keyed multiplicative hash, scaled to the table without a division. */
static uint32_t home(const QsfRanks *r, uint32_t left, uint32_t right) {
    uint64_t x = ((uint64_t)left << ID_BITS | right) ^ r->key;
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * (r->key | 1);
    return (uint32_t)((x >> 32) * r->n_slots >> 32);
}

/* Slot of the pair, or the empty slot for it. */
static QsfRank *find_slot(const QsfRanks *r, uint32_t left, uint32_t right) {
    uint32_t i = home(r, left, right);
    while (r->slot[i].rank != EMPTY &&
           ((r->slot[i].a & ID_MASK) != left || (r->slot[i].b & ID_MASK) != right)) {
        if (++i == r->n_slots) i = 0;
    }
    return &r->slot[i];
}

bool qsf_ranks_find(const QsfRanks *r, int32_t left, int32_t right, uint32_t *rank, int32_t *merged) {
    if (left < 0 || right < 0) return false;
    const QsfRank *s = find_slot(r, (uint32_t)left, (uint32_t)right);
    if (s->rank == EMPTY) return false;
    *rank = s->rank;
    *merged = (int32_t)(s->a >> ID_BITS | s->b >> ID_BITS << LOW_BITS);
    return true;
}

/* One merge: the separator is the first space after the first character. */
static void add_merge(QsfRanks *r, const QsfVocab *v, const char *s, size_t len, uint32_t rank) {
    const char *space = len < 3 || len - 1 > v->max_len ? NULL : memchr(s + 1, ' ', len - 1);
    r->n_lost++; /* until all three are found */
    if (space == NULL) return;
    size_t n_left = (size_t)(space - s), n_right = len - n_left - 1;
    char joined[QSF_TOKEN_TEXT_MAX];
    memcpy(joined, s, n_left);
    memcpy(joined + n_left, space + 1, n_right);
    int32_t merged = qsf_vocab_find_model(v, joined, len - 1);
    int32_t left = qsf_vocab_find_model(v, s, n_left), right = qsf_vocab_find_model(v, space + 1, n_right);
    if (merged < 0 || left < 0 || right < 0) return;
    r->n_lost--;
    if (!(r->trained ? qsf_vocab_plain : qsf_vocab_mergeable)(v, merged)) return;
    QsfRank *slot = find_slot(r, (uint32_t)left, (uint32_t)right);
    if (slot->rank != EMPTY && !r->trained) return; /* listed twice */
    uint32_t m = (uint32_t)merged;
    slot->a = (uint32_t)left | m << ID_BITS;
    slot->b = (uint32_t)right | m >> LOW_BITS << ID_BITS;
    r->n += slot->rank == EMPTY;
    slot->rank = rank;
}

int qsf_ranks_load(QsfRanks *r, const QsfSource *src, const QsfVocab *v, uint32_t n, QsfArena *arena,
                   QsfErr *err) {
    *r = (QsfRanks){ .n_slots = slots_for(n),
                     .trained = r->trained,
                     .key = qsf_hash_bytes(KEY_MERGES, sizeof KEY_MERGES) };
    r->slot = qsf_arena_alloc(arena, (size_t)r->n_slots * sizeof *r->slot, sizeof(uint32_t), err);
    if (r->slot == NULL) return err->code;
    memset(r->slot, 0xFF, (size_t)r->n_slots * sizeof *r->slot);
    QsfMetaArray a;
    bool present;
    int rc = qsf_meta_array_open(src, KEY_MERGES, QSF_META_STRING, &a, &present, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = 0; i < n && rc == QSF_OK; i++) {
        const char *s;
        size_t len;
        rc = qsf_meta_array_str(&a, &s, &len, err);
        if (rc == QSF_OK) add_merge(r, v, s, len, i);
        if (rc == QSF_OK && i % 1024 == 0) rc = qsf_interrupt_check(err);
    }
    qsf_meta_array_close(&a);
    return rc;
}
