/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion with Tab. */
#include "ui/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/commands.h"
#include "ui/path.h"

/* A file name with control characters cannot be typed, so it is not offered. */
static bool typeable(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    }
    return true;
}

static void add(UiCompletion *c, const char *text, const char *after, const char *help) {
    if (!typeable(text)) return;
    if (c->n == UI_CHOICES || strlen(text) + strlen(after) >= sizeof c->choices->text) return;
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 16;
        UiChoice *p = realloc(c->choices, cap * sizeof *p);
        if (!p) return;
        c->choices = p;
        c->cap = cap;
    }
    UiChoice *o = &c->choices[c->n++];
    (void)snprintf(o->text, sizeof o->text, "%s%s", text, after);
    (void)snprintf(o->help, sizeof o->help, "%s", help);
}

static bool begins(const char *name, const char *word, size_t len) { return strncmp(name, word, len) == 0; }

/* Command names, and after the first letter also the settings that work as commands. */
static void commands(UiCompletion *c, const char *word, size_t len, const char *slash, bool settings) {
    char text[80];
    for (size_t i = 0; i < ui_command_count(); i++) {
        const UiCommand *cmd = ui_command_at(i);
        if (!begins(cmd->name, word, len)) continue;
        (void)snprintf(text, sizeof text, "%s%s", slash, cmd->name);
        add(c, text, cmd->args[0] ? " " : "", cmd->help);
    }
    for (size_t i = 0; settings && len > 0 && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!begins(row->name, word, len) || ui_command_find(row->name)) continue;
        (void)snprintf(text, sizeof text, "%s%s", slash, row->name);
        add(c, text, " ", row->help);
    }
}

static void settings(UiCompletion *c, const char *word, size_t len) {
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        if (begins(qsf_setting_at(i)->name, word, len))
            add(c, qsf_setting_at(i)->name, " ", qsf_setting_at(i)->help);
    }
}

static void templates(UiCompletion *c, const char *word, size_t len) {
    char *names = qsf_template_names();
    for (const char *p = names; p && *p; p += strlen(p) + 1) {
        if (begins(p, word, len)) add(c, p, "", "");
    }
    free(names);
    if (begins("model", word, len)) add(c, "model", "", "the model's own");
    if (begins("off", word, len)) add(c, "off", "", "plain continuation");
}

static void sessions(UiCompletion *c, const char *word, size_t len) {
    size_t n = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    for (size_t i = 0; all && i < n; i++) {
        if (begins(all[i].name, word, len)) add(c, all[i].name, "", "");
    }
    free(all);
}

static void shows(UiCompletion *c, const char *word, size_t len) {
    static const char *const names[] = { "settings", "model",   "system", "template",
                                         "prompt",   "license", "plan",   "memory" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (begins(names[i], word, len)) add(c, names[i], "", "");
    }
}

/* Values of settings that are words; the unit test checks that the settings accept them. */
static const char *const values[][2] = {
    { "ram-budget", "auto 25% 50%" },
    { "pin", "auto 0" },
    { "threads", "auto" },
    { "slots", "auto 1 2 3 4" },
    { "embedding", "auto resident lru" },
    { "io", "auto uring pread mmap" },
    { "direct", "auto on off" },
    { "ctx", "auto" },
    { "batch", "auto" },
    { "kv-type", "auto f16 f32 q8 q6 q4 q2" },
    { "k-type", "auto f16 f32 q8 q6 q4 q2" },
    { "v-type", "auto f16 f32 q8 q6 q4 q2" },
    { "cpu-mask", "best ref sse42 avx2 avxvnni avx512 avx512vnni avx512vbmi neon dotprod i8mm" },
    { "seed", "random" },
    { "ignore-eos", "on off" },
    { "show-thinking", "on off" },
    { "reasoning", "auto high low medium off on" },
    { "allow-special", "on off" },
};

static void words(UiCompletion *c, const char *list, const char *word, size_t len) {
    for (char one[40]; *list; list += strcspn(list, " "), list += *list == ' ') {
        (void)snprintf(one, sizeof one, "%.*s", (int)strcspn(list, " "), list);
        if (begins(one, word, len)) add(c, one, "", "");
    }
}

static void setting_values(UiCompletion *c, const char *setting, const char *word, size_t len) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(values[i][0], setting) == 0) words(c, values[i][1], word, len);
    }
    if (strcmp(setting, "template") == 0) templates(c, word, len);
}

static void add_file(void *arg, const char *name, bool is_dir) { add(arg, name, is_dir ? "/" : "", ""); }

/* The argument of a command, starting at `word`. */
static void argument(UiCompletion *c, const UiCommand *cmd, const char *word, size_t len) {
    switch (cmd->arg_kind) {
    case UI_ARG_NONE: break;
    case UI_ARG_COMMAND: commands(c, word, len, "", true); break;
    case UI_ARG_SETTING: settings(c, word, len); break;
    case UI_ARG_BUDGET: setting_values(c, "ram-budget", word, len); break;
    case UI_ARG_IO:
        setting_values(c, "io", word, len);
        if (begins("direct", word, len)) add(c, "direct", " ", "on, off or auto: read past the page cache");
        break;
    case UI_ARG_SHOW: shows(c, word, len); break;
    case UI_ARG_THINK: words(c, "show hide", word, len); break;
    case UI_ARG_TEMPLATE: templates(c, word, len); break;
    case UI_ARG_SESSION: sessions(c, word, len); break;
    case UI_ARG_MODEL:
        if (begins(QSF_GUIDE, word, len)) add(c, QSF_GUIDE, "", "the built-in guide to this program");
        break;
    case UI_ARG_FILE: break;
    }
    bool files = cmd->arg_kind == UI_ARG_FILE || cmd->arg_kind == UI_ARG_MODEL ||
                 (cmd->arg_kind == UI_ARG_SESSION && len > 0) ||
                 (cmd->arg_kind == UI_ARG_TEMPLATE && memchr(word, '/', len));
    char *typed = files ? ui_strdup_len(word, len) : NULL;
    if (typed) ui_path_match(typed, add_file, c, UI_CHOICES);
    free(typed);
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const UiChoice *)a)->text, ((const UiChoice *)b)->text);
}

/* After "/set NAME " or "/io direct " a value of a setting follows: returns its row and moves *at to the
 * value. */
static const QSFSetting *value_of(const UiCommand *cmd, const char *line, size_t *at, size_t point) {
    size_t end = *at + strcspn(line + *at, " ");
    bool names = cmd->arg_kind == UI_ARG_SETTING || cmd->arg_kind == UI_ARG_IO;
    if (!names || end >= point) return NULL;
    char *name = ui_strdup_len(line + *at, end - *at);
    const QSFSetting *row = name ? qsf_setting_find(name) : NULL;
    if (cmd->arg_kind == UI_ARG_IO && row && strcmp(row->name, "direct") != 0) row = NULL;
    free(name);
    *at = end + strspn(line + end, " ");
    if (*at > point) *at = point;
    return row;
}

static void arguments(UiCompletion *c, const char *line, size_t name_end, size_t point) {
    char *name = ui_strdup_len(line + 1, name_end - 1);
    const QSFSetting *row = NULL;
    bool several = false;
    const UiCommand *cmd = name ? ui_command_lookup(name, true, &row, &several) : NULL;
    free(name);
    c->from = name_end + strspn(line + name_end, " ");
    if (c->from > point) c->from = point;
    /* A file name may contain blanks; anything else is one word. */
    bool more = cmd && cmd->arg_kind != UI_ARG_FILE && cmd->arg_kind != UI_ARG_MODEL &&
                memchr(line + c->from, ' ', point - c->from);
    if (more) row = value_of(cmd, line, &c->from, point);
    if (memchr(line + c->from, ' ', point - c->from) && row) return;
    if (row)
        setting_values(c, row->name, line + c->from, point - c->from);
    else if (cmd && !more)
        argument(c, cmd, line + c->from, point - c->from);
}

bool ui_complete(UiCompletion *c, const char *line, size_t point) {
    c->n = 0;
    c->from = 0;
    if (point == 0 || line[0] != '/' || (point > 1 && line[1] == '/') || memchr(line, '\n', point))
        return false;
    size_t name_end = 1 + strcspn(line + 1, " ");
    if (point <= name_end)
        commands(c, line + 1, point - 1, "/", true);
    else
        arguments(c, line, name_end, point);
    if (c->n > 1) qsort(c->choices, c->n, sizeof *c->choices, by_text);
    return c->n > 0;
}

size_t ui_complete_common(const UiCompletion *c) {
    size_t n = c->n ? strlen(c->choices[0].text) : 0;
    for (size_t i = 1; i < c->n; i++) {
        size_t k = 0;
        while (k < n && c->choices[i].text[k] == c->choices[0].text[k]) k++;
        n = k;
    }
    while (n > 0 && c->n > 1 && ((unsigned char)c->choices[0].text[n] & 0xc0) == 0x80) n--;
    return n;
}

void ui_complete_free(UiCompletion *c) {
    free(c->choices);
    *c = (UiCompletion){ 0 };
}
