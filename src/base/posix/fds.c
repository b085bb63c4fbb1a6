/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptors that are closed when another program is executed: a moment after they are made, which another
 * thread could use to execute one. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qsf_system.h"

bool qsf_pipe(int ends[2], bool nonblocking) {
    if (pipe(ends) != 0) return false;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        if (nonblocking) (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

/* macOS reports the end of what can be read as a hangup to those that ask for it
 * (apple-oss-distributions/xnu, bsd/kern/sys_generic.c). */
short qsf_poll_closed(void) { return POLLHUP; }

int qsf_stream_socket(int family) {
    const int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) return fd;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}
