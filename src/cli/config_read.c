/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and checks a configuration file: implements qsf_config_read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/paths.h"
#include "src/base/strbuf.h"
#include "src/cli/config.h"
#include "src/cli/config_options.h"
#include "src/cli/ini.h"

typedef struct Reader {
    QSFConfigFile *c;
    const QSFCli *cli;
    QSFCliHandler check;
    void *scratch;
    QSFConfigLayer layer; /* of the current section */
    const char *section;  /* its name, owned by c */
    bool foreign;         /* that of another program */
    QsfStrbuf raw;        /* the value of the last entry so far */
    bool open;            /* it may go on */
    QSFSettings settings; /* where values are tried */
} Reader;

__attribute__((format(printf, 2, 3))) static bool refuse(QsfErr *why, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)qsf_err_setv(why, QSF_E_USAGE, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- sections ---- */

/* "model X" -> X; NULL if it is not a section of this kind. */
static const char *after_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(text, word, n) != 0 || (text[n] != ' ' && text[n] != '\t')) return NULL;
    text += n + strspn(text + n, " \t");
    return *text ? text : NULL;
}

/* key NULL: its name alone. */
static bool check_theme(const Reader *rd, const char *key, const char *value, QsfErr *why) {
    char err[400] = "";
    if (!rd->cli->check_theme || rd->cli->check_theme(rd->section, key, value, err, sizeof err)) return true;
    return refuse(why, "%s", err);
}

/* Returns the name in a section's heading and sets *layer. NULL: sections of this kind do not exist. */
static const char *section_name(const char *text, QSFConfigLayer *layer) {
    static const char *const kinds[] = {
        [QSF_CONFIG_MODEL] = "model", [QSF_CONFIG_ROLE] = "role", [QSF_CONFIG_THEME] = "theme"
    };
    const char *name = NULL;
    *layer = QSF_CONFIG_PROGRAM;
    if (qsf_config_program(text)) return text;
    for (int i = QSF_CONFIG_MODEL; i <= QSF_CONFIG_THEME && !name; i++) {
        name = after_word(text, kinds[i]);
        *layer = (QSFConfigLayer)i;
    }
    return name;
}

static bool begin_section(Reader *rd, const QsfIniItem *item, QsfErr *why) {
    QSFConfigFile *c = rd->c;
    QSFConfigLayer layer;
    const char *name = section_name(item->section, &layer);
    if (!name)
        return refuse(why,
                      "unknown section [%s]: expected [model PATTERN], [role NAME], [theme NAME] or "
                      "[qsf-chat], [qsf-run], [qsf-serve]",
                      item->section);
    for (size_t i = 0; i < c->n_sections; i++)
        if (c->sections[i].layer == layer && strcmp(c->sections[i].name, name) == 0)
            return refuse(why, "section [%s] is there already, in line %u", item->section,
                          c->sections[i].line);
    QsfConfigSection *more = realloc(c->sections, (c->n_sections + 1) * sizeof *more);
    if (more) c->sections = more;
    char *copy = more ? strdup(name) : NULL;
    if (!copy) return refuse(why, "out of memory");
    for (size_t n = strlen(copy); n > 0 && (copy[n - 1] == ' ' || copy[n - 1] == '\t');) copy[--n] = '\0';
    c->sections[c->n_sections++] = (QsfConfigSection){ .layer = layer, .name = copy, .line = item->line };
    rd->layer = layer;
    rd->section = copy;
    rd->foreign = layer == QSF_CONFIG_PROGRAM && strcmp(copy, rd->cli->program) != 0;
    return rd->layer != QSF_CONFIG_THEME || check_theme(rd, NULL, NULL, why);
}

/* ---- values ---- */

/* One text between quotes at *p, which is moved past it. */
static bool quoted(const char **p, QsfStrbuf *out, QsfErr *why) {
    static const char letters[] = "nt\"\\;", values[] = "\n\t\"\\;";
    const char *s = *p + 1;
    for (; *s && *s != '"'; s++) {
        if (*s == '\n') break;
        if (*s != '\\') {
            qsf_strbuf_addc(out, *s);
            continue;
        }
        const char *at = s[1] ? strchr(letters, s[1]) : NULL;
        if (!at) return refuse(why, "after \\ in quotes n, t, \", \\ or ; was expected");
        qsf_strbuf_addc(out, values[at - letters]);
        s++;
    }
    if (*s != '"') return refuse(why, "a quote is not closed (\" ;\" begins a comment: write \\;)");
    *p = s + 1;
    return true;
}

/* Several quoted lines are one text, as in C. */
static bool take_value(const char *raw, QsfStrbuf *out, QsfErr *why) {
    if (*raw != '"') {
        qsf_strbuf_adds(out, raw);
        return true;
    }
    for (const char *p = raw; quoted(&p, out, why);) {
        if (!*p) return true;
        const size_t newlines = strspn(p, "\n"); /* with empty lines between them */
        if (newlines == 0 || p[newlines] != '"') return refuse(why, "there is text after the closing quote");
        p += newlines;
    }
    return false;
}

static bool check_switch(const QSFConfigEntry *e, const char *name, QsfErr *why) {
    return strcmp(e->value, "on") == 0 || strcmp(e->value, "off") == 0 ||
           refuse(why, "%s: expected on or off, not '%s'", name, e->value);
}

/* ~ is a home directory where a shell would expand it. */
static bool expand_home(QSFConfigEntry *e, QsfErr *why) {
    const char *home = getenv("HOME");
    const char *arg = e->own && e->own->arg ? e->own->arg : ""; /* settings do it themselves */
    const bool file = strcmp(arg, "FILE") == 0 || strcmp(arg, "DIR") == 0;
    if (!file || strncmp(e->value, "~/", 2) != 0 || !home) return true;
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "%s%s", home, e->value + 1);
    char *path = qsf_strbuf_take(&b, NULL);
    if (!path) return refuse(why, "out of memory");
    free(e->value);
    e->value = path;
    return true;
}

static bool check_entry(Reader *rd, QSFConfigEntry *e, QsfErr *why) {
    char err[512] = "";
    const char *name = e->setting ? e->setting->name : e->own->name;
    const bool is_switch = e->setting ? !e->setting->arg : !e->own->arg;
    if (is_switch && !check_switch(e, name, why)) return false;
    if (!*e->value) return refuse(why, "%s: the value is empty", name);
    if (!expand_home(e, why)) return false;
    const int rc = e->setting
                       ? qsf_config_set(rd->c, (size_t)(e - rd->c->entries), &rd->settings, err, sizeof err)
                   : e->own->id < 0 || (is_switch && strcmp(e->value, "off") == 0)
                       ? 0
                       : rd->check(rd->scratch, e->own->id, is_switch ? NULL : e->value, err, sizeof err);
    if (rc == 0) return true;
    return strstr(err, name) ? refuse(why, "%s", err) : refuse(why, "%s: %s", name, err);
}

/* The value of the last entry is complete. */
static bool close_entry(Reader *rd, QsfErr *why) {
    if (!rd->open) return true;
    QSFConfigEntry *e = &rd->c->entries[rd->c->n - 1];
    QsfStrbuf value = QSF_STRBUF_INIT;
    rd->open = false;
    const bool ok = take_value(qsf_strbuf_str(&rd->raw), &value, why);
    qsf_strbuf_clear(&rd->raw);
    e->value = ok ? qsf_strbuf_take(&value, NULL) : NULL;
    if (ok && !e->value) e->value = strdup("");
    qsf_strbuf_free(&value);
    if (ok && !e->value) return refuse(why, "out of memory");
    if (ok && e->key && !check_theme(rd, e->key, e->value, why)) return false;
    if (ok && (e->setting || e->own) && !check_entry(rd, e, why)) return false;
    return ok;
}

/* ---- entries ---- */

static bool is_name(const Reader *rd, const char *word) {
    return qsf_setting_find(word) || qsf_cli_option(rd->cli, word) || qsf_config_option(word);
}

static bool unknown(const Reader *rd, const char *name, QsfErr *why) {
    const char *names[200];
    size_t n = 0;
    const QSFCliOption *o;
    for (size_t i = 0; (o = qsf_cli_option_at(rd->cli, i)) != NULL && n < 200; i++) {
        const QsfConfigOption *known = qsf_config_option(o->name);
        if (!known || !(known->flags & QSF_CONFIG_ONCE)) names[n++] = o->name;
    }
    for (size_t i = 0; i < qsf_setting_count() && n < 200; i++) names[n++] = qsf_setting_at(i)->name;
    const char *near = qsf_nearest(name, names, n);
    if (near) return refuse(why, "unknown option '%s': did you mean %s?", name, near);
    return refuse(why, "unknown option '%s': expected the long name of an option (see --help)", name);
}

/* What is set in this section already, or excludes it. */
static bool check_again(const Reader *rd, const QSFConfigEntry *e, const QsfConfigOption *known,
                        QsfErr *why) {
    for (size_t i = 0; i < rd->c->n; i++) {
        const QSFConfigEntry *x = &rd->c->entries[i];
        if (x->layer != e->layer || strcmp(x->section, e->section) != 0) continue;
        if (e->setting && x->setting == e->setting && !(e->setting->flags & QSF_SETTING_LIST))
            return refuse(why, "%s is set already, in line %u", e->setting->name, x->line);
        if (!e->own || !x->own) continue;
        if (x->own == e->own && !(known && known->flags & QSF_CONFIG_LIST))
            return refuse(why, "%s is set already, in line %u", e->own->name, x->line);
        if (known && qsf_config_in_list(known->yields, x->own->name))
            return refuse(why, "%s cannot be combined with %s in line %u", e->own->name, x->own->name,
                          x->line);
    }
    return true;
}

/* A role of a theme, which only programs with themes know. */
static bool add_role(const Reader *rd, const char *name, QSFConfigEntry *e, QsfErr *why) {
    for (size_t i = 0; i < rd->c->n; i++) {
        const QSFConfigEntry *x = &rd->c->entries[i];
        if (x->layer == e->layer && strcmp(x->section, e->section) == 0 && strcmp(x->key, name) == 0)
            return refuse(why, "%s is set already, in line %u", name, x->line);
    }
    e->key = strdup(name);
    return e->key || refuse(why, "out of memory");
}

/* May an option that is not a setting be in this section? known: NULL, or its row. */
static bool check_place(const Reader *rd, const QSFConfigEntry *e, const QsfConfigOption *known,
                        const char *name, QsfErr *why) {
    const bool text = known && known->flags & QSF_CONFIG_TEXT && strcmp(known->name, "role") != 0;
    if (known && known->flags & QSF_CONFIG_ONCE)
        return refuse(why, "%s is only possible on the command line", known->name);
    if (e->layer == QSF_CONFIG_PROGRAM && !e->own)
        return refuse(why, "%s is not an option of %s", name, rd->section);
    if (e->layer > QSF_CONFIG_PROGRAM && !text)
        return refuse(why,
                      "%s is only possible before the first section and in that of a program; here settings, "
                      "system, system-file and stop are",
                      name);
    return true;
}

static bool find_name(const Reader *rd, const char *name, QSFConfigEntry *e, QsfErr *why) {
    if (e->layer == QSF_CONFIG_THEME) return add_role(rd, name, e, why);
    if (rd->foreign) return is_name(rd, name) || unknown(rd, name, why); /* that program reads the rest */
    e->own = qsf_cli_option(rd->cli, name);
    e->setting = e->own ? NULL : qsf_setting_find(name);
    const QsfConfigOption *known = e->setting ? NULL : qsf_config_option(e->own ? e->own->name : name);
    if (!e->own && !e->setting && !known) return unknown(rd, name, why);
    if (!e->setting && !check_place(rd, e, known, name, why)) return false;
    return check_again(rd, e, known, why);
}

static bool continue_entry(Reader *rd, const QsfIniItem *item, QsfErr *why) {
    char word[64];
    const size_t n = strcspn(item->value, " \t=:");
    const char *after = item->value + n + strspn(item->value + n, " \t");
    if (n > 0 && n < sizeof word && *after == '=') {
        memcpy(word, item->value, n);
        word[n] = '\0';
        if (is_name(rd, word))
            return refuse(why, "an indented line continues the value above: remove the blanks before %s",
                          word);
    }
    qsf_strbuf_addc(&rd->raw, '\n');
    qsf_strbuf_adds(&rd->raw, item->value);
    return qsf_strbuf_ok(&rd->raw) || refuse(why, "out of memory");
}

static bool add_entry(Reader *rd, const QsfIniItem *item, QsfErr *why) {
    QSFConfigFile *c = rd->c;
    QSFConfigEntry e = { .layer = rd->layer, .line = item->line, .section = (char *)rd->section };
    if (!find_name(rd, item->name, &e, why)) return false;
    if (c->n == c->cap) {
        const size_t cap = c->cap ? c->cap * 2 : 16;
        QSFConfigEntry *more = realloc(c->entries, cap * sizeof *more);
        if (!more) {
            free(e.key);
            return refuse(why, "out of memory");
        }
        c->entries = more;
        c->cap = cap;
    }
    c->entries[c->n++] = e;
    rd->open = true;
    qsf_strbuf_adds(&rd->raw, item->value);
    return qsf_strbuf_ok(&rd->raw) || refuse(why, "out of memory");
}

static bool on_item(void *arg, const QsfIniItem *item, unsigned *line, QsfErr *why) {
    Reader *rd = arg;
    if (item->name && item->more) return continue_entry(rd, item, why);
    if (rd->open) *line = rd->c->entries[rd->c->n - 1].line;
    if (!close_entry(rd, why)) return false;
    *line = item->line;
    return item->name ? add_entry(rd, item, why) : begin_section(rd, item, why);
}

/* ---- the file ---- */

static bool check_roles(const QSFConfigFile *c, QsfErr *err) {
    const char *role = qsf_config_default_role(c);
    for (size_t i = 0; role && i < c->n; i++) {
        const QSFConfigEntry *e = &c->entries[i];
        if (e->value == role && !qsf_config_has_role(c, role))
            return refuse(err, "%s:%u: there is no section [role %s]", c->path, e->line, role);
    }
    return true;
}

/* text: instead of the file, or NULL. */
static int read_file(Reader *rd, const QsfConfigBytes *text, bool *missing, QsfErr *err) {
    QSFConfigFile *c = rd->c;
    QsfErr why = { 0 };
    rd->section = "";
    qsf_settings_default(&rd->settings);
    if ((text ? qsf_ini_read_text(c->path, text->data, text->len, on_item, rd, &why)
              : qsf_ini_read(c->path, on_item, rd, missing, &why)) != QSF_OK)
        return qsf_err_set(err, QSF_E_USAGE, "%s", why.msg);
    const unsigned line = rd->open ? c->entries[c->n - 1].line : 0;
    if (!close_entry(rd, &why)) return qsf_err_set(err, QSF_E_USAGE, "%s:%u: %s", c->path, line, why.msg);
    return check_roles(c, err) ? QSF_OK : QSF_E_USAGE;
}

char *qsf_config_default_path(void) {
    char home[QSF_PATH_MAX], path[QSF_PATH_MAX];
    const bool known = qsf_path_config_home(home) && qsf_path_join(path, home, "/config", "");
    return known ? strdup(path) : NULL;
}

/* Takes path. */
static int read_config(QSFConfigFile **out, Reader rd, char *path, const QsfConfigBytes *text, bool *missing,
                       QsfErr *err) {
    rd.c = calloc(1, sizeof *rd.c);
    if (!rd.c) {
        free(path);
        return qsf_err_set(err, QSF_E_RUNTIME, "the configuration: out of memory");
    }
    rd.c->path = path;
    const int rc = read_file(&rd, text, missing, err);
    qsf_strbuf_free(&rd.raw);
    if (rc == QSF_OK)
        *out = rd.c;
    else
        qsf_config_close(rd.c);
    return rc;
}

int qsf_config_read(QSFConfigFile **out, const QSFCli *cli, const char *path, QSFCliHandler check,
                    void *scratch, QsfErr *err) {
    bool missing = false;
    *out = NULL;
    char *copy = path ? strdup(path) : qsf_config_default_path();
    if (!copy) return path ? qsf_err_set(err, QSF_E_RUNTIME, "%s: out of memory", path) : QSF_OK;
    const Reader rd = { .cli = cli, .check = check, .scratch = scratch };
    const int rc = read_config(out, rd, copy, NULL, &missing, err);
    if (!missing || path) return rc;
    qsf_err_clear(err);
    return QSF_OK;
}

int qsf_config_read_text(QSFConfigFile **out, const QSFCli *cli, const char *path, const QsfConfigBytes *text,
                         QSFCliHandler check, void *scratch, QsfErr *err) {
    *out = NULL;
    char *copy = strdup(path);
    if (!copy) return qsf_err_set(err, QSF_E_RUNTIME, "%s: out of memory", path);
    const Reader rd = { .cli = cli, .check = check, .scratch = scratch };
    return read_config(out, rd, copy, text, NULL, err);
}

void qsf_config_close(QSFConfigFile *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) {
        free(c->entries[i].value);
        free(c->entries[i].key);
    }
    for (size_t i = 0; i < c->n_sections; i++) free(c->sections[i].name);
    free(c->entries);
    free(c->sections);
    free(c->path);
    free(c);
}
