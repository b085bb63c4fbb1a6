/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Open addressing with linear probing. Keys come from files, so the hash is keyed per process
 * (SipHash-1-3, Aumasson and Bernstein): a crafted vocabulary cannot make every key collide. */
#include "src/base/hashmap.h"

#include <string.h>

#include "src/base/platform.h"

static uint64_t rotl(uint64_t x, int b) { return x << b | x >> (64 - b); }

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = rotl(v[1], 13) ^ v[0], v[0] = rotl(v[0], 32);
    v[2] += v[3], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotl(v[1], 17) ^ v[2], v[2] = rotl(v[2], 32);
}

uint64_t qsf_hash_bytes(const void *p, size_t len) {
    uint64_t key[2], m;
    qsf_os_process_key(key);
    uint64_t v[4] = { key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                      key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u };
    const unsigned char *s = p;
    size_t left = len;
    for (; left >= 8; left -= 8, s += 8) {
        memcpy(&m, s, 8);
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    m = (uint64_t)len << 56;
    for (size_t i = 0; i < left; i++) m |= (uint64_t)s[i] << (8 * i);
    v[3] ^= m;
    sip_round(v);
    v[0] ^= m;
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int qsf_hashmap_init(QsfHashmap *m, QsfArena *a, uint32_t n, QsfKeyFn key, const void *owner, QsfErr *err) {
    *m = (QsfHashmap){ .owner = owner, .key = key };
    if (n > INT32_MAX / 2) return qsf_err_set(err, QSF_E_RUNTIME, "hash table of %u entries is too large", n);
    uint32_t slots = 4;
    while (slots < n + n / 3 + 1) slots *= 2;
    m->slots = qsf_arena_alloc(a, (size_t)slots * sizeof *m->slots, sizeof *m->slots, err);
    if (m->slots == NULL) return err != NULL ? err->code : QSF_E_RUNTIME;
    memset(m->slots, 0xFF, (size_t)slots * sizeof *m->slots);
    m->n_slots = slots;
    return QSF_OK;
}

/* Returns the slot that holds the key, or the empty slot where it belongs. */
static uint32_t find_slot(const QsfHashmap *m, const char *key, size_t len) {
    uint32_t mask = m->n_slots - 1;
    uint32_t i = (uint32_t)qsf_hash_bytes(key, len) & mask;
    while (m->slots[i] >= 0) {
        size_t have_len;
        const char *have = m->key(m->owner, m->slots[i], &have_len);
        if (have_len == len && (len == 0 || memcmp(have, key, len) == 0)) break;
        i = (i + 1) & mask;
    }
    return i;
}

int32_t qsf_hashmap_put(QsfHashmap *m, int32_t id) {
    size_t len;
    const char *key = m->key(m->owner, id, &len);
    uint32_t i = find_slot(m, key, len);
    if (m->slots[i] < 0 && m->n + 1 < m->n_slots) { /* one slot stays empty: it ends every probe */
        m->slots[i] = id;
        m->n++;
    }
    return m->slots[i];
}

int32_t qsf_hashmap_get(const QsfHashmap *m, const char *key, size_t len) {
    if (m->n_slots == 0) return -1;
    return m->slots[find_slot(m, key, len)];
}
