/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Caches with a layout of their own. Hugging Face: models--OWNER--NAME/snapshots/REVISION, whose files are
 * links to blobs, and refs/main, which names a revision (huggingface/huggingface_hub, docs/source/en/guides/
 * manage-cache.md). Ollama: manifests/HOST/OWNER/NAME/TAG is JSON with layers, and blobs/sha256-DIGEST
 * (ollama/ollama, types/model/name.go and manifest). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/catalog/walk.h"

#define MANIFEST_MAX (1u << 20)
#define NAME_MAX_OF  300

/* Reads a regular file of less than cap bytes as text. */
static size_t read_text(const char *path, char *dst, size_t cap) {
    struct stat st;
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    dst[0] = '\0';
    if (fd < 0) return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size < cap) {
        for (ssize_t got; n + 1 < cap && (got = read(fd, dst + n, cap - 1 - n)) > 0;) n += (size_t)got;
    }
    close(fd);
    dst[n] = '\0';
    return n;
}

/* ---- Hugging Face ---- */

/* What refs/main names, or "". It is a folder of snapshots and nothing else. */
static void read_main(QsfWalk *w, char *revision, size_t cap) {
    revision[0] = '\0';
    const size_t before = qsf_walk_enter(w, "refs/main");
    if (before == 0) return;
    (void)read_text(w->path, revision, cap);
    qsf_walk_leave(w, before);
    revision[strcspn(revision, "\r\n ")] = '\0';
    if (strchr(revision, '/') != NULL || revision[0] == '.') revision[0] = '\0';
}

static void on_snapshot(QsfWalk *w, const char *name, void *arg) {
    const char *only = arg;
    if (*only == '\0' || strcmp(name, only) == 0) qsf_walk_folder(w, 3);
}

static bool has_folder(QsfWalk *w, const char *name) {
    struct stat st;
    const size_t before = qsf_walk_enter(w, name);
    if (before == 0) return false;
    const bool yes = stat(w->path, &st) == 0 && S_ISDIR(st.st_mode);
    qsf_walk_leave(w, before);
    return yes;
}

/* models--OWNER--NAME. Of several revisions the one that refs/main names, if it is there. */
static void on_repo(QsfWalk *w, const char *folder, void *arg) {
    (void)arg;
    static const char prefix[] = "models--";
    char repo[NAME_MAX_OF], revision[100];
    if (strncmp(folder, prefix, sizeof prefix - 1) != 0) return;
    (void)snprintf(repo, sizeof repo, "%s", folder + sizeof prefix - 1);
    char *dashes = strstr(repo, "--");
    if (dashes != NULL) {
        *dashes = '/';
        memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    }
    read_main(w, revision, sizeof revision);
    const size_t before = qsf_walk_enter(w, "snapshots");
    if (before == 0) return;
    if (*revision != '\0' && !has_folder(w, revision)) revision[0] = '\0';
    w->repo = repo;
    qsf_walk_each(w, false, on_snapshot, revision);
    w->repo = NULL;
    qsf_walk_leave(w, before);
}

void qsf_walk_hugging_face(QsfWalk *w) { qsf_walk_each(w, false, on_repo, NULL); }

/* ---- Ollama ---- */

static bool is_hex(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f'))) return false;
    return true;
}

/* "sha256:" and 64 digits: nothing that could lead out of the folder of blobs. */
static bool take_digest(const QsfJson *layer, char digest[65]) {
    const char *s = qsf_json_string(qsf_json_get(layer, "digest"), NULL);
    if (s == NULL || strncmp(s, "sha256", 6) != 0 || (s[6] != ':' && s[6] != '-') || strlen(s) != 71 ||
        !is_hex(s + 7, 64))
        return false;
    memcpy(digest, s + 7, 65);
    return true;
}

/* The digest of the weights in a manifest; *adapter: an adapter changes them. false if there is none. */
static bool find_digest(const char *json, size_t len, char digest[65], bool *adapter) {
    QsfErr err = { 0 };
    bool found = false;
    *adapter = false;
    QsfJson *root = qsf_json_parse(json, len, &err);
    const QsfJson *layers = root != NULL ? qsf_json_get(root, "layers") : NULL;
    for (size_t i = 0; layers != NULL && i < qsf_json_size(layers); i++) {
        const QsfJson *layer = qsf_json_at(layers, i);
        const char *type = layer != NULL ? qsf_json_string(qsf_json_get(layer, "mediaType"), NULL) : NULL;
        if (type == NULL) continue;
        if (strcmp(type, "application/vnd.ollama.image.adapter") == 0) *adapter = true;
        if (strcmp(type, "application/vnd.ollama.image.model") == 0)
            found = found || take_digest(layer, digest);
    }
    qsf_json_free(root);
    return found;
}

/* The parts of a name, from the folders of its manifest. */
typedef struct Name {
    size_t root_len; /* bytes of the path of the store */
    const char *host, *owner, *model;
} Name;

/* As Ollama shows it: without the host and the owner that it assumes. */
static void print_name(const Name *n, const char *tag, char *dst, size_t cap) {
    const bool own_host = strcmp(n->host, "registry.ollama.ai") == 0;
    const bool library = own_host && strcmp(n->owner, "library") == 0;
    (void)snprintf(dst, cap, "%s%s%s%s%s:%s", own_host ? "" : n->host, own_host ? "" : "/",
                   library ? "" : n->owner, library ? "" : "/", n->model, tag);
}

static void on_tag(QsfWalk *w, const char *tag, void *arg) {
    const Name *n = arg;
    char digest[65], blob[90], name[4 * 256];
    bool adapter = false;
    char *json = malloc(MANIFEST_MAX);
    const size_t len = json != NULL ? read_text(w->path, json, MANIFEST_MAX) : 0;
    const bool found = len > 0 && find_digest(json, len, digest, &adapter);
    free(json);
    if (!found) return;
    print_name(n, tag, name, sizeof name);
    char manifest[QSF_PATH_MAX];
    memcpy(manifest, w->path, w->len + 1);
    const size_t len_before = w->len;
    qsf_walk_leave(w, n->root_len);
    (void)snprintf(blob, sizeof blob, "blobs/sha256-%s", digest);
    if (qsf_walk_enter(w, blob) != 0) qsf_walk_add(w, name, adapter ? "it has an adapter (LoRA)" : NULL);
    memcpy(w->path, manifest, len_before + 1);
    w->len = len_before;
}

static void on_model(QsfWalk *w, const char *name, void *arg) {
    Name *n = arg;
    n->model = name;
    qsf_walk_each(w, true, on_tag, n);
}

static void on_owner(QsfWalk *w, const char *name, void *arg) {
    Name *n = arg;
    n->owner = name;
    qsf_walk_each(w, false, on_model, n);
}

static void on_host(QsfWalk *w, const char *name, void *arg) {
    Name *n = arg;
    n->host = name;
    qsf_walk_each(w, false, on_owner, n);
}

void qsf_walk_ollama(QsfWalk *w) {
    Name n = { .root_len = w->len };
    const size_t before = qsf_walk_enter(w, "manifests");
    if (before == 0) return;
    qsf_walk_each(w, false, on_host, &n);
    qsf_walk_leave(w, before);
}
