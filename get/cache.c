/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "get/hash.h"
#include "src/base/interrupt.h"
#include "src/base/newfile.h"
#include "src/base/paths.h"

#define LOCK_WAIT_MS 100

static bool env(const char *name, const char **value) {
    *value = getenv(name);
    return *value && **value;
}

/* $HF_HOME, or $XDG_CACHE_HOME/huggingface, or ~/.cache/huggingface, and then sub. */
static bool hub_home(const char *sub, char out[QSF_PATH_MAX]) {
    const char *v;
    if (env("HF_HOME", &v)) return qsf_path_join(out, v, sub, "");
    if (env("XDG_CACHE_HOME", &v)) return qsf_path_join(out, v, "/huggingface", sub);
    return env("HOME", &v) && qsf_path_join(out, v, "/.cache/huggingface", sub);
}

static bool hub_cache(char out[QSF_PATH_MAX]) {
    const char *v;
    if (env("HF_HUB_CACHE", &v) || env("HUGGINGFACE_HUB_CACHE", &v)) return qsf_path_join(out, v, "", "");
    return hub_home("/hub", out);
}

int get_cache_open(GetCache *c, const GetRef *ref, QsfErr *err) {
    char folder[2 * GET_NAME_MAX + 16];
    snprintf(folder, sizeof folder, "models--%s--%s", ref->owner, ref->name);
    if (hub_cache(c->hub) && qsf_path_join(c->repo, c->hub, "/", folder)) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "no folder for downloads: HOME and HF_HOME are not set");
}

/* The first line of a small file. */
static bool first_line(const char *path, char *out, size_t cap) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, cap - 1);
    if (fd >= 0) close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\r\n \t")] = '\0';
    return *out != '\0';
}

bool get_cache_snapshot(const GetCache *c, const char *revision, char out[QSF_PATH_MAX]) {
    char ref[QSF_PATH_MAX], commit[GET_NAME_MAX];
    if (qsf_path_join(ref, c->repo, "/refs/", revision) && first_line(ref, commit, sizeof commit) &&
        get_etag_is_name(commit) && qsf_path_join(out, c->repo, "/snapshots/", commit) &&
        qsf_path_is_dir(out))
        return true;
    return get_etag_is_name(revision) && qsf_path_join(out, c->repo, "/snapshots/", revision) &&
           qsf_path_is_dir(out);
}

bool get_etag_is_name(const char *text) {
    const size_t n = strlen(text);
    return n > 0 && n <= 100 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] == '\0';
}

int get_cache_place(const GetCache *c, const char *commit, const char *file, const char *etag, GetPlace *out,
                    QsfErr *err) {
    char name[GET_WHAT_MAX + 200];
    const char *repo = strrchr(c->repo, '/');
    snprintf(name, sizeof name, "%s/%s", commit, file);
    if (qsf_path_join(out->blob, c->repo, "/blobs/", etag) &&
        qsf_path_join(out->snapshot, c->repo, "/snapshots/", name) &&
        snprintf(out->lock, sizeof out->lock, "%s/.locks%s/%s.lock", c->hub, repo, etag) <
            (int)sizeof out->lock)
        return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the path is too long", file);
}

/* The last part of a URL's path: the file's name, so that the program knows what it is. */
static bool url_file(const char *url, char *out, size_t cap) {
    const size_t len = strcspn(url, "?#");
    size_t start = len;
    while (start > 0 && url[start - 1] != '/') start--;
    if (len - start >= cap || len == start) return false;
    memcpy(out, url + start, len - start);
    out[len - start] = '\0';
    return get_path_is_safe(out);
}

int get_cache_place_url(const char *url, GetPlace *out, QsfErr *err) {
    char base[QSF_PATH_MAX], file[256], digest[GET_HASH_TEXT];
    const char *v;
    if (!url_file(url, file, sizeof file))
        return qsf_err_set(err, QSF_E_USAGE, "%s: the URL does not end with the name of a file", url);
    if (!(env("XDG_CACHE_HOME", &v)
              ? qsf_path_join(base, v, "/qsf/downloads/", "")
              : env("HOME", &v) && qsf_path_join(base, v, "/.cache/qsf/downloads/", "")))
        return qsf_err_set(err, QSF_E_RUNTIME, "no folder for downloads: HOME is not set");
    get_hash_text(url, strlen(url), digest);
    digest[16] = '\0'; /* tells URLs apart */
    out->snapshot[0] = '\0';
    if (snprintf(out->blob, sizeof out->blob, "%s%s/%s", base, digest, file) < (int)sizeof out->blob &&
        snprintf(out->lock, sizeof out->lock, "%s%s/lock", base, digest) < (int)sizeof out->lock)
        return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the path is too long", file);
}

static int make_parent(const char *path, QsfErr *err) {
    char folder[QSF_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    return qsf_path_make_dirs(folder, err);
}

int get_cache_make(const GetPlace *p, QsfErr *err) {
    if (make_parent(p->blob, err) || make_parent(p->lock, err)) return err->code;
    return *p->snapshot ? make_parent(p->snapshot, err) : QSF_OK;
}

int get_cache_lock(const GetPlace *p, void (*waiting)(void *arg), void *arg, QsfErr *err) {
    const int fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", p->lock, strerror(errno));
        return -1;
    }
    for (bool told = false; flock(fd, LOCK_EX | LOCK_NB) != 0; told = true) {
        if (errno != EWOULDBLOCK && errno != EINTR) return fd; /* a file system without locks */
        if (!told && waiting) waiting(arg);
        if (qsf_interrupt_check(err)) {
            close(fd);
            return -1;
        }
        (void)poll(NULL, 0, LOCK_WAIT_MS);
    }
    return fd;
}

/* ../../blobs/ETAG, with a "../" for each folder of the snapshot's file. */
static bool link_text(const GetPlace *p, char out[QSF_PATH_MAX]) {
    const char *etag = strrchr(p->blob, '/') + 1;
    const char *rest = p->snapshot + (strrchr(p->blob, '/') - p->blob) -
                       strlen("/blobs"); /* /snapshots/... */
    char up[QSF_PATH_MAX] = "";
    size_t n = 0;
    for (const char *s = rest + 1; *s; s++)
        if (*s == '/' && n + 4 < sizeof up) n += (size_t)snprintf(up + n, sizeof up - n, "../");
    return qsf_path_join(out, up, "blobs/", etag);
}

int get_cache_link(const GetPlace *p, QsfErr *err) {
    char text[QSF_PATH_MAX], now[QSF_PATH_MAX], temp[QSF_PATH_MAX];
    if (!*p->snapshot) return QSF_OK;
    if (!link_text(p, text) || !qsf_path_join(temp, p->snapshot, ".qsf-link", ""))
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: the path is too long", p->snapshot);
    const ssize_t n = readlink(p->snapshot, now, sizeof now - 1);
    if (n > 0 && (size_t)n == strlen(text) && memcmp(now, text, (size_t)n) == 0) return QSF_OK;
    (void)unlink(temp);
    if (symlink(text, temp) == 0) {
        if (rename(temp, p->snapshot) == 0) return QSF_OK;
    } else if (rename(p->blob, p->snapshot) == 0) {
        return QSF_OK;
    }
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", p->snapshot, strerror(errno));
}

int get_cache_set_ref(const GetCache *c, const char *revision, const char *commit, QsfErr *err) {
    char path[QSF_PATH_MAX], now[GET_NAME_MAX];
    QsfNewFile f = { 0 };
    if (strcmp(revision, commit) == 0) return QSF_OK;
    if (!qsf_path_join(path, c->repo, "/refs/", revision))
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: the path is too long", revision);
    if (first_line(path, now, sizeof now) && strcmp(now, commit) == 0) return QSF_OK;
    if (make_parent(path, err) || qsf_newfile_create(&f, path, err)) return err->code;
    if (write(f.file.fd, commit, strlen(commit)) == (ssize_t)strlen(commit))
        return qsf_newfile_commit(&f, err);
    const int reason = errno;
    qsf_newfile_discard(&f);
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", path, strerror(reason));
}

bool get_token(char *out, size_t cap) {
    char path[QSF_PATH_MAX];
    const char *v;
    out[0] = '\0';
    if (env("HF_TOKEN", &v)) {
        if (strlen(v) < cap) snprintf(out, cap, "%s", v);
        return *out != '\0';
    }
    if (env("HF_TOKEN_PATH", &v)) return first_line(v, out, cap);
    return hub_home("/token", path) && first_line(path, out, cap);
}
