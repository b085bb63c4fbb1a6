/* SPDX-License-Identifier: GPL-3.0-or-later */
/* stdin and stdout of qsf-run. EPIPE gets no message; other write errors, such as a full disk, do. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "qsf_log.h"
#include "qsf_text.h"
#include "src/base/decode.h"
#include "src/file/lfs.h"
#include "src/run/run.h"

static QSFClean cleaner;
static int write_failed; /* one message is enough */
static bool is_quiet;    /* -q: no notes */

void run_set_quiet(bool quiet) { is_quiet = quiet; }

bool run_is_quiet(void) { return is_quiet; }

void run_note(const char *fmt, ...) {
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    qsf_text_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    qsf_log("notice", "%s", text);
    if (!is_quiet) qsf_cli_error_text(&run_cli, text);
}

int run_write_raw(const char *s, size_t len) {
    qsf_cli_begin_output();
    while (len) {
        ssize_t n = write(STDOUT_FILENO, s, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            if (errno != EPIPE && !write_failed)
                qsf_cli_error(&run_cli, "%s: %s", qsf_cli_stream(STDOUT_FILENO), strerror(errno));
            write_failed = 1;
            return QSF_EXIT_RUNTIME;
        }
        s += n;
        len -= (size_t)n;
    }
    return QSF_EXIT_OK;
}

static int write_clean(const char *s, size_t len, bool end) {
    char out[QSF_CLEAN_MAX(256)];
    do {
        size_t n = len < 256 ? len : 256;
        size_t got = qsf_clean(&cleaner, s, n, end && n == len, out);
        int rc = run_write_raw(out, got);
        if (rc) return rc;
        s += n;
        len -= n;
    } while (len);
    return QSF_EXIT_OK;
}

int run_write(const char *s, size_t len) {
    return isatty(STDOUT_FILENO) ? write_clean(s, len, false) : run_write_raw(s, len);
}

int run_write_end(void) { return isatty(STDOUT_FILENO) ? write_clean("", 0, true) : QSF_EXIT_OK; }
