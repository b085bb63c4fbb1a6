/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-run: what comes from the configuration file. The command line goes first, and what has no meaning in
 * the mode is left out: the file is for every run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/run/run.h"

int run_config_begin(RunOptions *o, int argc, char **argv, QSFCliHandler on_option) {
    char err[1024];
    RunOptions scratch = { .max_kl = -1 };
    const int rc = qsf_config_begin(&o->config, &run_cli, argc, argv, on_option, &scratch, err, sizeof err);
    run_options_free(&scratch);
    if (rc) qsf_cli_error(&run_cli, "%s", err);
    return rc;
}

typedef struct Trial {
    RunOptions *o;
    QSFCliHandler on_option;
    const char *(*wrong)(const RunOptions *o);
} Trial;

static bool takes_model(const RunOptions *o) { return o->mode != RUN_RENDER && o->mode != RUN_PARITY; }

/* A copy is tried first. */
static int try_option(void *arg, int id, const char *value, char *err, size_t cap) {
    const Trial *t = arg;
    RunOptions copy = *t->o;
    const int rc = t->on_option(&copy, id, value, err, cap);
    while (copy.n_files > t->o->n_files) free(copy.files[--copy.n_files]);
    if (rc || t->wrong(&copy) || (copy.model != t->o->model && !takes_model(t->o))) return rc;
    return t->on_option(t->o, id, value, err, cap);
}

int run_config_options(RunOptions *o, QSFCliHandler on_option, const char *(*wrong)(const RunOptions *o)) {
    char err[1024];
    Trial t = { o, on_option, wrong };
    if (o->mode == RUN_INTERACTIVE) return 0; /* qsf-chat reads the file */
    const int rc = qsf_config_options(&o->config, &run_cli, try_option, &t, err, sizeof err);
    if (rc) qsf_cli_error(&run_cli, "%s", err);
    return rc;
}

/* The text of the file, which is there as long as the program runs. */
static int read_system(RunOptions *o) {
    static QsfStrbuf text;
    const RunRoom room = run_room(o);
    const int rc = run_read_text("system-file", o->system_file, &room, &text);
    while (text.len > 0 && text.data[text.len - 1] == '\n') text.data[--text.len] = '\0';
    o->system = qsf_strbuf_str(&text);
    return rc;
}

static void take_texts(RunOptions *o) {
    const QSFConfigFile *c = o->config.config;
    const QSFConfigEntry *e;
    const bool given_stop = o->n_stop > 0, given_system = o->system || o->system_file;
    for (e = qsf_config_text(c, o->model, qsf_config_start_role(&o->config), "stop", NULL); e;
         e = qsf_config_text(c, o->model, qsf_config_start_role(&o->config), "stop", e))
        if (o->mode == RUN_GENERATE && !given_stop && o->n_stop < RUN_MAX_LIST)
            o->stop[o->n_stop++] = e->value;
    e = given_system
            ? NULL
            : qsf_config_text(c, o->model, qsf_config_start_role(&o->config), "system,system-file", NULL);
    if (e) *(strcmp(e->own->name, "system") == 0 ? &o->system : &o->system_file) = e->value;
}

/* Settings of the file that would be refused in this mode, or that stand for something else. */
static void leave_out(const RunOptions *o, QSFSettings *s) {
    const QSFParams own = o->settings.params;
    if (o->mode != RUN_GENERATE) s->show_thinking = o->settings.show_thinking;
    if (o->mode == RUN_CALIBRATE_QUALITY) {
        s->params.quality = own.quality;
        s->params.expert_top = own.expert_top;
        s->params.expert_drop = own.expert_drop;
    }
    if (o->mode != RUN_GENERATE) s->params.max_tokens = own.max_tokens;
}

/* Settings may exclude each other: the command line wins. */
static void settle(const QSFSettings *given, QSFSettings *s) {
    const bool policy = qsf_setting_user_set(given, qsf_setting_find("eviction-policy"));
    char err[400];
    while (qsf_settings_check(s, err, sizeof err) != 0) {
        const char *off;
        const QSFSetting *row = qsf_settings_reducing(s, &off);
        const bool set = qsf_setting_user_set(given, row);
        if (!set && !policy) return;
        if (set)
            (void)snprintf(s->eviction, sizeof s->eviction, "none");
        else
            (void)qsf_setting_set(s, row, off, err, sizeof err);
    }
}

int run_config_settings(RunOptions *o) {
    const QSFSettings *given = &o->config.given;
    char err[400];
    const bool prompt = o->mode == RUN_GENERATE || o->mode == RUN_SHOW_PROMPT;
    if (o->mode == RUN_INTERACTIVE) return 0;
    QSFSettings s = o->settings;
    qsf_config_settings(o->config.config, o->model, qsf_config_start_role(&o->config), &s);
    leave_out(o, &s);
    qsf_config_overlay(&s, given);
    settle(given, &s);
    if (qsf_settings_check(&s, err, sizeof err) != 0) {
        qsf_cli_error(&run_cli, "%s: %s", qsf_config_path(o->config.config), err);
        return QSF_EXIT_USAGE;
    }
    o->settings = s;
    if (prompt) take_texts(o);
    return o->system_file ? read_system(o) : 0;
}

int run_config_print(const RunOptions *o) {
    QSFSettings defaults;
    qsf_settings_default(&defaults);
    qsf_config_print(&o->config, &run_cli, &defaults, o->model, NULL, NULL);
    return qsf_cli_printed(run_cli.program);
}
