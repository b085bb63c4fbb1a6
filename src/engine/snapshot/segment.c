/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments of a snapshot's file: implements the second part of snapshot/file.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/base/bytes.h"
#include "src/base/crc32.h"
#include "src/engine/snapshot/file.h"
#include "src/kv/cache.h"

/* --- reads and writes the file of a snapshot in order, with checksums --- */

void qsf_snap_stream(QsfSnapStream *s, int fd, uint64_t at, uint64_t limit, uint8_t *buf, size_t cap) {
    *s = (QsfSnapStream){ .fd = fd, .at = at, .limit = limit, .buf = buf, .cap = cap };
}

static bool fail(QsfSnapStream *s, int why) {
    s->failed = true;
    s->why = why;
    return false;
}

static bool refill(QsfSnapStream *s) {
    s->at += s->len;
    const uint64_t left = s->limit > s->at ? s->limit - s->at : 0;
    const size_t want = left < s->cap ? (size_t)left : s->cap;
    ssize_t n = 0;
    if (want > 0) do
            n = pread(s->fd, s->buf, want, (off_t)s->at);
        while (n < 0 && errno == EINTR);
    s->pos = 0;
    s->len = n > 0 ? (size_t)n : 0;
    return n > 0 || fail(s, n < 0 ? errno : 0);
}

bool qsf_snap_read(QsfSnapStream *s, void *dst, size_t n) {
    uint8_t *to = dst;
    while (n > 0 && !s->failed) {
        if (s->pos == s->len && !refill(s)) return false;
        const size_t part = s->len - s->pos < n ? s->len - s->pos : n;
        memcpy(to, s->buf + s->pos, part);
        s->crc = qsf_crc32(s->crc, to, part);
        s->pos += part;
        to += part;
        n -= part;
    }
    return !s->failed;
}

static bool snap_flush(QsfSnapStream *s) {
    for (size_t done = 0; done < s->pos && !s->failed;) {
        const ssize_t n = pwrite(s->fd, s->buf + done, s->pos - done, (off_t)s->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(s, n < 0 ? errno : EIO);
        done += (size_t)n;
        s->at += (uint64_t)n;
    }
    s->pos = 0;
    return !s->failed;
}

bool qsf_snap_write(QsfSnapStream *s, const void *src, size_t n) {
    const uint8_t *from = src;
    while (n > 0 && !s->failed) {
        if (s->pos == s->cap && !snap_flush(s)) return false;
        const size_t part = s->cap - s->pos < n ? s->cap - s->pos : n;
        memcpy(s->buf + s->pos, from, part);
        s->crc = qsf_crc32(s->crc, from, part);
        s->pos += part;
        from += part;
        n -= part;
    }
    return !s->failed;
}

bool qsf_snap_read_u32(QsfSnapStream *s, uint32_t *v, size_t n) {
    uint8_t b[4];
    for (size_t i = 0; i < n; i++) {
        if (!qsf_snap_read(s, b, sizeof b)) return false;
        v[i] = qsf_get_le32(b);
    }
    return true;
}

bool qsf_snap_write_u32(QsfSnapStream *s, const uint32_t *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t b[4] = { (uint8_t)v[i], (uint8_t)(v[i] >> 8), (uint8_t)(v[i] >> 16),
                               (uint8_t)(v[i] >> 24) };
        if (!qsf_snap_write(s, b, sizeof b)) return false;
    }
    return true;
}

bool qsf_snap_read_crc(QsfSnapStream *s) {
    const uint32_t is = s->crc;
    uint32_t expected;
    if (!qsf_snap_read_u32(s, &expected, 1)) return false;
    return is == expected || fail(s, 0);
}

bool qsf_snap_write_crc(QsfSnapStream *s) {
    const uint32_t crc = s->crc;
    return qsf_snap_write_u32(s, &crc, 1);
}

#define SEGMENT 0x31474553u /* "SEG1" */
#define DONE    0x454E4F44u /* "DONE" */
#define HEAD    QSF_SNAP_HEAD
#define TAIL    QSF_SNAP_TAIL
#define CTX_MAX (1u << 24)

/* ---- heads ---- */

static void put_head(uint8_t h[HEAD], const QsfSnapSegment *g, uint32_t kind) {
    memset(h, 0, HEAD);
    qsf_put_le32(h, SEGMENT);
    qsf_put_le32(h + 4, kind);
    qsf_put_le32(h + 8, g->from);
    qsf_put_le32(h + 12, g->to);
    qsf_put_le32(h + 16, g->n_states);
    qsf_put_le64(h + 24, g->bytes);
    qsf_put_le32(h + 36, qsf_crc32(0, h, 36));
}

/* Reads the head of the segment at g->at, and finds the mark at its end. */
static bool find(const QsfSnapFile *s, QsfSnapSegment *g, uint32_t *kind) {
    uint8_t h[HEAD], tail[TAIL];
    if (g->at > s->size || s->size - g->at < HEAD + TAIL) return false;
    if (pread(s->fd, h, HEAD, (off_t)g->at) != HEAD) return false;
    if (qsf_get_le32(h) != SEGMENT || qsf_get_le32(h + 36) != qsf_crc32(0, h, 36)) return false;
    *kind = qsf_get_le32(h + 4);
    g->from = qsf_get_le32(h + 8);
    g->to = g->upto = qsf_get_le32(h + 12);
    g->n_states = qsf_get_le32(h + 16);
    g->bytes = qsf_get_le64(h + 24);
    if (g->to <= g->from || g->to > CTX_MAX) return false;
    if (g->bytes < HEAD + TAIL || g->bytes > s->size - g->at) return false;
    if (pread(s->fd, tail, TAIL, (off_t)(g->at + g->bytes - TAIL)) != TAIL) return false;
    return qsf_get_le32(tail) == DONE && qsf_get_le32(tail + 4) == qsf_get_le32(h + 36);
}

bool qsf_snap_find_segment(const QsfSnapFile *s, QsfSnapSegment *g) {
    uint32_t kind;
    if (!find(s, g, &kind) || (kind != QSF_SNAP_POSITIONS && kind != QSF_SNAP_LISTS)) return false;
    g->lists = kind == QSF_SNAP_LISTS;
    return (g->lists ? g->from == 0 : g->from % QK_KV_TILE == 0) && g->n_states <= QSF_SNAP_STATES;
}

void qsf_snap_find_blocks(const QsfSnapFile *s, QsfSnapSegment *g) {
    uint32_t kind;
    QsfSnapSegment b = { .at = g->at + g->bytes };
    const bool ok = find(s, &b, &kind) && kind == QSF_SNAP_BLOCKS && b.from == g->from && b.to == g->to;
    g->blocks_at = ok ? b.at : 0;
    g->blocks_bytes = ok ? b.bytes : 0;
    g->blocks_states = ok ? b.n_states : 0;
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

bool qsf_snap_put_head(QsfSnapStream *s, const QsfSnapSegment *g, uint32_t kind) {
    uint8_t head[HEAD];
    put_head(head, g, kind);
    return qsf_snap_write(s, head, HEAD);
}

bool qsf_snap_put_tail(QsfSnapStream *s, const QsfSnapSegment *g, uint32_t kind) {
    uint8_t head[HEAD], tail[TAIL];
    put_head(head, g, kind);
    qsf_put_le32(tail, DONE);
    qsf_put_le32(tail + 4, qsf_get_le32(head + 36));
    return qsf_snap_write(s, tail, TAIL) && snap_flush(s);
}

static uint32_t kind_of(const QsfSnapSegment *g) { return g->lists ? QSF_SNAP_LISTS : QSF_SNAP_POSITIONS; }

static bool write_table(QsfSnapStream *s, const QsfSnapKey *key, const QsfSnapSegment *g,
                        const QsfSnapTable *t, const int32_t *ids) {
    if (!qsf_snap_put_head(s, g, kind_of(g))) return false;
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
    whole.bytes = qsf_snap_segment_bytes(f, key, g, t);
    if (!write_table(s, key, &whole, t, ids)) return false;
    if (!(g->lists ? write_lists : write_rows)(s, f, g, t, &ask)) return false;
    for (uint32_t i = 0; i < g->n_states; i++) {
        qsf_snap_begin(s);
        if (!qsf_snap_write(s, qsf_forward_state(f, t->state_pos[i]), (size_t)key->state_bytes)) return false;
        if (!qsf_snap_write_crc(s)) return false;
    }
    return qsf_snap_put_tail(s, &whole, kind_of(g));
}
