/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The commands about messages that are not sent yet. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/app.h"
#include "ui/commands.h"
#include "ui/path.h"

#define UI_READ_ENTRIES 100000 /* of a directory that are compared with a pattern */

static bool list_queue(UiApp *a) {
    UiBuf b = { 0 };
    if (a->queue.n == 0) ui_buf_puts(&b, "no message is queued");
    for (size_t i = 0; i < a->queue.n; i++)
        ui_buf_printf(&b, "%s%zu  %s", i > 0 ? "\n" : "", i + 1, a->queue.items[i].text);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

/* Reads the number of a queued message, 1 or more; 0: it is not one, which was reported. */
static size_t number_of(UiApp *a, const char *word) {
    char *end;
    const unsigned long n = strtoul(word, &end, 10);
    if (*word >= '0' && *word <= '9' && *end == '\0' && n >= 1 && n <= a->queue.n) return n;
    if (a->queue.n == 0)
        ui_app_say(a, UI_ERROR, "/queue: no message is queued");
    else
        ui_app_say(a, UI_ERROR, "/queue: '%.40s' is not the number of a queued message: 1 to %zu", word,
                   a->queue.n);
    return 0;
}

static bool drop(UiApp *a, const char *word) {
    size_t len, n = 0;
    if (strcmp(word, "all") == 0) {
        ui_app_say(a, UI_NOTICE, "%zu queued messages removed", a->queue.n);
        ui_queue_free(&a->queue);
        return true;
    }
    n = number_of(a, word);
    if (n == 0) return false;
    free(ui_queue_take(&a->queue, n - 1, &len));
    ui_app_say(a, UI_NOTICE, "queued message %zu removed", n);
    return true;
}

bool ui_cmd_queue(UiApp *a, const char *name, const char *args) {
    (void)name;
    size_t len;
    if (!*args) return list_queue(a);
    if (strncmp(args, "drop", 4) == 0 && (args[4] == ' ' || args[4] == '\0'))
        return drop(a, args + 4 + strspn(args + 4, " "));
    const size_t n = number_of(a, args);
    if (n == 0) return false;
    char *text = ui_queue_take(&a->queue, n - 1, &len);
    ui_app_draft(a, text, len);
    free(text);
    return true;
}

/* ---- /read ---- */

typedef struct Matches {
    char *paths[UI_ATTACH_MAX]; /* (n) */
    size_t n;
    bool more;
} Matches;

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add_match(Matches *m, const char *folder, const char *name) {
    UiBuf b = { 0 };
    ui_buf_printf(&b, "%s%s", folder, name);
    if (b.failed || is_directory(ui_buf_str(&b))) {
        ui_buf_free(&b);
    } else if (m->n == UI_ATTACH_MAX) {
        m->more = true;
        ui_buf_free(&b);
    } else {
        m->paths[m->n++] = b.data;
    }
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The files in a directory, given with its slash, whose names match. 0 or errno. */
static int find_matches(const char *folder, const char *pattern, Matches *m) {
    DIR *d = opendir(*folder ? folder : ".");
    struct dirent *e;
    if (!d) return errno;
    for (long n = 0; n < UI_READ_ENTRIES && !m->more && (e = readdir(d)) != NULL; n++) {
        if (fnmatch(pattern, e->d_name, FNM_PERIOD) == 0) add_match(m, folder, e->d_name);
    }
    closedir(d);
    qsort(m->paths, m->n, sizeof *m->paths, by_text);
    return 0;
}

/* Those that are not text are reported and left out. */
static bool read_pattern(UiApp *a, char *path) {
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *pattern = ui_strdup_len(name, strlen(name));
    Matches m = { 0 };
    bool any = false;
    *name = '\0';
    const int code = pattern ? find_matches(path, pattern, &m) : ENOMEM;
    if (code)
        ui_app_say(a, UI_ERROR, "/read: %s: %s", *path ? path : ".", strerror(code));
    else if (m.n == 0)
        ui_app_say(a, UI_ERROR, "/read: no file is named %s%s", path, pattern);
    else if (m.more)
        ui_app_say(a, UI_ERROR, "/read: more than %d files are named %s%s: nothing was attached",
                   UI_ATTACH_MAX, path, pattern);
    for (size_t i = 0; i < m.n; i++) {
        if (!m.more && ui_attach_add(a, m.paths[i])) any = true;
        free(m.paths[i]);
    }
    free(pattern);
    return any;
}

bool ui_cmd_read(UiApp *a, const char *name, const char *args) {
    struct stat st;
    if (!*args) {
        ui_app_say(a, UI_ERROR, "/%s expects a file, or a pattern such as src/*.c", name);
        return false;
    }
    char *path = ui_path_expand(args);
    const bool pattern = path && strpbrk(path, "*?[") && stat(path, &st) != 0;
    const bool ok = path && (pattern ? read_pattern(a, path) : ui_attach_add(a, path));
    free(path);
    return ok;
}
