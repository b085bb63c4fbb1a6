/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Headers and segments of a snapshot's file: implements snapshot/file.h. */
#include "src/engine/snapshot/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "qsf_engine.h"
#include "src/base/bytes.h"
#include "src/base/crc32.h"
#include "src/base/paths.h"
#include "src/base/savefile.h"
#include "src/engine/snapshot/snapshot.h"

#define MAGIC      "QSFSNAP\n"
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
    const size_t n = strlen(program);
    memset(h, 0, QSF_SNAP_HEADER);
    memcpy(h, MAGIC, 8);
    qsf_put_le32(h + AT_VERSION, QSF_SNAP_VERSION);
    qsf_put_le32(h + AT_CACHES, key->n_caches);
    qsf_put_le64(h + AT_MODEL, key->model);
    qsf_put_le64(h + AT_STATE, key->state_bytes);
    qsf_put_le64(h + AT_ROW, key->row_bytes);
    memcpy(h + AT_PROGRAM, program, n < AT_VALUES - AT_PROGRAM ? n : AT_VALUES - AT_PROGRAM);
    memcpy(h + AT_VALUES, key->values, strnlen(key->values, QSF_FORWARD_VALUES));
    qsf_put_le32(h + AT_CRC, qsf_crc32(0, h, AT_CRC));
}

static QsfSnapKind other(QsfErr *err, const char *path, const char *why) {
    qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, why);
    return QSF_SNAP_OTHER;
}

static QsfSnapKind damaged(QsfErr *err, const char *path) {
    (void)other(err, path, "the snapshot is damaged");
    return QSF_SNAP_DAMAGED;
}

/* Returns the length of the values before those of adapters, which are the last (qsf_forward_values). */
static size_t before_adapters(const uint8_t *values) {
    char text[QSF_FORWARD_VALUES + 1] = "";
    memcpy(text, values, QSF_FORWARD_VALUES);
    const char *adapters = strstr(text, ", adapters ");
    return adapters != NULL ? (size_t)(adapters - text) : strlen(text);
}

static const char *what_differs(const uint8_t *is, const uint8_t *expected) {
    const size_t n = before_adapters(is);
    if (n == before_adapters(expected) && memcmp(is, expected, n) == 0)
        return "the snapshot was made with other adapters, or other scales of them (--lora, "
               "--control-vector)";
    return "the snapshot was made with other settings (KV type, --exact, --cpu-mask)";
}

/* The header that a file of this version has. */
static void expect_header(uint8_t h[QSF_SNAP_HEADER], const QsfSnapKey *key, uint32_t version) {
    qsf_snap_put_header(h, key);
    qsf_put_le32(h + AT_VERSION, version);
    qsf_put_le32(h + AT_CRC, qsf_crc32(0, h, AT_CRC));
}

static QsfSnapKind check_header(QsfSnapFile *s, const uint8_t *h, QsfErr *err) {
    uint8_t expected[QSF_SNAP_HEADER];
    if (memcmp(h, MAGIC, 8) != 0) {
        qsf_err_set(err, QSF_E_MODEL, "%s: is not a snapshot of a conversation", s->path);
        return QSF_SNAP_ALIEN;
    }
    if (qsf_get_le32(h + AT_VERSION) > QSF_SNAP_VERSION) {
        qsf_err_set(err, QSF_E_MODEL,
                    "%s: is a snapshot of format %u, and this program reads formats up to %u", s->path,
                    (unsigned)qsf_get_le32(h + AT_VERSION), QSF_SNAP_VERSION);
        return QSF_SNAP_ALIEN;
    }
    s->version = qsf_get_le32(h + AT_VERSION);
    expect_header(expected, &s->key, s->version > 0 ? s->version : QSF_SNAP_VERSION);
    if (qsf_get_le32(h + AT_CRC) != qsf_crc32(0, h, AT_CRC)) return damaged(err, s->path);
    if (memcmp(h + AT_PROGRAM, expected + AT_PROGRAM, AT_VALUES - AT_PROGRAM) != 0)
        return other(err, s->path, "the snapshot was written by another version of this program");
    if (qsf_get_le64(h + AT_MODEL) != s->key.model)
        return other(err, s->path, "the snapshot is of another model");
    if (memcmp(h + AT_VALUES, expected + AT_VALUES, QSF_FORWARD_VALUES) != 0)
        return other(err, s->path, what_differs(h + AT_VALUES, expected + AT_VALUES));
    return memcmp(h, expected, QSF_SNAP_HEADER) == 0 ? QSF_SNAP_OURS : damaged(err, s->path);
}

/* ---- segments ---- */

/* The segment replaces its first position and all later ones. Segments with lists are not
 * continued by others. */
static bool take(QsfSnapFile *s, const QsfSnapSegment *g) {
    for (; s->n > 0 && s->seg[s->n - 1].from >= g->from; s->n--)
        s->dead += s->seg[s->n - 1].bytes + s->seg[s->n - 1].blocks_bytes;
    const uint32_t end = s->n > 0 ? s->seg[s->n - 1].upto : 0;
    if (g->from > end || s->n == QSF_SNAP_SEGMENTS || (end > 0 && s->seg[0].lists)) return false;
    if (g->from < end) {
        QsfSnapSegment *last = &s->seg[s->n - 1];
        s->dead += (last->bytes + last->blocks_bytes) / (last->to - last->from) * (last->upto - g->from);
        last->upto = g->from;
    }
    s->seg[s->n++] = *g;
    return true;
}

static void read_segments(QsfSnapFile *s) {
    QsfSnapSegment g = { .at = QSF_SNAP_HEADER };
    s->end = QSF_SNAP_HEADER;
    while (s->written < QSF_SNAP_SEGMENTS && qsf_snap_find_segment(s, &g)) {
        qsf_snap_find_blocks(s, &g);
        if (!take(s, &g)) break;
        s->written++;
        s->end = g.at += g.bytes + g.blocks_bytes;
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

/* A new file takes its name when it is complete, so it has a segment. */
static QsfSnapKind check_end(QsfSnapFile *s, QsfErr *err) {
    if (s->n > 0 && s->end == s->size) return QSF_SNAP_OURS;
    if (s->n > 0 && flock(s->fd, LOCK_EX | LOCK_NB) != 0) return QSF_SNAP_OURS; /* it is being written */
    if (s->n > 0) {
        (void)other(err, s->path, "the end of the snapshot is cut or damaged");
        return QSF_SNAP_CUT;
    }
    qsf_snapfile_close(s);
    return damaged(err, s->path);
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
    return kind == QSF_SNAP_OURS ? check_end(s, err) : kind;
}

void qsf_snapfile_close(QsfSnapFile *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

/* --- room for snapshots: what they may use, and which are dropped --- */

#define LIMIT  ((uint64_t)4 << 30)
#define SHARE  10u                  /* of what is free: one part of this many */
#define SPARE  ((uint64_t)64 << 20) /* bytes that stay free on the disk */
#define ENDING ".qsfsnap"

typedef struct Found {
    uint64_t bytes; /* of all but the one that is kept */
    char oldest[256];
    struct timespec time;
} Found;

static bool is_snapshot(const char *name) {
    const size_t n = strlen(name), e = sizeof ENDING - 1;
    return n > e && n < sizeof((Found *)0)->oldest && strcmp(name + n - e, ENDING) == 0;
}

static bool is_older(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Sums up the snapshots of a folder, and finds the oldest, except `keep`. Takes the descriptor. */
static void look(int fd, const char *keep, Found *f) {
    struct dirent *e;
    struct stat st;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    *f = (Found){ 0 };
    if (d == NULL && fd >= 0) close(fd);
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (!is_snapshot(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(st.st_mode) || strcmp(e->d_name, keep) == 0) continue;
        f->bytes += (uint64_t)st.st_size;
        if (f->oldest[0] != '\0' && !is_older(&st.st_mtim, &f->time)) continue;
        snprintf(f->oldest, sizeof f->oldest, "%s", e->d_name);
        f->time = st.st_mtim;
    }
    if (d != NULL) closedir(d);
}

static bool folder_of(const char *path, char out[QSF_PATH_MAX]) {
    const size_t n = (size_t)(qsf_path_name(path) - path);
    if (n >= QSF_PATH_MAX - 2) return false;
    snprintf(out, QSF_PATH_MAX, "%.*s.", (int)n, path);
    return true;
}

static uint64_t free_bytes(const char *folder) {
    struct statvfs v;
    return statvfs(folder, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

uint64_t qsf_snapshot_default_limit(const char *path) {
    char folder[QSF_PATH_MAX];
    Found f;
    if (!folder_of(path, folder)) return 1;
    look(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", &f);
    const uint64_t share = (free_bytes(folder) + f.bytes) / SHARE;
    return share < LIMIT ? share + (share == 0) : LIMIT;
}

bool qsf_snapshot_make_room(const char *path, uint64_t bytes, uint64_t limit) {
    char folder[QSF_PATH_MAX];
    struct stat st;
    Found f;
    if (!folder_of(path, folder)) return false;
    const uint64_t own = (stat(path, &st) == 0 ? (uint64_t)st.st_size : 0) + bytes;
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) return false;
    for (;;) {
        look(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), qsf_path_name(path), &f);
        const bool below = limit == 0 || f.bytes + own <= limit;
        if ((below && free_bytes(folder) >= bytes + SPARE) || f.oldest[0] == '\0' ||
            unlinkat(dir, f.oldest, 0) != 0)
            break;
    }
    close(dir);
    return free_bytes(folder) >= bytes + SPARE && (limit == 0 || own <= limit);
}
