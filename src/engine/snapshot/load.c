/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads a snapshot. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/platform.h"
#include "src/engine/model_info.h"
#include "src/engine/snapshot/blocks.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/kv/cache.h"

int qsf_snapshot_key(QsfSnapKey *key, const QsfRuntime *rt, QsfErr *err) {
    const uint64_t model = key->model;
    memset(key, 0, sizeof *key);
    key->model = model;
    key->n_caches = qsf_forward_n_caches(rt->fwd);
    key->state_bytes = qsf_forward_state_bytes(rt->fwd);
    key->row_bytes = qsf_forward_row_bytes(rt->fwd, 0, NULL);
    qsf_forward_values(rt->fwd, key->values);
    return model != 0 ? QSF_OK : qsf_model_identity(rt->model.src, &key->model, err);
}

typedef struct Load {
    QsfSnapFile file;
    QsfForward *f;
    QsfSnapStream s;
    QsfSnapTable table;
    uint32_t have[QSF_MAX_LAYERS];     /* first position of each cache */
    uint32_t segments, n;              /* to load, and positions */
    uint32_t lead;                     /* of the timeline */
    uint32_t state[QSF_SNAP_SEGMENTS]; /* (file.n) the newest state of each segment, 0 = none; that is read */
    QsfSnapBlocks blocks;
    uint32_t blocks_have[QSF_NEXTN_BLOCKS][QSF_MAX_LAYERS]; /* as have */
    bool other;                                             /* an error is about settings, not damage */
    const atomic_int *cancel;                               /* may be NULL */
} Load;

static void stream_at(Load *l, uint64_t at, uint64_t limit) {
    size_t cap;
    uint8_t *buf = qsf_forward_scratch(l->f, &cap);
    qsf_snap_stream(&l->s, l->file.fd, at, limit < l->file.end ? limit : l->file.end, buf, cap);
}

static bool cancelled(const Load *l) { return l->cancel != NULL && atomic_load(l->cancel) != 0; }

static int damaged(const Load *l, QsfErr *err) {
    if (cancelled(l)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    if (l->s.why == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: the snapshot is damaged", l->file.path);
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot read the snapshot: %s", l->file.path,
                       strerror(l->s.why));
}

/* ---- how much of it? ---- */

/* Where the caches begin after segment k: a gap before its rows is not closed by what came earlier. */
static void add_gaps(Load *l, const QsfSnapSegment *g) {
    for (uint32_t i = 0; i < l->file.key.n_caches; i++)
        if (l->table.first[i] > g->from / QK_KV_TILE) l->have[i] = l->table.first[i] * QK_KV_TILE;
}

/* Positions of segment g, the newest of those read so far, at which a conversation of n
 * positions can continue. */
static uint32_t continues_at(const Load *l, const QsfSnapSegment *g, uint32_t n) {
    uint32_t pos = 0;
    if (l->file.key.state_bytes == 0) pos = n;
    for (uint32_t i = 0; i < g->n_states && l->table.state_pos[i] <= n; i++) pos = l->table.state_pos[i];
    return pos > 0 && qsf_forward_is_enough(l->f, pos, l->have) ? pos : 0;
}

/* Fills l->n and l->segments: as many of ids[0..n) as can be loaded. */
static int choose(Load *l, const int32_t *ids, uint32_t n, QsfErr *err) {
    uint32_t have[QSF_MAX_LAYERS] = { 0 };
    for (uint32_t k = 0; k < l->file.n; k++) {
        const QsfSnapSegment *g = &l->file.seg[k];
        uint32_t same;
        stream_at(l, g->at, qsf_snap_rows_at(&l->file.key, g));
        if (!qsf_snap_read_table(&l->s, &l->file, g, &l->table, ids, n, &same, NULL)) return damaged(l, err);
        if (same == 0) break;
        add_gaps(l, g);
        l->state[k] = 0;
        for (uint32_t i = 0; i < g->n_states && l->table.state_pos[i] <= g->from + same; i++)
            l->state[k] = l->table.state_pos[i];
        const uint32_t pos = continues_at(l, g, g->from + same);
        if (pos > 0) {
            l->n = pos;
            l->segments = k + 1;
            memcpy(have, l->have, sizeof have);
        }
        if (g->from + same < g->upto) break;
    }
    memcpy(l->have, have, sizeof have);
    return QSF_OK;
}

/* ---- reading ---- */

static bool pull(void *arg, uint8_t *tile, size_t bytes) { return qsf_snap_read(arg, tile, bytes); }

static bool read_rows(Load *l, const QsfSnapSegment *g, uint32_t end) {
    for (uint32_t row = g->from / QK_KV_TILE; row < qk_kv_tiles(end); row++) {
        if (cancelled(l)) return false;
        qsf_snap_begin(&l->s);
        if (!qsf_forward_row(l->f, row, l->table.first, pull, &l->s) || !qsf_snap_read_crc(&l->s))
            return false;
    }
    return true;
}

/* From segments before the newest ones only states that are far apart are read: those of old messages. */
static void choose_states(Load *l) {
    uint32_t gap = QSF_SNAP_APART, last = l->n;
    for (uint32_t k = l->segments; k-- > 0;) {
        if (k + QSF_SNAP_NEWEST >= l->segments) {
            if (l->state[k] > 0 && l->state[k] < last) last = l->state[k];
        } else if (l->state[k] == 0 || l->state[k] + gap > last) {
            l->state[k] = 0;
        } else {
            last = l->state[k];
            gap *= 2;
        }
    }
}

/* The states follow the rows of the whole segment. Read are all of them, or `one` and the one after what
 * other conversations begin with. */
static bool read_states(Load *l, const QsfSnapSegment *g, uint32_t end, bool all, uint32_t one) {
    const uint64_t bytes = l->file.key.state_bytes;
    uint64_t at = g->at + g->bytes - QSF_SNAP_TAIL - g->n_states * (bytes + 4);
    for (uint32_t i = 0; i < g->n_states && l->table.state_pos[i] <= end; i++, at += bytes + 4) {
        if (!all && l->table.state_pos[i] != l->lead && l->table.state_pos[i] != one) continue;
        stream_at(l, at, g->at + g->bytes);
        if (!qsf_snap_read(&l->s, qsf_forward_state_place(l->f), (size_t)bytes) || !qsf_snap_read_crc(&l->s))
            return false;
        qsf_forward_state_restored(l->f, l->table.state_pos[i]);
    }
    return true;
}

/* Is the length of the segment the one that its contents need? */
static bool length_ok(const Load *l, const QsfSnapSegment *g) {
    return g->bytes == qsf_snap_segment_bytes(l->f, &l->file.key, g, &l->table);
}

static bool read_all(Load *l, const int32_t *ids) {
    choose_states(l);
    for (uint32_t k = 0; k < l->segments; k++) {
        const QsfSnapSegment *g = &l->file.seg[k];
        const uint32_t end = l->n < g->upto ? l->n : g->upto;
        uint32_t same;
        stream_at(l, g->at, g->at + g->bytes);
        if (!qsf_snap_read_table(&l->s, &l->file, g, &l->table, ids, l->n, &same, NULL) || !length_ok(l, g) ||
            g->from + same < end || !read_rows(l, g, end))
            return false;
        if (!read_states(l, g, end, k + QSF_SNAP_NEWEST >= l->segments, l->state[k])) return false;
    }
    return true;
}

/* ---- next-token blocks ---- */

static bool has_blocks(const Load *l) {
    bool all = true;
    for (uint32_t k = 0; k < l->segments; k++) all = all && l->file.seg[k].blocks_bytes > 0;
    return all;
}

/* *from: the first position whose state was read. */
static QsfSnapBlocksFound read_blocks(Load *l, QsfNextn *x, uint32_t *from) {
    QsfSnapBlocksFound found = QSF_SNAP_BLOCKS_READ;
    for (uint32_t k = 0; found == QSF_SNAP_BLOCKS_READ && k < l->segments; k++) {
        const QsfSnapSegment *g = &l->file.seg[k];
        if (cancelled(l)) return QSF_SNAP_BLOCKS_DAMAGED;
        stream_at(l, g->blocks_at, g->blocks_at + g->blocks_bytes);
        found = qsf_snap_blocks_read(&l->s, x, g, l->n < g->upto ? l->n : g->upto, &l->blocks, l->blocks_have,
                                     from);
    }
    return found;
}

/* After the model's pass was restored. Where a file has other blocks, or has them only in a part, they begin
 * with the next position. false: the file is damaged. */
static bool restore_blocks(Load *l, QsfNextn *x) {
    uint32_t from = l->n;
    QsfErr none = { 0 };
    if (x == NULL || !has_blocks(l) || qsf_nextn_restore(x, l->n, &none) != QSF_OK) return true;
    const QsfSnapBlocksFound found = read_blocks(l, x, &from);
    bool ok = found == QSF_SNAP_BLOCKS_READ;
    for (uint32_t i = 0; ok && i < qsf_nextn_n(x); i++)
        ok = qsf_nextn_restored(x, i, l->n, l->blocks_have[i]);
    if (ok)
        qsf_nextn_states_restored(x, from, l->n);
    else
        qsf_nextn_empty(x);
    return found != QSF_SNAP_BLOCKS_DAMAGED;
}

static int restore(Load *l, QsfTimeline *t, const int32_t *ids, QsfErr *err) {
    QsfErr none = { 0 };
    t->n_ids = 0;
    qsf_speculate_cut(&t->rt->speculator, 0);
    int rc = qsf_forward_restore(l->f, l->n, err);
    if (rc != QSF_OK) return rc;
    qsf_os_advise(l->file.fd, 0, 0, QSF_ADVICE_SEQUENTIAL);
    if (!read_all(l, ids)) {
        (void)qsf_forward_restore(l->f, 0, &none); /* what was read of the states is worthless */
        return damaged(l, err);
    }
    qsf_forward_restored(l->f, l->n, l->have);
    if (!restore_blocks(l, t->rt->nextn)) {
        (void)qsf_forward_restore(l->f, 0, &none);
        return damaged(l, err);
    }
    memcpy(t->ids, ids, l->n * sizeof *ids);
    t->n_ids = l->n;
    return QSF_OK;
}

/* ---- lists ---- */

static bool is_listed(const Load *l) { return l->file.n > 0 && l->file.seg[0].lists; }

static bool read_lists(Load *l, QsfTimeline *t) {
    const QsfSnapSegment *g = &l->file.seg[0];
    uint32_t same;
    stream_at(l, g->at, g->at + g->bytes);
    if (!qsf_snap_read_table(&l->s, &l->file, g, &l->table, NULL, 0, &same, t->ids) || !length_ok(l, g) ||
        !qsf_forward_lists_begin(l->f, l->table.words, l->table.first, g->to))
        return false;
    for (uint32_t i = 0; i < l->file.key.n_caches; i++) {
        if (cancelled(l)) return false;
        qsf_snap_begin(&l->s);
        if (!qsf_forward_lists_cache(l->f, i, l->table.first, g->to, pull, &l->s) ||
            !qsf_snap_read_crc(&l->s))
            return false;
    }
    const bool stateless = l->file.key.state_bytes == 0;
    if (!stateless && (g->n_states == 0 || l->table.state_pos[g->n_states - 1] != g->to)) return false;
    return read_states(l, g, g->to, true, 0);
}

/* All of the conversation: the timeline cuts what follows the common prefix. */
static int restore_lists(Load *l, QsfTimeline *t, QsfErr *err) {
    const uint32_t n = l->file.seg[0].to, ctx = qsf_forward_ctx(l->f);
    QsfErr none = { 0 };
    t->n_ids = 0;
    qsf_speculate_cut(&t->rt->speculator, 0);
    int rc = qsf_timeline_grow(t, n, err);
    if (rc == QSF_OK) rc = qsf_forward_restore(l->f, n < ctx ? n : ctx, err);
    if (rc != QSF_OK) return rc;
    qsf_os_advise(l->file.fd, 0, 0, QSF_ADVICE_SEQUENTIAL);
    if (!read_lists(l, t)) {
        (void)qsf_forward_restore(l->f, 0, &none);
        return damaged(l, err);
    }
    qsf_forward_lists_done(l->f, l->table.first, n);
    t->n_ids = n;
    return QSF_OK;
}

static int other_settings(Load *l, QsfErr *err) {
    l->other = true;
    return qsf_err_set(err, QSF_E_MODEL, "%s: the snapshot was made with other settings (eviction, context)",
                       l->file.path);
}

static int load_lists(Load *l, QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *loaded, QsfErr *err) {
    const QsfSnapSegment *g = &l->file.seg[0];
    const uint32_t most = n - 1 < g->to ? (uint32_t)(n - 1) : g->to;
    uint32_t same;
    stream_at(l, g->at, qsf_snap_rows_at(&l->file.key, g));
    if (!qsf_snap_read_table(&l->s, &l->file, g, &l->table, ids, most, &same, NULL)) return damaged(l, err);
    if (!qsf_forward_lists_same(l->f, l->table.words)) return other_settings(l, err);
    if (qsf_forward_lists_reach(l->table.words, same) <= qsf_timeline_reusable(t, ids, n)) return QSF_OK;
    int rc = restore_lists(l, t, err);
    if (rc == QSF_OK) *loaded = qsf_timeline_reusable(t, ids, n);
    return rc;
}

static int load(Load *l, QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *loaded, QsfErr *err) {
    if (is_listed(l)) return load_lists(l, t, ids, n, loaded, err);
    const uint32_t room = qsf_forward_is_bounded(l->f) ? qsf_forward_ctx(l->f) : UINT32_MAX,
                   most = n - 1 < room ? (uint32_t)(n - 1) : room;
    if (l->file.n > 0 && qsf_forward_weighs(l->f)) return other_settings(l, err); /* rows have no weights */
    int rc = choose(l, ids, most, err);
    if (rc == QSF_OK) rc = qsf_timeline_grow(t, l->n, err);
    if (rc != QSF_OK || l->n <= qsf_timeline_reusable(t, ids, n)) return rc;
    rc = restore(l, t, ids, err);
    if (rc == QSF_OK) *loaded = l->n;
    return rc;
}

int qsf_snapshot_load(QsfTimeline *t, const char *path, const QsfSnapKey *key, const int32_t *ids, size_t n,
                      uint32_t *loaded, QsfSnapKind *kind, QsfErr *err) {
    *loaded = 0;
    if (kind != NULL) *kind = QSF_SNAP_MISSING;
    Load *l = calloc(1, sizeof *l);
    if (l == NULL) return qsf_err_memory(err, "a snapshot");
    l->f = t->rt->fwd;
    l->cancel = t->rt->cancel;
    l->lead = t->lead;
    QsfErr why = { 0 };
    const QsfSnapKind is = qsf_snapfile_open(&l->file, path, key, false, &why);
    const bool usable = is == QSF_SNAP_OURS || is == QSF_SNAP_CUT;
    int rc = usable || is == QSF_SNAP_MISSING ? QSF_OK : QSF_E_MODEL;
    if (usable && n > 0) rc = load(l, t, ids, n, loaded, err);
    if (usable) qsf_snapfile_close(&l->file);
    if (rc == QSF_OK || !usable) (void)qsf_err_pass(err, &why);
    const bool refused = rc == QSF_E_MODEL && usable;
    if (kind != NULL) *kind = refused ? (l->other ? QSF_SNAP_OTHER : QSF_SNAP_DAMAGED) : is;
    free(l);
    return rc;
}
