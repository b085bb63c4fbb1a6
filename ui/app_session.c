/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: conversations on disk, replayed and rewritten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/app_internal.h"
#include "ui/guide.h"

#define UI_SCRATCH_SHARE 16 /* a conversation without a file takes at most this part of the budget again */

QSFLogRecord ui_app_record(const UiItem *it, UiPlace from) {
    QSFLogRecord r = { .text = ui_buf_str(&it->raw) + from.text, .len = it->raw.len - from.text };
    if (it->thought && it->thought->raw.len > from.thought) {
        r.reasoning = ui_buf_str(&it->thought->raw) + from.thought;
        r.reasoning_len = it->thought->raw.len - from.thought;
    }
    r.exact = it->exact;
    r.exact_len = it->exact ? strlen(it->exact) : 0;
    r.ids = it->ids;
    return r;
}

/* id: of a message that the file has already, 0 = it has not. */
static void save_text(UiApp *a, UiItem *it, UiPlace from, uint32_t id) {
    bool answer = it->kind == UI_ANSWER;
    QSFLogRecord facts = ui_app_record(it, from);
    const bool more = from.text > 0 || from.thought > 0;
    facts.id = id > 0                                 ? id
               : more                                 ? 0
               : it->number > a->session.tree.last_id ? it->number
                                                      : a->session.tree.last_id + 1;
    facts.time = id > 0 ? it->time : 0;
    facts.seed = it->seed;
    facts.tokens = it->tokens;
    facts.about = it->about;
    facts.stop = it->stop[0] ? it->stop : NULL;
    facts.name = answer && it->label[0] ? it->label : NULL;
    if (!answer) facts.tokens = 0;
    ui_session_message(&a->session, answer ? "assistant" : "user", facts.text, facts.len, &facts);
    const UiNode *tip = ui_tree_tip(&a->session.tree);
    it->node = tip ? tip->id : 0;
    if (it->node > 0) it->number = it->node;
    if (it->number > a->chat.next_number) a->chat.next_number = it->number;
    it->nth = tip && answer ? tip->nth : 0;
    it->of = tip && answer ? ui_tree_versions(&a->session.tree, tip) : 0;
}

void ui_app_save_again(UiApp *a, UiItem *it) { save_text(a, it, (UiPlace){ 0 }, it->node); }

/* An absolute path, so that the conversation finds its model from any directory. The last part stays as it
 * is: in the cache of a hub it is a link that says what the model is. NULL if there is no such file. */
static char *whole_path(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0) return realpath(path, NULL);
    char *dir = slash ? ui_strdup_len(path, slash == path ? 1 : (size_t)(slash - path))
                      : ui_strdup_len(".", 1);
    char *real = dir && access(path, F_OK) == 0 ? realpath(dir, NULL) : NULL;
    UiBuf b = { 0 };
    if (real) ui_buf_printf(&b, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
    char *whole = b.len > 0 ? ui_strdup_len(ui_buf_str(&b), b.len) : NULL;
    ui_buf_free(&b);
    free(dir);
    free(real);
    return whole;
}

void ui_app_save_model(UiApp *a) {
    a->model_unsaved = a->unnamed = false;
    char *whole = a->model_path && !ui_guide_is(a->model_path) ? whole_path(a->model_path) : NULL;
    const char *name = a->model_ready && a->stats.model_name[0] ? a->stats.model_name : NULL;
    if (a->model_path) ui_session_simple(&a->session, QSF_LOG_MODEL, name, whole ? whole : a->model_path, 0);
    free(whole);
}

void ui_app_save_stop(UiApp *a, const char *text) {
    const QSFLogRecord r = { .name = UI_STOP_SETTING, .text = text };
    if (a->kept) ui_own_record(&a->own, &r);
    ui_session_simple(&a->session, QSF_LOG_SET, UI_STOP_SETTING, text, 0);
}

const char *ui_app_change_stops(UiApp *a, const char *text) {
    const size_t n = a->stops.n;
    UiBuf was = { 0 };
    ui_stops_list(&a->stops, &was);
    const char *wrong = *text ? ui_stops_add(&a->stops, text) : NULL;
    if (!*text) ui_stops_clear(&a->stops);
    a->session.was = ui_buf_str(&was);
    if (!wrong && a->stops.n != n) ui_app_save_stop(a, text);
    a->session.was = NULL;
    ui_buf_free(&was);
    return wrong;
}

void ui_app_set_role(UiApp *a, const char *role) {
    char was[sizeof a->role];
    memcpy(was, a->role, sizeof was);
    (void)snprintf(a->role, sizeof a->role, "%s", role);
    if (strcmp(role, a->game.name) != 0) a->game.name[0] = '\0';
    a->session.was = was;
    ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_PERSONA, a->role, 0);
    a->session.was = NULL;
}

void ui_app_save_stops(UiApp *a, const UiStops *stops, bool replace) {
    if (replace) ui_session_simple(&a->session, QSF_LOG_SET, UI_STOP_SETTING, "", 0);
    for (size_t i = 0; i < stops->n; i++)
        ui_session_simple(&a->session, QSF_LOG_SET, UI_STOP_SETTING, stops->text[i], 0);
}

static void save_settings(UiApp *a, const QSFSettings *s, bool replace) {
    QSFSettings base;
    ui_app_base(a, &base);
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char is[QSF_SETTING_TEXT];
        const bool set = qsf_setting_user_set(s, row) && (a->kept || !ui_config_sets(a, row));
        const bool differs = qsf_setting_differs(s, &base, row) || (set && qsf_setting_user_set(&base, row));
        /* What the model recommends is not among a session's own settings. */
        if ((!(set && replace) && !(differs && (set || !a->kept))) || row->flags & QSF_SETTING_HERE) continue;
        qsf_setting_get(s, row, is, sizeof is);
        ui_session_simple(&a->session, QSF_LOG_SET, row->name, is, 0);
    }
}

/* Settings of the whole conversation: model, system prompt, title, stop strings, and the settings that differ
 * from their defaults. */
static void save_head(UiApp *a, bool replace) {
    const UiBuf *system = a->kept ? &a->own.system : &a->system;
    ui_app_save_model(a);
    if (system->len > 0 || replace)
        ui_session_simple(&a->session, QSF_LOG_SYSTEM, NULL, ui_buf_str(system), 0);
    if (a->session.title[0] || replace)
        ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_TITLE, a->session.title, 0);
    if (a->role[0]) ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_PERSONA, a->role, 0);
    ui_app_save_stops(a, a->kept ? &a->own.stops : &a->stops, replace);
    save_settings(a, a->kept ? &a->own.settings : &a->settings, replace);
}

/* What an answer had before /continue, while more of it is being written. */
static void save_begin(UiApp *a) {
    QSFLogRecord r = ui_app_record(a->answer, (UiPlace){ 0 });
    r.len = a->answer_from.text;
    r.reasoning_len = a->answer_from.thought;
    r.stop = a->answer_stop;
    if (r.len > 0 || r.reasoning_len > 0) ui_session_message(&a->session, "assistant", r.text, r.len, &r);
}

/* The last message leaves the context: it got no answer. A reader knows it by `more` without `by`. */
static void save_withdrawal(UiApp *a) {
    const char *by = a->session.by;
    const bool more = a->session.more;
    ui_session_because(&a->session, by, true); /* it belongs to what follows */
    ui_session_simple(&a->session, QSF_LOG_UNDO, NULL, NULL, 1);
    ui_session_because(&a->session, by, more);
}

/* replace: the file has something that must not remain. */
static void save_everything(UiApp *a, bool replace) {
    ui_session_restart(&a->session);
    if (replace) ui_session_simple(&a->session, QSF_LOG_CLEAR, NULL, NULL, 0);
    save_head(a, replace);
    for (size_t i = 0; i < a->chat.n; i++) {
        UiItem *it = a->chat.items[i];
        const bool unanswered = it->kind == UI_USER && !it->in_context && !it->past;
        if ((it->in_context && it != a->answer) || unanswered) save_text(a, it, (UiPlace){ 0 }, 0);
        if (unanswered && it->id != a->unanswered) save_withdrawal(a);
        if (it == a->answer) save_begin(a);
    }
}

void ui_app_keep(UiApp *a) { save_everything(a, false); }

bool ui_app_save_all(UiApp *a, bool other_name) {
    if (!a->session.log) {
        bool ok = ui_session_create(&a->session);
        if (ok) save_everything(a, false);
        ok = ok && ui_session_publish(&a->session, other_name);
        if (!ok) ui_app_keep(a);
        return ok;
    }
    qsf_chatlog_batch(a->session.log, true);
    save_everything(a, true);
    if (a->session.log) qsf_chatlog_batch(a->session.log, false);
    return a->session.log && qsf_chatlog_complete(a->session.log) && !a->session.failing;
}

bool ui_app_rewrite(void *arg) {
    UiApp *a = arg;
    if (!a->session.log && !ui_transcript_last(&a->chat) && a->unanswered == 0)
        return false; /* the next message creates the file */
    return ui_app_save_all(a, true);
}

void ui_app_save_message(UiApp *a, UiItem *it, UiPlace from) {
    const bool again = a->unanswered == it->id; /* the file has it */
    const bool on = a->session.on && a->session.name[0];
    a->session.scratch_max = a->stats.budget / UI_SCRATCH_SHARE;
    if (!again) ui_app_drop_unanswered(a);
    a->unanswered = 0;
    if (on && a->model_unsaved) ui_app_save_model(a);
    if (on && (!a->session.log || !qsf_chatlog_complete(a->session.log)))
        (void)ui_app_save_all(a, true);
    else if (!again)
        save_text(a, it, from, 0);
}

void ui_app_drop_unanswered(UiApp *a) {
    const uint32_t id = a->unanswered;
    a->unanswered = 0;
    if (id == 0) return;
    save_withdrawal(a);
    for (size_t i = a->chat.n; i > 0 && !a->full_screen; i--) { /* no screen shows it */
        if (a->chat.items[i - 1]->id != id) continue;
        ui_transcript_remove(&a->chat, a->chat.items[i - 1]);
        break;
    }
}

void ui_app_begin_session(UiApp *a, const char *name) {
    ui_session_use(&a->session, name);
    a->chat.next_number = 0;
    a->session.title[0] = '\0';
    a->unanswered = 0;
    if (a->no_save) a->session.on = false;
    ui_own_free(&a->own);
    a->kept = false;
}

/* At most as many bytes as there is space for, whole characters. */
static void copy_title(UiSession *s, const char *text) {
    size_t len = strlen(text);
    if (len >= sizeof s->title) len = sizeof s->title - 1;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) len--;
    memcpy(s->title, text, len);
    s->title[len] = '\0';
}

void ui_app_set_title(UiApp *a, const char *text) {
    char was[sizeof a->session.title];
    memcpy(was, a->session.title, sizeof was);
    copy_title(&a->session, text);
    a->session.was = was;
    ui_session_simple(&a->session, QSF_LOG_SET, QSF_LOG_TITLE, a->session.title, 0);
    a->session.was = NULL;
}

void ui_app_title(const UiApp *a, char *dst, size_t cap) {
    const UiItem *first = NULL;
    dst[0] = '\0';
    for (size_t i = 0; i < a->chat.n && !first; i++)
        if (a->chat.items[i]->kind == UI_USER && (a->chat.items[i]->in_context || a->chat.items[i]->past))
            first = a->chat.items[i];
    const char *text = a->session.title[0] ? a->session.title : first ? ui_buf_str(&first->raw) : "";
    const size_t typed = a->session.title[0] || !first ? cap : ui_attach_typed(text, first->raw.len);
    size_t n = strnlen(text, typed < cap ? typed : cap);
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
    char *clean = qsf_clean_dup(text, n, true);
    const char *from = clean ? clean + strspn(clean, " ") : "";
    size_t len = strlen(from) < cap ? strlen(from) : cap - 1;
    while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80) len--;
    memcpy(dst, from, len);
    dst[len] = '\0';
    free(clean);
}

void ui_app_clear_messages(UiApp *a) {
    ui_transcript_clear(&a->chat);
    a->unanswered = 0;
    ui_app_count_context(a);
}

void ui_app_drop(UiApp *a, uint32_t n) {
    ui_app_drop_unanswered(a);
    uint32_t dropped = ui_transcript_drop(&a->chat, n);
    if (dropped > 0) ui_session_simple(&a->session, QSF_LOG_UNDO, NULL, NULL, dropped);
    ui_app_count_context(a);
}

void ui_app_set_system(UiApp *a, const char *text) {
    ui_buf_clear(&a->own.system);
    if (a->kept) ui_buf_puts(&a->own.system, text);
    ui_buf_clear(&a->system);
    ui_buf_puts(&a->system, text);
    ui_session_simple(&a->session, QSF_LOG_SYSTEM, NULL, text, 0);
    ui_app_count_context(a);
}

void ui_app_give_system(UiApp *a, const char *text) {
    if (!a->kept) {
        ui_app_set_system(a, text);
        return;
    }
    ui_buf_clear(&a->system);
    ui_buf_puts(&a->system, text);
    ui_app_count_context(a);
}
