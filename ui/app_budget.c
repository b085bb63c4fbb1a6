/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: the keys that take RAM and give it back. */
#include <stdio.h>
#include <string.h>

#include "ui/abilities.h"
#include "ui/app_internal.h"

#define LOOK_SECONDS 5.0 /* free memory changes without an event */

static unsigned long long mb(uint64_t bytes) { return (unsigned long long)((bytes + (1u << 19)) >> 20); }

/* Small numbers have a decimal, so that two different ones look different. */
static void put_mb(uint64_t bytes, char *dst, size_t cap) {
    const double n = (double)bytes / 1048576.0;
    (void)snprintf(dst, cap, "%.*f", n > 0 && n < 9.95 ? 1 : 0, n > 0 && n < 0.1 ? 0.1 : n);
}

static void say_end(const UiApp *a, const QSFBudgetStep *step, char *dst, size_t cap) {
    char why[160] = "it cannot be changed now";
    switch (step->end) {
    default: break;
    case QSF_BUDGET_ALL:
        (void)snprintf(why, sizeof why, "all weights are in RAM, with the whole context of %u",
                       step->ctx_now);
        break;
    case QSF_BUDGET_FREE:
        (void)snprintf(why, sizeof why, "more would not help, as only %llu MB are available with it",
                       mb(step->available));
        break;
    case QSF_BUDGET_PIN:
        (void)snprintf(why, sizeof why, "more would not help, as /set pin limits the weights in RAM");
        break;
    case QSF_BUDGET_LEAST: (void)snprintf(why, sizeof why, "no smaller one works"); break;
    case QSF_BUDGET_KEEP:
        (void)snprintf(why, sizeof why, "a smaller one has no room for the conversation and an answer");
        break;
    }
    (void)snprintf(dst, cap, "RAM budget %llu MB: %s", mb(a->stats.budget), why);
}

static void say_step(const UiApp *a, const QSFBudgetStep *step, char *dst, size_t cap) {
    char now[24], then[24], weights[96], ctx[64] = "";
    put_mb(step->now, now, sizeof now);
    put_mb(step->streamed, then, sizeof then);
    if (step->streamed == 0)
        (void)snprintf(weights, sizeof weights, "all weights %s in RAM", step->now == 0 ? "stay" : "are");
    else if (step->now == 0)
        (void)snprintf(weights, sizeof weights, "%s MB per token from disk", then);
    else if (strcmp(now, then) == 0)
        (void)snprintf(weights, sizeof weights, "still %s MB per token from disk", then);
    else
        (void)snprintf(weights, sizeof weights, "%s instead of %s MB per token from disk", then, now);
    if (step->ctx != step->ctx_now)
        (void)snprintf(ctx, sizeof ctx, ", context of %u instead of %u", step->ctx, step->ctx_now);
    (void)snprintf(dst, cap, "RAM budget %llu -> %llu MB: %s%s%s", mb(a->stats.budget), mb(step->budget),
                   weights, ctx, ui_app_writing(a) ? ", from the next token on" : "");
}

void ui_app_budget_key(UiApp *a, bool more, char *dst, size_t cap) {
    QSFBudgetStep step;
    char value[32];
    if (!a->model_ready || a->running == UI_REQUEST_LOAD || a->replanning) {
        (void)snprintf(dst, cap,
                       a->replanning ? "the RAM budget is being changed" : "no model is loaded yet");
        return;
    }
    if (!ui_has(a, UI_NEEDS_MEMORY)) {
        (void)snprintf(dst, cap, "%s", ui_lacks(UI_NEEDS_MEMORY));
        return;
    }
    ui_app_refresh_stats(a);
    ui_app_note_conversation(a, &a->settings);
    a->engine.budget_step(a->engine.self, &a->settings, more, &step);
    a->more_time = 0;
    if (step.budget == 0) {
        say_end(a, &step, dst, cap);
        return;
    }
    say_step(a, &step, dst, cap);
    (void)snprintf(value, sizeof value, "%llu", mb(step.budget));
    if (!ui_app_set(a, qsf_setting_find("ram-budget"), value, true))
        (void)snprintf(dst, cap, "RAM budget %s MB was refused", value);
}

void ui_app_budget_look(UiApp *a, double now) {
    if (!a->full_screen || !a->model_ready || a->running == UI_REQUEST_LOAD || a->replanning ||
        a->stats.streamed_bytes == 0) {
        a->more = (QSFBudgetStep){ 0 };
        a->more_time = 0;
        return;
    }
    if (a->more_time > 0 && now - a->more_time < LOOK_SECONDS) return;
    a->engine.budget_step(a->engine.self, &a->settings, true, &a->more);
    a->more_time = now;
}
