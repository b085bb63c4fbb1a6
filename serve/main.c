/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-serve: answers requests in the form of OpenAI's interface. Loads the model, then runs the server. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_fetch.h"
#include "qsf_log.h"
#include "qsf_models.h"
#include "serve/server.h"
#include "serve/slots.h"
#include "src/base/platform.h"
#include "src/cli/signals.h"

static int fail(const QsfErr *err) {
    qsf_cli_error(&serve_cli, "%s", err->msg);
    return err->code;
}

/* ---- the model ---- */

/* Replaces a name by the path of a file, malloc'ed in *file. */
static int find_model(ServeOptions *o, char **file) {
    char hint[500] = "";
    int code = QSF_EXIT_MODEL;
    char *found = qsf_fetch_is_remote(o->model)
                      ? qsf_fetch(o->model, o->offline, o->quiet, qsf_fetch_room(&o->settings), &code, hint,
                                  sizeof hint)
                      : qsf_model_resolve(o->model, o->dirs, hint, sizeof hint);
    *file = found != NULL ? qsf_model_file(found) : NULL;
    free(found);
    if (*file == NULL && *hint != '\0') qsf_cli_error(&serve_cli, "%s", hint);
    if (*file == NULL) return code;
    o->model = *file;
    return QSF_EXIT_OK;
}

/* The name of a file without its folder and its ending. */
static char *name_of(const char *path) {
    static const char *const endings[] = { ".gguf", ".qsf", ".safetensors" };
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    const char *from = path + len;
    while (from > path && from[-1] != '/') from--;
    if (from == path + len) from = path;
    size_t n = len - (size_t)(from - path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t e = strlen(endings[i]);
        if (n > e && memcmp(from + n - e, endings[i], e) == 0) n -= e;
    }
    return strndup(from, n);
}

/* Notices while it loads, on stderr. */
static void say(const ServeServer *s, const QSFEvent *e) {
    qsf_log("notice", "%s", e->text);
    if (!s->options->quiet) qsf_cli_error_text(&serve_cli, e->text);
}

/* Waits until the model is loaded. Returns an exit status. */
static int load(ServeServer *s) {
    QSFEvent e = { 0 };
    const uint64_t id = qsf_worker_load(s->worker, s->options->model, &s->settings);
    bool stopped = false;
    if (id == 0) return qsf_cli_error(&serve_cli, "out of memory"), QSF_EXIT_RUNTIME;
    for (;;) {
        struct pollfd p = { .fd = qsf_worker_fd(s->worker), .events = POLLIN };
        (void)poll(&p, 1, 1000);
        if (!stopped && atomic_load(&qsf_signal_cancel) != 0) qsf_worker_cancel(s->worker), stopped = true;
        while (qsf_worker_next(s->worker, &e)) {
            if (e.type == QSF_EVENT_NOTICE) say(s, &e);
            if (e.type == QSF_EVENT_LOADED) return QSF_EXIT_OK;
            if (e.type != QSF_EVENT_ERROR) continue;
            if (!stopped) qsf_cli_error_text(&serve_cli, e.text);
            return e.code;
        }
    }
}

static void print_plan(const ServeServer *s) {
    char *plan = s->options->verbose ? qsf_worker_describe(s->worker, "plan") : NULL;
    if (plan != NULL) fprintf(stderr, "%s", plan);
    free(plan);
}

/* ---- the server ---- */

/* Only clients with a key from other machines. */
static int check_address(const ServeOptions *o, ServeGuard *g) {
    QsfErr err = { 0 };
    bool local;
    if (serve_listen_check(o->listen, &local, &err) != QSF_OK) return fail(&err);
    if (o->key_file != NULL && serve_guard_read_key(g, o->key_file, &err) != QSF_OK) return fail(&err);
    if (local || g->key_len > 0) return QSF_EXIT_OK;
    qsf_cli_error(&serve_cli, "--listen %s: other machines reach this address: --api-key-file is required",
                  o->listen);
    return QSF_EXIT_USAGE;
}

static bool open_wake(ServeServer *s) {
    if (pipe(s->wake) != 0) return false;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(s->wake[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(s->wake[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static void take_options(ServeServer *s, const ServeOptions *o) {
    s->options = o;
    s->settings = o->settings;
    s->settings.owner_bytes = serve_memory_all(o) + serve_slots_bytes(o->snapshots);
    s->settings.candidates = SERVE_TOP;
    s->memory.limit = serve_memory_texts(o);
    s->guard.hosts = o->n_hosts > 0 ? o->hosts : NULL;
    s->guard.origins = o->n_origins > 0 ? o->origins : NULL;
}

static void finish_guard(ServeServer *s) {
    s->guard.host = s->listen.host;
    s->guard.anywhere = strcmp(s->listen.host, "0.0.0.0") == 0 || strcmp(s->listen.host, "[::]") == 0;
}

static void open_slots(const ServeServer *s, ServeSlots *slots) {
    QsfErr err = { 0 };
    if (serve_slots_open(slots, s->options, &err) != QSF_OK)
        qsf_cli_error(&serve_cli, "%s; conversations are not kept", err.msg);
    qsf_err_clear(&err);
}

/* With the model loaded. */
static int serve(ServeServer *s) {
    ServeSlots slots = { .lock = -1 };
    char err[1000];
    struct stat st;
    s->worker = qsf_worker_start(&s->settings, err, sizeof err);
    if (s->worker == NULL) return qsf_cli_error(&serve_cli, "%s", err), QSF_EXIT_RUNTIME;
    qsf_worker_override(s->worker, s->options->overrides);
    s->model.created = stat(s->options->model, &st) == 0 ? (int64_t)st.st_mtime : 0;
    int rc = load(s);
    if (rc == QSF_EXIT_OK) print_plan(s);
    if (rc == QSF_EXIT_OK) open_slots(s, &slots);
    if (rc == QSF_EXIT_OK) rc = serve_loop(s, &slots);
    qsf_worker_stop(s->worker);
    serve_slots_close(&slots); /* the engine saves to the folder until it has stopped */
    return rc;
}

static int run(ServeServer *s, const ServeOptions *o, const char *asked) {
    QsfErr err = { 0 };
    take_options(s, o);
    char *name = o->name != NULL ? strdup(o->name) : name_of(qsf_fetch_is_remote(asked) ? o->model : asked);
    if (name == NULL || !open_wake(s)) {
        free(name);
        return qsf_cli_error(&serve_cli, "out of memory"), QSF_EXIT_RUNTIME;
    }
    s->model.id = name;
    int rc = check_address(o, &s->guard);
    if (rc == QSF_EXIT_OK && serve_listen_open(&s->listen, o->listen, &err) != QSF_OK) rc = fail(&err);
    finish_guard(s);
    if (rc == QSF_EXIT_OK) rc = serve(s);
    serve_listen_close(&s->listen);
    close(s->wake[0]);
    close(s->wake[1]);
    free(name);
    return rc;
}

static void begin_log(const ServeOptions *o) {
    char err[400];
    if (!qsf_log_open(serve_cli.program, o->log_file, err, sizeof err)) qsf_cli_error(&serve_cli, "%s", err);
    qsf_log("start", "%s", qsf_version());
}

int main(int argc, char **argv) {
    static ServeOptions o; /* large, as the server */
    static ServeServer s = { .listen.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };
    QSFCliResult res;
    char *file = NULL;
    if (qsf_cli_open_std_fds(serve_cli.program)) return QSF_EXIT_RUNTIME;
    qsf_os_tame_heap(); /* bodies and answers come and go */
    qsf_signals_init();
    int rc = serve_options_parse(&o, argc, argv, &res);
    const char *asked = o.model;
    if (!rc && res.done)
        rc = qsf_cli_printed(serve_cli.program);
    else if (!rc && res.print_config)
        rc = serve_options_print(&o);
    else if (!rc && !(rc = find_model(&o, &file)) && !(rc = serve_options_for_model(&o))) {
        begin_log(&o);
        rc = run(&s, &o, asked);
        const int sig = atomic_load(&qsf_signal_cancel);
        if (rc == QSF_EXIT_OK && sig != 0) rc = 128 + sig;
        qsf_log("end", "exit status %d", rc);
        qsf_log_close();
    }
    serve_options_free(&o);
    free(file);
    return rc;
}
