/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion with Tab. */
#include "ui/complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "qsf_cli.h"
#include "qsf_games.h"
#include "qsf_models.h"
#include "ui/commands.h"
#include "ui/complete_internal.h"
#include "ui/compose/mention.h"
#include "ui/excerpt.h"
#include "ui/format.h"
#include "ui/path.h"
#include "ui/sessions.h"

#define UI_TITLES      50  /* sessions whose titles are read */
#define MODELS_WAIT    0.3 /* seconds that a folder has to answer */
#define MODELS_KEPT    10  /* seconds after which models are looked for again */
#define UI_INSIDE_FROM 2   /* characters that are looked for inside of names */

/* A file name with control characters cannot be typed, so it is not offered. */
static bool typeable(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    }
    return true;
}

void ui_complete_add(UiCompletion *c, const char *text, const char *after, const char *help) {
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

static bool contains(const char *text, const char *word, size_t len) {
    for (; *text; text++)
        if (strncasecmp(text, word, len) == 0) return true;
    return false;
}

bool ui_complete_fits(const UiCompletion *c, const char *name, const char *help, const char *word,
                      size_t len) {
    if (c->at == UI_TYPED_FIRST) return begins(name, word, len);
    const bool inside = contains(name, word, len);
    return c->at == UI_TYPED_INSIDE ? inside : !inside && help && contains(help, word, len);
}

/* Command names, and after the first letter also the settings that work as commands. */
static void commands(UiCompletion *c, const char *word, size_t len, const char *slash, bool settings) {
    char text[80];
    for (size_t i = 0; i < ui_command_count(); i++) {
        const UiCommand *cmd = ui_command_at(i);
        if (!ui_complete_fits(c, cmd->name, cmd->help, word, len)) continue;
        (void)snprintf(text, sizeof text, "%s%s", slash, cmd->name);
        ui_complete_add(c, text, cmd->args[0] ? " " : "", cmd->help);
    }
    for (size_t i = 0; settings && len > 0 && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!ui_complete_fits(c, row->name, row->help, word, len) || ui_command_find(row->name)) continue;
        (void)snprintf(text, sizeof text, "%s%s", slash, row->name);
        ui_complete_add(c, text, " ", row->help);
    }
}

static void settings(UiCompletion *c, const char *word, size_t len) {
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (ui_complete_fits(c, row->name, row->help, word, len))
            ui_complete_add(c, row->name, " ", row->help);
    }
}

static void names(UiCompletion *c, char *list, const char *help, const char *word, size_t len) {
    for (const char *p = list; p && *p; p += strlen(p) + 1) {
        if (ui_complete_fits(c, p, NULL, word, len)) ui_complete_add(c, p, "", help);
    }
    free(list);
}

/* off: what /template calls the setting's raw. */
static void templates(UiCompletion *c, const UiApp *a, const char *off, const char *word, size_t len) {
    names(c, qsf_template_names(), "", word, len);
    if (a) names(c, a->engine.templates(a->engine.self), "from the model file", word, len);
    if (ui_complete_fits(c, "model", NULL, word, len)) ui_complete_add(c, "model", "", "the model's own");
    if (ui_complete_fits(c, off, NULL, word, len)) ui_complete_add(c, off, "", "plain continuation");
}

/* Newest first. */
static void sessions(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    size_t n = 0, read = 0;
    QSFLogInfo *all = qsf_chatlog_list(&n);
    c->keep = true;
    for (size_t i = 0; all && i < n; i++) {
        char title[sizeof c->choices->help] = "";
        const bool first = c->at != UI_TYPED_IN_HELP;
        if (first && !ui_complete_fits(c, all[i].name, NULL, word, len)) continue;
        if (read++ < UI_TITLES) ui_sessions_title(&all[i], a ? a->session.name : "", title, sizeof title);
        if (first || ui_complete_fits(c, all[i].name, title, word, len))
            ui_complete_add(c, all[i].name, "", title);
    }
    free(all);
}

/* Also after "save " and the like: one to be replaced, or deleted. */
static void roles(UiCompletion *c, const UiApp *a, const UiArg *arg, const char *word, size_t len) {
    const char *name;
    for (const UiWord *w = arg->words; w && w->word; w++) {
        const size_t n = strlen(w->word);
        if (len <= n || strncmp(word, w->word, n) != 0 || word[n] != ' ') continue;
        c->from += n + 1, word += n + 1, len -= n + 1;
        break;
    }
    for (size_t i = 0; a && (name = qsf_config_role_at(a->config, i)) != NULL; i++)
        if (ui_complete_fits(c, name, NULL, word, len)) ui_complete_add(c, name, "", "");
}

static void games(UiCompletion *c, const char *word, size_t len) {
    char *names = qsf_game_names();
    for (const char *n = names; n && *n; n += strlen(n) + 1)
        if (ui_complete_fits(c, n, NULL, word, len)) ui_complete_add(c, n, "", "");
    free(names);
}

/* Branches of the session, the newest first. */
static void branches(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    const UiTree *t = a ? &a->session.tree : NULL;
    c->keep = true;
    for (uint32_t i = t ? t->n_branches : 0; i > 0; i--) {
        const char *name = ui_tree_branch_name(t, i);
        if (*name && ui_complete_fits(c, name, NULL, word, len))
            ui_complete_add(c, name, "", i == t->branch ? "this one" : "");
    }
}

/* Those of the server that answers. */
static bool server_models(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    UiEngineModel m;
    size_t i = 0;
    for (; a->model_ready && a->engine.model(a->engine.self, i, &m); i++) {
        const bool marked = (len > 0 && *word == '#') || strcmp(m.name, QSF_GUIDE) == 0;
        UiBuf name = { 0 };
        ui_buf_printf(&name, "%s%s", marked ? "#" : "", m.name);
        if (!name.failed && ui_complete_fits(c, ui_buf_str(&name), NULL, word, len))
            ui_complete_add(c, ui_buf_str(&name), "", "on the server");
        ui_buf_free(&name);
    }
    return i > 0;
}

/* Models to begin with, once the beginning of "hf:" is typed. */
static void suggestions(UiCompletion *c, const char *word, size_t len) {
    const QSFModelSuggestion *s;
    const uint64_t available = qsf_memory_available();
    for (size_t i = 0; (s = qsf_model_suggestion(i)) != NULL; i++) {
        char size[24], help[120];
        if (len == 0 || c->at != UI_TYPED_FIRST || !begins(s->name, word, len)) continue;
        ui_format_bytes(s->bytes, size, sizeof size);
        (void)snprintf(help, sizeof help, "%s, %s: %s", size,
                       qsf_model_suggestion_fits(s, available) ? "fits" : "streams", s->about);
        ui_complete_add(c, s->name, "", help);
    }
}

/* Those that /models shows. Looking for them takes a moment, and keys follow each other quickly. */
static void models(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    static QSFModelList known;
    static const char *const *of;
    static double until;
    const char *const *dirs = a ? a->model_dirs : NULL;
    if (!a || server_models(c, a, word, len)) return;
    if (ui_now() >= until || of != dirs) {
        qsf_models_free(&known);
        known = (QSFModelList){ 0 };
        (void)qsf_models_list(dirs, NULL, MODELS_WAIT, &known);
        of = dirs;
        until = ui_now() + MODELS_KEPT;
    }
    c->keep = true;
    for (size_t i = 0; i < known.n; i++) {
        const QSFModelEntry *e = &known.items[i];
        if (!e->problem && ui_complete_fits(c, e->name, NULL, word, len))
            ui_complete_add(c, e->name, "", e->place);
    }
}

static void words(UiCompletion *c, const UiWord *list, const char *word, size_t len) {
    for (const UiWord *w = list; w && w->word; w++) {
        if (ui_complete_fits(c, w->word, NULL, word, len))
            ui_complete_add(c, w->word, w->setting ? " " : "", w->help);
    }
}

static void add_file(void *arg, const char *name, bool is_dir) {
    ui_complete_add(arg, name, is_dir ? "/" : "", "");
}

static void setting_values(UiCompletion *c, const UiApp *a, const char *setting, const char *word,
                           size_t len) {
    c->keep = true;
    if (strcmp(setting, "template") == 0)
        templates(c, a, "raw", word, len);
    else
        ui_complete_values(c, a, setting, word, len);
    const char *values = qsf_cli_values(setting);
    char *typed = values && strstr(values, "@file") ? ui_strdup_len(word, len) : NULL;
    if (typed) ui_path_match(typed, add_file, c, UI_CHOICES);
    free(typed);
}

static bool takes_files(const UiArg *arg, const char *word, size_t len) {
    return arg->kind == UI_ARG_FILE || arg->kind == UI_ARG_CODE_FILE || arg->kind == UI_ARG_MODEL ||
           (arg->kind == UI_ARG_SESSION && len > 0) ||
           (arg->kind == UI_ARG_TEMPLATE && memchr(word, '/', len));
}

static void themes(UiCompletion *c, const UiApp *a, const char *word, size_t len) {
    const char *name;
    for (size_t i = 0; a && (name = qsf_config_theme_at(a->config, i)) != NULL; i++)
        if (begins(name, word, len)) ui_complete_add(c, name, "", "of the configuration file");
}

/* The argument of a command, starting at `word`. */
static void argument(UiCompletion *c, const UiApp *a, const UiArg *arg, const char *word, size_t len) {
    c->keep = arg->words || arg->setting;
    words(c, arg->words, word, len);
    if (arg->setting) setting_values(c, a, arg->setting, word, len);
    switch (arg->kind) {
    case UI_ARG_COMMAND: commands(c, word, len, "", true); break;
    case UI_ARG_SETTING: settings(c, word, len); break;
    case UI_ARG_TEMPLATE: templates(c, a, "off", word, len); break;
    case UI_ARG_SESSION:
    case UI_ARG_SESSION_ONLY: sessions(c, a, word, len); break;
    case UI_ARG_MODEL:
        if (c->at == UI_TYPED_FIRST && begins(QSF_GUIDE, word, len))
            ui_complete_add(c, QSF_GUIDE, "", "the built-in guide to this program");
        suggestions(c, word, len);
        if (!memchr(word, '/', len) || c->at != UI_TYPED_FIRST) models(c, a, word, len);
        break;
    case UI_ARG_ROLE: roles(c, a, arg, word, len); break;
    case UI_ARG_GAME: games(c, word, len); break;
    case UI_ARG_BRANCH: branches(c, a, word, len); break;
    case UI_ARG_THEME: themes(c, a, word, len); break;
    case UI_ARG_NONE:
    case UI_ARG_CODE:
    case UI_ARG_CODE_FILE:
    case UI_ARG_FILE: break;
    }
    const bool files = c->at == UI_TYPED_FIRST && takes_files(arg, word, len);
    char *typed = files ? ui_strdup_len(word, len) : NULL;
    if (typed) ui_path_match(typed, add_file, c, UI_CHOICES);
    free(typed);
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const UiChoice *)a)->text, ((const UiChoice *)b)->text);
}

static const QSFSetting *setting_of_word(const UiWord *list, const char *name) {
    for (const UiWord *w = list; w && w->word; w++) {
        if (strcmp(w->word, name) == 0 && w->setting) return qsf_setting_find(w->setting);
    }
    return NULL;
}

/* Moves *at over the first word to the second one; false while the first is being typed. */
static bool skip_word(const char *line, size_t *at, size_t point) {
    size_t end = *at + strcspn(line + *at, " ");
    if (end >= point) return false;
    *at = end + strspn(line + end, " ");
    if (*at > point) *at = point;
    return true;
}

/* After "/set NAME ", "/kv policy " or "/io direct " a value of a setting follows: returns its
 * row and moves *at to the value. */
static const QSFSetting *value_of(const UiCommand *cmd, const char *line, size_t *at, size_t point) {
    size_t end = *at + strcspn(line + *at, " ");
    if (end >= point) return NULL;
    char *name = ui_strdup_len(line + *at, end - *at);
    const QSFSetting *row = !name                             ? NULL
                            : cmd->arg.kind == UI_ARG_SETTING ? qsf_setting_find(name)
                                                              : setting_of_word(cmd->arg.words, name);
    free(name);
    (void)skip_word(line, at, point);
    return row;
}

/* Moves *at to the name of a file that follows the first word; false: none does. */
static bool file_of(const UiCommand *cmd, const char *line, size_t *at, size_t point) {
    const char *typed = line + *at;
    for (const UiWord *w = cmd->arg.words; w && w->word; w++) {
        const size_t n = strlen(w->word);
        if (!w->setting || strcmp(w->setting, UI_WORD_FILE) != 0) continue;
        if (strncmp(typed, w->word, n) == 0 && typed[n] == ' ') return skip_word(line, at, point);
    }
    return false;
}

/* File names and sessions may contain blanks; anything else is one word. */
static bool has_blanks(const UiArg *arg) {
    return arg->kind == UI_ARG_FILE || arg->kind == UI_ARG_CODE_FILE || arg->kind == UI_ARG_MODEL ||
           arg->kind == UI_ARG_SESSION || arg->kind == UI_ARG_SESSION_ONLY || arg->kind == UI_ARG_ROLE;
}

typedef struct Codes {
    UiCompletion *c;
    const char *word, *after;
    size_t len;
} Codes;

static void add_code(void *arg, unsigned k, const UiMdCode *code) {
    const Codes *x = arg;
    char text[16], help[60];
    (void)snprintf(text, sizeof text, "%u", k);
    (void)snprintf(help, sizeof help, "%.*s", (int)(code->lang_len < 40 ? code->lang_len : 40), code->info);
    if (ui_complete_fits(x->c, text, NULL, x->word, x->len)) ui_complete_add(x->c, text, x->after, help);
}

/* Numbers of blocks of code. */
static void codes(UiCompletion *c, const UiApp *a, const char *word, size_t len, const char *after) {
    Codes x = { c, word, after, len };
    c->keep = true;
    if (a) (void)ui_excerpt_codes(&a->chat, add_code, &x);
}

/* "code K" and "K FILE": false unless a number is being typed. */
static bool code_number(UiCompletion *c, const UiApp *a, UiArgKind kind, const char *line, size_t point) {
    const bool first = kind == UI_ARG_CODE_FILE, word = strncmp(line + c->from, "code ", 5) == 0;
    if (kind != UI_ARG_CODE_FILE && (kind != UI_ARG_CODE || !word)) return false;
    if (skip_word(line, &c->from, point) == first) return false;
    if (!memchr(line + c->from, ' ', point - c->from))
        codes(c, a, line + c->from, point - c->from, first ? " " : "");
    return true;
}

static void arguments(UiCompletion *c, const UiApp *a, const char *line, size_t name_end, size_t point) {
    char *name = ui_strdup_len(line + 1, name_end - 1);
    const QSFSetting *row = NULL;
    bool several = false;
    const UiCommand *cmd = name ? ui_command_lookup(name, true, &row, &several) : NULL;
    free(name);
    c->from = name_end + strspn(line + name_end, " ");
    if (c->from > point) c->from = point;
    if (cmd && code_number(c, a, cmd->arg.kind, line, point)) return;
    bool more = cmd && !has_blanks(&cmd->arg) && memchr(line + c->from, ' ', point - c->from);
    if (more && file_of(cmd, line, &c->from, point)) {
        static const UiArg file = { UI_ARG_FILE, NULL, NULL };
        argument(c, a, &file, line + c->from, point - c->from);
        return;
    }
    if (more) row = value_of(cmd, line, &c->from, point);
    if (memchr(line + c->from, ' ', point - c->from) && row) return;
    if (row)
        setting_values(c, a, row->name, line + c->from, point - c->from);
    else if (cmd && !more)
        argument(c, a, &cmd->arg, line + c->from, point - c->from);
}

typedef struct Mentioned {
    UiCompletion *c;
    bool quoted;
} Mentioned;

/* Names with blanks get quotes. */
static void add_mention(void *arg, const char *name, bool is_dir) {
    const Mentioned *m = arg;
    const bool quotes = m->quoted || strchr(name, ' ');
    UiBuf b = { 0 };
    const bool whole = !is_dir && strpbrk(name, "\n\t\r\"\\"); /* with escapes */
    if (whole)
        ui_mention_add(&b, name);
    else
        ui_buf_printf(&b, "%s%s%s", quotes ? "\"" : "", name, is_dir ? "/" : quotes ? "\"" : "");
    if (!b.failed) ui_complete_add(m->c, ui_buf_str(&b) + (whole ? 1 : 0), is_dir || whole ? "" : " ", "");
    ui_buf_free(&b);
}

/* @path in a message. */
static bool mention(UiCompletion *c, const char *line, size_t point) {
    Mentioned m = { .c = c };
    if (!ui_mention_typed(line, point, &c->from, &m.quoted)) return false;
    char *typed = ui_strdup_len(line + c->from, point - c->from);
    if (m.quoted) c->from--;
    if (typed) ui_path_match(typed, add_mention, &m, UI_CHOICES);
    free(typed);
    if (c->n > 1) qsort(c->choices, c->n, sizeof *c->choices, by_text);
    return c->n > 0;
}

static void fill(UiCompletion *c, const UiApp *a, const char *line, size_t point) {
    size_t name_end = 1 + strcspn(line + 1, " ");
    c->from = 0;
    if (point <= name_end)
        commands(c, line + 1, point - 1, "/", true);
    else
        arguments(c, a, line, name_end, point);
}

bool ui_complete(UiCompletion *c, const UiApp *a, const char *line, size_t point) {
    c->n = 0;
    c->from = 0;
    c->keep = false;
    c->at = UI_TYPED_FIRST;
    if (point == 0 || line[0] != '/' || (point > 1 && line[1] == '/') || memchr(line, '\n', point))
        return mention(c, line, point);
    fill(c, a, line, point);
    const size_t slash = c->from == 0;
    if (c->n == 0 && point >= c->from + slash + UI_INSIDE_FROM) {
        c->at = UI_TYPED_INSIDE;
        fill(c, a, line, point);
        c->at = UI_TYPED_IN_HELP;
        fill(c, a, line, point);
        c->keep = true;
    }
    if (c->n > 1 && !c->keep) qsort(c->choices, c->n, sizeof *c->choices, by_text);
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
