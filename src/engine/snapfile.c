/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Headers and segments of a snapshot's file: implements snapfile.h. */
#include "src/engine/snapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_engine.h"
#include "src/base/crc32.h"
#include "src/base/file.h"
#include "src/forward/kvcache.h"

#define MAGIC      "QSFSNAP\n"
#define VERSION    1u
#define SEGMENT    0x31474553u /* "SEG1" */
#define DONE       0x454E4F44u /* "DONE" */
#define POSITIONS  1u          /* kind of segment: adjacent positions; the only one so far */
#define HEAD       40u         /* bytes of a segment's head */
#define TAIL       QSF_SNAP_TAIL
#define CTX_MAX    (1u << 24)
#define AT_VERSION 8u
#define AT_CACHES  12u
#define AT_MODEL   16u
#define AT_STATE   24u
#define AT_ROW     32u
#define AT_PROGRAM 64u
#define AT_VALUES  96u
#define AT_CRC     (QSF_SNAP_HEADER - 4u)
_Static_assert(AT_VALUES + QSF_FORWARD_VALUES <= AT_CRC, "the header has room for the settings");

static void put32(uint8_t *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}
static void put64(uint8_t *p, uint64_t v) {
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}
static uint32_t get32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint64_t get64(const uint8_t *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

/* ---- the header ---- */

void qsf_snap_put_header(uint8_t h[QSF_SNAP_HEADER], const QsfSnapKey *key) {
    const char *program = qsf_version();
    memset(h, 0, QSF_SNAP_HEADER);
    memcpy(h, MAGIC, 8);
    put32(h + AT_VERSION, VERSION);
    put32(h + AT_CACHES, key->n_caches);
    put64(h + AT_MODEL, key->model);
    put64(h + AT_STATE, key->state_bytes);
    put64(h + AT_ROW, key->row_bytes);
    memcpy(h + AT_PROGRAM, program, strnlen(program, AT_VALUES - AT_PROGRAM));
    memcpy(h + AT_VALUES, key->values, strnlen(key->values, QSF_FORWARD_VALUES));
    put32(h + AT_CRC, qsf_crc32(0, h, AT_CRC));
}

static QsfSnapKind other(QsfErr *err, const char *path, const char *why) {
    qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, why);
    return QSF_SNAP_OTHER;
}

static QsfSnapKind damaged(QsfErr *err, const char *path) {
    (void)other(err, path, "the snapshot is damaged");
    return QSF_SNAP_DAMAGED;
}

static QsfSnapKind check_header(const QsfSnapFile *s, const uint8_t *h, QsfErr *err) {
    uint8_t expected[QSF_SNAP_HEADER];
    if (memcmp(h, MAGIC, 8) != 0) {
        qsf_err_set(err, QSF_E_MODEL, "%s: is not a snapshot of a conversation", s->path);
        return QSF_SNAP_ALIEN;
    }
    if (get32(h + AT_VERSION) > VERSION) {
        qsf_err_set(err, QSF_E_MODEL, "%s: is a snapshot of format %u, and this program reads format %u",
                    s->path, (unsigned)get32(h + AT_VERSION), VERSION);
        return QSF_SNAP_ALIEN;
    }
    qsf_snap_put_header(expected, &s->key);
    if (get32(h + AT_CRC) != qsf_crc32(0, h, AT_CRC)) return damaged(err, s->path);
    if (memcmp(h + AT_PROGRAM, expected + AT_PROGRAM, AT_VALUES - AT_PROGRAM) != 0)
        return other(err, s->path, "the snapshot was written by another version of this program");
    if (get64(h + AT_MODEL) != s->key.model) return other(err, s->path, "the snapshot is of another model");
    if (memcmp(h + AT_VALUES, expected + AT_VALUES, QSF_FORWARD_VALUES) != 0)
        return other(err, s->path,
                     "the snapshot was made with other settings (KV type, --exact, --cpu-mask)");
    return memcmp(h, expected, QSF_SNAP_HEADER) == 0 ? QSF_SNAP_OURS : damaged(err, s->path);
}

/* ---- segments ---- */

static void put_head(uint8_t h[HEAD], const QsfSnapSegment *g) {
    memset(h, 0, HEAD);
    put32(h, SEGMENT);
    put32(h + 4, POSITIONS);
    put32(h + 8, g->from);
    put32(h + 12, g->to);
    put32(h + 16, g->n_states);
    put64(h + 24, g->bytes);
    put32(h + 36, qsf_crc32(0, h, 36));
}

/* Is there a whole segment at g->at? Fills in the rest of g. */
static bool read_segment(const QsfSnapFile *s, QsfSnapSegment *g) {
    uint8_t h[HEAD], tail[TAIL];
    if (g->at > s->size || s->size - g->at < HEAD + TAIL) return false;
    if (pread(s->fd, h, HEAD, (off_t)g->at) != HEAD) return false;
    if (get32(h) != SEGMENT || get32(h + 4) != POSITIONS || get32(h + 36) != qsf_crc32(0, h, 36))
        return false;
    g->from = get32(h + 8);
    g->to = g->upto = get32(h + 12);
    g->n_states = get32(h + 16);
    g->bytes = get64(h + 24);
    if (g->from % QK_KV_TILE != 0 || g->to <= g->from || g->to > CTX_MAX || g->n_states > QSF_SNAP_STATES)
        return false;
    if (g->bytes < HEAD + TAIL || g->bytes > s->size - g->at) return false;
    if (pread(s->fd, tail, TAIL, (off_t)(g->at + g->bytes - TAIL)) != TAIL) return false;
    return get32(tail) == DONE && get32(tail + 4) == get32(h + 36);
}

/* The segment replaces positions from its first one on. */
static bool take(QsfSnapFile *s, const QsfSnapSegment *g) {
    while (s->n > 0 && s->seg[s->n - 1].from >= g->from) s->dead += s->seg[--s->n].bytes;
    const uint32_t end = s->n > 0 ? s->seg[s->n - 1].upto : 0;
    if (g->from > end || s->n == QSF_SNAP_SEGMENTS) return false;
    if (g->from < end) {
        QsfSnapSegment *last = &s->seg[s->n - 1];
        s->dead += last->bytes / (last->to - last->from) * (last->upto - g->from);
        last->upto = g->from;
    }
    s->seg[s->n++] = *g;
    return true;
}

static void read_segments(QsfSnapFile *s) {
    QsfSnapSegment g = { .at = QSF_SNAP_HEADER };
    s->end = QSF_SNAP_HEADER;
    while (s->written < QSF_SNAP_SEGMENTS && read_segment(s, &g) && take(s, &g)) {
        s->written++;
        s->end = g.at += g.bytes;
    }
}

/* ---- opening ---- */

static QsfSnapKind open_fd(QsfSnapFile *s, bool write, QsfErr *err) {
    struct stat st;
    s->fd = open(s->path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0 && errno == ENOENT) return QSF_SNAP_MISSING;
    const char *why = s->fd < 0 || fstat(s->fd, &st) != 0 ? strerror(errno)
                      : !S_ISREG(st.st_mode)              ? "not a regular file"
                      : write && flock(s->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK
                          ? "in use by another program"
                          : NULL;
    if (why != NULL) {
        qsf_err_set(err, QSF_E_MODEL, "%s: cannot open the snapshot: %s", s->path, why);
        return QSF_SNAP_ALIEN;
    }
    s->size = (uint64_t)st.st_size;
    return s->size > 0 ? QSF_SNAP_OURS : QSF_SNAP_MISSING;
}

QsfSnapKind qsf_snapfile_open(QsfSnapFile *s, const char *path, const QsfSnapKey *key, bool write,
                              QsfErr *err) {
    uint8_t h[QSF_SNAP_HEADER] = { 0 };
    memset(s, 0, sizeof *s);
    s->path = path;
    s->key = *key;
    QsfSnapKind kind = open_fd(s, write, err);
    if (kind == QSF_SNAP_OURS) {
        const ssize_t n = pread(s->fd, h, sizeof h, 0);
        kind = check_header(s, h, err);
        if (kind == QSF_SNAP_OURS && n != (ssize_t)sizeof h) kind = damaged(err, path);
    }
    if (kind == QSF_SNAP_OURS)
        read_segments(s);
    else
        qsf_snapfile_close(s);
    return kind;
}

void qsf_snapfile_close(QsfSnapFile *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

/* ---- tables ---- */

static bool rows_ok(const QsfSnapFile *f, const QsfSnapSegment *g, const QsfSnapTable *t) {
    const uint32_t row = g->from / QK_KV_TILE;
    for (uint32_t i = 0; i < f->key.n_caches; i++)
        if (t->first[i] < row || t->first[i] > CTX_MAX / QK_KV_TILE) return false;
    for (uint32_t i = 0; i < g->n_states; i++)
        if (t->state_pos[i] <= (i > 0 ? t->state_pos[i - 1] : g->from) || t->state_pos[i] > g->to)
            return false;
    return true;
}

static uint64_t table_bytes(const QsfSnapKey *key, const QsfSnapSegment *g) {
    return HEAD + 4 * ((uint64_t)key->n_caches + g->n_states + (g->to - g->from) + 1);
}

uint64_t qsf_snap_rows_at(const QsfSnapKey *key, const QsfSnapSegment *g) {
    return g->at + table_bytes(key, g);
}

bool qsf_snap_read_table(QsfSnapStream *s, const QsfSnapFile *f, const QsfSnapSegment *g, QsfSnapTable *t,
                         const int32_t *ids, uint32_t n, uint32_t *same) {
    uint8_t head[HEAD];
    uint32_t id = 0;
    bool equal = true;
    *same = 0;
    if (!qsf_snap_read(s, head, HEAD)) return false;
    qsf_snap_begin(s);
    if (!qsf_snap_read_u32(s, t->first, f->key.n_caches) || !qsf_snap_read_u32(s, t->state_pos, g->n_states))
        return false;
    for (uint32_t i = g->from; i < g->to; i++) {
        if (!qsf_snap_read_u32(s, &id, 1)) return false;
        equal = equal && i < n && i < g->upto && (uint32_t)ids[i] == id;
        *same += equal;
    }
    return qsf_snap_read_crc(s) && rows_ok(f, g, t);
}

/* ---- writing ---- */

uint64_t qsf_snap_segment_bytes(const QsfForward *f, const QsfSnapKey *key, uint32_t from, uint32_t to,
                                const QsfSnapTable *t, uint32_t n_states) {
    const QsfSnapSegment g = { .from = from, .to = to, .n_states = n_states };
    uint64_t sum = table_bytes(key, &g) + TAIL;
    for (uint32_t row = from / QK_KV_TILE; row < qk_kv_tiles(to); row++)
        sum += qsf_forward_row_bytes(f, row, t->first) + 4;
    return sum + n_states * (key->state_bytes + 4);
}

static bool push(void *arg, uint8_t *tile, size_t bytes) { return qsf_snap_write(arg, tile, bytes); }

static bool write_table(QsfSnapStream *s, const QsfSnapKey *key, const QsfSnapSegment *g,
                        const QsfSnapTable *t, const int32_t *ids) {
    uint8_t head[HEAD];
    put_head(head, g);
    if (!qsf_snap_write(s, head, HEAD)) return false;
    qsf_snap_begin(s);
    if (!qsf_snap_write_u32(s, t->first, key->n_caches)) return false;
    if (!qsf_snap_write_u32(s, t->state_pos, g->n_states)) return false;
    for (uint32_t i = g->from; i < g->to; i++) {
        const uint32_t id = (uint32_t)ids[i];
        if (!qsf_snap_write_u32(s, &id, 1)) return false;
    }
    return qsf_snap_write_crc(s);
}

bool qsf_snap_write_segment(QsfSnapStream *s, QsfForward *f, const QsfSnapKey *key, uint32_t from,
                            uint32_t to, const QsfSnapTable *t, uint32_t n_states, const int32_t *ids,
                            bool (*stop)(void *), void *arg) {
    QsfSnapSegment g = { .from = from, .to = to, .n_states = n_states };
    uint8_t head[HEAD], tail[TAIL];
    g.bytes = qsf_snap_segment_bytes(f, key, from, to, t, n_states);
    if (!write_table(s, key, &g, t, ids)) return false;
    for (uint32_t row = from / QK_KV_TILE; row < qk_kv_tiles(to); row++) {
        if (stop != NULL && stop(arg)) return false;
        qsf_snap_begin(s);
        if (!qsf_forward_row(f, row, t->first, push, s) || !qsf_snap_write_crc(s)) return false;
    }
    for (uint32_t i = 0; i < n_states; i++) {
        qsf_snap_begin(s);
        if (!qsf_snap_write(s, qsf_forward_state(f, t->state_pos[i]), (size_t)key->state_bytes)) return false;
        if (!qsf_snap_write_crc(s)) return false;
    }
    put_head(head, &g);
    put32(tail, DONE);
    put32(tail + 4, get32(head + 36));
    return qsf_snap_write(s, tail, TAIL) && qsf_snap_flush(s);
}
