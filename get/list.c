/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/json.h"
#include "src/base/paths.h"

#define FILES_MAX 20000 /* of a repository */
#define PAGE_MAX  ((size_t)16 << 20)
#define DEPTH_MAX 4

static int add(GetList *l, const char *path, uint64_t bytes, QsfErr *err) {
    if (l->n == FILES_MAX)
        return qsf_err_set(err, QSF_E_RUNTIME, "the repository has more than %d files", FILES_MAX);
    if (l->n == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 32;
        GetEntry *items = realloc(l->items, cap * sizeof *items);
        if (!items) return qsf_err_memory(err, "the list of files");
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n] = (GetEntry){ strdup(path), bytes };
    if (!l->items[l->n].path) return qsf_err_memory(err, "the list of files");
    l->n++;
    return QSF_OK;
}

void get_list_free(GetList *l) {
    for (size_t i = 0; i < l->n; i++) free(l->items[i].path);
    free(l->items);
    *l = (GetList){ 0 };
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const GetEntry *)a)->path, ((const GetEntry *)b)->path);
}

static void sort(GetList *l) {
    if (l->n > 0) qsort(l->items, l->n, sizeof *l->items, by_path);
}

/* One page: [{"type": "file", "path": ..., "size": ..., "lfs": {"size": ...}}, ...]. Names that are not safe
 * cannot be asked for later: they are left out. */
static int add_page(GetList *l, const char *url, const QsfStrbuf *text, QsfErr *err) {
    QsfErr why = { 0 };
    QsfJson *root = qsf_json_parse(qsf_strbuf_str(text), text->len, &why);
    int rc = QSF_OK;
    if (!root || qsf_json_type(root) != QSF_JSON_ARRAY)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "%s: the answer is not a list of files", url);
    for (size_t i = 0; rc == QSF_OK && i < qsf_json_size(root); i++) {
        const QsfJson *v = qsf_json_at(root, i), *lfs = qsf_json_get(v, "lfs");
        const char *type = qsf_json_string(qsf_json_get(v, "type"), NULL);
        const char *path = qsf_json_string(qsf_json_get(v, "path"), NULL);
        const int64_t size = qsf_json_int(qsf_json_get(v, "size"), 0),
                      real = qsf_json_int(qsf_json_get(lfs, "size"), size);
        if (!path || !type || strcmp(type, "file") != 0 || real < 0) continue;
        if (strlen(path) < GET_WHAT_MAX && get_path_is_safe(path)) rc = add(l, path, (uint64_t)real, err);
    }
    qsf_json_free(root);
    return rc;
}

/* A hub does not tell a repository that does not exist from one that it does not show. */
static int refuse(const GetHttp *h, const GetRef *ref, const GetReply *r, QsfErr *err) {
    if (r->status != 401 && r->status != 403 && r->status != 404)
        return qsf_err_set(err, QSF_E_RUNTIME, "hf:%s/%s: the hub answers HTTP %ld", ref->owner, ref->name,
                           r->status);
    if (r->status == 404)
        return qsf_err_set(err, QSF_E_MODEL,
                           "hf:%s/%s: the hub has no such repository or revision (HTTP 404)", ref->owner,
                           ref->name);
    return qsf_err_set(
        err, QSF_E_MODEL,
        get_http_has_token(h)
            ? "hf:%s/%s: there is no such repository, or it is not shown with this token (HTTP "
              "%ld): its terms may have to be accepted on %s/%s/%s"
            : "hf:%s/%s: there is no such repository, or it is not shown without a token (HTTP "
              "%ld): set HF_TOKEN, and accept its terms on %s/%s/%s if it has any",
        ref->owner, ref->name, r->status, ref->endpoint, ref->owner, ref->name);
}

int get_list_hub(GetHttp *h, const GetRef *ref, GetList *out, QsfErr *err) {
    char url[GET_URL_MAX];
    QsfStrbuf b = QSF_STRBUF_INIT, text = QSF_STRBUF_INIT;
    GetReply r;
    const size_t host = strlen(ref->endpoint);
    qsf_strbuf_addf(&b, "%s/api/models/%s/%s/tree/", ref->endpoint, ref->owner, ref->name);
    get_ref_put_revision(&b, ref->revision);
    qsf_strbuf_adds(&b, "?recursive=true");
    snprintf(url, sizeof url, "%s", qsf_strbuf_str(&b));
    int rc = QSF_OK;
    while (rc == QSF_OK && *url) {
        rc = get_http_text(h, url, PAGE_MAX, &text, &r, err);
        if (rc == QSF_E_RUNTIME)
            qsf_err_prefix(err, "hf:%s/%s: the hub cannot be asked", ref->owner, ref->name);
        if (rc == QSF_OK && r.status != 200) rc = refuse(h, ref, &r, err);
        if (rc == QSF_OK) rc = add_page(out, url, &text, err);
        /* The token goes to this hub only. */
        const bool more = strncmp(r.next, ref->endpoint, host) == 0 && r.next[host] == '/' &&
                          strcmp(r.next, url) != 0;
        snprintf(url, sizeof url, "%s", more ? r.next : "");
    }
    qsf_strbuf_free(&b);
    qsf_strbuf_free(&text);
    sort(out);
    return rc;
}

static int walk(const char *folder, const char *prefix, int depth, GetList *out, QsfErr *err) {
    char path[QSF_PATH_MAX], name[GET_WHAT_MAX];
    struct stat st;
    DIR *d = opendir(folder);
    if (!d) return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", folder, strerror(errno));
    int rc = QSF_OK;
    for (struct dirent *e; rc == QSF_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !get_path_is_safe(e->d_name) ||
            !qsf_path_join(path, folder, "/", e->d_name) || stat(path, &st) != 0 ||
            snprintf(name, sizeof name, "%s%s", prefix, e->d_name) >= (int)sizeof name - 1)
            continue;
        if (S_ISREG(st.st_mode)) rc = add(out, name, (uint64_t)st.st_size, err);
        if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX) continue;
        strcat(name, "/");
        rc = walk(path, name, depth + 1, out, err);
    }
    closedir(d);
    return rc;
}

int get_list_folder(const char *folder, GetList *out, QsfErr *err) {
    const int rc = walk(folder, "", 1, out, err);
    sort(out);
    return rc;
}
