/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Headers and segments of a snapshot's file: implements snapshot/file.h. */
#include "src/engine/snapshot/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_engine.h"
#include "src/base/crc32.h"
#include "src/engine/snapshot/number.h"

#define MAGIC      "QSFSNAP\n"
#define VERSION    1u
#define AT_VERSION 8u
#define AT_CACHES  12u
#define AT_MODEL   16u
#define AT_STATE   24u
#define AT_ROW     32u
#define AT_PROGRAM 64u
#define AT_VALUES  96u
#define AT_CRC     (QSF_SNAP_HEADER - 4u)
_Static_assert(AT_VALUES + QSF_FORWARD_VALUES <= AT_CRC, "the header has room for the settings");

/* ---- the header ---- */

void qsf_snap_put_header(uint8_t h[QSF_SNAP_HEADER], const QsfSnapKey *key) {
    const char *program = qsf_version();
    memset(h, 0, QSF_SNAP_HEADER);
    memcpy(h, MAGIC, 8);
    qsf_snap_put32(h + AT_VERSION, VERSION);
    qsf_snap_put32(h + AT_CACHES, key->n_caches);
    qsf_snap_put64(h + AT_MODEL, key->model);
    qsf_snap_put64(h + AT_STATE, key->state_bytes);
    qsf_snap_put64(h + AT_ROW, key->row_bytes);
    memcpy(h + AT_PROGRAM, program, strnlen(program, AT_VALUES - AT_PROGRAM));
    memcpy(h + AT_VALUES, key->values, strnlen(key->values, QSF_FORWARD_VALUES));
    qsf_snap_put32(h + AT_CRC, qsf_crc32(0, h, AT_CRC));
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
    if (qsf_snap_get32(h + AT_VERSION) > VERSION) {
        qsf_err_set(err, QSF_E_MODEL, "%s: is a snapshot of format %u, and this program reads format %u",
                    s->path, (unsigned)qsf_snap_get32(h + AT_VERSION), VERSION);
        return QSF_SNAP_ALIEN;
    }
    qsf_snap_put_header(expected, &s->key);
    if (qsf_snap_get32(h + AT_CRC) != qsf_crc32(0, h, AT_CRC)) return damaged(err, s->path);
    if (memcmp(h + AT_PROGRAM, expected + AT_PROGRAM, AT_VALUES - AT_PROGRAM) != 0)
        return other(err, s->path, "the snapshot was written by another version of this program");
    if (qsf_snap_get64(h + AT_MODEL) != s->key.model)
        return other(err, s->path, "the snapshot is of another model");
    if (memcmp(h + AT_VALUES, expected + AT_VALUES, QSF_FORWARD_VALUES) != 0)
        return other(err, s->path,
                     "the snapshot was made with other settings (KV type, --exact, --cpu-mask)");
    return memcmp(h, expected, QSF_SNAP_HEADER) == 0 ? QSF_SNAP_OURS : damaged(err, s->path);
}

/* ---- segments ---- */

/* The segment replaces its first position and all later ones. Segments with lists are not
 * continued by others. */
static bool take(QsfSnapFile *s, const QsfSnapSegment *g) {
    while (s->n > 0 && s->seg[s->n - 1].from >= g->from) s->dead += s->seg[--s->n].bytes;
    const uint32_t end = s->n > 0 ? s->seg[s->n - 1].upto : 0;
    if (g->from > end || s->n == QSF_SNAP_SEGMENTS || (end > 0 && s->seg[0].lists)) return false;
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
    while (s->written < QSF_SNAP_SEGMENTS && qsf_snap_find_segment(s, &g) && take(s, &g)) {
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
