/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that take text out of the conversation: to the clipboard, to files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_savefile.h"
#include "ui/app_internal.h"
#include "ui/clipboard.h"
#include "ui/commands.h"
#include "ui/excerpt.h"
#include "ui/export.h"
#include "ui/path.h"

/* A number from 1 with nothing after it, otherwise 0. */
static unsigned number(const char *s) {
    char *end;
    if (*s < '0' || *s > '9') return 0;
    unsigned long n = strtoul(s, &end, 10);
    return *end == '\0' && n <= 1000000000 ? (unsigned)n : 0;
}

static bool no_code(UiApp *a, unsigned k, unsigned n) {
    if (n == 0)
        ui_app_say(a, UI_ERROR, "there is no code in this conversation");
    else
        ui_app_say(a, UI_ERROR, "there is no code %u: this conversation has %u block%s of code", k, n,
                   n == 1 ? "" : "s");
    return false;
}

/* Puts it on the clipboard and says so. Takes what. */
static bool copy(UiApp *a, const char *what, UiExcerpt *t) {
    char size[100], how[400];
    ui_excerpt_size(t, size, sizeof size);
    const bool ok = !t->text.failed && ui_clipboard_set(ui_buf_str(&t->text), t->text.len, how, sizeof how);
    if (ok)
        ui_app_say(a, UI_NOTICE, "copied %s (%s) by %s", what, size, how);
    else
        ui_app_say(a, UI_ERROR, "cannot copy %s (%s): %s; /export FILE or /save-code K FILE writes a file",
                   what, size, t->text.failed ? "out of memory" : how);
    ui_buf_free(&t->text);
    return ok;
}

/* Without its last newline: pasted into a shell, that would run it. */
static bool copy_code(UiApp *a, unsigned k) {
    UiExcerpt t;
    unsigned n;
    char what[40];
    if (!ui_excerpt_code(&a->chat, k, &t, &n)) {
        ui_buf_free(&t.text);
        return no_code(a, k, n);
    }
    if (t.text.len > 0 && t.text.data[t.text.len - 1] == '\n') t.text.data[--t.text.len] = '\0';
    (void)snprintf(what, sizeof what, "code %u", t.number);
    return copy(a, what, &t);
}

static bool copy_message(UiApp *a, unsigned n) {
    UiExcerpt t;
    const UiItem *it;
    char what[40];
    if (!ui_excerpt_message(&a->chat, n, &t, &it)) {
        ui_buf_free(&t.text);
        if (it)
            ui_app_say(a, UI_ERROR, "out of memory");
        else if (n && ui_tree_node(&a->session.tree, n))
            ui_app_say(a, UI_ERROR, "message %u is on another branch; /goto %u goes to it", n, n);
        else if (n)
            ui_app_say(a, UI_ERROR, "there is no message %u", n);
        else
            ui_app_say(a, UI_ERROR, "there is no answer to copy");
        return false;
    }
    (void)snprintf(what, sizeof what, "%s %u", it->kind == UI_USER ? "message" : "answer", t.number);
    return copy(a, what, &t);
}

static bool copy_all(UiApp *a) {
    UiExcerpt t = { .language = "Markdown" };
    if (a->chat.n == 0 || !ui_export_markdown(a, &t.text)) {
        ui_app_say(a, UI_ERROR, "there is nothing to copy");
        ui_buf_free(&t.text);
        return false;
    }
    return copy(a, "the conversation", &t);
}

bool ui_cmd_copy(UiApp *a, const char *name, const char *args) {
    static const char code[] = "code";
    const size_t n = sizeof code - 1;
    if (!*args) return copy_message(a, 0);
    if (strcmp(args, "all") == 0) return copy_all(a);
    if (strcmp(args, code) == 0) return copy_code(a, 0);
    if (strncmp(args, code, n) == 0 && args[n] == ' ') {
        args += n + strspn(args + n, " ");
        if (number(args)) return copy_code(a, number(args));
    } else if (number(args)) {
        return copy_message(a, number(args));
    }
    ui_app_say(a, UI_ERROR, "/%s takes nothing, the number of a message, code K or all", name);
    return false;
}

bool ui_cmd_save_code(UiApp *a, const char *name, const char *args) {
    UiExcerpt t;
    unsigned n;
    char first[16], size[100];
    const size_t len = strcspn(args, " ");
    const bool force = strchr(name, '!') != NULL;
    (void)snprintf(first, sizeof first, "%.*s", (int)(len < 15 ? len : 15), args);
    const char *file = args + len + strspn(args + len, " ");
    if (!number(first) || !*file) {
        ui_app_say(a, UI_ERROR,
                   "/%s needs the number of a block of code and a file name: /save-code 1 main.c", name);
        return false;
    }
    char *path = ui_path_expand(file);
    bool ok = ui_excerpt_code(&a->chat, number(first), &t, &n);
    int why = !path ? ENOMEM : ok ? qsf_savefile_save(path, t.text.data, t.text.len, force) : 0;
    ui_excerpt_size(&t, size, sizeof size);
    if (!ok)
        (void)no_code(a, number(first), n);
    else if (why == EEXIST)
        ui_app_say(a, UI_ERROR, "%s exists: /save-code! %s %s replaces it", path, first, path);
    else if (why)
        ui_app_say(a, UI_ERROR, "%s: cannot write: %s", path ? path : file,
                   why == EINVAL ? "not a regular file" : strerror(why));
    else
        ui_app_say(a, UI_NOTICE, "wrote code %u (%s) to %s", t.number, size, path);
    ui_buf_free(&t.text);
    free(path);
    return ok && why == 0;
}

/* Without a name, or with only an extension: a new file with a name from the title of the conversation. */
static bool export_named(UiApp *a, const char *ending) {
    char path[300], err[600];
    const bool ok = ui_export_new(a, ending, path, sizeof path, err, sizeof err);
    ui_app_say(a, ok ? UI_NOTICE : UI_ERROR, "%s%s", ok ? "wrote " : "", ok ? path : err);
    return ok;
}

bool ui_cmd_export(UiApp *a, const char *name, const char *args) {
    char err[600];
    if (!*args) return export_named(a, "md");
    if (ui_export_format(args)) return export_named(a, args);
    char *path = ui_path_expand(args);
    const bool force = strchr(name, '!') != NULL;
    const bool ok = path && ui_export(a, path, force, err, sizeof err);
    if (ok)
        ui_app_say(a, UI_NOTICE, "wrote %s", path);
    else
        ui_app_say(a, UI_ERROR, "%s", path ? err : "out of memory");
    free(path);
    return ok;
}
