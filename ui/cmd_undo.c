/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /undo and /redo: the last changes of the conversation and its settings are taken back, and made again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/commands.h"

static bool is_exchange(const UiStep *s) { return s->kind == UI_STEP_EXCHANGE; }

/* at: a SYSTEM record + 1, 0 = there was no system prompt. */
static bool set_system(UiApp *a, uint32_t at, bool quiet) {
    const QSFChatLog *log = ui_session_texts(&a->session);
    const uint64_t place = at > 0 ? at - 1 : 0;
    UiBuf text = { 0 };
    const bool ok = at == 0 || (log && qsf_chatlog_texts(log, &place, 1, ui_session_put_text, &text));
    if (ok) ui_app_set_system(a, ui_buf_str(&text));
    if (!ok)
        ui_app_say(a, UI_ERROR, "the system prompt cannot be read from the session's file");
    else if (!quiet)
        ui_app_say(a, UI_NOTICE, text.len > 0 ? "system prompt restored" : "no system prompt");
    ui_buf_free(&text);
    return ok;
}

static bool set_setting(UiApp *a, const char *name, const char *value, bool quiet) {
    const QSFSetting *row = qsf_setting_find(name);
    char now[QSF_SETTING_TEXT];
    if (!row) return false;
    const uint32_t done = a->session.tree.n_done;
    const bool ok = ui_app_set(a, row, value, true);
    if (a->session.tree.n_done == done) { /* it has that value already, or cannot have it: passed over */
        qsf_setting_get(&a->settings, row, now, sizeof now);
        ui_own_set(a, row, now);
    }
    if (ok && !quiet) ui_app_say(a, UI_NOTICE, "%s is %s again", row->name, value);
    return ok;
}

/* All of them are written again, and the last record completes the change. */
static bool set_stops(UiApp *a, const char *list, const char *by, bool quiet) {
    ui_stops_read(&a->stops, list);
    ui_session_because(&a->session, by, a->stops.n > 0);
    ui_app_save_stop(a, "");
    for (size_t i = 0; i < a->stops.n; i++) {
        ui_session_because(&a->session, by, i + 1 < a->stops.n);
        ui_app_save_stop(a, a->stops.text[i]);
    }
    if (!quiet) ui_app_say(a, UI_NOTICE, "stop strings restored");
    return true;
}

static bool set_branch(UiApp *a, const char *branch, bool quiet) {
    ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_BRANCH, branch, 0);
    if (!quiet) ui_app_say(a, UI_NOTICE, *branch ? "on branch %s again" : "no branch", branch);
    return true;
}

static bool set_title(UiApp *a, const char *title, bool quiet) {
    ui_app_set_title(a, title);
    if (!quiet) ui_app_say(a, UI_NOTICE, *title ? "the title is %s again" : "no title was set", title);
    return true;
}

/* What has a value. */
static bool set_value(UiApp *a, const UiStep *s, bool back, bool quiet) {
    const char *by = back ? QSF_LOG_BY_UNDO : QSF_LOG_BY_REDO, *value = back ? s->was : s->is;
    char *name = ui_strdup_len(s->name ? s->name : "", s->name ? strlen(s->name) : 0);
    char *copy = ui_strdup_len(value ? value : "", value ? strlen(value) : 0); /* the step may go */
    bool ok = name && copy;
    ui_session_because(&a->session, by, false);
    if (ok && s->kind == UI_STEP_SYSTEM)
        ok = set_system(a, back ? s->was_at : s->is_at, quiet);
    else if (ok && strcmp(name, UI_STOP_SETTING) == 0)
        ok = set_stops(a, copy, by, quiet);
    else if (ok && strcmp(name, QSF_LOG_BRANCH) == 0)
        ok = set_branch(a, copy, quiet);
    else if (ok && strcmp(name, QSF_LOG_TITLE) == 0)
        ok = set_title(a, copy, quiet);
    else if (ok && strcmp(name, QSF_LOG_PERSONA) == 0)
        ui_app_set_role(a, copy);
    else if (ok)
        ok = set_setting(a, name, copy, quiet);
    ui_session_because(&a->session, NULL, false);
    free(name);
    free(copy);
    return ok;
}

/* Makes a step again, or takes it back. quiet: nothing is said about a value. */
static bool apply(UiApp *a, const UiStep *s, UiSpot to, const char *by, bool quiet) {
    if (s->kind == UI_STEP_SETTING || s->kind == UI_STEP_SYSTEM)
        return set_value(a, s, strcmp(by, QSF_LOG_BY_UNDO) == 0, quiet);
    if (strcmp(s->by, "goto") != 0) to.branch = ui_tree_spot(&a->session.tree).branch;
    return ui_app_go(a, to, by);
}

/* Takes back the last change, which may be several steps. *several: it was. */
static bool take_back(UiApp *a, bool *several) {
    const UiTree *t = &a->session.tree;
    UiSpot to;
    const UiStep *s = ui_tree_undo(t, &to);
    bool ok = true;
    *several = t->n_done > 1 && t->steps[t->n_done - 2].more;
    for (uint32_t done = t->n_done; s; done = t->n_done) {
        ok = apply(a, s, to, QSF_LOG_BY_UNDO, *several) && ok;
        s = t->n_done < done ? ui_tree_undo(t, &to) : NULL;
        if (s && !s->more) s = NULL;
    }
    return ok;
}

/* Makes the next change again. */
static bool make_again(UiApp *a) {
    const UiTree *t = &a->session.tree;
    bool ok = true, more = true, several = false;
    for (const UiStep *s = ui_tree_redo(t); s && more; s = ui_tree_redo(t)) {
        const uint32_t done = t->n_done;
        more = s->more;
        several = several || more;
        ok = apply(a, s, s->to, QSF_LOG_BY_REDO, several) && ok;
        if (t->n_done <= done) break;
    }
    return ok;
}

/* What the next /undo would take back. */
static const char *what_is_next(const UiApp *a) {
    UiSpot to;
    const UiStep *s = ui_tree_undo(&a->session.tree, &to);
    if (s && !is_exchange(s)) return "";
    return ui_transcript_last(&a->chat) ? "; /undo again removes the last exchange" : "";
}

static bool is_version(const char *by) { return strcmp(by, "version") == 0 || strcmp(by, UI_BY_TOKEN) == 0; }

/* The last change, if it was not an exchange. *ok: it was taken back. */
static bool undo_change(UiApp *a, bool *ok) {
    UiSpot to;
    char by[sizeof((UiStep *)0)->by];
    bool several;
    const UiStep *s = ui_tree_undo(&a->session.tree, &to);
    if (a->unanswered != 0 && ui_app_branch_back(a)) {
        ui_app_say(a, UI_NOTICE, "previous answer restored");
        *ok = true;
        return true;
    }
    if (!s || is_exchange(s)) return false;
    const bool moved = s->kind == UI_STEP_MOVED;
    (void)snprintf(by, sizeof by, "%s", s->by);
    *ok = take_back(a, &several);
    if (*ok && moved && is_version(by))
        ui_app_say(a, UI_NOTICE, "previous version restored%s", what_is_next(a));
    else if (moved ? *ok : several)
        ui_app_say(a, UI_NOTICE, "undid /%s%s", by, what_is_next(a));
    return true;
}

/* ---- what /undo takes back ---- */

#define NOTHING UI_UNDO_NOTHING
#define BACK    UI_UNDO_BACK
#define NOT     UI_UNDO_NOT

static const struct {
    const char *name;
    UiUndo undo;
    const char *why;
} commands[] = {
    { "help", NOTHING, NULL },
    { "quit", NOTHING, NULL },
    { "clear", BACK, NULL },
    { "new", NOT, "/load NAME goes back to the session before, /sessions lists them" },
    { "set", BACK, NULL },
    { "show", NOTHING, NULL },
    { "system", BACK, NULL },
    { "role", BACK, NULL },
    { "game", BACK, NULL },
    { "template", BACK, NULL },
    { "model", NOT, "/model FILE loads the one before" },
    { "models", NOTHING, NULL },
    { "retry", BACK, NULL },
    { "edit", BACK, NULL },
    { "as", BACK, NULL },
    { "undo", NOTHING, NULL },
    { "redo", BACK, NULL },
    { "branch", BACK, NULL },
    { "tree", NOTHING, NULL },
    { "goto", BACK, NULL },
    { "forget", BACK, NULL },
    { "compact", BACK, NULL },
    { "swap", BACK, NULL },
    { "continue", BACK, NULL },
    { "think", NOTHING, NULL },
    { "raw", NOTHING, NULL },
    { "probs", NOTHING, NULL },
    { "why", NOTHING, NULL },
    { "theme", NOTHING, NULL },
    { "search", NOTHING, NULL },
    { "stop", BACK, NULL },
    { "bias", BACK, NULL },
    { "ban", BACK, NULL },
    { "least", BACK, NULL },
    { "read", NOTHING, NULL },
    { "queue", NOTHING, NULL },
    { "source", NOTHING, NULL }, /* its lines are undone one by one */
    { "stats", NOTHING, NULL },
    { "context", BACK, NULL },
    { "mem", NOTHING, NULL },
    { "experts", NOTHING, NULL },
    { "budget", BACK, NULL },
    { "io", BACK, NULL },
    { "kv", BACK, NULL },
    { "quality", BACK, NULL },
    { "lora", BACK, NULL },
    { "save", NOT, "what follows is saved there; /load NAME goes back to the session before" },
    { "load", NOT, "/load NAME goes back to the session before" },
    { "sessions", NOTHING, NULL },
    { "rename", BACK, NULL },
    { "delete", NOT, "the session is gone" },
    { "copy", NOTHING, NULL },
    { "save-code", NOTHING, NULL },
    { "export", NOTHING, NULL },
};

UiUndo ui_undo_of(const char *command, const char **why) {
    size_t i = 0;
    while (i < sizeof commands / sizeof *commands && strcmp(commands[i].name, command) != 0) i++;
    const bool known = i < sizeof commands / sizeof *commands;
    if (why) *why = known ? commands[i].why : NULL;
    return known ? commands[i].undo : UI_UNDO_UNKNOWN;
}

void ui_undo_note(UiApp *a, const char *command) {
    const UiTree *t = &a->session.tree;
    if (ui_undo_of(command, NULL) == UI_UNDO_NOT)
        a->not_undone = (UiNotUndone){ command, t->n_done, ui_tree_spot(t).id };
}

/* The last command cannot be taken back: that is said before anything else is. */
static bool says_why_not(UiApp *a) {
    const UiTree *t = &a->session.tree;
    const UiNotUndone last = a->not_undone;
    const char *name = last.command, *why = NULL;
    if (name) (void)ui_undo_of(name, &why);
    const bool more = t->n_done > 0 || ui_transcript_last(&a->chat);
    a->not_undone.command = NULL;
    if (!why || last.steps != t->n_done || last.message != ui_tree_spot(t).id) return false;
    ui_app_say(a, UI_ERROR, "/undo does not take back /%s: %s%s", name, why,
               more ? "; /undo again takes back the change before it" : "");
    return true;
}

bool ui_cmd_undo(UiApp *a, const char *name, const char *args) {
    long n, users = 0;
    bool ok = true;
    if (!ui_parse_exchanges(a, name, args, &n) || ui_cmd_busy(a, name)) return false;
    if (!*args && says_why_not(a)) return false;
    if (!*args && undo_change(a, &ok)) return ok;
    uint32_t drop = 0;
    for (size_t i = a->chat.n; i > 0 && users < n; i--) {
        const UiItem *it = a->chat.items[i - 1];
        drop += it->in_context;
        users += it->in_context && it->kind == UI_USER;
    }
    if (drop == 0) {
        ui_app_say(a, UI_ERROR, "/%s: nothing to undo", name);
        return false;
    }
    ui_session_because(&a->session, QSF_LOG_BY_UNDO, false);
    ui_app_drop(a, drop);
    ui_session_because(&a->session, NULL, false);
    ui_app_say(a, UI_NOTICE, "removed %ld exchange%s", users, users == 1 ? "" : "s");
    return true;
}

bool ui_cmd_redo(UiApp *a, const char *name, const char *args) {
    long n, done = 0, exchanges = 0;
    const UiStep *s;
    if (!ui_parse_exchanges(a, name, args, &n) || ui_cmd_busy(a, name)) return false;
    for (; done < n && (s = ui_tree_redo(&a->session.tree)) != NULL; done++) {
        const UiStepKind kind = s->kind;
        const bool several = s->more;
        char by[sizeof s->by];
        (void)snprintf(by, sizeof by, "%s", s->by);
        if (!make_again(a)) return false;
        exchanges += kind == UI_STEP_EXCHANGE;
        if (kind == UI_STEP_MOVED && is_version(by))
            ui_app_say(a, UI_NOTICE, "other version restored");
        else if (kind == UI_STEP_MOVED || several)
            ui_app_say(a, UI_NOTICE, "redid /%s", by);
    }
    if (exchanges > 0)
        ui_app_say(a, UI_NOTICE, "restored %ld exchange%s", exchanges, exchanges == 1 ? "" : "s");
    if (done == 0) ui_app_say(a, UI_ERROR, "/%s: nothing was undone", name);
    return done > 0;
}
