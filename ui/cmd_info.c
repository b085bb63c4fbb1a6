/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Commands that only show something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/commands.h"
#include "ui/format.h"
#include "ui/help.h"

bool ui_cmd_help(UiApp *a, const char *name, const char *args) {
    UiBuf b = { 0 };
    bool ok = true;
    if (*args) {
        ok = ui_help_topic(args + (*args == '/'), &b);
        if (!ok) ui_app_say(a, UI_ERROR, "/%s: no command or setting '%.40s'", name, args);
    } else if (a->full_screen) {
        a->help_wanted++;
    } else {
        ui_help_all(&b, false, 0);
    }
    if (b.len > 0) ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return ok;
}

static bool show_described(UiApp *a, const char *what) {
    char *text = a->engine.describe(a->engine.self, what);
    if (text)
        ui_app_print(a, UI_OUTPUT, text);
    else
        ui_app_say(a, UI_ERROR, "no model is loaded: /model FILE opens one");
    bool ok = text != NULL;
    free(text);
    return ok;
}

/* The lines of the model's facts that speak of a licence. */
static bool show_license(UiApp *a) {
    char *text = a->engine.describe(a->engine.self, "model");
    UiBuf b = { 0 };
    if (!text) return show_described(a, "model");
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strcasestr(line, "licen")) ui_buf_printf(&b, "%s\n", line);
    }
    ui_app_print(a, UI_OUTPUT, b.len ? ui_buf_str(&b) : "the model file names no license");
    ui_buf_free(&b);
    free(text);
    return true;
}

bool ui_cmd_show(UiApp *a, const char *name, const char *args) {
    if (!*args || strcmp(args, "settings") == 0 || strcmp(args, "parameters") == 0)
        return ui_cmd_set(a, "set", "");
    if (strcmp(args, "model") == 0 || strcmp(args, "info") == 0) return show_described(a, "model");
    if (strcmp(args, "template") == 0 || strcmp(args, "plan") == 0) return show_described(a, args);
    if (strcmp(args, "system") == 0) return ui_cmd_system(a, "system", "");
    if (strcmp(args, "license") == 0 || strcmp(args, "licence") == 0) return show_license(a);
    ui_app_say(a, UI_ERROR, "/%s takes settings, model, system, template, license or plan, not '%.40s'", name,
               args);
    return false;
}

static void stats_speed(const QSFStats *s, UiBuf *b) {
    char decode[24], prefill[24], ttft[24];
    ui_format_tps(s->decode_tps, decode, sizeof decode);
    ui_format_tps(s->prefill_tps, prefill, sizeof prefill);
    ui_format_span(s->ttft_ms / 1000, ttft, sizeof ttft);
    ui_buf_printf(b, "decode   %s t/s, %u tokens\n", decode, s->out_tokens);
    ui_buf_printf(b, "prefill  %s t/s, %u tokens; first token after %s\n", prefill, s->prefill_total, ttft);
    ui_buf_printf(b, "context  %u of %u tokens\n", s->ctx_used, s->ctx_size);
}

static void stats_io(const QSFStats *s, UiBuf *b) {
    char read[32], token[32];
    ui_format_bytes(s->bytes_read, read, sizeof read);
    ui_format_bytes((uint64_t)(s->bytes_per_token > 0 ? s->bytes_per_token : 0), token, sizeof token);
    ui_buf_printf(b, "disk     %s read, %s a token, %.2f GB/s, waited %.0f ms (%.0f %%)\n", read, token,
                  s->io_gbps, s->wait_ms, s->stall * 100);
}

bool ui_cmd_stats(UiApp *a, const char *name, const char *args) {
    (void)name, (void)args;
    UiBuf b = { 0 };
    a->engine.stats(a->engine.self, &a->stats);
    const QSFStats *s = &a->stats;
    stats_speed(s, &b);
    if (s->streamed_bytes > 0) stats_io(s, &b);
    ui_buf_printf(&b, "engine   %s, %u thread%s, %s", s->backend[0] ? s->backend : "-", s->threads,
                  s->threads == 1 ? "" : "s",
                  s->model_desc[0] ? s->model_desc : "no model");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

bool ui_cmd_mem(UiApp *a, const char *name, const char *args) {
    (void)name, (void)args;
    UiBuf b = { 0 };
    char used[32], planned[32], budget[32];
    uint64_t sum = 0;
    a->engine.stats(a->engine.self, &a->stats);
    const QSFStats *s = &a->stats;
    for (uint32_t i = 0; i < s->n_mem && i < QSF_STATS_MEM; i++) {
        sum += s->mem[i].used;
        if (s->mem[i].used == 0 && s->mem[i].planned == 0) continue;
        ui_format_bytes(s->mem[i].used, used, sizeof used);
        ui_format_bytes(s->mem[i].planned, planned, sizeof planned);
        ui_buf_printf(&b, "%-20s %10s of %10s\n", s->mem[i].name, used, planned);
    }
    ui_format_bytes(sum, used, sizeof used);
    ui_format_bytes(s->budget, budget, sizeof budget);
    ui_buf_printf(&b, "%-20s %10s of %10s\n", "sum, budget", used, budget);
    ui_format_bytes(s->rss, used, sizeof used);
    ui_format_bytes(s->peak_rss, planned, sizeof planned);
    ui_buf_printf(&b, "%-20s %10s, peak %s", "kernel: RSS", used, planned);
    if (s->streamed_bytes > 0) {
        ui_format_bytes(s->streamed_bytes, used, sizeof used);
        ui_buf_printf(&b, "\nread per token       %10s of weights that do not fit", used);
    }
    if (s->plan_note[0]) ui_buf_printf(&b, "\n%s", s->plan_note);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}
