/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The beginning of a conversation leaves the context. */
#include "ui/exchanges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/ctx_full.h"

/* Sent to the model, and shown as the message before its summary. */
static const char question[] = "Summarize our conversation so far in a few sentences.";

#define SUMMARY_MAX 200u /* tokens */
#define SUMMARY_MIN 24u

uint32_t ui_exchanges(const UiApp *a) {
    size_t users;
    (void)ui_transcript_count(&a->chat, &users);
    return (uint32_t)users;
}

void ui_exchanges_oldest(uint32_t n, char *dst, size_t cap) {
    if (n == 1)
        (void)snprintf(dst, cap, "the oldest exchange");
    else
        (void)qsf_text_snprintf(dst, cap, "the oldest %u exchanges", n);
}

/* Messages of the first exchanges: an exchange ends before the next message of the user. */
static size_t messages_of(const UiApp *a, uint32_t exchanges) {
    size_t n = 0;
    uint32_t users = 0;
    for (size_t i = 0; i < a->chat.n; i++) {
        const UiItem *it = a->chat.items[i];
        if (!it->in_context) continue;
        if (it->kind == UI_USER && users++ == exchanges) break;
        n++;
    }
    return n;
}

/* The system prompt and the messages [from, to) after it; free() it. Space for one more. */
static QSFMessage *part(const UiApp *a, size_t from, size_t to, size_t *n) {
    QSFMessage *m = ui_app_messages(a, n);
    if (!m) return NULL;
    const size_t head = a->system.len > 0, all = *n - head;
    to = to < all ? to : all;
    from = from < to ? from : to;
    memmove(m + head, m + head + from, (to - from) * sizeof *m);
    *n = head + to - from;
    return m;
}

static int64_t count(const UiApp *a, const QSFMessage *m, size_t n) {
    if (!m) return -1;
    if (n == 0) return 0;
    const bool answered = strcmp(m[n - 1].role, "assistant") == 0;
    QSFRequest r = { .messages = m, .n_messages = n, .continue_last = answered };
    return a->engine.count(a->engine.self, &r);
}

int64_t ui_exchanges_after(const UiApp *a, uint32_t exchanges) {
    size_t n = 0;
    QSFMessage *m = part(a, messages_of(a, exchanges), SIZE_MAX, &n);
    const int64_t tokens = count(a, m, n);
    free(m);
    return tokens;
}

int64_t ui_exchanges_system(const UiApp *a) {
    size_t n = 0;
    if (a->system.len == 0) return 0;
    QSFMessage *m = part(a, 0, 1, &n);
    const int64_t with = count(a, m, n), without = m ? count(a, m + 1, n - 1) : -1;
    free(m);
    return with > without && without >= 0 ? with - without : 0;
}

static bool replace(UiApp *a, uint32_t exchanges, const char *text, size_t len) {
    const uint32_t n = (uint32_t)messages_of(a, exchanges);
    (void)ui_transcript_forget(&a->chat, n);
    if (text && !ui_transcript_prepend(&a->chat, question, text, len)) text = NULL;
    ui_session_simple(&a->session, QSF_LOG_FORGET, text ? question : NULL, text, n);
    ui_app_count_context(a);
    return text != NULL;
}

void ui_forget(UiApp *a, uint32_t exchanges) {
    (void)replace(a, exchanges, NULL, 0);
    char oldest[40];
    ui_exchanges_oldest(exchanges, oldest, sizeof oldest);
    ui_app_say(a, UI_NOTICE, "forgot %s", oldest);
}

uint32_t ui_compact_tokens(const UiApp *a) {
    const uint32_t n = a->stats.ctx_size / 8;
    if (a->stats.ctx_size == 0) return SUMMARY_MAX; /* of a server that does not say it */
    return n > SUMMARY_MAX ? SUMMARY_MAX : n < SUMMARY_MIN ? SUMMARY_MIN : n;
}

/* The request for a summary of the first exchanges; free() it. */
static QSFMessage *summary_request(const UiApp *a, uint32_t exchanges, size_t *n) {
    QSFMessage *m = part(a, 0, messages_of(a, exchanges), n);
    if (m) m[(*n)++] = (QSFMessage){ .role = "user", .content = question, .len = sizeof question - 1 };
    return m;
}

static bool summary_fits(const UiApp *a, uint32_t exchanges) {
    size_t n = 0;
    QSFMessage *m = summary_request(a, exchanges, &n);
    const int64_t tokens = count(a, m, n);
    free(m);
    if (tokens < 0) return !ui_has(a, UI_NEEDS_PROMPT); /* only the server can tell */
    return tokens + ui_compact_tokens(a) <= a->stats.ctx_size;
}

uint32_t ui_compact_choose(const UiApp *a) {
    const uint32_t all = ui_exchanges(a);
    uint32_t n = all > 1 ? (all + 1) / 2 : 0;
    if (n == all && n > 0) n--;
    while (n > 0 && !summary_fits(a, n)) n /= 2;
    return n;
}

bool ui_compact(UiApp *a, uint32_t exchanges, bool go_on) {
    size_t n = 0;
    QSFMessage *m = summary_request(a, exchanges, &n);
    QSFRequest r = { .messages = m, .n_messages = n, .max_tokens = ui_compact_tokens(a) };
    a->request = m ? a->engine.submit(a->engine.self, &r) : 0;
    free(m);
    if (a->request == 0) {
        ui_app_say(a, UI_ERROR, "the engine is still busy: nothing was compacted");
        return false;
    }
    ui_buf_free(&a->compact.text);
    a->compact = (UiCompact){ .exchanges = exchanges, .go_on = go_on };
    a->running = UI_REQUEST_SUMMARY;
    a->stopping = false;
    a->ctx_counted = a->ctx_stale = false;
    char oldest[40];
    ui_exchanges_oldest(exchanges, oldest, sizeof oldest);
    ui_app_say(a, UI_NOTICE, "the model summarizes %s; ^C stops it", oldest);
    return true;
}

void ui_compact_text(UiApp *a, const char *text, size_t len) {
    UiCompact *c = &a->compact;
    if (c->cut) return;
    c->cut = !ui_buf_add(&c->text, text, len);
    if (c->cut) a->engine.cancel(a->engine.self);
}

/* A summary that was cut ends after its last sentence, if it has one. */
static void trim(UiCompact *c) {
    size_t len = c->text.len;
    const char *s = ui_buf_str(&c->text);
    if (c->cut)
        while (len > 0 && !strchr(".!?", s[len - 1])) len--;
    if (len == 0) len = c->text.len;
    while (len > 0 && strchr(" \t\n", s[len - 1])) len--;
    if (len < c->text.len) c->text.data[c->text.len = len] = '\0';
}

/* What replaces the exchanges, without the white space around it. */
static const char *summary_of(const UiCompact *c) {
    const char *text = ui_buf_str(&c->text);
    return text + strspn(text, " \t\n");
}

/* The summary takes effect. */
static bool finish(UiApp *a, uint32_t exchanges, const char *text) {
    char oldest[40];
    ui_exchanges_oldest(exchanges, oldest, sizeof oldest);
    const bool ok = replace(a, exchanges, text, strlen(text));
    if (ok)
        ui_app_say(a, UI_NOTICE, "compacted %s", oldest);
    else
        ui_app_say(a, UI_ERROR, "out of memory: the exchanges were forgotten");
    ui_app_count_context(a);
    return ok;
}

void ui_compact_take(UiApp *a) {
    UiCompact c = a->compact;
    if (!c.ready) return;
    a->compact = (UiCompact){ 0 };
    (void)finish(a, c.exchanges, summary_of(&c));
    ui_buf_free(&c.text);
    if (!c.go_on || !ui_app_ask(a, true)) ui_app_send_queued(a);
}

static void leave(UiApp *a) {
    ui_buf_free(&a->compact.text);
    a->compact = (UiCompact){ 0 };
}

void ui_compact_drop(UiApp *a) {
    if (!a->compact.ready) return;
    leave(a);
    ui_app_say(a, UI_NOTICE, "nothing was compacted");
    ui_app_send_queued(a);
}

void ui_compact_edit(UiApp *a) {
    const uint32_t n = a->compact.exchanges;
    UiBuf line = { 0 };
    if (!a->compact.ready) return;
    ui_buf_printf(&line, "/compact %s", summary_of(&a->compact));
    if (!line.failed) ui_app_draft(a, ui_buf_str(&line), line.len);
    ui_buf_free(&line);
    leave(a);
    a->compact.edited = n;
}

bool ui_compact_with(UiApp *a, const char *text) {
    const uint32_t all = ui_exchanges(a), edited = a->compact.edited;
    const uint32_t n = edited > 0 && edited < all ? edited : all / 2;
    const bool go_on = ui_ctx_full_open(a);
    if (n == 0) return false;
    leave(a);
    (void)finish(a, n, text);
    if (go_on) (void)ui_app_ask(a, true);
    return true;
}

/* A person decides; a script, and lines, cannot be asked. */
static bool asks(const UiApp *a) { return a->full_screen && a->interactive && !a->source.where[0]; }

static void show_or_finish(UiApp *a, UiCompact *c) {
    const char *text = summary_of(c);
    if (asks(a)) {
        c->ready = true;
        a->compact = *c;
        c->text = (UiBuf){ 0 };
        return;
    }
    ui_app_print(a, UI_OUTPUT, text);
    (void)finish(a, c->exchanges, text);
    if (c->go_on) (void)ui_app_ask(a, true);
}

void ui_compact_end(UiApp *a, QSFStop stop, const char *error) {
    UiCompact c = a->compact;
    const bool stopped = stop == QSF_STOP_INTERRUPTED && !c.cut;
    a->compact = (UiCompact){ 0 };
    c.cut = c.cut || stop == QSF_STOP_LENGTH || stop == QSF_STOP_CONTEXT;
    trim(&c);
    ui_app_count_context(a);
    if (error)
        ui_app_say(a, UI_ERROR, "nothing was compacted: %s", error);
    else if (stopped)
        ui_app_say(a, UI_NOTICE, "stopped: nothing was compacted");
    else if (!*summary_of(&c))
        ui_app_say(a, UI_ERROR, "nothing was compacted: the model wrote no summary");
    else
        show_or_finish(a, &c);
    ui_buf_free(&c.text);
}
