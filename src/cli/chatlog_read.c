/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading conversations: implements the reading half of qsf_chatlog.h. The file may be truncated or damaged:
 * intact lines are used, damaged ones are counted. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/base/paths.h"
#include "src/base/strbuf.h"
#include "src/cli/chatlog_path.h"

#define LINE_MAX_BYTES ((size_t)64 << 20) /* a longer line is damage, not a message */

typedef struct Reader {
    void (*fn)(void *arg, const QSFLogRecord *r);
    void *arg;
    uint32_t damaged;
    QsfStrbuf part, part_reasoning; /* of PART records since the last whole message */
} Reader;

static const char *string_of(const QsfJson *v, const char *key, size_t *len) {
    return qsf_json_string(qsf_json_get(v, key), len);
}

/* Fills r from one parsed line; false when it is not a valid record. */
static bool record_of(const QsfJson *v, QSFLogRecord *r) {
    size_t len;
    const char *kind = string_of(v, "kind", &len);
    *r = (QSFLogRecord){ 0 };
    if (!kind) return false;
    int k = 0;
    while (k <= QSF_LOG_FORGET && strcmp(kind, qsf_chatlog_kind_name((QSFLogKind)k))) k++;
    if (k > QSF_LOG_FORGET) return false;
    r->kind = (QSFLogKind)k;
    r->role = string_of(v, "role", &len);
    r->name = string_of(v, "name", &len);
    r->text = string_of(v, "text", &r->len);
    r->reasoning = string_of(v, "reasoning", &r->reasoning_len);
    r->exact = string_of(v, "exact", &r->exact_len);
    r->stop = string_of(v, "stop", &len);
    const char *seed = string_of(v, "seed", &len);
    r->seed = seed ? strtoull(seed, NULL, 10) : 0;
    r->tokens = (uint32_t)qsf_json_int(qsf_json_get(v, "tokens"), 0);
    r->n = (uint32_t)qsf_json_int(qsf_json_get(v, "n"), 0);
    r->time = qsf_json_real(qsf_json_get(v, "time"), 0);
    bool needs_text = k == QSF_LOG_MESSAGE || k == QSF_LOG_PART || k == QSF_LOG_SYSTEM;
    if (needs_text && !r->text) return false;
    return k != QSF_LOG_MESSAGE || (r->role && *r->role);
}

static void clear_part(Reader *rd) {
    qsf_strbuf_clear(&rd->part);
    qsf_strbuf_clear(&rd->part_reasoning);
}

/* Reports the parts of an answer whose writer was killed as one message. */
static void flush_part(Reader *rd) {
    if (!rd->part.len && !rd->part_reasoning.len) return;
    QSFLogRecord r = { .kind = QSF_LOG_MESSAGE, .role = "assistant", .stop = "interrupted" };
    r.text = qsf_strbuf_str(&rd->part);
    r.len = rd->part.len;
    r.reasoning = qsf_strbuf_str(&rd->part_reasoning);
    r.reasoning_len = rd->part_reasoning.len;
    rd->fn(rd->arg, &r);
    clear_part(rd);
}

static void read_line(Reader *rd, const char *line, size_t len) {
    QsfErr e = { 0 };
    QSFLogRecord r;
    if (!len) return;
    QsfJson *v = memchr(line, '\0', len) ? NULL : qsf_json_parse(line, len, &e);
    if (!v || !record_of(v, &r)) {
        rd->damaged++;
    } else if (r.kind == QSF_LOG_PART) {
        qsf_strbuf_add(&rd->part, r.text, r.len);
        if (r.reasoning_len) qsf_strbuf_add(&rd->part_reasoning, r.reasoning, r.reasoning_len);
    } else {
        bool answer = r.kind == QSF_LOG_MESSAGE && !strcmp(r.role, "assistant");
        if (answer)
            clear_part(rd); /* the whole message repeats its parts */
        else if (r.kind != QSF_LOG_SET)
            flush_part(rd);
        rd->fn(rd->arg, &r);
    }
    qsf_json_free(v);
}

/* Collects one line without its newline; false at the end of the file. */
static bool next_line(FILE *f, QsfStrbuf *line) {
    int c;
    qsf_strbuf_clear(line);
    while ((c = getc_unlocked(f)) != EOF && c != '\n')
        if (line->len < LINE_MAX_BYTES) qsf_strbuf_addc(line, (char)c);
    return c != EOF || line->len;
}

bool qsf_chatlog_read(const char *name, void (*fn)(void *arg, const QSFLogRecord *r), void *arg,
                      uint32_t *damaged, char *err, size_t cap) {
    *damaged = 0;
    char *path = qsf_chatlog_path(name, err, cap);
    if (!path) return false;
    int fd = qsf_chatlog_open_regular(path);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !f) close(fd);
    bool ok = f || errno == ENOENT;
    if (!ok)
        snprintf(err, cap, "%s: cannot read the session: %s", path,
                 errno == EINVAL ? "not a regular file" : strerror(errno));
    if (f) {
        Reader rd = { .fn = fn, .arg = arg };
        QsfStrbuf line = QSF_STRBUF_INIT;
        while (next_line(f, &line) && qsf_strbuf_ok(&line)) read_line(&rd, qsf_strbuf_str(&line), line.len);
        bool memory = qsf_strbuf_ok(&line) && qsf_strbuf_ok(&rd.part) && qsf_strbuf_ok(&rd.part_reasoning);
        if (memory) flush_part(&rd);
        ok = memory && !ferror(f);
        if (!ok)
            snprintf(err, cap, "%s: cannot read the session: %s", path,
                     memory ? strerror(errno) : "out of memory");
        *damaged = rd.damaged;
        qsf_strbuf_free(&line);
        qsf_strbuf_free(&rd.part);
        qsf_strbuf_free(&rd.part_reasoning);
        fclose(f);
    }
    free(path);
    return ok;
}

static int newest_first(const void *a, const void *b) {
    const QSFLogInfo *x = a, *y = b;
    if (x->mtime != y->mtime) return x->mtime < y->mtime ? 1 : -1;
    return strcmp(y->name, x->name);
}

/* Copies the name of the conversation that a file with this ending belongs to; false if it does not end so. */
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
