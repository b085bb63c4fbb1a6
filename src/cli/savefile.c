/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Atomic file creation: implements qsf_savefile.h. */
#include "qsf_savefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE       0600
#define TEMP_NAMES 16 /* programs that can save into one folder at a time, without O_TMPFILE */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Opens the folder of path. One that is writable but not readable can only be opened with O_PATH. */
static int open_folder(const char *path) {
    size_t n = (size_t)(last_part(path) - path);
    char *dir = n ? strndup(path, n) : strdup(".");
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
#ifdef O_PATH
    if (dir && fd < 0 && errno == EACCES) fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
#endif
    int why = dir ? errno : ENOMEM;
    free(dir);
    errno = why;
    return fd;
}

/* Removes a temporary file whose program was killed. A running program has it locked. Files of other users,
 * and anything that is not a regular file, are not touched. */
static bool remove_stale(int dir, const char *name) {
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool stale = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
                 !flock(fd, LOCK_EX | LOCK_NB);
    if (stale) unlinkat(dir, name, 0);
    if (fd >= 0) close(fd);
    return stale;
}

/* Locks the file and checks that it still has a name: another program may have removed it before it was
 * locked. */
static bool lock_named(int fd) {
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return false;
    return !fstat(fd, &st) && st.st_nlink > 0;
}

static bool temp_name(QSFSaveFile *f, int i) {
    snprintf(f->temp, sizeof f->temp, ".qsf-new-%d.tmp", i);
    return i < TEMP_NAMES;
}

static int open_named(QSFSaveFile *f) {
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    for (int i = 0; temp_name(f, i); i++) {
        int fd = openat(f->dir, f->temp, flags, MODE);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd < 0 && remove_stale(f->dir, f->temp)) fd = openat(f->dir, f->temp, flags, MODE);
        if (fd >= 0 && lock_named(fd)) return fd;
        if (fd >= 0) close(fd);
    }
    errno = EBUSY;
    return -1;
}

/* Opens an unnamed file, which disappears when the program ends in any way. It gets its name later through
 * /proc. */
static int open_nameless(QSFSaveFile *f) {
#ifdef O_TMPFILE
    f->temp[0] = '\0';
    if (faccessat(AT_FDCWD, "/proc/self/fd", X_OK, 0)) return -1;
    int fd = openat(f->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, MODE);
    if (fd >= 0) (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd;
#else
    (void)f;
    return -1;
#endif
}

int qsf_savefile_open(QSFSaveFile *f, const char *path) {
    *f = (QSFSaveFile){ .fd = -1, .dir = -1 };
    if (!*last_part(path)) return EISDIR;
    f->dir = open_folder(path);
    if (f->dir < 0) return errno;
    f->fd = open_nameless(f);
    if (f->fd < 0) f->fd = open_named(f);
    if (f->fd >= 0) return 0;
    int why = errno;
    close(f->dir);
    f->dir = -1;
    return why;
}

int qsf_savefile_write(QSFSaveFile *f, const void *data, size_t len) {
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(f->fd, p, len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n ? errno : EIO;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Some file systems do not support fsync and return EINVAL. */
static int sync_fd(int fd) { return fsync(fd) && errno != EINVAL && errno != EBADF ? errno : 0; }

/* Gives the file the name `name` in its folder; fails when that name exists. */
static int link_as(const QSFSaveFile *f, const char *name) {
    if (f->temp[0]) return linkat(f->dir, f->temp, f->dir, name, 0) ? errno : 0;
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, f->dir, name, AT_SYMLINK_FOLLOW) ? errno : 0;
}

static int rename_temp(QSFSaveFile *f, const char *name) {
    if (renameat(f->dir, f->temp, f->dir, name)) return errno;
    f->temp[0] = '\0';
    return 0;
}

/* Without hard links (FAT), an empty file reserves the name until the rename. */
static int reserve_and_rename(QSFSaveFile *f, const char *name) {
    int fd = openat(f->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
    if (fd < 0) return errno;
    close(fd);
    int why = rename_temp(f, name);
    if (why) unlinkat(f->dir, name, 0);
    return why;
}

static int publish_new(QSFSaveFile *f, const char *name) {
    int why = link_as(f, name);
    bool no_links = why == EPERM || why == EOPNOTSUPP || why == ENOSYS;
    if (f->temp[0] && no_links) return reserve_and_rename(f, name);
    if (why) return why;
    if (f->temp[0]) unlinkat(f->dir, f->temp, 0);
    f->temp[0] = '\0';
    return 0;
}

/* Gives the file a temporary name, because only a rename can replace an existing file. */
static int name_temp(QSFSaveFile *f) {
    int why = EEXIST;
    QSFSaveFile named = *f;
    for (int i = 0; why == EEXIST && temp_name(&named, i); i++) {
        why = link_as(f, named.temp);
        if (why == EEXIST && remove_stale(f->dir, named.temp)) why = link_as(f, named.temp);
    }
    if (!why) memcpy(f->temp, named.temp, sizeof f->temp);
    return why == EEXIST ? EBUSY : why;
}

static int publish_over(QSFSaveFile *f, const char *name) {
    struct stat st;
    if (fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW)) {
        int why = errno == ENOENT ? publish_new(f, name) : errno;
        if (why != EEXIST) return why;
    } else {
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) return EINVAL;
        if (S_ISREG(st.st_mode) && fchmod(f->fd, st.st_mode & 0777)) return errno;
    }
    int why = f->temp[0] ? 0 : name_temp(f);
    return why ? why : rename_temp(f, name);
}

int qsf_savefile_publish(QSFSaveFile *f, const char *path, bool overwrite) {
    int why = sync_fd(f->fd);
    if (!why) why = overwrite ? publish_over(f, last_part(path)) : publish_new(f, last_part(path));
    return why ? why : sync_fd(f->dir);
}

void qsf_savefile_close(QSFSaveFile *f, bool keep_fd) {
    if (f->temp[0]) unlinkat(f->dir, f->temp, 0);
    if (f->fd >= 0 && !keep_fd) close(f->fd);
    if (f->dir >= 0) close(f->dir);
    *f = (QSFSaveFile){ .fd = -1, .dir = -1 };
}

int qsf_savefile_save(const char *path, const void *data, size_t len, bool overwrite) {
    QSFSaveFile f;
    char *real = overwrite ? realpath(path, NULL) : NULL;
    const char *to = real ? real : path;
    int why = qsf_savefile_open(&f, to);
    if (!why) {
        why = qsf_savefile_write(&f, data, len);
        if (!why) why = qsf_savefile_publish(&f, to, overwrite);
        qsf_savefile_close(&f, false);
    }
    free(real);
    return why;
}
