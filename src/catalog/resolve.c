/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a name means that is not a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_cli.h"
#include "qsf_models.h"
#include "src/base/paths.h"
#include "src/base/strbuf.h"
#include "src/base/utf8.h"
#include "src/catalog/places.h"

#define SECONDS 2.0
#define SHOWN   6 /* names in a hint */

/* How well a model has this name: 0 = not at all. */
typedef enum Match { MATCH_NOT, MATCH_TAG, MATCH_CASE, MATCH_EXACT } Match;

/* NAME means NAME:latest in Ollama, and NAME:TAG if there is only that. */
static Match match_of(const QSFModelEntry *e, const char *name) {
    const size_t n = strlen(name);
    if (strcmp(e->name, name) == 0 || strcmp(qsf_path_name(e->path), name) == 0) return MATCH_EXACT;
    if (strncmp(e->name, name, n) == 0 && strcmp(e->name + n, ":latest") == 0) return MATCH_EXACT;
    if (strcasecmp(e->name, name) == 0 || strcasecmp(qsf_path_name(e->path), name) == 0) return MATCH_CASE;
    return strncmp(e->name, name, n) == 0 && e->name[n] == ':' ? MATCH_TAG : MATCH_NOT;
}

/* The best match, and how many are as good. */
static const QSFModelEntry *best(const QSFModelList *l, const char *name, Match *how, size_t *same) {
    const QSFModelEntry *found = NULL;
    *how = MATCH_NOT;
    *same = 0;
    for (size_t i = 0; i < l->n; i++) {
        const Match m = match_of(&l->items[i], name);
        if (m == MATCH_NOT || m < *how) continue;
        *same = m == *how ? *same + 1 : 1;
        if (m > *how) found = &l->items[i];
        *how = m;
    }
    return found;
}

static void put_clean(QsfStrbuf *b, const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) return;
    copy[qsf_utf8_clean(copy, strlen(copy), false)] = '\0';
    qsf_strbuf_adds(b, copy);
    free(copy);
}

static void end_hint(QsfStrbuf *b, char *hint, size_t cap) {
    (void)snprintf(hint, cap, "%s", qsf_strbuf_str(b));
    hint[qsf_utf8_clean(hint, strlen(hint), false)] = '\0';
    qsf_strbuf_free(b);
}

/* Lists the paths of models with the same name. */
static void say_several(const QSFModelList *l, const char *name, Match how, size_t n, char *hint,
                        size_t cap) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    size_t shown = 0;
    put_clean(&b, name);
    qsf_strbuf_addf(&b, " is the name of %zu models: ", n);
    for (size_t i = 0; i < l->n && shown < SHOWN; i++) {
        if (match_of(&l->items[i], name) != how) continue;
        qsf_strbuf_adds(&b, shown++ > 0 ? ", " : "");
        put_clean(&b, how == MATCH_TAG ? l->items[i].name : l->items[i].path);
    }
    if (n > shown) qsf_strbuf_adds(&b, ", ...");
    end_hint(&b, hint, cap);
}

static bool contains(const char *text, const char *part) {
    const size_t n = strlen(part);
    for (; n >= 3 && *text != '\0'; text++)
        if (strncasecmp(text, part, n) == 0) return true;
    return false;
}

/* Nearest by spelling, with or without the ending; else those that contain it. */
static void say_near(const QSFModelList *l, const char *name, char *hint, size_t cap) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const char **names = calloc(2 * l->n + 1, sizeof *names);
    size_t shown = 0;
    if (names == NULL) return;
    for (size_t i = 0; i < l->n; i++) {
        names[2 * i] = l->items[i].name;
        names[2 * i + 1] = qsf_path_name(l->items[i].path);
    }
    const char *ask = ": no such model; did you mean ";
    const char *near = qsf_nearest(qsf_path_name(name), names, 2 * l->n);
    if (near == NULL && qsf_path_name(name) != name) near = qsf_nearest(name, names, 2 * l->n);
    if (near != NULL) {
        put_clean(&b, name);
        qsf_strbuf_adds(&b, ask);
        put_clean(&b, near);
    }
    for (size_t i = 0; near == NULL && i < l->n && shown < SHOWN; i++) {
        if (!contains(l->items[i].name, qsf_path_name(name))) continue;
        if (shown == 0) put_clean(&b, name);
        qsf_strbuf_adds(&b, shown++ > 0 ? ", " : ask);
        put_clean(&b, l->items[i].name);
    }
    if (b.len > 0) qsf_strbuf_adds(&b, "?");
    free(names);
    end_hint(&b, hint, cap);
}

static void say_folder(const char *dir, char *hint, size_t cap) {
    QSFModelList l;
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (!qsf_models_list(NULL, dir, SECONDS, &l)) return;
    put_clean(&b, dir);
    qsf_strbuf_adds(&b, l.n == 0
                            ? ": there are no models in this folder, and no tokenizer.json or tokenizer.model"
                        : l.n == 1 ? ": this is a folder; name the model in it: "
                                   : ": this is a folder; name one of the models in it: ");
    for (size_t i = 0; i < l.n && i < SHOWN; i++) {
        qsf_strbuf_adds(&b, i > 0 ? ", " : "");
        put_clean(&b, qsf_path_name(l.items[i].path));
    }
    if (l.n > SHOWN) qsf_strbuf_addf(&b, " and %zu more", l.n - SHOWN);
    qsf_models_free(&l);
    end_hint(&b, hint, cap);
}

/* The path of a file that does not exist is left to the one who opens it. */
static void say_unknown(const char *name, char *hint, size_t cap) {
    static const char *const ends[] = { ".gguf", ".qsf", ".safetensors" };
    const size_t n = strlen(name);
    bool path = strchr(name, '/') != NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i]);
        path = path || (n > end && strcasecmp(name + n - end, ends[i]) == 0);
    }
    if (path || errno != ENOENT) return;
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_clean(&b, name);
    qsf_strbuf_adds(&b, ": no such file or model; qsf-chat --list-models lists those of this machine, "
                        "hf:OWNER/NAME downloads one");
    end_hint(&b, hint, cap);
}

/* The folder that it would be in, if it has one: its files may be meant, too. */
static bool list_beside(const char *name, QSFModelList *out) {
    char dir[QSF_PATH_MAX];
    const char *slash = strrchr(name, '/');
    *out = (QSFModelList){ 0 };
    if (slash == NULL || (size_t)(slash - name) + 1 >= sizeof dir) return false;
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(slash - name) + 1, name);
    return access(dir, F_OK) == 0 && qsf_models_list(NULL, dir, SECONDS, out);
}

static char *look_up(const char *name, const char *const *dirs, char *hint, size_t cap) {
    QSFModelList l, beside;
    Match how;
    size_t same;
    if (!qsf_models_list(dirs, NULL, SECONDS, &l)) return strdup(name);
    const QSFModelEntry *e = best(&l, name, &how, &same);
    if (e != NULL && same > 1) say_several(&l, name, how, same, hint, cap);
    if (e == NULL && list_beside(name, &beside)) say_near(&beside, name, hint, cap);
    if (e == NULL && *hint == '\0') say_near(&l, name, hint, cap);
    if (e == NULL) qsf_models_free(&beside);
    if (e == NULL && *hint == '\0' && access(name, F_OK) != 0) say_unknown(name, hint, cap);
    char *path = *hint != '\0' ? NULL : strdup(e != NULL ? e->path : name);
    qsf_models_free(&l);
    return path;
}

char *qsf_model_resolve(const char *name, const char *const *dirs, char *hint, size_t cap) {
    hint[0] = '\0';
    if (*name == '\0') (void)snprintf(hint, cap, "the name of the model is empty");
    if (*name == '\0') return NULL;
    if (strcmp(name, QSF_GUIDE) == 0) return strdup(name);
    if (access(name, F_OK) == 0) {
        if (qsf_model_is_folder(name)) say_folder(name, hint, cap);
        return *hint != '\0' ? NULL : strdup(name);
    }
    struct stat st; /* of a link to nothing, the message is that of the one who opens it */
    return lstat(name, &st) == 0 ? strdup(name) : look_up(name, dirs, hint, cap);
}
