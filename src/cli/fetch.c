/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs qsf-get (qsf_fetch.h). */
#include "qsf_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_system.h"
#include "qsf_text.h"
#include "src/base/json.h"
#include "src/base/paths.h"
#include "src/cli/signals.h"

extern char **environ;

bool qsf_fetch_is_remote(const char *name) {
    return strncmp(name, "hf:", 3) == 0 || strncmp(name, "https://", 8) == 0 ||
           strncmp(name, "http://", 7) == 0;
}

const char *qsf_fetch_program(char *path, size_t cap) {
    const size_t room = cap > sizeof "qsf-get" ? cap - sizeof "qsf-get" : 0;
    char *slash = qsf_program_path(path, room) ? strrchr(path, '/') : NULL;
    if (slash != NULL) {
        strcpy(slash + 1, "qsf-get");
        if (access(path, X_OK) == 0) return path;
    }
    return "qsf-get";
}

#define OTHER_BYTES ((uint64_t)512 << 20) /* of a budget, not for weights */

typedef struct How {
    const char *name;
    bool offline, quiet, json, background;
    uint64_t room; /* 0 = by itself */
} How;

/* Starts it with a pipe on its standard output. json: its errors are events, nothing goes to stderr. ^C on
 * the terminal reaches it, too, unless it is in the background: then this process stops it. */
static pid_t start(const How *how, int *fd, char *err, size_t cap) {
    char path[QSF_PATH_MAX], bytes[32];
    const char *args[10];
    size_t n = 0;
    int ends[2];
    pid_t pid = -1;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t blocked;
    const char *run = qsf_fetch_program(path, sizeof path);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)how->room);
    args[n++] = run;
    if (how->json) args[n++] = "--json";
    if (how->quiet) args[n++] = "--quiet";
    if (how->offline) args[n++] = "--offline";
    if (how->room > 0) args[n++] = "--room", args[n++] = bytes;
    args[n++] = "--", args[n++] = how->name, args[n] = NULL;
    if (!qsf_pipe(ends, false)) {
        snprintf(err, cap, "%s: %s", how->name, strerror(errno));
        return -1;
    }
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (how->json) posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    sigemptyset(&blocked); /* the chat blocks some, and it has to be possible to stop it */
    if (how->background) sigaddset(&blocked, SIGINT);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &blocked);
    const int rc = posix_spawnp(&pid, run, &files, &attr, (char *const *)args, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    *fd = ends[0];
    if (rc == 0) return pid;
    close(ends[0]);
    snprintf(err, cap, "%s: qsf-get cannot be run (%s): it is installed with libcurl only", how->name,
             strerror(rc));
    return -1;
}

/* Reads until the end; false: more than cap - 1 bytes, or an error. */
static bool read_all(int fd, char *out, size_t cap) {
    size_t n = 0;
    for (;;) {
        const ssize_t got = read(fd, out + n, cap - 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || (n += (size_t)got) == cap - 1) {
            out[n] = '\0';
            return got == 0;
        }
    }
}

/* Its exit status. */
static int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return QSF_EXIT_RUNTIME;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

uint64_t qsf_fetch_weights(uint64_t budget) {
    const uint64_t share = budget / 4;
    return budget - (share < OTHER_BYTES ? share : OTHER_BYTES);
}

uint64_t qsf_fetch_room(const QSFSettings *s) {
    const uint64_t percent = qsf_memory_available() / 100 * s->ram_percent;
    if (!qsf_setting_user_set(s, qsf_setting_find("ram-budget"))) return 0;
    return qsf_fetch_weights(percent > 0 ? percent : s->ram_budget);
}

char *qsf_fetch(const char *name, bool offline, bool quiet, uint64_t room, int *code, char *err, size_t cap) {
    char path[QSF_PATH_MAX];
    int fd;
    *err = '\0';
    *code = QSF_EXIT_RUNTIME;
    const pid_t pid = start(&(How){ .name = name, .offline = offline, .quiet = quiet, .room = room }, &fd,
                            err, cap);
    if (pid < 0) return NULL;
    const bool whole = read_all(fd, path, sizeof path);
    close(fd);
    *code = wait_for(pid);
    path[strcspn(path, "\n")] = '\0';
    if (*code != 0 || !whole || *path != '/') {
        if (*code == 0) *code = QSF_EXIT_RUNTIME;
        return NULL;
    }
    char *copy = strdup(path);
    if (!copy) *code = QSF_EXIT_RUNTIME;
    return copy;
}

bool qsf_fetch_start(QSFFetch *f, const char *name, unsigned how, uint64_t room, char *err, size_t cap) {
    const bool shown = how & QSF_FETCH_SHOWN, quiet = how & QSF_FETCH_QUIET;
    const How run = { name, how & QSF_FETCH_OFFLINE, shown && quiet, !shown, true, room };
    f->len = 0;
    f->shown = shown;
    f->pid = start(&run, &f->fd, err, cap);
    if (f->pid < 0) {
        f->pid = 0;
        return false;
    }
    (void)fcntl(f->fd, F_SETFL, fcntl(f->fd, F_GETFL) | O_NONBLOCK);
    return true;
}

static void end(QSFFetch *f) {
    close(f->fd);
    f->fd = -1;
    f->pid = 0;
}

void qsf_fetch_stop(QSFFetch *f) {
    if (f->pid == 0) return;
    (void)kill(f->pid, SIGTERM);
    (void)wait_for(f->pid);
    end(f);
}

/* It is gone without a result. */
static void fail(QSFFetch *f, QSFFetchEvent *e) {
    const int code = wait_for(f->pid);
    end(f);
    e->kind = QSF_FETCH_FAILED;
    e->code = code != 0 ? code : QSF_EXIT_RUNTIME;
    if (f->shown) return;
    snprintf(e->text, sizeof e->text,
             code == QSF_EXIT_INT || code == QSF_EXIT_TERM ? "stopped" : "qsf-get ended with status %d",
             code);
}

static void set_text(QSFFetchEvent *e, const char *s) {
    char *clean = s ? qsf_clean_dup(s, strlen(s), false) : NULL;
    snprintf(e->text, sizeof e->text, "%s", clean ? clean : "");
    free(clean);
}

static void list_models(const QsfJson *list, QSFFetchEvent *e) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < qsf_json_size(list); i++) {
        const QsfJson *m = qsf_json_at(list, i);
        const char *name = qsf_json_string(qsf_json_get(m, "name"), NULL);
        const char *verdict = qsf_json_string(qsf_json_get(m, "verdict"), NULL);
        qsf_strbuf_addf(&b, "%s%s %8.2f GB  %-13s %s", i ? "\n" : "",
                        qsf_json_bool(qsf_json_get(m, "chosen"), false) ? "*" : " ",
                        (double)qsf_json_int(qsf_json_get(m, "bytes"), 0) / 1e9, verdict ? verdict : "",
                        name ? name : "");
    }
    set_text(e, qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
}

/* Without events: the path. */
static bool parse_path(const char *line, size_t len, QSFFetchEvent *e) {
    if (len == 0 || *line != '/' || len >= sizeof e->text) return false;
    e->kind = QSF_FETCH_DONE;
    (void)snprintf(e->text, sizeof e->text, "%.*s", (int)len, line);
    return true;
}

/* An event of qsf-get (get/report.h). false: none that is known. */
static bool parse(const char *line, size_t len, QSFFetchEvent *e) {
    QsfErr err = { 0 };
    QsfJson *root = qsf_json_parse(line, len, &err);
    const char *kind = qsf_json_string(qsf_json_get(root, "event"), NULL);
    const char *message = qsf_json_string(qsf_json_get(root, "message"), NULL);
    if (kind && strcmp(kind, "progress") == 0) {
        const int64_t done = qsf_json_int(qsf_json_get(root, "done"), 0),
                      total = qsf_json_int(qsf_json_get(root, "total"), 0);
        e->kind = QSF_FETCH_PROGRESS;
        e->done = done > 0 ? (uint64_t)done : 0;
        e->total = total > 0 ? (uint64_t)total : 0;
        e->rate = qsf_json_real(qsf_json_get(root, "rate"),
                                (double)qsf_json_int(qsf_json_get(root, "rate"), 0));
    } else if (kind && strcmp(kind, "models") == 0) {
        e->kind = QSF_FETCH_NOTE;
        list_models(qsf_json_get(root, "models"), e);
    } else if (kind) {
        e->kind = strcmp(kind, "note") == 0    ? QSF_FETCH_NOTE
                  : strcmp(kind, "done") == 0  ? QSF_FETCH_DONE
                  : strcmp(kind, "error") == 0 ? QSF_FETCH_FAILED
                                               : QSF_FETCH_NOTHING;
        set_text(e, e->kind == QSF_FETCH_DONE ? qsf_json_string(qsf_json_get(root, "path"), NULL) : message);
    }
    qsf_json_free(root);
    return e->kind != QSF_FETCH_NOTHING;
}

/* A whole line is in the buffer: takes it out. */
static bool take_line(QSFFetch *f, QSFFetchEvent *e) {
    const char *newline = memchr(f->line, '\n', f->len);
    if (!newline) return false;
    const size_t used = (size_t)(newline - f->line) + 1;
    const bool known = f->shown ? parse_path(f->line, used - 1, e) : parse(f->line, used - 1, e);
    memmove(f->line, f->line + used, f->len - used);
    f->len -= used;
    return known;
}

void qsf_fetch_next(QSFFetch *f, QSFFetchEvent *e) {
    *e = (QSFFetchEvent){ .kind = QSF_FETCH_NOTHING };
    while (f->pid != 0) {
        if (take_line(f, e)) break;
        if (memchr(f->line, '\n', f->len)) continue;
        if (f->len == sizeof f->line) f->len = 0; /* too long for an event of ours */
        const ssize_t n = read(f->fd, f->line + f->len, sizeof f->line - f->len);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            fail(f, e);
            return;
        }
        f->len += (size_t)n;
    }
    if (f->pid == 0 || (e->kind != QSF_FETCH_DONE && e->kind != QSF_FETCH_FAILED)) return;
    e->code = wait_for(f->pid);
    if (e->kind == QSF_FETCH_DONE && e->code != 0) {
        e->kind = QSF_FETCH_FAILED;
        e->text[0] = '\0';
    }
    if (e->kind == QSF_FETCH_FAILED && e->code == 0) e->code = QSF_EXIT_RUNTIME;
    end(f);
}
