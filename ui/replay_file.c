/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The records of a session file, one after the other, as the conversation that they make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_remote.h"
#include "ui/app_internal.h"
#include "ui/guide.h"

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
    const char *name = qsf_connect_is(path) ? qsf_connect_model(path) : slash ? slash + 1 : path;
    char *clean = qsf_clean_dup(name, ui_model_stem(name), true);
    (void)snprintf(it->label, sizeof it->label, "%s", clean ? clean : "");
    free(clean);
}

/* The name that the answer had on the screen. */
void ui_replay_label(const UiReplay *rp, UiItem *it, const QSFLogRecord *r) {
    const char *name = r->name ? r->name : rp->label;
    char *clean = name ? qsf_clean_dup(name, strlen(name), true) : NULL;
    if (clean)
        (void)snprintf(it->label, sizeof it->label, "%.63s", clean);
    else if (rp->model)
        label_from_path(it, rp->model);
    free(clean);
}

/* An answer after an answer is what /continue added to it. */
static void replay_message(UiReplay *rp, const QSFLogRecord *r) {
    bool user = strcmp(r->role, "user") == 0;
    UiItem *last = ui_replay_last(&rp->list);
    if (user && last && last->places) last->places->exact = false; /* it will not be continued */
    if (user || !last || last->kind != UI_ANSWER) last = ui_replay_add(&rp->list, user ? UI_USER : UI_ANSWER);
    if (!last || !ui_item_place(last, r)) {
        rp->too_many = true;
        return;
    }
    rp->places++;
    if (!user) ui_replay_label(rp, last, r);
    last->time = r->time > 0 && r->time < 1e11 ? r->time : 0; /* a damaged one does not fit any time type */
    last->seed = r->seed;
    last->tokens += r->tokens;
    last->about = last->about || r->about;
    (void)snprintf(last->stop, sizeof last->stop, "%s", r->stop ? r->stop : "");
}

/* A question and the summary that replaced forgotten messages. */
static void replay_summary(UiReplay *rp, const QSFLogRecord *r) {
    UiItem *answer = ui_replay_prepend(&rp->list, r->name);
    rp->too_many = rp->too_many || !answer || !ui_item_place(answer, r);
}

/* A conversation with the guide is not passed to another model. */
static void replay_model(UiReplay *rp, const QSFLogRecord *r) {
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

/* A change that belongs to the next one, but to no command, is a message that got no answer before that one
 * was sent (ui_app_drop_unanswered): it left the context, but it was written, and is shown. */
static bool replay_undo(UiReplay *rp, const QSFLogRecord *r) {
    const UiItem *last = ui_replay_last(&rp->list);
    if (r->n == 1 && r->more && !r->by && last && last->kind == UI_USER) return ui_replay_withdraw(&rp->list);
    ui_replay_drop(&rp->list, r->n);
    return true;
}

static void take_short(char *dst, size_t cap, const QSFLogRecord *r) {
    (void)snprintf(dst, cap, "%s", r->text && r->text_bytes == r->len ? r->text : "");
}

bool ui_replay_record(void *arg, const QSFLogRecord *r) {
    UiReplay *rp = arg;
    rp->any = true;
    switch (r->kind) {
    case QSF_LOG_MESSAGE: replay_message(rp, r); break;
    case QSF_LOG_PART: break;
    case QSF_LOG_UNDO: rp->too_many = rp->too_many || !replay_undo(rp, r); break;
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
        if (r->name && strcmp(r->name, QSF_LOG_TITLE) == 0) take_short(rp->title, sizeof rp->title, r);
        if (r->name && strcmp(r->name, QSF_LOG_PERSONA) == 0) take_short(rp->role, sizeof rp->role, r);
        break;
    case QSF_LOG_MODEL: replay_model(rp, r); break;
    }
    if (rp->tree) {
        ui_tree_record(rp->tree, r);
        UiItem *last = r->kind == QSF_LOG_MESSAGE ? ui_replay_last(&rp->list) : NULL;
        const UiNode *tip = ui_tree_tip(rp->tree);
        if (last) last->node = tip ? tip->id : 0;
        if (last && last->node > 0) {
            last->number = last->node;
            rp->list.maker.next_number = rp->tree->last_id; /* a message may come again */
        }
    }
    rp->too_many = rp->too_many || !ui_room_for_items(&rp->room, ui_replay_count(&rp->list), rp->places);
    return !rp->too_many;
}

void ui_replay_end(UiReplay *rp) {
    ui_replay_free(&rp->list);
    ui_own_free(&rp->own);
    free(rp->model);
    free(rp->label);
}
