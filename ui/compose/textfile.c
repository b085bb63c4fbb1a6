/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text files for messages. */
#include "ui/compose/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_decode.h"

#define PART      16384
#define WORTHLESS ((off_t)64 << 20) /* bytes of a file that is too long whatever it holds: it is not read */

static UiTextFileResult fail(UiTextFile *f, UiTextFileResult why, const char *text, char *err, size_t cap) {
    ui_buf_free(&f->text);
    (void)snprintf(err, cap, "%s", text);
    return why;
}

/* -1: no; the result of fail() is in *why. */
static int open_text(UiTextFile *f, const char *path, bool pipes, UiTextFileResult *why, char *err,
                     size_t cap) {
    struct stat st;
    /* Without waiting for the writer of a pipe that is not read anyway. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (pipes ? 0 : O_NONBLOCK));
    if (fd < 0 || fstat(fd, &st) != 0) {
        *why = fail(f, UI_TEXTFILE_UNREADABLE, strerror(errno), err, cap);
    } else if (S_ISDIR(st.st_mode)) {
        *why = fail(f, UI_TEXTFILE_DIRECTORY, "it is a directory", err, cap);
    } else if (!S_ISREG(st.st_mode) && !(pipes && S_ISFIFO(st.st_mode))) {
        *why = fail(f, UI_TEXTFILE_ODD, "it is not a regular file", err, cap);
    } else if (S_ISREG(st.st_mode) && st.st_size > WORTHLESS) {
        f->size = (QSFTextSize){ .bytes = (uint64_t)st.st_size };
        *why = fail(f, UI_TEXTFILE_LONG, "it is too long", err, cap);
    } else {
        return fd;
    }
    if (fd >= 0) close(fd);
    return -1;
}

/* 0, or the reason as errno; *binary ends it early. */
static int read_all(UiTextFile *f, int fd, UiTextLimit *cut, bool *binary) {
    char bytes[PART], text[QSF_DECODE_MAX(PART)];
    QSFDecode d = { 0 };
    ssize_t n = 1;
    while (n != 0 && !*binary) {
        n = read(fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            return errno;
        else {
            const size_t len = qsf_decode(&d, bytes, (size_t)n, n == 0, text);
            *binary = qsf_decode_is_binary(text, len);
            ui_text_limit_add(cut, &f->text, text, len);
        }
    }
    f->damaged = d.damaged;
    return 0;
}

UiTextFileResult ui_textfile_read(UiTextFile *f, const char *path, size_t limit, bool pipes, char *err,
                                  size_t cap) {
    UiTextFileResult why = UI_TEXTFILE_OK;
    UiTextLimit cut = { .limit = limit };
    bool binary = false;
    err[0] = '\0';
    f->size = (QSFTextSize){ 0 };
    f->text.failed = f->damaged = false;
    ui_text_limit_begin(&cut, &f->text);
    const int fd = open_text(f, path, pipes, &why, err, cap);
    if (fd < 0) return why;
    const int code = read_all(f, fd, &cut, &binary);
    close(fd);
    if (code) return fail(f, UI_TEXTFILE_UNREADABLE, strerror(code), err, cap);
    const char *kind = qsf_decode_kind(ui_buf_str(&f->text), f->text.len);
    if (binary) return fail(f, UI_TEXTFILE_BINARY, kind, err, cap);
    if (f->text.failed) return fail(f, UI_TEXTFILE_MEMORY, "out of memory", err, cap);
    ui_text_limit_count(&cut, &f->text);
    f->size = cut.size;
    const bool is_long = cut.cut || (limit > 0 && f->size.bytes > limit);
    if (is_long) return fail(f, UI_TEXTFILE_LONG, "it is too long", err, cap);
    if (!qsf_decode_is_utf8(ui_buf_str(&f->text), f->text.len))
        return fail(f, UI_TEXTFILE_BINARY, strchr(kind, ':') ? kind : "it is not UTF-8", err, cap);
    return UI_TEXTFILE_OK;
}

void ui_textfile_free(UiTextFile *f) {
    ui_buf_free(&f->text);
    *f = (UiTextFile){ 0 };
}
