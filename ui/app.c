/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: submitted lines, and requests to the engine. */
#include "ui/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_remote.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/ctx_full.h"
#include "ui/dialect.h"
#include "ui/quoted.h"
#include "ui/walk.h"

double ui_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void ui_app_init(UiApp *a, UiEngine engine, const QSFSettings *settings) {
    *a = (UiApp){ .engine = engine, .settings = *settings, .given.settings = *settings };
    a->session.rewrite = ui_app_rewrite;
    a->session.arg = a;
    a->engine.set_params(a->engine.self, &a->settings);
    a->engine.stats(a->engine.self, &a->stats);
}

void ui_app_free(UiApp *a) {
    ui_session_close(&a->session);
    ui_session_free(&a->session);
    ui_transcript_clear(&a->chat);
    ui_buf_free(&a->system);
    ui_buf_free(&a->game.system);
    ui_stops_clear(&a->stops);
    ui_given_free(&a->given);
    ui_own_free(&a->own);
    ui_buf_free(&a->view_text);
    ui_queue_free(&a->queue);
    ui_attach_free(&a->attach);
    ui_source_free(&a->source);
    ui_folds_keep(&a->folds, "", 0);
    ui_ahead_free(&a->ahead);
    ui_buf_free(&a->draft);
    ui_buf_free(&a->compact.text);
    ui_buf_free(&a->swapped);
    qsf_config_close(a->edited);
    free(a->model_path);
    free(a->good_path);
    free(a->want_model);
    free(a->layers);
    *a = (UiApp){ 0 };
}

void ui_app_print(UiApp *a, UiKind kind, const char *text) {
    UiBuf with = { 0 };
    if (kind == UI_ERROR && a->exit_code == 0) a->exit_code = 1;
    const char *where = a->source.where[0] ? a->source.where : a->where;
    if (kind == UI_ERROR && where[0]) {
        ui_buf_printf(&with, "%s: %s", where, text);
        if (!with.failed) text = ui_buf_str(&with);
    }
    if (a->full_screen) ui_transcript_add(&a->chat, kind, text, strlen(text));
    ui_log_said(kind, text);
    if (a->hooks.said) a->hooks.said(a->hooks.arg, kind, text);
    ui_buf_free(&with);
}

void ui_app_say(UiApp *a, UiKind kind, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    (void)qsf_text_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    ui_app_print(a, kind, text);
}

bool ui_app_busy(const UiApp *a) { return a->running != UI_REQUEST_NONE; }

bool ui_app_writing(const UiApp *a) {
    return a->running == UI_REQUEST_ANSWER || a->running == UI_REQUEST_SUMMARY ||
           a->running == UI_REQUEST_SWAP;
}

/* The name of a command has letters and '-', perhaps '!' or '?' after them: "/usr/bin" is text, when more
 * lines follow. */
static bool is_command(const char *text, size_t len) {
    if (len == 0 || text[0] != '/' || (len > 1 && text[1] == '/')) return false;
    if (!memchr(text, '\n', len)) return true;
    size_t n = 1;
    while (n < len && ((text[n] >= 'a' && text[n] <= 'z') || text[n] == '-')) n++;
    while (n < len && (text[n] == '!' || text[n] == '?')) n++;
    return n > 1 && (text[n] == ' ' || text[n] == '\n');
}

/* What is typed in a terminal may be a command of another chat. A line of a file is a message. */
static const char *foreign_answer(const UiApp *a, const char *text, size_t len) {
    return a->interactive && !a->source.running ? ui_dialect_message(text, len) : NULL;
}

static void trim(const char **text, size_t *len) {
    ui_quoted_skip_mark(text, len);
    while (*len > 0 && strchr(" \t\n", (*text)[*len - 1]) && (*text)[*len - 1]) (*len)--;
    while (*len > 0 && strchr(" \t\n", **text) && **text) {
        (*text)++;
        (*len)--;
    }
}

/* Whether ui_app_submit would accept a message. */
static bool can_take(UiApp *a, const char *text, size_t len) {
    trim(&text, &len);
    if (len > UI_MESSAGE_MAX) return false;
    if (len == 0 || is_command(text, len) || !ui_app_busy(a)) return true;
    return a->queue.n < UI_QUEUE_MAX && len <= ui_app_text_room(a);
}

/* The message is added to the conversation and sent to the model; shown, unless it is empty, is what the
 * screen shows of it. */
static void send_text(UiApp *a, const char *text, size_t len, const UiBuf *shown) {
    UiItem *it = ui_transcript_add(&a->chat, UI_USER, text, len);
    if (!it) {
        ui_app_say(a, UI_ERROR, "out of memory: the message was not sent");
        return;
    }
    if (shown->len > 0) ui_item_show_as(&a->chat, it, ui_buf_str(shown), shown->len);
    ui_app_save_message(a, it, (UiPlace){ 0 });
    if (!ui_app_ask(a, false)) ui_app_withdraw(a);
}

/* Sends a message with the files that it names; typed: as in ui_attach_expand. checked: only if it fits the
 * context. false: it was not sent, and except for that the reason was reported. */
static bool send_message(UiApp *a, const char *text, size_t len, size_t typed, bool checked) {
    UiBuf full = { 0 }, shown = { 0 };
    int64_t need = 0;
    bool ok = ui_attach_expand(a, text, len, typed, &full, &shown);
    if (full.len > 0) {
        text = ui_buf_str(&full);
        len = full.len;
    }
    if (ok && checked && !ui_app_fits(a, text, len, &need)) {
        a->not_sent = need;
        ok = false;
    }
    if (ok) send_text(a, text, len, &shown);
    ui_buf_free(&full);
    ui_buf_free(&shown);
    return ok;
}

/* With the files that /read and --file have attached in line mode. */
static bool send_with_next(UiApp *a, const char *text, size_t len) {
    UiBuf *next = &a->attach.next, both = { 0 };
    if (next->len == 0) return send_message(a, text, len, len, a->full_screen);
    ui_buf_add(&both, text, len);
    ui_buf_printf(&both, "\n%.*s", (int)next->len - 1, ui_buf_str(next));
    const bool ok = !both.failed && send_message(a, ui_buf_str(&both), both.len, len, false);
    if (ok) {
        ui_buf_free(next);
        a->attach.told = 0;
    }
    ui_buf_free(&both);
    return ok;
}

/* Queues a message; its files are read when it is sent, but what cannot be attached is refused now. */
static bool queue_message(UiApp *a, const char *text, size_t len) {
    UiBuf full = { 0 }, shown = { 0 };
    const bool first = a->queue.held && a->stopping; /* taken out of a queue that ^C holds */
    const bool ok = ui_attach_expand(a, text, len, 0, &full, &shown);
    ui_buf_free(&full);
    ui_buf_free(&shown);
    if (!ok) return false;
    a->queue.held = false;
    return ui_queue_insert(&a->queue, first ? 0 : a->queue.n, text, len);
}

/* On the full screen a command is shown above what it printed. */
static void run_command(UiApp *a, const char *text, size_t len) {
    uint32_t before = a->chat.next_id;
    ui_command_run(a, text, len);
    const UiItem *last = a->chat.n > 0 ? a->chat.items[a->chat.n - 1] : NULL;
    if (a->full_screen && last && last->kind == UI_OUTPUT && last->id > before)
        (void)ui_transcript_insert(&a->chat, before, UI_COMMAND, text, len);
}

/* Removes what is not part of a message: quotes around it, and the slash before a slash. */
static void strip(const char **text, size_t *len) {
    ui_quoted_strip(text, len);
    if (*len > 1 && (*text)[0] == '/' && (*text)[1] == '/') {
        (*text)++;
        (*len)--;
    }
}

bool ui_app_message(const UiApp *a, const char **text, size_t *len) {
    trim(text, len);
    if (*len == 0 || *len > UI_MESSAGE_MAX || is_command(*text, *len) || foreign_answer(a, *text, *len))
        return false;
    strip(text, len);
    return true;
}

static bool has_adapters(const UiApp *a) {
    for (size_t i = 0; a->model_path && i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (ui_setting_has_files(row) && ui_setting_is_on(&a->settings, row)) return true;
    }
    return false;
}

static void say_no_model(UiApp *a) {
    if (a->model_path && qsf_connect_is(a->model_path))
        ui_app_say(a, UI_ERROR, "not connected: /retry connects again");
    else
        ui_app_say(a, UI_ERROR, "no model is loaded: use /model FILE (a .gguf or .qsf file)%s",
                   has_adapters(a) ? "; /lora off or /control-vector off loads the same without adapters"
                                   : "");
}

static bool submit_line(UiApp *a, const char *text, size_t len) {
    a->not_sent = 0;
    trim(&text, &len);
    if (len == 0) {
        if (a->queue.held && !ui_app_busy(a)) ui_app_send_next(a);
        return true;
    }
    const char *answer = foreign_answer(a, text, len);
    if (answer) {
        ui_app_say(a, UI_NOTICE, "%s", answer);
        return true;
    }
    if (len == 1 && ui_ctx_full_key(a, *text)) return true;
    if (!can_take(a, text, len)) return false;
    if (is_command(text, len)) {
        run_command(a, text, len);
        return true;
    }
    strip(&text, &len);
    if (ui_app_busy(a)) return queue_message(a, text, len);
    if (!a->model_ready) {
        say_no_model(a);
        return false;
    }
    if (!send_with_next(a, text, len)) return false;
    a->queue.held = false;
    return true;
}

bool ui_app_submit(UiApp *a, const char *text, size_t len) {
    /* What is typed meanwhile does not come from the file. */
    char *where = a->source.where, first = where[0];
    if (!a->source.running) where[0] = '\0';
    const bool taken = submit_line(a, text, len);
    if (!where[0]) where[0] = first;
    ui_source_run(a);
    return taken;
}

void ui_app_send_queued(UiApp *a) {
    size_t len = 0;
    if (a->queue.n == 0 || a->queue.held || !a->model_ready) return;
    if (ui_app_busy(a) || ui_ctx_full_open(a) || a->enlarging || a->compact.ready) return;
    char *text = ui_queue_take(&a->queue, 0, &len);
    if (!send_message(a, text, len, len, false)) /* a file of it has changed: it waits */
        a->queue.held = ui_queue_insert(&a->queue, 0, text, len);
    free(text);
}

void ui_app_send_next(UiApp *a) {
    a->queue.held = false;
    if (ui_app_writing(a))
        (void)ui_app_stop(a);
    else
        ui_app_send_queued(a);
}

void ui_app_open_view(UiApp *a, UiView view, const char *text) {
    a->view = view;
    ui_buf_clear(&a->view_text);
    ui_buf_puts(&a->view_text, text);
}

void ui_app_draft(UiApp *a, const char *text, size_t len) {
    ui_buf_clear(&a->draft);
    if (a->full_screen)
        ui_buf_add(&a->draft, text, len);
    else
        ui_app_print(a, UI_OUTPUT, text);
}

bool ui_app_answer_now(UiApp *a) {
    const bool thinks = a->running == UI_REQUEST_ANSWER && a->answer && !a->stopping &&
                        ui_has(a, UI_NEEDS_CLOSE) &&
                        (a->answer->raw.len == 0 || (a->answer->thought && a->answer->thought->open));
    if (thinks) a->engine.answer_now(a->engine.self);
    return thinks;
}

bool ui_app_stop(UiApp *a) {
    if (!ui_app_busy(a)) return false;
    a->stopping = true;
    a->engine.cancel(a->engine.self);
    return true;
}

static QSFMessage message_of(const UiItem *it) {
    QSFMessage m = { .role = it->kind == UI_USER ? "user" : "assistant",
                     .content = ui_buf_str(&it->raw),
                     .len = it->raw.len };
    if (it->thought) {
        m.reasoning = ui_buf_str(&it->thought->raw);
        m.reasoning_len = it->thought->raw.len;
    }
    m.exact = it->exact;
    m.exact_len = it->exact ? strlen(it->exact) : 0;
    return m;
}

QSFMessage *ui_app_messages(const UiApp *a, size_t *n) {
    size_t count = ui_transcript_count(&a->chat, NULL);
    QSFMessage *m = calloc(count + 2, sizeof *m);
    *n = 0;
    if (m && a->system.len > 0)
        m[(*n)++] = (QSFMessage){ .role = "system", .content = ui_buf_str(&a->system), .len = a->system.len };
    for (size_t i = 0; m && i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (it->in_context && it != a->answer) m[(*n)++] = message_of(it);
    }
    return m;
}

char *ui_app_snapshot(const UiApp *a) {
    const bool has = a->snapshots && a->session.on && a->session.log;
    return has ? qsf_chatlog_snapshot(a->session.name) : NULL;
}

bool ui_app_request(UiApp *a, QSFRequest r) {
    size_t n = 0;
    QSFMessage *messages = ui_app_messages(a, &n);
    if (!messages) {
        ui_app_say(a, UI_ERROR, "out of memory: the message was not sent");
        return false;
    }
    r.messages = messages;
    r.n_messages = n;
    r.stop = (const char *const *)a->stops.text;
    r.n_stop = a->stops.n;
    char *snapshot = ui_app_snapshot(a);
    r.snapshot = snapshot;
    r.snapshot_limit = a->snapshot_limit;
    r.held = ui_app_held(a);
    a->request = a->engine.submit(a->engine.self, &r);
    free(snapshot);
    free(messages);
    if (a->request == 0) ui_app_say(a, UI_ERROR, "the engine is still busy: the message was not sent");
    return a->request != 0;
}

/* The answer has no number in the session yet. */
static void begin_version(const UiApp *a, UiItem *it) {
    const UiNode *tip = ui_tree_tip(&a->session.tree);
    (void)snprintf(it->label, sizeof it->label, "%.63s", a->stats.model_name);
    if (!tip || !(tip->at & UI_NODE_USER)) return;
    it->nth = it->of = tip->kids[0] + 1;
}

bool ui_app_ask(UiApp *a, bool go_on) {
    UiItem *last = ui_transcript_last(&a->chat);
    if (!a->model_ready) {
        say_no_model(a);
        return false;
    }
    const QSFRequest r = { .continue_last = go_on, .branch = a->branch, .branch_id = a->branch_id };
    if (!ui_app_request(a, r)) return false;
    ui_log_request(a, go_on ? "continue" : r.branch > 0 ? "branch" : "answer");
    if (go_on) {
        ui_ctx_full_over(a);
        ui_app_drop_unanswered(a); /* the answer continues before it */
        a->answer = last;
    } else {
        a->answer = ui_transcript_add(&a->chat, UI_ANSWER, "", 0);
        if (a->answer) begin_version(a, a->answer);
    }
    ui_walk_asked(a, a->answer);
    a->running = UI_REQUEST_ANSWER;
    a->stopping = false;
    a->n_spark = 0;
    a->session.parted = a->session.parted_reasoning = 0;
    a->answer_from = a->answer ? ui_item_end(a->answer) : (UiPlace){ 0 };
    a->ctx_counted = a->ctx_stale = false;
    if (a->answer) {
        (void)snprintf(a->answer_stop, sizeof a->answer_stop, "%s", a->answer->stop);
        a->answer->open = true;
        a->answer->stop[0] = '\0';
    }
    if (a->hooks.answer_begin) a->hooks.answer_begin(a->hooks.arg);
    return true;
}

void ui_app_withdraw(UiApp *a) {
    UiItem *last = ui_transcript_last(&a->chat);
    if (!last || last->kind != UI_USER) return;
    last->in_context = false;
    last->version++;
    a->unanswered = last->id;
    ui_app_count_context(a);
}

/* Starts the requested load now, or as soon as nothing else runs: what names the request in messages. */
static void load_soon(UiApp *a, const char *what) {
    if (ui_app_busy(a) && a->running == UI_REQUEST_LOAD)
        ui_app_stop(a);
    else if (ui_app_busy(a))
        ui_app_say(a, UI_NOTICE, "%s when the answer is finished", what);
    else
        ui_app_start_load(a);
}

void ui_app_load(UiApp *a, const char *path) {
    char what[200];
    if (qsf_fetch_is_remote(path)) {
        (void)ui_download_begin(a, path);
        return;
    }
    char *copy = ui_strdup_len(path, strlen(path)); /* path may be that of the last request */
    (void)snprintf(what, sizeof what, "%.150s will be loaded", path);
    free(a->want_model);
    a->want_model = copy;
    a->model_unsaved = false;
    load_soon(a, what);
}

void ui_app_reload(UiApp *a, const QSFSetting *row) {
    char what[80];
    if (a->model_path) a->want_reload = true;
    (void)snprintf(what, sizeof what, "%s takes effect", row ? row->name : "this");
    load_soon(a, what);
}

void ui_app_start_load(UiApp *a) {
    if (ui_app_busy(a) || (!a->want_model && !a->want_reload)) return;
    if (a->want_model) {
        free(a->model_path);
        a->model_path = a->want_model;
        a->want_model = NULL;
        ui_config_for_model(a, a->model_path);
    }
    a->want_reload = false;
    char *file = qsf_model_file(a->model_path);
    a->settings.text_bytes = ui_transcript_bytes(&a->chat);
    a->held_at_load = ui_transcript_held(&a->chat) + ui_session_held(&a->session);
    ui_app_screen_load(a);
    ui_log_load(a, file ? file : a->model_path);
    a->request = file ? a->engine.load(a->engine.self, file, &a->settings) : 0;
    free(file);
    if (a->request == 0) {
        ui_app_say(a, UI_ERROR, "the engine is still busy: %s was not loaded", a->model_path);
        return;
    }
    a->running = UI_REQUEST_LOAD;
    a->model_ready = false;
    a->stopping = false;
}
