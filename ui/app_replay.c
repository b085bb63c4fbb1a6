/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: a session is resumed, with its messages, its settings and its model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_cli.h"
#include "qsf_remote.h"
#include "ui/app_internal.h"
#include "ui/format.h"
#include "ui/guide.h"

#define UI_TEXT_STEP  65536u /* bytes that the reserve of a plan has space for */
#define UI_SYSTEM_MAX ((uint64_t)1 << 20)

/* A conversation while its file is read: that of the chat stays what it is until all of it fits. */
typedef struct Replay {
    UiApp *app;
    UiReplay of;
    UiTree tree;
    UiTranscript chat; /* made of it; texts are still in the file */
} Replay;

/* Are these the same file, or both the guide? */
static bool same_model(const char *x, const char *y) {
    if (strcmp(x, y) == 0 || ui_guide_is(x) || ui_guide_is(y)) return strcmp(x, y) == 0;
    char *a = realpath(x, NULL), *b = realpath(y, NULL);
    bool same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    return same;
}

/* A model that was given to the program, or is loaded without being asked for by this session, answers a
 * session that names none. */
static bool wants_load(const UiApp *a, const char *model) {
    if (!model || !*model) return false;
    if (!a->model_path) return !a->want_model && !ui_app_busy(a);
    const char *next = a->want_model ? a->want_model : a->model_path;
    return !same_model(next, model) || (!a->model_ready && !ui_app_busy(a));
}

/* An automatic budget counts the text of the conversation. */
static bool wants_room(const UiApp *a, uint64_t counted) {
    const bool automatic = a->settings.ram_budget == 0 && a->settings.ram_percent == 0;
    return automatic && a->model_ready && !a->replanning && !ui_app_busy(a) &&
           ui_transcript_bytes(&a->chat) > counted + UI_TEXT_STEP;
}

/* The server was given without a model: it is the one that the session had there. */
static void take_server_model(UiApp *a, const char *model) {
    const bool same = a->want_model && model && qsf_connect_is(a->want_model) && qsf_connect_is(model) &&
                      !*qsf_connect_model(a->want_model) && qsf_connect_same(a->want_model, model);
    char *copy = same ? ui_strdup_len(model, strlen(model)) : NULL;
    if (!copy) return;
    free(a->want_model);
    a->want_model = copy;
}

/* The settings of the session reach the engine, with its model if another one is loaded. */
static void take_model(Replay *rp) {
    UiApp *a = rp->app;
    QSFSettings before = a->settings;
    take_server_model(a, rp->of.model);
    const bool load = wants_load(a, rp->of.model);
    a->model_unsaved = false;
    ui_own_take(a, rp->of.system);
    if (!load) a->engine.advise(a->engine.self, &a->settings);
    a->engine.set_params(a->engine.self, &a->settings);
    if (load) {
        a->resuming = a->model_path != NULL;
        ui_app_load(a, rp->of.model);
        a->model_unsaved = true; /* the file names it already */
        return;
    }
    ui_app_apply(a, &before);
    if (wants_room(a, before.text_bytes)) ui_app_replan(a);
    a->resuming = a->replanning || a->running == UI_REQUEST_LOAD;
    if (a->model_ready) ui_guide_switch(a);
}

/* After the replay: informs the engine, and removes a question without an answer from the context. */
static void settle(Replay *rp, const char *name, uint32_t damaged) {
    UiApp *a = rp->app;
    take_model(rp);
    UiItem *last = ui_transcript_last(&a->chat);
    if (last && last->kind == UI_USER) {
        ui_app_withdraw(a);
        ui_app_say(a, UI_NOTICE, "the last message had no answer yet: /retry sends it again");
    }
    if (damaged > 0)
        ui_app_say(a, UI_NOTICE, "session %s: %u damaged line%s skipped", name, damaged,
                   damaged == 1 ? " was" : "s were");
}

static bool load_system(Replay *rp, const QSFChatLog *log, const char *name, char *err, size_t cap) {
    if (rp->of.system_bytes == 0) return true;
    if (rp->of.system_bytes > UI_SYSTEM_MAX) {
        (void)snprintf(err, cap, "session %s: its system prompt has %.1f MB, and at most 1 MB is allowed",
                       name, (double)rp->of.system_bytes / (1 << 20));
        return false;
    }
    if (qsf_chatlog_texts(log, &rp->of.system_at, 1, ui_session_put_text, &rp->of.own.system) &&
        !rp->of.own.system.failed)
        return true;
    (void)snprintf(err, cap, "session %s: cannot read its system prompt", name);
    return false;
}

/* Reads the file of the session that log has open. */
static bool replay(Replay *rp, const char *name, const QSFChatLog *log, uint32_t *damaged, char *err,
                   size_t cap) {
    UiApp *a = rp->app;
    QSFSettings s;
    rp->of.list.maker = (UiTranscript){ .ascii = a->chat.ascii, .next_id = a->chat.next_id };
    ui_own_begin(&rp->of.own);
    ui_own_settings(a, &rp->of.own, &s);
    ui_room_measure(a, &s, &rp->of.room);
    rp->of.tree = &rp->tree;
    rp->tree.max = ui_room_for_tree(&rp->of.room);
    if (!qsf_chatlog_read(name, ui_replay_record, &rp->of, damaged, err, cap)) return false;
    if (rp->of.too_many || !ui_replay_finish(&rp->of.list, &rp->chat)) {
        ui_room_refuse(a, &rp->of.room, name, 0, err, cap);
        return false;
    }
    ui_own_settings(a, &rp->of.own, &s);
    ui_room_measure(a, &s, &rp->of.room);
    return load_system(rp, log, name, err, cap) &&
           ui_texts_load(a, &rp->chat, log, &rp->of.room, name, err, cap);
}

/* The name of the model that the session opens with: another one may have written the last answer. */
static void own_model(const Replay *rp, char *dst, size_t cap) {
    UiItem it = { 0 };
    const UiItem *last = ui_transcript_last_of(&rp->app->chat, UI_ANSWER);
    if (rp->of.label || rp->of.model)
        ui_replay_label(&rp->of, &it, &(QSFLogRecord){ 0 });
    else if (last && last->label[0])
        (void)snprintf(it.label, sizeof it.label, "%s", last->label);
    (void)snprintf(dst, cap, "%s", it.label);
}

/* ", lora a.gguf:0.5": adapters that are in use. */
static void own_files(const UiApp *a, UiBuf *b) {
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char value[QSF_SETTING_TEXT], shown[QSF_SETTING_TEXT];
        if (!ui_setting_has_files(row) || !ui_setting_is_on(&a->settings, row)) continue;
        qsf_setting_get(&a->settings, row, value, sizeof value);
        ui_setting_shown(row, value, shown, sizeof shown);
        ui_buf_printf(b, ", %s %s", row->name, shown);
    }
}

/* All messages of the session, as /sessions counts them. */
static void say_resumed(const Replay *rp) {
    UiApp *a = rp->app;
    char ago[32] = "", model[sizeof((UiItem *)0)->label], forgotten[60] = "";
    UiBuf files = { 0 };
    size_t n = 0, past = 0;
    double last = 0;
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        const bool message = it->kind == UI_USER || it->kind == UI_ANSWER;
        n += message;
        past += it->past;
        if (message && it->time > 0) last = it->time;
    }
    if (past > 0) (void)snprintf(forgotten, sizeof forgotten, ", %zu of them forgotten", past);
    ui_format_ago(last, (double)time(NULL), ago, sizeof ago);
    own_model(rp, model, sizeof model);
    own_files(a, &files);
    ui_app_say(a, UI_NOTICE, "resumed %s: %zu message%s%s%s%s%s%s%s%s", a->session.name, n, n == 1 ? "" : "s",
               forgotten, ago[0] ? ", " : "", ago, model[0] ? ", " : "", model, ui_buf_str(&files),
               a->no_save ? "; what follows is not saved" : "");
    ui_buf_free(&files);
}

/* Where the command line replaces what the session has. */
static void say_replaced(const Replay *rp) {
    UiApp *a = rp->app;
    UiBuf b = { 0 };
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char given[QSF_SETTING_TEXT], own[QSF_SETTING_TEXT];
        if (!qsf_setting_user_set(&a->given.settings, row) || !qsf_setting_user_set(&a->own.settings, row) ||
            !qsf_setting_differs(&a->given.settings, &a->own.settings, row))
            continue;
        qsf_setting_get(&a->given.settings, row, given, sizeof given);
        qsf_setting_get(&a->own.settings, row, own, sizeof own);
        ui_buf_printf(&b, "%s%s %s (its own: %s)", b.len ? ", " : "", row->name, given, own);
    }
    if (!a->started && rp->of.model && a->want_model && !same_model(a->want_model, rp->of.model))
        ui_buf_printf(&b, "%smodel %s (its own: %s)", b.len ? ", " : "", a->want_model, rp->of.model);
    if (b.len > 0) ui_app_say(a, UI_NOTICE, "the command line replaces: %s", ui_buf_str(&b));
    ui_buf_free(&b);
}

/* The messages and settings of the session become those of the chat. */
static void take_over(Replay *rp, UiSession *next, uint32_t damaged) {
    UiApp *a = rp->app;
    ui_session_close(&a->session);
    ui_session_free(&a->session);
    next->lost = a->session.lost || a->session.unsaved;
    next->rewrite = ui_app_rewrite;
    next->arg = a;
    a->session = *next;
    a->session.tree = rp->tree;
    rp->tree = (UiTree){ 0 };
    ui_transcript_clear(&a->chat);
    a->unanswered = 0;
    a->chat = rp->chat;
    if (a->session.tree.last_id > a->chat.next_number) a->chat.next_number = a->session.tree.last_id;
    rp->chat = (UiTranscript){ 0 };
    ui_own_free(&a->own);
    a->own = rp->of.own;
    rp->of.own = (UiOwn){ 0 };
    a->kept = rp->of.any || damaged > 0;
    a->guide_talk = rp->of.guide_talk;
    a->unnamed = rp->of.model == NULL;
    memcpy(a->session.title, rp->of.title, sizeof a->session.title);
    if (a->started || !a->role[0]) memcpy(a->role, rp->of.role, sizeof a->role);
    settle(rp, a->session.name, damaged);
    if (!a->session.log) ui_app_keep(a);
    ui_app_versions(a);
    ui_app_count_context(a);
    if (rp->of.any) say_resumed(rp);
    say_replaced(rp);
}

static UiResume resume(UiApp *a, const char *name, char *err, size_t cap) {
    /* Lock first: another program may be writing. */
    UiSession next = { .on = a->session.on };
    uint32_t damaged = 0;
    if (!ui_session_attach(&next, name, err, cap))
        return errno == EWOULDBLOCK ? UI_RESUME_IN_USE : UI_RESUME_FAILED;
    Replay rp = { .app = a };
    bool ok = replay(&rp, name, next.log, &damaged, err, cap);
    if (a->no_save) ui_session_detach(&next);
    next.had_file = rp.of.any;
    next.fresh = ok && !rp.of.any && damaged == 0 && !a->no_save;
    if (ok)
        take_over(&rp, &next, damaged);
    else
        ui_session_close(&next);
    if (rp.of.room.refused && !a->started && a->exit_code == 0) a->exit_code = QSF_EXIT_BUDGET;
    ui_transcript_clear(&rp.chat);
    ui_replay_end(&rp.of);
    ui_tree_free(&rp.tree);
    return ok ? UI_RESUMED : UI_RESUME_FAILED;
}

UiResume ui_app_try_resume(UiApp *a, const char *name) {
    char err[300] = "";
    UiResume got = resume(a, name, err, sizeof err);
    if (got == UI_RESUME_FAILED && err[0]) ui_app_say(a, UI_ERROR, "%s", err);
    return got;
}

bool ui_app_resume(UiApp *a, const char *name) {
    char err[300] = "";
    UiResume got = resume(a, name, err, sizeof err);
    if (got != UI_RESUMED && err[0]) ui_app_say(a, UI_ERROR, "%s", err);
    return got == UI_RESUMED;
}
