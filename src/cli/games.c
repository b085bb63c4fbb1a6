/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of games: implements qsf_games.h. */
#include "qsf_games.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/paths.h"
#include "src/base/strbuf.h"
#include "src/cli/ini.h"

#define OWN       "/games/"
#define INSTALLED "templates/games"
#define NAMES_MAX 256u /* games in a list */

typedef struct Reader {
    QSFGame *g;
    const char *path;
    QsfStrbuf system, assistant, user;
} Reader;

static bool is_name(const char *name) {
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return n > 0 && name[n] == '\0' && n < sizeof((QSFGame *)0)->name;
}

static bool refuse(QsfErr *why, const char *what, const char *name) {
    (void)qsf_err_set(why, QSF_E_USAGE, "%s '%s'", what, name);
    return false;
}

/* A file that is named in a game lies beside it. */
static const char *beside(const Reader *r, const QSFSetting *row, const char *value, char *out, size_t cap) {
    const char *slash = strrchr(r->path, '/');
    if (strcmp(row->arg != NULL ? row->arg : "", "FILE") != 0 || value[0] == '/' || slash == NULL)
        return value;
    if (strcmp(value, "off") == 0 || strcmp(value, "any") == 0) return value;
    snprintf(out, cap, "%.*s/%s", (int)(slash - r->path), r->path, value);
    return out;
}

static bool take_setting(Reader *r, const QsfIniItem *item, QsfErr *why) {
    const QSFSetting *row = qsf_setting_find(item->name);
    char path[QSF_PATH_MAX + QSF_SETTING_TEXT], err[400];
    if (row == NULL) return refuse(why, "there is no setting", item->name);
    if (!(row->flags & QSF_SETTING_LIVE)) return refuse(why, "a game cannot change the setting", item->name);
    if (qsf_setting_set(&r->g->settings, row, beside(r, row, item->value, path, sizeof path), err,
                        sizeof err) == 0)
        return true;
    (void)qsf_err_set(why, QSF_E_USAGE, "%s", err);
    return false;
}

/* Lines after the first are indented. */
static bool take_text(QsfStrbuf *b, const QsfIniItem *item) {
    if (item->more) qsf_strbuf_adds(b, "\n");
    qsf_strbuf_adds(b, item->value);
    return true;
}

static bool take(void *arg, const QsfIniItem *item, unsigned *line, QsfErr *why) {
    Reader *r = arg;
    const struct {
        const char *section, *name;
        QsfStrbuf *to;
    } texts[] = { { "system", "text", &r->system },
                  { "first", "assistant", &r->assistant },
                  { "first", "user", &r->user } };
    const char *const sections = "game settings system first";
    (void)line;
    if (item->name == NULL) {
        const char *at = strstr(sections, item->section);
        return at != NULL && item->section[0] != '\0' && strchr(item->section, ' ') == NULL
                   ? true
                   : refuse(why, "expected [game], [settings], [system] or [first], not", item->section);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(item->section, texts[i].section) == 0 && strcmp(item->name, texts[i].name) == 0)
            return take_text(texts[i].to, item);
    if (strcmp(item->section, "settings") == 0 && !item->more) return take_setting(r, item, why);
    if (strcmp(item->section, "game") != 0 || strcmp(item->name, "about") != 0)
        return refuse(why, "unknown key", item->name);
    snprintf(r->g->about, sizeof r->g->about, "%s", item->value);
    return true;
}

static bool own_path(const char *name, char path[QSF_PATH_MAX]) {
    char home[QSF_PATH_MAX], file[80];
    snprintf(file, sizeof file, "%s.ini", name);
    return qsf_path_config_home(home) && qsf_path_join(path, home, OWN, file);
}

static bool installed_path(const char *name, char path[QSF_PATH_MAX]) {
    char dir[QSF_PATH_MAX], file[80];
    snprintf(file, sizeof file, "/%s.ini", name);
    return qsf_path_data(INSTALLED, dir) && qsf_path_join(path, dir, file, "");
}

static int read_file(Reader *r, const char *path, bool *missing, QsfErr *err) {
    r->path = path;
    return qsf_ini_read(path, take, r, missing, err);
}

/* Takes the texts that are there. */
static bool finish(Reader *r) {
    QSFGame *g = r->g;
    const bool ok = qsf_strbuf_ok(&r->system) && qsf_strbuf_ok(&r->assistant) && qsf_strbuf_ok(&r->user);
    g->system = r->system.len > 0 ? qsf_strbuf_take(&r->system, NULL) : NULL;
    g->assistant = r->assistant.len > 0 ? qsf_strbuf_take(&r->assistant, NULL) : NULL;
    g->user = r->user.len > 0 ? qsf_strbuf_take(&r->user, NULL) : NULL;
    qsf_strbuf_free(&r->system);
    qsf_strbuf_free(&r->assistant);
    qsf_strbuf_free(&r->user);
    return ok;
}

QSFGame *qsf_game_read(const char *name, char *err, size_t cap) {
    QsfErr e = { 0 };
    char path[QSF_PATH_MAX];
    QSFGame *g = calloc(1, sizeof *g);
    Reader r = { .g = g };
    bool missing = true;
    int rc = QSF_OK;
    if (g != NULL) qsf_settings_default(&g->settings);
    if (g != NULL && name != NULL && is_name(name)) {
        snprintf(g->name, sizeof g->name, "%s", name);
        if (own_path(name, path)) rc = read_file(&r, path, &missing, &e);
        if (missing) qsf_err_clear(&e);
        if (missing && installed_path(name, path)) rc = read_file(&r, path, &missing, &e);
    }
    const bool whole = g != NULL && finish(&r);
    if (g == NULL || !whole)
        snprintf(err, cap, "out of memory");
    else if (missing)
        snprintf(err, cap, "there is no game '%.60s'", name != NULL ? name : "");
    else if (rc != QSF_OK)
        snprintf(err, cap, "%s", e.msg);
    if (whole && !missing && rc == QSF_OK) return g;
    qsf_game_free(g);
    return NULL;
}

void qsf_game_free(QSFGame *g) {
    if (g == NULL) return;
    free(g->system);
    free(g->assistant);
    free(g->user);
    free(g);
}

/* ---- the list ---- */

typedef struct Names {
    char name[NAMES_MAX][sizeof((QSFGame *)0)->name];
    size_t n;
} Names;

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void add_from(Names *l, const char *dir) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    while (d != NULL && l->n < NAMES_MAX && (e = readdir(d)) != NULL) {
        char name[sizeof l->name[0]];
        const size_t len = strlen(e->d_name);
        if (len < 5 || len - 4 >= sizeof name || strcmp(e->d_name + len - 4, ".ini") != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(len - 4), e->d_name);
        bool known = !is_name(name);
        for (size_t i = 0; i < l->n && !known; i++) known = strcmp(l->name[i], name) == 0;
        if (!known) memcpy(l->name[l->n++], name, sizeof name);
    }
    if (d != NULL) closedir(d);
}

char *qsf_game_names(void) {
    char home[QSF_PATH_MAX], dir[QSF_PATH_MAX];
    QsfStrbuf b = QSF_STRBUF_INIT;
    Names *l = calloc(1, sizeof *l);
    if (l == NULL) return NULL;
    if (qsf_path_config_home(home) && qsf_path_join(dir, home, OWN, "")) add_from(l, dir);
    if (qsf_path_data(INSTALLED, dir)) add_from(l, dir);
    qsort(l->name, l->n, sizeof l->name[0], by_name);
    for (size_t i = 0; i < l->n; i++) qsf_strbuf_add(&b, l->name[i], strlen(l->name[i]) + 1);
    free(l);
    qsf_strbuf_add(&b, "", 1);
    return qsf_strbuf_take(&b, NULL);
}
