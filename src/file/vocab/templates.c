/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chat templates next to a vocabulary file (huggingface/transformers processing_utils.py,
 * utils/hub.py), as metadata: chat_template.jinja, additional_chat_templates/NAME.jinja,
 * tokenizer_config.json, and, of processors, chat_template.json and processor_config.json. The first
 * one that has a template of a name counts. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/file/vocab/draft.h"
#include "src/file/whole.h"

#define KEY        "tokenizer.chat_template"
#define FOLDER     "additional_chat_templates"
#define ENDING     ".jinja"
#define MAX_TEXT   ((uint64_t)1 << 20)
#define MAX_JSON   ((uint64_t)16 << 20)
#define NAME_BYTES 60 /* bytes of the name of a template */

static uint32_t count_named(const QsfSource *s) {
    uint32_t n = 0;
    for (uint64_t i = 0; i < s->meta.n; i++) n += strncmp(s->meta.e[i].key, KEY ".", sizeof KEY) == 0;
    return n;
}

/* Adds a template under its name; NULL or "default": the unnamed one. The first one of a name counts. */
static int put(QsfSource *s, const char *name, const char *text, size_t len, QsfErr *err) {
    char key[sizeof KEY + 1 + NAME_BYTES] = KEY;
    if (name != NULL && (*name == '\0' || strlen(name) > NAME_BYTES)) return QSF_OK;
    if (name != NULL && strcmp(name, "default") != 0) (void)snprintf(key, sizeof key, KEY ".%s", name);
    if (qsf_meta_has(s, key)) return QSF_OK;
    if (count_named(s) == QSF_NAMED_TEMPLATES)
        return qsf_err_set(err, QSF_E_MODEL, "%s: more than %u named chat templates next to it",
                           s->files[0].path, QSF_NAMED_TEMPLATES);
    char *owned = qsf_arena_strdup(&s->arena, key, strlen(key), err);
    return owned == NULL ? err->code : qsf_meta_make_str(s, owned, text, len, err);
}

int qsf_hf_templates(QsfSource *s, const QsfJson *v, QsfErr *err) {
    size_t len;
    const char *text = qsf_json_string(v, &len), *key;
    const QsfJson *member;
    int rc = QSF_OK;
    if (text != NULL) return put(s, NULL, text, len, err);
    for (size_t i = 0; i < qsf_json_size(v) && rc == QSF_OK; i++) {
        const QsfJson *one = qsf_json_at(v, i);
        const char *name = qsf_json_string(qsf_json_get(one, "name"), NULL);
        text = qsf_json_string(qsf_json_get(one, "template"), &len);
        if (name != NULL && text != NULL) rc = put(s, name, text, len, err);
    }
    for (const void *it = NULL; rc == QSF_OK && (it = qsf_json_next(v, it, &key, &member)) != NULL;)
        if ((text = qsf_json_string(member, &len)) != NULL) rc = put(s, key, text, len, err);
    return rc;
}

/* --- files --- */

static int read_file(QsfSource *s, const char *file, const char *name, QsfErr *err) {
    QsfWhole w;
    int rc = qsf_read_beside(s, file, MAX_TEXT, &w, err);
    if (w.text == NULL) return rc;
    const size_t mark = qsf_utf8_bom(w.text, (size_t)w.f.size);
    rc = put(s, name, w.text + mark, (size_t)w.f.size - mark, err);
    qsf_whole_close(s, &w);
    return rc;
}

static int read_member(QsfSource *s, const char *file, QsfErr *err) {
    QsfWhole w;
    QsfJson *v;
    if (qsf_meta_has(s, KEY)) return QSF_OK;
    int rc = qsf_read_beside(s, file, MAX_JSON, &w, err);
    if (w.text == NULL) return rc;
    rc = qsf_whole_json(&w, &v, err);
    if (rc == QSF_OK) rc = qsf_hf_templates(s, qsf_json_get(v, "chat_template"), err);
    qsf_json_free(v);
    qsf_whole_close(s, &w);
    return rc;
}

/* Length of the name of a template file without its ending, 0 for others. */
static size_t stem(const char *file) {
    const size_t len = strlen(file), end = strlen(ENDING);
    return len > end && file[0] != '.' && strcmp(file + len - end, ENDING) == 0 ? len - end : 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names of the templates in the folder, at most one too many. */
static int collect(const QsfSource *s, char **names, size_t *n, QsfErr *err) {
    const char *path = s->files[0].path, *slash = strrchr(path, '/');
    char *folder;
    struct dirent *entry;
    int rc = QSF_OK;
    *n = 0;
    if (asprintf(&folder, "%.*s" FOLDER, slash != NULL ? (int)(slash - path) + 1 : 0, path) < 0)
        return qsf_err_memory(err, "%s", path);
    DIR *dir = opendir(folder);
    if (dir == NULL && errno == ENOMEM) rc = qsf_err_memory(err, "%s", folder);
    free(folder);
    while (dir != NULL && rc == QSF_OK && *n <= QSF_NAMED_TEMPLATES && (entry = readdir(dir)) != NULL) {
        const size_t len = stem(entry->d_name);
        if (len == 0 || len > NAME_BYTES) continue;
        if ((names[*n] = strndup(entry->d_name, len)) == NULL)
            rc = qsf_err_memory(err, "%s", path);
        else
            ++*n;
    }
    if (dir != NULL) closedir(dir);
    return rc;
}

static int read_folder(QsfSource *s, QsfErr *err) {
    char *names[QSF_NAMED_TEMPLATES + 1], file[sizeof FOLDER "/" ENDING + NAME_BYTES];
    size_t n;
    int rc = collect(s, names, &n, err);
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(file, sizeof file, FOLDER "/%s" ENDING, names[i]);
        if (rc == QSF_OK) rc = read_file(s, file, names[i], err);
        free(names[i]);
    }
    return rc;
}

int qsf_vocab_template_files(QsfSource *s, QsfErr *err) {
    int rc = read_file(s, "chat_template.jinja", NULL, err);
    return rc == QSF_OK ? read_folder(s, err) : rc;
}

int qsf_vocab_template_members(QsfSource *s, QsfErr *err) {
    int rc = read_member(s, "chat_template.json", err);
    return rc == QSF_OK ? read_member(s, "processor_config.json", err) : rc;
}
