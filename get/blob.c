/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "get/hash.h"
#include "src/base/clock.h"
#include "src/base/interrupt.h"
#include "src/base/platform.h"

#define VERSION_MAX (2 * GET_HEADER_MAX)
#define TRIES       6 /* without a byte in between */
#define RETRY_MAX   120.0
#define SPARE_BYTES ((uint64_t)64 << 20) /* left free on the disk */
#define FLUSH_BYTES ((uint64_t)16 << 20) /* written to the disk and dropped from the page cache at a time */
#define FIRST_CHECK ((uint64_t)1 << 20)
#define LAST_CHECK  ((uint64_t)64 << 20)

typedef struct Job {
    GetHttp *h;
    GetFile *f;
    const GetPlace *place;
    const GetWatch *watch;
    char part[QSF_PATH_MAX]; /* the unfinished file */
    int fd;
    uint64_t have;    /* bytes in it, all of them in hash */
    uint64_t flushed; /* of these on the disk */
    uint64_t next_check;
    uint64_t fetched;
    GetHash hash;
    bool restart; /* the server does not continue where it should: from the beginning */
    QsfErr *err;
} Job;

static int disk_error(Job *j, const char *what) {
    return qsf_err_set(j->err, QSF_E_RUNTIME, "%s: %s: %s", j->part, what, strerror(errno));
}

static void note(const Job *j, const char *text) {
    if (j->watch->note) j->watch->note(j->watch->arg, text);
}

/* ---- the file on the disk */

static int start_over(Job *j) {
    j->have = j->flushed = 0;
    get_hash_begin(&j->hash, j->f->etag, j->f->bytes < 0 ? 0 : (uint64_t)j->f->bytes);
    return ftruncate(j->fd, 0) == 0 ? QSF_OK : disk_error(j, "cannot be emptied");
}

/* Takes what an earlier download left into the checksum. */
static int read_rest(Job *j, uint64_t size) {
    const size_t cap = (size_t)1 << 20;
    char *buf = malloc(cap);
    if (!buf) return qsf_err_memory(j->err, "a buffer for the checksum");
    while (j->have < size && !qsf_interrupt_check(j->err)) {
        const size_t want = size - j->have < cap ? (size_t)(size - j->have) : cap;
        const ssize_t n = pread(j->fd, buf, want, (off_t)j->have);
        if (n <= 0) break;
        get_hash_add(&j->hash, buf, (size_t)n);
        j->have += (uint64_t)n;
    }
    free(buf);
    j->flushed = j->have;
    if (j->err->code) return j->err->code;
    return j->have == size ? QSF_OK : disk_error(j, "cannot be read");
}

/* For a URL, the version of a file is noted beside it: its ETag, and in the next line Last-Modified. On a hub
 * it is in the name. */
static void version_of(const GetFile *f, char out[VERSION_MAX]) {
    snprintf(out, VERSION_MAX, "%s\n%s", f->etag, f->modified);
}

static bool read_version(const char *file, char out[VERSION_MAX]) {
    char path[QSF_PATH_MAX];
    out[0] = '\0';
    if (!qsf_path_join(path, file, ".etag", "")) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, VERSION_MAX - 1);
    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 1;
}

static bool same_version(const Job *j, const char *file) {
    char noted[VERSION_MAX], now[VERSION_MAX];
    if (*j->place->snapshot) return true;
    version_of(j->f, now);
    return read_version(file, noted) && strcmp(noted, now) == 0;
}

static void note_version(const Job *j) {
    char path[QSF_PATH_MAX], now[VERSION_MAX];
    version_of(j->f, now);
    if (*j->place->snapshot || now[1] == '\0' || !qsf_path_join(path, j->part, ".etag", "")) return;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return;
    if (write(fd, now, strlen(now)) < 0) (void)unlink(path); /* resumed from the start then */
    close(fd);
}

/* The file has its name: before this the note of another version, or none, has it downloaded again. */
static void rename_version(const Job *j) {
    char from[QSF_PATH_MAX], to[QSF_PATH_MAX];
    if (*j->place->snapshot || !qsf_path_join(from, j->part, ".etag", "") ||
        !qsf_path_join(to, j->place->blob, ".etag", ""))
        return;
    if (rename(from, to) != 0) (void)unlink(to);
}

static int open_part(Job *j) {
    struct stat st;
    if (!qsf_path_join(j->part, j->place->blob, ".incomplete", ""))
        return qsf_err_set(j->err, QSF_E_RUNTIME, "%s: the path is too long", j->f->name);
    j->fd = open(j->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (j->fd < 0 || fstat(j->fd, &st) != 0) return disk_error(j, "cannot be opened");
    const uint64_t size = (uint64_t)st.st_size;
    const bool fits = j->f->bytes < 0 || size <= (uint64_t)j->f->bytes;
    get_hash_begin(&j->hash, j->f->etag, j->f->bytes < 0 ? 0 : (uint64_t)j->f->bytes);
    if (!fits || !same_version(j, j->part)) return start_over(j);
    return read_rest(j, size);
}

static int check_space(Job *j) {
    struct statvfs v;
    if (j->f->bytes < 0 || fstatvfs(j->fd, &v) != 0) return QSF_OK;
    const uint64_t left = (uint64_t)j->f->bytes - j->have, room = (uint64_t)v.f_bavail * v.f_frsize;
    if (left == 0 || room >= left + SPARE_BYTES) return QSF_OK;
    const bool gb = left >= 1000000000u;
    const double unit = gb ? 1e9 : 1e6;
    return qsf_err_set(
        j->err, QSF_E_RUNTIME,
        "%s needs %.1f %s more, and %.1f are free on its disk, of which %.1f have to stay free: "
        "remove something, or %s another folder (%s)",
        j->f->name, (double)left / unit, gb ? "GB" : "MB", (double)room / unit, (double)SPARE_BYTES / unit,
        *j->place->snapshot ? "let HF_HOME name" : "let XDG_CACHE_HOME name", j->place->blob);
}

/* Sends it to the disk as it comes: otherwise the page cache fills with it, and another program waits when it
 * is written at last. */
static void flush(Job *j) {
    if (j->have - j->flushed < FLUSH_BYTES) return;
    qsf_os_write_back(j->fd, j->flushed, j->have - j->flushed);
    j->flushed = j->have;
}

static int check(Job *j, bool end) {
    if (!j->watch->check || j->next_check > LAST_CHECK || (!end && j->have < j->next_check)) return QSF_OK;
    while (j->next_check <= j->have) j->next_check *= 4;
    return j->watch->check(j->watch->arg, j->fd, j->f->name, j->have, (uint64_t)j->f->bytes, j->err);
}

/* ---- the network */

/* Does the server answer with the rest of the file, or with all of it? */
static bool is_rest(Job *j, const GetReply *r) {
    const int64_t total = r->status == 206 ? r->total : r->length;
    if (r->status != 200 && r->status != 206) return false;
    if (j->f->bytes >= 0 && total >= 0 && total != j->f->bytes) {
        qsf_err_set(j->err, QSF_E_MODEL, "%s: the server announced %lld bytes, and now has %lld", j->f->name,
                    (long long)j->f->bytes, (long long)total);
        return false;
    }
    if (j->f->bytes < 0 && total >= 0) j->f->bytes = total;
    if (r->status == 206 && r->first != (int64_t)j->have) {
        j->restart = true;
        return false;
    }
    return r->status == 206 || j->have == 0 || start_over(j) == QSF_OK;
}

static bool put(Job *j, const char *bytes, size_t len) {
    if (j->f->bytes >= 0 && len > (uint64_t)j->f->bytes - j->have) {
        qsf_err_set(j->err, QSF_E_MODEL, "%s: the server sends more than the %lld bytes that it announced",
                    j->f->name, (long long)j->f->bytes);
        return false;
    }
    get_hash_add(&j->hash, bytes, len);
    for (size_t done = 0; done < len;) {
        const ssize_t n = pwrite(j->fd, bytes + done, len - done, (off_t)(j->have + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            disk_error(j, "cannot be written");
            return false;
        }
        done += (size_t)n;
    }
    j->have += len;
    j->fetched += len;
    return true;
}

typedef struct Part {
    Job *j;
    bool begun;
} Part;

static void show(void *arg) {
    const Job *j = arg;
    const uint64_t total = j->f->bytes < 0 ? 0 : (uint64_t)j->f->bytes;
    if (j->watch->progress) j->watch->progress(j->watch->arg, j->have, total);
}

static bool on_bytes(void *arg, const GetReply *reply, const void *bytes, size_t len) {
    Part *p = arg;
    Job *j = p->j;
    if (!p->begun && !is_rest(j, reply)) return false;
    p->begun = true;
    if (!put(j, bytes, len)) return false;
    flush(j);
    show(j);
    return check(j, false) == QSF_OK;
}

/* What a status means for the user; temporary ones are left to try again. */
static int refuse(const GetFile *f, const GetReply *r, QsfErr *err) {
    if (r->status == 401 || r->status == 403)
        return qsf_err_set(
            err, QSF_E_MODEL,
            "%s: the server does not allow it (HTTP %ld): the model may need a licence that is "
            "accepted on its page, and a token in HF_TOKEN",
            f->name, r->status);
    if (r->status == 404)
        return qsf_err_set(err, QSF_E_MODEL, "%s: the server has no such file (HTTP 404)", f->name);
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the server answers HTTP %ld", f->name, r->status);
}

static bool is_temporary(long status) { return status == 408 || status == 429 || status >= 500; }

/* Waits before the next try; QSF_E_INTERRUPTED. */
static int pause_for(Job *j, unsigned tries, double asked, const char *why) {
    char text[GET_URL_MAX + 100];
    double seconds = asked > 0 ? asked : tries == 0 ? 0 : 0.5 * (double)(1u << tries);
    if (seconds > RETRY_MAX) seconds = RETRY_MAX;
    snprintf(text, sizeof text, "%s; trying again%s", why, j->have > 0 ? " from where it ended" : "");
    note(j, text);
    const uint64_t until = qsf_now_ns() + (uint64_t)(seconds * 1e9);
    while (qsf_now_ns() < until && !qsf_interrupt_check(j->err)) (void)poll(NULL, 0, 50);
    return j->err->code;
}

static bool is_whole(const Job *j) { return j->f->bytes >= 0 && j->have == (uint64_t)j->f->bytes; }

/* One request. *again: it makes sense to try again; why says what happened. */
static int try_once(Job *j, bool *again, double *wait, QsfErr *why) {
    GetReply r;
    Part part = { .j = j };
    bool stopped = false;
    j->restart = false;
    const int rc = get_http_body(j->h, j->f->url, j->have, on_bytes, &part, &r, &stopped, why);
    *again = false;
    *wait = 0;
    if (j->err->code) return j->err->code;
    if (rc == QSF_E_INTERRUPTED) return qsf_err_pass(j->err, why);
    if (is_whole(j)) return QSF_OK;
    if (r.permanent) return qsf_err_pass(j->err, why);
    if (rc == QSF_OK && r.status == 200 && !stopped && j->f->bytes < 0) {
        j->f->bytes = (int64_t)j->have;
        return QSF_OK;
    }
    *again = true;
    *wait = r.retry_after;
    if (j->restart || r.status == 416) {
        qsf_err_set(why, QSF_E_RUNTIME, "%s: the server does not continue where it should", j->f->name);
        return start_over(j);
    }
    if (rc == QSF_OK && r.status != 200 && r.status != 206) {
        (void)refuse(j->f, &r, why);
        if (!is_temporary(r.status)) return qsf_err_pass(j->err, why);
    } else if (rc == QSF_OK) {
        qsf_err_set(why, QSF_E_RUNTIME, "%s: the connection ended after %llu bytes", j->f->name,
                    (unsigned long long)j->have);
    }
    return QSF_OK;
}

static int transfer(Job *j) {
    unsigned tries = 0;
    while (!is_whole(j)) {
        QsfErr why = { 0 };
        const uint64_t before = j->fetched;
        bool again;
        double wait;
        if (try_once(j, &again, &wait, &why)) return j->err->code;
        if (!again) return QSF_OK;
        tries = j->fetched > before && !j->restart ? 0 : tries + 1;
        if (tries == TRIES) return qsf_err_pass(j->err, &why);
        if (pause_for(j, tries, wait, why.msg)) return j->err->code;
    }
    return QSF_OK;
}

/* ---- the end */

static int remove_part(Job *j) {
    (void)unlink(j->part);
    return j->err->code;
}

static int finish(Job *j) {
    char digest[GET_HASH_TEXT];
    if (check(j, true)) return remove_part(j);
    get_hash_end(&j->hash, digest);
    if (*j->place->snapshot && get_hash_known(j->f->etag) && strcmp(digest, j->f->etag) != 0) {
        qsf_err_set(j->err, QSF_E_MODEL, "%s: the checksum is %s, but the server announced %s: removed",
                    j->f->name, digest, j->f->etag);
        return remove_part(j);
    }
    if (qsf_os_sync(j->fd) != 0) return disk_error(j, "cannot be written");
    if (rename(j->part, j->place->blob) != 0) return disk_error(j, "cannot be renamed");
    rename_version(j);
    return QSF_OK;
}

static bool exists(const Job *j) {
    struct stat st;
    return stat(j->place->blob, &st) == 0 && S_ISREG(st.st_mode) &&
           (j->f->bytes < 0 || st.st_size == (off_t)j->f->bytes) && same_version(j, j->place->blob);
}

static int download(Job *j) {
    if (open_part(j) || check_space(j)) return j->err->code;
    note_version(j);
    get_http_on_idle(j->h, show, j);
    const int rc = transfer(j);
    get_http_on_idle(j->h, NULL, NULL);
    if (rc == QSF_OK) return finish(j);
    /* What check refused, or what is longer than announced, is of no use later. */
    return j->err->code == QSF_E_MODEL ? remove_part(j) : j->err->code;
}

static void waiting(void *arg) { note(arg, "another program downloads this file: waiting for it"); }

int get_blob(GetHttp *h, GetFile *f, const GetPlace *place, const GetWatch *watch, uint64_t *fetched,
             QsfErr *err) {
    QsfErr own = { 0 };
    Job j = { .h = h,
              .f = f,
              .place = place,
              .watch = watch,
              .fd = -1,
              .next_check = FIRST_CHECK,
              .err = err ? err : &own };
    const int lock = get_cache_lock(place, waiting, &j, j.err);
    if (lock < 0) return j.err->code;
    const int rc = exists(&j) ? QSF_OK : download(&j);
    if (j.fd >= 0) close(j.fd);
    close(lock);
    if (fetched) *fetched = j.fetched;
    return rc;
}

/* A redirect to another name on the same host (a repository that was renamed) is followed; one to where the
 * bytes are is not: only the hub itself says what the checksum is. */
static bool same_host(const char *a, const char *b) {
    const char *pa = strstr(a, "://"), *pb = strstr(b, "://");
    if (!pa || !pb) return false;
    const size_t na = (size_t)(pa - a) + 3 + strcspn(pa + 3, "/"),
                 nb = (size_t)(pb - b) + 3 + strcspn(pb + 3, "/");
    return na == nb && memcmp(a, b, na) == 0;
}

/* *status: the last one that is not an error. */
static int ask(GetHttp *h, GetFile *f, char *commit, long *status, QsfErr *err) {
    GetReply r;
    f->etag[0] = f->modified[0] = *commit = '\0';
    f->bytes = -1;
    for (int i = 0;; i++) {
        if (get_http_head(h, f->url, &r, err)) return err->code;
        const bool moved = r.status >= 300 && r.status < 400 && *r.location && !*r.linked_etag;
        if (!moved || i == 5 || strlen(r.location) >= sizeof f->url) break;
        if (*r.commit && !same_host(f->url, r.location)) break;
        if (strncmp(f->url, "https:", 6) == 0 && strncmp(r.location, "https:", 6) != 0) break;
        snprintf(f->url, sizeof f->url, "%s", r.location);
    }
    const bool linked = r.status >= 300 && r.status < 400 && *r.linked_etag;
    *status = r.status;
    if (r.status == 304 || r.status == 405 || r.status == 501)
        return QSF_OK; /* unchanged; or a server that only knows GET */
    if (r.status != 200 && !linked) return refuse(f, &r, err);
    snprintf(f->etag, sizeof f->etag, "%s", *r.linked_etag ? r.linked_etag : r.etag);
    snprintf(f->modified, sizeof f->modified, "%s", r.modified);
    f->bytes = r.linked_size >= 0 ? r.linked_size : linked ? -1 : r.length;
    snprintf(commit, GET_HEADER_MAX, "%s", r.commit);
    return QSF_OK;
}

int get_blob_ask(GetHttp *h, GetFile *f, char *commit, QsfErr *err) {
    long status;
    return ask(h, f, commit, &status, err);
}

int get_blob_ask_again(GetHttp *h, GetFile *f, const GetPlace *place, GetFresh *fresh, QsfErr *err) {
    char noted[VERSION_MAX], now[VERSION_MAX], commit[GET_HEADER_MAX];
    struct stat st;
    long status = 0;
    *fresh = GET_CHANGED;
    if (stat(place->blob, &st) != 0) return ask(h, f, commit, &status, err);
    const bool known = read_version(place->blob, noted);
    char *line = noted + strcspn(noted, "\n");
    if (*line) *line++ = '\0';
    get_http_unless(h, noted, line);
    const int rc = ask(h, f, commit, &status, err);
    get_http_unless(h, "", "");
    if (rc) return rc;
    version_of(f, now);
    const bool same_size = f->bytes == (int64_t)st.st_size, named = now[1] != '\0';
    if (status == 304)
        *fresh = GET_SAME;
    else if (known && named)
        *fresh = strcmp(noted, f->etag) == 0 && strcmp(line, f->modified) == 0 && same_size ? GET_SAME
                                                                                            : GET_CHANGED;
    else
        *fresh = f->bytes < 0 || same_size ? GET_UNKNOWN : GET_CHANGED;
    return QSF_OK;
}
