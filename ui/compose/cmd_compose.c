/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The commands about messages that are not sent yet. */
#include <stdlib.h>
#include <string.h>

#include "qsf_glob.h"
#include "ui/app.h"
#include "ui/commands.h"
#include "ui/path.h"

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

/* Those that are not text are reported and left out. */
static bool read_files(UiApp *a, const char *path) {
    char err[600];
    QSFGlob g;
    bool any = false;
    const bool found = qsf_glob_files(&g, path, err, sizeof err);
    if (!found) ui_app_say(a, UI_ERROR, "/read: %s; nothing was attached", err);
    for (size_t i = 0; found && i < g.n; i++) any = ui_attach_add(a, g.paths[i]) || any;
    qsf_glob_free(&g);
    return any;
}

bool ui_cmd_read(UiApp *a, const char *name, const char *args) {
    if (!*args) {
        ui_app_say(a, UI_ERROR, "/%s expects a file, or a pattern such as src/*.c", name);
        return false;
    }
    if (strstr(args, "://")) {
        ui_app_say(a, UI_ERROR, "/%s: %s is a URL: download it first, as with curl -o FILE URL", name, args);
        return false;
    }
    char *path = ui_path_expand(args);
    const bool ok = path && read_files(a, path);
    ui_attach_announce(a);
    free(path);
    return ok;
}
