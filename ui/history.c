/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of earlier inputs. */
#include "ui/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/buf.h"

#define UI_HISTORY_FILE_MAX (8L << 20) /* bytes at the end of the file that are looked at */

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

/* In place. */
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

/* The end of the file as text, NUL-terminated; NULL when there is none. */
static char *read_end(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    char *text = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        off_t from = st.st_size > UI_HISTORY_FILE_MAX ? st.st_size - UI_HISTORY_FILE_MAX : 0;
        size_t len = (size_t)(st.st_size - from);
        text = malloc(len + 1);
        ssize_t n = text ? pread(fd, text, len, from) : 0;
        if (text) text[n > 0 ? n : 0] = '\0';
    }
    close(fd);
    return text;
}

static void rewrite(const char *path, const char *text) {
    UiBuf tmp = { 0 };
    ui_buf_printf(&tmp, "%s.%ld", path, (long)getpid());
    int fd = open(ui_buf_str(&tmp), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        size_t len = strlen(text);
        bool ok = write(fd, text, len) == (ssize_t)len;
        ok = close(fd) == 0 && ok;
        if (!ok || rename(ui_buf_str(&tmp), path) != 0) unlink(ui_buf_str(&tmp));
    }
    ui_buf_free(&tmp);
}

void ui_history_read(const char *path, void (*fn)(void *arg, const char *entry), void *arg) {
    char *text = read_end(path);
    if (!text) return;
    size_t n = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) n++;
    char *p = text;
    for (size_t skip = n > UI_HISTORY_MAX ? n - UI_HISTORY_MAX : 0; skip > 0; skip--) p = strchr(p, '\n') + 1;
    if (n > 2 * UI_HISTORY_MAX) rewrite(path, p);
    for (char *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        *end = '\0';
        decode(p);
        if (*p) fn(arg, p);
    }
    free(text);
}

bool ui_history_append(const char *path, const char *entry) {
    UiBuf b = { 0 };
    encode(&b, entry);
    int fd = b.failed ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, b.data, b.len) == (ssize_t)b.len;
    if (fd >= 0) ok = close(fd) == 0 && ok;
    ui_buf_free(&b);
    return ok;
}
