/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-run: answers one prompt, or measures or inspects a model. Finds the model and runs the mode. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_fetch.h"
#include "qsf_log.h"
#include "qsf_models.h"
#include "qsf_system.h"
#include "src/run/run.h"

/* Runs qsf-chat from this program's directory, or else from PATH, with the same arguments except
 * --interactive. */
static int run_interactive(int argc, char **argv) {
    char self[4096], chat[4200] = "qsf-chat";
    char *slash = qsf_program_path(self, sizeof self) ? strrchr(self, '/') : NULL;
    if (slash) {
        snprintf(chat, sizeof chat, "%.*s/qsf-chat", (int)(slash - self), self);
        if (access(chat, X_OK)) snprintf(chat, sizeof chat, "qsf-chat");
    }
    char **args = calloc((size_t)argc + 2, sizeof *args);
    if (!args) return QSF_EXIT_RUNTIME;
    int k = 0;
    args[k++] = chat;
    args[k++] = (char[]){ "--plain" };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--interactive") && strcmp(argv[i], "-i")) args[k++] = argv[i];
    execvp(chat, args);
    qsf_cli_error(&run_cli, "--interactive: cannot run %s", chat);
    free(args);
    return QSF_EXIT_RUNTIME;
}

/* Replaces the name of a model by its file. */
static int resolve_model(RunOptions *o, char *buf, size_t cap) {
    char hint[400];
    char *found = o->model ? qsf_model_resolve(o->model, o->dirs, hint, sizeof hint) : NULL;
    char *file = found ? qsf_model_file(found) : NULL;
    free(found);
    if (o->model && *hint) {
        qsf_cli_error(&run_cli, "%s", hint);
        return QSF_EXIT_MODEL;
    }
    if (!file) return QSF_EXIT_OK;
    const int n = snprintf(buf, cap, "%s", file);
    if ((size_t)n >= cap) qsf_cli_error(&run_cli, "%s: the name is too long", file);
    free(file);
    o->model = buf;
    return (size_t)n < cap ? QSF_EXIT_OK : QSF_EXIT_MODEL;
}

/* Replaces the name of a model that is to be downloaded with the path of its file. */
static int fetch(RunOptions *o, char *buf, size_t cap) {
    char err[500];
    int code;
    char *path = qsf_fetch(o->model, o->offline, run_is_quiet(), qsf_fetch_room(&o->settings), &code, err,
                           sizeof err);
    if (path && strlen(path) < cap) o->model = strcpy(buf, path);
    if (!path && *err) qsf_cli_error(&run_cli, "%s", err);
    free(path);
    return path ? QSF_EXIT_OK : code;
}

static int check_model(RunOptions *o, const QSFCliResult *r, char *buf, size_t cap) {
    if (o->mode == RUN_RENDER || o->mode == RUN_MATCH) {
        if (!o->model && !r->n_positional) return QSF_EXIT_OK;
        qsf_cli_error(&run_cli, "%s",
                      o->mode == RUN_MATCH ? "--match takes no MODEL: it reads texts from stdin"
                                           : "--render takes no MODEL: it reads variables from stdin");
        return QSF_EXIT_USAGE;
    }
    int extra = o->model ? 0 : 1;
    if (r->n_positional > extra) {
        qsf_cli_error(&run_cli, "unexpected argument \"%s\": only one MODEL is allowed (use -p for a prompt)",
                      r->positional[extra]);
        return QSF_EXIT_USAGE;
    }
    if (r->n_positional) o->model = r->positional[0];
    if (!o->model && o->mode == RUN_PARITY) {
        snprintf(buf, cap, "%s/model.gguf", o->parity_dir);
        o->model = buf;
    }
    if (o->model && o->mode != RUN_INTERACTIVE && qsf_fetch_is_remote(o->model)) return fetch(o, buf, cap);
    if (o->model || o->mode == RUN_INTERACTIVE) return resolve_model(o, buf, cap);
    qsf_cli_error(&run_cli, "no MODEL given (see --help)");
    return QSF_EXIT_USAGE;
}

/* Filters: they write what they read in another form. */
static bool is_filter(RunMode m) {
    return m == RUN_TOKENIZE || m == RUN_DETOKENIZE || m == RUN_RENDER || m == RUN_MATCH ||
           m == RUN_SHOW_PROMPT;
}

/* What would be destroyed by writing the output. */
static bool reads_output(const RunOptions *o) {
    const char *const paths[] = { o->model,
                                  o->system_file,
                                  o->perplexity,
                                  o->kl_base,
                                  o->calibrate_quality,
                                  o->receipt,
                                  o->kl_save,
                                  o->render,
                                  o->prompt_cache,
                                  o->settings.params.grammar_kind ? o->settings.params.grammar : NULL };
    bool any = qsf_cli_is_output(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        any = any || (paths[i] && qsf_cli_is_output(paths[i]));
    for (size_t i = 0; i < o->n_files; i++) any = any || qsf_cli_is_output(o->files[i]);
    return any;
}

/* qsf-chat logs for itself. The run continues without a log that cannot be written. */
static void begin_log(const RunOptions *o) {
    char err[400];
    if (o->mode == RUN_INTERACTIVE) return;
    if (!qsf_log_open(run_cli.program, o->log_file, err, sizeof err)) qsf_cli_error(&run_cli, "%s", err);
    qsf_log("start", "%s", qsf_version());
}

static int dispatch(const RunOptions *o, int argc, char **argv) {
    char err[400];
    begin_log(o);
    if (o->output && o->mode != RUN_INTERACTIVE &&
        qsf_cli_replace_fd(STDOUT_FILENO, o->output, err, sizeof err) != 0) {
        qsf_cli_error(&run_cli, "%s", err);
        return QSF_EXIT_USAGE;
    }
    if (o->output && reads_output(o)) {
        qsf_cli_error(&run_cli, "--output %s: the file is also read", o->output);
        return QSF_EXIT_USAGE;
    }
    if (o->output && o->svg && qsf_cli_is_output(o->svg)) {
        qsf_cli_error(&run_cli, "--output %s: --svg writes the same file", o->output);
        return QSF_EXIT_USAGE;
    }
    if (o->mode != RUN_GENERATE) qsf_cli_begin_output();
    if (is_filter(o->mode)) qsf_signals_end_at_once(true);
    switch (o->mode) {
    case RUN_GENERATE: return run_generate(o);
    case RUN_BENCH: return run_bench(o);
    case RUN_PARITY: return run_parity(o);
    case RUN_PERPLEXITY: return run_perplexity(o);
    case RUN_CALIBRATE_QUALITY: return run_calibrate_quality(o);
    case RUN_TOKENIZE: return run_tokenize(o);
    case RUN_DETOKENIZE: return run_detokenize(o);
    case RUN_INSPECT: return run_inspect(o);
    case RUN_PLAN: return run_plan(o);
    case RUN_SHOW_PROMPT: return run_show_prompt(o);
    case RUN_RENDER: return run_render(o);
    case RUN_MATCH: return run_match(o);
    case RUN_INTERACTIVE: return run_interactive(argc, argv);
    }
    return QSF_EXIT_RUNTIME;
}

static int print_config(RunOptions *o, const QSFCliResult *res) {
    if (res->n_positional) o->model = res->positional[0];
    return run_config_print(o);
}

int main(int argc, char **argv) {
    RunOptions o;
    QSFCliResult res;
    char model_file[4096];
    if (qsf_cli_open_std_fds(run_cli.program)) return QSF_EXIT_RUNTIME;
    qsf_signals_init();
    char **args = calloc((size_t)argc + 1, sizeof *args); /* the parser permutes its copy; --interactive needs
                                                             argv */
    if (!args) return QSF_EXIT_RUNTIME;
    memcpy(args, argv, (size_t)argc * sizeof *args);
    int rc = run_parse(&o, argc, args, &res);
    if (!rc && res.done)
        rc = qsf_cli_printed(run_cli.program);
    else if (!rc && res.print_config)
        rc = print_config(&o, &res);
    else if (!rc && !(rc = check_model(&o, &res, model_file, sizeof model_file)) &&
             !(rc = run_config_settings(&o)))
        rc = dispatch(&o, argc, argv);
    run_options_free(&o);
    qsf_log("end", "exit status %d", rc);
    qsf_log_close();
    qsf_config_end(&o.config);
    free(args);
    return rc;
}
