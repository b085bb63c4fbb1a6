/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line, the same for every program: a table of the program's own options plus the
 * settings of qsf_engine.h. --help is printed from the same rows. Not installed. */
#ifndef QSF_CLI_H
#define QSF_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "qsf_engine.h"

enum {
    QSF_EXIT_OK = 0, QSF_EXIT_RUNTIME = 1, QSF_EXIT_USAGE = 2, QSF_EXIT_MODEL = 3, QSF_EXIT_BUDGET = 4,
    QSF_EXIT_CONTEXT = 5, QSF_EXIT_LENGTH = 6, QSF_EXIT_INT = 130, QSF_EXIT_TERM = 143
};

typedef struct QSFCliOption {
    const char *name;     /* long name without dashes */
    const char *aliases;  /* comma-separated long aliases, or "" */
    char short_name;      /* or 0 */
    const char *arg;      /* name of its argument, NULL = none */
    const char *help;     /* one line */
    int id;               /* handed to the handler */
} QSFCliOption;

typedef struct QSFCli {
    const char *program;           /* "qsf-run" */
    const char *usage;             /* usage lines, newline-terminated */
    const char *summary;           /* a sentence */
    const QSFCliOption *options;   /* (n_options); -h/--help and -V/--version are added by the parser */
    size_t n_options;
    const char *epilogue;          /* text after the options (exit status ...), or NULL */
    bool no_settings;              /* the engine's settings are no options of it */
} QSFCli;

/* Called once per own option in order; value NULL for switches. Non-zero = usage error with a
 * sentence in err. */
typedef int (*QSFCliHandler)(void *arg, int id, const char *value, char *err, size_t cap);

typedef struct QSFCliResult {
    bool done;              /* --help or --version was printed on stdout: exit with 0 */
    char **positional;      /* (n_positional), pointing into argv */
    int n_positional;
} QSFCliResult;

/* Opens /dev/null on each of the descriptors 0, 1 and 2 that is closed, so that no other file gets its number.
 * Standard input is then empty, and writing to standard output still fails. Every main() calls it first, before
 * anything opens a file or starts a thread. 0, or 1 with a message on stderr when /dev/null cannot be opened. */
int qsf_cli_open_std_fds(const char *program);
/* Parses argv (permuting it); "--" ends options; "--name=value" and "--name value"; short options
 * bundle. Unknown, ambiguous or incomplete options: returns 2, with the message (naming the option, and
 * the nearest name) in err. 0 = fine. Abbreviations of long options are not accepted. s: NULL where there are no settings. */
int qsf_cli_parse(const QSFCli *cli, int argc, char **argv, QSFSettings *s, QSFCliHandler fn, void *arg,
                  QSFCliResult *out, char *err, size_t cap);
void qsf_cli_help(const QSFCli *cli, FILE *to);
/* "program: message\n" on stderr, cleaned of control characters. */
void qsf_cli_error(const QSFCli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Nearest of n names to word (edit distance at most 3), or NULL. */
const char *qsf_nearest(const char *word, const char *const *names, size_t n);

#endif
