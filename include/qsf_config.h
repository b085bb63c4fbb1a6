/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The configuration file of the programs: $XDG_CONFIG_HOME/qsf/config or --config FILE, lines NAME = VALUE
 * with the long names of options and settings (man/qsf-config.5). Lines before the first section apply
 * always, those of a section with the name of a program ([qsf-serve]) to that program, those of
 * [model PATTERN] to models whose file name, or name on a server, matches (fnmatch), those of [role NAME]
 * with --role and /role; each of them replaces the ones before. Those of [theme NAME] are colors. Options of
 * one program are skipped by the other. Not installed. One thread.
 *
 * A NULL configuration is that of --no-config: nothing applies. */
#ifndef QSF_CONFIG_H
#define QSF_CONFIG_H

#include "qsf_cli.h"

typedef enum QSFConfigLayer {
    QSF_CONFIG_TOP,
    QSF_CONFIG_PROGRAM, /* entries of other programs set nothing */
    QSF_CONFIG_MODEL,
    QSF_CONFIG_ROLE,
    QSF_CONFIG_THEME /* it never applies by itself: qsf_config_theme */
} QSFConfigLayer;

typedef struct QSFConfigEntry {
    QSFConfigLayer layer;
    char *section;             /* pattern, or name of a program, role or theme; "" */
    char *key;                 /* of a theme: a role of it; else NULL */
    const QSFSetting *setting; /* what it sets: one of these; both NULL: an option of the other program,
                                  or of a theme */
    const QSFCliOption *own;
    char *value; /* "on" or "off" for switches */
    unsigned line;
} QSFConfigEntry;

typedef struct QSFConfigFile QSFConfigFile;

/* An option on the command line. */
typedef struct QSFConfigGiven {
    const QSFCliOption *own;
    const char *value; /* "on" for switches */
} QSFConfigGiven;

/* The configuration, and those parts of the command line that select what applies. */
typedef struct QSFConfigStart {
    QSFConfigFile *config; /* NULL: there is none */
    QSFSettings given;     /* settings on the command line: those with qsf_setting_user_set */
    const char *role;      /* --role NAME, or NULL */
    bool model;            /* there is a positional argument */
    bool off;              /* --no-config */
    bool print;            /* --print-config */
    bool done;             /* --help or --version was printed */
    QSFConfigGiven *own;   /* (n_own), in order */
    size_t n_own;
} QSFConfigStart;

/* Parses a copy of argv as qsf_cli_parse does, without calling fn, and reads the configuration that it asks
 * for. `check` is called for each of the program's own options in the file, with `scratch` instead of the
 * program's options: it returns non-zero, with a message in err, for a value that is wrong. Returns 0, or 2
 * with a message in err: a wrong command line; for an unknown name, a wrong value or an unknown section
 * "FILE:LINE: " and what was expected; a role that the file does not have. Release it with qsf_config_end,
 * also then. */
int qsf_config_begin(QSFConfigStart *start, const QSFCli *cli, int argc, char **argv, QSFCliHandler check,
                     void *scratch, char *err, size_t cap);
void qsf_config_end(QSFConfigStart *start);

/* Calls fn for the own options before the first section and in that of the program which nothing stronger
 * replaces, except those that qsf_config_text returns. Returns 0, or what fn returned with "FILE:LINE: "
 * before its message. */
int qsf_config_options(const QSFConfigStart *start, const QSFCli *cli, QSFCliHandler fn, void *arg, char *err,
                       size_t cap);
/* Sets in s what the configuration says for this model (its path; NULL = none) and role (NULL = none); own:
 * only what the section of the role says. */
void qsf_config_settings(const QSFConfigFile *c, const char *model, const char *role, QSFSettings *s);
void qsf_config_role_settings(const QSFConfigFile *c, const char *role, QSFSettings *s);
/* Sets in s what is set in given (qsf_setting_user_set), in the order of the table. */
void qsf_config_overlay(QSFSettings *s, const QSFSettings *given);
/* The text for a conversation that `names` ("system,system-file", "stop") has for this model and role, of the
 * last section that has one; `after`: the entry after this one in the same section (NULL = the first). NULL =
 * none. */
const QSFConfigEntry *qsf_config_text(const QSFConfigFile *c, const char *model, const char *role,
                                      const char *names, const QSFConfigEntry *after);
/* The role before the first section or in that of the program ("role = NAME"), or NULL. */
const char *qsf_config_default_role(const QSFConfigFile *c);
/* The role at the start: that of --role, else the default one, or NULL. */
const char *qsf_config_start_role(const QSFConfigStart *start);
/* Name of the i-th role in the file, or NULL. */
const char *qsf_config_role_at(const QSFConfigFile *c, size_t i);
bool qsf_config_has_role(const QSFConfigFile *c, const char *role);
/* The entry of a theme after `after` (NULL = the first), or NULL. */
const QSFConfigEntry *qsf_config_theme(const QSFConfigFile *c, const char *theme,
                                       const QSFConfigEntry *after);
/* Name of the i-th theme in the file, or NULL. */
const char *qsf_config_theme_at(const QSFConfigFile *c, size_t i);
/* Path of the file. */
const char *qsf_config_path(const QSFConfigFile *c);

/* A change of a section [role NAME]. */
typedef struct QSFRoleEdit {
    const char *name;
    bool remove;                 /* the section; the rest does not matter then */
    bool replace;                /* one that is there already */
    const char *system;          /* the system prompt, or NULL */
    const QSFSettings *settings; /* those with qsf_setting_user_set */
    const char *const *stops;    /* (n_stops) stop strings */
    size_t n_stops;
} QSFRoleEdit;

/* Changes the file `path` (NULL: the user's, which is created if it is missing, with its folder); the rest of
 * it stays as it is. It is replaced at once, when what it will have was read and checked without an error
 * (check, scratch: as for qsf_config_begin). Returns 0 and the new configuration in *out, which the caller
 * closes; or an exit status with a message in err, and the file unchanged: 2 if the role is there already
 * without `replace`, is not there to be removed, is named elsewhere in the file, or has a wrong name, or if
 * the file is wrong; 1 if it cannot be read or written. */
int qsf_config_edit_role(QSFConfigFile **out, const QSFCli *cli, const char *path, QSFCliHandler check,
                         void *scratch, const QSFRoleEdit *edit, char *err, size_t cap);
/* Frees it with all texts that were borrowed from it. NULL is allowed. */
void qsf_config_close(QSFConfigFile *c);

/* Prints what is in effect as a configuration file, with the source of each value as a comment, to standard
 * output. defaults: settings of the program without any; model and role as above; own: settings of a session
 * (those with qsf_setting_user_set), called `session`, or NULL. */
void qsf_config_print(const QSFConfigStart *start, const QSFCli *cli, const QSFSettings *defaults,
                      const char *model, const QSFSettings *own, const char *session);

#endif
