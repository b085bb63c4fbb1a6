/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands about the conversation itself. Commands that change messages while an answer is generated stop
 * that answer first or must wait for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_remote.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/commands.h"
#include "ui/ctx_full.h"
#include "ui/exchanges.h"
#include "ui/quoted.h"

bool ui_cmd_quit(UiApp *a, const char *name, const char *args) {
    (void)name, (void)args;
    a->quit = true;
    return true;
}

bool ui_cmd_clear(UiApp *a, const char *name, const char *args) {
    (void)args;
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    ui_app_clear_messages(a);
    ui_session_simple(&a->session, QSF_LOG_CLEAR, NULL, NULL, 0);
    ui_app_say(a, UI_NOTICE, "conversation cleared");
    return true;
}

/* Moves the last message of the user, sent or withdrawn, to the end and asks it again. */
bool ui_cmd_retry(UiApp *a, const char *name, const char *args) {
    (void)args;
    if (ui_cmd_busy(a, name)) return false;
    if (!a->model_ready && a->model_path && qsf_connect_is(a->model_path)) { /* the server may be there now */
        ui_app_load(a, a->model_path);
        return true;
    }
    UiItem *user = ui_transcript_last_of(&a->chat, UI_USER);
    UiItem *last = ui_transcript_last(&a->chat);
    /* A summary in front of the conversation is not an answer. */
    const bool summary = last && last->kind == UI_ANSWER && last->node == 0 && !a->session.tree.failed;
    if (!user || summary || (last && last->kind == UI_ANSWER && !user->in_context && last->id > user->id)) {
        ui_app_say(a, UI_ERROR, "/%s: there is no message to answer", name);
        return false;
    }
    if (!a->model_ready) return ui_app_ask(a, false);
    if (user->in_context) {
        if (last && last->kind == UI_ANSWER) ui_app_branch_answer(a, last, "retry");
    } else {
        user->in_context = true;
        if (a->unanswered != user->id) user->number = ++a->chat.next_number; /* it is sent once more */
        user->version++;
        ui_app_save_message(a, user, (UiPlace){ 0 });
    }
    if (ui_app_ask(a, false)) return true;
    if (!ui_app_branch_back(a)) ui_app_withdraw(a);
    return false;
}

bool ui_parse_exchanges(UiApp *a, const char *name, const char *args, long *n) {
    char *end;
    *n = *args ? strtol(args, &end, 10) : 1;
    if (!*args || (!*end && *n >= 1 && *n <= 1000000)) return true;
    ui_app_say(a, UI_ERROR, "/%s expects a number of exchanges, 1 or more, not '%.40s'", name, args);
    return false;
}

bool ui_cmd_forget(UiApp *a, const char *name, const char *args) {
    long n;
    const uint32_t all = ui_exchanges(a);
    if (!ui_parse_exchanges(a, name, args, &n) || ui_cmd_busy(a, name)) return false;
    if (all == 0) {
        ui_app_say(a, UI_ERROR, "/%s: nothing to forget", name);
        return false;
    }
    ui_forget(a, n < (long)all ? (uint32_t)n : all);
    ui_ctx_full_refresh(a);
    return true;
}

bool ui_cmd_compact(UiApp *a, const char *name, const char *args) {
    if (ui_cmd_busy(a, name)) return false;
    if (*args) {
        if (ui_compact_with(a, args)) return true;
        ui_app_say(a, UI_ERROR, "/%s: fewer than two exchanges", name);
        return false;
    }
    if (!a->model_ready) {
        ui_app_say(a, UI_ERROR, "/%s: no model is loaded", name);
        return false;
    }
    ui_app_refresh_context(a);
    const uint32_t n = ui_compact_choose(a);
    if (n == 0) {
        ui_app_say(a, UI_ERROR,
                   ui_exchanges(a) < 2 ? "/%s: fewer than two exchanges"
                                       : "/%s: a summary does not fit the context",
                   name);
        return false;
    }
    return ui_compact(a, n, ui_ctx_full_open(a)); /* the answer to which the question belongs continues */
}

bool ui_cmd_continue(UiApp *a, const char *name, const char *args) {
    (void)args;
    if (ui_cmd_busy(a, name)) return false;
    UiItem *last = ui_transcript_last(&a->chat);
    if (!last || last->kind != UI_ANSWER) {
        ui_app_say(a, UI_ERROR, "/%s: there is no answer to continue", name);
        return false;
    }
    return ui_ctx_full_ask_again(a) || ui_app_ask(a, true);
}

bool ui_cmd_think(UiApp *a, const char *name, const char *args) {
    bool show = strcmp(args, "show") == 0;
    if (strcmp(args, "now") == 0) {
        if (!ui_need(a, UI_NEEDS_CLOSE, "think now")) return false;
        if (ui_app_answer_now(a)) return true;
        ui_app_say(a, UI_ERROR, "/%s now: no answer is thinking", name);
        return false;
    }
    if (*args == '-' || (*args >= '0' && *args <= '9'))
        return ui_app_set(a, qsf_setting_find("reasoning-budget"), args, false);
    if (*args && !show && strcmp(args, "hide") != 0) {
        ui_app_say(
            a, UI_ERROR,
            "/%s expects show, hide, now or a number of tokens, not '%.40s' (/reasoning switches it on "
            "and off)",
            name, args);
        return false;
    }
    ui_app_think(a, *args ? show : !a->settings.show_thinking, false);
    return true;
}

static void list_stops(UiApp *a) {
    UiBuf b = { 0 };
    for (size_t i = 0; i < a->stops.n; i++) {
        ui_stops_quote(a->stops.text[i], &b);
        ui_buf_puts(&b, "\n");
    }
    ui_app_print(a, UI_OUTPUT, a->stops.n ? ui_buf_str(&b) : "no stop strings are set");
    ui_buf_free(&b);
}

bool ui_cmd_stop(UiApp *a, const char *name, const char *args) {
    char *text = NULL;
    bool ok = true;
    if (!*args) {
        list_stops(a);
        return true;
    }
    ui_session_because(&a->session, "stop", false);
    if (strcmp(args, "off") == 0) {
        (void)ui_app_change_stops(a, "");
    } else {
        text = ui_stops_unquote(args);
        const char *wrong = text ? ui_app_change_stops(a, text) : "out of memory";
        if (wrong) ui_app_say(a, UI_ERROR, "/%s: %s", name, wrong);
        ok = !wrong;
    }
    ui_session_because(&a->session, NULL, false);
    free(text);
    if (ok && a->running == UI_REQUEST_ANSWER) ui_app_say(a, UI_NOTICE, "takes effect with the next answer");
    return ok;
}

bool ui_cmd_system(UiApp *a, const char *name, const char *args) {
    (void)name;
    if (!*args) {
        ui_app_print(a, UI_OUTPUT, a->system.len ? ui_buf_str(&a->system) : "no system prompt");
        return true;
    }
    size_t len = strlen(args);
    ui_quoted_strip(&args, &len);
    char *text = strcmp(args, "off") == 0 ? ui_strdup_len("", 0) : ui_strdup_len(args, len);
    if (!text) {
        ui_app_say(a, UI_ERROR, "out of memory");
        return false;
    }
    ui_session_because(&a->session, "system", false);
    ui_app_set_system(a, text);
    ui_session_because(&a->session, NULL, false);
    free(text);
    const char *when = a->running == UI_REQUEST_ANSWER ? ", for the next message" : "";
    if (a->system.len)
        ui_app_say(a, UI_NOTICE, "system prompt set%s", when);
    else
        ui_app_say(a, UI_NOTICE, "no system prompt%s", when);
    return true;
}
