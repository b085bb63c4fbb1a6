/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the input lines of the full screen and of the line mode have in common: history and settings of
 * readline. */
#include <readline/history.h>
#include <readline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ui/app.h"
#include "ui/buf.h"
#include "ui/history.h"
#include "ui/input.h"
#include "ui/input_internal.h"

static struct {
    char *path; /* NULL = it is not written */
    const UiApp *app;
} history;

bool ui_input_is_new(const char *line) {
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    return strspn(line, " \t\n") < strlen(line) && !(last && strcmp(last->line, line) == 0);
}

void ui_input_remember(const char *line) {
    if (!ui_input_is_new(line)) return;
    add_history(line);
    const bool write = !(history.app && history.app->no_save);
    if (history.path && write) (void)ui_history_append(history.path, line);
}

/* In many systems' inputrc the Insert key makes readline take the next key literally, without showing it. */
static void unbind_quoted_insert(void) {
    static const char insert[] = "\x1b[2~";
    Keymap maps[] = { rl_get_keymap_by_name("emacs"), rl_get_keymap_by_name("vi-insert") };
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        int type = ISKMAP;
        rl_command_func_t *f = rl_function_of_keyseq(insert, maps[i], &type);
        if (type == ISFUNC && (f == rl_quoted_insert || f == rl_overwrite_mode))
            rl_bind_keyseq_in_map("\\e[2~", NULL, maps[i]);
    }
}

void ui_input_set_variables(bool pastes) {
    char off[] = "off", on[] = "on";
    /* readline's parameters are not const, but it does not change them. */
    char paste[] = "enable-bracketed-paste", bell[] = "bell-style", none[] = "none",
         mode[] = "show-mode-in-prompt";
    rl_variable_bind(paste, pastes ? on : off);
    rl_variable_bind(mode, off);
    rl_variable_bind(bell, none);
    ui_input_bind_lines();
    unbind_quoted_insert();
}

static void old_entry(void *arg, const char *entry) {
    (void)arg;
    add_history(entry);
}

/* readline would block forever reading bindings from a FIFO. */
static void skip_odd_inputrc(void) {
    const char *path = getenv("INPUTRC"), *home = getenv("HOME");
    char own[4096];
    struct stat st;
    (void)snprintf(own, sizeof own, "%s/.inputrc", home ? home : "");
    if (stat(path && *path ? path : own, &st) == 0 && !S_ISREG(st.st_mode)) setenv("INPUTRC", "/dev/null", 1);
}

void ui_input_set_up(void) {
    rl_readline_name = "qsf-chat";
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    skip_odd_inputrc();
}

void ui_input_history_open(const char *path, const UiApp *app) {
    history.app = app;
    using_history();
    stifle_history(UI_HISTORY_MAX);
    if (!path) return;
    history.path = ui_strdup_len(path, strlen(path));
    ui_history_read(path, old_entry, NULL);
}

void ui_input_history_close(void) {
    clear_history();
    free(history.path);
    history.path = NULL;
}
