/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exchanged roles. */
#include "ui/swap_roles.h"

#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"

#define TOKENS_MAX 400u /* of a message */

static const char first[] =
    "Let us exchange roles: I am the assistant, and you are the person who talks to me. "
    "Write only that person's next message.";

static const char *exchanged(const char *role) { return strcmp(role, "user") == 0 ? "assistant" : "user"; }

/* The system prompt is for the assistant, and reasoning is not said. free() it. */
static QSFMessage *messages(const UiApp *a, size_t *n) {
    QSFMessage *m = ui_app_messages(a, n);
    const size_t head = a->system.len > 0;
    if (!m) return NULL;
    const size_t talk = *n - head;
    memmove(m + 1, m + head, talk * sizeof *m); /* there is space for one more */
    m[0] = (QSFMessage){ .role = "user", .content = first, .len = sizeof first - 1 };
    for (size_t i = 1; i <= talk; i++)
        m[i] = (QSFMessage){ .role = exchanged(m[i].role), .content = m[i].content, .len = m[i].len };
    *n = talk + 1;
    return m;
}

/* Does the prompt fit? The engine would say so too, but only with the names of options. */
static bool fits(UiApp *a, const QSFMessage *m, size_t n) {
    const QSFRequest r = { .messages = m, .n_messages = n };
    const bool evicts = strcmp(a->settings.eviction, "none") != 0;
    const int64_t need = a->stats.ctx_size == 0 || evicts ? 0 : a->engine.count(a->engine.self, &r);
    char advice[80];
    if (need < (int64_t)a->stats.ctx_size || a->stats.ctx_size == 0) return true;
    (void)ui_app_context_advice(a, need + 1, false, advice, sizeof advice);
    ui_app_say(a, UI_ERROR,
               "/swap: with the roles exchanged the conversation has %lld tokens, and the context %u%s%s",
               (long long)need, a->stats.ctx_size, advice[0] ? ": " : "", advice);
    return false;
}

bool ui_swap_roles(UiApp *a) {
    size_t n = 0;
    QSFMessage *m = messages(a, &n);
    if (m && !fits(a, m, n)) {
        free(m);
        return false;
    }
    const QSFRequest r = { .messages = m,
                           .n_messages = n,
                           .stop = (const char *const *)a->stops.text,
                           .n_stop = a->stops.n,
                           .max_tokens = TOKENS_MAX,
                           .held = ui_app_held(a) };
    a->request = m ? a->engine.submit(a->engine.self, &r) : 0;
    free(m);
    if (a->request == 0) {
        ui_app_say(a, UI_ERROR, "the engine is still busy: nothing was written");
        return false;
    }
    ui_buf_clear(&a->swapped);
    a->running = UI_REQUEST_SWAP;
    a->stopping = false;
    a->ctx_counted = a->ctx_stale = false;
    ui_app_say(a, UI_NOTICE, "the model writes your next message; ^C stops it");
    return true;
}

void ui_swap_roles_text(UiApp *a, const char *text, size_t len) {
    if (!ui_buf_add(&a->swapped, text, len)) a->engine.cancel(a->engine.self);
}

/* A command at its start would run. */
static void put_into_input(UiApp *a, const char *text, size_t len) {
    UiBuf b = { 0 };
    if (*text == '/') ui_buf_puts(&b, "/");
    if (ui_buf_add(&b, text, len)) ui_app_draft(a, ui_buf_str(&b), b.len);
    ui_buf_free(&b);
}

/* As typed, but files that it names are not attached. */
static void send(UiApp *a, const char *text, size_t len) {
    ui_app_print(a, UI_OUTPUT, text);
    UiItem *it = ui_transcript_add(&a->chat, UI_USER, text, len);
    if (!it) {
        ui_app_say(a, UI_ERROR, "out of memory: the message was not sent");
        return;
    }
    ui_app_save_message(a, it, (UiPlace){ 0 });
    if (!ui_app_ask(a, false)) ui_app_withdraw(a);
}

void ui_swap_roles_end(UiApp *a, const QSFEvent *e) {
    UiBuf b = a->swapped;
    a->swapped = (UiBuf){ 0 };
    size_t len = b.len;
    while (len > 0 && strchr(" \t\n", b.data[len - 1]) && b.data[len - 1]) b.data[--len] = '\0';
    const char *text = ui_buf_str(&b) + strspn(ui_buf_str(&b), " \t\n");
    len = len > 0 ? len - (size_t)(text - ui_buf_str(&b)) : 0;
    const bool stopped = e->type == QSF_EVENT_DONE && e->stop == QSF_STOP_INTERRUPTED;
    const bool edits = a->full_screen && !a->source.where[0];
    ui_app_count_context(a);
    if (e->type != QSF_EVENT_DONE)
        ui_app_say(a, UI_ERROR, "the model cannot write your message: %s",
                   e->text && *e->text ? e->text : "it failed");
    else if (len == 0)
        ui_app_say(a, stopped ? UI_NOTICE : UI_ERROR, "the model wrote no message");
    else if (edits)
        put_into_input(a, text, len);
    else if (stopped)
        ui_app_say(a, UI_NOTICE, "stopped: nothing was sent");
    else
        send(a, text, len);
    ui_buf_free(&b);
}
