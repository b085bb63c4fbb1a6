/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line of every program: a table of the program's own options plus the settings of qsf_engine.h.
 * --help is printed from the same rows. Not installed. */
#ifndef QSF_CLI_H
#define QSF_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "qsf_engine.h"

enum {
    QSF_EXIT_OK = 0,
    QSF_EXIT_RUNTIME = 1,
    QSF_EXIT_USAGE = 2,
    QSF_EXIT_MODEL = 3,
    QSF_EXIT_BUDGET = 4,
    QSF_EXIT_CONTEXT = 5,
    QSF_EXIT_LENGTH = 6,
    QSF_EXIT_INT = 130,
    QSF_EXIT_TERM = 143
};

typedef struct QSFCliOption {
    const char *name;    /* long name without dashes */
    const char *aliases; /* comma-separated long aliases, or "" */
    char short_name;     /* or 0 */
    const char *arg;     /* name of its argument, NULL = none */
    const char *help;    /* one line */
    int id;              /* passed to the handler */
} QSFCliOption;

typedef struct QSFCli {
    const char *program;         /* "qsf-run" */
    const char *usage;           /* usage lines, newline-terminated */
    const char *summary;         /* one sentence */
    const QSFCliOption *options; /* (n_options); -h/--help and -V/--version are added by the parser */
    size_t n_options;
    const char *epilogue; /* text after the options (exit status ...), or NULL */
    bool no_settings; /* the program has no options for the engine's settings, and no configuration file */
    const char *operands; /* what it takes besides options, as qsf_cli_values describes it */
    /* As qsf_cli_values, for options whose values only the program knows; NULL for others. May be NULL. */
    const char *(*values)(const char *option);
    /* Checks key = value of a section [theme NAME] of the configuration file, or with key NULL the name of
     * the theme; false with a message in err. NULL: the program has no themes, and does not look at them. */
    bool (*check_theme)(const char *theme, const char *key, const char *value, char *err, size_t cap);
} QSFCli;

/* The options that every program has; those of the configuration file only with settings. */
enum {
    QSF_CLI_HELP = -1,
    QSF_CLI_VERSION = -2,
    QSF_CLI_CONFIG = -3,
    QSF_CLI_NO_CONFIG = -4,
    QSF_CLI_PRINT_CONFIG = -5,
    QSF_CLI_ROLE = -6,
    QSF_CLI_COMPLETION = -7
};

/* Called once for each of the program's own options, in order; value is NULL for switches. Returns non-zero
 * for a usage error, with a message in err. */
typedef int (*QSFCliHandler)(void *arg, int id, const char *value, char *err, size_t cap);

typedef struct QSFCliResult {
    bool done; /* --help, --version or --print-completion was printed on stdout: exit with qsf_cli_printed */
    const char *config, *role; /* --config FILE, --role NAME, or NULL; in argv */
    bool no_config, print_config;
    char **positional; /* (n_positional), pointing into argv */
    int n_positional;
} QSFCliResult;

/* Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no other file gets its
 * number. Standard input is then empty, and writing to standard output still fails. Every main() calls this
 * before it opens a file or starts a thread. Returns 0, or 1 with a message on stderr when /dev/null cannot
 * be opened. */
int qsf_cli_open_std_fds(const char *program);
/* Opens path in place of a standard stream: for reading when fd is 0; otherwise for writing, the file is
 * created if it does not exist and keeps its text until qsf_cli_begin_output. Returns 0, or 1 with a message
 * that names the file in err: nothing has changed then. path is kept. */
int qsf_cli_replace_fd(int fd, const char *path, char *err, size_t cap);
/* The name of a standard stream for messages: of the file that replaces it, otherwise "stdin" or "stdout". */
const char *qsf_cli_stream(int fd);
/* Is the file that replaces standard output also this one, which is to be read (NULL: standard input)? */
bool qsf_cli_is_output(const char *path);
/* Empties that file, the first time: to be called before something is written, and when a run without any
 * output has succeeded. */
void qsf_cli_begin_output(void);
/* Parses argv and permutes it. "--" ends the options; both "--name=value" and "--name value" work; short
 * options can be bundled; long options cannot be abbreviated. Returns 0, or 2 for an unknown or incomplete
 * option, with a message in err that names the option and the nearest known name. s is NULL when the program
 * has no settings. */
int qsf_cli_parse(const QSFCli *cli, int argc, char **argv, QSFSettings *s, QSFCliHandler fn, void *arg,
                  QSFCliResult *out, char *err, size_t cap);
/* Returns the i-th of the options that are not settings, those of every program included; NULL at the end. */
const QSFCliOption *qsf_cli_option_at(const QSFCli *cli, size_t i);
/* The one with this long name or alias, or NULL. */
const QSFCliOption *qsf_cli_option(const QSFCli *cli, const char *name);
/* What the argument of an option, or the value of a setting, may be: "auto what is available|0 off" are
 * values with their meanings after a blank. "@file", "@dir", "@jinja", "@model" (a file or directory),
 * "@session", "@role" and "@template" mean the names that exist. NULL: any value, or no such option. */
const char *qsf_cli_values(const char *option);
/* Prints usage, summary, options, settings and epilogue. Lines are broken between words at the width of the
 * terminal, at most 100 columns; elsewhere each option is one line. */
void qsf_cli_print_help(const QSFCli *cli, FILE *to);
/* Prints the completions of a program for a shell, "bash", "zsh" or "fish", to `to`; false: another shell. */
bool qsf_cli_print_completion(const QSFCli *cli, const char *shell, FILE *to);
/* Returns QSF_EXIT_OK if what a done parse printed reached stdout, else QSF_EXIT_RUNTIME, with a
 * message unless it is a closed pipe. */
int qsf_cli_printed(const char *program);
/* Prints "program: message\n" to stderr, with control characters made visible, newlines of the
 * arguments too; it is an error in the log (qsf_log.h). */
void qsf_cli_error(const QSFCli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a text of the engine (QsfErr, QSFEvent), which may have several lines of its own; it is not
 * logged. */
void qsf_cli_error_text(const QSFCli *cli, const char *text);
/* Returns the one of n names that is nearest to word (edit distance at most 3), or NULL. */
const char *qsf_nearest(const char *word, const char *const *names, size_t n);

#endif
