/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: a session is resumed, with its messages, its settings and its model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"
#include "ui/app_internal.h"
#include "ui/guide.h"

#define UI_TEXT_STEP  65536u /* bytes that the reserve of a plan has space for */
#define UI_SYSTEM_MAX ((uint64_t)1 << 20)

/* A conversation while its file is read: that of the chat stays what it is until all of it fits. */
typedef struct Replay {
    UiApp *app;
    UiReplayList list;
    UiTranscript chat; /* made of it; texts are still in the file */
    UiRoom room;
    uint64_t places; /* records of messages */
    bool guide_talk;
    bool any;                         /* record */
    UiOwn own;                        /* settings in the file */
    bool system;                      /* it has a system prompt, or had one */
    uint64_t system_at, system_bytes; /* its record */
    char *model;                      /* path of the last QSF_LOG_MODEL record */
    char *label;                      /* its name there, or NULL */
    bool too_many;                    /* messages for the RAM budget */
} Replay;

size_t ui_model_stem(const char *name) {
    static const char *const endings[] = { ".gguf", ".qsf" };
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (len > n && strcmp(name + len - n, endings[i]) == 0) return len - n;
    }
    return len;
}

/* The model's file name: older session files do not store the model's name. */
static void label_from_path(UiItem *it, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *clean = qsf_clean_dup(name, ui_model_stem(name), true);
    (void)snprintf(it->label, sizeof it->label, "%s", clean ? clean : "");
    free(clean);
}

/* The name that the answer had on the screen. */
static void label(const Replay *rp, UiItem *it, const QSFLogRecord *r) {
    const char *name = r->name ? r->name : rp->label;
    char *clean = name ? qsf_clean_dup(name, strlen(name), true) : NULL;
    if (clean)
        (void)snprintf(it->label, sizeof it->label, "%.63s", clean);
    else if (rp->model)
        label_from_path(it, rp->model);
    free(clean);
}

/* An answer after an answer is what /continue added to it. */
static void replay_message(Replay *rp, const QSFLogRecord *r) {
    bool user = strcmp(r->role, "user") == 0;
    UiItem *last = ui_replay_last(&rp->list);
    if (user && last && last->places) last->places->exact = false; /* it will not be continued */
    if (user || !last || last->kind != UI_ANSWER) last = ui_replay_add(&rp->list, user ? UI_USER : UI_ANSWER);
    if (!last || !ui_item_place(last, r)) {
        rp->too_many = true;
        return;
    }
    rp->places++;
    if (!user) label(rp, last, r);
    last->time = r->time > 0 && r->time < 1e11 ? r->time : 0; /* a damaged one does not fit any time type */
    last->seed = r->seed;
    last->tokens += r->tokens;
    (void)snprintf(last->stop, sizeof last->stop, "%s", r->stop ? r->stop : "");
}

/* A question and the summary that replaced forgotten messages. */
static void replay_summary(Replay *rp, const QSFLogRecord *r) {
    UiItem *answer = ui_replay_prepend(&rp->list, r->name);
    rp->too_many = rp->too_many || !answer || !ui_item_place(answer, r);
}

/* A conversation with the guide is not passed to another model. */
static void replay_model(Replay *rp, const QSFLogRecord *r) {
    char *model = r->text && r->text_bytes == r->len ? ui_strdup_len(r->text, r->len) : NULL;
    if (!model) return;
    free(rp->model);
    free(rp->label);
    rp->model = model;
    rp->label = r->name ? ui_strdup_len(r->name, strlen(r->name)) : NULL;
    bool guide = ui_guide_is(model);
    if (guide != rp->guide_talk) ui_replay_clear(&rp->list);
    rp->guide_talk = guide;
}

static bool replay_record(void *arg, const QSFLogRecord *r) {
    Replay *rp = arg;
    rp->any = true;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: replay_message(rp, r); break;
    case QSF_LOG_PART: break;
    case QSF_LOG_UNDO: ui_replay_drop(&rp->list, r->n); break;
    case QSF_LOG_CLEAR: ui_replay_clear(&rp->list); break;
    case QSF_LOG_FORGET:
        rp->too_many = rp->too_many || !ui_replay_forget(&rp->list, r->n);
        if (r->name && r->text) replay_summary(rp, r);
        break;
    case QSF_LOG_SYSTEM:
        rp->system = true;
        rp->system_at = r->at;
        rp->system_bytes = r->text_bytes;
        break;
    case QSF_LOG_SET:
        if (r->text_bytes == r->len) ui_own_record(&rp->own, r);
        break;
    case QSF_LOG_MODEL: replay_model(rp, r); break;
    }
    rp->too_many = rp->too_many || !ui_room_for_items(&rp->room, rp->list.n + rp->list.n_past, rp->places);
    return !rp->too_many;
}

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

/* The settings of the session reach the engine, with its model if another one is loaded. */
static void take_model(Replay *rp) {
    UiApp *a = rp->app;
    QSFSettings before = a->settings;
    const bool load = wants_load(a, rp->model);
    a->model_unsaved = false;
    ui_own_take(a, rp->system);
    if (!load) a->engine.advise(a->engine.self, &a->settings);
    a->engine.set_params(a->engine.self, &a->settings.params);
    if (load) {
        a->resuming = a->model_path != NULL;
        ui_app_load(a, rp->model);
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

static void put_system(void *arg, QSFLogPart part, const char *s, size_t len) {
    if (part == QSF_LOG_IS_TEXT) (void)ui_buf_add(arg, s, len);
}

static bool load_system(Replay *rp, const QSFChatLog *log, const char *name, char *err, size_t cap) {
    if (rp->system_bytes == 0) return true;
    if (rp->system_bytes > UI_SYSTEM_MAX) {
        (void)snprintf(err, cap, "session %s: its system prompt has %.1f MB, and at most 1 MB is allowed",
                       name, (double)rp->system_bytes / (1 << 20));
        return false;
    }
    if (qsf_chatlog_texts(log, &rp->system_at, 1, put_system, &rp->own.system) && !rp->own.system.failed)
        return true;
    (void)snprintf(err, cap, "session %s: cannot read its system prompt", name);
    return false;
}

/* Reads the file of the session that log has open. */
static bool replay(Replay *rp, const char *name, const QSFChatLog *log, uint32_t *damaged, char *err,
                   size_t cap) {
    UiApp *a = rp->app;
    QSFSettings s;
    rp->list.maker = (UiTranscript){ .ascii = a->chat.ascii, .next_id = a->chat.next_id };
    ui_own_begin(&rp->own);
    ui_own_settings(a, &rp->own, &s);
    ui_room_measure(a, &s, &rp->room);
    if (!qsf_chatlog_read(name, replay_record, rp, damaged, err, cap)) return false;
    ui_own_settings(a, &rp->own, &s);
    ui_room_measure(a, &s, &rp->room);
    if (rp->too_many || !ui_replay_finish(&rp->list, &rp->chat)) {
        ui_room_refuse(a, &rp->room, name, 0, err, cap);
        return false;
    }
    return load_system(rp, log, name, err, cap) &&
           ui_texts_load(a, &rp->chat, log, &rp->room, name, err, cap);
}

/* The messages and settings of the session become those of the chat. */
static void take_over(Replay *rp, UiSession *next, uint32_t damaged) {
    UiApp *a = rp->app;
    ui_session_close(&a->session);
    next->lost = a->session.lost || a->session.unsaved;
    next->rewrite = ui_app_rewrite;
    next->arg = a;
    a->session = *next;
    ui_transcript_clear(&a->chat);
    a->unanswered = 0;
    a->chat = rp->chat;
    rp->chat = (UiTranscript){ 0 };
    ui_own_free(&a->own);
    a->own = rp->own;
    rp->own = (UiOwn){ 0 };
    a->kept = rp->any || damaged > 0;
    a->guide_talk = rp->guide_talk;
    a->unnamed = rp->model == NULL;
    settle(rp, a->session.name, damaged);
    ui_app_count_context(a);
}

static void replay_free(Replay *rp) {
    ui_replay_free(&rp->list);
    ui_transcript_clear(&rp->chat);
    ui_own_free(&rp->own);
    free(rp->model);
    free(rp->label);
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
    next.had_file = rp.any;
    if (ok)
        take_over(&rp, &next, damaged);
    else
        ui_session_close(&next);
    if (rp.room.refused && !a->started && a->exit_code == 0) a->exit_code = QSF_EXIT_BUDGET;
    replay_free(&rp);
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
