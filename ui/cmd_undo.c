/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /undo and /redo: the last changes of the conversation and its settings are taken back, and made again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/commands.h"

static bool is_exchange(const UiStep *s) { return s->kind == UI_STEP_EXCHANGE; }

static void put_system(void *arg, QSFLogPart part, const char *s, size_t len) {
    if (part == QSF_LOG_IS_TEXT) (void)ui_buf_add(arg, s, len);
}

/* at: a SYSTEM record + 1, 0 = there was no system prompt. */
static bool set_system(UiApp *a, uint32_t at, const char *by) {
    const QSFChatLog *log = ui_session_texts(&a->session);
    const uint64_t place = at > 0 ? at - 1 : 0;
    UiBuf text = { 0 };
    const bool ok = at == 0 || (log && qsf_chatlog_texts(log, &place, 1, put_system, &text));
    if (ok) {
        ui_session_because(&a->session, by, false);
        ui_app_set_system(a, ui_buf_str(&text));
        ui_session_because(&a->session, NULL, false);
        ui_app_say(a, UI_NOTICE, text.len > 0 ? "the system prompt is what it was" : "no system prompt");
    } else {
        ui_app_say(a, UI_ERROR, "the system prompt cannot be read from the session's file");
    }
    ui_buf_free(&text);
    return ok;
}

static bool set_setting(UiApp *a, const UiStep *s, const char *value, const char *by) {
    const QSFSetting *row = s->name ? qsf_setting_find(s->name) : NULL;
    char copy[QSF_SETTING_TEXT], now[QSF_SETTING_TEXT];
    (void)snprintf(copy, sizeof copy, "%s", value ? value : "");
    if (!row) return false;
    ui_session_because(&a->session, by, false);
    const uint32_t done = a->session.tree.n_done;
    const bool ok = ui_app_set(a, row, copy, true);
    if (a->session.tree.n_done == done) { /* it has that value already, or cannot have it: passed over */
        qsf_setting_get(&a->settings, row, now, sizeof now);
        ui_own_set(a, row, now);
    }
    ui_session_because(&a->session, NULL, false);
    if (ok) ui_app_say(a, UI_NOTICE, "%s is %s again", row->name, copy);
    return ok;
}

/* Makes a change again, or takes it back. */
static bool apply(UiApp *a, const UiStep *s, UiSpot to, const char *by) {
    const bool back = strcmp(by, QSF_LOG_BY_UNDO) == 0;
    switch (s->kind) {
    case UI_STEP_SETTING: return set_setting(a, s, back ? s->was : s->is, by);
    case UI_STEP_SYSTEM: return set_system(a, back ? s->was_at : s->is_at, by);
    case UI_STEP_EXCHANGE:
    case UI_STEP_MOVED: break;
    }
    if (strcmp(s->by, "goto") != 0) to.branch = ui_tree_spot(&a->session.tree).branch;
    return ui_app_go(a, to, by);
}

/* What the next /undo would take back. */
static const char *what_is_next(const UiApp *a) {
    UiSpot to;
    const UiStep *s = ui_tree_undo(&a->session.tree, &to);
    if (s && !is_exchange(s)) return "";
    return ui_transcript_last(&a->chat) ? "; /undo again removes the last exchange" : "";
}

/* The last change, if it was not an exchange. *ok: it was taken back. */
static bool undo_change(UiApp *a, bool *ok) {
    UiSpot to;
    char by[sizeof((UiStep *)0)->by];
    const UiStep *s = ui_tree_undo(&a->session.tree, &to);
    if (a->unanswered != 0 && ui_app_branch_back(a)) {
        ui_app_say(a, UI_NOTICE, "the answer before is there again");
        *ok = true;
        return true;
    }
    if (!s || is_exchange(s)) return false;
    const bool moved = s->kind == UI_STEP_MOVED;
    (void)snprintf(by, sizeof by, "%s", s->by);
    *ok = apply(a, s, to, QSF_LOG_BY_UNDO);
    if (*ok && moved && (strcmp(by, "version") == 0 || strcmp(by, UI_BY_TOKEN) == 0))
        ui_app_say(a, UI_NOTICE, "the version before is there again%s", what_is_next(a));
    else if (*ok && moved)
        ui_app_say(a, UI_NOTICE, "took back /%s%s", by, what_is_next(a));
    return true;
}

bool ui_cmd_undo(UiApp *a, const char *name, const char *args) {
    long n, users = 0;
    bool ok = true;
    if (!ui_parse_exchanges(a, name, args, &n) || ui_cmd_busy(a, name)) return false;
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
        char by[sizeof s->by];
        (void)snprintf(by, sizeof by, "%s", s->by);
        if (!apply(a, s, s->to, QSF_LOG_BY_REDO)) return false;
        exchanges += kind == UI_STEP_EXCHANGE;
        if (kind == UI_STEP_MOVED && (strcmp(by, "version") == 0 || strcmp(by, UI_BY_TOKEN) == 0))
            ui_app_say(a, UI_NOTICE, "the other version is there again");
        else if (kind == UI_STEP_MOVED)
            ui_app_say(a, UI_NOTICE, "made /%s again", by);
    }
    if (exchanges > 0)
        ui_app_say(a, UI_NOTICE, "restored %ld exchange%s", exchanges, exchanges == 1 ? "" : "s");
    if (done == 0) ui_app_say(a, UI_ERROR, "/%s: nothing was undone", name);
    return done > 0;
}
