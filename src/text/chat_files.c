/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The folders of template files: the user's (templates in the configuration directory) before the installed
 * one. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/paths.h"
#include "src/text/chat_impl.h"

#define ENDING    ".jinja"
#define MAX_BYTES ((size_t)1 << 20)
#define MAX_NAMES 1000

/* Names that stand for another file. */
static const char *const aliases[][2] = { { "mistral", "mistral-v1" } };

/* The folders that exist, in the order of search; free() each. */
static void folders(char *out[2]) {
    char *config = qsf_path_config_home();
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (config != NULL) {
        qsf_strbuf_adds(&b, config);
        qsf_strbuf_adds(&b, "/templates");
    }
    free(config);
    out[0] = b.len > 0 ? qsf_strbuf_take(&b, NULL) : NULL;
    out[1] = qsf_path_data("templates");
}

/* Length of a file name without the ending, 0 when it does not have it. */
static size_t stem(const char *name) {
    size_t len = strlen(name), end = strlen(ENDING);
    return len > end && name[0] != '.' && strcmp(name + len - end, ENDING) == 0 ? len - end : 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void collect(const char *folder, char **names, size_t *n) {
    DIR *dir = folder == NULL ? NULL : opendir(folder);
    struct dirent *entry;
    while (dir != NULL && *n < MAX_NAMES && (entry = readdir(dir)) != NULL) {
        size_t len = stem(entry->d_name);
        if (len > 0 && (names[*n] = strndup(entry->d_name, len)) != NULL) ++*n;
    }
    if (dir != NULL) closedir(dir);
}

char *qsf_chat_template_list(void) {
    char *dirs[2], **names = calloc(MAX_NAMES, sizeof *names);
    size_t n = 0;
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (names == NULL) return NULL;
    folders(dirs);
    for (int i = 0; i < 2; i++) {
        collect(dirs[i], names, &n);
        free(dirs[i]);
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) qsf_strbuf_add(&b, names[i], strlen(names[i]) + 1);
    qsf_strbuf_addc(&b, '\0');
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
    return qsf_strbuf_take(&b, NULL);
}

static int unknown_name(const char *name, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *list = qsf_chat_template_list();
    for (const char *p = list; p != NULL && *p != '\0'; p += strlen(p) + 1) {
        qsf_strbuf_adds(&b, p == list ? "" : ", ");
        qsf_strbuf_adds(&b, p);
    }
    if (b.len == 0) qsf_strbuf_adds(&b, "none were found");
    qsf_err_set(err, QSF_E_USAGE, "no chat template \"%s\"; known are: %s, or the path of a file", name,
                qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
    free(list);
    return QSF_E_USAGE;
}

/* folder/name, with the ending added where it is missing; NULL when there is no such file. */
static char *in_folder(const char *folder, const char *name) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (folder == NULL || *name == '\0') return NULL;
    qsf_strbuf_addf(&b, "%s/%s%s", folder, name, stem(name) > 0 ? "" : ENDING);
    char *path = qsf_strbuf_take(&b, NULL);
    if (path != NULL && access(path, F_OK) == 0) return path;
    free(path);
    return NULL;
}

/* Where the template is, or NULL. */
static char *find(const char *name) {
    char *dirs[2], *path = NULL;
    folders(dirs);
    for (int i = 0; i < 2; i++) {
        if (path == NULL && strchr(name, '/') == NULL) path = in_folder(dirs[i], name);
        free(dirs[i]);
    }
    if (path == NULL && access(name, F_OK) == 0) path = strdup(name);
    for (size_t i = 0; path == NULL && i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i][0], name) == 0) path = find(aliases[i][1]);
    return path;
}

/* The same for FILE:NAME too; *variant is then NAME, else NULL. */
static char *locate(const char *name, const char **variant) {
    char *path = find(name);
    const char *colon = strrchr(name, ':');
    *variant = NULL;
    if (path != NULL || colon == NULL || colon == name || colon[1] == '\0') return path;
    char *before = strndup(name, (size_t)(colon - name));
    path = before == NULL ? NULL : find(before);
    free(before);
    *variant = colon + 1;
    return path;
}

/* The last part of path without its ending, and behind it the variant. */
static char *base_name(const char *path, const char *variant) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/') from--;
    char *last = strndup(path + from, end - from);
    if (last == NULL) return NULL;
    size_t len = stem(last);
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "%.*s%s%s", (int)(len > 0 ? len : strlen(last)), last, variant != NULL ? ":" : "",
                    variant != NULL ? variant : "");
    free(last);
    return qsf_strbuf_take(&b, NULL);
}

int qsf_chat_read_path(const char *path, size_t max, char **text, size_t *len, QsfErr *err) {
    QsfFile f;
    *text = NULL;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    if (f.size > max)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: more than %zu bytes are no chat template", path, max);
    else if ((*text = malloc(f.size + 1)) == NULL)
        rc = qsf_err_memory(err, "%s", path);
    else
        rc = qsf_file_pread(&f, *text, f.size, 0, err);
    if (rc == QSF_OK) {
        *len = f.size;
        (*text)[f.size] = '\0';
    } else {
        free(*text);
        *text = NULL;
    }
    qsf_file_close(&f);
    return rc;
}

/* A folder or a .json file is a model's configuration. */
static bool is_config(const char *path) {
    struct stat st;
    size_t len = strlen(path), end = strlen(".json");
    return (len > end && strcmp(path + len - end, ".json") == 0) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

void qsf_chat_file_free(QsfChatFile *f) {
    free(f->text);
    free(f->name);
    qsf_json_free(f->config);
    *f = (QsfChatFile){ 0 };
}

int qsf_chat_file_read(const char *name, QsfChatFile *out, QsfErr *err) {
    const char *variant;
    int rc;
    *out = (QsfChatFile){ 0 };
    char *path = locate(name, &variant);
    if (path == NULL) return unknown_name(name, err);
    if (is_config(path))
        rc = qsf_chat_config_read(path, variant, out, err);
    else if (variant != NULL)
        rc = qsf_err_set(err, QSF_E_USAGE, "%s: holds one template, none is named \"%s\"", path, variant);
    else
        rc = qsf_chat_read_path(path, MAX_BYTES, &out->text, &out->len, err);
    if (rc == QSF_OK && (out->name = base_name(path, variant)) == NULL)
        rc = qsf_err_memory(err, "%s", name);
    free(path);
    if (rc != QSF_OK) qsf_chat_file_free(out);
    return rc;
}
