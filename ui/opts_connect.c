/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/opts_connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_remote.h"
#include "qsf_text.h"

#define TIMEOUT_MOST 86400

/* Options that are about models on this machine, or about tokens. */
static const char *const local[] = { "list-models", "model-dir",      "offline",      "no-snapshot",
                                     "override-kv", "snapshot-limit", "i2s-flavor",   "top-logprobs",
                                     "replay",      "list-sessions",  "print-session" };

static bool is_local(const char *name) {
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strcmp(local[i], name) == 0) return true;
    return false;
}

static bool refuse(const char *name, char *err, size_t cap) {
    (void)snprintf(err, cap, "--%s cannot be combined with --connect", name);
    return false;
}

/* Settings of the plan, and options; those of the configuration file are for models of this machine. */
static bool check(const UiOptions *o, char *err, size_t cap) {
    for (size_t i = 0; i < o->start.n_own; i++)
        if (is_local(o->start.own[i].own->name)) return refuse(o->start.own[i].own->name, err, cap);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        const bool plan = row->flags & (QSF_SETTING_REPLAN | QSF_SETTING_RELOAD);
        if (plan && qsf_setting_user_set(&o->start.given, row)) {
            (void)snprintf(err, cap, "--%s cannot be combined with --connect: the server decides this",
                           row->name);
            return false;
        }
    }
    return true;
}

static bool on_command_line(const UiOptions *o, const char *name) {
    for (size_t i = 0; i < o->start.n_own; i++)
        if (strcmp(o->start.own[i].own->name, name) == 0) return true;
    return false;
}

bool ui_opts_connect(UiOptions *o, bool positional, char *err, size_t cap) {
    if (!o->connect) return true;
    if (!on_command_line(o, "connect") && (positional || o->replay || o->list_models)) {
        o->connect = NULL;
        return true;
    }
    if (positional) {
        (void)snprintf(err, cap,
                       "MODEL cannot be combined with --connect: --model NAME chooses a model of the server");
        return false;
    }
    if (!check(o, err, cap)) return false;
    free(o->found);
    const char *model = o->model ? o->model : "";
    o->found = qsf_connect_path(o->connect, model + (*model == '#'), err, cap); /* as in /model */
    o->model = o->found;
    return o->found != NULL;
}

bool ui_opts_timeout(UiOptions *o, const char *value, char *err, size_t cap) {
    char *end;
    const long n = strtol(value, &end, 10);
    if (*value >= '0' && *value <= '9' && *end == '\0' && n > 0 && n <= TIMEOUT_MOST) {
        o->timeout = (unsigned)n;
        return true;
    }
    (void)qsf_text_snprintf(err, cap, "--timeout must be 1 to %d seconds, not '%.40s'", TIMEOUT_MOST, value);
    return false;
}
