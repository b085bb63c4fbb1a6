/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that a pattern names. */
#include "qsf_glob.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_text.h"
#include "src/base/strbuf.h"

static bool is_pattern(const char *part, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (strchr("*?[", part[i])) return true;
    return false;
}

static size_t part_length(const char *s) { return strcspn(s, "/"); }

static bool is_over(const QSFGlob *g) { return g->many || g->large; }

/* A path that has the whole pattern. */
static void add(QSFGlob *g, const QsfStrbuf *path) {
    struct stat st;
    if (path->failed || stat(qsf_strbuf_str(path), &st) != 0) return;
    if (S_ISDIR(st.st_mode)) {
        g->folders = true;
    } else if (g->n == QSF_GLOB_FILES) {
        g->many = true;
    } else {
        g->paths[g->n] = strndup(path->data, path->len);
        g->n += g->paths[g->n] != NULL;
    }
}

static void walk(QSFGlob *g, QsfStrbuf *path, const char *rest);

/* What is in the folder `path`, which is empty or ends with a slash. */
static void walk_folder(QSFGlob *g, QsfStrbuf *path, const char *part, const char *rest) {
    DIR *d = opendir(path->len > 0 ? qsf_strbuf_str(path) : ".");
    const size_t len = path->len;
    struct dirent *e;
    while (d && !is_over(g) && (e = readdir(d)) != NULL) {
        g->large = ++g->looked > QSF_GLOB_ENTRIES;
        const bool self = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (g->large || self || fnmatch(part, e->d_name, FNM_PERIOD) != 0) continue;
        /* Without a look at each file that is not a folder. */
        if (*rest && e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) continue;
        qsf_strbuf_adds(path, e->d_name);
        walk(g, path, rest);
        path->len = len;
        if (path->data) path->data[len] = '\0';
    }
    if (d) closedir(d);
}

/* rest: the pattern after the part that is the path. At most QSF_GLOB_DEPTH calls at a time. */
static void walk(QSFGlob *g, QsfStrbuf *path, const char *rest) {
    const size_t len = path->len;
    while (*rest) {
        const size_t n = part_length(rest);
        if (n > 0 && is_pattern(rest, n)) {
            char *part = strndup(rest, n);
            if (part) walk_folder(g, path, part, rest + n);
            free(part);
            break;
        }
        qsf_strbuf_add(path, rest, n + (rest[n] == '/'));
        rest += n + (rest[n] == '/');
    }
    if (!*rest) add(g, path);
    path->len = len;
    if (path->data) path->data[len] = '\0';
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* NULL, or why it is not a pattern: then nothing was looked for. */
static const char *find(QSFGlob *g, const char *pattern) {
    QsfStrbuf path = QSF_STRBUF_INIT;
    size_t depth = 0;
    *g = (QSFGlob){ 0 };
    for (const char *p = pattern; *p; p += part_length(p), p += *p == '/') {
        const size_t n = part_length(p);
        if (n == 2 && p[0] == '*' && p[1] == '*')
            return "** is not supported: write a * for each folder, as in src/*/*.c";
        depth += is_pattern(p, n);
    }
    if (depth > QSF_GLOB_DEPTH) return "more than 16 parts have patterns";
    walk(g, &path, pattern);
    qsf_strbuf_free(&path);
    qsort(g->paths, g->n, sizeof *g->paths, by_text);
    return NULL;
}

/* Why the files of a pattern cannot be used, in err; false: they can. */
static bool refuse(const QSFGlob *g, const char *pattern, char *err, size_t cap) {
    if (g->many)
        (void)qsf_text_snprintf(err, cap, "more than %d files are named %s", QSF_GLOB_FILES, pattern);
    else if (g->large)
        (void)qsf_text_snprintf(err, cap, "%s: more than %d files and folders would be compared", pattern,
                                QSF_GLOB_ENTRIES);
    else if (g->n == 0 && g->folders)
        (void)snprintf(err, cap, "only folders are named %s: %s/* means their files", pattern, pattern);
    else if (g->n == 0)
        (void)snprintf(err, cap, "no file is named %s", pattern);
    else
        return false;
    return true;
}

bool qsf_glob_files(QSFGlob *g, const char *arg, char *err, size_t cap) {
    struct stat st;
    if (is_pattern(arg, strlen(arg)) && stat(arg, &st) != 0) {
        const char *wrong = find(g, arg);
        if (wrong) (void)snprintf(err, cap, "%s", wrong);
        return !wrong && !refuse(g, arg, err, cap);
    }
    *g = (QSFGlob){ 0 };
    g->paths[0] = strdup(arg);
    g->n = g->paths[0] != NULL;
    if (g->n == 0) (void)snprintf(err, cap, "out of memory");
    return g->n > 0;
}

void qsf_glob_free(QSFGlob *g) {
    for (size_t i = 0; i < g->n; i++) free(g->paths[i]);
    *g = (QSFGlob){ 0 };
}
