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

int run_read_stdin(QsfStrbuf *b) {
    char buf[16384];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof buf);
        if (n < 0 && errno == EINTR) {
            int sig = atomic_load(&qsf_signal_cancel);
            if (sig) return 128 + sig;
            continue;
        }
        if (n < 0) {
            qsf_cli_error(&run_cli, "stdin: %s", strerror(errno));
            return QSF_EXIT_RUNTIME;
        }
        if (n == 0) break;
        qsf_strbuf_add(b, buf, (size_t)n);
    }
    if (qsf_strbuf_ok(b) && !qsf_strbuf_decode(b)) qsf_cli_error(&run_cli, "stdin: %s", QSF_DECODE_DAMAGED);
    if (qsf_strbuf_ok(b)) return QSF_EXIT_OK;
    qsf_cli_error(&run_cli, "stdin: out of memory");
    return QSF_EXIT_RUNTIME;
}

/* --- texts that a model is measured with --- */

#define TEXT_MAX (64u << 20)

int run_read_text(const char *option, const char *path, QsfStrbuf *b) {
    char buf[16384];
    QsfErr pointer = { 0 };
    bool in = !strcmp(path, "-");
    int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), rc = QSF_EXIT_OK;
    const char *name = in ? "stdin" : path;
    ssize_t n = fd < 0 ? -1 : 1;
    while (fd >= 0 && b->len <= TEXT_MAX && (n = read(fd, buf, sizeof buf)) != 0) {
        if (n < 0 && (errno != EINTR || atomic_load(&qsf_signal_cancel))) break;
        if (n > 0) qsf_strbuf_add(b, buf, (size_t)n);
    }
    if (qsf_strbuf_ok(b) && b->len <= TEXT_MAX && !qsf_strbuf_decode(b))
        qsf_cli_error(&run_cli, "%s %s: %s", option, name, QSF_DECODE_DAMAGED);
    int sig = atomic_load(&qsf_signal_cancel);
    if (n < 0 && sig)
        rc = 128 + sig;
    else if (n < 0)
        rc = QSF_EXIT_MODEL, qsf_cli_error(&run_cli, "%s %s: %s", option, name, strerror(errno));
    else if (!qsf_strbuf_ok(b))
        rc = QSF_EXIT_RUNTIME, qsf_cli_error(&run_cli, "%s %s: out of memory", option, name);
    else if (b->len == 0)
        rc = QSF_EXIT_MODEL, qsf_cli_error(&run_cli, "%s %s: the text is empty", option, name);
    else if (b->len > TEXT_MAX)
        rc = QSF_EXIT_MODEL,
        qsf_cli_error(&run_cli, "%s %s: more than %u MB of text", option, name, TEXT_MAX >> 20);
    else if (qsf_lfs_check_bytes(name, b->data, b->len, &pointer))
        rc = QSF_EXIT_MODEL, qsf_cli_error(&run_cli, "%s %s", option, pointer.msg);
    if (fd >= 0 && !in) close(fd);
    return rc;
}
