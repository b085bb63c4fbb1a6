/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints what is in effect as a configuration file: implements qsf_config_print. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_text.h"
#include "src/cli/config.h"
#include "src/cli/config_options.h"

/* ---- values ---- */

/* The source is cleaned; the value of an option is what its own reader accepts, but on a terminal control
 * characters are visible marks. */
static void put_line(const char *name, const char *value, const char *source) {
    char *clean = qsf_clean_dup(source, strlen(source), true);
    char *shown = isatty(STDOUT_FILENO) ? qsf_clean_dup(value, strlen(value), false) : NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_config_add_value(&b, shown ? shown : value);
    printf("%s = %s ; %s\n", name, qsf_strbuf_str(&b), clean ? clean : "");
    qsf_strbuf_free(&b);
    free(shown);
    free(clean);
}

static void put_entry_source(const QSFConfigFile *c, const QSFConfigEntry *e, char *dst, size_t cap) {
    static const char *const kinds[] = { "", "", "model ", "role ", "theme " };
    (void)snprintf(dst, cap, "%s:%u%s%s%s%s", c->path, e->line, *e->section ? " [" : "", kinds[e->layer],
                   e->section, *e->section ? "]" : "");
}

/* ---- settings ---- */

typedef struct Printer {
    const QSFConfigStart *start;
    const QSFCli *cli;
    const char *model, *role;
    const QSFSettings *own;
    const char *session;
} Printer;

/* The last entry that applies; NULL = none. */
static const QSFConfigEntry *entry_of(const Printer *p, const QSFSetting *row, bool role) {
    const QSFConfigFile *c = p->start->config;
    const QSFConfigEntry *best = NULL;
    for (size_t i = 0; c && i < c->n; i++) {
        const QSFConfigEntry *e = &c->entries[i];
        if (e->setting != row || !qsf_config_applies(e, p->model, p->role)) continue;
        if (role && e->layer != QSF_CONFIG_ROLE) continue;
        if (!best || e->layer >= best->layer) best = e;
    }
    return best;
}

static void setting_source(const Printer *p, const QSFSetting *row, char *dst, size_t cap) {
    const QSFConfigEntry *role = p->start->role ? entry_of(p, row, true) : NULL, *e = entry_of(p, row, false);
    if (qsf_setting_user_set(&p->start->given, row))
        (void)snprintf(dst, cap, "command line");
    else if (role)
        put_entry_source(p->start->config, role, dst, cap);
    else if (p->own && qsf_setting_user_set(p->own, row))
        (void)snprintf(dst, cap, "session %s", p->session);
    else if (e)
        put_entry_source(p->start->config, e, dst, cap);
    else
        (void)snprintf(dst, cap, "default");
}

static void print_settings(const Printer *p, const QSFSettings *defaults) {
    QSFSettings s = *defaults;
    qsf_config_settings(p->start->config, p->model, p->role, &s);
    if (p->own) qsf_config_overlay(&s, p->own);
    if (p->start->role) qsf_config_role_settings(p->start->config, p->role, &s);
    qsf_config_overlay(&s, &p->start->given);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char value[QSF_SETTING_TEXT], source[600];
        qsf_setting_get(&s, row, value, sizeof value);
        setting_source(p, row, source, sizeof source);
        if (*value)
            put_line(row->name, value, source);
        else
            printf("; %s is not set\n", row->name);
    }
}

/* ---- own options ---- */

/* Those of the command line; false if there are none. */
static bool print_given(const Printer *p, const QSFCliOption *own, const QsfConfigOption *known) {
    const bool list = known && known->flags & QSF_CONFIG_LIST;
    const QSFConfigGiven *last = qsf_config_replaced(p->start, own);
    for (size_t i = 0; last && i < p->start->n_own; i++) {
        const QSFConfigGiven *g = &p->start->own[i];
        if (g->own == own && (list || g == last)) put_line(own->name, g->value, "command line");
    }
    if (last && last->own != own) printf("; %s is replaced by --%s\n", own->name, last->own->name);
    return last != NULL;
}

static bool print_entries(const Printer *p, const QSFCliOption *own) {
    const QSFConfigFile *c = p->start->config;
    const QSFConfigEntry *e = qsf_config_text(c, p->model, p->role, own->name, NULL);
    const QSFConfigEntry *by = e ? qsf_config_overridden(c, e) : NULL;
    char source[600];
    if (by) {
        printf("; %s is replaced by %s of [%s]\n", own->name, by->own->name, by->section);
        return true;
    }
    for (const QSFConfigEntry *i = e; i; i = qsf_config_text(c, p->model, p->role, own->name, i)) {
        put_entry_source(c, i, source, sizeof source);
        put_line(own->name, i->value, source);
    }
    return e != NULL;
}

/* MODEL of the command line replaces a server of the file. */
static bool is_replaced_by_model(const Printer *p, const QSFCliOption *own, const QsfConfigOption *known) {
    return p->start->model && known && strcmp(known->name, "connect") == 0 &&
           qsf_config_text(p->start->config, p->model, p->role, own->name, NULL) &&
           !qsf_config_replaced(p->start, own);
}

static void print_own(const Printer *p) {
    const QSFCliOption *own;
    for (size_t i = 0; (own = qsf_cli_option_at(p->cli, i)) != NULL; i++) {
        const QsfConfigOption *known = qsf_config_option(own->name);
        if (known && known->flags & QSF_CONFIG_ONCE) continue;
        if (own->id == QSF_CLI_ROLE && p->start->role)
            put_line(own->name, p->start->role, "command line");
        else if (strcmp(own->name, "model") == 0 && p->model && p->start->model)
            put_line(own->name, p->model, "command line");
        else if (is_replaced_by_model(p, own, known))
            printf("; %s is replaced by MODEL\n", own->name);
        else if (!print_given(p, own, known) && !print_entries(p, own))
            printf("; %s is not set\n", own->name);
    }
}

/* Does the command line have the last word on this entry of the role in effect? */
static bool is_given(const Printer *p, const QSFConfigEntry *e) {
    if (!p->role || strcmp(e->section, p->role) != 0) return false;
    return e->setting ? qsf_setting_user_set(&p->start->given, e->setting)
                      : qsf_config_replaced(p->start, e->own) != NULL;
}

static void begin_section(const char *kind, const char *of) {
    char *name = qsf_clean_dup(of, strlen(of), true);
    printf("\n[%s %s]\n", kind, name ? name : "");
    free(name);
}

/* The sections of roles, after all that is before a section: the role that is named has to be one. */
static void print_roles(const Printer *p) {
    const QSFConfigFile *c = p->start->config;
    const char *role;
    for (size_t r = 0; (role = qsf_config_role_at(c, r)) != NULL; r++) {
        begin_section("role", role);
        for (size_t i = 0; i < c->n; i++) {
            const QSFConfigEntry *e = &c->entries[i];
            char source[600];
            if (e->layer != QSF_CONFIG_ROLE || strcmp(e->section, role) != 0) continue;
            if ((!e->setting && !e->own) || is_given(p, e)) continue;
            put_entry_source(c, e, source, sizeof source);
            put_line(e->setting ? e->setting->name : e->own->name, e->value, source);
        }
    }
}

/* The sections of themes, at the end: what follows a section belongs to it. */
static void print_themes(const Printer *p) {
    const QSFConfigFile *c = p->start->config;
    const char *theme;
    for (size_t i = 0; p->cli->check_theme && (theme = qsf_config_theme_at(c, i)) != NULL; i++) {
        const QSFConfigEntry *e = NULL;
        char source[600];
        begin_section("theme", theme);
        while ((e = qsf_config_theme(c, theme, e)) != NULL) {
            put_entry_source(c, e, source, sizeof source);
            put_line(e->key, e->value, source);
        }
    }
}

void qsf_config_print(const QSFConfigStart *start, const QSFCli *cli, const QSFSettings *defaults,
                      const char *model, const QSFSettings *own, const char *session) {
    const QSFConfigFile *c = start->config;
    const Printer p = { .start = start,
                        .cli = cli,
                        .model = model,
                        .role = own ? start->role : qsf_config_start_role(start),
                        .own = own,
                        .session = session };
    char *path = qsf_clean_dup(qsf_config_path(c), strlen(qsf_config_path(c)), true);
    printf("; %s: %s\n", cli->program, path && *path ? path : "no configuration file");
    free(path);
    print_own(&p);
    print_settings(&p, defaults);
    print_roles(&p);
    print_themes(&p);
}
