/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Room for snapshots: what they may use, and which are dropped. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/base/savefile.h"
#include "src/engine/snapshot/snapshot.h"

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
    const size_t n = (size_t)(qsf_savefile_base(path) - path);
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
        look(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), qsf_savefile_base(path), &f);
        const bool below = limit == 0 || f.bytes + own <= limit;
        if ((below && free_bytes(folder) >= bytes + SPARE) || f.oldest[0] == '\0' ||
            unlinkat(dir, f.oldest, 0) != 0)
            break;
    }
    close(dir);
    return free_bytes(folder) >= bytes + SPARE && (limit == 0 || own <= limit);
}
