/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Standard streams that the caller closed, filled before any file can take their numbers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "qsf_cli.h"

int qsf_cli_open_std_fds(const char *program) {
    /* Reading stdin gives the end of the file. Writing to stdout fails with EBADF, as it does when it is
     * closed: an answer that nobody can read is an error. Messages on stderr are dropped. */
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < (int)(sizeof modes / sizeof *modes); fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", modes[fd]) == fd) continue; /* the lowest free number, and those below are taken */
        fprintf(stderr, "%s: /dev/null: %s\n", program, strerror(errno));
        return QSF_EXIT_RUNTIME;
    }
    return QSF_EXIT_OK;
}
