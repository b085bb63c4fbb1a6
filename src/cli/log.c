/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log of a program: implements qsf_log.h. Each line is one write to a file opened for appending, so that
 * several programs can share it. */
#include "qsf_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "qsf_text.h"
#include "src/base/strbuf.h"

enum { TEXT_MAX = 2000, HEAD_MAX = 120 };

static int file = -1;
static bool torn; /* the last line is not complete: the disk was full */
static char name[32];

/* A mistyped name must not append to a model. */
static bool is_binary(const char *path) {
    char begin[8];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t n = fd < 0 ? 0 : read(fd, begin, sizeof begin);
    if (fd >= 0) (void)close(fd);
    return n > 0 && memchr(begin, '\0', (size_t)n) != NULL;
}

/* A FIFO without a reader is refused instead of waited for. */
bool qsf_log_open(const char *program, const char *path, char *err, size_t cap) {
    qsf_log_close();
    if (path == NULL) return true;
    if (is_binary(path)) {
        (void)snprintf(err, cap, "--log-file %.200s: is not a text file; nothing is logged", path);
        return false;
    }
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (file < 0) {
        (void)snprintf(err, cap, "--log-file %.200s: %s; nothing is logged", path, strerror(errno));
        return false;
    }
    (void)snprintf(name, sizeof name, "%s", program);
    torn = false;
    return true;
}

/* "2026-01-31T12:00:00.123Z qsf-run[42] " */
static void put_head(char dst[HEAD_MAX]) {
    struct timespec now = { 0 };
    struct tm tm = { 0 };
    char day[40];
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(dst, HEAD_MAX, "%s%s.%03dZ %s[%ld] ", torn ? "\n" : "", day,
                   (int)(now.tv_nsec / 1000000 % 1000), name, (long)getpid());
}

static void write_line(const QsfStrbuf *b) {
    ssize_t n;
    do {
        n = write(file, b->data, b->len);
    } while (n < 0 && errno == EINTR);
    if (n > 0) torn = (size_t)n < b->len;
}

void qsf_log(const char *event, const char *fmt, ...) {
    char text[TEXT_MAX + 1], head[HEAD_MAX];
    va_list ap;
    if (file < 0) return;
    const int before = errno;
    va_start(ap, fmt);
    (void)qsf_text_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n') n--;
    char *clean = qsf_clean_dup(text, n, true);
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_head(head);
    qsf_strbuf_addf(&b, "%s%s %s\n", head, event, clean ? clean : "");
    if (qsf_strbuf_ok(&b)) write_line(&b);
    qsf_strbuf_free(&b);
    free(clean);
    errno = before;
}

void qsf_log_close(void) {
    if (file >= 0) (void)close(file);
    file = -1;
}
