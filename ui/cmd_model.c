/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands about the model and the settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/dialect.h"
#include "ui/model_picker.h"
#include "ui/path.h"
#include "ui/server_models.h"

static bool set_by_name(UiApp *a, const char *setting, const char *value) {
    const QSFSetting *row = qsf_setting_find(setting);
    return row && ui_app_set(a, row, value, false);
}

bool ui_cmd_model(UiApp *a, const char *name, const char *args) {
    (void)name;
    if (!*args) {
        if (!a->model_path)
            ui_app_print(
                a, UI_OUTPUT,
                "no model is loaded: use /model FILE (a .gguf or .qsf file), or /model guide for the "
                "built-in guide");
        else
            ui_app_say(a, UI_OUTPUT, "%s\n%s\n%s",
                       a->stats.model_name[0] ? a->stats.model_name : "(not loaded)", a->stats.model_desc,
                       a->model_path);
        return true;
    }
    if (qsf_fetch_is_remote(args)) return ui_download_begin(a, args);
    if (ui_server_models_load(a, args)) return true;
    char *typed = ui_path_expand(args), hint[400] = "";
    char *path = typed ? qsf_model_resolve(typed, a->model_dirs, hint, sizeof hint) : NULL;
    free(typed);
    if (!path) {
        ui_app_say(a, UI_ERROR, "%s", *hint ? hint : "out of memory");
        return false;
    }
    ui_app_load(a, path);
    free(path);
    return true;
}

#define LOOK_SECONDS 30.0

static bool print_rows(UiApp *a, const UiModelScan *scan, const char *filter) {
    UiBuf b = { 0 }, text = { 0 };
    size_t shown = 0;
    int cells = 0;
    for (size_t i = 0; i < scan->n; i++) cells = ui_model_wider(cells, scan->rows[i].field[UI_MODEL_NAME]);
    for (size_t i = 0; i < scan->n; i++) {
        ui_model_row_text(&scan->rows[i], &text);
        if (!ui_words_occur(ui_buf_str(&text), filter)) continue;
        ui_buf_puts(&b, shown++ > 0 ? "\n" : "");
        ui_model_row_line(&scan->rows[i], cells, &b);
    }
    if (shown == 0 && scan->n > 0)
        ui_buf_puts(&b, "no model matches");
    else if (shown == 0)
        ui_buf_printf(&b, "no models found; /model %s downloads one",
                      qsf_model_suggested(qsf_memory_available())->name);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    ui_buf_free(&text);
    return true;
}

/* Line mode: all of them, when all is known. */
static bool print_models(UiApp *a, const char *filter) {
    UiModelScan scan = { 0 };
    if (ui_server_models_list(a, &scan)) {
        const bool any = print_rows(a, &scan, filter);
        ui_model_scan_stop(&scan);
        return any;
    }
    if (!ui_model_scan_start(&scan, a->model_dirs, NULL, &a->settings)) {
        ui_app_print(a, UI_ERROR, "cannot look for models: the process for it cannot be started");
        return false;
    }
    ui_model_scan_finish(&scan, LOOK_SECONDS);
    (void)print_rows(a, &scan, filter);
    if (scan.note[0]) ui_app_say(a, UI_NOTICE, "%s", scan.note);
    ui_model_scan_stop(&scan);
    return true;
}

bool ui_cmd_models(UiApp *a, const char *name, const char *args) {
    (void)name;
    if (!a->full_screen) return print_models(a, args);
    ui_app_open_view(a, UI_VIEW_MODELS, args);
    return true;
}

static void put_names(UiBuf *b, const char *names) {
    for (const char *p = names; p && *p; p += strlen(p) + 1) ui_buf_printf(b, " %s", p);
}

static void list_templates(UiApp *a) {
    UiBuf b = { 0 };
    char *names = qsf_template_names(), *own = a->engine.templates(a->engine.self);
    ui_buf_printf(&b,
                  "template: %s\navailable:", a->stats.template_name[0] ? a->stats.template_name : "none");
    put_names(&b, names);
    if (own && *own) ui_buf_puts(&b, "\nfrom the model file:");
    put_names(&b, own);
    ui_buf_puts(&b, "\nmodel = the model's own, off = plain continuation, or a FILE");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    free(names);
    free(own);
}

bool ui_cmd_template(UiApp *a, const char *name, const char *args) {
    (void)name;
    if (!*args) {
        list_templates(a);
        return true;
    }
    if (strcmp(args, "off") == 0) return set_by_name(a, "template", "raw");
    char *path = strchr(args, '/') ? ui_path_expand(args) : ui_strdup_len(args, strlen(args));
    bool ok = path && set_by_name(a, "template", path);
    free(path);
    return ok;
}

bool ui_cmd_budget(UiApp *a, const char *name, const char *args) {
    if (!*args) return ui_cmd_mem(a, name, args);
    return set_by_name(a, "ram-budget", args);
}

static void show_io(UiApp *a) {
    UiBuf b = { 0 };
    ui_app_refresh_stats(a);
    const QSFStats *s = &a->stats;
    ui_buf_printf(&b, "io %s, direct %s\n", a->settings.io, a->settings.direct);
    ui_buf_printf(&b, "weights are read by %s", s->io_name[0] ? s->io_name : "nothing now");
    if (s->io_notice[0]) ui_buf_printf(&b, "\n%s", s->io_notice);
    ui_buf_puts(&b, "\n/io auto|uring|pread|mmap and /io direct on|off|auto change it");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

bool ui_cmd_io(UiApp *a, const char *name, const char *args) {
    (void)name;
    size_t n = strcspn(args, " \t");
    const char *value = args + n + strspn(args + n, " \t");
    bool direct = n == strlen("direct") && strncmp(args, "direct", n) == 0;
    if (!*args || (direct && !*value))
        show_io(a);
    else
        return set_by_name(a, direct ? "direct" : "io", direct ? value : args);
    return true;
}

bool ui_cmd_quality(UiApp *a, const char *name, const char *args) {
    (void)name;
    UiBuf b = { 0 };
    char value[QSF_SETTING_TEXT];
    if (*args) return set_by_name(a, "quality", args);
    char *table = a->engine.describe(a->engine.self, "quality");
    qsf_setting_get(&a->settings, qsf_setting_find("quality"), value, sizeof value);
    ui_buf_printf(&b, "quality %s\n%s", value, table ? table : "");
    ui_buf_puts(&b, "/quality Q changes it, above 0 to 1: lower is faster and less exact");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    free(table);
    return true;
}

/* As set, and what the engine chose. */
static void show_types(UiApp *a, UiBuf *b) {
    char kv[QSF_SETTING_TEXT], k[QSF_SETTING_TEXT], v[QSF_SETTING_TEXT];
    qsf_setting_get(&a->settings, qsf_setting_find("kv-type"), kv, sizeof kv);
    qsf_setting_get(&a->settings, qsf_setting_find("k-type"), k, sizeof k);
    qsf_setting_get(&a->settings, qsf_setting_find("v-type"), v, sizeof v);
    ui_buf_printf(b, "type %s, k-type %s, v-type %s", kv, k, v);
    if (a->stats.kv_note[0]) ui_buf_printf(b, "; in use %s", a->stats.kv_note);
    ui_buf_puts(b, "\n");
}

static void show_kv(UiApp *a) {
    UiBuf b = { 0 };
    char window[QSF_SETTING_TEXT], prefix[QSF_SETTING_TEXT];
    ui_app_refresh_stats(a);
    qsf_setting_get(&a->settings, qsf_setting_find("eviction-window"), window, sizeof window);
    qsf_setting_get(&a->settings, qsf_setting_find("protected-prefix"), prefix, sizeof prefix);
    ui_buf_printf(&b, "policy %s, window %s, protected prefix %s\n", a->settings.eviction, window, prefix);
    if (a->settings.memory_threshold > 0)
        ui_buf_printf(&b, "memory threshold %u MB%s%s\n", a->settings.memory_threshold,
                      a->stats.memory_note[0] ? "; last seen: " : "", a->stats.memory_note);
    show_types(a, &b);
    ui_buf_printf(&b, "%u of %u tokens in the context, %llu evicted\n", a->stats.ctx_used, a->stats.ctx_size,
                  (unsigned long long)a->stats.evicted);
    ui_buf_puts(
        &b,
        "/kv policy none|sliding|h2o|snapkv, /kv window N, /kv prefix N, /kv threshold MB, /kv type T, /kv "
        "k-type T, /kv v-type T change it");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

/* /kv f16 is /kv type f16. */
bool ui_cmd_kv(UiApp *a, const char *name, const char *args) {
    const size_t n = strcspn(args, " \t");
    const char *value = args + n + strspn(args + n, " \t");
    (void)name;
    if (!*args) {
        show_kv(a);
        return true;
    }
    for (const UiWord *w = ui_kv_words; w->word; w++)
        if (strlen(w->word) == n && strncmp(args, w->word, n) == 0)
            return *value ? ui_app_set(a, qsf_setting_find(w->setting), value, false)
                          : ui_cmd_set(a, "set", w->setting);
    return set_by_name(a, "kv-type", args);
}

static const char *short_when(const QSFSetting *row) {
    return ui_setting_is_grammar(row)         ? "next answer"
           : row->flags & QSF_SETTING_LIVE    ? "next token"
           : row->flags & QSF_SETTING_CHANGES ? "next token"
           : row->flags & QSF_SETTING_REPLAN  ? "next token, same text"
                                              : "reloads the model";
}

static void add_ahead_reason(UiApp *a, UiBuf *b) {
    char *why = a->settings.prefill_ahead ? ui_ahead_reason(a) : NULL;
    if (why) ui_buf_printf(b, "; not now: %s", why);
    free(why);
}

static void list_settings(UiApp *a) {
    UiBuf b = { 0 };
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char value[QSF_SETTING_TEXT];
        const UiEffect effect = a->engine.effect(a->engine.self, row);
        const char *does = ui_effect_text(effect), *mark = ui_effect_mark(effect);
        qsf_setting_get(&a->settings, row, value, sizeof value);
        ui_buf_printf(&b, "%s%-19s %-9s %s", i ? "\n" : "", row->name, mark ? mark : value,
                      does ? does : short_when(row));
        if (effect == UI_EFFECT_USUAL && strcmp(row->name, "prefill-ahead") == 0) add_ahead_reason(a, &b);
    }
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
}

/* Extracts the word at *p; moves *p past it and the blanks after it. */
static char *word_of(char **p) {
    char *word = *p;
    *p += strcspn(*p, " \t=");
    while (**p == ' ' || **p == '\t' || **p == '=') *(*p)++ = '\0';
    return word;
}

/* The only setting whose name begins with word, otherwise NULL; *several: because there are several. */
static const QSFSetting *by_beginning(const char *word, bool *several) {
    const QSFSetting *found = NULL;
    for (size_t i = 0; *word && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (strncmp(row->name, word, strlen(word)) != 0) continue;
        *several = found != NULL;
        if (*several) return NULL;
        found = row;
    }
    return found;
}

/* Finds a setting by name, in a terminal also by a unique prefix. */
static const QSFSetting *find_setting(UiApp *a, const char *word) {
    bool several = false;
    const QSFSetting *row = qsf_setting_find(word);
    if (!row && a->interactive) row = by_beginning(word, &several);
    if (!row && !several && ui_command_find(word))
        ui_app_say(a, UI_ERROR, "/set: no setting '%.40s'; /%.40s is a command", word, word);
    else if (!row)
        ui_app_say(a, UI_ERROR,
                   several ? "/set: several settings begin with '%.40s'"
                           : "/set: no setting '%.40s'; /set lists them",
                   word);
    return row;
}

/* Words of other chats; false: it is not one. */
static bool set_foreign(UiApp *a, const char *word, const char *rest, bool *ok) {
    const UiDialectSetting *d = qsf_setting_find(word) ? NULL : ui_dialect_setting(word);
    const char *value = d && (d->fixed || !*rest) ? d->value : rest;
    if (strcmp(word, "num_predict") == 0 && *rest == '-') value = "0"; /* Ollama: -1, without a limit */
    *ok = false;
    if (strcmp(word, "system") == 0) {
        *ok = ui_cmd_system(a, "system", rest);
    } else if (strcmp(word, "stop") == 0) {
        *ok = ui_cmd_stop(a, "stop", rest);
    } else if (d && d->setting && value) {
        *ok = ui_app_set(a, qsf_setting_find(d->setting), value, false);
    } else if (d && d->setting) {
        *ok = ui_cmd_set(a, "set", d->setting);
    } else if (d) {
        ui_app_say(a, UI_ERROR, "/set %s: %s", word, d->hint);
    } else {
        return false;
    }
    return true;
}

static bool set_words(UiApp *a, char *rest) {
    char *word = word_of(&rest);
    bool ok;
    /* The syntax of other chats: /set parameter temperature 0.7, /set system TEXT. */
    if (strcmp(word, "parameter") == 0 && *rest) word = word_of(&rest);
    if (set_foreign(a, word, rest, &ok)) return ok;
    const QSFSetting *row = find_setting(a, word);
    if (!row) return false;
    if (*rest || !row->arg) return ui_app_set(a, row, rest, false);
    char value[QSF_SETTING_TEXT];
    qsf_setting_get(&a->settings, row, value, sizeof value);
    const UiEffect effect = a->engine.effect(a->engine.self, row);
    const char *does = ui_effect_text(effect), *mark = ui_effect_mark(effect);
    if (does)
        ui_app_say(a, UI_OUTPUT, "%s %s\n%s\n%s", row->name, mark ? mark : value, row->help, does);
    else
        ui_app_say(a, UI_OUTPUT, "%s %s\n%s", row->name, value, row->help);
    return true;
}

bool ui_cmd_set(UiApp *a, const char *name, const char *args) {
    (void)name;
    if (!*args) {
        list_settings(a);
        return true;
    }
    char *copy = ui_strdup_len(args, strlen(args));
    bool ok = copy && set_words(a, copy);
    free(copy);
    return ok;
}
