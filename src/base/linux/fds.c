/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptors that are closed when another program is executed, from the beginning. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qsf_system.h"

bool qsf_pipe(int ends[2], bool nonblocking) {
    return pipe2(ends, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0)) == 0;
}

short qsf_poll_closed(void) { return POLLRDHUP; }

int qsf_stream_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }
