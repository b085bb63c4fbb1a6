/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads folders with models; implements walk.h. */
#include "src/catalog/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/ascii.h"
#include "src/file/dirhint.h"

#define PARTS_MOST 1000u /* of a model in several files */

/* ---- paths ---- */

size_t qsf_walk_enter(QsfWalk *w, const char *name) {
    const size_t n = strlen(name), before = w->len;
    if (before + 1 + n >= sizeof w->path) return 0;
    w->path[before] = '/';
    memcpy(w->path + before + 1, name, n + 1);
    w->len = before + 1 + n;
    return before;
}

void qsf_walk_leave(QsfWalk *w, size_t len) {
    w->len = len;
    w->path[len] = '\0';
}

/* Visible, and without characters that could be taken for the end of a line. */
static bool is_plain(const char *name) {
    if (*name == '.' || *name == '\0') return false;
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++)
        if (*c < 0x20 || *c == 0x7F) return false;
    return true;
}

static bool is_above(const QsfWalk *w, const struct stat *st) {
    for (unsigned i = 0; i < w->depth; i++)
        if (w->above[i].dev == st->st_dev && w->above[i].ino == st->st_ino) return true;
    return false;
}

static bool begin(QsfWalk *w) {
    struct stat st;
    if (w->stop || w->folders == 0 || w->depth > QSF_WALK_DEPTH || stat(w->path, &st) != 0 ||
        !S_ISDIR(st.st_mode) || is_above(w, &st))
        return false;
    w->above[w->depth].dev = st.st_dev;
    w->above[w->depth++].ino = st.st_ino;
    w->folders--;
    return true;
}

void qsf_walk_each(QsfWalk *w, bool files, void (*fn)(QsfWalk *w, const char *name, void *arg), void *arg) {
    if (!begin(w)) return;
    DIR *d = opendir(w->path);
    const struct dirent *e;
    while (d != NULL && !w->stop && w->entries > 0 && (e = readdir(d)) != NULL) {
        struct stat st;
        w->entries--;
        if (!is_plain(e->d_name)) continue;
        const size_t before = qsf_walk_enter(w, e->d_name);
        if (before == 0) continue;
        if (stat(w->path, &st) == 0 && (files ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode)))
            fn(w, e->d_name, arg);
        qsf_walk_leave(w, before);
    }
    if (d != NULL) closedir(d);
    w->depth--;
}

/* ---- models ---- */

/* Bytes of NAME-00001-of-00003.gguf up to its number, with *n = 3; 0: it is whole. *first: it is number 1. */
static size_t part_stem(const char *name, unsigned *n, bool *first) {
    static const char form[] = "-00001-of-00003.gguf";
    const size_t len = strlen(name), k = sizeof form - 1;
    unsigned number = 0;
    if (len <= k) return 0;
    const char *p = name + len - k;
    for (size_t i = 0; i < k; i++) {
        const bool digit = form[i] >= '0' && form[i] <= '9';
        if (digit ? p[i] < '0' || p[i] > '9' : p[i] != form[i]) return 0;
    }
    for (*n = 0; number < 5; number++) *n = 10 * *n + (unsigned)(p[10 + number] - '0');
    *first = strncmp(p, "-00001", 6) == 0;
    return len - k;
}

/* The other parts lie beside the first one, at w->path, whose name has `stem` bytes before its number. */
static uint64_t other_parts(QsfWalk *w, size_t stem, size_t name_len, unsigned n) {
    char path[QSF_PATH_MAX + 32];
    uint64_t bytes = 0;
    struct stat st;
    for (unsigned i = 2; i <= n && i <= PARTS_MOST; i++) {
        (void)snprintf(path, sizeof path, "%.*s-%05u-of-%05u.gguf", (int)(w->len - name_len + stem), w->path,
                       i, n);
        if (stat(path, &st) == 0 && st.st_size > 0) bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

static void add_sized(QsfWalk *w, const char *name, const char *problem, uint64_t more) {
    struct stat st;
    if (stat(w->path, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) return;
    const uint64_t own = S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    const QsfFoundItem item = { .name = (char *)(uintptr_t)name, /* copied */
                                .path = w->path,
                                .problem = problem,
                                .bytes = own + more,
                                .place = w->place,
                                .dev = st.st_dev,
                                .ino = st.st_ino };
    if (!qsf_found_add(w->found, &item)) w->stop = true;
}

void qsf_walk_add(QsfWalk *w, const char *name, const char *problem) { add_sized(w, name, problem, 0); }

/* A file that is a model by its name; projectors belong to one. */
static void on_file(QsfWalk *w, const char *file, void *arg) {
    (void)arg;
    char name[256];
    unsigned parts = 0;
    bool first = true;
    const bool gguf = qsf_ends_with(file, ".gguf");
    if ((!gguf && !qsf_ends_with(file, ".qsf")) || strstr(file, "mmproj") != NULL) return;
    size_t stem = gguf ? part_stem(file, &parts, &first) : 0;
    if (!first) return;
    const uint64_t more = stem > 0 ? other_parts(w, stem, strlen(file), parts) : 0;
    if (stem == 0) stem = strlen(file) - (gguf ? 5 : 4);
    (void)snprintf(name, sizeof name, "%.*s", (int)stem, file);
    add_sized(w, name, NULL, more);
}

static void on_weights(QsfWalk *w, const char *file, void *arg) {
    struct stat st;
    if (qsf_ends_with(file, ".safetensors") && stat(w->path, &st) == 0 && st.st_size > 0)
        *(uint64_t *)arg += (uint64_t)st.st_size;
}

static bool has_config(QsfWalk *w) {
    const size_t before = qsf_walk_enter(w, "config.json");
    if (before == 0) return false;
    const bool yes = access(w->path, F_OK) == 0;
    qsf_walk_leave(w, before);
    return yes;
}

/* A directory that is a model. */
static void add_directory(QsfWalk *w) {
    uint64_t bytes = 0;
    const char *slash = strrchr(w->path, '/');
    if (!has_config(w) || !qsf_dir_has_weights(w->path)) return;
    qsf_walk_each(w, true, on_weights, &bytes);
    add_sized(w, w->repo != NULL ? w->repo : slash != NULL ? slash + 1 : w->path, NULL, bytes);
}

static void on_folder(QsfWalk *w, const char *name, void *arg) {
    const unsigned *below = arg;
    (void)name;
    if (*below > 0)
        qsf_walk_folder(w, *below - 1);
    else
        add_directory(w);
}

/* Links may lead to the same folder in many ways. */
static bool was_seen(QsfWalk *w) {
    struct stat st;
    if (stat(w->path, &st) != 0) return true;
    for (size_t i = 0; i < w->n_seen; i++)
        if (w->seen[i].dev == st.st_dev && w->seen[i].ino == st.st_ino) return true;
    if (w->n_seen == w->cap_seen) {
        const size_t cap = w->cap_seen > 0 ? 2 * w->cap_seen : 64;
        QsfWalkId *more = realloc(w->seen, cap * sizeof *more);
        if (more == NULL) return true;
        w->seen = more;
        w->cap_seen = cap;
    }
    w->seen[w->n_seen++] = (QsfWalkId){ st.st_dev, st.st_ino };
    return false;
}

void qsf_walk_folder(QsfWalk *w, unsigned below) {
    if (w->n_seen == QSF_WALK_FOLDERS || was_seen(w)) return;
    add_directory(w);
    qsf_walk_each(w, true, on_file, NULL);
    qsf_walk_each(w, false, on_folder, &below);
}

void qsf_walk_place(QsfFound *f, const QsfPlace *place, unsigned index) {
    QsfWalk w = { .found = f, .place = index, .folders = QSF_WALK_FOLDERS, .entries = QSF_WALK_ENTRIES };
    if (!qsf_path_join(w.path, place->path, "", "")) return;
    w.len = strlen(w.path);
    while (w.len > 1 && w.path[w.len - 1] == '/') qsf_walk_leave(&w, w.len - 1);
    switch (place->kind) {
    case QSF_PLACE_HERE: qsf_walk_folder(&w, 0); break;
    case QSF_PLACE_OLLAMA: qsf_walk_ollama(&w); break;
    case QSF_PLACE_HUGGING_FACE: qsf_walk_hugging_face(&w); break;
    default: qsf_walk_folder(&w, QSF_WALK_DEPTH - 2); break;
    }
    free(w.seen);
}
