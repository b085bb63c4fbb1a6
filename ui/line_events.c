/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements ui/line_events.h. */
#include "ui/line_events.h"

#include <stdlib.h>
#include <string.h>

#include "ui/json.h"
#include "ui/logprobs.h"

static void begin(UiLineEvents *e, const char *type) {
    ui_buf_clear(&e->line);
    ui_buf_printf(&e->line, "{\"type\": \"%s\"", type);
}

static void field(UiLineEvents *e, const char *name, const char *text, size_t len) {
    ui_buf_printf(&e->line, ", \"%s\": ", name);
    ui_json_string(&e->line, text, len);
}

static void number(UiLineEvents *e, const char *name, unsigned long long value) {
    ui_buf_printf(&e->line, ", \"%s\": %llu", name, value);
}

/* An event that does not fit in memory is lost; the next ones are not. */
static void end(UiLineEvents *e) {
    ui_buf_puts(&e->line, "}\n");
    if (!e->line.failed) e->write(e->arg, ui_buf_str(&e->line), e->line.len);
    ui_buf_clear(&e->line);
}

static void text_event(UiLineEvents *e, const char *type, const char *text, size_t len) {
    begin(e, type);
    field(e, "text", text, len);
    end(e);
}

static void on_said(void *arg, UiKind kind, const char *text) {
    const UiLineEvents *e = arg;
    if (e->quiet && kind == UI_NOTICE) return;
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '\n') len--;
    text_event(arg, kind == UI_ERROR ? "error" : kind == UI_NOTICE ? "notice" : "output", text, len);
}

static void on_loaded(void *arg) {
    UiLineEvents *e = arg;
    const QSFStats *s = &e->app->stats;
    begin(e, "loaded");
    field(e, "model", s->model_name, strlen(s->model_name));
    field(e, "file", s->model_path, strlen(s->model_path));
    if (s->ctx_size > 0) number(e, "context", s->ctx_size);
    if (s->budget > 0) number(e, "budget_bytes", s->budget); /* a server has its own */
    end(e);
}

/* /retry and /continue answer a message that was written before. */
static void on_answer_begin(void *arg) {
    UiLineEvents *e = arg;
    const UiItem *user = ui_transcript_last_of(&e->app->chat, UI_USER);
    if (!user || user->id == e->asked) return;
    e->asked = user->id;
    begin(e, "message");
    number(e, "number", user->number);
    field(e, "text", ui_buf_str(&user->raw), user->raw.len);
    end(e);
}

static void on_thought(void *arg, const char *text, size_t len) { text_event(arg, "reasoning", text, len); }

static void on_text(void *arg, const char *text, size_t len) { text_event(arg, "text", text, len); }

static void put_reasoning(UiLineEvents *e, const UiItem *thought) {
    char *plain = malloc(thought->raw.len + 1);
    if (!plain) return;
    field(e, "reasoning", plain, qsf_reasoning_plain(ui_buf_str(&thought->raw), thought->raw.len, plain));
    free(plain);
}

/* The whole answer again, with what is known about it. */
static void on_answer_end(void *arg) {
    UiLineEvents *e = arg;
    const UiItem *it = ui_transcript_last(&e->app->chat);
    if (!it || it->kind != UI_ANSWER) return;
    begin(e, "answer");
    number(e, "number", it->number);
    field(e, "model", it->label, strlen(it->label));
    field(e, "text", ui_buf_str(&it->raw), it->raw.len);
    if (ui_item_thought(it)) put_reasoning(e, it->thought);
    field(e, "stop", it->stop, strlen(it->stop));
    number(e, "tokens", it->tokens);
    if (it->about) ui_buf_printf(&e->line, ", \"approximate\": true");
    if (it->seed != 0) ui_buf_printf(&e->line, ", \"seed\": \"%llu\"", (unsigned long long)it->seed);
    if (it->tps > 0) ui_buf_printf(&e->line, ", \"tokens_per_second\": %.3f", it->tps);
    if (it->prompt > 0) number(e, "prompt_tokens", it->prompt);
    if (it->prompt > 0) number(e, "reused_tokens", it->reused);
    if (it->of > 1) number(e, "nth", it->nth);
    if (it->of > 1) number(e, "versions", it->of);
    if (e->top_logprobs > 0) {
        ui_buf_printf(&e->line, ", \"logprobs\": [");
        ui_put_logprobs(&e->line, e->app, e->top_logprobs - 1);
        ui_buf_puts(&e->line, "]");
    }
    end(e);
}

UiHooks ui_line_events(UiLineEvents *e) {
    return (UiHooks){ .arg = e,
                      .said = on_said,
                      .loaded = on_loaded,
                      .answer_begin = on_answer_begin,
                      .answer_thought = on_thought,
                      .answer_text = on_text,
                      .answer_end = on_answer_end };
}

void ui_line_events_begin(UiLineEvents *e) {
    begin(e, "start");
    number(e, "version", UI_EVENTS_VERSION);
    field(e, "program", "qsf-chat", strlen("qsf-chat"));
    field(e, "release", qsf_version(), strlen(qsf_version()));
    if (e->app->session.on) field(e, "session", e->app->session.name, strlen(e->app->session.name));
    end(e);
}

void ui_line_events_end(UiLineEvents *e, int status) {
    begin(e, "end");
    number(e, "status", (unsigned long long)status);
    end(e);
    ui_buf_free(&e->line);
}
