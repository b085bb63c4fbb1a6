/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the configuration file may have of the programs' own options. */
#ifndef QSF_CLI_CONFIG_OPTIONS_H
#define QSF_CLI_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    QSF_CONFIG_ONCE = 1, /* makes no sense in a file */
    QSF_CONFIG_TEXT = 2, /* belongs to a conversation: allowed in sections, returned by qsf_config_text */
    QSF_CONFIG_LIST = 4  /* may be given several times */
};

typedef struct QsfConfigOption {
    const char *name;
    unsigned flags;
    const char *yields; /* comma-separated options of the command line that replace it, too; or "" */
} QsfConfigOption;

/* The row of an option of any program by its long name; NULL when no program has it. */
const QsfConfigOption *qsf_config_option(const char *name);
/* Is it one of the programs that read the file? */
bool qsf_config_program(const char *name);
/* Is word one of a comma-separated list? */
bool qsf_config_in_list(const char *list, const char *word);

#endif
