/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: how much of the context the conversation uses, and whether a message still fits.
 * The engine reports the contents of its KV cache; after /undo, /clear or resuming a session the conversation
 * differs from that. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/app_internal.h"
#include "ui/exchanges.h"

#define SAMPLE_MAX ((size_t)32 << 10) /* bytes of a long message that are counted for an estimate */
#define CTX_SPARE  256                /* minimum space for an answer, in tokens, in a larger context */

/* Tokens of the conversation, with text as its next message (NULL: without); -1 = not known. */
static int64_t count(const UiApp *a, const char *text, size_t len) {
    size_t n = 0;
    QSFMessage *m = ui_app_messages(a, &n);
    if (m && text) m[n++] = (QSFMessage){ .role = "user", .content = text, .len = len };
    bool answered = n > 0 && strcmp(m[n - 1].role, "assistant") == 0;
    QSFRequest r = { .messages = m, .n_messages = n, .continue_last = answered };
    int64_t tokens = !m ? -1 : n == 0 ? 0 : a->engine.count(a->engine.self, &r);
    free(m);
    return tokens;
}

int64_t ui_app_prompt_tokens(const UiApp *a) { return count(a, NULL, 0); }

bool ui_app_evicts(const UiApp *a) {
    return a->stats.eviction[0] != '\0' && strcmp(a->stats.eviction, "none") != 0;
}

void ui_app_refresh_stats(UiApp *a) {
    a->engine.stats(a->engine.self, &a->stats);
    /* With a policy the KV cache may hold less than the conversation has. */
    if (a->ctx_counted && !(ui_app_evicts(a) && a->ctx_tokens > a->stats.ctx_size))
        a->stats.ctx_used = a->ctx_tokens;
}

static void count_now(UiApp *a) {
    int64_t tokens = count(a, NULL, 0);
    a->ctx_stale = false;
    a->ctx_counted = tokens >= 0 && tokens <= UINT32_MAX;
    a->ctx_tokens = a->ctx_counted ? (uint32_t)tokens : 0;
    ui_app_refresh_stats(a);
}

void ui_app_count_context(UiApp *a) {
    a->ctx_stale = true;
    if (a->model_ready && (a->full_screen || a->interactive)) ui_app_refresh_context(a);
}

void ui_app_refresh_context(UiApp *a) {
    if (a->ctx_stale && a->model_ready && !ui_app_writing(a)) count_now(a);
}

/* ---- advice ---- */

static bool ctx_is_possible(const UiApp *a, uint32_t ctx) {
    QSFSettings s = a->settings;
    char err[600];
    s.ctx = ctx;
    return a->engine.check(a->engine.self, &s, err, sizeof err) == 0;
}

bool ui_app_policy_is_possible(const UiApp *a, char *err, size_t cap) {
    QSFSettings s = a->settings;
    if (ui_app_evicts(a)) {
        (void)snprintf(err, cap, "the policy is %s already", a->stats.eviction);
        return false;
    }
    if (qsf_setting_set(&s, qsf_setting_find("eviction-policy"), "sliding", err, cap) != 0) return false;
    return a->engine.check(a->engine.self, &s, err, cap) == 0;
}

/* A context for need tokens and an answer, at most what the model was trained for and the
 * budget allows; 0 = none. */
static uint32_t larger_context(const UiApp *a, int64_t need) {
    uint32_t ctx = 512, train = a->stats.ctx_train;
    const int64_t least = (need + 16) / 16 * 16;
    while (ctx < need + CTX_SPARE && ctx < 1u << 30) ctx *= 2;
    if (train > 0 && ctx > train) ctx = train;
    if (ctx <= need || ctx <= a->stats.ctx_size) return 0;
    if (ctx_is_possible(a, ctx)) return ctx;
    return least < ctx && least > a->stats.ctx_size && ctx_is_possible(a, (uint32_t)least) ? (uint32_t)least
                                                                                           : 0;
}

/* The fewest exchanges, at most f->most, without which at most `room` tokens stay. */
static void find_forget(UiApp *a, int64_t room) {
    UiFit *f = &a->fit;
    uint32_t low = 0, high = f->most;
    f->before = INT64_MAX;
    f->left = ui_exchanges_after(a, high);
    f->forget = 0;
    if (f->left < 0 || f->left > room) { /* not even without all that may leave */
        f->before = f->left < 0 ? room + 1 : f->left;
        f->left = INT64_MIN;
        return;
    }
    while (high - low > 1) {
        const uint32_t n = low + (high - low) / 2;
        const int64_t after = ui_exchanges_after(a, n);
        if (after >= 0 && after <= room) {
            high = n;
            f->left = after;
        } else {
            low = n;
            f->before = after < 0 ? INT64_MAX : after;
        }
    }
    f->forget = high;
}

/* The conversation is what it was, and the room is between the same two lengths. */
static bool forget_is_known(const UiApp *a, uint32_t exchanges, uint32_t most, int64_t room) {
    const UiFit *f = &a->fit;
    return f->last_item == a->chat.next_id && f->exchanges == exchanges && f->most == most &&
           room >= f->left && room < f->before;
}

/* Without a message the last exchange stays: it is what continues. */
static uint32_t fewest_forget(UiApp *a, int64_t need, bool message, int64_t spare) {
    const int64_t added = message && need > a->stats.ctx_used ? need - a->stats.ctx_used : 0;
    const int64_t room = (int64_t)a->stats.ctx_size - added - spare;
    const uint32_t all = ui_exchanges(a), most = message || all == 0 ? all : all - 1;
    if (most == 0) return 0;
    if (forget_is_known(a, all, most, room)) return a->fit.forget;
    a->fit.last_item = a->chat.next_id;
    a->fit.exchanges = all;
    a->fit.most = most;
    find_forget(a, room);
    return a->fit.forget;
}

static void find_plan(UiApp *a, int64_t need) {
    UiFit *f = &a->fit;
    char err[600];
    const bool same = f->ctx_size == a->stats.ctx_size && f->budget == a->stats.budget;
    if (!same) f->policy = ui_app_policy_is_possible(a, err, sizeof err);
    if (!same || need > f->ctx_for || need < f->ctx_for / 2) {
        f->ctx_for = need + need / 16; /* also for what is typed next */
        f->ctx = larger_context(a, f->ctx_for);
    }
    f->ctx_size = a->stats.ctx_size;
    f->budget = a->stats.budget;
}

/* Adds a piece of advice if there is space. */
__attribute__((format(printf, 3, 4))) static void advise(char *dst, size_t cap, const char *fmt, ...) {
    char text[64];
    va_list ap;
    va_start(ap, fmt);
    (void)qsf_text_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const size_t at = strlen(dst);
    if (at + strlen(text) + (at > 0 ? 2 : 0) < cap)
        (void)snprintf(dst + at, cap - at, "%s%s", at > 0 ? ", " : "", text);
}

bool ui_app_context_advice(UiApp *a, int64_t need, bool message, char *dst, size_t cap) {
    const uint32_t spare = a->stats.ctx_size / 8 < CTX_SPARE ? a->stats.ctx_size / 8 : CTX_SPARE;
    uint32_t forget = fewest_forget(a, need, message, spare);
    if (forget == 0) forget = fewest_forget(a, need, message, message ? 0 : 1);
    find_plan(a, need);
    const bool policy = a->fit.policy && !ui_app_evicts(a), possible = forget > 0 || a->fit.ctx > 0 || policy;
    dst[0] = '\0';
    if (forget > 0) advise(dst, cap, "/forget %u: fits", forget);
    if (a->fit.ctx > 0) advise(dst, cap, "/ctx %u", a->fit.ctx);
    if (policy) advise(dst, cap, "/kv policy sliding");
    if (!possible) advise(dst, cap, message ? "shorten the message" : "/clear");
    return possible;
}

void ui_app_say_long(UiApp *a) {
    char advice[80];
    const QSFStats *s = &a->stats;
    if (!a->model_ready || !a->ctx_counted || ui_app_evicts(a) || s->ctx_size == 0 ||
        s->ctx_used <= s->ctx_size)
        return;
    (void)ui_app_context_advice(a, s->ctx_used, false, advice, sizeof advice);
    ui_app_say(a, UI_NOTICE, "the conversation has %u tokens, more than the context of %u: %s", s->ctx_used,
               s->ctx_size, advice);
}

/* ---- what is typed ---- */

/* Tokens of text alone, based on as much of it as can be counted quickly. */
static int64_t estimate(UiApp *a, const char *text, size_t len) {
    UiTyped *t = &a->typed;
    size_t change = len > t->bytes ? len - t->bytes : t->bytes - len;
    if (t->bytes == 0 || change > t->bytes / 16) {
        size_t part = len < SAMPLE_MAX ? len : SAMPLE_MAX;
        QSFMessage m = { .role = "user", .content = text, .len = part };
        QSFRequest r = { .messages = &m, .n_messages = 1 };
        int64_t tokens = a->engine.count(a->engine.self, &r);
        if (tokens < 0) return 0;
        *t = (UiTyped){ .bytes = len, .tokens = (double)tokens * (double)len / (double)part };
    }
    return (int64_t)(t->tokens * (double)len / (double)t->bytes);
}

int64_t ui_app_too_long(UiApp *a, const char *text, size_t len, int64_t more) {
    const QSFStats *s = &a->stats;
    const int64_t left = (int64_t)s->ctx_size - s->ctx_used;
    if (!a->model_ready || s->ctx_size == 0 || ui_app_evicts(a) || (int64_t)len + more < left)
        return 0; /* a token has at least one byte */
    const int64_t tokens = (len > 0 ? estimate(a, text, len) : 0) + more;
    return tokens > left ? tokens - left : 0;
}

int64_t ui_app_typed(UiApp *a, const char *text, size_t len, int64_t more, double *seconds) {
    const double rate = a->read_tps > 0 ? a->read_tps : a->stats.prefill_tps;
    *seconds = -1;
    if (!a->model_ready || a->stats.ctx_size == 0 || len == 0) return 0;
    const int64_t tokens = estimate(a, text, len) + more;
    if (rate > 0 && !ui_app_busy(a)) *seconds = (double)(tokens - ui_ahead_ready(a, tokens)) / rate;
    return tokens;
}

bool ui_app_fits(UiApp *a, const char *text, size_t len, int64_t *need) {
    const QSFStats *s = &a->stats;
    *need = 0;
    if (s->ctx_size == 0 || ui_app_evicts(a)) return true;
    *need = count(a, text, len);
    return *need <= s->ctx_size;
}
