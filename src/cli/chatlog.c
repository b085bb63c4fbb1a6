/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing conversations: implements the appending half of qsf_chatlog.h. One record is one line and one
 * write(); a record that was written only in part is cut off and written again with the next one. */
#include "qsf_chatlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "qsf_savefile.h"
#include "qsf_system.h"
#include "src/base/json.h"
#include "src/base/paths.h"
#include "src/base/platform.h"
#include "src/base/strbuf.h"
#include "src/cli/chatlog_path.h"
#include "src/cli/chatlog_scan.h"

#define LOCK_TRIES 300 /* of 10 ms */

struct QSFChatLog {
    int fd;
    char *name, *path;
    off_t size;          /* of the file after the last record */
    uint64_t last;       /* where that is */
    size_t last_waiting; /* its place in `waiting`, until it is written */
    bool torn;           /* the file may end in the middle of a line: start the next record on a new one */
    bool incomplete;     /* a record was lost because memory ran out */
    QsfStrbuf waiting;   /* records that could not be written yet */
    bool batch;          /* records are not synced one by one */
    bool pending;        /* created but not published */
    bool scratch;        /* the file is only in memory */
    QSFSaveFile file;    /* owns fd while pending */
};

static bool make_dir(char *err, size_t cap) {
    QsfErr e = { 0 };
    char dir[QSF_PATH_MAX];
    bool home = qsf_chatlog_dir(dir);
    if (home && qsf_path_make_dirs(dir, &e) == QSF_OK) return true;
    snprintf(err, cap, "%s", home ? e.msg : QSF_CHATLOG_NO_HOME);
    return false;
}

/* Does a non-empty file end without a newline (a writer was killed)? */
static bool ends_torn(int fd) {
    struct stat st;
    char last;
    if (fstat(fd, &st) || st.st_size == 0) return false;
    return pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* Takes the lock. qsf_chatlog_in_use has a shared one for a moment, which may be long on a busy machine: it
 * is waited for, but not a program that has the session, whose lock is exclusive. */
static bool lock(int fd) {
    const struct timespec moment = { .tv_nsec = 10000000 };
    for (int tries = LOCK_TRIES; flock(fd, LOCK_EX | LOCK_NB); tries--) {
        if (errno != EWOULDBLOCK || tries == 0 || flock(fd, LOCK_SH | LOCK_NB)) return false;
        (void)flock(fd, LOCK_UN);
        nanosleep(&moment, NULL);
    }
    return true;
}

/* Opens and locks a regular file, which create makes; -1 with a message in err. */
static int open_locked(const char *path, bool create, char *err, size_t cap) {
    struct stat st;
    const char *why = NULL;
    int fd = open(path, O_RDWR | (create ? O_CREAT : 0) | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600),
        code = errno;
    if (fd < 0)
        why = strerror(code);
    else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        why = "not a regular file", code = EINVAL;
    else if (!lock(fd))
        why = "the session is in use by another program", code = EWOULDBLOCK;
    if (!why) return fd;
    snprintf(err, cap, "%s: cannot open the session: %s", path, why);
    if (fd >= 0) close(fd);
    errno = code;
    return -1;
}

/* Makes a log without its file; NULL with a message in err. */
static QSFChatLog *new_log(const char *name, char *err, size_t cap) {
    QSFChatLog *l = calloc(1, sizeof *l);
    char *path = qsf_chatlog_path(name, err, cap), *copy = strdup(name);
    bool ok = path && l && copy;
    if (path && !ok) snprintf(err, cap, "%s: out of memory", path);
    if (ok && make_dir(err, cap)) {
        *l = (QSFChatLog){ .fd = -1, .name = copy, .path = path };
        return l;
    }
    free(path);
    free(copy);
    free(l);
    return NULL;
}

QSFChatLog *qsf_chatlog_open(const char *name, char *err, size_t cap) {
    QSFChatLog *l = new_log(name, err, cap);
    if (l) l->fd = open_locked(l->path, true, err, cap);
    int why = l ? errno : EINVAL;
    if (l && l->fd >= 0) {
        l->size = lseek(l->fd, 0, SEEK_END);
        l->torn = ends_torn(l->fd);
        return l;
    }
    qsf_chatlog_close(l);
    errno = why;
    return NULL;
}

QSFChatLog *qsf_chatlog_create(const char *name, char *err, size_t cap) {
    QSFChatLog *l = new_log(name, err, cap);
    if (!l) return NULL;
    int why = qsf_savefile_open(&l->file, l->path);
    l->pending = why == 0;
    l->fd = why ? -1 : l->file.fd;
    /* O_APPEND, so that an incomplete record can be cut off. */
    if (!why && fcntl(l->fd, F_SETFL, O_APPEND)) why = errno;
    if (!why) return l;
    snprintf(err, cap, "%s: cannot create the session: %s", l->path, strerror(why));
    qsf_chatlog_close(l);
    return NULL;
}

QSFChatLog *qsf_chatlog_view(const char *name, char *err, size_t cap) {
    char *path = qsf_chatlog_path(name, err, cap);
    QSFChatLog *l = path ? calloc(1, sizeof *l) : NULL;
    if (path && !l) snprintf(err, cap, "%s: out of memory", path);
    if (!l) {
        free(path);
        return NULL;
    }
    *l = (QSFChatLog){ .path = path, .fd = qsf_chatlog_open_regular(path) };
    if (l->fd >= 0) return l;
    if (errno == ENOENT)
        snprintf(err, cap, "there is no session %s; --list-sessions lists them", name);
    else
        snprintf(err, cap, "%s: cannot read the session: %s", path,
                 errno == EINVAL ? "not a regular file" : strerror(errno));
    qsf_chatlog_close(l);
    return NULL;
}

QSFChatLog *qsf_chatlog_scratch(void) {
    QSFChatLog *l = calloc(1, sizeof *l);
    char *path = strdup("the conversation in memory");
    const int fd = l && path ? qsf_os_memory_file("qsf-chat") : -1;
    if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0) {
        *l = (QSFChatLog){ .fd = fd, .path = path, .scratch = true };
        return l;
    }
    if (fd >= 0) close(fd);
    free(path);
    free(l);
    return NULL;
}

bool qsf_chatlog_delete(const char *name, char *err, size_t cap) {
    char *path = qsf_chatlog_path(name, err, cap), *snapshot = path ? qsf_chatlog_snapshot(name) : NULL;
    int fd = path ? open_locked(path, false, err, cap) : -1, why = fd >= 0 ? 0 : errno;
    if (fd >= 0 && unlink(path) != 0) {
        why = errno;
        snprintf(err, cap, "%s: cannot delete the session: %s", path, strerror(why));
    }
    /* Without its session a snapshot is removed by the next start. */
    if (why == 0 && snapshot) (void)unlink(snapshot);
    if (fd >= 0) close(fd);
    free(path);
    free(snapshot);
    errno = why;
    return fd >= 0 && why == 0;
}

/* Writes all waiting records or none. false with a message in err, and errno. */
static bool write_waiting(QSFChatLog *l, char *err, size_t cap) {
    struct stat st;
    if (!l->waiting.len) return true;
    bool known = !fstat(l->fd, &st);
    if (known && st.st_size != l->size) l->torn = ends_torn(l->fd); /* another program has written to it */
    bool ready = known && (!l->torn || qsf_write_all(l->fd, "\n", 1));
    if (ready && qsf_write_all(l->fd, l->waiting.data, l->waiting.len)) {
        const uint64_t after = l->waiting.len - l->last_waiting;
        l->torn = false;
        l->size = lseek(l->fd, 0, SEEK_END);
        l->last = (uint64_t)l->size > after ? (uint64_t)l->size - after : 0;
        qsf_strbuf_free(&l->waiting);
        return true;
    }
    int why = errno;
    snprintf(err, cap, "%s: cannot save: %s", l->path, strerror(why));
    l->torn = (known && ftruncate(l->fd, st.st_size) != 0) || l->torn;
    errno = why;
    return false;
}

bool qsf_chatlog_publish(QSFChatLog *l, const char *name, char *err, size_t cap) {
    if (!write_waiting(l, err, cap)) return false;
    char *path = qsf_chatlog_path(name, err, cap), *copy = strdup(name);
    int why = !path ? EINVAL : copy ? qsf_savefile_publish(&l->file, path, false) : ENOMEM;
    if (path && why)
        snprintf(err, cap, "%s: cannot create the session: %s", path,
                 why == EEXIST ? "a session with this name exists" : strerror(why));
    if (why) {
        free(path);
        free(copy);
    } else {
        free(l->path);
        free(l->name);
        l->path = path;
        l->name = copy;
        qsf_savefile_close(&l->file, true);
        l->pending = false;
    }
    errno = why;
    return why == 0;
}

bool qsf_chatlog_close(QSFChatLog *l) {
    char err[8];
    if (!l) return true;
    bool all = l->fd >= 0 && !l->pending && write_waiting(l, err, sizeof err) && !l->incomplete;
    qsf_strbuf_free(&l->waiting);
    if (l->pending)
        qsf_savefile_close(&l->file, false);
    else if (l->fd >= 0)
        close(l->fd);
    free(l->name);
    free(l->path);
    free(l);
    return all;
}

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)(ts.tv_nsec / 1000000) / 1e3;
}

static void put_field(QsfStrbuf *b, const char *key, const char *s, size_t len) {
    qsf_strbuf_addf(b, ",\"%s\":", key);
    qsf_json_put_string(b, s, len);
}

static void put_record(QsfStrbuf *b, const QSFLogRecord *r) {
    qsf_strbuf_addf(b, "{\"kind\":\"%s\",\"time\":%.3f", qsf_chatlog_kind_name(r->kind),
                    r->time > 0 ? r->time : now());
    if (r->role) put_field(b, "role", r->role, strlen(r->role));
    /* The name of a message or a model was added to the format later: it follows the other fields. */
    const bool last = r->kind == QSF_LOG_MESSAGE || r->kind == QSF_LOG_MODEL;
    if (r->name && !last) put_field(b, "name", r->name, strlen(r->name));
    if (r->text) put_field(b, "text", r->text, r->len);
    if (r->stop) {
        put_field(b, "stop", r->stop, strlen(r->stop));
        /* The seed is a string: readers that store numbers as doubles would round it. */
        qsf_strbuf_addf(b, ",\"seed\":\"%llu\",\"tokens\":%u", (unsigned long long)r->seed, r->tokens);
        if (r->about) qsf_strbuf_adds(b, ",\"about\":1");
    }
    if (r->reasoning_len) put_field(b, "reasoning", r->reasoning, r->reasoning_len);
    if (r->exact_len) put_field(b, "exact", r->exact, r->exact_len);
    if (r->ids) put_field(b, "ids", r->ids, strlen(r->ids));
    if (r->name && last) put_field(b, "name", r->name, strlen(r->name));
    if (r->kind == QSF_LOG_UNDO || r->kind == QSF_LOG_FORGET) qsf_strbuf_addf(b, ",\"n\":%u", r->n);
    /* Earlier versions of the program skip these. */
    if (r->id > 0) qsf_strbuf_addf(b, ",\"id\":%u", r->id);
    if (r->was) put_field(b, "was", r->was, strlen(r->was));
    if (r->by) put_field(b, "by", r->by, strlen(r->by));
    if (r->more) qsf_strbuf_adds(b, ",\"more\":1");
    qsf_strbuf_adds(b, "}\n");
}

static void cut_waiting(QSFChatLog *l, size_t len) {
    l->waiting.len = len;
    if (l->waiting.data) l->waiting.data[len] = '\0';
}

/* Adds r to the waiting records; false, and nothing is added, when out of memory. */
static bool add_waiting(QSFChatLog *l, const QSFLogRecord *r) {
    size_t before = l->waiting.len;
    put_record(&l->waiting, r);
    if (qsf_strbuf_ok(&l->waiting)) return true;
    l->waiting.failed = false;
    cut_waiting(l, before);
    return false;
}

uint64_t qsf_chatlog_last(const QSFChatLog *l) { return l->last; }

void qsf_chatlog_batch(QSFChatLog *l, bool on) {
    if (l->batch && !on) (void)qsf_os_sync_data(l->fd);
    l->batch = on;
}

bool qsf_chatlog_append(QSFChatLog *l, const QSFLogRecord *r, char *err, size_t cap) {
    size_t before = l->waiting.len;
    l->last_waiting = before;
    l->last = (uint64_t)l->size + (l->torn ? 1 : 0) + before;
    if (!add_waiting(l, r)) {
        snprintf(err, cap, "%s: cannot save: out of memory", l->path);
        l->incomplete = l->incomplete || r->kind != QSF_LOG_PART;
        return false;
    }
    l->incomplete = l->incomplete && r->kind != QSF_LOG_CLEAR;
    if (!write_waiting(l, err, cap)) {
        if (r->kind == QSF_LOG_PART) cut_waiting(l, before);
        return false;
    }
    if (r->kind == QSF_LOG_PART || l->pending || l->batch || l->scratch) return true;
    if (!qsf_os_sync_data(l->fd) || errno == EINVAL || errno == EROFS) return true;
    snprintf(err, cap, "%s: cannot save: %s", l->path, strerror(errno));
    return false;
}

bool qsf_chatlog_texts(const QSFChatLog *l, const uint64_t *at, size_t n,
                       void (*put)(void *arg, QSFLogPart part, const char *s, size_t len), void *arg) {
    QsfLogScan s;
    QSFLogRecord r;
    const QsfLogSink sink = { .put = put, .arg = arg };
    qsf_logscan_init(&s, l->fd, 0);
    for (size_t i = 0; i < n; i++) {
        qsf_logscan_seek(&s, at[i]);
        if (qsf_logscan_line(&s, &sink, &r) != QSF_LOG_LINE_RECORD) return false;
    }
    return true;
}

bool qsf_chatlog_record(const QSFChatLog *l, uint64_t at, void (*fn)(void *arg, const QSFLogRecord *r),
                        void *arg) {
    QsfLogScan s;
    QSFLogRecord r;
    qsf_logscan_init(&s, l->fd, at);
    const bool ok = qsf_logscan_line(&s, NULL, &r) == QSF_LOG_LINE_RECORD;
    if (ok) fn(arg, &r);
    return ok;
}

QSFLogState qsf_chatlog_state(const QSFChatLog *l) {
    struct stat opened, named;
    if (l->pending || l->scratch || fstat(l->fd, &opened)) return QSF_LOG_INTACT;
    if (stat(l->path, &named)) return errno == ENOENT || errno == ENOTDIR ? QSF_LOG_REMOVED : QSF_LOG_INTACT;
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino) return QSF_LOG_REPLACED;
    return opened.st_size < l->size ? QSF_LOG_CUT : QSF_LOG_INTACT;
}

bool qsf_chatlog_complete(const QSFChatLog *l) { return !l->incomplete; }

/* Copies all bytes; 0 or errno. */
static int copy_bytes(int from, QSFSaveFile *to) {
    char buf[16384];
    int why = 0;
    for (ssize_t n; !why && (n = read(from, buf, sizeof buf)) != 0;)
        if (n > 0)
            why = qsf_savefile_write(to, buf, (size_t)n);
        else if (errno != EINTR)
            why = errno;
    return why;
}

bool qsf_chatlog_copy(const char *name, const char *name2, char *err, size_t cap) {
    char *src = qsf_chatlog_path(name, err, cap), *dst = src ? qsf_chatlog_path(name2, err, cap) : NULL;
    bool ok = false;
    if (dst && make_dir(err, cap)) {
        QSFSaveFile to;
        int from = qsf_chatlog_open_regular(src), why = from < 0 ? errno : qsf_savefile_open(&to, dst);
        if (from >= 0 && !why) {
            why = copy_bytes(from, &to);
            if (!why) why = qsf_savefile_publish(&to, dst, false);
            qsf_savefile_close(&to, false);
        }
        ok = why == 0;
        if (!ok)
            snprintf(err, cap, "%s: %s", from < 0 ? src : dst,
                     why == EEXIST ? "a session with this name exists" : strerror(why));
        if (from >= 0) close(from);
    }
    free(src);
    free(dst);
    return ok;
}
