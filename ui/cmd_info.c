/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that only show something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/format.h"
#include "ui/help.h"

bool ui_cmd_help(UiApp *a, const char *name, const char *args) {
    UiBuf b = { 0 };
    bool ok = true;
    const bool wraps = !a->full_screen && isatty(STDERR_FILENO);
    const int width = wraps ? ui_text_columns(a) : 0;
    if (*args) {
        ok = ui_help_topic(args + (*args == '/'), &b, width);
        if (!ok) ui_app_say(a, UI_ERROR, "/%s: no command or setting '%.40s'", name, args);
    } else if (a->full_screen) {
        ui_app_open_view(a, UI_VIEW_HELP, "");
    } else {
        ui_help_all(&b, false, width);
    }
    if (b.len > 0) ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return ok;
}

static bool show_described(UiApp *a, const char *what) {
    char *text = a->engine.describe(a->engine.self, what);
    if (text)
        ui_app_print(a, UI_OUTPUT, text);
    else
        ui_app_say(a, UI_ERROR, "no model is loaded: use /model FILE");
    bool ok = text != NULL;
    free(text);
    return ok;
}

/* The lines of the model's description that mention a licence. */
static bool show_license(UiApp *a) {
    char *text = a->engine.describe(a->engine.self, "model");
    UiBuf b = { 0 };
    if (!text) return show_described(a, "model");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strcasestr(line, "licen")) ui_buf_printf(&b, "%s\n", line);
    }
    ui_app_print(a, UI_OUTPUT, b.len ? ui_buf_str(&b) : "the model does not name a license");
    ui_buf_free(&b);
    free(text);
    return true;
}

/* The exact prompt of the conversation so far, or with text as the next message. */
static bool show_prompt(UiApp *a, const char *text) {
    char err[400] = "";
    size_t n = 0;
    QSFMessage *m = ui_app_messages(a, &n);
    if (m && *text) m[n++] = (QSFMessage){ .role = "user", .content = text, .len = strlen(text) };
    bool answered = n > 0 && strcmp(m[n - 1].role, "assistant") == 0;
    QSFRequest r = { .messages = m, .n_messages = n, .continue_last = answered };
    char *prompt = m && n > 0 ? a->engine.prompt(a->engine.self, &r, err, sizeof err) : NULL;
    if (prompt)
        ui_app_print(a, UI_OUTPUT, prompt);
    else
        ui_app_say(a, UI_ERROR, "/show prompt: %s",
                   !m       ? "out of memory"
                   : n == 0 ? "the conversation is empty; /show prompt TEXT shows the prompt for a message"
                            : err);
    bool ok = prompt != NULL;
    free(prompt);
    free(m);
    return ok;
}

bool ui_cmd_show(UiApp *a, const char *name, const char *args) {
    if (!*args || strcmp(args, "settings") == 0 || strcmp(args, "parameters") == 0)
        return ui_cmd_set(a, "set", "");
    if (strcmp(args, "model") == 0 || strcmp(args, "info") == 0) return show_described(a, "model");
    if (strcmp(args, "plan") == 0 || strcmp(args, "memory") == 0)
        return ui_need(a, UI_NEEDS_MEMORY, name) && show_described(a, args);
    if (strcmp(args, "template") == 0) return show_described(a, args);
    if (strncmp(args, "prompt", 6) == 0 && strchr(" \t", args[6]))
        return ui_need(a, UI_NEEDS_PROMPT, name) && show_prompt(a, args + 6 + strspn(args + 6, " \t"));
    if (strcmp(args, "system") == 0) return ui_cmd_system(a, "system", "");
    if (strcmp(args, "license") == 0 || strcmp(args, "licence") == 0) return show_license(a);
    ui_app_say(a, UI_ERROR,
               "/%s expects settings, model, system, template, prompt, license, plan or memory, not '%.40s'",
               name, args);
    return false;
}
