/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: settings, changed by commands and by the live keys. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/path.h"

void ui_settings_default(QSFSettings *s) {
    qsf_settings_default(s);
    s->ram_budget = 0; /* auto */
}

/* The file records where in the answer the change was made: the answer so far is saved first. */
static void mark(UiApp *a, const QSFSetting *row, const char *value) {
    if (a->answer) {
        QSFLogRecord all = ui_app_record(a->answer, a->answer_from);
        ui_session_part(&a->session, &all, ui_now(), true);
    }
    ui_own_set(a, row, value);
}

/* Repeated changes of a setting are one line in the transcript, not one per key. */
static void mark_on_screen(UiApp *a, const QSFSetting *row, const char *from, const char *to) {
    UiItem *last = a->chat.n > 0 ? a->chat.items[a->chat.n - 1] : NULL;
    if (last && last->kind == UI_NOTICE && strcmp(last->label, row->name) == 0) {
        const char *arrow = strstr(ui_buf_str(&last->raw), " -> ");
        UiBuf text = { 0 };
        ui_buf_add(&text, ui_buf_str(&last->raw), arrow ? (size_t)(arrow - ui_buf_str(&last->raw)) : 0);
        ui_buf_printf(&text, " -> %s", to);
        ui_buf_clear(&last->raw);
        (void)ui_item_append(&a->chat, last, ui_buf_str(&text), text.len);
        ui_buf_free(&text);
        return;
    }
    char text[QSF_SETTING_TEXT * 2 + 80];
    int n = snprintf(text, sizeof text, "%s %s -> %s", row->name, from, to);
    UiItem *it = ui_transcript_add(&a->chat, UI_NOTICE, text, n > 0 ? (size_t)n : 0);
    if (it) (void)snprintf(it->label, sizeof it->label, "%s", row->name);
}

static void said_change(UiApp *a, const QSFSetting *row, const char *from, const char *to) {
    char before[QSF_SETTING_TEXT], after[QSF_SETTING_TEXT];
    ui_setting_shown(row, from, before, sizeof before);
    ui_setting_shown(row, to, after, sizeof after);
    if (a->full_screen)
        mark_on_screen(a, row, before, after);
    else
        ui_app_say(a, UI_NOTICE, "%s %s", row->name, after);
}

void ui_app_note_conversation(UiApp *a, QSFSettings *s) {
    ui_app_refresh_context(a);
    s->text_bytes = ui_transcript_bytes(&a->chat);
    s->ctx_tokens = a->ctx_counted && !ui_app_evicts(a) ? a->ctx_tokens : 0;
}

void ui_app_replan(UiApp *a) {
    a->replanning = true;
    ui_app_note_conversation(a, &a->settings);
    a->engine.replan(a->engine.self, &a->settings);
}

/* Passes the change to the engine. A replanned setting takes effect immediately; a model that is not loaded
 * yet because its load failed is tried again with it. */
static void act(UiApp *a, const QSFSetting *row) {
    bool failed = !a->model_ready && a->model_path && !ui_app_busy(a);
    if (row->flags & QSF_SETTING_LIVE)
        a->engine.set_params(a->engine.self, &a->settings);
    else if ((row->flags & QSF_SETTING_REPLAN) && !failed)
        ui_app_replan(a);
    else
        ui_app_reload(a, row);
}

/* Checked before any change is reported, so that a refusal is the only message. Settings for a model that is
 * not loaded yet are checked when it is. */
static bool accepted(UiApp *a, const QSFSetting *row, QSFSettings *next) {
    char err[600], value[QSF_SETTING_TEXT];
    const bool planned = row->flags & (QSF_SETTING_REPLAN | QSF_SETTING_RELOAD);
    if (!planned || a->want_model || a->running == UI_REQUEST_LOAD) return true;
    ui_app_note_conversation(a, next);
    if (a->engine.check(a->engine.self, next, err, sizeof err) == 0) return true;
    qsf_setting_get(next, row, value, sizeof value);
    const size_t n = strlen(row->name);
    const bool names = ui_setting_has_files(row) || (strncmp(err, row->name, n) == 0 && err[n] == ':');
    ui_app_say_refused(a, names ? NULL : row->name, value, err);
    return false;
}

/* " (0 is auto: the fastest number, measured)" for a number that means auto, from the row's help; else "". */
static void explain_auto(const QSFSetting *row, const char *typed, const char *is, char *dst, size_t cap) {
    const char *what = strstr(row->help, "auto: ");
    const int n = what ? (int)strcspn(what, "(;") : 0;
    dst[0] = '\0';
    if (strcmp(is, "auto") != 0 || typed[0] < '0' || typed[0] > '9') return;
    (void)snprintf(dst, cap, " (%s is %.*s", typed, n > 0 ? n : 4, n > 0 ? what : "auto");
    for (size_t len = strlen(dst); len > 0 && dst[len - 1] == ' ';) dst[--len] = '\0';
    const size_t len = strlen(dst);
    (void)snprintf(dst + len, cap - len, ")");
}

static bool is_limit(const QSFSetting *row) {
    return strcmp(row->name, "expert-top") == 0 || strcmp(row->name, "expert-drop") == 0;
}

/* Limits for experts need a model with experts; before a model is loaded, anything goes. */
static bool is_possible(UiApp *a, const QSFSetting *row, const char *value) {
    if (!is_limit(row) || strcmp(value, "0") == 0 || !a->model_ready || !ui_has(a, UI_NEEDS_MEMORY))
        return true; /* a server ignores it, which is said */
    ui_app_refresh_stats(a);
    if (a->stats.experts > 0) return true;
    ui_app_say(a, UI_ERROR, "%s %s: %s has no experts", row->name, value, a->model_path);
    return false;
}

void ui_app_drop_limits(UiApp *a) {
    char err[100], value[QSF_SETTING_TEXT];
    if (a->stats.experts > 0 || !ui_has(a, UI_NEEDS_MEMORY)) return;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!is_limit(row)) continue;
        qsf_setting_get(&a->settings, row, value, sizeof value);
        if (strcmp(value, "0") == 0) continue;
        (void)qsf_setting_set(&a->settings, row, "0", err, sizeof err);
        /* The configuration file is for all models. */
        if (!ui_config_sets(a, row))
            ui_app_say(a, UI_NOTICE, "%s is 0: %s has no experts", row->name, a->model_path);
        a->engine.set_params(a->engine.self, &a->settings);
    }
}

bool ui_setting_is_grammar(const QSFSetting *row) {
    static const char *const names[] = { "grammar", "json-schema", "regex", "only" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(row->name, names[i]) == 0) return true;
    return false;
}

bool ui_setting_has_files(const QSFSetting *row) { return row->arg && strcmp(row->arg, "FILE[:SCALE]") == 0; }

void ui_setting_shown(const QSFSetting *row, const char *value, char *dst, size_t cap) {
    size_t n = 0, item = 0;
    for (const char *p = value; cap > 0 && *p != '\0' && n + 2 < cap; p++) {
        if (ui_setting_has_files(row) && *p == '/' && p[1] != ',' && p[1] != '\0') {
            n = item;
            continue;
        }
        if (*p == '\\' && p[1] != '\0') dst[n++] = *p++;
        dst[n++] = *p;
        if (*p == ',') item = n;
    }
    if (cap > 0) dst[n] = '\0';
}

/* Ends the others, each as a separate change, so that it can be taken back. */
static void end_grammars(UiApp *a, const QSFSetting *row) {
    char value[QSF_SETTING_TEXT];
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *other = qsf_setting_at(i);
        if (other == row || !ui_setting_is_grammar(other)) continue;
        qsf_setting_get(&a->settings, other, value, sizeof value);
        if (strcmp(value, "off") != 0) (void)ui_app_set(a, other, "off", false);
    }
}

/* A grammar that is wrong is refused before it is in force. */
static bool take_grammar(UiApp *a, const QSFSetting *row, const QSFSettings *next) {
    char err[600];
    if (!ui_setting_is_grammar(row) || next->params.grammar_kind == QSF_GRAMMAR_NONE) return true;
    if (qsf_grammar_check(&next->params, a->stats.budget, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    end_grammars(a, row);
    return true;
}

/* Does a change during an answer wait for its end? */
static bool waits(const QSFSetting *row) { return ui_setting_is_grammar(row) || ui_setting_has_files(row); }

/* Where it does nothing, that is said with the change. Without a grammar there is nothing to do. */
static void say_effect(UiApp *a, const QSFSetting *row) {
    const UiEffect effect = a->engine.effect(a->engine.self, row);
    if (ui_setting_is_grammar(row) && a->settings.params.grammar_kind == QSF_GRAMMAR_NONE) return;
    if (effect == UI_EFFECT_REFUSED || effect == UI_EFFECT_NONE)
        ui_app_say(a, UI_NOTICE, "%s: %s", row->name, ui_effect_text(effect));
}

bool ui_setting_is_default(const QSFSetting *row, const char *value) {
    QSFSettings usual;
    char text[QSF_SETTING_TEXT];
    if (strcmp(value, UI_DEFAULT) != 0) return false;
    ui_settings_default(&usual);
    qsf_setting_get(&usual, row, text, sizeof text);
    return strcmp(text, UI_DEFAULT) != 0;
}

void ui_setting_unset(QSFSettings *s, const QSFSettings *base, const QSFSetting *row) {
    char value[QSF_SETTING_TEXT], err[200];
    const QSFSettingSet bit = ui_setting_bit(row), others = s->user_set & ~bit;
    qsf_setting_get(base, row, value, sizeof value);
    (void)qsf_setting_set(s, row, value, err, sizeof err);
    s->user_set = others | (base->user_set & bit);
}

/* A change of a setting: the values as they are shown. */
typedef struct Change {
    const QSFSetting *row;
    bool unset;  /* it gets its default */
    bool server; /* which has its own default, that is not known here */
    char from[QSF_SETTING_TEXT], to[QSF_SETTING_TEXT];
} Change;

static void begin_change(const UiApp *a, const QSFSetting *row, const char *value, Change *c) {
    const UiEffect effect = a->engine.effect(a->engine.self, row);
    c->row = row;
    c->unset = ui_setting_is_default(row, value);
    c->server = effect == UI_EFFECT_OWN || effect == UI_EFFECT_SENT || effect == UI_EFFECT_REFUSED;
    qsf_setting_get(&a->settings, row, c->from, sizeof c->from);
    if (effect == UI_EFFECT_OWN) (void)snprintf(c->from, sizeof c->from, UI_DEFAULT);
}

/* Sets it in *next; false: reported. */
static bool make_change(UiApp *a, Change *c, const char *value, QSFSettings *next) {
    char err[400];
    if (c->unset) {
        QSFSettings base;
        ui_app_base(a, &base);
        ui_setting_unset(next, &base, c->row);
    } else if (qsf_setting_set(next, c->row, value, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    qsf_setting_get(next, c->row, c->to, sizeof c->to);
    return true;
}

static bool allowed(UiApp *a, const Change *c, QSFSettings *next) {
    char err[400];
    if (qsf_settings_check(next, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "%s", err);
        return false;
    }
    return is_possible(a, c->row, c->to) && accepted(a, c->row, next) && take_grammar(a, c->row, next);
}

/* It was an option of the command line, of the configuration file, or a recommendation. */
static void keep_value(UiApp *a, const Change *c) {
    a->engine.set_params(a->engine.self, &a->settings); /* who chose it may have changed */
    if (c->unset || ui_config_sets(a, c->row) ||
        (a->kept && qsf_setting_differs(&a->settings, &a->own.settings, c->row)))
        mark(a, c->row, c->unset ? UI_DEFAULT : c->to);
}

static bool set_value(UiApp *a, const QSFSetting *row, const char *value, bool quiet) {
    char why[100];
    Change c;
    QSFSettings next = a->settings;
    begin_change(a, row, value, &c);
    if (!make_change(a, &c, value, &next)) return false;
    explain_auto(row, value, c.to, why, sizeof why);
    const char *shown = c.unset && c.server ? UI_DEFAULT : c.to;
    /* kv-type also takes back what was set for K or V alone */
    const bool same = strcmp(c.from, shown) == 0 && qsf_settings_differ(&a->settings, &next) == 0;
    if (!same && !allowed(a, &c, &next)) return false;
    a->settings = next;
    if (same) {
        keep_value(a, &c);
        if (!quiet) ui_app_say(a, UI_NOTICE, "%s is %s%s", row->name, shown, why);
        return true;
    }
    /* What only the screen shows is not a change of the conversation. */
    a->session.was = strcmp(row->name, "show-thinking") == 0 ? NULL : c.from;
    mark(a, row, c.unset ? UI_DEFAULT : c.to);
    a->session.was = NULL;
    if (shown != c.to) (void)snprintf(c.to, sizeof c.to, "%s", shown);
    (void)snprintf(c.to + strlen(c.to), sizeof c.to - strlen(c.to), "%s", why);
    if (!quiet) said_change(a, row, c.from, c.to);
    if (!quiet && waits(row) && a->running == UI_REQUEST_ANSWER)
        ui_app_say(a, UI_NOTICE, "takes effect with the next answer");
    act(a, row);
    if (!quiet && a->model_ready) say_effect(a, row);
    return true;
}

bool ui_app_set(UiApp *a, const QSFSetting *row, const char *value, bool quiet) {
    char *path = ui_setting_is_grammar(row) && value[0] == '~' ? ui_path_expand(value) : NULL;
    const bool ok = set_value(a, row, path ? path : value, quiet);
    free(path);
    return ok;
}

void ui_app_think(UiApp *a, bool show, bool quiet) {
    const QSFSetting *row = qsf_setting_find("show-thinking");
    if (row) (void)ui_app_set(a, row, show ? "on" : "off", quiet);
}

void ui_app_settle(UiApp *a) {
    char err[400];
    while (qsf_settings_check(&a->settings, err, sizeof err) != 0) {
        const char *off;
        const QSFSetting *row = qsf_settings_reducing(&a->settings, &off);
        ui_app_say(a, UI_NOTICE, "%s is %s: %s", row->name, off, err);
        (void)qsf_setting_set(&a->settings, row, off, err, sizeof err);
        if (!a->kept) mark(a, row, off);
    }
}

void ui_app_take_back(UiApp *a, const QSFSettings *s, unsigned flags, bool say) {
    QSFSettings before = a->settings;
    qsf_settings_take(&a->settings, s, flags);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char is[QSF_SETTING_TEXT], shown[QSF_SETTING_TEXT];
        if (!qsf_setting_differs(&a->settings, &before, row)) continue;
        qsf_setting_get(&a->settings, row, is, sizeof is);
        if (!a->resuming) mark(a, row, is);
        ui_setting_shown(row, is, shown, sizeof shown);
        if (say) ui_app_say(a, UI_NOTICE, "%s is %s again", row->name, shown);
    }
}

void ui_app_apply(UiApp *a, const QSFSettings *before) {
    unsigned changed = qsf_settings_differ(&a->settings, before);
    if (changed & QSF_SETTING_LIVE) a->engine.set_params(a->engine.self, &a->settings);
    if (!a->model_path) return; /* the first load gets all of them */
    if (changed & QSF_SETTING_RELOAD)
        ui_app_reload(a, NULL);
    else if (changed & QSF_SETTING_REPLAN)
        ui_app_replan(a);
}

void ui_app_base(const UiApp *a, QSFSettings *base) {
    ui_config_base(a, a->model_path, base);
    a->engine.advise(a->engine.self, base);
}

void ui_app_take_model_defaults(UiApp *a, UiBuf *changed) {
    QSFSettings before = a->settings;
    a->engine.advise(a->engine.self, &a->settings);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char is[QSF_SETTING_TEXT];
        if (!qsf_setting_differs(&a->settings, &before, row)) continue;
        qsf_setting_get(&a->settings, row, is, sizeof is);
        ui_buf_printf(changed, ", %s %s", row->name, is);
    }
    if (changed->len > 0) a->engine.set_params(a->engine.self, &a->settings);
}

bool ui_setting_is_on(const QSFSettings *s, const QSFSetting *row) {
    QSFSettings usual;
    ui_settings_default(&usual);
    return qsf_setting_differs(s, &usual, row);
}

static bool is_knob(const UiApp *a, size_t i) {
    const QSFSetting *row = qsf_setting_at(i);
    return row && row->step > 0 && (row->flags & QSF_SETTING_LIVE) &&
           (!(row->flags & QSF_SETTING_MORE) || ui_setting_is_on(&a->settings, row));
}

void ui_app_knob_choose(UiApp *a, int by) {
    size_t n = qsf_setting_count();
    size_t i = a->knob;
    for (size_t tries = 0; n > 0 && tries < n; tries++) {
        i = (i + (by < 0 ? n - 1 : 1)) % n;
        if (is_knob(a, i)) {
            a->knob = (unsigned)i;
            return;
        }
    }
}

void ui_app_knob_turn(UiApp *a, int steps) {
    const QSFSetting *row = qsf_setting_at(a->knob);
    char value[QSF_SETTING_TEXT], from[QSF_SETTING_TEXT];
    if (!row || !is_knob(a, a->knob)) return;
    qsf_setting_get(&a->settings, row, from, sizeof from);
    double v = strtod(from, NULL) + steps * row->step;
    v = v < row->min ? row->min : v > row->max ? row->max : v;
    /* Steps land on round numbers; a limit of "above 0" stays above it. */
    v = round(v * 1e4) / 1e4;
    const bool positive = strcmp(row->name, "top-p") == 0 || strcmp(row->name, "quality") == 0 ||
                          strcmp(row->name, "typical") == 0;
    if (v <= 0 && positive) v = row->step;
    (void)snprintf(value, sizeof value, "%.10g", v);
    (void)ui_app_set(a, row, value, !a->full_screen);
}
