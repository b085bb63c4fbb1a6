/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of qsf-chat. */
#include "ui/opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_chatlog.h"
#include "qsf_decode.h"
#include "qsf_glob.h"
#include "qsf_text.h"
#include "ui/app_internal.h"
#include "ui/opts_connect.h"
#include "ui/theme_config.h"

#define UI_SYSTEM_MAX ((size_t)1 << 20)

enum {
    OPT_MODEL,
    OPT_MODEL_DIR,
    OPT_CONNECT,
    OPT_KEY_FILE,
    OPT_TIMEOUT,
    OPT_LIST_MODELS,
    OPT_PLAIN,
    OPT_SESSION,
    OPT_CONTINUE,
    OPT_LIST,
    OPT_PRINT,
    OPT_REPLAY,
    OPT_NO_SAVE,
    OPT_NO_SNAPSHOT,
    OPT_OFFLINE,
    OPT_SNAPSHOT_LIMIT,
    OPT_SYSTEM,
    OPT_SYSTEM_FILE,
    OPT_FILE,
    OPT_STOP,
    OPT_OUTPUT,
    OPT_SCRIPT,
    OPT_QUIET,
    OPT_LOG_FILE,
    OPT_JSON,
    OPT_TOP_LOGPROBS,
    OPT_NOTIFY,
    OPT_MOUSE,
    OPT_COLOR,
    OPT_NO_COLOR,
    OPT_THEME,
    OPT_WIDTH,
    OPT_VERBOSE,
    OPT_I2S_FLAVOR,
    OPT_OVERRIDE_KV
};

static const QSFCliOption options[] = {
    /* clang-format off */
    { "model", "", 'm', "FILE", "load this model; same as MODEL", OPT_MODEL },
    { "model-dir", "", 0, "DIR", "look for models in this folder and the folders in it, too (repeatable)", OPT_MODEL_DIR },
    { "connect", "", 0, "URL", "chat with a model of a server with the interface of OpenAI (qsf-serve, llama.cpp, vLLM, Ollama ...): http://HOST:PORT, https://... or unix:PATH; --model NAME chooses one of its models (default the first)", OPT_CONNECT },
    { "api-key-file", "", 0, "FILE", "with a server: read the key from FILE (default OPENAI_API_KEY); only the server of --connect, or of the session that is resumed, gets it", OPT_KEY_FILE },
    { "timeout", "", 0, "SECONDS", "with a server: give up after so long without a byte, 1 to 86400 (default 600)", OPT_TIMEOUT },
    { "list-models", "", 0, NULL, "print a line for each model found and exit: name, size, weight type, architecture, whether it fits; with words in place of MODEL only those in which all of them occur, with a folder only those in it", OPT_LIST_MODELS },
    { "session", "", 0, "NAME", "save the chat as NAME; resume it if it exists", OPT_SESSION },
    { "continue", "", 0, NULL, "resume the newest session that is free", OPT_CONTINUE },
    { "list-sessions", "", 0, NULL, "print a line for each session and exit: name, title, model, messages, age, size; with a regular expression in place of MODEL only those in which it is found", OPT_LIST },
    { "print-session", "", 0, "NAME", "print a session as Markdown and exit", OPT_PRINT },
    { "replay", "", 0, "NAME", "answer the messages of a session again, with its model or MODEL, and say where an answer differs", OPT_REPLAY },
    { "no-save", "", 0, NULL, "write no session and no input history; only /save NAME saves", OPT_NO_SAVE },
    { "offline", "", 0, NULL, "download nothing: hf:OWNER/NAME has to be on this machine", OPT_OFFLINE },
    { "no-snapshot", "", 0, NULL, "do not keep the state of the model with the session: its text is evaluated again when it is resumed", OPT_NO_SNAPSHOT },
    { "snapshot-limit", "", 0, "SIZE", "limit all snapshots together; the oldest are removed (default a tenth of the free space, at most 4G)", OPT_SNAPSHOT_LIMIT },
    { "system", "sys", 0, "TEXT", "set the system prompt", OPT_SYSTEM },
    { "system-file", "sysf", 0, "FILE", "read the system prompt from a file", OPT_SYSTEM_FILE },
    { "file", "", 'f', "FILE", "attach text files to the first message, as @FILE in it does: a name or a pattern such as 'src/*.c' (repeatable)", OPT_FILE },
    { "stop", "", 0, "TEXT", "stop answers before this text (repeatable)", OPT_STOP },
    { "plain", "simple-io", 0, NULL, "use lines instead of the full screen", OPT_PLAIN },
    { "output", "", 'o', "FILE", "write the answers to FILE instead of standard output (line mode)", OPT_OUTPUT },
    { "script", "", 0, "FILE", "read messages and commands from FILE instead of standard input (line mode)", OPT_SCRIPT },
    { "quiet", "", 'q', NULL, "in line mode: print only answers, errors and what commands print", OPT_QUIET },
    { "log-file", "", 0, "FILE", "append what happens to FILE: loads, answers, errors and times, but no texts", OPT_LOG_FILE },
    { "json", "", 0, NULL, "in line mode: print what happens as JSON, one object per line", OPT_JSON },
    { "top-logprobs", "", 0, "N", "with --json: the tokens of each answer with the N most likely ones, 0 to 8, and what each stage of the sampler made of them", OPT_TOP_LOGPROBS },
    { "mouse", "", 0, "WHEN", "on the full screen: whether the wheel of the mouse scrolls; text is then selected with Shift: on or off (default on)", OPT_MOUSE },
    { "notify", "", 0, "HOW", "on the full screen: tell that an answer that took longer than 10 s is finished: bell, osc (a notification of the terminal), off, or auto: osc where the terminal is known to show it, otherwise bell (default auto)", OPT_NOTIFY },
    { "color", "colour", 0, "WHEN", "use colors: auto, always or never (default auto: unless NO_COLOR is set)", OPT_COLOR },
    { "no-color", "no-colour", 0, NULL, "the same as --color never", OPT_NO_COLOR },
    { "theme", "", 0, "NAME", "use these colors: auto, dark, light, ansi (the eight basic ones), mono, or a section [theme NAME] of the configuration file (default auto: the terminal is asked for its background)", OPT_THEME },
    { "width", "", 0, "N", "wrap messages at N columns (default 100; 0 = as wide as the window)", OPT_WIDTH },
    { "verbose", "", 'v', NULL, "print the plan after loading a model", OPT_VERBOSE },
    { "i2s-flavor", "", 0, "LAYOUT",
      "set the layout of I2_S tensors instead of detecting it by size: microsoft, bitnet32f16, split32 or qk256", OPT_I2S_FLAVOR },
    { "override-kv", "", 0, "KEY=TYPE:VALUE",
      "override a metadata value of the model (str, int, float, bool; KEY=null removes it)", OPT_OVERRIDE_KV },
    /* clang-format on */
};

static const QSFCli cli = {
    .program = "qsf-chat",
    .usage = "usage: qsf-chat [options] [MODEL]\n"
             "       qsf-chat [options] --connect URL [--model NAME]\n"
             "       qsf-chat --list-models [WORDS | DIR]\n"
             "       qsf-chat --list-sessions [RE]\n"
             "       qsf-chat --print-session NAME\n",
    .summary =
        "Chat with a language model in the terminal, on the CPU, under a RAM budget. MODEL is a .gguf or "
        ".qsf\n"
        "file, a Hugging Face directory, the name of a model in the caches of Ollama, LM Studio,\n"
        "llama.cpp or Hugging Face, or a folder whose models are listed to choose from. Without one the\n"
        "models of this machine are listed; \"guide\" is a small model that knows this program.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .check_theme = ui_theme_check,
    .operands = "guide the built-in guide|@model",
    .epilogue =
        "Without a terminal on standard input and output, or with --plain, one message or slash command is\n"
        "read per line, a message over several lines between \"\"\" and \"\"\"; only answers reach standard "
        "output.\n"
        "\n"
        "Exit status: 0 done, 1 runtime error or failed command, 2 usage, 3 bad model, 4 RAM budget cannot "
        "be\n"
        "met, 5 context full, 130 interrupted, 143 terminated.\n",
};

void ui_options_error(const char *text) { qsf_cli_error(&cli, "%s", text); }

static int set_color(UiOptions *o, const char *value, char *err, size_t cap) {
    static const char *const words[] = { "auto", "always", "never" };
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, words[i]) == 0) {
            o->color = (UiColor)i;
            return 0;
        }
    }
    (void)snprintf(err, cap, "--color must be auto, always or never, not '%.40s'", value);
    return 2;
}

static int set_top_logprobs(UiOptions *o, const char *value, char *err, size_t cap) {
    if (value[0] < '0' || value[0] > '0' + QSF_CANDIDATES || value[1] != '\0') {
        (void)snprintf(err, cap, "--top-logprobs takes a whole number from 0 to %d, not '%.40s'",
                       QSF_CANDIDATES, value);
        return 2;
    }
    o->top_logprobs = (unsigned)(value[0] - '0') + 1;
    return 0;
}

static int set_width(UiOptions *o, const char *value, char *err, size_t cap) {
    char *end;
    const long n = strtol(value, &end, 10);
    if (*value >= '0' && *value <= '9' && *end == '\0' &&
        (n == 0 || (n >= UI_WIDTH_LEAST && n <= UI_WIDTH_MOST))) {
        o->width = (int)n;
        return 0;
    }
    (void)snprintf(err, cap, "--width must be %d to %d columns, or 0 for the whole window, not '%.40s'",
                   UI_WIDTH_LEAST, UI_WIDTH_MOST, value);
    return 2;
}

/* Makes a text UTF-8. */
static void decode(UiBuf *b, bool *damaged) {
    QSFDecode d = { 0 };
    char *text = malloc(QSF_DECODE_MAX(b->len));
    const size_t n = text ? qsf_decode(&d, ui_buf_str(b), b->len, true, text) : 0;
    ui_buf_clear(b);
    if (!text || !ui_buf_add(b, text, n)) b->failed = true;
    free(text);
    *damaged = d.damaged;
}

static int read_system(UiOptions *o, const char *path, char *err, size_t cap) {
    char bytes[4096];
    bool damaged;
    FILE *f = fopen(path, "re");
    size_t n = 0;
    if (!f) {
        (void)snprintf(err, cap, "--system-file %.200s: %s", path, strerror(errno));
        return 2;
    }
    ui_buf_clear(&o->system);
    while (o->system.len <= UI_SYSTEM_MAX && (n = fread(bytes, 1, sizeof bytes, f)) > 0)
        ui_buf_add(&o->system, bytes, n);
    bool failed = ferror(f) != 0;
    int why = errno;
    (void)fclose(f);
    decode(&o->system, &damaged);
    if (damaged) qsf_cli_error(&cli, "--system-file %.200s: %s", path, QSF_DECODE_DAMAGED);
    if (failed || o->system.len > UI_SYSTEM_MAX || o->system.failed) {
        (void)snprintf(err, cap, "--system-file %.200s: %s", path,
                       failed ? strerror(why) : "larger than 1 MB");
        return 2;
    }
    while (o->system.len > 0 && o->system.data[o->system.len - 1] == '\n')
        o->system.data[--o->system.len] = '\0';
    o->has_system = true;
    return 0;
}

static int add_stop(UiOptions *o, const char *value, char *err, size_t cap) {
    const char *wrong = ui_stops_add(&o->stops, value);
    if (wrong) (void)snprintf(err, cap, "--stop: %s", wrong);
    return wrong ? 2 : 0;
}

static int add_file(UiOptions *o, const char *value, char *err, size_t cap) {
    char why[500] = "";
    QSFGlob g;
    bool ok = qsf_glob_files(&g, value, why, sizeof why);
    for (size_t i = 0; ok && i < g.n; i++) {
        ok = o->n_files < UI_ATTACH_MAX;
        if (!ok) break;
        o->files[o->n_files++] = g.paths[i];
        g.paths[i] = NULL;
    }
    if (!ok && !*why) (void)qsf_text_snprintf(why, sizeof why, "more than %d files", UI_ATTACH_MAX);
    if (!ok) (void)snprintf(err, cap, "--file: %s", why);
    qsf_glob_free(&g);
    return ok ? 0 : 2;
}

static int add_dir(UiOptions *o, const char *value, char *err, size_t cap) {
    if (o->n_dirs == QSF_MODEL_DIRS || !*value) {
        (void)snprintf(err, cap, "--model-dir: takes the name of a folder, at most %d times", QSF_MODEL_DIRS);
        return 2;
    }
    o->dirs[o->n_dirs++] = value;
    return 0;
}

static int add_override(UiOptions *o, const char *value, char *err, size_t cap) {
    if (o->n_overrides == UI_OVERRIDES) {
        (void)snprintf(err, cap, "--override-kv: given more than %d times", UI_OVERRIDES);
        return 2;
    }
    o->overrides[o->n_overrides++] = value;
    return 0;
}

/* The engine takes it as an override. */
static int add_flavor(UiOptions *o, const char *value, char *err, size_t cap) {
    (void)snprintf(o->i2s_flavor, sizeof o->i2s_flavor, "qsf.i2s_flavor=str:%s", value);
    return add_override(o, o->i2s_flavor, err, cap);
}

static int set_limit(UiOptions *o, const char *value, char *err, size_t cap) {
    uint32_t percent;
    if (qsf_parse_size(value, &o->snapshot_limit, &percent) && percent == 0) return 0;
    (void)snprintf(err, cap, "--snapshot-limit takes a size such as 500M or 2G, or auto, not '%.40s'", value);
    return 2;
}

static int take_name(const char **name, const char *option, const char *value, char *err, size_t cap) {
    *name = value;
    if (qsf_chatlog_name_ok(value)) return 0;
    (void)snprintf(err, cap,
                   "--%s '%.60s': a name must not be empty, begin with '.' or contain '/' or control "
                   "characters",
                   option, value);
    return 2;
}

static int handle(void *arg, int id, const char *value, char *err, size_t cap) {
    UiOptions *o = arg;
    switch (id) {
    case OPT_MODEL: o->model = value; break;
    case OPT_MODEL_DIR: return add_dir(o, value, err, cap);
    case OPT_LIST_MODELS: o->list_models = true; break;
    case OPT_CONNECT: o->connect = value; break;
    case OPT_KEY_FILE: o->key_file = value; break;
    case OPT_TIMEOUT: return ui_opts_timeout(o, value, err, cap) ? 0 : 2;
    case OPT_PLAIN: o->plain = true; break;
    case OPT_CONTINUE: o->resume = true; break;
    case OPT_NO_SAVE: o->no_save = true; break;
    case OPT_OFFLINE: o->offline = true; break;
    case OPT_NO_SNAPSHOT: o->no_snapshot = true; break;
    case OPT_SNAPSHOT_LIMIT: return set_limit(o, value, err, cap);
    case OPT_NOTIFY:
        if (ui_notify_parse(value, &o->notify)) break;
        (void)snprintf(err, cap, "--notify must be auto, bell, osc or off, not '%.40s'", value);
        return 2;
    case OPT_MOUSE:
        o->no_mouse = strcmp(value, "off") == 0;
        if (o->no_mouse || strcmp(value, "on") == 0) break;
        (void)snprintf(err, cap, "--mouse must be on or off, not '%.40s'", value);
        return 2;
    case OPT_OUTPUT: o->output = value; break;
    case OPT_SCRIPT: o->script = value; break;
    case OPT_QUIET: o->quiet = true; break;
    case OPT_LOG_FILE: o->log_file = value; break;
    case OPT_JSON: o->json = true; break;
    case OPT_TOP_LOGPROBS: return set_top_logprobs(o, value, err, cap);
    case OPT_NO_COLOR: o->color = UI_COLOR_NEVER; break;
    case OPT_THEME: o->theme = value; break; /* checked when all of the file was read */
    case OPT_VERBOSE: o->verbose = true; break;
    case OPT_FILE: return add_file(o, value, err, cap);
    case OPT_STOP: return add_stop(o, value, err, cap);
    case OPT_WIDTH: return set_width(o, value, err, cap);
    case OPT_COLOR: return set_color(o, value, err, cap);
    case OPT_SYSTEM_FILE: return read_system(o, value, err, cap);
    case OPT_SYSTEM:
        ui_buf_clear(&o->system);
        ui_buf_puts(&o->system, value);
        decode(&o->system, &(bool){ false }); /* of a file that a shell has read */
        o->has_system = true;
        break;
    case OPT_OVERRIDE_KV: return add_override(o, value, err, cap);
    case OPT_I2S_FLAVOR: return add_flavor(o, value, err, cap);
    case OPT_SESSION: return take_name(&o->session, "session", value, err, cap);
    case OPT_PRINT: return take_name(&o->print, "print-session", value, err, cap);
    case OPT_REPLAY: return take_name(&o->replay, "replay", value, err, cap);
    case OPT_LIST: o->list = true; break;
    default: break;
    }
    return 0;
}

/* The first operand is a command of another program, and not a file: what it is here, or NULL. */
static const char *foreign_verb(const QSFCliResult *r) {
    static const char *const verbs[][2] = {
        { "run", "there is no command 'run': qsf-chat MODEL is a conversation" },
        { "chat", "there is no command 'chat': qsf-chat MODEL is a conversation" },
        { "pull", "there is no command 'pull': qsf-get hf:OWNER/NAME downloads a model" },
        { "serve", "there is no command 'serve': qsf-serve MODEL is a server" },
        { "list", "there is no command 'list': qsf-chat --list-models lists models" },
        { "ls", "there is no command 'ls': qsf-chat --list-models lists models" },
        { "show", "there is no command 'show': qsf-run --inspect MODEL shows what is in a model" },
        { "help", "there is no command 'help': qsf-chat --help lists the options" },
    };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(r->positional[0], verbs[i][0]) == 0 && access(verbs[i][0], F_OK) != 0) return verbs[i][1];
    return NULL;
}

static const char *contradiction(const UiOptions *o, const QSFCliResult *r) {
    if (r->n_positional > 0 && !o->list && !o->list_models && foreign_verb(r)) return foreign_verb(r);
    if (r->n_positional > 1)
        return o->list          ? "expected one RE"
               : o->list_models ? "expected WORDS or DIR"
                                : "expected one MODEL; qsf-run -p TEXT MODEL answers one prompt";
    if (o->list_models &&
        (o->list || o->print || o->replay || o->script || o->json || o->session || o->resume))
        return "--list-models cannot be combined with sessions, --script or --json";
    if (o->list && o->print) return "--list-sessions cannot be combined with --print-session";
    if (o->print && r->n_positional > 0) return "--print-session takes no MODEL";
    if ((o->list || o->print) && (o->session || o->resume || o->model))
        return "--list-sessions and --print-session cannot be combined with --session, --continue or --model";
    if ((o->list || o->print) && (o->json || o->script))
        return "--list-sessions and --print-session cannot be combined with --json or --script";
    if (o->replay && (o->session || o->resume || o->list || o->print || o->script || o->json))
        return "--replay cannot be combined with other sessions, --script or --json";
    if (r->n_positional == 1 && o->model) return "the model was given twice: as MODEL and with --model";
    if (o->no_save && (o->session || o->resume))
        return "--no-save cannot be combined with --session or --continue";
    if (o->no_snapshot && o->snapshot_limit > 0)
        return "--snapshot-limit cannot be combined with --no-snapshot";
    if (o->top_logprobs > 0 && !o->json) return "--top-logprobs requires --json";
    if (o->session && o->resume) return "--continue cannot be combined with --session";
    return NULL;
}

static bool take_text(UiOptions *o, const QSFConfigFile *c, const QSFConfigEntry *e, char *err, size_t cap) {
    char why[400] = "";
    if (!e || handle(o, e->own->id, e->value, why, sizeof why) == 0) return true;
    (void)snprintf(err, cap, "%s:%u: %s", qsf_config_path(c), e->line, why);
    return false;
}

bool ui_options_texts(UiOptions *o, const QSFConfigFile *c, const char *model, const char *role,
                      bool only_role, char *err, size_t cap) {
    *o = (UiOptions){ 0 };
    const QSFConfigEntry *e = qsf_config_text(c, model, role, "system,system-file", NULL);
    if (e && only_role && e->layer != QSF_CONFIG_ROLE) e = NULL;
    bool ok = take_text(o, c, e, err, cap);
    e = qsf_config_text(c, model, role, "stop", NULL);
    if (e && only_role && e->layer != QSF_CONFIG_ROLE) e = NULL;
    for (; ok && e; e = qsf_config_text(c, model, role, "stop", e)) ok = take_text(o, c, e, err, cap);
    return ok;
}

/* What --role names is as if it was given on the command line, but for what is given there. */
static int take_role(UiOptions *o, char *err, size_t cap) {
    UiOptions texts;
    if (!o->start.role) return 0;
    const bool ok = ui_options_texts(&texts, o->start.config, NULL, o->start.role, true, err, cap);
    if (ok && texts.has_system && !o->has_system) {
        ui_buf_puts(&o->system, ui_buf_str(&texts.system));
        o->has_system = true;
    }
    for (size_t i = 0; ok && o->n_own_stops == 0 && i < texts.stops.n; i++)
        (void)ui_stops_add(&o->stops, texts.stops.text[i]);
    ui_options_free(&texts);
    return ok ? 0 : 2;
}

int ui_options_edit_role(QSFConfigFile **out, const char *path, const QSFRoleEdit *e, char *err, size_t cap) {
    UiOptions scratch = { 0 };
    const int rc = qsf_config_edit_role(out, &cli, path, handle, &scratch, e, err, cap);
    ui_options_free(&scratch);
    return rc;
}

static int fail(const char *err) {
    ui_options_error(err);
    return QSF_EXIT_USAGE;
}

/* The file first: the command line is checked while it is read, and replaces what it says. */
static int read_config(UiOptions *o, int argc, char **argv) {
    char err[1024] = "";
    UiOptions scratch = { 0 };
    const int rc = qsf_config_begin(&o->start, &cli, argc, argv, handle, &scratch, err, sizeof err);
    ui_options_free(&scratch);
    if (rc != 0) return fail(err);
    if (o->start.done) return qsf_cli_printed(cli.program);
    qsf_config_role_settings(o->start.config, o->start.role, &o->settings);
    return -1;
}

typedef struct Print {
    UiOwn own;
    char *model;
} Print;

static bool on_record(void *arg, const QSFLogRecord *r) {
    Print *p = arg;
    if (r->kind == QSF_LOG_SET && r->text_bytes == r->len) ui_own_record(&p->own, r);
    if (r->kind == QSF_LOG_MODEL && r->text && r->text_bytes == r->len) {
        free(p->model);
        p->model = ui_strdup_len(r->text, r->len);
    }
    return true;
}

static int print_config(const UiOptions *o) {
    QSFSettings defaults;
    Print p = { .model = NULL };
    char err[400] = "";
    uint32_t damaged;
    ui_settings_default(&defaults);
    ui_own_begin(&p.own);
    if (o->session && !qsf_chatlog_read(o->session, on_record, &p, &damaged, err, sizeof err))
        ui_options_error(err);
    qsf_config_print(&o->start, &cli, &defaults, o->model ? o->model : p.model,
                     o->session ? &p.own.settings : NULL, o->session);
    ui_own_free(&p.own);
    free(p.model);
    return err[0] ? QSF_EXIT_RUNTIME : qsf_cli_printed(cli.program);
}

static bool check_theme(const UiOptions *o, char *err, size_t cap) {
    if (ui_theme_known(o->start.config, o->theme)) return true;
    (void)snprintf(err, cap,
                   "theme '%.60s': expected auto, dark, light, ansi, mono, or a section [theme %.60s]%s%s",
                   o->theme, o->theme, o->start.config ? " of " : " of a configuration file",
                   qsf_config_path(o->start.config));
    return false;
}

int ui_options_parse(UiOptions *o, int argc, char **argv) {
    char err[1024] = "";
    QSFCliResult r = { 0 };
    *o = (UiOptions){ .width = UI_WIDTH, .theme = "auto" };
    ui_settings_default(&o->settings);
    int rc = read_config(o, argc, argv);
    if (rc >= 0) return rc;
    if (qsf_cli_parse(&cli, argc, argv, &o->settings, handle, o, &r, err, sizeof err) != 0) return fail(err);
    const char *wrong = contradiction(o, &r);
    if (wrong) return fail(wrong);
    if (r.n_positional == 1) *(o->list || o->list_models ? &o->find : &o->model) = r.positional[0];
    if (!ui_opts_connect(o, r.n_positional > 0, err, sizeof err)) return fail(err);
    if (o->list || o->print) return -1;
    const bool connected = o->connect != NULL;
    o->n_own_stops = o->stops.n;
    if (qsf_config_options(&o->start, &cli, handle, o, err, sizeof err) != 0 ||
        take_role(o, err, sizeof err) != 0)
        return fail(err);
    if (o->list_models) {
        qsf_config_settings(o->start.config, NULL, o->start.role, &o->settings);
        qsf_config_overlay(&o->settings, &o->start.given);
    }
    wrong = contradiction(o, &(QSFCliResult){ 0 });
    if (wrong) return fail(wrong);
    if (!connected && !ui_opts_connect(o, r.n_positional > 0, err, sizeof err)) return fail(err);
    if (!check_theme(o, err, sizeof err)) return fail(err);
    return r.print_config ? print_config(o) : -1;
}

void ui_options_free(UiOptions *o) {
    free(o->found);
    o->found = NULL;
    for (; o->n_files > 0; o->n_files--) free(o->files[o->n_files - 1]);
    ui_buf_free(&o->system);
    ui_stops_clear(&o->stops);
    qsf_config_end(&o->start);
}
