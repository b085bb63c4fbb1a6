/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-chat: chooses between full screen and line mode, and initializes what both need. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_log.h"
#include "ui/app_internal.h"
#include "ui/engine_remote.h"
#include "ui/goodbye.h"
#include "ui/guide.h"
#include "ui/line.h"
#include "ui/loop.h"
#include "ui/models_shell.h"
#include "ui/opts.h"
#include "ui/own_data.h"
#include "ui/rerun.h"
#include "ui/session_shell.h"
#include "ui/term.h"
#include "ui/ui_signals.h"

static bool is_set(const char *name) {
    const char *v = getenv(name);
    return v && *v;
}

/* true when the terminal's characters are UTF-8. A C locale does not describe the terminal: C.UTF-8 is used
 * then, in the environment too, where readline looks again. */
static bool choose_locale(void) {
    const char *name = setlocale(LC_CTYPE, "");
    if (!name || strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0) {
        if (setlocale(LC_CTYPE, "C.UTF-8") || setlocale(LC_CTYPE, "C.utf8") || ui_own_locale()) {
            setenv("LC_CTYPE", "C.UTF-8", 1);
            unsetenv("LC_ALL");
        }
    }
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Also for screen readers, which set ACCESSIBLE. */
static bool wants_lines(const UiOptions *o) {
    const char *term = getenv("TERM");
    return o->plain || o->json || o->replay || is_set("ACCESSIBLE") || !isatty(STDIN_FILENO) ||
           !isatty(STDOUT_FILENO) || !term || !*term || strcmp(term, "dumb") == 0;
}

static bool wants_color(const UiOptions *o) {
    return o->color == UI_COLOR_ALWAYS || (o->color == UI_COLOR_AUTO && !is_set("NO_COLOR"));
}

static void new_session(UiApp *a) {
    char name[sizeof a->session.name];
    ui_session_name_now(name, sizeof name);
    ui_app_begin_session(a, name);
}

/* Resumes the newest session that no other program has open. Returns false if the free one cannot be resumed,
 * which was reported. */
static bool resume_newest(UiApp *a) {
    size_t n = 0, i = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    UiResume got = UI_RESUME_IN_USE;
    for (; all && i < n && got == UI_RESUME_IN_USE; i++) got = ui_app_try_resume(a, all[i].name);
    if (got == UI_RESUME_IN_USE) {
        ui_app_say(a, UI_NOTICE,
                   n ? "all sessions are in use by other programs; starting a new one"
                     : "there is no session to continue; starting a new one");
        new_session(a);
    } else if (got == UI_RESUMED && i > 1) {
        ui_app_say(a, UI_NOTICE, "session %s is in use by another program; continuing %s", all[0].name,
                   all[i - 1].name);
    }
    free(all);
    return got != UI_RESUME_FAILED;
}

/* Opens the requested conversation. Returns false on failure, which was reported. */
static bool begin_session(UiApp *a, const UiOptions *o) {
    a->no_save = o->no_save;
    a->session.on = !o->no_save && !o->replay && (a->full_screen || o->session || o->resume);
    if (!a->session.on) return true;
    qsf_chatlog_drop_snapshots();
    if (o->session) return ui_app_resume(a, o->session);
    if (o->resume) return resume_newest(a);
    new_session(a);
    return true;
}

/* Everything reported before the screen or line mode starts is written to standard error. */
static void early(void *arg, UiKind kind, const char *text) {
    UiApp *a = arg;
    if (kind == UI_NOTICE && a->quiet) return;
    char *clean = kind == UI_ERROR || !a->full_screen ? qsf_clean_dup(text, strlen(text), false) : NULL;
    if (clean) fprintf(stderr, "qsf-chat: %s\n", clean);
    free(clean);
}

/* What the name of the model means; a folder of models is listed on the full screen. */
static void take_model(UiApp *a, UiOptions *o, bool lines) {
    if (!o->model || o->connect) return;
    if (!lines && qsf_model_is_folder(o->model)) {
        a->models_dir = o->model;
        o->model = NULL;
        return;
    }
    o->found = qsf_model_resolve(o->model, o->dirs, a->refused, sizeof a->refused);
    o->model = o->found;
}

/* What the options say about the chat, before a session or a model is opened. */
static void take_options(UiApp *a, UiOptions *o, bool lines, bool unicode) {
    a->full_screen = !lines;
    a->interactive = a->settings.commands = !lines || isatty(STDIN_FILENO) == 1;
    a->verbose = o->verbose;
    a->quiet = o->quiet;
    a->offline = o->offline;
    a->show_downloads = lines && !o->json;
    a->text_width = o->width;
    (void)snprintf(a->theme, sizeof a->theme, "%s", o->theme);
    a->snapshots = !o->no_snapshot;
    a->snapshot_limit = o->snapshot_limit;
    a->config = o->start.config;
    a->no_config = o->start.off;
    a->model_dirs = o->dirs;
    a->remember_model = !o->no_save && a->interactive;
    if (!lines) {
        int rows, cols;
        (void)ui_term_size(&rows, &cols);
        ui_app_screen_has(a, (size_t)rows * (size_t)cols, false);
    }
    take_model(a, o, lines);
    if (o->start.role) (void)snprintf(a->role, sizeof a->role, "%s", o->start.role);
    ui_config_apply(a, o->model, a->given.settings.user_set);
    a->given.stops = o->stops; /* owned by the app from here on */
    o->stops = (UiStops){ 0 };
    for (size_t i = 0; i < a->given.stops.n; i++) (void)ui_stops_add(&a->stops, a->given.stops.text[i]);
    if (o->has_system) ui_buf_puts(&a->given.system, ui_buf_str(&o->system));
    a->chat.ascii = !unicode;
    a->hooks = (UiHooks){ .arg = a, .said = early };
    if (o->connect && o->key_file && qsf_connect_key_exposed(o->key_file))
        ui_app_say(a, UI_NOTICE, "--api-key-file %s: other users can read it: chmod 600 helps", o->key_file);
    if (o->model) a->want_model = ui_strdup_len(o->model, strlen(o->model));
}

/* Loads the model of the options or the session. Without either, the chat asks for one. */
static void load_model(UiApp *a, const UiOptions *o, bool lines) {
    if (o->model) {
        ui_app_load(a, a->want_model && o->connect ? a->want_model : o->model); /* the session may name it */
        a->model_unsaved = a->kept;
    } else if (!a->model_path && !a->want_model && !a->refused[0]) {
        a->choose_model = !lines;
        if (lines) ui_guide_open(a);
    }
}

static int replay(UiApp *a, const UiOptions *o) {
    if (a->refused[0]) {
        ui_options_error(a->refused);
        return QSF_EXIT_MODEL;
    }
    if (o->model) ui_app_load(a, o->model);
    return ui_rerun(a, o->replay, o->model != NULL);
}

/* Returns the exit status, or -1: there is no full screen, which was reported. */
static int on_screen(UiApp *a, const UiOptions *o, bool unicode) {
    char err[300] = "";
    const UiLoopOptions screen = {
        .color = wants_color(o), .unicode = unicode, .mouse = !o->no_mouse, .notify = o->notify
    };
    const int status = ui_loop_run(a, &screen, err, sizeof err);
    if (status >= 0) {
        ui_goodbye_print(a);
        return status;
    }
    ui_options_error(err);
    ui_options_error("using line mode instead of the full screen");
    a->full_screen = false;
    a->show_downloads = true;
    if (a->choose_model) ui_guide_open(a);
    return -1;
}

static int chat(UiApp *a, UiOptions *o, bool unicode) {
    const bool lines = wants_lines(o);
    take_options(a, o, lines, unicode);
    /* The conversation first: it may contain settings for loading the model. */
    if (!begin_session(a, o)) return a->exit_code;
    if (o->replay) return replay(a, o);
    if (!ui_config_begin_session(a, o->model)) return a->exit_code;
    load_model(a, o, lines);
    if (o->has_system && strcmp(ui_buf_str(&a->system), ui_buf_str(&o->system)) != 0)
        ui_app_give_system(a, ui_buf_str(&o->system));
    for (size_t i = 0; i < o->n_files; i++)
        if (!ui_attach_add(a, o->files[i])) return QSF_EXIT_USAGE;
    a->hooks = (UiHooks){ 0 };
    const int status = lines ? -1 : on_screen(a, o, unicode);
    if (status >= 0) return status;
    return ui_line_run(a, &(UiLineOptions){ .quiet = o->quiet,
                                            .json = o->json,
                                            .top_logprobs = o->top_logprobs,
                                            .script = o->script });
}

/* Line mode is chosen where standard input or output is not a terminal: --script and --output are files in
 * their place. */
static bool redirect(const UiOptions *o) {
    char err[400];
    if ((o->script && qsf_cli_replace_fd(STDIN_FILENO, o->script, err, sizeof err) != 0) ||
        (o->output && qsf_cli_replace_fd(STDOUT_FILENO, o->output, err, sizeof err) != 0)) {
        ui_options_error(err);
        return false;
    }
    bool read = o->output && (qsf_cli_is_output(NULL) || (o->model && qsf_cli_is_output(o->model)));
    for (size_t i = 0; o->output && i < o->n_files; i++) read = read || qsf_cli_is_output(o->files[i]);
    if (!read) return true;
    (void)snprintf(err, sizeof err, "--output %.300s: the file is also read", o->output);
    ui_options_error(err);
    return false;
}

/* What is printed without a model; returns the exit status. */
static int print_only(const UiOptions *o) {
    char err[400] = "";
    qsf_cli_begin_output();
    int status = o->list_models ? ui_models_print(o, err, sizeof err)
                 : o->list      ? ui_sessions_print(o->find, err, sizeof err)
                                : ui_session_print(o->print, o->settings.ram_budget, err, sizeof err);
    if (err[0]) ui_options_error(err);
    const int printed = qsf_cli_printed("qsf-chat");
    return status ? status : printed;
}

/* A grammar that is wrong is refused before anything begins, as by /grammar; returns the exit status. */
static int check_grammar(const UiOptions *o) {
    char err[600];
    const QSFSettings *s = &o->settings;
    const uint64_t available = qsf_memory_available(), budget = s->ram_percent > 0
                                                                    ? available / 100 * s->ram_percent
                                                                : s->ram_budget > 0 ? s->ram_budget
                                                                                    : available / 2;
    const int rc = qsf_grammar_check(&s->params, budget, err, sizeof err);
    if (rc != 0) ui_options_error(err);
    return rc;
}

/* Downloads the model of the command line, if that is what its name means, before the screen opens. */
static bool fetch_model(UiOptions *o, char **path, int *status) {
    char err[500];
    if (!o->model || !qsf_fetch_is_remote(o->model)) return true;
    *path = qsf_fetch(o->model, o->offline, o->quiet, qsf_fetch_room(&o->settings), status, err, sizeof err);
    if (!*path && *err) ui_options_error(err);
    if (*path) o->model = *path;
    return *path != NULL;
}

/* The key is read where a server may need it: a session can name one, too. */
static QSFRemote *open_remote(const UiOptions *o, char *err, size_t cap, int *status) {
    char *key;
    *status = QSF_EXIT_USAGE;
    if (!qsf_connect_key(o->key_file, &key, err, cap) && (o->key_file || o->connect)) return NULL;
    QSFRemote *r = qsf_remote_new(key, o->timeout);
    free(key);
    if (!r) (void)snprintf(err, cap, "out of memory");
    if (!r) *status = QSF_EXIT_RUNTIME;
    return r;
}

int main(int argc, char **argv) {
    UiOptions options;
    UiApp app;
    char err[400];
    if (qsf_cli_open_std_fds("qsf-chat")) return QSF_EXIT_RUNTIME;
    bool unicode = choose_locale();
    int status = ui_options_parse(&options, argc, argv);
    if (status >= 0) {
        ui_options_free(&options);
        return status;
    }
    if (!redirect(&options)) {
        ui_options_free(&options);
        return QSF_EXIT_USAGE;
    }
    if (options.list || options.print || options.list_models) {
        status = print_only(&options);
        ui_options_free(&options);
        return status;
    }
    status = check_grammar(&options);
    if (status != 0) {
        ui_options_free(&options);
        return status;
    }
    if (!qsf_log_open("qsf-chat", options.log_file, err, sizeof err)) ui_options_error(err);
    qsf_log("start", "%s", qsf_version());
    char *fetched = NULL;
    if (!fetch_model(&options, &fetched, &status)) {
        ui_options_free(&options);
        return status;
    }
    QSFRemote *remote = open_remote(&options, err, sizeof err, &status);
    QSFWorker *worker = remote ? qsf_worker_start(&options.settings, err, sizeof err) : NULL;
    if (!worker) {
        ui_options_error(err);
        qsf_remote_free(remote);
        ui_options_free(&options);
        free(fetched);
        return remote ? QSF_EXIT_RUNTIME : status;
    }
    qsf_worker_override(worker, options.overrides);
    UiEngines engines = { .worker = worker, .remote = remote };
    ui_app_init(&app, ui_engine_both(&engines), &options.settings);
    status = chat(&app, &options, unicode);
    qsf_remote_free(remote);
    qsf_worker_stop(worker);
    ui_app_free(&app);
    ui_options_free(&options);
    qsf_log("end", "exit status %d", status);
    qsf_log_close();
    free(fetched);
    return status;
}
