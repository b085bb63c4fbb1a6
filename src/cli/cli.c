/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of every program: implements qsf_cli.h. One lookup over two tables, the
 * program's options and the engine's settings. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_log.h"
#include "qsf_text.h"
#include "src/cli/foreign.h"

#define OUT_BYTES 65536 /* more than the longest --help */

/* The option that a word on the command line refers to: exactly one of the two is set. */
typedef struct Found {
    const QSFCliOption *own;
    const QSFSetting *setting;
} Found;

static const QSFCliOption builtin[] = {
    { "help", "", 'h', NULL, "print this help and exit", QSF_CLI_HELP },
    { "version", "", 'V', NULL, "print the version and exit", QSF_CLI_VERSION },
    { "print-completion", "", 0, "SHELL", "print completions for bash, zsh or fish and exit",
      QSF_CLI_COMPLETION },
    { "config", "", 0, "FILE", "read this configuration file instead of ~/.config/qsf/config",
      QSF_CLI_CONFIG },
    { "no-config", "", 0, NULL, "read no configuration file", QSF_CLI_NO_CONFIG },
    { "print-config", "", 0, NULL,
      "print all options in effect as a configuration file, with their sources, and exit",
      QSF_CLI_PRINT_CONFIG },
    { "role", "persona", 0, "NAME",
      "take system prompt and settings from [role NAME] of the configuration file", QSF_CLI_ROLE },
};
enum { N_BUILTIN = sizeof builtin / sizeof *builtin, N_ALWAYS = 3 };

/* Is word (n bytes) the name or one of the comma-separated aliases? */
static bool name_matches(const char *name, const char *aliases, const char *word, size_t n) {
    if (strlen(name) == n && !strncmp(name, word, n)) return true;
    for (const char *a = aliases; a && *a;) {
        size_t len = strcspn(a, ",");
        if (len == n && !strncmp(a, word, n)) return true;
        a += len + (a[len] == ',');
    }
    return false;
}

const QSFCliOption *qsf_cli_option_at(const QSFCli *cli, size_t i) {
    const size_t n = cli->no_settings ? N_ALWAYS : N_BUILTIN;
    if (i < cli->n_options) return &cli->options[i];
    return i - cli->n_options < n ? &builtin[i - cli->n_options] : NULL;
}

const QSFCliOption *qsf_cli_option(const QSFCli *cli, const char *name) {
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(cli, i)) != NULL; i++)
        if (name_matches(o->name, o->aliases, name, strlen(name))) return o;
    return NULL;
}

static size_t n_settings(const QSFCli *cli) { return cli->no_settings ? 0 : qsf_setting_count(); }

static Found find_long(const QSFCli *cli, const char *word, size_t n) {
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(cli, i)); i++)
        if (name_matches(o->name, o->aliases, word, n)) return (Found){ .own = o };
    for (size_t i = 0; i < n_settings(cli); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (name_matches(row->name, row->aliases, word, n)) return (Found){ .setting = row };
    }
    return (Found){ 0 };
}

static Found find_short(const QSFCli *cli, char c) {
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(cli, i)); i++)
        if (o->short_name == c) return (Found){ .own = o };
    for (size_t i = 0; i < n_settings(cli); i++)
        if (qsf_setting_at(i)->short_name == c) return (Found){ .setting = qsf_setting_at(i) };
    return (Found){ 0 };
}

static bool takes_value(Found f) { return f.own ? f.own->arg != NULL : f.setting->arg != NULL; }

static size_t min3(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein distance of words of at most 63 bytes; 64 for longer ones. */
static size_t edit_distance(const char *a, const char *b) {
    size_t la = strlen(a), lb = strlen(b), row[64];
    if (la > 63 || lb > 63) return 64;
    for (size_t j = 0; j <= lb; j++) row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diag = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t up = row[j];
            row[j] = min3(row[j - 1] + 1, up + 1, diag + (a[i - 1] != b[j - 1]));
            diag = up;
        }
    }
    return row[lb];
}

#define PART_DISTANCE 2 /* of "budget" from "ram-budget" */

static bool is_last_part(const char *word, const char *name) {
    const char *dash = strrchr(name, '-');
    return dash && strcmp(dash + 1, word) == 0;
}

const char *qsf_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t best_d = 4, len = strlen(word);
    for (size_t i = 0; i < n; i++) {
        const bool part = is_last_part(word, names[i]);
        size_t d = part ? PART_DISTANCE : edit_distance(word, names[i]);
        if (d < best_d && (part || d * 2 <= len)) best = names[i], best_d = d;
    }
    return best;
}

static int unknown_option(const QSFCli *cli, const char *word, char *err, size_t cap) {
    const char *names[256];
    size_t n = 0;
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(cli, i)) && n < 256; i++) names[n++] = o->name;
    for (size_t i = 0; i < n_settings(cli) && n < 256; i++) names[n++] = qsf_setting_at(i)->name;
    const char *near = qsf_nearest(word, names, n);
    const char *here = cli->no_settings ? NULL : qsf_foreign_option(word, strlen(word), false);
    if (here)
        snprintf(err, cap, "unknown option --%s: %s", word, here);
    else if (near)
        snprintf(err, cap, "unknown option --%s (did you mean --%s?)", word, near);
    else
        snprintf(err, cap, "unknown option --%s (see --help)", word);
    return QSF_EXIT_USAGE;
}

typedef struct Parser {
    const QSFCli *cli;
    QSFSettings *settings;
    QSFCliHandler fn;
    void *arg;
    QSFCliResult *out;
    char *err;
    size_t cap;
} Parser;

/* Prefixes a handler's message with "--name: " unless it names the option itself. */
static int name_in_error(Parser *p, const char *name) {
    char text[512];
    if (strstr(p->err, name)) return QSF_EXIT_USAGE;
    snprintf(text, sizeof text, "--%s: %s", name, p->err);
    snprintf(p->err, p->cap, "%s", text);
    return QSF_EXIT_USAGE;
}

/* The caller acts on those of the configuration. */
static int apply_builtin(Parser *p, const QSFCliOption *own, const char *value) {
    QSFCliResult *out = p->out;
    switch (own->id) {
    case QSF_CLI_HELP:
    case QSF_CLI_VERSION:
        (void)setvbuf(stdout, NULL, _IOFBF, OUT_BYTES);
        if (own->id == QSF_CLI_HELP)
            qsf_cli_print_help(p->cli, stdout);
        else
            printf("%s %s\n", p->cli->program, qsf_version());
        out->done = true;
        break;
    case QSF_CLI_COMPLETION:
        if (!qsf_cli_print_completion(p->cli, value, stdout)) {
            snprintf(p->err, p->cap, "--print-completion must be bash, zsh or fish, not '%.40s'", value);
            return QSF_EXIT_USAGE;
        }
        out->done = true;
        break;
    case QSF_CLI_CONFIG: out->config = value; break;
    case QSF_CLI_NO_CONFIG: out->no_config = true; break;
    case QSF_CLI_PRINT_CONFIG: out->print_config = true; break;
    default: out->role = value; break;
    }
    return QSF_EXIT_OK;
}

static int apply(Parser *p, Found f, const char *value) {
    p->err[0] = '\0';
    if (f.setting) {
        if (qsf_setting_add(p->settings, f.setting, value ? value : "on", p->err, p->cap))
            return name_in_error(p, f.setting->name);
        return QSF_EXIT_OK;
    }
    if (f.own->id < 0) return apply_builtin(p, f.own, value);
    return p->fn(p->arg, f.own->id, value, p->err, p->cap) ? name_in_error(p, f.own->name) : QSF_EXIT_OK;
}

/* Parses argv[*i], "--word" or "--word=value"; may consume argv[*i + 1]. */
static int parse_long(Parser *p, int argc, char **argv, int *i) {
    const char *word = argv[*i] + 2, *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    Found f = find_long(p->cli, word, n);
    if (!f.own && !f.setting) {
        char *name = strndup(word, n);
        int rc = unknown_option(p->cli, name ? name : word, p->err, p->cap);
        free(name);
        return rc;
    }
    if (!takes_value(f)) {
        if (eq) {
            snprintf(p->err, p->cap, "option --%.*s takes no value", (int)n, word);
            return QSF_EXIT_USAGE;
        }
        return apply(p, f, NULL);
    }
    if (eq) return apply(p, f, eq + 1);
    if (*i + 1 >= argc) {
        snprintf(p->err, p->cap, "option --%.*s needs a value (%s)", (int)n, word,
                 f.own ? f.own->arg : f.setting->arg);
        return QSF_EXIT_USAGE;
    }
    return apply(p, f, argv[++*i]);
}

/* "-ngl 99" of another program: an error that says what to do, instead of one about the "gl" of -n. */
static bool is_foreign(Parser *p, const char *word, bool before) {
    const size_t len = strcspn(word, "=");
    const Found own = find_short(p->cli, *word);
    if (p->cli->no_settings || (len == 1 && (own.own || own.setting))) return false;
    const char *here = qsf_foreign_option(word, len, before);
    if (here) snprintf(p->err, p->cap, "unknown option -%.*s: %s", (int)len, word, here);
    return here != NULL;
}

/* Parses argv[*i], "-abc": switches; an option with a value consumes the rest or the next word. */
static int parse_short(Parser *p, int argc, char **argv, int *i) {
    for (const char *c = argv[*i] + 1; *c; c++) {
        Found f = find_short(p->cli, *c);
        if (!f.own && !f.setting) {
            snprintf(p->err, p->cap, "unknown option -%c (see --help)", *c);
            return QSF_EXIT_USAGE;
        }
        if (!takes_value(f)) {
            int rc = apply(p, f, NULL);
            if (rc || p->out->done) return rc;
            continue;
        }
        if (c[1]) return apply(p, f, c + 1);
        if (*i + 1 < argc) return apply(p, f, argv[++*i]);
        snprintf(p->err, p->cap, "option -%c needs a value (%s)", *c, f.own ? f.own->arg : f.setting->arg);
        return QSF_EXIT_USAGE;
    }
    return QSF_EXIT_OK;
}

static int parse_one_dash(Parser *p, int argc, char **argv, int *i) {
    const char *word = argv[*i] + 1;
    if (is_foreign(p, word, true)) return QSF_EXIT_USAGE;
    const int rc = parse_short(p, argc, argv, i);
    if (rc == QSF_EXIT_USAGE) (void)is_foreign(p, word, false);
    return rc;
}

int qsf_cli_parse(const QSFCli *cli, int argc, char **argv, QSFSettings *s, QSFCliHandler fn, void *arg,
                  QSFCliResult *out, char *err, size_t cap) {
    Parser p = { cli, s, fn, arg, out, err, cap };
    *out = (QSFCliResult){ .positional = argv + 1 };
    err[0] = '\0';
    for (int i = 1; i < argc && !out->done; i++) {
        if (!strcmp(argv[i], "--")) {
            while (++i < argc) out->positional[out->n_positional++] = argv[i];
            break;
        }
        int rc = QSF_EXIT_OK;
        if (!strncmp(argv[i], "--", 2))
            rc = parse_long(&p, argc, argv, &i);
        else if (argv[i][0] == '-' && argv[i][1])
            rc = parse_one_dash(&p, argc, argv, &i);
        else
            out->positional[out->n_positional++] = argv[i]; /* never overtakes i: values are skipped */
        if (rc) return rc;
    }
    return s != NULL && !out->done ? qsf_settings_check(s, err, cap) : QSF_EXIT_OK;
}

int qsf_cli_printed(const char *program) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return QSF_EXIT_OK;
    if (errno != EPIPE) /* the buffer has all of it: this was the first write */
        fprintf(stderr, "%s: %s: %s\n", program, qsf_cli_stream(STDOUT_FILENO),
                errno != 0 ? strerror(errno) : "cannot write");
    return QSF_EXIT_RUNTIME;
}

void qsf_cli_error(const QSFCli *cli, const char *fmt, ...) {
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    qsf_text_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    qsf_log("error", "%s", text);
    qsf_cli_error_text(cli, text);
}

void qsf_cli_error_text(const QSFCli *cli, const char *text) {
    char *clean = qsf_clean_dup(text, strlen(text), false);
    fprintf(stderr, "%s: %s\n", cli->program, clean ? clean : "out of memory");
    free(clean);
}

/* --- opens standard streams that the caller closed, before other files can get their numbers --- */

int qsf_cli_open_std_fds(const char *program) {
    /* Reading stdin gives end of file. Writing to stdout fails with EBADF, as when it is closed: an answer
     * that cannot be delivered is an error. Messages on stderr are dropped. */
    static const int modes[] = { O_RDONLY, O_RDONLY, O_WRONLY };
    for (int fd = 0; fd < (int)(sizeof modes / sizeof *modes); fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", modes[fd]) == fd) continue; /* it is the lowest free number */
        fprintf(stderr, "%s: /dev/null: %s\n", program, strerror(errno));
        return QSF_EXIT_RUNTIME;
    }
    return QSF_EXIT_OK;
}

static const char *replaced[2]; /* the files in place of standard input and output */

const char *qsf_cli_stream(int fd) {
    return replaced[fd == STDOUT_FILENO] ? replaced[fd == STDOUT_FILENO]
           : fd == STDOUT_FILENO         ? "stdout"
                                         : "stdin";
}

static bool to_empty; /* the file that replaces standard output still has its old text */

int qsf_cli_replace_fd(int fd, const char *path, char *err, size_t cap) {
    const int file = open(path, (fd == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT) | O_CLOEXEC, 0666);
    struct stat st;
    if (file >= 0 && fstat(file, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(file);
        errno = EISDIR;
    } else if (file >= 0 && dup2(file, fd) >= 0) {
        close(file);
        to_empty = to_empty || fd == STDOUT_FILENO;
        replaced[fd == STDOUT_FILENO] = path;
        return 0;
    }
    snprintf(err, cap, "%.200s: %s", path, strerror(errno));
    return 1;
}

bool qsf_cli_is_output(const char *path) {
    struct stat out, in;
    if (!to_empty || fstat(STDOUT_FILENO, &out) != 0 || !S_ISREG(out.st_mode)) return false;
    const bool known = path ? stat(path, &in) == 0 : fstat(STDIN_FILENO, &in) == 0;
    return known && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

void qsf_cli_begin_output(void) {
    struct stat st;
    if (to_empty && fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(STDOUT_FILENO, 0) != 0)
        return; /* writing reports what is wrong */
    to_empty = false;
}
