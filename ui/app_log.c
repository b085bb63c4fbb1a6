/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: what --log-file has of it. */
#include "qsf_log.h"
#include "ui/abilities.h"
#include "ui/app_internal.h"

static double seconds(const UiApp *a) { return a->request_time > 0 ? ui_now() - a->request_time : 0; }

void ui_log_load(UiApp *a, const char *file) {
    a->request_time = ui_now();
    qsf_log("load", "%s", file);
}

void ui_log_loaded(const UiApp *a) {
    const QSFStats *s = &a->stats;
    if (!ui_has(a, UI_NEEDS_MEMORY))
        qsf_log("loaded", "%s in %.2f s: %s", s->model_path, seconds(a), s->model_desc);
    else
        qsf_log("loaded", "%s in %.2f s: %s, context %u tokens, budget %.0f MB, %.0f MB pinned",
                s->model_path, seconds(a), s->model_desc, s->ctx_size, (double)s->budget / (1 << 20),
                (double)s->pinned_bytes / (1 << 20));
}

void ui_log_request(UiApp *a, const char *what) {
    const UiItem *user = ui_transcript_last_of(&a->chat, UI_USER);
    a->request_time = ui_now();
    qsf_log("request", "%s, message %u", what, user ? user->number : 0);
}

void ui_log_answer(const UiApp *a, const QSFEvent *e) {
    const QSFStats *s = &a->stats;
    qsf_log("answer",
            "prompt %u tokens (%u reused) at %.2f tok/s; answer %u tokens at %.2f tok/s, "
            "first one after %.0f ms; "
            "%.2f s; stop %s; seed %llu",
            e->prompt_tokens, e->reused_tokens, s->prefill_tps, e->tokens, s->decode_tps, s->ttft_ms,
            seconds(a), qsf_stop_name(e->stop), (unsigned long long)e->seed);
}

void ui_log_said(UiKind kind, const char *text) {
    if (kind == UI_ERROR || kind == UI_NOTICE) qsf_log(kind == UI_ERROR ? "error" : "notice", "%s", text);
}
