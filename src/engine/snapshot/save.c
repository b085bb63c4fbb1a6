/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saves a snapshot: appends a segment, or writes a new file that replaces the old one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/base/savefile.h"
#include "src/engine/snapshot/blocks.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/kv/cache.h"

#define PRIVATE 0600

typedef struct Save {
    QsfTimeline *t;
    QsfForward *f;
    const QsfSnapSave *o;
    const char *path;
    QsfSnapFile file;
    QsfSnapKey key;
    QsfSnapStream s;
    QsfSnapTable table;
    QsfSnapSegment seg; /* what is written */
    QsfSnapBlocks blocks;
    uint64_t blocks_bytes; /* of the segment with them, 0 = none */
    uint32_t to;
    bool lists;
    bool complete; /* the file has it all */
} Save;

static void stream_at(Save *s, int fd, uint64_t at, uint64_t limit) {
    size_t cap;
    uint8_t *buf = qsf_forward_scratch(s->f, &cap);
    qsf_snap_stream(&s->s, fd, at, limit, buf, cap);
}

/* The oldest state that is held after a position: there the prompt of the segment began to be new. */
static uint32_t oldest_state(const QsfForward *f, uint32_t from, uint32_t to) {
    uint32_t oldest = 0;
    for (uint32_t p = qsf_forward_state_before(f, from, to); p > 0;) {
        oldest = p;
        p = qsf_forward_state_before(f, from, p - 1);
    }
    return oldest;
}

/* The states of the segment, by ascending positions: the newest that are held, the oldest, the one at which
 * other conversations begin, and between them some that are farther and farther apart. */
static void choose_states(Save *s) {
    const uint32_t from = s->seg.from, lead = s->t->lead, oldest = oldest_state(s->f, from, s->to);
    const uint32_t most = QSF_SNAP_STATES - 1 - (lead > oldest); /* places for others */
    uint32_t pos[QSF_SNAP_STATES], n = 0, gap = QSF_SNAP_APART;
    for (uint32_t p = qsf_forward_state_before(s->f, from, s->to); p > 0 && n < QSF_SNAP_STATES;
         p = qsf_forward_state_before(s->f, from, p - 1)) {
        const bool newest = n < QSF_SNAP_NEWEST;
        const bool far = !newest && n < most && pos[n - 1] - p >= gap;
        if (!newest && !far && p != lead && p != oldest) continue;
        if (far) gap *= 2;
        pos[n++] = p;
    }
    for (uint32_t i = 0; i < n; i++) s->table.state_pos[i] = pos[n - 1 - i];
    s->seg.n_states = n;
}

static uint64_t prepare(Save *s, uint32_t from) {
    s->seg = (QsfSnapSegment){ .from = from / QK_KV_TILE * QK_KV_TILE, .to = s->to, .lists = s->lists };
    if (s->lists) {
        qsf_forward_lists(s->f, s->table.words);
        qsf_forward_lists_first(s->f, s->table.first);
    } else {
        qsf_forward_first_rows(s->f, s->seg.from / QK_KV_TILE, s->table.first);
    }
    choose_states(s);
    s->blocks_bytes = qsf_snap_blocks_prepare(&s->blocks, s->t->rt->nextn, &s->seg);
    return qsf_snap_segment_bytes(s->f, &s->key, &s->seg, &s->table) + s->blocks_bytes;
}

/* Does the last segment, whose table was read, hold the lists as they are? */
static bool has_lists(const Save *s) {
    uint32_t words[QSF_LISTS_WORDS];
    qsf_forward_lists(s->f, words);
    return s->file.seg[0].lists && memcmp(words, s->table.words, sizeof words) == 0;
}

/* Returns how many positions of the timeline the file has; s->complete: nothing would be added. A file with a
 * damaged table has none. */
static uint32_t find_common(Save *s) {
    uint32_t n = 0, newest = 0;
    for (uint32_t k = 0; k < s->file.n; k++) {
        const QsfSnapSegment *g = &s->file.seg[k];
        uint32_t same;
        stream_at(s, s->file.fd, g->at, qsf_snap_rows_at(&s->key, g));
        if (!qsf_snap_read_table(&s->s, &s->file, g, &s->table, s->t->ids, s->to, &same, NULL)) return 0;
        n = g->from + same;
        for (uint32_t i = 0; i < g->n_states && s->table.state_pos[i] <= n; i++)
            newest = s->table.state_pos[i];
        if (n < g->upto) break;
    }
    s->complete = n == s->to && (!s->lists || has_lists(s)) &&
                  (s->key.state_bytes == 0 || newest >= qsf_forward_state_before(s->f, 0, s->to));
    return n;
}

static int no_room(const Save *s, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "%s: no snapshot: it would exceed its limit, or the disk is almost full", s->path);
}

static bool fits(const Save *s, uint64_t whole, uint64_t more) {
    if (s->o->limit > 0 && whole > s->o->limit) return false;
    return !s->o->prune || qsf_snapshot_make_room(s->path, more, s->o->limit);
}

static int write_error(const Save *s, int why, QsfErr *err) {
    if (why == 0) return QSF_OK; /* stopped */
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot write the snapshot: %s", s->path, strerror(why));
}

static bool write_segment(Save *s) {
    return qsf_snap_write_segment(&s->s, s->f, &s->key, &s->seg, &s->table, s->t->ids, s->o->stop,
                                  s->o->arg) &&
           (s->blocks_bytes == 0 ||
            qsf_snap_blocks_write(&s->s, s->t->rt->nextn, &s->blocks, s->o->stop, s->o->arg));
}

/* What follows the last complete segment is overwritten. */
static int append(Save *s, uint64_t bytes, QsfErr *err) {
    if (!fits(s, s->file.end + bytes, bytes)) return no_room(s, err);
    if (ftruncate(s->file.fd, (off_t)s->file.end) != 0) return write_error(s, errno, err);
    stream_at(s, s->file.fd, s->file.end, 0);
    if (write_segment(s)) return QSF_OK;
    const int why = s->s.why;
    if (ftruncate(s->file.fd, (off_t)s->file.end) != 0) return write_error(s, errno, err);
    return write_error(s, why, err);
}

static int rewrite(Save *s, QsfErr *err) {
    QSFSaveFile out;
    uint8_t header[QSF_SNAP_HEADER];
    const uint64_t bytes = prepare(s, 0) + QSF_SNAP_HEADER;
    if (!fits(s, bytes, bytes)) return no_room(s, err);
    char *real = realpath(s->path, NULL); /* a symbolic link stays one */
    const char *to = real != NULL ? real : s->path;
    int why = qsf_savefile_create(&out, to, PRIVATE, NULL);
    if (why == 0) {
        qsf_snap_put_header(header, &s->key);
        stream_at(s, out.fd, 0, 0);
        const bool done = qsf_snap_write(&s->s, header, sizeof header) && write_segment(s);
        why = done ? qsf_savefile_replace(&out, qsf_path_name(to)) : s->s.why;
        qsf_savefile_close(&out, false);
    }
    free(real);
    return write_error(s, why, err);
}

static bool is_wasteful(const Save *s, uint64_t bytes) {
    const uint64_t dead = s->file.dead, all = s->file.end + bytes;
    return dead > all / 2 || s->file.written + 1 >= QSF_SNAP_SEGMENTS;
}

static int save(Save *s, QsfErr *err) {
    const uint32_t common = find_common(s);
    if (s->complete) {
        (void)futimens(s->file.fd, NULL); /* in use: others are dropped first */
        return QSF_OK;
    }
    if (s->lists || (s->file.n > 0 && s->file.seg[0].lists)) return rewrite(s, err);
    const uint32_t end = s->file.n > 0 ? s->file.seg[s->file.n - 1].upto : 0;
    const uint64_t bytes = prepare(s, common);
    /* What the new segment replaces is dead as well. */
    if (end > 0) s->file.dead += s->file.end / end * (end - s->seg.from);
    const bool whole = common < QK_KV_TILE || is_wasteful(s, bytes) || s->file.version < QSF_SNAP_VERSION;
    return whole ? rewrite(s, err) : append(s, bytes, err);
}

/* Returns the positions to save: none that lack something. 0: nothing can be saved. */
static uint32_t end_of(const QsfTimeline *t, uint32_t to) {
    const QsfForward *f = t->rt->fwd;
    const uint32_t exact = qsf_forward_exact(f) < t->n_ids ? qsf_forward_exact(f) : t->n_ids;
    if (qsf_forward_is_listed(f)) return exact == t->n_ids && qsf_forward_lists_ready(f) ? exact : 0;
    if (to > 0 && to < exact && qsf_forward_can_save(f, to)) return to;
    return exact == t->n_ids || qsf_forward_can_save(f, exact) ? exact : 0;
}

int qsf_snapshot_save(QsfTimeline *t, const char *path, const QsfSnapKey *key, const QsfSnapSave *o,
                      QsfErr *err) {
    QsfErr other = { 0 };
    const uint32_t to = end_of(t, o->to);
    if (to == 0) return QSF_OK;
    if (qsf_forward_savable(t->rt->fwd, err) != QSF_OK) return QSF_E_RUNTIME;
    Save *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(err, "a snapshot");
    s->t = t;
    s->f = t->rt->fwd;
    s->o = o;
    s->path = path;
    s->key = *key;
    s->to = to;
    s->lists = qsf_forward_is_listed(s->f);
    const QsfSnapKind kind = qsf_snapfile_open(&s->file, path, key, true, &other);
    int rc = kind == QSF_SNAP_ALIEN               ? qsf_err_pass(err, &other)
             : kind == QSF_SNAP_OURS && !o->fresh ? save(s, err)
                                                  : rewrite(s, err);
    qsf_snapfile_close(&s->file);
    free(s);
    return rc;
}
