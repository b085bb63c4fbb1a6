/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that are written completely or not at all: implements savefile.h and the public qsf_savefile.h. */
#include "src/base/savefile.h"

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

#include "qsf_system.h"
#include "src/base/paths.h"
#include "src/base/platform.h"

#define PRIVATE_MODE 0600
#define PRIVATE_STEM ".qsf-new" /* one for all names: whatever is saved next in a folder cleans it */
#define ENDING       ".qsf-part"
#define HEX          "0123456789abcdef"
#define TRIES        100

enum { MARK = 8 }; /* hexadecimal digits */

static atomic_bool always_named;

void qsf_savefile_always_named(bool on) { atomic_store(&always_named, on); }

/* ---- names */

void qsf_savefile_part(char *name, const char *stem) {
    static atomic_uint count;
    struct timespec t = { 0 };
    clock_gettime(CLOCK_REALTIME, &t);
    unsigned mark = (unsigned)t.tv_nsec ^ (unsigned)getpid() << 16 ^ (unsigned)t.tv_sec ^
                    atomic_fetch_add(&count, 1) << 8;
    snprintf(name, strlen(stem) + QSF_PART_EXTRA, "%s.%08x%s", stem, mark, ENDING);
}

/* Is this the name of a part of stem, or of something that begins with it? */
static bool is_part(const char *name, const char *stem) {
    const size_t len = strlen(name), n = strlen(stem), tail = QSF_PART_EXTRA - 1;
    if (len < n + tail || strncmp(name, stem, n) != 0 || name[n] != '.') return false;
    name += len - tail;
    return name[0] == '.' && strspn(name + 1, HEX) == MARK && strcmp(name + 1 + MARK, ENDING) == 0;
}

/* Sets f->temp. False where that would be too long; a file without a name can still be linked then. */
static bool name_part(QSFSaveFile *f) {
    if (strlen(f->stem) + QSF_PART_EXTRA > sizeof f->temp) return false;
    qsf_savefile_part(f->temp, f->stem);
    return true;
}

static int open_folder(const char *path) {
    size_t n = (size_t)(qsf_path_name(path) - path);
    char *folder = n > 0 ? strndup(path, n) : strdup(".");
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder != NULL && fd < 0 && errno == EACCES) fd = qsf_os_open_unlisted(folder);
    int why = folder != NULL ? errno : ENOMEM;
    free(folder);
    errno = why;
    return fd;
}

/* ---- what killed processes left */

/* Only a regular file that could be locked, and is still the one with that name. */
static void remove_dead(int dir, const char *name) {
    struct stat opened, now;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && opened.st_dev == now.st_dev &&
        opened.st_ino == now.st_ino)
        (void)unlinkat(dir, name, 0);
    close(fd);
}

static void remove_parts(const QSFSaveFile *f) {
    int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    if (d == NULL && fd >= 0) close(fd);
    if (d == NULL) return;
    while ((e = readdir(d)) != NULL)
        if (is_part(e->d_name, f->stem)) remove_dead(f->dir, e->d_name);
    closedir(d);
}

/* ---- creating */

static int open_nameless(const QSFSaveFile *f, mode_t mode) {
    if (atomic_load(&always_named)) return -1;
    int fd = qsf_os_open_nameless(f->dir, mode);
    if (fd >= 0) (void)flock(fd, LOCK_EX | LOCK_NB); /* for the moment in which it has a temporary name */
    return fd;
}

/* Locked, and still under its name: another process may have removed it between the two. */
static bool lock_named(int fd) {
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

static int open_named(QSFSaveFile *f, mode_t mode) {
    errno = ENAMETOOLONG;
    for (int i = 0; i < TRIES && name_part(f); i++) {
        int fd = openat(f->dir, f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && lock_named(fd)) return fd;
        if (fd >= 0) close(fd);
        errno = EEXIST;
    }
    return -1;
}

int qsf_savefile_create(QSFSaveFile *f, const char *path, mode_t mode, const char *stem) {
    const char *base = qsf_path_name(path);
    *f = (QSFSaveFile){ .fd = -1, .dir = -1 };
    if (*base == '\0') return EISDIR;
    if (stem == NULL) stem = base;
    if (strlen(stem) >= sizeof f->stem) return ENAMETOOLONG;
    memcpy(f->stem, stem, strlen(stem) + 1);
    f->dir = open_folder(path);
    if (f->dir < 0) return errno;
    remove_parts(f);
    f->fd = open_nameless(f, mode);
    if (f->fd < 0) f->fd = open_named(f, mode);
    if (f->fd >= 0) return 0;
    int why = errno;
    close(f->dir);
    *f = (QSFSaveFile){ .fd = -1, .dir = -1 };
    return why;
}

int qsf_savefile_open(QSFSaveFile *f, const char *path) {
    return qsf_savefile_create(f, path, PRIVATE_MODE, PRIVATE_STEM);
}

int qsf_savefile_write(QSFSaveFile *f, const void *data, size_t len) {
    return qsf_write_all(f->fd, data, len) ? 0 : errno;
}

/* ---- giving it its name */

/* Some file systems have nothing to write out and say EINVAL; a folder that cannot be listed says EBADF. */
static int sync_fd(int fd) { return qsf_os_sync(fd) != 0 && errno != EINVAL && errno != EBADF ? errno : 0; }

int qsf_savefile_sync(const QSFSaveFile *f) { return sync_fd(f->fd); }
int qsf_savefile_sync_folder(const QSFSaveFile *f) { return sync_fd(f->dir); }

/* Links the file to a name that must be free. */
static int link_as(const QSFSaveFile *f, const char *name) {
    if (f->temp[0] == '\0') return qsf_os_link_nameless(f->fd, f->dir, name);
    return linkat(f->dir, f->temp, f->dir, name, 0) != 0 ? errno : 0;
}

static int rename_temp(QSFSaveFile *f, const char *name) {
    if (renameat(f->dir, f->temp, f->dir, name) != 0) return errno;
    f->temp[0] = '\0';
    return 0;
}

/* Only a rename replaces a file, and that needs a name to begin with. */
static int name_temp(QSFSaveFile *f) {
    QSFSaveFile named = *f;
    int why = EEXIST;
    for (int i = 0; why == EEXIST && i < TRIES; i++)
        why = name_part(&named) ? link_as(f, named.temp) : ENAMETOOLONG;
    if (why == 0) memcpy(f->temp, named.temp, sizeof f->temp);
    return why;
}

int qsf_savefile_replace(QSFSaveFile *f, const char *name) {
    int why = EEXIST;
    if (f->temp[0] == '\0') {
        why = link_as(f, name);
        if (why == EEXIST) why = name_temp(f);
        if (f->temp[0] == '\0') return why;
    }
    return rename_temp(f, name);
}

/* Without hard links (FAT) an empty file holds the name until the rename. */
static int reserve_and_rename(QSFSaveFile *f, const char *name) {
    int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, PRIVATE_MODE);
    if (fd < 0) return errno;
    close(fd);
    int why = rename_temp(f, name);
    if (why != 0) unlinkat(f->dir, name, 0);
    return why;
}

static int publish_new(QSFSaveFile *f, const char *name) {
    int why = link_as(f, name);
    bool no_links = why == EPERM || why == EOPNOTSUPP || why == ENOSYS;
    if (f->temp[0] != '\0' && no_links) return reserve_and_rename(f, name);
    if (why != 0) return why;
    if (f->temp[0] != '\0') unlinkat(f->dir, f->temp, 0);
    f->temp[0] = '\0';
    return 0;
}

static int publish_over(QSFSaveFile *f, const char *name) {
    struct stat st;
    if (fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) return errno;
    } else {
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) return EINVAL;
        if (S_ISREG(st.st_mode) && fchmod(f->fd, st.st_mode & 0777) != 0) return errno;
    }
    return qsf_savefile_replace(f, name);
}

int qsf_savefile_publish(QSFSaveFile *f, const char *path, bool overwrite) {
    const char *name = qsf_path_name(path);
    int why = qsf_savefile_sync(f);
    if (why == 0) why = overwrite ? publish_over(f, name) : publish_new(f, name);
    return why != 0 ? why : qsf_savefile_sync_folder(f);
}

void qsf_savefile_close(QSFSaveFile *f, bool keep_fd) {
    if (f->temp[0] != '\0') unlinkat(f->dir, f->temp, 0); /* before the lock goes */
    if (f->fd >= 0 && !keep_fd) close(f->fd);
    if (f->dir >= 0) close(f->dir);
    *f = (QSFSaveFile){ .fd = -1, .dir = -1 };
}

int qsf_savefile_save(const char *path, const void *data, size_t len, bool overwrite) {
    QSFSaveFile f;
    char *real = overwrite ? realpath(path, NULL) : NULL;
    const char *to = real != NULL ? real : path;
    int why = qsf_savefile_open(&f, to);
    if (why == 0) {
        why = qsf_savefile_write(&f, data, len);
        if (why == 0) why = qsf_savefile_publish(&f, to, overwrite);
        qsf_savefile_close(&f, false);
    }
    free(real);
    return why;
}
