/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/newfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING   ".qsf-part"
#define HEX      "0123456789abcdef"
#define TRIES    100
#define FD_PATH  32 /* "/proc/self/fd/" and a number */

enum { MARK = 8 }; /* hexadecimal digits */

static atomic_bool always_named;

void qsf_newfile_always_named(bool on) { atomic_store(&always_named, on); }

static int failed(const QsfNewFile *f, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot %s: %s", f->path, what, strerror(errno));
}

/* ---- names */

char *qsf_newfile_part(const char *path) {
    static atomic_uint count;
    struct timespec t = { 0 };
    size_t n = strlen(path) + 1 + MARK + sizeof ENDING;
    char *name = malloc(n);
    if (name == NULL) return NULL;
    clock_gettime(CLOCK_REALTIME, &t);
    unsigned mark = (unsigned)t.tv_nsec ^ (unsigned)getpid() << 16 ^ (unsigned)t.tv_sec ^ atomic_fetch_add(&count, 1) << 8;
    snprintf(name, n, "%s.%08x%s", path, mark, ENDING);
    return name;
}

/* Returns whether this is the name of a part of base, or of a name that begins with base. */
static bool is_part(const char *name, const char *base) {
    const size_t len = strlen(name), n = strlen(base), tail = 1 + MARK + sizeof ENDING - 1;
    if (len < n + tail || strncmp(name, base, n) != 0 || name[n] != '.') return false;
    name += len - tail;
    return name[0] == '.' && strspn(name + 1, HEX) == MARK && strcmp(name + 1 + MARK, ENDING) == 0;
}

/* Returns the directory of path, and in *base the last component. The caller frees it; NULL if out of
 * memory. */
static char *folder_of(const char *path, const char **base) {
    const char *slash = strrchr(path, '/');
    *base = slash != NULL ? slash + 1 : path;
    if (slash == NULL) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* ---- removing leftovers */

static bool lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

/* Removes only a regular file that can be locked and is still the one with that name. */
static void remove_dead(int dir, const char *name) {
    struct stat have, now;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &have) == 0 && S_ISREG(have.st_mode) && lock(fd) && fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
        have.st_dev == now.st_dev && have.st_ino == now.st_ino)
        (void)unlinkat(dir, name, 0);
    close(fd);
}

static void remove_parts(const char *folder, const char *base) {
    DIR *d = opendir(folder);
    struct dirent *e;
    if (d == NULL) return;
    while ((e = readdir(d)) != NULL)
        if (is_part(e->d_name, base)) remove_dead(dirfd(d), e->d_name);
    closedir(d);
}

int qsf_newfile_hold(const char *part) {
    int fd = open(part, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !lock(fd)) { /* no locks on this file system: nothing is removed either */ }
    return fd;
}

/* ---- creating */

static void fd_path(int fd, char out[FD_PATH]) { snprintf(out, FD_PATH, "/proc/self/fd/%d", fd); }

/* Opens a file without a name that can be linked later; -1 if that is not supported here. */
static int open_hidden(const char *folder) {
#ifdef O_TMPFILE
    char self[FD_PATH];
    int fd = atomic_load(&always_named) ? -1 : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    fd_path(fd, self);
    if (access(self, F_OK) == 0) {
        (void)lock(fd); /* for the moment when it has the name of a part */
        return fd;
    }
    close(fd); /* no /proc: it could never be linked */
#else
    (void)folder;
#endif
    return -1;
}

/* Creates a file with the name of a part, locked. */
static int open_named(QsfNewFile *f, QsfErr *err) {
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        f->temp = qsf_newfile_part(f->path);
        if (f->temp == NULL) return qsf_err_memory(err, "%s", f->path);
        f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd < 0 && errno != EEXIST) return failed(f, "create a file there", err);
        if (f->fd >= 0) {
            (void)lock(f->fd);
            if (fstat(f->fd, &st) == 0 && st.st_nlink > 0) return QSF_OK;
            close(f->fd); /* another process removed it as a leftover before it was locked */
            f->fd = -1;
        }
        free(f->temp);
        f->temp = NULL;
    }
    errno = EEXIST;
    return failed(f, "create a file there", err);
}

int qsf_newfile_create(QsfNewFile *f, const char *path, QsfErr *err) {
    const char *base;
    char *folder = folder_of(path, &base);
    int rc = QSF_OK;
    *f = (QsfNewFile){ .fd = -1, .path = strdup(path) };
    if (f->path == NULL || folder == NULL) {
        rc = qsf_err_memory(err, "%s", path);
    } else {
        remove_parts(folder, base);
        f->fd = open_hidden(folder);
        if (f->fd < 0) rc = open_named(f, err);
    }
    free(folder);
    if (rc == QSF_OK) return QSF_OK;
    if (f->fd < 0) { /* the name was never created */
        free(f->temp);
        f->temp = NULL;
    }
    qsf_newfile_discard(f);
    return rc;
}

/* ---- committing */

/* Links an unnamed file to path if nothing is there, else to the name of a part, which is then renamed. */
static int give_link(QsfNewFile *f, QsfErr *err) {
    char self[FD_PATH];
    fd_path(f->fd, self);
    if (linkat(AT_FDCWD, self, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0) return QSF_OK;
    for (int i = 0; errno == EEXIST && i < TRIES; i++) {
        char *name = qsf_newfile_part(f->path);
        if (name == NULL) return qsf_err_memory(err, "%s", f->path);
        if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            f->temp = name;
            return QSF_OK;
        }
        free(name);
    }
    return failed(f, "rename it into place", err);
}

static int give_name(QsfNewFile *f, QsfErr *err) {
    int rc = f->temp == NULL ? give_link(f, err) : QSF_OK;
    if (rc != QSF_OK || f->temp == NULL) return rc;
    if (rename(f->temp, f->path) != 0) return failed(f, "rename it", err);
    free(f->temp);
    f->temp = NULL;
    return QSF_OK;
}

/* The new name is on disk when the directory is. */
static int sync_folder(const QsfNewFile *f, QsfErr *err) {
    const char *base;
    char *folder = folder_of(f->path, &base);
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int rc = fd >= 0 && fsync(fd) != 0 && errno == EIO ? failed(f, "sync its directory to disk", err) : QSF_OK;
    if (fd >= 0) close(fd);
    free(folder);
    return rc;
}

int qsf_newfile_commit(QsfNewFile *f, QsfErr *err) {
    int rc = fsync(f->fd) == 0 ? QSF_OK : failed(f, "sync it to disk", err);
    if (rc == QSF_OK) rc = give_name(f, err);
    if (rc == QSF_OK) rc = sync_folder(f, err);
    qsf_newfile_discard(f);
    return rc;
}

void qsf_newfile_discard(QsfNewFile *f) {
    if (f->path == NULL) return;
    if (f->temp != NULL) unlink(f->temp); /* before the lock is released */
    if (f->fd >= 0) close(f->fd);
    free(f->temp);
    free(f->path);
    *f = (QsfNewFile){ .fd = -1 };
}
