/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: conversations on disk, replayed and rewritten. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/guide.h"

QSFLogRecord ui_app_record(const UiItem *it, UiPlace from) {
    QSFLogRecord r = { .text = ui_buf_str(&it->raw) + from.text, .len = it->raw.len - from.text };
    if (it->thought && it->thought->raw.len > from.thought) {
        r.reasoning = ui_buf_str(&it->thought->raw) + from.thought;
        r.reasoning_len = it->thought->raw.len - from.thought;
    }
    return r;
}

static void save_text(UiApp *a, const UiItem *it, UiPlace from) {
    bool answer = it->kind == UI_ANSWER;
    QSFLogRecord facts = ui_app_record(it, from);
    facts.seed = it->seed;
    facts.tokens = it->tokens;
    facts.stop = it->stop[0] ? it->stop : NULL;
    ui_session_message(&a->session, answer ? "assistant" : "user", facts.text, facts.len,
                       answer ? &facts : NULL);
}

/* An absolute path, so that the conversation finds its model from any directory. */
void ui_app_save_model(UiApp *a) {
    char *whole = a->model_path && !ui_guide_is(a->model_path) ? realpath(a->model_path, NULL) : NULL;
    if (a->model_path) ui_session_simple(&a->session, QSF_LOG_MODEL, NULL, whole ? whole : a->model_path, 0);
    free(whole);
}

/* In the file a stop string is a setting like any other, except that there may be several; "" clears them. */
static const char stop_setting[] = "stop";

void ui_app_save_stop(UiApp *a, const char *text) {
    ui_session_simple(&a->session, QSF_LOG_SET, stop_setting, text, 0);
}

static void save_stops(UiApp *a) {
    for (size_t i = 0; i < a->stops.n; i++) ui_app_save_stop(a, a->stops.text[i]);
}

/* Settings of the whole conversation: model, system prompt, stop strings, and the settings that differ from
 * their defaults. */
static void save_head(UiApp *a) {
    QSFSettings base;
    ui_app_base(a, &base);
    ui_app_save_model(a);
    if (a->system.len > 0) ui_session_simple(&a->session, QSF_LOG_SYSTEM, NULL, ui_buf_str(&a->system), 0);
    save_stops(a);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char is[QSF_SETTING_TEXT];
        if (!qsf_setting_differs(&a->settings, &base, row)) continue;
        qsf_setting_get(&a->settings, row, is, sizeof is);
        ui_session_simple(&a->session, QSF_LOG_SET, row->name, is, 0);
    }
}

static void save_everything(UiApp *a) {
    save_head(a);
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (it->in_context && it != a->answer) save_text(a, it, (UiPlace){ 0 });
    }
}

bool ui_app_save_all(UiApp *a, bool other_name) {
    if (!a->session.log) {
        if (!ui_session_create(&a->session)) return false;
        save_everything(a);
        return ui_session_publish(&a->session, other_name);
    }
    ui_session_simple(&a->session, QSF_LOG_CLEAR, NULL, NULL, 0);
    save_everything(a);
    return qsf_chatlog_complete(a->session.log);
}

void ui_app_save_message(UiApp *a, const UiItem *it, UiPlace from) {
    if (!a->session.on || !a->session.name[0]) return;
    if (!a->session.log || !qsf_chatlog_complete(a->session.log))
        (void)ui_app_save_all(a, true);
    else
        save_text(a, it, from);
}

void ui_app_clear_messages(UiApp *a) {
    ui_transcript_clear(&a->chat);
    ui_app_count_context(a);
}

void ui_app_drop(UiApp *a, uint32_t n) {
    uint32_t dropped = ui_transcript_drop(&a->chat, n);
    if (dropped > 0) ui_session_simple(&a->session, QSF_LOG_UNDO, NULL, NULL, dropped);
    ui_app_count_context(a);
}

void ui_app_set_system(UiApp *a, const char *text) {
    ui_buf_clear(&a->system);
    ui_buf_puts(&a->system, text);
    ui_session_simple(&a->session, QSF_LOG_SYSTEM, NULL, text, 0);
    ui_app_count_context(a);
}

/* ---- replay ---- */

#define UI_SETTINGS_MAX 64

typedef struct Replay {
    UiApp *app;
    QSFSettings before;          /* known to the engine */
    QSFSettings file;            /* values of the conversation */
    bool given[UI_SETTINGS_MAX]; /* the command line of this run set a value */
    bool given_stops;
    char *model; /* path of the last QSF_LOG_MODEL record */
} Replay;

static void begin_replay(Replay *rp) {
    ui_app_base(rp->app, &rp->file);
    rp->before = rp->app->settings;
    for (size_t i = 0; i < qsf_setting_count() && i < UI_SETTINGS_MAX; i++)
        rp->given[i] = qsf_setting_differs(&rp->app->settings, &rp->file, qsf_setting_at(i));
    rp->given_stops = rp->app->stops.n > 0;
}

static void replay_stop(const Replay *rp, const char *text) {
    UiStops *stops = &rp->app->stops;
    if (rp->given_stops) return;
    if (*text)
        (void)ui_stops_add(stops, text);
    else
        ui_stops_clear(stops);
}

/* A setting of the conversation applies unless the command line set another value. */
static void replay_set(Replay *rp, const QSFLogRecord *r) {
    const QSFSetting *row = r->name && r->text ? qsf_setting_find(r->name) : NULL;
    char err[200];
    if (r->name && r->text && strcmp(r->name, stop_setting) == 0) replay_stop(rp, r->text);
    if (!row || qsf_setting_set(&rp->file, row, r->text, err, sizeof err) != 0) return;
    for (size_t i = 0; i < qsf_setting_count() && i < UI_SETTINGS_MAX; i++) {
        if (qsf_setting_at(i) == row && !rp->given[i])
            (void)qsf_setting_set(&rp->app->settings, row, r->text, err, sizeof err);
    }
}

/* Values from the command line of this run belong to the conversation from now on. */
static void save_given(const Replay *rp) {
    UiApp *a = rp->app;
    if (rp->given_stops) {
        ui_app_save_stop(a, "");
        save_stops(a);
    }
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char value[QSF_SETTING_TEXT];
        if (!qsf_setting_differs(&a->settings, &rp->file, row)) continue;
        qsf_setting_get(&a->settings, row, value, sizeof value);
        ui_session_simple(&a->session, QSF_LOG_SET, row->name, value, 0);
    }
}

size_t ui_model_stem(const char *name) {
    static const char *const endings[] = { ".gguf", ".qsf" };
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (len > n && strcmp(name + len - n, endings[i]) == 0) return len - n;
    }
    return len;
}

/* Uses the model's file name: session files do not store the model's name. */
static void label_from_path(UiItem *it, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *clean = qsf_clean_dup(name, ui_model_stem(name), true);
    (void)snprintf(it->label, sizeof it->label, "%s", clean ? clean : "");
    free(clean);
}

/* An answer after an answer is what /continue added to it. */
static void replay_message(UiApp *a, const QSFLogRecord *r, const char *model) {
    bool user = strcmp(r->role, "user") == 0;
    UiItem *last = ui_transcript_last(&a->chat);
    if (!user && last && last->kind == UI_ANSWER)
        (void)ui_item_append(&a->chat, last, r->text, r->len);
    else
        last = ui_transcript_add(&a->chat, user ? UI_USER : UI_ANSWER, r->text, r->len);
    if (!last) return;
    if (r->reasoning_len > 0) {
        (void)ui_item_think(&a->chat, last, r->reasoning, r->reasoning_len, 0);
        last->thought->seconds = 0;
    }
    ui_item_close(last);
    if (!user && model) label_from_path(last, model);
    last->time = r->time > 0 && r->time < 1e11 ? r->time : 0; /* a damaged one does not fit any time type */
    last->seed = r->seed;
    last->tokens += r->tokens;
    (void)snprintf(last->stop, sizeof last->stop, "%s", r->stop ? r->stop : "");
}

/* A conversation with the guide is not passed to another model. */
static void replay_model(Replay *rp, const QSFLogRecord *r) {
    char *model = r->text ? ui_strdup_len(r->text, r->len) : NULL;
    if (!model) return;
    free(rp->model);
    rp->model = model;
    bool guide = ui_guide_is(model);
    if (guide != rp->app->guide_talk) ui_transcript_clear(&rp->app->chat);
    rp->app->guide_talk = guide;
}

static void replay_record(void *arg, const QSFLogRecord *r) {
    Replay *rp = arg;
    UiApp *a = rp->app;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: replay_message(a, r, rp->model); break;
    case QSF_LOG_PART: break;
    case QSF_LOG_UNDO: (void)ui_transcript_drop(&a->chat, r->n); break;
    case QSF_LOG_CLEAR: ui_transcript_clear(&a->chat); break;
    case QSF_LOG_FORGET:
        (void)ui_transcript_forget(&a->chat, r->n);
        if (r->name && r->text) (void)ui_transcript_prepend(&a->chat, r->name, r->text, r->len);
        break;
    case QSF_LOG_SYSTEM:
        ui_buf_clear(&a->system);
        ui_buf_add(&a->system, r->text, r->len);
        break;
    case QSF_LOG_SET: replay_set(rp, r); break;
    case QSF_LOG_MODEL: replay_model(rp, r); break;
    }
}

/* After the replay: informs the engine, and removes a question without an answer from the context. */
static void settle(Replay *rp, const char *name, uint32_t damaged) {
    UiApp *a = rp->app;
    const char *model = rp->model;
    ui_app_apply(a, &rp->before);
    if (a->model_ready) ui_guide_switch(a);
    UiItem *last = ui_transcript_last(&a->chat);
    if (last && last->kind == UI_USER) {
        ui_app_withdraw(a);
        ui_app_say(a, UI_NOTICE, "the last message had no answer yet: /retry sends it again");
    }
    if (damaged > 0) ui_app_say(a, UI_NOTICE, "session %s: %u damaged lines were skipped", name, damaged);
    if (model && model[0] && !a->model_path && !a->want_model && !ui_app_busy(a)) ui_app_load(a, model);
}

/* The messages and settings of the attached session become those of the chat. */
static bool replay(UiApp *a, const char *name) {
    char err[300] = "";
    uint32_t damaged = 0;
    Replay rp = { .app = a };
    ui_transcript_clear(&a->chat);
    ui_buf_clear(&a->system);
    a->guide_talk = false;
    begin_replay(&rp);
    bool ok = qsf_chatlog_read(name, replay_record, &rp, &damaged, err, sizeof err);
    if (ok) {
        save_given(&rp);
        settle(&rp, name, damaged);
    } else {
        ui_app_say(a, UI_ERROR, "%s", err);
    }
    free(rp.model);
    ui_app_count_context(a);
    return ok;
}

static UiResume resume(UiApp *a, const char *name, char *err, size_t cap) {
    /* Lock first: another program may be writing. */
    UiSession next = { .on = a->session.on };
    if (!ui_session_attach(&next, name, err, cap))
        return errno == EWOULDBLOCK ? UI_RESUME_IN_USE : UI_RESUME_FAILED;
    ui_session_close(&a->session);
    a->session = next;
    return replay(a, name) ? UI_RESUMED : UI_RESUME_FAILED;
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
