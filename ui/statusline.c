/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The strip and the line: the same numbers in short form, the most important first. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/app.h"
#include "ui/format.h"
#include "ui/statuspane.h"

#define UI_SEGMENTS 8
#define UI_ETA_FROM 45 /* below that the line has no room for the word */
#define MB          1048576.0

/* Parts of one line; those that do not fit are omitted from the end. */
typedef struct Segments {
    char text[UI_SEGMENTS][64];
    bool warn[UI_SEGMENTS];
    int n;
} Segments;

__attribute__((format(printf, 3, 4))) static void seg(Segments *g, bool warn, const char *fmt, ...) {
    va_list ap;
    if (g->n == UI_SEGMENTS) return;
    va_start(ap, fmt);
    (void)qsf_text_vsnprintf(g->text[g->n], sizeof g->text[0], fmt, ap);
    va_end(ap);
    g->warn[g->n++] = warn;
}

static int cells_of(const char *text) { return (int)qsf_text_width(text, strlen(text)); }

static int width_of(const Segments *g, const char *sep, int margin) {
    int sum = margin;
    for (int i = 0; i < g->n; i++) sum += cells_of(g->text[i]) + (i > 0 ? cells_of(sep) : 0);
    return sum;
}

static void draw(const Segments *g, UiCanvas *c, int row, int width, const char *sep, int margin) {
    int col = margin;
    for (int i = 0; i < g->n; i++) {
        int need = cells_of(g->text[i]);
        int gap = i > 0 ? cells_of(sep) : 0;
        if (col + gap + need > width) return;
        if (i > 0) col = ui_canvas_puts(c, row, col, width, UI_STYLE_DIM, sep);
        col = ui_canvas_puts(c, row, col, width, g->warn[i] ? UI_STYLE_WARN : UI_STYLE_VALUE, g->text[i]);
    }
}

static unsigned percent(double a, double b) {
    double p = b > 0 ? a / b * 100 : 0;
    return p < 0 ? 0 : p > 999 ? 999 : (unsigned)(p + 0.5);
}

static void knob_value(const UiStatus *s, const char *name, char *dst, size_t cap) {
    const QSFSetting *row = qsf_setting_find(name);
    (void)snprintf(dst, cap, "-");
    if (row) ui_status_value(s, row, dst, cap);
}

/* The selected setting is marked with a star. */
static void knobs(Segments *g, const UiStatus *s) {
    static const char *const names[][2] = { { "temperature", "T" }, { "top-p", "p" }, { "top-k", "k" } };
    char text[64];
    size_t at = 0;
    const QSFSetting *chosen = qsf_setting_at(s->knob);
    for (size_t i = 0; i < 3; i++) {
        char value[24];
        bool star = chosen && strcmp(chosen->name, names[i][0]) == 0;
        knob_value(s, names[i][0], value, sizeof value);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s %s", i ? " " : "", star ? "*" : "",
                               names[i][1], value);
    }
    seg(g, false, "%s", text);
    for (size_t i = 0; chosen && i < 3; i++) {
        if (strcmp(chosen->name, names[i][0]) == 0) return;
    }
    if (chosen && chosen->step > 0) {
        char value[24];
        knob_value(s, chosen->name, value, sizeof value);
        seg(g, false, "*%s %s", chosen->name, value);
    }
}

static void eta(const QSFStats *st, char *dst, size_t cap) {
    double left = ui_status_eta(st);
    char span[24];
    dst[0] = '\0';
    if (left < 0) return;
    ui_format_span(left, span, sizeof span);
    (void)snprintf(dst, cap, " eta %s", span);
}

/* Before numbers that are not exact. */
static const char *about(const UiStatus *s) {
    return s->stats->decode_tps > 0 && !ui_status_counted(s) ? "~" : "";
}

/* A server has not said anything yet. */
static bool waits(const UiStatus *s) {
    return s->stats->state == QSF_STATE_PREFILL && s->stats->prefill_total == 0 &&
           !ui_status_has(s, UI_NEEDS_PROMPT);
}

static void doing(Segments *g, const UiStatus *s, bool with_eta) {
    const QSFStats *st = s->stats;
    char tps[24], left[40] = "";
    if (with_eta) eta(st, left, sizeof left);
    if (waits(s)) {
        seg(g, false, "%s %.0f s", ui_status_word(s), (double)st->elapsed_ns / 1e9);
    } else if (st->state == QSF_STATE_PREFILL) {
        ui_format_tps(st->prefill_tps, tps, sizeof tps);
        bool known = st->prefill_tps > 0;
        seg(g, false, "%s %s%s%u/%u%s", ui_status_word(s), known ? tps : "", known ? " t/s " : "",
            st->prefill_done, st->prefill_total, left);
    } else if (st->decode_tps <= 0) {
        seg(g, false, "%s", ui_status_word(s));
    } else {
        ui_format_tps(st->decode_tps, tps, sizeof tps);
        if (st->max_tokens > 0)
            seg(g, false, "%s %s%s t/s out %u/%u%s", ui_status_word(s), about(s), tps, st->out_tokens,
                st->max_tokens, left);
        else
            seg(g, false, "%s %s%s t/s out %u", ui_status_word(s), about(s), tps, st->out_tokens);
    }
}

/* "pinning 120/515 MB 4.2s" */
static void pinning(Segments *g, const UiStatus *s, bool with_left) {
    const QSFStats *st = s->stats;
    char left[24] = "";
    if (!ui_status_pinning(st)) return;
    if (with_left && s->pin_left >= 0) ui_format_span(s->pin_left, left, sizeof left);
    seg(g, false, "pinning %.0f/%.0f MB%s%s", (double)st->pin_done / MB, (double)st->pin_total / MB,
        left[0] ? " " : "", left);
}

/* "get 35% 1:20" */
static void download(Segments *g, const UiStatus *s) {
    char left[24] = "";
    if (!s->downloading) return;
    if (s->get_left >= 0) ui_format_span(s->get_left, left, sizeof left);
    seg(g, false, "get %u%%%s%s", percent((double)s->get_done, (double)s->get_total), left[0] ? " " : "",
        left);
}

static void ram(Segments *g, const UiStatus *s, const char *label, bool with_unit) {
    const QSFStats *st = s->stats;
    char used[24];
    uint64_t sum = ui_status_used(st);
    if (!ui_status_has(s, UI_NEEDS_MEMORY)) return;
    ui_format_mb(sum, used, sizeof used);
    unsigned share = percent((double)sum, (double)st->budget);
    if (with_unit && st->budget > 0)
        seg(g, ui_status_over(st), "%s%s/%.0f MB %u%%", label, used, (double)st->budget / MB, share);
    else if (st->budget > 0)
        seg(g, ui_status_over(st), "%s%s/%.0f", label, used, (double)st->budget / MB);
    else
        seg(g, false, "%s%s MB", label, used);
}

static void quality(Segments *g, const UiStatus *s, const char *label) {
    const float used = s->stats->quality;
    if (ui_status_reduced(s))
        seg(g, true, "%s%.2g", label, (double)(used > 0 && used < 1 ? used : s->settings->params.quality));
}

/* Answers leave out experts: "experts 2, weight 0.1", short "E2 W0.1". */
static void limits(Segments *g, const UiStatus *s, bool full) {
    int top;
    float drop;
    if (!ui_status_limits(s, &top, &drop)) return;
    if (top > 0) seg(g, true, full ? "experts %d" : "E%d", top);
    if (drop > 0) seg(g, true, full ? "weight %.3g" : "W%.3g", (double)drop);
}

static void grammar(Segments *g, const UiStatus *s) {
    char text[64];
    if (ui_status_grammar(s, text, sizeof text)) seg(g, true, "%s", text);
}

/* "lora a.gguf:0.5" */
static void files(Segments *g, const UiStatus *s) {
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        char shown[40];
        if (!ui_setting_has_files(row) || !ui_setting_is_on(s->settings, row)) continue;
        ui_status_value(s, row, shown, sizeof shown);
        seg(g, false, "%.*s %s", (int)strcspn(row->name, "-"), row->name, shown);
    }
}

/* The size is not known of every server, and what is used only after its first answer. */
static void context(Segments *g, const UiStatus *s, bool full) {
    const QSFStats *st = s->stats;
    const unsigned ctx = percent(st->ctx_used, st->ctx_size);
    const bool known = ui_status_has(s, UI_NEEDS_MEMORY) || st->ctx_used > 0;
    if (st->ctx_size > 0 && !known)
        full ? seg(g, false, "ctx -/%u", st->ctx_size) : seg(g, false, "ctx -");
    else if (st->ctx_size > 0)
        full ? seg(g, ctx >= 90, "ctx %u/%u %u%%", st->ctx_used, st->ctx_size, ctx)
             : seg(g, ctx >= 90, "ctx%u%%", ctx);
    else if (known)
        seg(g, false, "ctx %u", st->ctx_used);
}

static Segments strip_first(const UiStatus *s, bool with_eta) {
    Segments g = { 0 };
    doing(&g, s, with_eta);
    context(&g, s, true);
    ram(&g, s, "RAM ", true);
    quality(&g, s, "quality ");
    return g;
}

/* The layer, only while one is being computed; of a sparse model instead the share of experts that were in
 * memory. */
static void disk(Segments *g, const QSFStats *st) {
    const QSFExpertInfo *x = &st->expert;
    char layer[24] = "", hits[24] = "";
    if (st->streamed_bytes == 0 || (st->state < QSF_STATE_PREFILL && st->out_tokens == 0)) return;
    if (x->uses > 0 && x->resident < x->n)
        (void)snprintf(hits, sizeof hits, " %.0f%% hit", 100 * x->hits);
    else if (st->state >= QSF_STATE_PREFILL)
        (void)snprintf(layer, sizeof layer, "L%02u/%u ", ui_status_layer(st), st->n_layers);
    seg(g, st->stall >= 0.5, "%s%.2f GB/s stall %.0f%% %.0f MB/tok%s", layer, st->io_gbps, st->stall * 100,
        (st->bytes_per_token > 0 ? st->bytes_per_token : (double)st->streamed_bytes) / MB, hits);
}

void ui_status_strip(UiCanvas *c, const UiStatus *s, int row, int width) {
    const QSFStats *st = s->stats;
    const char *sep = c->unicode ? " │ " : " | ";
    Segments first = strip_first(s, true), second = { 0 };
    char rss[24], peak[48];
    /* The remaining time is an estimate and may be omitted; RAM and context must be visible. */
    if (width_of(&first, sep, 1) > width) first = strip_first(s, false);
    draw(&first, c, row, width, sep, 1);
    download(&second, s);
    pinning(&second, s, true);
    knobs(&second, s);
    limits(&second, s, true);
    grammar(&second, s);
    files(&second, s);
    disk(&second, st);
    const bool memory = ui_status_has(s, UI_NEEDS_MEMORY);
    if (st->out_tokens > 0 && ui_status_has(s, UI_NEEDS_TOKENS))
        seg(&second, false, "H %.2fb p %.2f", st->token_entropy, st->token_p);
    ui_format_mb(st->rss, rss, sizeof rss);
    ui_format_peak(st->recent_peak_rss, st->peak_rss, peak, sizeof peak);
    if (memory) seg(&second, false, "RSS %s peak %s MB", rss, peak);
    if (st->state != QSF_STATE_PREFILL && st->prefill_tps > 0) {
        char tps[24];
        ui_format_tps(st->prefill_tps, tps, sizeof tps);
        seg(&second, false, "prefill %s t/s", tps);
    }
    draw(&second, c, row + 1, width, sep, 1);
}

void ui_status_line(UiCanvas *c, const UiStatus *s, int row, int width) {
    const QSFStats *st = s->stats;
    Segments g = { 0 };
    char tps[24], temp[24], left[40] = "";
    if (waits(s)) {
        seg(&g, false, "%s %.0fs", ui_status_word(s), (double)st->elapsed_ns / 1e9);
    } else if (st->state == QSF_STATE_PREFILL) {
        seg(&g, false, "reading %u/%u", st->prefill_done, st->prefill_total);
    } else if (st->decode_tps <= 0 && st->out_tokens == 0) {
        seg(&g, false, "%s", ui_status_word(s));
    } else {
        ui_format_tps(st->decode_tps, tps, sizeof tps);
        seg(&g, false, "%s%st/s", about(s), tps);
        if (st->max_tokens > 0) seg(&g, false, "%u/%u", st->out_tokens, st->max_tokens);
    }
    if (ui_status_pinning(st) && st->state == QSF_STATE_IDLE) g.n = 0; /* ready for input */
    pinning(&g, s, false);
    download(&g, s);
    context(&g, s, false);
    ram(&g, s, "RAM", false);
    if (st->state == QSF_STATE_PREFILL) eta(st, left, sizeof left);
    if (left[0]) seg(&g, false, "%s", width < UI_ETA_FROM ? strrchr(left, ' ') + 1 : left + 1);
    quality(&g, s, "Q");
    limits(&g, s, false);
    grammar(&g, s);
    knob_value(s, "temperature", temp, sizeof temp);
    seg(&g, false, "T%s", temp);
    draw(&g, c, row, width, " ", 0);
}
