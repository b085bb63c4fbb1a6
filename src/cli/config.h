/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of a configuration: shared by the config*.c files only. */
#ifndef QSF_CLI_CONFIG_H
#define QSF_CLI_CONFIG_H

#include "qsf_config.h"
#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef struct QsfConfigSection {
    QSFConfigLayer layer;
    char *name; /* pattern, program, role or theme */
    unsigned line;
} QsfConfigSection;

struct QSFConfigFile {
    char *path;
    QSFConfigEntry *entries; /* (n), in the order of the file */
    size_t n, cap;
    QsfConfigSection *sections; /* (n_sections) */
    size_t n_sections;
};

/* Reads the file at path (NULL: the user's, which may be missing: then *out is NULL). QSF_E_USAGE with a
 * message that names the file, the line, and what was expected. check, scratch: as for qsf_config_begin. */
int qsf_config_read(QSFConfigFile **out, const QSFCli *cli, const char *path, QSFCliHandler check,
                    void *scratch, QsfErr *err);
typedef struct QsfConfigBytes {
    const char *data; /* (len) */
    size_t len;
} QsfConfigBytes;
/* The same for text instead of what the file has. */
int qsf_config_read_text(QSFConfigFile **out, const QSFCli *cli, const char *path, const QsfConfigBytes *text,
                         QSFCliHandler check, void *scratch, QsfErr *err);
/* Path of the user's file, owned by the caller; NULL: there is no home directory, or no memory. */
char *qsf_config_default_path(void);
/* Adds a value as the file has it: as it is, or between quotes, in several lines if it is long. */
void qsf_config_add_value(QsfStrbuf *b, const char *value);
/* Sets the setting of entry i, or adds its items to a list to which earlier entries of its section have
 * added. Returns as qsf_setting_set. */
int qsf_config_set(const QSFConfigFile *c, size_t i, QSFSettings *s, char *err, size_t cap);
/* Does the section of e apply to this model and role? */
bool qsf_config_applies(const QSFConfigEntry *e, const char *model, const char *role);
/* The entry in the section of the program that replaces this one before the first section, or NULL. */
const QSFConfigEntry *qsf_config_overridden(const QSFConfigFile *c, const QSFConfigEntry *e);
/* Does the command line replace this option? NULL = no, else the one that does. */
const QSFConfigGiven *qsf_config_replaced(const QSFConfigStart *start, const QSFCliOption *own);

#endif
