/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Other programs in the background (qsf_system.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "qsf_system.h"

extern char **environ;

static int set_file(posix_spawn_file_actions_t *files, int fd, int as) {
    if (fd >= 0) return posix_spawn_file_actions_adddup2(files, fd, as);
    return posix_spawn_file_actions_addopen(files, as, "/dev/null", as == STDIN_FILENO ? O_RDONLY : O_WRONLY,
                                            0);
}

static void set_signals(posix_spawnattr_t *attr) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
}

int qsf_spawn_apart(pid_t *pid, const char *const *argv, int in, int out) {
    const int fds[] = { [STDIN_FILENO] = in, [STDOUT_FILENO] = out, [STDERR_FILENO] = -1 };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
    int why = posix_spawnattr_init(&attr) == 0 ? 0 : ENOMEM;
    if (why == 0) {
        set_signals(&attr);
        for (int i = 0; i < 3 && why == 0; i++) why = set_file(&files, fds[i], i);
        if (why == 0) why = posix_spawnp(pid, argv[0], &files, &attr, (char *const *)argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return why;
}

bool qsf_write_all(int fd, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = EIO; /* it says nothing about why */
        if (n <= 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}
