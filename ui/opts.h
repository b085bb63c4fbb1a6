/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of qsf-chat. */
#ifndef QSF_UI_OPTS_H
#define QSF_UI_OPTS_H

#include "qsf_config.h"
#include "qsf_models.h"
#include "ui/compose/attach.h"
#include "ui/notify.h"
#include "ui/stops.h"

#define UI_OVERRIDES   64
#define UI_WIDTH       100 /* cells of text, by default */
#define UI_WIDTH_LEAST 20
#define UI_WIDTH_MOST  2000

typedef enum UiColor { UI_COLOR_AUTO, UI_COLOR_ALWAYS, UI_COLOR_NEVER } UiColor;

typedef struct UiOptions {
    QSFSettings settings;
    const char *model;    /* NULL = none given */
    char *found;          /* owned: the file that this name means, or NULL */
    const char *connect;  /* --connect URL, or NULL; then model is "connect:URL#MODEL" */
    const char *key_file; /* --api-key-file, or NULL */
    unsigned timeout;     /* --timeout in seconds, 0 = not given */
    const char *session;  /* --session NAME, or NULL */
    UiBuf system;
    UiStops stops;                        /* --stop */
    char *files[UI_ATTACH_MAX];           /* (n_files), --file, owned */
    const char *dirs[QSF_MODEL_DIRS + 1]; /* (n_dirs), --model-dir, then NULL */
    size_t n_dirs;
    size_t n_files;
    size_t n_own_stops; /* of them, those of the command line */
    bool has_system;
    bool resume;           /* --continue */
    bool list;             /* --list-sessions */
    bool list_models;      /* --list-models */
    const char *find;      /* the expression or the words after it, or NULL */
    const char *print;     /* --print-session NAME, or NULL */
    const char *replay;    /* --replay NAME, or NULL */
    unsigned top_logprobs; /* 1 + N; 0 = not given */
    bool no_save, no_snapshot, offline, plain, verbose, quiet, json, no_mouse;
    const char *output, *script;             /* files instead of standard output and input, or NULL */
    const char *log_file;                    /* --log-file, or NULL */
    uint64_t snapshot_limit;                 /* bytes, 0 = automatic */
    const char *overrides[UI_OVERRIDES + 1]; /* (n_overrides), then NULL */
    size_t n_overrides;
    char i2s_flavor[64]; /* one of them */
    UiColor color;
    const char *theme; /* checked */
    UiNotify notify;
    QSFConfigStart start; /* the configuration file */
    int width;            /* maximum cells of the text of messages, 0 = the whole window */
} UiOptions;

/* Returns -1 to continue, or the exit status (already reported). */
int ui_options_parse(UiOptions *o, int argc, char **argv);
/* Fills the system prompt and the stop strings of *o, which may be uninitialized, with those of the
 * configuration for a model and a role (NULL = none); only_role: those of its section. false with a message
 * in err. Release it with ui_options_free. */
bool ui_options_texts(UiOptions *o, const QSFConfigFile *c, const char *model, const char *role,
                      bool only_role, char *err, size_t cap);
/* As qsf_config_edit_role. */
int ui_options_edit_role(QSFConfigFile **out, const char *path, const QSFRoleEdit *e, char *err, size_t cap);
/* "qsf-chat: message" on standard error. */
void ui_options_error(const char *text);
void ui_options_free(UiOptions *o);

#endif
