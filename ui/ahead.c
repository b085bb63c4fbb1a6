/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Has the engine evaluate what is typed. */
#include "ui/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/ctx_full.h"
#include "ui/quoted.h"

#define READY_LEAST 8 /* tokens: fewer are what every prompt begins with, or what a template puts around it */

static void forget(UiApp *a) {
    if (a->ahead.asked.len > 0) (void)a->engine.ahead(a->engine.self, NULL);
    ui_buf_clear(&a->ahead.asked);
    a->ahead.tokens = 0;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/* The bytes before the last word. */
static size_t before_last_word(const char *text, size_t len) {
    while (len > 0 && is_blank(text[len - 1])) len--;
    while (len > 0 && !is_blank(text[len - 1])) len--;
    return len;
}

/* The message that Enter would send now: the line with its pastes and files. false: none, or it would be
 * refused. */
static bool message(UiApp *a, const char *line, size_t len, UiBuf *out) {
    UiBuf typed = { 0 };
    ui_folds_expand(&a->folds, line, len, &typed);
    const char *text = ui_buf_str(&typed);
    size_t n = typed.len;
    const bool ok = !typed.failed && ui_app_message(a, &text, &n) && ui_attach_peek(a, text, n, out);
    if (ok && out->len == 0) ui_buf_add(out, text, n);
    ui_buf_free(&typed);
    return ok && out->len > 0 && !out->failed;
}

static bool ask(UiApp *a, const UiBuf *text) {
    size_t n = 0;
    QSFMessage *m = ui_app_messages(a, &n);
    if (!m) return false;
    m[n++] = (QSFMessage){ .role = "user", .content = ui_buf_str(text), .len = text->len };
    char *snapshot = ui_app_snapshot(a);
    const QSFRequest r = { .messages = m,
                           .n_messages = n,
                           .snapshot = snapshot,
                           .snapshot_limit = a->snapshot_limit,
                           .held = ui_app_held(a) + text->len };
    const bool ok = a->engine.ahead(a->engine.self, &r);
    free(snapshot);
    free(m);
    return ok;
}

/* The next message is the typed one, and can be sent. */
static bool is_idle(const UiApp *a) {
    return a->model_ready && !ui_app_busy(a) && a->queue.n == 0 && !a->replanning && !a->want_model &&
           !a->want_reload && !a->enlarging && !ui_ctx_full_open(a);
}

static void note_asked(UiApp *a, const UiBuf *text) {
    UiAhead *h = &a->ahead;
    double seconds;
    int64_t pasted = 0;
    ui_buf_clear(&h->asked);
    ui_buf_add(&h->asked, ui_buf_str(&h->line), h->line.len);
    /* Files follow the text: they move with each of its bytes. */
    h->stays = a->attach.n > 0 ? SIZE_MAX : before_last_word(ui_buf_str(&h->line), h->line.len);
    (void)ui_folds_size(&a->folds, ui_buf_str(&h->line), h->line.len, &pasted);
    h->tokens = text->len > 0 ? ui_app_typed(a, ui_buf_str(&h->line), h->line.len,
                                             ui_attach_tokens(a) + pasted, &seconds)
                              : 0;
}

static void begin(UiApp *a) {
    UiAhead *h = &a->ahead;
    UiBuf text = { 0 };
    h->due = false;
    if (message(a, ui_buf_str(&h->line), h->line.len, &text) && ask(a, &text))
        note_asked(a, &text);
    else
        forget(a);
    ui_buf_free(&text);
}

static bool same(const UiBuf *b, const char *text, size_t len) {
    return b->len == len && (len == 0 || memcmp(b->data, text, len) == 0);
}

/* Another line: the evaluation continues only if its text is the beginning of this line, too. */
static void take_line(UiApp *a, const char *line, size_t len, double now) {
    UiAhead *h = &a->ahead;
    const bool stays = len >= h->stays && (h->stays == 0 || memcmp(line, h->asked.data, h->stays) == 0);
    if (h->asked.len > 0 && !stays) forget(a);
    ui_buf_clear(&h->line);
    ui_buf_add(&h->line, line, len);
    h->changed = now;
    h->due = len > 0;
    if (len == 0) forget(a);
}

double ui_ahead_watch(UiApp *a, const char *line, size_t len, double now) {
    UiAhead *h = &a->ahead;
    if (!a->settings.prefill_ahead || !a->full_screen) {
        forget(a);
        return 0;
    }
    if (h->asked.len == 0) h->stays = 0;
    if (!same(&h->line, line, len)) take_line(a, line, len, now);
    if (!h->due || !is_idle(a)) return 0;
    if (now < h->changed + UI_AHEAD_SECONDS) return h->changed + UI_AHEAD_SECONDS;
    begin(a);
    return 0;
}

void ui_ahead_again(UiApp *a) {
    a->ahead.due = a->ahead.line.len > 0;
    a->ahead.changed = ui_now();
}

int64_t ui_ahead_ready(const UiApp *a, int64_t n) {
    const QSFStats *s = &a->stats;
    const int64_t left = (int64_t)s->ahead_total - s->ahead_done;
    if (a->ahead.asked.len == 0 || s->ahead_total == 0 || ui_app_busy(a)) return 0;
    const int64_t ready = a->ahead.tokens - left;
    return ready < READY_LEAST ? 0 : ready < n ? ready : n;
}

char *ui_ahead_reason(const UiApp *a) {
    char *why = a->engine.describe(a->engine.self, "ahead");
    if (why) why[strcspn(why, "\n")] = '\0';
    if (why && *why) return why;
    free(why);
    return NULL;
}

void ui_ahead_free(UiAhead *h) {
    ui_buf_free(&h->line);
    ui_buf_free(&h->asked);
    *h = (UiAhead){ 0 };
}
