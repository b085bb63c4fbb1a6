/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: events of the engine. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/branches.h"
#include "ui/ctx_full.h"
#include "ui/exchanges.h"
#include "ui/guide.h"
#include "ui/swap_roles.h"
#include "ui/walk.h"

#define UI_END_SECONDS 0.5 /* to wait for the end of an answer when the program ends */
#define UI_PIN_SECONDS 0.4 /* interval of checking how much is pinned */

/* It may be saved later: only what is missing at the end is a failure of the program. */
static void say_save_problem(UiApp *a) {
    char text[sizeof a->session.problem];
    const int code = a->exit_code;
    memcpy(text, a->session.problem, sizeof text);
    a->session.problem[0] = '\0';
    if (text[0]) ui_app_say(a, UI_ERROR, "%s", text);
    a->exit_code = code;
    memcpy(text, a->session.notice, sizeof text);
    a->session.notice[0] = '\0';
    if (text[0]) ui_app_say(a, UI_NOTICE, "%s", text);
}

static void answer_text(UiApp *a, const QSFEvent *e) {
    UiItem *it = a->answer;
    bool thought = e->type == QSF_EVENT_REASONING;
    bool ok = !it || (thought ? ui_item_think(&a->chat, it, e->text, e->text_len, e->tokens)
                              : ui_item_append(&a->chat, it, e->text, e->text_len));
    if (!ok) {
        ui_app_say(a, UI_ERROR, "out of memory: the answer was stopped");
        ui_app_stop(a);
        return;
    }
    if (it && it->thought) it->thought->open = thought;
    void (*emit)(void *, const char *, size_t) = thought ? a->hooks.answer_thought : a->hooks.answer_text;
    if (emit) emit(a->hooks.arg, e->text, e->text_len);
}

/* Whether this request added to the answer, or began one. */
static bool has_more(const UiItem *it, UiPlace from) {
    UiPlace end = ui_item_end(it);
    return end.text > from.text || end.thought > from.thought || (from.text == 0 && from.thought == 0);
}

/* What a cut answer consists of besides its text, so that /continue is exact. */
static void take_exact(UiApp *a, UiItem *it, bool more, const QSFEvent *e) {
    const bool done = e && e->type == QSF_EVENT_DONE;
    const bool cut = done && e->stop != QSF_STOP_EOS && e->stop != QSF_STOP_STRING;
    if (cut && e->tokens > 0)
        ui_item_set_exact(it, a->engine.describe(a->engine.self, "answer"));
    else if (more || (done && !cut))
        ui_item_set_exact(it, NULL);
}

/* The answer ends, complete or not: it is closed, stored and saved. An answer without a token is removed, and
 * its question leaves the context, so that two questions never follow each other. */
static void close_answer(UiApp *a, const char *stop, const QSFEvent *e) {
    UiItem *it = a->answer;
    a->answer = NULL;
    a->came_back = false;
    if (!it) return;
    it->open = false;
    ui_item_close(it);
    const uint32_t tokens = e && e->type == QSF_EVENT_DONE ? e->tokens : 0;
    bool more = has_more(it, a->answer_from) || tokens > 0;
    take_exact(a, it, more, e);
    if (more) ui_walk_keep(a, it, e && e->type == QSF_EVENT_DONE);
    bool refused = !more && !(e && e->type == QSF_EVENT_DONE); /* /continue added nothing */
    (void)snprintf(it->stop, sizeof it->stop, "%s", refused ? a->answer_stop : stop);
    if (!it->label[0]) (void)snprintf(it->label, sizeof it->label, "%.63s", a->stats.model_name);
    if (e && e->type == QSF_EVENT_DONE) {
        it->tokens += e->tokens;
        it->about = it->about || !a->engine.counted(a->engine.self);
        it->seed = a->settings.params.temperature > 0 ? e->seed : 0;
        it->tps = a->stats.decode_tps;
        it->prompt = e->prompt_tokens;
        it->reused = e->reused_tokens;
        if (e->reasoning_cut && it->thought)
            (void)snprintf(it->thought->stop, sizeof it->thought->stop, "cut");
    }
    bool finished = strcmp(stop, "eos") == 0 || strcmp(stop, "stop") == 0;
    if (it->raw.len == 0 && !ui_item_thought(it) && !finished && it->tokens == 0) {
        if (it->number == a->chat.next_number) a->chat.next_number--; /* nothing was saved of it */
        ui_transcript_remove(&a->chat, it);
        a->came_back = ui_app_branch_back(a); /* the answer that was to be replaced is back */
        if (!a->came_back) ui_app_withdraw(a);
    } else if (more) {
        ui_app_save_message(a, it, a->answer_from);
    }
    ui_ctx_full_answered(a);
}

/* The answer has not begun, so nothing of it is shown. */
static void say_thinking(UiApp *a, const QSFEvent *e) {
    const UiItem *last = ui_transcript_last(&a->chat);
    if (!last || last->kind != UI_ANSWER || last->raw.len > 0 || e->stop == QSF_STOP_INTERRUPTED) return;
    const char *allows = e->stop == QSF_STOP_LENGTH ? ", /set max-tokens N allows more" : "";
    const char *resumes = a->engine.has(a->engine.self, UI_NEEDS_RESUME) ? "/continue resumes"
                                                                         : "/retry asks again";
    if (last->thought && e->stop == QSF_STOP_EOS)
        ui_app_say(a, UI_NOTICE, "the model ended without an answer: /think shows its reasoning");
    else if (last->thought && e->thinking)
        ui_app_say(a, UI_NOTICE, "the model was still thinking: %s, /think shows it%s", resumes, allows);
    else if (e->stop == QSF_STOP_LENGTH)
        ui_app_say(a, UI_NOTICE, "the answer has no text yet: %s%s", resumes, allows);
}

/* A person at a terminal is asked what to do. An answer without text was withdrawn. */
static bool asks(const UiApp *a, const QSFEvent *e) {
    const UiItem *last = ui_transcript_last(&a->chat);
    return e->stop == QSF_STOP_CONTEXT && a->interactive && !a->stopping && !a->came_back && last &&
           last->kind == UI_ANSWER;
}

/* Nothing is asked: what would let the answer continue, or begin if its message was withdrawn. */
static void say_full(UiApp *a) {
    char advice[80];
    int64_t need = a->stats.ctx_size;
    const UiItem *user = ui_transcript_last_of(&a->chat, UI_USER);
    const bool message = user && !user->in_context, again = message || a->came_back;
    if (message) (void)ui_app_fits(a, ui_buf_str(&user->raw), user->raw.len, &need);
    if (ui_app_context_advice(a, need + 1, message, advice, sizeof advice))
        ui_app_say(a, UI_NOTICE, "the context is full: %s; then /%s", advice, again ? "retry" : "continue");
    else if (again)
        ui_app_say(a, UI_NOTICE, "the context is full: %s", advice);
    else
        ui_app_say(a, UI_NOTICE, "the context is full: the answer cannot continue, /clear begins again");
}

#define READ_LEAST 16u /* tokens of a prefill whose speed counts */

/* The request was to continue an answer that had begun. */
static bool goes_on(const UiApp *a) { return a->answer_from.text > 0 || a->answer_from.thought > 0; }

/* Otherwise nothing would show that /continue did anything. */
static void say_finished(UiApp *a, const QSFEvent *e) {
    const bool ended = e->stop == QSF_STOP_EOS || e->stop == QSF_STOP_STRING;
    if (ended && a->answer && goes_on(a) && !has_more(a->answer, a->answer_from))
        ui_app_say(a, UI_NOTICE, "the answer is finished: the model adds nothing to it");
}

/* The seed and the version, which the full screen shows with the answer. */
static void say_which(UiApp *a, const QSFEvent *e) {
    const bool known = ui_has(a, UI_NEEDS_TOKENS) || e->seed != 0; /* most servers do not say it */
    if (known && !a->full_screen && !a->settings.params.seed_set && a->settings.params.temperature > 0)
        ui_app_say(a, UI_NOTICE, "seed %llu", (unsigned long long)e->seed);
    const UiItem *last = ui_transcript_last(&a->chat);
    if (!a->full_screen && !goes_on(a) && last && last->kind == UI_ANSWER && last->of > 1)
        ui_app_say(a, UI_NOTICE, "version %u/%u", last->nth, last->of);
}

static void answer_done(UiApp *a, const QSFEvent *e) {
    ui_app_refresh_stats(a);
    ui_log_answer(a, e);
    say_finished(a, e);
    close_answer(a, qsf_stop_name(e->stop), e);
    say_thinking(a, e);
    if (e->prompt_tokens >= e->reused_tokens + READ_LEAST) a->read_tps = a->stats.prefill_tps;
    const bool ask = asks(a, e);
    if (e->stop == QSF_STOP_CONTEXT && !ask) {
        if (a->exit_code == 0) a->exit_code = 5;
        say_full(a);
    }
    if (e->hidden_tokens > 0)
        ui_app_say(a, UI_NOTICE, "the model kept thinking: %u tokens are hidden", e->hidden_tokens);
    if (e->evicted > 0)
        ui_app_say(a, UI_NOTICE, "%u tokens left the context (%s)", e->evicted, a->settings.eviction);
    if (a->hooks.answer_end) a->hooks.answer_end(a->hooks.arg);
    if (e->grammar_cut && e->stop != QSF_STOP_INTERRUPTED) /* after its last words, which lines hold back */
        ui_app_say(a, UI_NOTICE, "the answer was cut before its grammar was complete");
    say_which(a, e);
    if (ask) ui_ctx_full_ask(a);
}

/* The prompt was longer than the context: in the chat the advice differs from the options that the engine
 * names. prompt: its tokens, if the answer that it was to replace is back; go_on: it was the answer that
 * should continue. */
static bool say_too_long(UiApp *a, bool go_on, int64_t prompt) {
    UiItem *last = ui_transcript_last_of(&a->chat, UI_USER);
    char advice[80];
    int64_t need = a->came_back ? prompt : 0;
    const bool message = !go_on && last && !last->in_context;
    ui_app_refresh_context(a);
    if (message)
        (void)ui_app_fits(a, ui_buf_str(&last->raw), last->raw.len, &need);
    else if (a->ctx_counted && !a->came_back)
        need = a->ctx_tokens;
    if (need <= a->stats.ctx_size) return false;
    (void)ui_app_context_advice(a, need, message, advice, sizeof advice);
    ui_app_say(a, UI_ERROR, "the %s has %lld tokens, more than the context of %u: %s",
               go_on ? "conversation" : "prompt", (long long)need, a->stats.ctx_size, advice);
    return true;
}

static void answer_failed(UiApp *a, const QSFEvent *e) {
    const bool had_text = a->answer &&
                          (a->answer->raw.len > 0 || (a->answer->thought && a->settings.show_thinking));
    const bool go_on = goes_on(a);
    /* In a pipe a message is a prompt like any other, but an answer that continues cannot be shortened. */
    const bool advise = e->code == QSF_EXIT_CONTEXT && (a->interactive || go_on);
    const int64_t prompt = advise && !go_on ? ui_app_prompt_tokens(a) : 0;
    /* 2 is about the command line, not about settings that do not fit a request. */
    if (a->exit_code == 0) a->exit_code = e->code > 0 && e->code != QSF_EXIT_USAGE ? e->code : 1;
    close_answer(a, "error", e);
    if (had_text && a->hooks.answer_end) a->hooks.answer_end(a->hooks.arg);
    const char *text = e->text ? e->text : "the engine failed";
    ui_app_count_context(a);
    const bool said = advise && say_too_long(a, go_on, prompt);
    if (!said) ui_app_print(a, UI_ERROR, text);
    if (a->came_back) ui_app_say(a, UI_NOTICE, "previous answer restored");
    if (e->file && a->interactive) ui_app_say(a, UI_NOTICE, "/retry asks again when the file can be read");
}

void ui_app_say_refused(UiApp *a, const char *name, const char *value, const char *text) {
    const char *first = strchr(text, '\n'), *last = strrchr(text, '\n');
    size_t n = first ? strcspn(text, ";\n") : 0;
    UiBuf b = { 0 };
    if (name) ui_buf_printf(&b, "%s %s: ", name, value);
    if (first != last && n > 0) {
        ui_buf_add(&b, text, n);
        ui_buf_printf(&b, "; %s", last + 1);
    } else {
        ui_buf_puts(&b, text);
    }
    ui_app_print(a, UI_ERROR, ui_buf_str(&b));
    ui_buf_free(&b);
}

/* Another plan was applied or refused: the chat shows the settings in effect. */
static void plan_taken(UiApp *a, const QSFEvent *e) {
    QSFSettings now;
    a->replanning = false;
    a->engine.settings(a->engine.self, &now);
    const uint32_t used = a->stats.ctx_used;
    ui_app_refresh_stats(a);
    if (a->stats.ctx_used < used) ui_app_count_context(a); /* the cache has lost what the conversation has */
    if (e->code)
        ui_app_say_refused(a, NULL, NULL, e->text ? e->text : "the settings were refused");
    else if (e->text && *e->text)
        ui_app_print(a, UI_NOTICE, e->text);
    /* It was requested before the load, which supersedes it. */
    if (a->running == UI_REQUEST_LOAD) return;
    ui_app_take_back(a, &now, QSF_SETTING_REPLAN, e->code != 0);
    a->resuming = false;
    qsf_settings_take(&a->good_settings, &now, QSF_SETTING_REPLAN);
    ui_ctx_full_planned(a, e->code == 0);
    ui_ctx_full_refresh(a);
}

static void request_ended(UiApp *a, const QSFEvent *e) {
    UiRequest was = a->running;
    a->running = UI_REQUEST_NONE;
    if (was == UI_REQUEST_LOAD && e->type == QSF_EVENT_LOADED)
        ui_app_model_loaded(a, e);
    else if (was == UI_REQUEST_LOAD)
        ui_app_load_failed(a, e);
    else if (was == UI_REQUEST_TOKENS)
        ui_walk_known_now(a, e);
    else if (was == UI_REQUEST_SWAP)
        ui_swap_roles_end(a, e);
    else if (was == UI_REQUEST_SUMMARY)
        ui_compact_end(a, e->stop,
                       e->type == QSF_EVENT_DONE ? NULL
                       : e->text                 ? e->text
                                                 : "the engine failed");
    else if (e->type == QSF_EVENT_DONE)
        answer_done(a, e);
    else
        answer_failed(a, e);
    a->stopping = false;
    ui_app_start_load(a);
    ui_app_send_queued(a);
}

/* Said once; what each answer evicted is marked after it. */
static void evicted(UiApp *a) {
    ui_app_refresh_stats(a);
    if (a->eviction_reported || a->stats.reliefs > 0)
        return; /* the shortage of memory was reported instead */
    a->eviction_reported = true;
    ui_app_say(a, UI_NOTICE,
               "the context is full: the model forgets by the policy %s; /kv shows and changes it",
               a->settings.eviction);
}

static void take(UiApp *a, const QSFEvent *e) {
    if (e->type == QSF_EVENT_NOTICE) {
        ui_app_print(a, UI_NOTICE, e->text ? e->text : "");
        return;
    }
    if (e->type == QSF_EVENT_PLAN) {
        plan_taken(a, e);
        return;
    }
    if (a->running == UI_REQUEST_NONE || e->request != a->request) return;
    if (e->type == QSF_EVENT_EVICTED) evicted(a);
    const bool swap = a->running == UI_REQUEST_SWAP;
    if (a->running == UI_REQUEST_SUMMARY && e->type == QSF_EVENT_TEXT)
        ui_compact_text(a, e->text, e->text_len);
    else if (swap && e->type == QSF_EVENT_TEXT)
        ui_swap_roles_text(a, e->text, e->text_len);
    else if ((swap || a->running == UI_REQUEST_SUMMARY) && e->type == QSF_EVENT_REASONING)
        return; /* only the text is kept */
    else if (e->type == QSF_EVENT_TEXT || e->type == QSF_EVENT_REASONING)
        answer_text(a, e);
    else if (e->type == QSF_EVENT_DONE || e->type == QSF_EVENT_ERROR || e->type == QSF_EVENT_LOADED)
        request_ended(a, e);
}

bool ui_app_pump(UiApp *a) {
    QSFEvent e;
    bool any = false;
    while (a->engine.next(a->engine.self, &e)) {
        if (e.type != QSF_EVENT_AHEAD) ui_ahead_again(a);
        take(a, &e);
        any = true;
    }
    any = ui_download_pump(a) || any;
    ui_source_run(a); /* which may have waited for any of them */
    say_save_problem(a);
    return any;
}

static void spark_add(UiApp *a, double tps) {
    if (a->n_spark == UI_SPARK) {
        memmove(a->spark, a->spark + 1, (UI_SPARK - 1) * sizeof a->spark[0]);
        a->n_spark--;
    }
    a->spark[a->n_spark++] = tps;
}

bool ui_app_pinning(const UiApp *a) { return a->stats.pin_done < a->stats.pin_total; }

double ui_app_pin_left(const UiApp *a) {
    if (!ui_app_pinning(a) || !(a->pinning.rate > 0)) return -1;
    return (double)(a->stats.pin_total - a->stats.pin_done) / a->pinning.rate;
}

/* Speed during the last seconds: an answer at the same time uses most of the disk. */
static void watch_pinning(UiApp *a, double now) {
    UiPinning *p = &a->pinning;
    const QSFStats *s = &a->stats;
    if (!ui_app_pinning(a) || s->pin_total != p->total || s->pin_done < p->done) {
        *p = (UiPinning){ .done = s->pin_done, .total = s->pin_total, .time = now };
    } else if (now - p->time >= UI_PIN_SECONDS) {
        double rate = (double)(s->pin_done - p->done) / (now - p->time);
        p->rate = p->rate > 0 ? p->rate * 0.7 + rate * 0.3 : rate;
        p->done = s->pin_done;
        p->time = now;
    }
}

static void refresh_layers(UiApp *a) {
    uint32_t n = a->engine.layers(a->engine.self, a->layers, a->layers_cap);
    QSFLayerStats *more = n > a->layers_cap ? realloc(a->layers, n * sizeof *more) : NULL;
    if (more) {
        a->layers = more;
        a->layers_cap = n;
        n = a->engine.layers(a->engine.self, a->layers, a->layers_cap);
    }
    a->n_layers = n < a->layers_cap ? n : a->layers_cap;
}

void ui_app_refresh(UiApp *a) {
    ui_app_refresh_stats(a);
    refresh_layers(a);
}

void ui_app_tick(UiApp *a, double now) {
    ui_app_refresh(a);
    watch_pinning(a, now);
    ui_app_budget_look(a, now);
    if (a->stats.state == QSF_STATE_DECODE && now - a->spark_time >= 0.5) {
        a->spark_time = now;
        spark_add(a, a->stats.decode_tps);
    }
    if (a->answer) {
        QSFLogRecord all = ui_app_record(a->answer, a->answer_from);
        ui_session_part(&a->session, &all, now, false);
    }
    say_save_problem(a);
}

/* The events that have arrived; those that end the answer begin nothing. */
static void take_last(UiApp *a) {
    QSFEvent e;
    while (a->answer && a->engine.next(a->engine.self, &e)) {
        const bool ends = (e.type == QSF_EVENT_DONE || e.type == QSF_EVENT_ERROR) && e.request == a->request;
        if (ends)
            close_answer(a, e.type == QSF_EVENT_DONE ? qsf_stop_name(e.stop) : "error", &e);
        else
            take(a, &e);
    }
}

/* The engine says with which seed it wrote how many tokens, if it stops soon. */
static void wait_for_end(UiApp *a) {
    const double until = ui_now() + UI_END_SECONDS;
    struct pollfd fd = { .fd = a->engine.fd(a->engine.self), .events = POLLIN };
    take_last(a);
    for (double left; fd.fd >= 0 && a->answer && (left = until - ui_now()) > 0; take_last(a))
        (void)poll(&fd, 1, (int)(left * 1000) + 1);
}

void ui_app_finish(UiApp *a) {
    if (a->running == UI_REQUEST_ANSWER) {
        ui_app_stop(a);
        wait_for_end(a);
        if (a->answer) close_answer(a, "interrupted", NULL);
    }
    a->running = UI_REQUEST_NONE;
    qsf_fetch_stop(&a->download.fetch); /* what is there is kept */
    const bool any = ui_transcript_last(&a->chat) || a->unanswered != 0;
    if (a->session.failing && !a->session.log && any) (void)ui_app_save_all(a, true);
    ui_session_close(&a->session);
    say_save_problem(a);
    if ((a->session.unsaved || a->session.lost) && a->exit_code == 0) a->exit_code = 1;
}
