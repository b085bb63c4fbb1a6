/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing a message in the user's editor. */
#include "ui/compose/editor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_system.h"
#include "ui/compose/textfile.h"

extern char **environ;

typedef struct Draft {
    char dir[256], path[280];
} Draft;

static const char *variable(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static const char *command_of_user(void) {
    const char *visual = variable("VISUAL");
    return visual ? visual : variable("EDITOR");
}

/* The name of the command, for messages. */
static int name_of(const char *command) { return (int)strcspn(command, " \t"); }

static bool fail(UiEditor *e, const char *what, const char *why) {
    (void)snprintf(e->problem, sizeof e->problem, "%.200s: %.150s", what, why);
    return false;
}

static bool make_dir(Draft *d) {
    const char *const parents[] = { variable("XDG_RUNTIME_DIR"), variable("TMPDIR"), "/tmp" };
    for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
        if (!parents[i] || strlen(parents[i]) > sizeof d->dir - 20) continue;
        (void)snprintf(d->dir, sizeof d->dir, "%s/qsf-chat.XXXXXX", parents[i]);
        if (mkdtemp(d->dir)) return true;
    }
    return false;
}

static bool write_text(const Draft *d, const char *text, size_t len) {
    int fd = open(d->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && qsf_write_all(fd, text, len);
    if (fd >= 0 && close(fd) != 0) ok = false;
    return ok;
}

/* With what the editor left beside it: it may be a copy of a private text. */
static void remove_draft(const Draft *d) {
    int dir = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = dir >= 0 ? fdopendir(dir) : NULL;
    for (struct dirent *f; list && (f = readdir(list)) != NULL;) {
        if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
            (void)unlinkat(dirfd(list), f->d_name, 0);
    }
    if (list)
        closedir(list);
    else if (dir >= 0)
        close(dir);
    (void)rmdir(d->dir);
}

static bool make_draft(UiEditor *e, Draft *d, const char *text, size_t len) {
    if (!make_dir(d)) return fail(e, "no temporary file", strerror(errno));
    (void)snprintf(d->path, sizeof d->path, "%s/message.md", d->dir);
    if (write_text(d, text, len)) return true;
    (void)fail(e, d->path, strerror(errno));
    remove_draft(d);
    return false;
}

/* The keys ^C, ^\ and ^Z signal everything in the foreground, and are meant for the editor. Caught here, such
 * a signal may wait until the editor has ended, and would then stop an answer or this program. */
typedef struct {
    struct sigaction old[3];
} Keys;

static const int key_signals[] = { SIGINT, SIGQUIT, SIGTSTP };

static void ignore_keys(Keys *k) {
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigemptyset(&ignore.sa_mask);
    for (int i = 0; i < 3; i++) sigaction(key_signals[i], &ignore, &k->old[i]);
}

static void restore_keys(const Keys *k) {
    for (int i = 0; i < 3; i++) sigaction(key_signals[i], &k->old[i], NULL);
}

/* Ignored signals would stay ignored in the editor: only those do that were ignored by our caller. */
static int start(const char *command, Draft *d, const Keys *k, pid_t *pid) {
    char script[1024], sh[] = "sh", option[] = "-c";
    char *argv[] = { sh, option, script, sh, d->path, NULL };
    posix_spawnattr_t attr;
    sigset_t ignored, none;
    if (snprintf(script, sizeof script, "%s \"$@\"", command) >= (int)sizeof script) return E2BIG;
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    for (int i = 0; i < 3; i++)
        if (k->old[i].sa_handler != SIG_IGN) sigaddset(&ignored, key_signals[i]);
    sigemptyset(&none);
    if (posix_spawnattr_init(&attr) != 0) return ENOMEM;
    posix_spawnattr_setsigdefault(&attr, &ignored);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int code = posix_spawn(pid, "/bin/sh", NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return code;
}

/* Returns the editor's status as waitpid has it. ^Z in the editor stops this program, too, so that the shell
 * gets the terminal; both continue together. */
static int wait_for(UiEditor *e, pid_t pid) {
    for (int status = 0;;) {
        const pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (got < 0 && errno != EINTR) return 0;
        if (got == pid && !WIFSTOPPED(status)) return status;
        if (got == pid) {
            raise(SIGSTOP);
            kill(pid, SIGCONT);
            continue;
        }
        const int sig = e->wait(e->arg);
        if (sig) kill(pid, sig);
    }
}

static bool ended_well(UiEditor *e, const char *command, int status) {
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) return true;
    if (code == 126 || code == 127)
        (void)snprintf(e->problem, sizeof e->problem, "the editor %.*s cannot be run: set VISUAL or EDITOR",
                       name_of(command) < 60 ? name_of(command) : 60, command);
    else
        (void)snprintf(e->problem, sizeof e->problem, "%.*s ended with status %d: the message is unchanged",
                       name_of(command) < 60 ? name_of(command) : 60, command, code);
    return false;
}

/* *keep: the text is only in the file. */
static bool read_draft(UiEditor *e, const Draft *d, UiBuf *out, bool *keep) {
    UiTextFile f = { 0 };
    char why[120];
    const UiTextFileResult got = ui_textfile_read(&f, d->path, e->room, false, why, sizeof why);
    *keep = got != UI_TEXTFILE_OK && got != UI_TEXTFILE_UNREADABLE;
    if (got == UI_TEXTFILE_LONG)
        (void)snprintf(e->problem, sizeof e->problem,
                       "too long: %.2f MB, at most %.2f MB fit; the text is in %s",
                       (double)f.size.bytes / (1 << 20), (double)e->room / (1 << 20), d->path);
    else if (got != UI_TEXTFILE_OK)
        (void)fail(e, d->path, why);
    ui_buf_clear(out);
    size_t len = f.text.len;
    if (len > 0 && f.text.data[len - 1] == '\n') len--;
    const bool ok = got == UI_TEXTFILE_OK && ui_buf_add(out, ui_buf_str(&f.text), len);
    ui_textfile_free(&f);
    return ok;
}

bool ui_editor_run(UiEditor *e, const char *text, size_t len, UiBuf *out) {
    const char *command = command_of_user();
    Draft d;
    Keys keys;
    pid_t pid = 0;
    bool keep = false;
    e->problem[0] = '\0';
    if (!command) {
        (void)snprintf(e->problem, sizeof e->problem, "no editor: set VISUAL or EDITOR");
        return false;
    }
    if (!make_draft(e, &d, text, len)) return false;
    ignore_keys(&keys);
    const int code = start(command, &d, &keys, &pid);
    const int status = code == 0 ? wait_for(e, pid) : 0;
    restore_keys(&keys);
    const bool ok = code == 0 ? ended_well(e, command, status) && read_draft(e, &d, out, &keep)
                              : fail(e, "the editor", strerror(code));
    if (!keep) remove_draft(&d);
    return ok;
}
