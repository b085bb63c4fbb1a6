/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that set the clipboard: started without a shell, with the text in a file as their input. */
#include "ui/cliptool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_system.h"
#include "ui/app.h"
#include "ui/buf.h"

#define NOT_FOUND 127 /* what a program ends with that posix_spawn could not start, on some systems */

double ui_cliptool_seconds = UI_TOOL_SECONDS;

typedef struct UiClipTool {
    const char *argv[4];
    const char *display; /* environment variable that must be set, or NULL */
    bool utf16;          /* reads UTF-16, little-endian with a byte order mark */
} UiClipTool;

/* In the order of preference. The manuals of wl-clipboard, xclip and xsel; clip.exe is that of Windows, in
 * WSL. */
static const UiClipTool tools[] = {
    { { "wl-copy", NULL }, "WAYLAND_DISPLAY", false },
    { { "xclip", "-selection", "clipboard", NULL }, "DISPLAY", false },
    { { "xsel", "--clipboard", "--input", NULL }, "DISPLAY", false },
    { { "pbcopy", NULL }, NULL, false },
    { { "clip.exe", NULL }, NULL, true },
};

/* The program of the last copy, if it was still running then; 0 = none. */
static pid_t running;

/* The text is valid UTF-8: it was cleaned. */
static void to_utf16(UiBuf *b, const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    ui_buf_add(b, "\xff\xfe", 2);
    for (size_t i = 0; i < len;) {
        const unsigned n = s[i] < 0x80 ? 1 : s[i] < 0xe0 ? 2 : s[i] < 0xf0 ? 3 : 4;
        unsigned c = n == 1 ? s[i] : s[i] & (0xffu >> (n + 1));
        for (unsigned k = 1; k < n; k++) c = c << 6 | (i + k < len ? s[i + k] & 0x3fu : 0);
        i += n;
        unsigned unit[2] = { c, 0 };
        if (c >= 0x10000) {
            unit[0] = 0xd800 + ((c - 0x10000) >> 10 & 0x3ff);
            unit[1] = 0xdc00 + (c & 0x3ff);
        }
        for (unsigned k = 0; k < (c >= 0x10000 ? 2u : 1u); k++) {
            const char two[2] = { (char)(unit[k] & 0xff), (char)(unit[k] >> 8) };
            ui_buf_add(b, two, 2);
        }
    }
}

/* A file that begins with the text; -1 with errno. */
static int text_file(const UiClipTool *tool, const char *text, size_t len) {
    UiBuf wide = { 0 };
    int fd = qsf_temp_file();
    if (tool->utf16) to_utf16(&wide, text, len);
    bool ok = fd >= 0 && !wide.failed &&
              (tool->utf16 ? qsf_write_all(fd, wide.data, wide.len) : qsf_write_all(fd, text, len)) &&
              lseek(fd, 0, SEEK_SET) == 0;
    const int why = errno;
    ui_buf_free(&wide);
    if (ok || fd < 0) return fd;
    close(fd);
    errno = why;
    return -1;
}

/* Whether it ended well before the deadline, or is still running. */
static bool works(const char *name, pid_t pid, double deadline, char *err, size_t cap) {
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WNOHANG)) == 0 && ui_now() < deadline) (void)poll(NULL, 0, 2);
    if (got == 0) running = pid;
    if (got <= 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) return false;
    if (WIFEXITED(status))
        (void)snprintf(err, cap, "%s failed with exit code %d", name, WEXITSTATUS(status));
    else
        (void)snprintf(err, cap, "%s was ended by signal %d", name, WTERMSIG(status));
    return false;
}

static bool try(const UiClipTool *tool, const char *text, size_t len, double deadline, char *err,
                size_t cap) {
    const char *name = tool->argv[0], *display = tool->display ? getenv(tool->display) : "-";
    pid_t pid;
    if (!display || !*display) return false;
    int input = text_file(tool, text, len);
    if (input < 0) {
        (void)snprintf(err, cap, "cannot write the text to a file for %s: %s", name, strerror(errno));
        return false;
    }
    int why = qsf_spawn_apart(&pid, tool->argv, input, -1);
    close(input);
    if (why && why != ENOENT) (void)snprintf(err, cap, "cannot start %s: %s", name, strerror(why));
    return why == 0 && works(name, pid, deadline, err, cap);
}

/* One that ends after that is removed from the list of processes when this program ends. */
static void end_last(void) {
    if (running > 0 && waitpid(running, NULL, WNOHANG) == 0) {
        kill(running, SIGTERM);
        (void)waitpid(running, NULL, WNOHANG);
    }
    running = 0;
}

const char *ui_cliptool_set(const char *text, size_t len, char *err, size_t cap) {
    const double deadline = ui_now() + ui_cliptool_seconds;
    err[0] = '\0';
    end_last();
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        if (try(&tools[i], text, len, deadline, err, cap)) return tools[i].argv[0];
    }
    return NULL;
}
