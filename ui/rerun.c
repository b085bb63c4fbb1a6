/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements ui/rerun.h. */
#include "ui/rerun.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_chatlog.h"
#include "qsf_cli.h"
#include "qsf_text.h"
#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/ui_signals.h"

#define COPIES     2u                /* of a text: what was read, and the message */
#define LOOK_EVERY ((size_t)1 << 18) /* bytes that the conversation has grown by */

/* A record of the session, with its whole text. */
typedef struct Step {
    QSFLogKind kind;
    bool user;
    bool chosen; /* the next answer has a token that the user chose */
    const char *name, *stop;
    uint64_t seed;
    uint32_t tokens, n;
    uint32_t id; /* of a message in the session's tree, 0 = none */
    UiBuf text;
} Step;

typedef struct Rerun {
    UiApp *app;
    const char *session;
    QSFChatLog *log; /* for texts */
    bool any;        /* it has records */
    bool failed;
    size_t grown;    /* bytes of the conversation since its memory was compared with the budget */
    bool given;      /* the session's models are not loaded */
    bool chosen;     /* the answer that comes next has a token that the user chose */
    uint32_t last;   /* greatest number of a message so far */
    uint32_t number; /* in the session, of the message that comes next */
    bool touched;    /* a setting changed after the message that is answered next */
    uint32_t base;   /* tokens of the answer that is continued */
    unsigned same, differ, skipped;
    int status; /* of a signal, 0 = none */
} Rerun;

/* Waits until the engine has nothing to do. */
static bool settle(Rerun *x) {
    UiApp *a = x->app;
    while ((ui_app_busy(a) || a->replanning) && x->status == 0) {
        struct pollfd fds[2] = { { .fd = ui_signals_fd(), .events = POLLIN },
                                 { .fd = a->engine.fd(a->engine.self), .events = POLLIN } };
        (void)poll(fds, 2, -1);
        for (int sig; (sig = ui_signals_next()) != 0;)
            if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP) x->status = 128 + sig;
        (void)ui_app_pump(a);
    }
    return x->status == 0;
}

/* tokens: of the recorded answer, with its reasoning. */
static void report(Rerun *x, const char *recorded, size_t len, uint32_t tokens, const char *now, size_t n) {
    const UiItem *it = ui_transcript_last(&x->app->chat);
    size_t at = 0;
    while (at < len && at < n && recorded[at] == now[at]) at++;
    if (at == len && at == n && it->tokens != tokens) {
        x->differ++;
        qsf_text_fprintf(stdout, "answer %u: differs: the same text of %u tokens, not %u\n", x->number,
                         it->tokens, tokens);
        return;
    }
    if (at == len && at == n) {
        x->same++;
        qsf_text_fprintf(stdout, "answer %u: the same, %u tokens\n", x->number, it->tokens);
        return;
    }
    x->differ++;
    const size_t rest = len - at < 40 ? len - at : 40, now_rest = n - at < 40 ? n - at : 40;
    char *was = qsf_clean_dup(recorded + at, rest, true), *is = qsf_clean_dup(now + at, now_rest, true);
    printf("answer %u: differs at byte %zu: it was \"%s\", and is \"%s\"\n", x->number, at, was ? was : "",
           is ? is : "");
    free(was);
    free(is);
}

/* The limit that ends the answer where the recorded one ended. */
static int32_t limit_of(const Rerun *x, const Step *s) {
    const bool cut = strcmp(s->stop, "length") == 0 || strcmp(s->stop, "interrupted") == 0;
    return cut && s->tokens > x->base ? (int32_t)(s->tokens - x->base) : 0;
}

/* Puts the recorded text in place of what was generated, so that the next answers can be compared. */
static void take_recorded(UiApp *a, UiItem *it, size_t from, const UiBuf *text) {
    it->raw.len = from;
    ui_buf_add(&it->raw, ui_buf_str(text), text->len);
    it->version++;
    ui_app_count_context(a);
}

static UiItem *add_recorded(Rerun *x, const Step *s) {
    UiItem *it = ui_transcript_add(&x->app->chat, s->user ? UI_USER : UI_ANSWER, ui_buf_str(&s->text),
                                   s->text.len);
    if (it) ui_item_close(it);
    return it;
}

static bool answer_again(Rerun *x, const Step *s) {
    UiApp *a = x->app;
    const UiItem *last = ui_transcript_last(&a->chat);
    const bool go_on = last && last->kind == UI_ANSWER;
    const size_t from = go_on ? last->raw.len : 0;
    const QSFParams before = a->settings.params;
    if (!last || x->touched || x->chosen || strcmp(s->stop, "error") == 0 || s->tokens == 0) {
        (void)add_recorded(x, s);
        printf("answer %u: not repeated (%s)\n", x->number,
               x->chosen                             ? "a token of it was chosen"
               : x->touched                          ? "a setting changed while it was written"
               : strcmp(s->stop, "interrupted") == 0 ? "the program ended while it was written"
                                                     : "it was not generated");
        x->skipped++;
        return true;
    }
    x->base = go_on ? x->base : 0;
    a->settings.params.seed = s->seed;
    a->settings.params.seed_set = true;
    a->settings.params.max_tokens = limit_of(x, s);
    a->engine.set_params(a->engine.self, &a->settings);
    const bool asked = ui_app_ask(a, go_on);
    const bool ok = asked && settle(x);
    a->settings.params = before;
    UiItem *it = ui_transcript_last(&a->chat);
    if (!ok || !it || it->kind != UI_ANSWER) return false;
    report(x, ui_buf_str(&s->text), s->text.len, s->tokens, ui_buf_str(&it->raw) + from, it->raw.len - from);
    if (x->differ > 0) take_recorded(a, it, from, &s->text);
    x->base = s->tokens;
    return true;
}

/* Known messages come again where the conversation went to another branch. */
static bool message(Rerun *x, const Step *s) {
    const bool known = s->id > 0 && s->id <= x->last;
    const UiItem *last = ui_transcript_last(&x->app->chat);
    const bool more = s->id == 0 && !s->user && last && last->kind == UI_ANSWER;
    const uint32_t number = s->id > 0 ? s->id : x->last + 1;
    if (!more) {
        x->app->chat.next_number = number - 1;
        x->number = number;
        if (number > x->last) x->last = number;
    }
    if (!s->user && !known) {
        const bool ok = answer_again(x, s);
        x->chosen = false;
        return ok;
    }
    x->touched = x->touched && !s->user;
    x->base = s->user ? 0 : s->tokens;
    return add_recorded(x, s) != NULL;
}

/* Settings that no longer exist are passed over, as when a session is resumed. */
static bool set(Rerun *x, const Step *s) {
    UiApp *a = x->app;
    const QSFSetting *row = qsf_setting_find(s->name);
    const UiItem *last = ui_transcript_last(&a->chat);
    if (strcmp(s->name, UI_STOP_SETTING) == 0) {
        if (s->text.len > 0)
            (void)ui_stops_add(&a->stops, ui_buf_str(&s->text));
        else
            ui_stops_clear(&a->stops);
        return true;
    }
    if (!row) return true;
    if (last && last->kind == UI_USER) x->touched = true;
    return ui_app_set(a, row, ui_buf_str(&s->text), true) && settle(x);
}

static bool load(Rerun *x, const Step *s) {
    UiApp *a = x->app;
    if (x->given || (a->model_path && strcmp(a->model_path, ui_buf_str(&s->text)) == 0)) return true;
    ui_app_load(a, ui_buf_str(&s->text));
    return settle(x) && a->model_ready;
}

static bool forget(UiApp *a, const Step *s) {
    (void)ui_transcript_forget(&a->chat, s->n);
    return s->text.len == 0 || ui_transcript_prepend(&a->chat, s->name, ui_buf_str(&s->text), s->text.len);
}

static bool step(Rerun *x, const Step *s) {
    UiApp *a = x->app;
    switch (s->kind) {
    case QSF_LOG_MESSAGE: return message(x, s);
    case QSF_LOG_SET: return set(x, s);
    case QSF_LOG_MODEL: return load(x, s);
    case QSF_LOG_SYSTEM:
        ui_buf_clear(&a->system);
        return ui_buf_add(&a->system, ui_buf_str(&s->text), s->text.len);
    case QSF_LOG_UNDO:
        x->chosen = s->chosen;
        (void)ui_transcript_drop(&a->chat, s->n);
        return true;
    case QSF_LOG_CLEAR: ui_transcript_clear(&a->chat); return true;
    case QSF_LOG_FORGET: return forget(a, s);
    case QSF_LOG_PART: break;
    }
    return true;
}

/* ---- reading ---- */

static void put_text(void *arg, QSFLogPart part, const char *text, size_t len) {
    if (part == QSF_LOG_IS_TEXT) ui_buf_add(arg, text, len);
}

/* Of long texts a record has only the beginning. The rest is read if there is memory for it. */
static bool read_text(Rerun *x, const QSFLogRecord *r, UiBuf *text) {
    UiApp *a = x->app;
    const bool has_text = r->kind == QSF_LOG_MESSAGE || r->kind == QSF_LOG_SYSTEM;
    char err[400] = "";
    UiRoom room = { 0 };
    if (r->text && r->len == r->text_bytes) return ui_buf_add(text, r->text, r->len);
    if (!has_text || r->text_bytes == 0) return true;
    const uint64_t need = COPIES * r->text_bytes;
    const bool fits = ui_room_for_more(a, &room, need);
    if (!fits)
        ui_room_refuse(a, &room, x->session, need, err, sizeof err);
    else if (!qsf_chatlog_texts(x->log, &r->at, 1, put_text, text) || text->failed)
        (void)snprintf(err, sizeof err, "session %s: a part of it cannot be read", x->session);
    if (err[0]) ui_app_say(a, UI_ERROR, "%s", err);
    if (!fits) a->exit_code = QSF_EXIT_BUDGET;
    return !err[0];
}

/* Messages of which the context has no room, or that are not answered, stay in the conversation. */
static bool has_room(Rerun *x, size_t text) {
    UiApp *a = x->app;
    char err[400];
    UiRoom room = { 0 };
    x->grown += UI_ITEM_BYTES + COPIES * text;
    if (x->grown < LOOK_EVERY) return true;
    x->grown = 0;
    if (ui_room_for_more(a, &room, LOOK_EVERY)) return true;
    room.bytes = ui_transcript_held(&a->chat);
    ui_room_refuse(a, &room, x->session, 0, err, sizeof err);
    ui_app_say(a, UI_ERROR, "%s", err);
    a->exit_code = QSF_EXIT_BUDGET;
    return false;
}

/* Each record is repeated when it is read: a session may be larger than the budget. */
static bool take_record(void *arg, const QSFLogRecord *r) {
    Rerun *x = arg;
    x->any = true;
    if (r->kind == QSF_LOG_PART) return true;
    Step s = { .kind = r->kind,
               .user = r->role && strcmp(r->role, "user") == 0,
               .chosen = r->by && strcmp(r->by, UI_BY_TOKEN) == 0,
               .name = r->name ? r->name : "",
               .stop = r->stop ? r->stop : "",
               .seed = r->seed,
               .tokens = r->tokens,
               .n = r->n,
               .id = r->id };
    x->failed = !read_text(x, r, &s.text) || !has_room(x, s.text.len) || !step(x, &s) || x->status != 0;
    ui_buf_free(&s.text);
    return !x->failed;
}

static bool repeat(Rerun *x) {
    char err[400] = "";
    uint32_t damaged = 0;
    x->log = qsf_chatlog_view(x->session, err, sizeof err);
    bool ok = x->log && qsf_chatlog_read(x->session, take_record, x, &damaged, err, sizeof err);
    if (x->log) (void)qsf_chatlog_close(x->log);
    if (ok && !x->any) (void)snprintf(err, sizeof err, "there is no session %s", x->session);
    if (err[0]) ui_app_say(x->app, UI_ERROR, "%s", err);
    if (damaged > 0)
        ui_app_say(x->app, UI_NOTICE, "session %s: %u damaged line%s skipped", x->session, damaged,
                   damaged == 1 ? " was" : "s were");
    return ok && x->any && !x->failed;
}

int ui_rerun(UiApp *a, const char *name, bool given) {
    Rerun x = { .app = a, .session = name, .given = given };
    (void)ui_signals_open(false);
    const bool ok = settle(&x) && (!given || a->model_ready) && repeat(&x);
    ui_app_finish(a);
    if (x.status != 0) return x.status;
    if (!ok) return a->exit_code != 0 ? a->exit_code : QSF_EXIT_RUNTIME;
    qsf_text_fprintf(stdout, "%u answers the same, %u different, %u not repeated\n", x.same, x.differ,
                     x.skipped);
    return x.differ > 0 ? QSF_EXIT_RUNTIME : QSF_EXIT_OK;
}
