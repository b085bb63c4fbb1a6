/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading conversations: implements the reading half of qsf_chatlog.h. The file may be truncated or damaged:
 * intact lines are used, damaged ones are counted. Memory does not depend on the file. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/cli/chatlog_path.h"
#include "src/cli/chatlog_scan.h"

typedef struct Reader {
    QsfLogScan scan;
    bool (*fn)(void *arg, const QSFLogRecord *r);
    void *arg;
    uint32_t damaged;
    bool stopped;        /* fn wants no more */
    bool open;           /* there are PART records without their whole message */
    uint64_t begin, end; /* where they are in the file */
} Reader;

static void report(Reader *rd, const QSFLogRecord *r) { rd->stopped = rd->stopped || !rd->fn(rd->arg, r); }

/* Reports the parts of an answer whose writer was killed as messages. They stayed in the file, because there
 * may be any number of them. */
static void flush_parts(Reader *rd) {
    QsfLogScan s;
    QSFLogRecord r;
    if (!rd->open) return;
    rd->open = false;
    qsf_logscan_init(&s, rd->scan.fd, rd->begin);
    for (QsfLogLine l;
         !rd->stopped && s.at < rd->end && (l = qsf_logscan_line(&s, NULL, &r)) != QSF_LOG_LINE_END;) {
        if (l != QSF_LOG_LINE_RECORD || r.kind != QSF_LOG_PART) continue;
        r.kind = QSF_LOG_MESSAGE;
        r.role = "assistant";
        r.name = NULL;
        r.stop = "interrupted";
        report(rd, &r);
    }
    if (s.why != 0) rd->scan.why = s.why;
}

static void take_record(Reader *rd, const QSFLogRecord *r) {
    if (r->kind == QSF_LOG_PART) {
        if (!rd->open) rd->begin = r->at;
        rd->open = true;
        rd->end = rd->scan.at;
        return;
    }
    bool answer = r->kind == QSF_LOG_MESSAGE && strcmp(r->role, "assistant") == 0;
    if (answer)
        rd->open = false; /* the whole message repeats its parts */
    else if (r->kind != QSF_LOG_SET)
        flush_parts(rd);
    if (!rd->stopped) report(rd, r);
}

static void read_lines(Reader *rd) {
    QSFLogRecord r;
    for (QsfLogLine l; !rd->stopped && (l = qsf_logscan_line(&rd->scan, NULL, &r)) != QSF_LOG_LINE_END;) {
        if (l == QSF_LOG_LINE_RECORD)
            take_record(rd, &r);
        else if (l == QSF_LOG_LINE_DAMAGED)
            rd->damaged++;
    }
    if (rd->scan.why == 0) flush_parts(rd);
}

/* Refuses what would take seconds to read only to say that it is not a conversation. */
static bool size_ok(int fd, const char *path, char *err, size_t cap) {
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size <= (off_t)QSF_LOG_FILE_MAX) return true;
    snprintf(err, cap, "%s: cannot read the session: it has %.1f MB, and a session has at most %llu", path,
             (double)st.st_size / (1 << 20), (unsigned long long)(QSF_LOG_FILE_MAX >> 20));
    return false;
}

static bool read_file(int fd, const char *path, Reader *rd, char *err, size_t cap) {
    if (!size_ok(fd, path, err, cap)) return false;
    qsf_logscan_init(&rd->scan, fd, 0);
    read_lines(rd);
    if (rd->scan.why == 0) return true;
    snprintf(err, cap, "%s: cannot read the session: %s", path, strerror(rd->scan.why));
    return false;
}

bool qsf_chatlog_read(const char *name, bool (*fn)(void *arg, const QSFLogRecord *r), void *arg,
                      uint32_t *damaged, char *err, size_t cap) {
    *damaged = 0;
    char *path = qsf_chatlog_path(name, err, cap);
    if (!path) return false;
    int fd = qsf_chatlog_open_regular(path);
    bool ok = fd >= 0 || errno == ENOENT;
    if (!ok)
        snprintf(err, cap, "%s: cannot read the session: %s", path,
                 errno == EINVAL ? "not a regular file" : strerror(errno));
    if (fd >= 0) {
        Reader rd = { .fn = fn, .arg = arg };
        ok = read_file(fd, path, &rd, err, cap);
        *damaged = rd.damaged;
        close(fd);
    }
    free(path);
    return ok;
}

static int newest_first(const void *a, const void *b) {
    const QSFLogInfo *x = a, *y = b;
    if (x->mtime != y->mtime) return x->mtime < y->mtime ? 1 : -1;
    return strcmp(y->name, x->name);
}

/* Copies the name of the conversation that a file with this ending belongs to; false if it
 * does not end so. */
static bool name_of(const char *file, const char *ending, char name[QSF_LOG_NAME]) {
    const size_t len = strlen(file), tail = strlen(ending);
    if (len <= tail || len - tail >= QSF_LOG_NAME || strcmp(file + len - tail, ending)) return false;
    memcpy(name, file, len - tail);
    name[len - tail] = '\0';
    return qsf_chatlog_name_ok(name);
}

/* Is there a regular file NAME + ending in d? */
static bool stat_of(DIR *d, const char *name, const char *ending, struct stat *st) {
    char file[QSF_LOG_NAME + 16];
    snprintf(file, sizeof file, "%s%s", name, ending);
    return !fstatat(dirfd(d), file, st, 0) && S_ISREG(st->st_mode);
}

/* Fills *info for a folder entry; false when it is not a session. */
static bool info_of(DIR *d, const char *file, QSFLogInfo *info) {
    struct stat st, snap;
    if (!name_of(file, QSF_CHATLOG_ENDING, info->name) || !stat_of(d, info->name, QSF_CHATLOG_ENDING, &st))
        return false;
    info->snapshot_bytes = stat_of(d, info->name, QSF_CHATLOG_SNAPSHOT, &snap) ? (uint64_t)snap.st_size : 0;
    info->mtime = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
    info->bytes = (uint64_t)st.st_size;
    return true;
}

QSFLogInfo *qsf_chatlog_list(size_t *n) {
    char dir[QSF_PATH_MAX];
    DIR *d = qsf_chatlog_dir(dir) ? opendir(dir) : NULL;
    QSFLogInfo *list = NULL;
    size_t cap = 0;
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        QSFLogInfo info;
        if (!info_of(d, e->d_name, &info)) continue;
        if (*n == cap) {
            QSFLogInfo *more = realloc(list, (cap = cap ? cap * 2 : 16) * sizeof *list);
            if (!more) break;
            list = more;
        }
        list[(*n)++] = info;
    }
    if (d) closedir(d);
    if (*n) qsort(list, *n, sizeof *list, newest_first);
    return list;
}

void qsf_chatlog_drop_snapshots(void) {
    char dir[QSF_PATH_MAX], name[QSF_LOG_NAME];
    struct stat st;
    DIR *d = qsf_chatlog_dir(dir) ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (name_of(e->d_name, QSF_CHATLOG_SNAPSHOT, name) && !stat_of(d, name, QSF_CHATLOG_ENDING, &st))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

bool qsf_chatlog_in_use(const char *name) {
    char err[8];
    char *path = qsf_chatlog_path(name, err, sizeof err);
    int fd = path ? qsf_chatlog_open_regular(path) : -1;
    bool in_use = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    free(path);
    return in_use;
}
