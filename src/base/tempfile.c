/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Temporary files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/paths.h"
#include "src/base/platform.h"

static int open_in(const char *dir) {
    const int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = folder >= 0 ? qsf_os_open_nameless(folder, 0600) : -1;
    if (folder >= 0) close(folder);
    return fd;
}

/* The file has a name only briefly, where the file system has no files without one. */
int qsf_temp_file(void) {
    const char *dir = getenv("TMPDIR");
    char path[QSF_PATH_MAX];
    if (dir == NULL || *dir == '\0') dir = "/tmp";
    int fd = open_in(dir);
    if (fd >= 0 || !qsf_path_join(path, dir, "/qsf.XXXXXX", "")) return fd;
    fd = mkstemp(path);
    if (fd < 0) return fd;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)unlink(path);
    return fd;
}
