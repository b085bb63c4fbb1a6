/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /game: personas that set sampling controls. What a game replaces comes back with /game off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_games.h"
#include "ui/app_internal.h"
#include "ui/commands.h"

static void list(UiApp *a) {
    char *names = qsf_game_names(), err[400];
    UiBuf b = { 0 };
    for (const char *n = names; n && *n; n += strlen(n) + 1) {
        QSFGame *g = qsf_game_read(n, err, sizeof err);
        char *clean = qsf_clean_dup(g ? g->about : err, strlen(g ? g->about : err), true);
        ui_buf_printf(&b, "%s%s %-14s %s", b.len ? "\n" : "", strcmp(n, a->game.name) == 0 ? "*" : " ", n,
                      clean ? clean : "");
        free(clean);
        qsf_game_free(g);
    }
    if (b.len > 0)
        ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    else
        ui_app_say(a, UI_NOTICE, "no games are installed");
    ui_buf_free(&b);
    free(names);
}

/* Settings and system prompt of before the first game. */
static void remember(UiApp *a) {
    UiGame *g = &a->game;
    if (g->name[0]) return;
    g->before = a->settings;
    g->set = 0;
    ui_buf_clear(&g->system);
    ui_buf_add(&g->system, ui_buf_str(&a->system), a->system.len);
    g->has_system = false;
}

/* Was a setting of the game changed since? Grammars end one another, so they are changed together. */
static bool is_changed(const UiApp *a, const QSFSetting *row) {
    const QSFSettings *now = &a->settings, *then = &a->game.after;
    if (qsf_setting_differs(now, then, row)) return true;
    return ui_setting_is_grammar(row) && (now->params.grammar_kind != then->params.grammar_kind ||
                                          strcmp(now->params.grammar, then->params.grammar) != 0);
}

/* What was changed during the game stays. */
static bool put_back(UiApp *a) {
    UiGame *g = &a->game;
    char value[QSF_SETTING_TEXT];
    bool ok = true;
    for (size_t i = 0; i < qsf_setting_count(); i++)
        if ((g->set >> i & 1) && is_changed(a, qsf_setting_at(i))) g->set &= ~((QSFSettingSet)1 << i);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!(g->set >> i & 1)) continue;
        qsf_setting_get(&g->before, row, value, sizeof value);
        ok = ui_app_set(a, row, value, true) && ok;
    }
    if (g->has_system) ui_app_set_system(a, ui_buf_str(&g->system));
    g->set = 0;
    g->has_system = false;
    return ok;
}

/* A game that was begun before the program started, or that /redo has begun: what it replaced is not known,
 * so the values of the configuration and the model come back. */
static bool resume(UiApp *a) {
    UiGame *g = &a->game;
    char err[400];
    QSFGame *file = g->name[0] ? NULL : qsf_game_read(a->role, err, sizeof err);
    if (!file) return g->name[0] != '\0';
    g->before = a->settings;
    ui_app_base(a, &g->before);
    g->set = file->settings.user_set;
    g->after = file->settings;
    g->has_system = file->system != NULL;
    ui_buf_clear(&g->system);
    (void)snprintf(g->name, sizeof g->name, "%s", file->name);
    qsf_game_free(file);
    return true;
}

static bool end_game(UiApp *a, const char *name) {
    if (!resume(a)) {
        ui_app_say(a, UI_ERROR, "/%s: no game is running", name);
        return false;
    }
    ui_session_because(&a->session, "game", true); /* one change */
    const bool ok = put_back(a);
    ui_session_because(&a->session, "game", false);
    ui_app_say(a, UI_NOTICE, "the game %s is over", a->game.name);
    ui_app_set_role(a, "");
    ui_session_because(&a->session, NULL, false);
    return ok;
}

/* A setting may end another one, which then comes back, too. */
static bool take_settings(UiApp *a, const QSFGame *g) {
    const QSFSettings was = a->settings;
    char value[QSF_SETTING_TEXT];
    bool ok = true;
    for (size_t i = 0; ok && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!qsf_setting_user_set(&g->settings, row)) continue;
        qsf_setting_get(&g->settings, row, value, sizeof value);
        ok = ui_app_set(a, row, value, true);
        if (ok) a->game.set |= (QSFSettingSet)1 << i;
    }
    for (size_t i = 0; i < qsf_setting_count(); i++)
        if (qsf_setting_differs(&a->settings, &was, qsf_setting_at(i))) a->game.set |= (QSFSettingSet)1 << i;
    a->game.after = a->settings;
    return ok;
}

/* The game's messages follow those of before. */
static bool begin_messages(UiApp *a, const QSFGame *g) {
    const UiItem *last = ui_transcript_last(&a->chat);
    if (g->assistant && !(last && last->kind == UI_ANSWER)) {
        UiBuf b = { 0 };
        ui_buf_printf(&b, "/as assistant %s", g->assistant);
        const bool ok = ui_command_run(a, ui_buf_str(&b), b.len);
        ui_buf_free(&b);
        if (!ok) return false;
    }
    return !g->user || ui_app_submit(a, g->user, strlen(g->user));
}

static bool play(UiApp *a, const QSFGame *g) {
    remember(a);
    ui_session_because(&a->session, "game", true); /* one change, also what another game had set */
    bool ok = put_back(a);
    if (g->system) ui_app_set_system(a, g->system);
    a->game.has_system = g->system != NULL;
    ok = ok && take_settings(a, g);
    ui_session_because(&a->session, "game", false);
    (void)snprintf(a->game.name, sizeof a->game.name, "%s", g->name);
    ui_app_set_role(a, g->name);
    ui_session_because(&a->session, NULL, false);
    if (ok) ui_app_say(a, UI_NOTICE, "game %s: %s (/game off ends it)", g->name, g->about);
    return ok && begin_messages(a, g);
}

bool ui_cmd_game(UiApp *a, const char *name, const char *args) {
    char err[600];
    if (!*args) {
        list(a);
        return true;
    }
    if (ui_app_writing(a) && ui_cmd_busy(a, name)) return false;
    if (strcmp(args, "off") == 0) return end_game(a, name);
    QSFGame *g = qsf_game_read(args, err, sizeof err);
    if (!g) {
        ui_app_say(a, UI_ERROR, "/%s: %s; /%s lists them", name, err, name);
        return false;
    }
    const bool ok = play(a, g);
    qsf_game_free(g);
    return ok;
}
