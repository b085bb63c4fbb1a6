/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that a pattern names. */
#include "ui/compose/glob.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/buf.h"

static bool is_pattern(const char *part, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (strchr("*?[", part[i])) return true;
    return false;
}

static size_t part_length(const char *s) { return strcspn(s, "/"); }

static bool is_over(const UiGlob *g) { return g->many || g->large; }

/* A path that has the whole pattern. */
static void add(UiGlob *g, const UiBuf *path) {
    struct stat st;
    if (path->failed || stat(ui_buf_str(path), &st) != 0) return;
    if (S_ISDIR(st.st_mode)) {
        g->folders = true;
    } else if (g->n == UI_GLOB_FILES) {
        g->many = true;
    } else {
        g->paths[g->n] = ui_strdup_len(path->data, path->len);
        g->n += g->paths[g->n] != NULL;
    }
}

static void walk(UiGlob *g, UiBuf *path, const char *rest);

/* What is in the folder `path`, which is empty or ends with a slash. */
static void walk_folder(UiGlob *g, UiBuf *path, const char *part, const char *rest) {
    DIR *d = opendir(path->len > 0 ? path->data : ".");
    const size_t len = path->len;
    struct dirent *e;
    while (d && !is_over(g) && (e = readdir(d)) != NULL) {
        g->large = ++g->looked > UI_GLOB_ENTRIES;
        const bool self = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (g->large || self || fnmatch(part, e->d_name, FNM_PERIOD) != 0) continue;
        /* Without a look at each file that is not a folder. */
        if (*rest && e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) continue;
        ui_buf_puts(path, e->d_name);
        walk(g, path, rest);
        path->len = len;
        if (path->data) path->data[len] = '\0';
    }
    if (d) closedir(d);
}

/* rest: the pattern after the part that is the path. At most UI_GLOB_DEPTH calls at a time. */
static void walk(UiGlob *g, UiBuf *path, const char *rest) {
    const size_t len = path->len;
    while (*rest) {
        const size_t n = part_length(rest);
        if (n > 0 && is_pattern(rest, n)) {
            char *part = ui_strdup_len(rest, n);
            if (part) walk_folder(g, path, part, rest + n);
            free(part);
            break;
        }
        ui_buf_add(path, rest, n + (rest[n] == '/'));
        rest += n + (rest[n] == '/');
    }
    if (!*rest) add(g, path);
    path->len = len;
    if (path->data) path->data[len] = '\0';
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

const char *ui_glob_find(UiGlob *g, const char *pattern) {
    UiBuf path = { 0 };
    size_t depth = 0;
    *g = (UiGlob){ 0 };
    for (const char *p = pattern; *p; p += part_length(p), p += *p == '/') {
        const size_t n = part_length(p);
        if (n == 2 && p[0] == '*' && p[1] == '*')
            return "** is not supported: write a * for each folder, as in src/*/*.c";
        depth += is_pattern(p, n);
    }
    if (depth > UI_GLOB_DEPTH) return "more than 16 parts have patterns";
    walk(g, &path, pattern);
    ui_buf_free(&path);
    qsort(g->paths, g->n, sizeof *g->paths, by_text);
    return NULL;
}

void ui_glob_free(UiGlob *g) {
    for (size_t i = 0; i < g->n; i++) free(g->paths[i]);
    *g = (UiGlob){ 0 };
}
