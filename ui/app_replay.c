/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: a session is resumed, with its messages, its settings and its model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/guide.h"

typedef struct Replay {
    UiApp *app;
    UiOwn own;   /* settings in the file */
    bool system; /* the file has a system prompt, or had one */
    char *model; /* path of the last QSF_LOG_MODEL record */
    char *label; /* its name there, or NULL */
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
    if (name)
        (void)snprintf(it->label, sizeof it->label, "%.63s", name);
    else if (rp->model)
        label_from_path(it, rp->model);
}

/* An answer after an answer is what /continue added to it. */
static void replay_message(const Replay *rp, const QSFLogRecord *r) {
    UiApp *a = rp->app;
    bool user = strcmp(r->role, "user") == 0;
    UiItem *last = ui_transcript_last(&a->chat);
    if (!user && last && last->kind == UI_ANSWER)
        (void)ui_item_append(&a->chat, last, r->text, r->len);
    else
        last = ui_transcript_add(&a->chat, user ? UI_USER : UI_ANSWER, r->text, r->len);
    if (!last) return;
    ui_item_set_exact(last, r->exact_len > 0 ? ui_strdup_len(r->exact, r->exact_len) : NULL);
    if (r->reasoning_len > 0) {
        (void)ui_item_think(&a->chat, last, r->reasoning, r->reasoning_len, 0);
        last->thought->seconds = 0;
    }
    ui_item_close(last);
    if (!user) label(rp, last, r);
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
    free(rp->label);
    rp->model = model;
    rp->label = r->name ? ui_strdup_len(r->name, strlen(r->name)) : NULL;
    bool guide = ui_guide_is(model);
    if (guide != rp->app->guide_talk) ui_transcript_clear(&rp->app->chat);
    rp->app->guide_talk = guide;
}

static void replay_record(void *arg, const QSFLogRecord *r) {
    Replay *rp = arg;
    UiApp *a = rp->app;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: replay_message(rp, r); break;
    case QSF_LOG_PART: break;
    case QSF_LOG_UNDO: (void)ui_transcript_drop(&a->chat, r->n); break;
    case QSF_LOG_CLEAR: ui_transcript_clear(&a->chat); break;
    case QSF_LOG_FORGET:
        (void)ui_transcript_forget(&a->chat, r->n);
        if (r->name && r->text) (void)ui_transcript_prepend(&a->chat, r->name, r->text, r->len);
        break;
    case QSF_LOG_SYSTEM:
        rp->system = true;
        ui_buf_clear(&a->system);
        ui_buf_add(&a->system, r->text, r->len);
        break;
    case QSF_LOG_SET: ui_own_record(&rp->own, r); break;
    case QSF_LOG_MODEL: replay_model(rp, r); break;
    }
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

/* The settings of the session reach the engine, with its model if another one is loaded. */
static void take_model(Replay *rp) {
    UiApp *a = rp->app;
    QSFSettings before = a->settings;
    const bool load = wants_load(a, rp->model);
    a->model_unsaved = false;
    ui_own_take(a, &rp->own, rp->system);
    if (!load) a->engine.advise(a->engine.self, &a->settings);
    a->engine.set_params(a->engine.self, &a->settings.params);
    if (load) {
        a->resuming = a->model_path != NULL;
        ui_app_load(a, rp->model);
        return;
    }
    ui_app_apply(a, &before);
    a->resuming = a->replanning || a->running == UI_REQUEST_LOAD;
    if (a->model_ready) ui_guide_switch(a, rp->model == NULL);
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
    if (damaged > 0) ui_app_say(a, UI_NOTICE, "session %s: %u damaged lines were skipped", name, damaged);
}

/* The messages and settings of the attached session become those of the chat. */
static bool replay(UiApp *a, const char *name) {
    char err[300] = "";
    uint32_t damaged = 0;
    Replay rp = { .app = a };
    ui_transcript_clear(&a->chat);
    ui_buf_clear(&a->system);
    a->guide_talk = false;
    ui_own_begin(&rp.own);
    bool ok = qsf_chatlog_read(name, replay_record, &rp, &damaged, err, sizeof err);
    if (ok)
        settle(&rp, name, damaged);
    else
        ui_app_say(a, UI_ERROR, "%s", err);
    ui_own_free(&rp.own);
    free(rp.model);
    free(rp.label);
    ui_app_count_context(a);
    return ok;
}

static UiResume resume(UiApp *a, const char *name, char *err, size_t cap) {
    /* Lock first: another program may be writing. */
    UiSession next = { .on = a->session.on, .rewrite = ui_app_rewrite, .arg = a };
    if (!ui_session_attach(&next, name, err, cap))
        return errno == EWOULDBLOCK ? UI_RESUME_IN_USE : UI_RESUME_FAILED;
    ui_session_close(&a->session);
    next.lost = a->session.lost || a->session.unsaved;
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
