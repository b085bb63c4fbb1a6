/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: how much of the context the conversation uses, and whether a message still fits.
 * The engine reports the contents of its KV cache; after /undo, /clear or resuming a session the conversation
 * differs from that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"

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

static bool evicts(const UiApp *a) {
    return a->stats.eviction[0] != '\0' && strcmp(a->stats.eviction, "none") != 0;
}

void ui_app_refresh_stats(UiApp *a) {
    a->engine.stats(a->engine.self, &a->stats);
    /* With a policy the KV cache may hold less than the conversation has. */
    if (a->ctx_counted && !(evicts(a) && a->ctx_tokens > a->stats.ctx_size))
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

/* A context for need tokens and an answer, at most what the model was trained for; 0 = none. */
static uint32_t larger_context(const UiApp *a, int64_t need) {
    uint32_t ctx = 512, train = a->stats.ctx_train;
    while (ctx < need + CTX_SPARE && ctx < 1u << 30) ctx *= 2;
    if (train > 0 && ctx > train) ctx = train;
    return ctx > need && ctx > a->stats.ctx_size ? ctx : 0;
}

void ui_app_context_advice(const UiApp *a, int64_t need, char *dst, size_t cap) {
    uint32_t ctx = need > 0 ? larger_context(a, need) : 0;
    size_t exchanges;
    bool messages = ui_transcript_count(&a->chat, &exchanges) > 0;
    char larger[32] = "";
    if (ctx > 0) (void)snprintf(larger, sizeof larger, "/ctx %u", ctx);
    (void)snprintf(dst, cap, "%s%s%s", larger,
                   !messages ? ""
                   : ctx > 0 ? ", "
                             : "",
                   exchanges > 1 ? "/forget or /clear"
                   : messages    ? "/undo or /clear"
                                 : "");
    if (!dst[0]) (void)snprintf(dst, cap, "shorten the message");
}

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

int64_t ui_app_too_long(UiApp *a, const char *text, size_t len) {
    const QSFStats *s = &a->stats;
    uint32_t left = s->ctx_size > s->ctx_used ? s->ctx_size - s->ctx_used : 0;
    if (!a->model_ready || s->ctx_size == 0 || len < left || len == 0 || evicts(a))
        return 0; /* a token has at least one byte */
    int64_t tokens = estimate(a, text, len);
    return tokens > left ? tokens - left : 0;
}

bool ui_app_fits(UiApp *a, const char *text, size_t len, int64_t *need) {
    const QSFStats *s = &a->stats;
    *need = 0;
    if (s->ctx_size == 0 || evicts(a)) return true;
    *need = count(a, text, len);
    return *need <= s->ctx_size;
}
