/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments of a snapshot's file: implements the second part of snapshot/file.h. */
#include <string.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/engine/snapshot/file.h"
#include "src/engine/snapshot/number.h"
#include "src/kv/cache.h"

#define SEGMENT   0x31474553u /* "SEG1" */
#define DONE      0x454E4F44u /* "DONE" */
#define POSITIONS 1u          /* kinds of segments: adjacent positions; caches with lists */
#define LISTS     2u
#define HEAD      40u /* bytes of a segment's head */
#define TAIL      QSF_SNAP_TAIL
#define CTX_MAX   (1u << 24)

/* ---- heads ---- */

static void put_head(uint8_t h[HEAD], const QsfSnapSegment *g) {
    memset(h, 0, HEAD);
    qsf_snap_put32(h, SEGMENT);
    qsf_snap_put32(h + 4, g->lists ? LISTS : POSITIONS);
    qsf_snap_put32(h + 8, g->from);
    qsf_snap_put32(h + 12, g->to);
    qsf_snap_put32(h + 16, g->n_states);
    qsf_snap_put64(h + 24, g->bytes);
    qsf_snap_put32(h + 36, qsf_crc32(0, h, 36));
}

bool qsf_snap_find_segment(const QsfSnapFile *s, QsfSnapSegment *g) {
    uint8_t h[HEAD], tail[TAIL];
    if (g->at > s->size || s->size - g->at < HEAD + TAIL) return false;
    if (pread(s->fd, h, HEAD, (off_t)g->at) != HEAD) return false;
    const uint32_t kind = qsf_snap_get32(h + 4);
    if (qsf_snap_get32(h) != SEGMENT || (kind != POSITIONS && kind != LISTS) ||
        qsf_snap_get32(h + 36) != qsf_crc32(0, h, 36))
        return false;
    g->lists = kind == LISTS;
    g->from = qsf_snap_get32(h + 8);
    g->to = g->upto = qsf_snap_get32(h + 12);
    g->n_states = qsf_snap_get32(h + 16);
    g->bytes = qsf_snap_get64(h + 24);
    if ((g->lists ? g->from != 0 : g->from % QK_KV_TILE != 0) || g->to <= g->from || g->to > CTX_MAX ||
        g->n_states > QSF_SNAP_STATES)
        return false;
    if (g->bytes < HEAD + TAIL || g->bytes > s->size - g->at) return false;
    if (pread(s->fd, tail, TAIL, (off_t)(g->at + g->bytes - TAIL)) != TAIL) return false;
    return qsf_snap_get32(tail) == DONE && qsf_snap_get32(tail + 4) == qsf_snap_get32(h + 36);
}

/* ---- tables ---- */

static bool rows_ok(const QsfSnapFile *f, const QsfSnapSegment *g, const QsfSnapTable *t) {
    const uint32_t row = g->lists ? 0 : g->from / QK_KV_TILE;
    for (uint32_t i = 0; i < f->key.n_caches; i++)
        if (t->first[i] < row || t->first[i] > CTX_MAX / QK_KV_TILE) return false;
    for (uint32_t i = 0; i < g->n_states; i++)
        if (t->state_pos[i] <= (i > 0 ? t->state_pos[i - 1] : g->from) || t->state_pos[i] > g->to)
            return false;
    return true;
}

static uint32_t n_words(const QsfSnapSegment *g) { return g->lists ? QSF_LISTS_WORDS : 0; }

static uint64_t table_bytes(const QsfSnapKey *key, const QsfSnapSegment *g) {
    return HEAD + 4 * ((uint64_t)n_words(g) + key->n_caches + g->n_states + (g->to - g->from) + 1);
}

uint64_t qsf_snap_rows_at(const QsfSnapKey *key, const QsfSnapSegment *g) {
    return g->at + table_bytes(key, g);
}

bool qsf_snap_read_table(QsfSnapStream *s, const QsfSnapFile *f, const QsfSnapSegment *g, QsfSnapTable *t,
                         const int32_t *ids, uint32_t n, uint32_t *same, int32_t *out) {
    uint8_t head[HEAD];
    uint32_t id = 0;
    bool equal = true;
    *same = 0;
    if (!qsf_snap_read(s, head, HEAD)) return false;
    qsf_snap_begin(s);
    if (!qsf_snap_read_u32(s, t->words, n_words(g)) || !qsf_snap_read_u32(s, t->first, f->key.n_caches) ||
        !qsf_snap_read_u32(s, t->state_pos, g->n_states))
        return false;
    for (uint32_t i = g->from; i < g->to; i++) {
        if (!qsf_snap_read_u32(s, &id, 1)) return false;
        equal = equal && i < n && i < g->upto && (uint32_t)ids[i] == id;
        *same += equal;
        if (out != NULL) out[i - g->from] = (int32_t)id;
    }
    return qsf_snap_read_crc(s) && rows_ok(f, g, t);
}

/* ---- writing ---- */

uint64_t qsf_snap_segment_bytes(const QsfForward *f, const QsfSnapKey *key, const QsfSnapSegment *g,
                                const QsfSnapTable *t) {
    uint64_t sum = table_bytes(key, g) + TAIL;
    for (uint32_t row = g->from / QK_KV_TILE; !g->lists && row < qk_kv_tiles(g->to); row++)
        sum += qsf_forward_row_bytes(f, row, t->first) + 4;
    for (uint32_t i = 0; g->lists && i < key->n_caches; i++)
        sum += qsf_forward_lists_bytes(f, i, t->words, t->first, g->to) + 4;
    return sum + g->n_states * (key->state_bytes + 4);
}

static bool push(void *arg, uint8_t *tile, size_t bytes) { return qsf_snap_write(arg, tile, bytes); }

static bool write_table(QsfSnapStream *s, const QsfSnapKey *key, const QsfSnapSegment *g,
                        const QsfSnapTable *t, const int32_t *ids) {
    uint8_t head[HEAD];
    put_head(head, g);
    if (!qsf_snap_write(s, head, HEAD)) return false;
    qsf_snap_begin(s);
    if (!qsf_snap_write_u32(s, t->words, n_words(g))) return false;
    if (!qsf_snap_write_u32(s, t->first, key->n_caches)) return false;
    if (!qsf_snap_write_u32(s, t->state_pos, g->n_states)) return false;
    for (uint32_t i = g->from; i < g->to; i++) {
        const uint32_t id = (uint32_t)ids[i];
        if (!qsf_snap_write_u32(s, &id, 1)) return false;
    }
    return qsf_snap_write_crc(s);
}

typedef struct Stop {
    bool (*ask)(void *);
    void *arg;
} Stop;

static bool write_rows(QsfSnapStream *s, QsfForward *f, const QsfSnapSegment *g, const QsfSnapTable *t,
                       const Stop *stop) {
    for (uint32_t row = g->from / QK_KV_TILE; row < qk_kv_tiles(g->to); row++) {
        if (stop->ask != NULL && stop->ask(stop->arg)) return false;
        qsf_snap_begin(s);
        if (!qsf_forward_row(f, row, t->first, push, s) || !qsf_snap_write_crc(s)) return false;
    }
    return true;
}

static bool write_lists(QsfSnapStream *s, QsfForward *f, const QsfSnapSegment *g, const QsfSnapTable *t,
                        const Stop *stop) {
    for (uint32_t i = 0; i < qsf_forward_n_caches(f); i++) {
        if (stop->ask != NULL && stop->ask(stop->arg)) return false;
        qsf_snap_begin(s);
        if (!qsf_forward_lists_cache(f, i, t->first, g->to, push, s) || !qsf_snap_write_crc(s)) return false;
    }
    return true;
}

bool qsf_snap_write_segment(QsfSnapStream *s, QsfForward *f, const QsfSnapKey *key, const QsfSnapSegment *g,
                            const QsfSnapTable *t, const int32_t *ids, bool (*stop)(void *), void *arg) {
    const Stop ask = { stop, arg };
    QsfSnapSegment whole = *g;
    uint8_t head[HEAD], tail[TAIL];
    whole.bytes = qsf_snap_segment_bytes(f, key, g, t);
    if (!write_table(s, key, &whole, t, ids)) return false;
    if (!(g->lists ? write_lists : write_rows)(s, f, g, t, &ask)) return false;
    for (uint32_t i = 0; i < g->n_states; i++) {
        qsf_snap_begin(s);
        if (!qsf_snap_write(s, qsf_forward_state(f, t->state_pos[i]), (size_t)key->state_bytes)) return false;
        if (!qsf_snap_write_crc(s)) return false;
    }
    put_head(head, &whole);
    qsf_snap_put32(tail, DONE);
    qsf_snap_put32(tail + 4, qsf_snap_get32(head + 36));
    return qsf_snap_write(s, tail, TAIL) && qsf_snap_flush(s);
}
