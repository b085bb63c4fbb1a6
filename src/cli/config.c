/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which parts of a configuration file apply: implements qsf_config.h. */
#include "src/cli/config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_remote.h"
#include "src/base/strbuf.h"
#include "src/cli/config_options.h"

/* ---- the command line ---- */

typedef struct Noting {
    QSFConfigStart *start;
    const QSFCli *cli;
} Noting;

static int note_option(void *arg, int id, const char *value, char *err, size_t cap) {
    Noting *n = arg;
    (void)err, (void)cap;
    QSFConfigStart *start = n->start;
    const QSFCliOption *own = n->cli->options;
    while (own->id != id) own++;
    for (size_t i = 0; !value && i < start->n_own; i++)
        if (start->own[i].own == own) return 0; /* a switch is noted once */
    start->own[start->n_own++] = (QSFConfigGiven){ own, value ? value : "on" };
    return 0;
}

static int parse_copy(QSFConfigStart *start, const QSFCli *cli, int argc, char **argv, QSFCliResult *res,
                      char *err, size_t cap) {
    Noting noting = { start, cli };
    const size_t n = (size_t)argc + 1;
    char **copy = malloc(n * sizeof *copy);
    start->own = calloc(n + cli->n_options, sizeof *start->own);
    int rc = QSF_EXIT_RUNTIME;
    if (copy && start->own) {
        memcpy(copy, argv, n * sizeof *copy);
        rc = qsf_cli_parse(cli, argc, copy, &start->given, note_option, &noting, res, err, cap);
    } else {
        (void)snprintf(err, cap, "out of memory");
    }
    free(copy);
    return rc;
}

static int check_role(const QSFConfigStart *start, char *err, size_t cap) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (!start->role || qsf_config_has_role(start->config, start->role)) return 0;
    for (size_t i = 0; qsf_config_role_at(start->config, i); i++)
        qsf_strbuf_addf(&b, "%s%s", i ? ", " : "", qsf_config_role_at(start->config, i));
    (void)snprintf(err, cap, "--role %s: %s has no such role%s%s", start->role,
                   start->config ? start->config->path : "the configuration", b.len ? "; it has: " : "",
                   qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    return QSF_EXIT_USAGE;
}

int qsf_config_begin(QSFConfigStart *start, const QSFCli *cli, int argc, char **argv, QSFCliHandler check,
                     void *scratch, char *err, size_t cap) {
    QSFCliResult res;
    QsfErr e = { 0 };
    *start = (QSFConfigStart){ 0 };
    qsf_settings_default(&start->given);
    int rc = parse_copy(start, cli, argc, argv, &res, err, cap);
    if (rc != 0 || res.done) {
        start->done = res.done;
        return rc;
    }
    start->role = res.role;
    start->print = res.print_config;
    start->off = res.no_config;
    start->model = res.n_positional > 0;
    if (res.no_config && (res.config || res.role)) {
        (void)snprintf(err, cap, "--no-config cannot be combined with --%s", res.config ? "config" : "role");
        return QSF_EXIT_USAGE;
    }
    if (!res.no_config && qsf_config_read(&start->config, cli, res.config, check, scratch, &e) != QSF_OK) {
        (void)snprintf(err, cap, "%s", e.msg);
        return QSF_EXIT_USAGE;
    }
    return check_role(start, err, cap);
}

void qsf_config_end(QSFConfigStart *start) {
    qsf_config_close(start->config);
    free(start->own);
    *start = (QSFConfigStart){ 0 };
}

const QSFConfigGiven *qsf_config_replaced(const QSFConfigStart *start, const QSFCliOption *own) {
    const QsfConfigOption *known = qsf_config_option(own->name);
    for (size_t i = start->n_own; i > 0; i--) {
        const QSFConfigGiven *g = &start->own[i - 1];
        if (g->own == own || (known && qsf_config_in_list(known->yields, g->own->name))) return g;
    }
    return NULL;
}

const QSFConfigEntry *qsf_config_overridden(const QSFConfigFile *c, const QSFConfigEntry *e) {
    const QsfConfigOption *known = qsf_config_option(e->own->name);
    for (size_t i = 0; e->layer == QSF_CONFIG_TOP && i < c->n; i++) {
        const QSFConfigEntry *x = &c->entries[i];
        if (x->layer != QSF_CONFIG_PROGRAM || !x->own) continue;
        if (x->own == e->own || (known && qsf_config_in_list(known->yields, x->own->name))) return x;
    }
    return NULL;
}

int qsf_config_options(const QSFConfigStart *start, const QSFCli *cli, QSFCliHandler fn, void *arg, char *err,
                       size_t cap) {
    const QSFConfigFile *c = start->config;
    (void)cli;
    for (size_t i = 0; c && i < c->n; i++) {
        const QSFConfigEntry *e = &c->entries[i];
        const QsfConfigOption *known = e->own ? qsf_config_option(e->own->name) : NULL;
        if (!e->own || e->layer > QSF_CONFIG_PROGRAM || (known && known->flags & QSF_CONFIG_TEXT)) continue;
        if (qsf_config_overridden(c, e)) continue;
        if (qsf_config_replaced(start, e->own) || (start->model && strcmp(e->own->name, "model") == 0))
            continue;
        if (!e->own->arg && strcmp(e->value, "off") == 0) continue;
        char why[400] = "";
        const int rc = fn(arg, e->own->id, e->own->arg ? e->value : NULL, why, sizeof why);
        if (rc == 0) continue;
        (void)snprintf(err, cap, "%s:%u: %s", c->path, e->line, why);
        return rc;
    }
    return 0;
}

/* ---- what applies ---- */

/* A model of a server has the name that the server lists; without one the first model is meant, whose name is
 * not known yet. */
static bool matches(const char *pattern, const char *model) {
    if (qsf_connect_is(model) && !qsf_connect_is(pattern)) model = qsf_connect_model(model);
    const char *slash = strrchr(model, '/');
    return *model && fnmatch(pattern, strchr(pattern, '/') || !slash ? model : slash + 1, 0) == 0;
}

bool qsf_config_applies(const QSFConfigEntry *e, const char *model, const char *role) {
    switch (e->layer) {
    case QSF_CONFIG_TOP:
    case QSF_CONFIG_PROGRAM: return true;
    case QSF_CONFIG_MODEL: return model && matches(e->section, model);
    case QSF_CONFIG_ROLE: return role && strcmp(e->section, role) == 0;
    case QSF_CONFIG_THEME: break;
    }
    return false;
}

/* Adds the items of a list, each up to a comma that has no '\\' before it. */
static int add_items(QSFSettings *s, const QSFSetting *row, const char *list, char *err, size_t cap) {
    char item[QSF_SETTING_TEXT];
    int rc = 0;
    for (const char *at = list, *p; rc == 0 && *at; at = *p ? p + 1 : p) {
        for (p = at; *p && *p != ','; p++)
            if (*p == '\\' && p[1]) p++;
        (void)snprintf(item, sizeof item, "%.*s", (int)(p - at), at);
        rc = p - at < (ptrdiff_t)sizeof item ? qsf_setting_add(s, row, item, err, cap)
                                             : qsf_setting_set(s, row, list, err, cap); /* too long */
    }
    return rc;
}

int qsf_config_set(const QSFConfigFile *c, size_t i, QSFSettings *s, char *err, size_t cap) {
    const QSFConfigEntry *e = &c->entries[i];
    for (size_t k = 0; k < i; k++) {
        const QSFConfigEntry *x = &c->entries[k];
        if (x->setting != e->setting || x->layer != e->layer || strcmp(x->section, e->section) != 0) continue;
        return add_items(s, e->setting, e->value, err, cap);
    }
    return qsf_setting_set(s, e->setting, e->value, err, cap);
}

/* In the order of the table within a layer: kv-type replaces what is set for K or V alone. */
static void set_layer(const QSFConfigFile *c, QSFConfigLayer layer, const char *model, const char *role,
                      QSFSettings *s) {
    char err[300];
    for (size_t k = 0; k < qsf_setting_count(); k++)
        for (size_t i = 0; i < c->n; i++) {
            const QSFConfigEntry *e = &c->entries[i];
            if (e->layer == layer && e->setting == qsf_setting_at(k) && qsf_config_applies(e, model, role))
                (void)qsf_config_set(c, i, s, err, sizeof err);
        }
}

void qsf_config_settings(const QSFConfigFile *c, const char *model, const char *role, QSFSettings *s) {
    for (int layer = QSF_CONFIG_TOP; c && layer <= QSF_CONFIG_ROLE; layer++)
        set_layer(c, (QSFConfigLayer)layer, model, role, s);
}

void qsf_config_overlay(QSFSettings *s, const QSFSettings *given) {
    char value[QSF_SETTING_TEXT], err[300];
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(given, row)) continue;
        qsf_setting_get(given, row, value, sizeof value);
        (void)qsf_setting_set(s, row, value, err, sizeof err);
    }
}

void qsf_config_role_settings(const QSFConfigFile *c, const char *role, QSFSettings *s) {
    if (c) set_layer(c, QSF_CONFIG_ROLE, NULL, role, s);
}

static bool is_named(const QSFConfigEntry *e, const char *names) {
    return e->own && qsf_config_in_list(names, e->own->name);
}

static bool same_section(const QSFConfigEntry *a, const QSFConfigEntry *b) {
    return a->layer == b->layer && strcmp(a->section, b->section) == 0;
}

const QSFConfigEntry *qsf_config_text(const QSFConfigFile *c, const char *model, const char *role,
                                      const char *names, const QSFConfigEntry *after) {
    const QSFConfigEntry *best = after;
    for (size_t i = 0; c && !after && i < c->n; i++) {
        const QSFConfigEntry *e = &c->entries[i];
        if (!is_named(e, names) || !qsf_config_applies(e, model, role)) continue;
        if (!best || e->layer > best->layer || (e->layer == best->layer && !same_section(e, best))) best = e;
    }
    for (size_t i = after ? (size_t)(after - c->entries) + 1 : 0; after && i < c->n; i++)
        if (is_named(&c->entries[i], names) && same_section(&c->entries[i], after)) return &c->entries[i];
    return after ? NULL : best;
}

const char *qsf_config_default_role(const QSFConfigFile *c) {
    const QSFConfigEntry *e = qsf_config_text(c, NULL, NULL, "role", NULL);
    return e ? e->value : NULL;
}

const char *qsf_config_start_role(const QSFConfigStart *start) {
    return start->role ? start->role : qsf_config_default_role(start->config);
}

static const char *section_at(const QSFConfigFile *c, QSFConfigLayer layer, size_t at) {
    for (size_t i = 0; c && i < c->n_sections; i++)
        if (c->sections[i].layer == layer && at-- == 0) return c->sections[i].name;
    return NULL;
}

const char *qsf_config_role_at(const QSFConfigFile *c, size_t at) {
    return section_at(c, QSF_CONFIG_ROLE, at);
}

const char *qsf_config_theme_at(const QSFConfigFile *c, size_t at) {
    return section_at(c, QSF_CONFIG_THEME, at);
}

const QSFConfigEntry *qsf_config_theme(const QSFConfigFile *c, const char *theme,
                                       const QSFConfigEntry *after) {
    for (size_t i = c && after ? (size_t)(after - c->entries) + 1 : 0; c && i < c->n; i++)
        if (c->entries[i].layer == QSF_CONFIG_THEME && strcmp(c->entries[i].section, theme) == 0)
            return &c->entries[i];
    return NULL;
}

bool qsf_config_has_role(const QSFConfigFile *c, const char *role) {
    const char *name;
    for (size_t i = 0; (name = qsf_config_role_at(c, i)) != NULL; i++)
        if (strcmp(name, role) == 0) return true;
    return false;
}

const char *qsf_config_path(const QSFConfigFile *c) { return c ? c->path : ""; }
