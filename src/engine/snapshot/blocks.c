/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/snapshot/blocks.h"

#include <string.h>

#include "src/base/crc32.h"
#include "src/kv/cache.h"

/* The table: the number of blocks and the floats of a state, then of each block these words, then the first
 * rows of its caches. */
enum { N_CACHES, VALUES, ROW_LOW, ROW_HIGH, BLOCK_WORDS };
#define START_WORDS 2u

static void start_words(const QsfNextn *x, uint32_t w[START_WORDS]) {
    w[0] = qsf_nextn_n(x);
    w[1] = qsf_nextn_hidden(x);
}

/* What the bytes of its rows depend on, besides the model and the tokens. */
static void block_words(const QsfForward *f, uint32_t w[BLOCK_WORDS]) {
    char values[QSF_FORWARD_VALUES];
    const uint64_t row = qsf_forward_row_bytes(f, 0, NULL);
    qsf_forward_values(f, values);
    w[N_CACHES] = qsf_forward_n_caches(f);
    w[VALUES] = qsf_crc32(0, values, sizeof values);
    w[ROW_LOW] = (uint32_t)row;
    w[ROW_HIGH] = (uint32_t)(row >> 32);
}

static uint64_t states_bytes(const QsfNextn *x, const QsfSnapSegment *g) {
    return (uint64_t)g->n_states * qsf_nextn_hidden(x) * sizeof(float);
}

static uint64_t segment_bytes(const QsfNextn *x, const QsfSnapBlocks *b) {
    uint64_t sum = QSF_SNAP_HEAD + 4 * START_WORDS + 4 + states_bytes(x, &b->seg) + 4 + QSF_SNAP_TAIL;
    for (uint32_t i = 0; i < qsf_nextn_n(x); i++) {
        const QsfForward *f = qsf_nextn_pass(x, i);
        sum += 4 * (BLOCK_WORDS + (uint64_t)qsf_forward_n_caches(f));
        for (uint32_t row = b->seg.from / QK_KV_TILE; row < qk_kv_tiles(b->seg.to); row++)
            sum += qsf_forward_row_bytes(f, row, b->first[i]) + 4;
    }
    return sum;
}

/* ---- writing ---- */

uint64_t qsf_snap_blocks_prepare(QsfSnapBlocks *b, const QsfNextn *x, const QsfSnapSegment *g) {
    if (x == NULL || g->lists || !qsf_nextn_can_save(x, g->to)) return 0;
    const uint32_t known = qsf_nextn_states_from(x, g->to), from = known > g->from ? known : g->from;
    b->seg = (QsfSnapSegment){ .from = g->from, .to = g->to, .n_states = g->to - from };
    for (uint32_t i = 0; i < qsf_nextn_n(x); i++)
        qsf_forward_first_rows(qsf_nextn_pass(x, i), g->from / QK_KV_TILE, b->first[i]);
    return b->seg.bytes = segment_bytes(x, b);
}

static bool push(void *arg, uint8_t *tile, size_t bytes) { return qsf_snap_write(arg, tile, bytes); }

static bool write_table(QsfSnapStream *s, const QsfNextn *x, const QsfSnapBlocks *b) {
    uint32_t start[START_WORDS], w[BLOCK_WORDS];
    start_words(x, start);
    qsf_snap_begin(s);
    bool ok = qsf_snap_write_u32(s, start, START_WORDS);
    for (uint32_t i = 0; ok && i < qsf_nextn_n(x); i++) {
        block_words(qsf_nextn_pass(x, i), w);
        ok = qsf_snap_write_u32(s, w, BLOCK_WORDS) && qsf_snap_write_u32(s, b->first[i], w[N_CACHES]);
    }
    return ok && qsf_snap_write_crc(s);
}

static bool write_states(QsfSnapStream *s, const QsfNextn *x, const QsfSnapSegment *g) {
    const size_t bytes = qsf_nextn_hidden(x) * sizeof(float);
    qsf_snap_begin(s);
    for (uint32_t pos = g->to - g->n_states; pos < g->to; pos++)
        if (!qsf_snap_write(s, qsf_nextn_state(x, pos), bytes)) return false;
    return qsf_snap_write_crc(s);
}

bool qsf_snap_blocks_write(QsfSnapStream *s, const QsfNextn *x, const QsfSnapBlocks *b, bool (*stop)(void *),
                           void *arg) {
    if (!qsf_snap_put_head(s, &b->seg, QSF_SNAP_BLOCKS) || !write_table(s, x, b)) return false;
    for (uint32_t i = 0; i < qsf_nextn_n(x); i++)
        for (uint32_t row = b->seg.from / QK_KV_TILE; row < qk_kv_tiles(b->seg.to); row++) {
            if (stop != NULL && stop(arg)) return false;
            qsf_snap_begin(s);
            if (!qsf_forward_row(qsf_nextn_pass(x, i), row, b->first[i], push, s) || !qsf_snap_write_crc(s))
                return false;
        }
    return write_states(s, x, &b->seg) && qsf_snap_put_tail(s, &b->seg, QSF_SNAP_BLOCKS);
}

/* ---- reading ---- */

static bool pull(void *arg, uint8_t *tile, size_t bytes) { return qsf_snap_read(arg, tile, bytes); }

static QsfSnapBlocksFound read_table(QsfSnapStream *s, const QsfNextn *x, QsfSnapBlocks *b) {
    uint8_t head[QSF_SNAP_HEAD];
    uint32_t start[START_WORDS], is[START_WORDS], w[BLOCK_WORDS], own[BLOCK_WORDS];
    start_words(x, start);
    if (!qsf_snap_read(s, head, sizeof head)) return QSF_SNAP_BLOCKS_DAMAGED;
    qsf_snap_begin(s);
    if (!qsf_snap_read_u32(s, is, START_WORDS)) return QSF_SNAP_BLOCKS_DAMAGED;
    if (memcmp(is, start, sizeof is) != 0) return QSF_SNAP_BLOCKS_NONE;
    for (uint32_t i = 0; i < qsf_nextn_n(x); i++) {
        block_words(qsf_nextn_pass(x, i), own);
        if (!qsf_snap_read_u32(s, w, BLOCK_WORDS)) return QSF_SNAP_BLOCKS_DAMAGED;
        if (memcmp(w, own, sizeof w) != 0) return QSF_SNAP_BLOCKS_NONE;
        if (!qsf_snap_read_u32(s, b->first[i], own[N_CACHES])) return QSF_SNAP_BLOCKS_DAMAGED;
    }
    return qsf_snap_read_crc(s) ? QSF_SNAP_BLOCKS_READ : QSF_SNAP_BLOCKS_DAMAGED;
}

/* The same bounds as for other segments; a gap before the rows is not closed by what came earlier. */
static bool take_first(const QsfNextn *x, const QsfSnapBlocks *b,
                       uint32_t have[QSF_NEXTN_BLOCKS][QSF_MAX_LAYERS]) {
    const uint32_t row = b->seg.from / QK_KV_TILE;
    for (uint32_t i = 0; i < qsf_nextn_n(x); i++)
        for (uint32_t c = 0; c < qsf_forward_n_caches(qsf_nextn_pass(x, i)); c++) {
            const uint32_t first = b->first[i][c];
            if (first < row || first > qk_kv_tiles(b->seg.to)) return false;
            if (first > row) have[i][c] = first * QK_KV_TILE;
        }
    return b->seg.n_states <= QSF_NEXTN_DRAFTS && b->seg.n_states <= b->seg.to - b->seg.from &&
           b->seg.bytes == segment_bytes(x, b);
}

/* Rows at and after `end` are passed over. */
static bool skip(QsfSnapStream *s, uint64_t bytes) {
    uint8_t none[256];
    for (size_t part; bytes > 0; bytes -= part) {
        part = bytes < sizeof none ? (size_t)bytes : sizeof none;
        if (!qsf_snap_read(s, none, part)) return false;
    }
    return true;
}

static bool read_rows(QsfSnapStream *s, QsfForward *f, const QsfSnapSegment *g, const uint32_t *first,
                      uint32_t end) {
    for (uint32_t row = g->from / QK_KV_TILE; row < qk_kv_tiles(g->to); row++) {
        qsf_snap_begin(s);
        const bool wanted = row < qk_kv_tiles(end);
        const uint64_t bytes = wanted ? 0 : qsf_forward_row_bytes(f, row, first);
        if (!(wanted ? qsf_forward_row(f, row, first, pull, s) : skip(s, bytes)) || !qsf_snap_read_crc(s))
            return false;
    }
    return true;
}

static bool read_states(QsfSnapStream *s, const QsfNextn *x, const QsfSnapSegment *g, uint32_t end,
                        uint32_t *from) {
    const size_t bytes = qsf_nextn_hidden(x) * sizeof(float);
    const uint32_t first = g->to - g->n_states;
    *from = first < end ? first : end;
    qsf_snap_begin(s);
    for (uint32_t pos = first; pos < g->to; pos++)
        if (!(pos < end ? qsf_snap_read(s, qsf_nextn_state(x, pos), bytes) : skip(s, bytes))) return false;
    return qsf_snap_read_crc(s);
}

QsfSnapBlocksFound qsf_snap_blocks_read(QsfSnapStream *s, QsfNextn *x, const QsfSnapSegment *g, uint32_t end,
                                        QsfSnapBlocks *b, uint32_t have[QSF_NEXTN_BLOCKS][QSF_MAX_LAYERS],
                                        uint32_t *from) {
    b->seg = (QsfSnapSegment){
        .from = g->from, .to = g->to, .n_states = g->blocks_states, .bytes = g->blocks_bytes
    };
    const QsfSnapBlocksFound found = read_table(s, x, b);
    if (found != QSF_SNAP_BLOCKS_READ) return found;
    bool ok = take_first(x, b, have);
    for (uint32_t i = 0; ok && i < qsf_nextn_n(x); i++)
        ok = read_rows(s, qsf_nextn_pass(x, i), &b->seg, b->first[i], end);
    return ok && read_states(s, x, &b->seg, end, from) ? QSF_SNAP_BLOCKS_READ : QSF_SNAP_BLOCKS_DAMAGED;
}
