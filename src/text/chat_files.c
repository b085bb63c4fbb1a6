/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The folders of template files: the user's (templates in the configuration directory) before the installed
 * one. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/paths.h"
#include "src/text/chat_impl.h"

#define ENDING    ".jinja"
#define MAX_BYTES (1u << 20)
#define MAX_NAMES 1000

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
    return path;
}

/* The last part of path without its ending. */
static char *base_name(const char *path) {
    const char *slash = strrchr(path, '/'), *last = slash == NULL ? path : slash + 1;
    size_t len = stem(last);
    return strndup(last, len > 0 ? len : strlen(last));
}

static int read_path(const char *path, char **text, size_t *len, QsfErr *err) {
    QsfFile f;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    *text = NULL;
    if (f.size > MAX_BYTES)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: more than %u bytes are no chat template", path, MAX_BYTES);
    else if ((*text = malloc(f.size + 1)) == NULL)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "out of memory: %s", path);
    else
        rc = qsf_file_pread(&f, *text, f.size, 0, err);
    if (rc == QSF_OK) {
        *len = f.size;
        (*text)[f.size] = '\0';
    } else {
        free(*text);
    }
    qsf_file_close(&f);
    return rc;
}

int qsf_chat_file_read(const char *name, char **text, size_t *len, char **base, QsfErr *err) {
    char *path = find(name);
    if (path == NULL) return unknown_name(name, err);
    int rc = read_path(path, text, len, err);
    *base = rc == QSF_OK ? base_name(path) : NULL;
    free(path);
    if (rc != QSF_OK || *base != NULL) return rc;
    free(*text);
    return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: %s", name);
}
