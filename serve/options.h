/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-serve: its command line. */
#ifndef QSF_SERVE_OPTIONS_H
#define QSF_SERVE_OPTIONS_H

#include "qsf_cli.h"
#include "qsf_config.h"

#define SERVE_LIST 64 /* times that an option can be repeated */

extern const QSFCli serve_cli;

typedef struct ServeOptions {
    QSFSettings settings;
    const char *model;                   /* as given, then the path of its file */
    const char *name;                    /* --model-name; NULL = by the file */
    const char *listen;                  /* --listen */
    const char *key_file;                /* --api-key-file, or NULL */
    const char *hosts[SERVE_LIST + 1];   /* --allow-host; NULL-terminated */
    const char *origins[SERVE_LIST + 1]; /* --allow-origin */
    const char *dirs[SERVE_LIST + 1];    /* --model-dir */
    const char *overrides[SERVE_LIST + 1];
    size_t n_hosts, n_origins, n_dirs, n_overrides;
    char i2s_flavor[64];
    uint32_t queue;                      /* requests that may wait */
    uint32_t connections;                /* at a time */
    uint32_t timeout;                    /* seconds that a client may take to send a request, or to read */
    uint32_t snapshots;                  /* conversations that are kept */
    uint64_t snapshot_limit, body_limit; /* bytes; snapshot_limit 0 = as qsf_engine.h */
    const char *snapshot_dir;            /* or NULL */
    const char *log_file;
    bool offline, verbose, quiet;
    QSFConfigStart config;
} ServeOptions;

/* Fills o from argv, which is permuted, and the configuration file. Returns 0 or an exit status, and has
 * printed the message; with res->done there is nothing more to do (qsf_cli_printed). Release o with
 * serve_options_free in any case. */
int serve_options_parse(ServeOptions *o, int argc, char **argv, QSFCliResult *res);
/* Takes from the configuration file what it says for o->model, the path of its file. The same results. */
int serve_options_for_model(ServeOptions *o);
/* --print-config; returns the exit status. */
int serve_options_print(const ServeOptions *o);
void serve_options_free(ServeOptions *o);

#endif
