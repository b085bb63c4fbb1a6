/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history file. */
#include "ui/history.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_savefile.h"
#include "ui/buf.h"

#define UI_HISTORY_FILE_MAX (8L << 20) /* bytes at the end of the file that are read */

static void encode(UiBuf *b, const char *entry) {
    for (; *entry; entry++) {
        if (*entry == '\n')
            ui_buf_puts(b, "\\n");
        else if (*entry == '\\')
            ui_buf_puts(b, "\\\\");
        else
            ui_buf_add(b, entry, 1);
    }
    ui_buf_puts(b, "\n");
}

/* Decodes in place. */
static void decode(char *s) {
    char *to = s;
    for (; *s; s++) {
        if (s[0] == '\\' && s[1] != '\0') {
            s++;
            *to++ = *s == 'n' ? '\n' : *s;
        } else {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* A regular file, or -1: reading a pipe could block forever. */
static int open_regular(const char *path, int flags, struct stat *st) {
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* The end of the file as text, NUL-terminated; NULL if there is none. */
static char *read_end(const char *path) {
    struct stat st;
    int fd = open_regular(path, O_RDONLY, &st);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (st.st_size > 0) {
        off_t from = st.st_size > UI_HISTORY_FILE_MAX ? st.st_size - UI_HISTORY_FILE_MAX : 0;
        size_t len = (size_t)(st.st_size - from);
        text = malloc(len + 1);
        ssize_t n = text ? pread(fd, text, len, from) : 0;
        if (text) text[n > 0 ? n : 0] = '\0';
    }
    close(fd);
    return text;
}

void ui_history_read(const char *path, void (*fn)(void *arg, const char *entry), void *arg) {
    char *text = read_end(path);
    if (!text) return;
    size_t n = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) n++;
    char *p = text;
    for (size_t skip = n > UI_HISTORY_MAX ? n - UI_HISTORY_MAX : 0; skip > 0; skip--) p = strchr(p, '\n') + 1;
    if (n > 2 * UI_HISTORY_MAX) (void)qsf_savefile_save(path, p, strlen(p), true);
    for (char *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        *end = '\0';
        decode(p);
        if (*p) fn(arg, p);
    }
    free(text);
}

/* Written in one piece; other chats append to the same file. */
static bool append(int fd, const UiBuf *b) {
    struct stat st;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &st) != 0) return false;
    if (write(fd, b->data, b->len) == (ssize_t)b->len) return true;
    (void)!ftruncate(fd, st.st_size);
    return false;
}

bool ui_history_append(const char *path, const char *entry) {
    UiBuf b = { 0 };
    struct stat st;
    encode(&b, entry);
    int fd = b.failed ? -1 : open_regular(path, O_WRONLY | O_CREAT | O_APPEND, &st);
    bool ok = fd >= 0 && append(fd, &b);
    if (fd >= 0) ok = close(fd) == 0 && ok;
    ui_buf_free(&b);
    return ok;
}
