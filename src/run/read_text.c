/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts that a model is measured with. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/decode.h"
#include "src/file/lfs.h"
#include "src/run/run.h"

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
