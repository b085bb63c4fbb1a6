/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: the keys that take RAM and give it back. */
#include <stdio.h>

#include "ui/app_internal.h"

#define LOOK_SECONDS 5.0 /* free memory changes without an event */

static unsigned long long mb(uint64_t bytes) { return (unsigned long long)((bytes + (1u << 19)) >> 20); }

static void say_none(const UiApp *a, bool more, const QSFBudgetStep *step, char *dst, size_t cap) {
    if (!more)
        (void)snprintf(dst, cap, "RAM budget %llu MB: no smaller one works", mb(a->stats.budget));
    else if (step->now == 0)
        (void)snprintf(dst, cap, "RAM budget %llu MB: all weights are in RAM already", mb(a->stats.budget));
    else
        (void)snprintf(dst, cap, "RAM budget %llu MB: more would not help, %llu MB are available",
                       mb(a->stats.budget), mb(step->available));
}

void ui_app_budget_key(UiApp *a, bool more, char *dst, size_t cap) {
    QSFBudgetStep step;
    char value[32];
    if (!a->model_ready || a->running == UI_REQUEST_LOAD || a->replanning) {
        (void)snprintf(dst, cap,
                       a->replanning ? "the RAM budget is being changed" : "no model is loaded yet");
        return;
    }
    ui_app_refresh_stats(a);
    a->engine.budget_step(a->engine.self, &a->settings, more, &step);
    a->more_time = 0;
    if (step.budget == 0) {
        say_none(a, more, &step, dst, cap);
        return;
    }
    (void)snprintf(value, sizeof value, "%llu", mb(step.budget));
    if (!ui_app_set(a, qsf_setting_find("ram-budget"), value, true)) {
        (void)snprintf(dst, cap, "RAM budget %s MB was refused", value);
        return;
    }
    (void)snprintf(dst, cap, "RAM budget %llu -> %s MB: %llu instead of %llu MB per token from disk%s",
                   mb(a->stats.budget), value, mb(step.streamed), mb(step.now),
                   ui_app_writing(a) ? ", from the next token on" : "");
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
