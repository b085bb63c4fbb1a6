/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_fetch.h"
#include "qsf_request.h"
#include "qsf_system.h"
#include "src/base/platform.h"

#define PIECE     65536u            /* bytes of a read */
#define FRAME_MAX ((size_t)1 << 20) /* bytes of a frame of the reply: those of qsf-get are smaller */

/* ---- the request: memory that the child reads as its standard input, so that nothing waits for it */

static void put_text(QsfStrbuf *b, char kind, const char *text) {
    if (text && *text) qsf_frame_put(b, kind, text, strlen(text));
}

/* Returns a descriptor, or -1 with errno. */
static int request_file(const QsfChildRequest *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char seconds[16], delay[16] = "";
    snprintf(seconds, sizeof seconds, "%u", r->stall_seconds);
    if (r->delay_ms > 0) snprintf(delay, sizeof delay, "%u", r->delay_ms);
    put_text(&b, QSF_REQUEST_URL, r->url);
    put_text(&b, QSF_REQUEST_SOCKET, r->socket);
    put_text(&b, QSF_REQUEST_KEY, r->key);
    put_text(&b, QSF_REQUEST_STALL, seconds);
    put_text(&b, QSF_REQUEST_DELAY, delay);
    if (r->body) qsf_frame_put(&b, QSF_REQUEST_BODY, r->body->data, r->body->len);
    int fd = qsf_strbuf_ok(&b) ? qsf_os_memory_file("request") : -1;
    if (!qsf_strbuf_ok(&b)) errno = ENOMEM;
    if (fd >= 0 && !(qsf_write_all(fd, b.data, b.len) && lseek(fd, 0, SEEK_SET) == 0)) {
        close(fd);
        fd = -1;
    }
    qsf_strbuf_free(&b);
    return fd;
}

/* ---- the process */

int qsf_child_start(QsfChild *c, const QsfChildRequest *r, QsfErr *err) {
    int ends[2];
    *c = (QsfChild){ .frames.max = FRAME_MAX };
    const int in = request_file(r);
    if (in < 0) return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", r->url, strerror(errno));
    if (!qsf_pipe(ends, false)) {
        close(in);
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", r->url, strerror(errno));
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    char path[4096];
    const char *const argv[] = { qsf_fetch_program(path, sizeof path), "--request", NULL };
    const int why = qsf_spawn_apart(&c->pid, argv, in, ends[1]);
    close(in);
    close(ends[1]);
    c->fd = ends[0];
    if (why == 0) return QSF_OK;
    close(ends[0]);
    c->pid = 0;
    return qsf_err_set(err, QSF_E_RUNTIME, "qsf-get cannot be run (%s): it is installed with libcurl only",
                       strerror(why));
}

/* false: nothing more comes. */
static bool read_piece(QsfChild *c, bool *nothing) {
    char piece[PIECE];
    const ssize_t n = read(c->fd, piece, sizeof piece);
    *nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n <= 0) return false;
    c->received += (size_t)n;
    qsf_frames_add(&c->frames, piece, (size_t)n);
    return true;
}

QsfChildGot qsf_child_next(QsfChild *c, QsfPipeFrame *f) {
    bool nothing = false;
    for (int tries = 0; c->pid != 0 && tries < 2; tries++) {
        const QsfFrameResult got = qsf_frames_next(&c->frames, f);
        if (got == QSF_FRAME_ONE) return QSF_CHILD_FRAME;
        if (got == QSF_FRAME_BAD) return QSF_CHILD_GONE;
        if (tries == 0 && !read_piece(c, &nothing)) return nothing ? QSF_CHILD_NOTHING : QSF_CHILD_GONE;
    }
    return c->pid != 0 ? QSF_CHILD_NOTHING : QSF_CHILD_GONE;
}

void qsf_child_stop(QsfChild *c) {
    if (c->pid == 0) return;
    close(c->fd);
    (void)kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    qsf_frames_free(&c->frames);
    c->pid = 0;
    c->fd = -1;
}
