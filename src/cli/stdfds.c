/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens standard streams that the caller closed, before other files can get their numbers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "qsf_cli.h"

int qsf_cli_open_std_fds(const char *program) {
    /* Reading stdin gives end of file. Writing to stdout fails with EBADF, as when it is closed: an answer
     * that cannot be delivered is an error. Messages on stderr are dropped. */
    static const int modes[] = { O_RDONLY, O_RDONLY, O_WRONLY };
    for (int fd = 0; fd < (int)(sizeof modes / sizeof *modes); fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", modes[fd]) == fd) continue; /* it is the lowest free number */
        fprintf(stderr, "%s: /dev/null: %s\n", program, strerror(errno));
        return QSF_EXIT_RUNTIME;
    }
    return QSF_EXIT_OK;
}
