/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The wide pane: a table of meters, each drawing one or more rows. */
#include "ui/statuspane.h"

#include <stdio.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/app.h"
#include "ui/format.h"
#include "ui/heat.h"

#define UI_SMALL_BYTES 52429 /* shown as 0.0 MB */

/* Settings changed by the live keys, the seed next to them, and others while they are on. */
static bool is_shown(const UiStatus *s, const QSFSetting *row) {
    if (row->flags & QSF_SETTING_MORE) return ui_setting_is_on(s->settings, row);
    return (row->flags & QSF_SETTING_LIVE) && (row->step > 0 || strcmp(row->name, "seed") == 0);
}

static double part(double a, double b) { return b > 0 ? a / b : 0; }

/* ---- meters ---- */

typedef struct Pane {
    UiCanvas *c;
    const UiStatus *s;
    int row, end_row, col, end;
} Pane;

/* The next free row, or -1. */
static int next(Pane *p) { return p->row < p->end_row ? p->row++ : -1; }

static void rule(Pane *p) {
    int row = next(p);
    if (row < 0) return;
    ui_canvas_puts(p->c, row, p->col - 2, p->end, UI_STYLE_DIM, p->c->unicode ? "├" : "|");
    ui_canvas_hline(p->c, row, p->col - 1, p->end, UI_STYLE_DIM);
}

/* "NAME    value" with the value at a fixed column; returns the next column. */
static int field(Pane *p, int row, const char *name, const char *value) {
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, name);
    return ui_canvas_puts(p->c, row, p->col + 8, p->end, UI_STYLE_VALUE, value);
}

static void right(Pane *p, int row, UiStyle style, const char *text) {
    int n = (int)strlen(text);
    ui_canvas_puts(p->c, row, p->end - n, p->end, style, text);
}

/* A bar between the text on the left and a percentage. */
static void part_row(Pane *p, int row, int from, double share, bool warn) {
    char pct[16];
    (void)snprintf(pct, sizeof pct, "%3.0f%%", share * 100 < 999 ? share * 100 : 999);
    right(p, row, warn ? UI_STYLE_WARN : UI_STYLE_VALUE, pct);
    if (p->end - 5 - from >= 4)
        ui_canvas_bar(p->c, row, from, p->end - 5 - from, warn ? UI_STYLE_WARN : UI_STYLE_GOOD, share);
}

static void draw_spark(Pane *p, int row, int col) {
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char ascii[] = "_.:-=+*#";
    double top = 0;
    int n = (int)p->s->n_spark, room = p->end - col;
    for (int i = 0; i < n; i++) top = p->s->spark[i] > top ? p->s->spark[i] : top;
    for (int i = n > room ? n - room : 0; i < n; i++, col++) {
        int level = (int)(part(p->s->spark[i], top) * 7.999);
        level = level < 0 ? 0 : level > 7 ? 7 : level;
        char one[2] = { ascii[level], '\0' };
        ui_canvas_puts(p->c, row, col, p->end, UI_STYLE_GOOD, p->c->unicode ? blocks[level] : one);
    }
}

static void meter_state(Pane *p) {
    char elapsed[32];
    int row = next(p);
    ui_format_elapsed((double)p->s->stats->elapsed_ns * 1e-9, elapsed, sizeof elapsed);
    field(p, row, "STATE", ui_status_word(p->s));
    if (p->s->stats->state != QSF_STATE_IDLE && p->s->stats->state != QSF_STATE_EMPTY)
        right(p, row, UI_STYLE_DIM, elapsed);
}

static void meter_download(Pane *p) {
    const UiStatus *s = p->s;
    char left[24] = "", text[64];
    if (!s->downloading) return;
    if (s->get_left >= 0) ui_format_span(s->get_left, left, sizeof left);
    const bool big = s->get_total >= 1000000000u;
    const double unit = big ? 1e9 : 1e6;
    (void)snprintf(text, sizeof text, big ? "%.2f/%.2f GB" : "%.1f/%.1f MB", (double)s->get_done / unit,
                   (double)s->get_total / unit);
    int row = next(p);
    field(p, row, "get", text);
    right(p, row, UI_STYLE_DIM, left);
    row = next(p);
    if (row >= 0) part_row(p, row, p->col + 8, part((double)s->get_done, (double)s->get_total), false);
}

static void meter_pinning(Pane *p) {
    const QSFStats *st = p->s->stats;
    if (!ui_status_pinning(st)) return;
    char done[32], total[32], left[24] = "", text[96];
    ui_format_mb(st->pin_done, done, sizeof done);
    ui_format_mb(st->pin_total, total, sizeof total);
    if (p->s->pin_left >= 0) ui_format_span(p->s->pin_left, left, sizeof left);
    int row = next(p);
    (void)snprintf(text, sizeof text, "%s/%s MB", done, total);
    field(p, row, "pinning", text);
    right(p, row, UI_STYLE_DIM, left);
    row = next(p);
    if (row >= 0) part_row(p, row, p->col + 8, part((double)st->pin_done, (double)st->pin_total), false);
}

static void meter_decode(Pane *p) {
    char tps[24], text[48];
    ui_format_tps(p->s->stats->decode_tps, tps, sizeof tps);
    const bool about = p->s->stats->decode_tps > 0 && !ui_status_counted(p->s);
    (void)snprintf(text, sizeof text, "%s%5s t/s", about ? "~" : "", tps);
    int row = next(p);
    draw_spark(p, row, field(p, row, "decode", text) + 2);
}

/* Only if passes have had more than one token. */
static void meter_passes(Pane *p) {
    const QSFSpeculation *s = &p->s->stats->speculation;
    char text[48];
    if (s->tokens <= s->passes) return;
    (void)qsf_text_snprintf(text, sizeof text, "%5.2f tok", (double)s->tokens / (double)s->passes);
    field(p, next(p), "a pass", text);
}

static void meter_prefill(Pane *p) {
    const QSFStats *st = p->s->stats;
    char tps[24], text[96], more[48] = "", span[24];
    if (!ui_status_has(p->s, UI_NEEDS_PROMPT) && st->prefill_tps <= 0 && st->prefill_total == 0) return;
    ui_format_tps(st->prefill_tps, tps, sizeof tps);
    if (st->state == QSF_STATE_PREFILL && ui_status_eta(st) >= 0) {
        ui_format_span(ui_status_eta(st), span, sizeof span);
        (void)snprintf(more, sizeof more, "  eta %s", span);
    } else if (st->prefill_tps > 0 && st->prefill_total > 0) {
        ui_format_span(part(st->prefill_total, st->prefill_tps), span, sizeof span);
        (void)snprintf(more, sizeof more, "  %u in %s", st->prefill_total, span);
    }
    (void)snprintf(text, sizeof text, "%5s t/s%s", tps, more);
    field(p, next(p), "prefill", text);
    if (st->state == QSF_STATE_PREFILL) {
        int row = next(p);
        int at = ui_canvas_printf(p->c, row, p->col + 1, p->end, UI_STYLE_VALUE, "%u/%u ", st->prefill_done,
                                  st->prefill_total);
        part_row(p, row, at, part(st->prefill_done, st->prefill_total), false);
    }
}

static void meter_out(Pane *p) {
    const QSFStats *st = p->s->stats;
    char text[64], eta[24];
    const char *about = st->out_tokens > 0 && !ui_status_counted(p->s) ? "~" : "";
    if (st->max_tokens > 0)
        (void)snprintf(text, sizeof text, "%s%5u/%u", about, st->out_tokens, st->max_tokens);
    else
        (void)snprintf(text, sizeof text, "%s%5u tok", about, st->out_tokens);
    int row = next(p);
    field(p, row, "out", text);
    if (st->state == QSF_STATE_DECODE && ui_status_eta(st) >= 0) {
        ui_format_span(ui_status_eta(st), eta, sizeof eta);
        (void)snprintf(text, sizeof text, "eta %s", eta);
        right(p, row, UI_STYLE_DIM, text);
    }
}

/* Only while something is left out: what, of the running or last answer. */
static void meter_quality(Pane *p) {
    const QSFStats *st = p->s->stats;
    char text[64];
    if (!ui_status_reduced(p->s)) return;
    int row = next(p);
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_WARN, "quality");
    if (st->quality > 0 && st->quality < 1)
        (void)qsf_text_snprintf(text, sizeof text, "%5.2f  %s%u/%u layers%s", (double)st->quality,
                                st->quality_exit > 0 ? "~" : "", st->quality_layers, st->n_layers,
                                st->quality_head ? ", head" : "");
    else
        (void)snprintf(text, sizeof text, "%5.2f", (double)p->s->settings->params.quality);
    ui_canvas_puts(p->c, row, p->col + 8, p->end, UI_STYLE_WARN, text);
}

/* Only while answers leave out experts. */
static void meter_limits(Pane *p) {
    const QSFStats *st = p->s->stats;
    char text[64] = "";
    int top;
    float drop;
    if (!ui_status_limits(p->s, &top, &drop)) return;
    const int row = next(p);
    size_t len = 0;
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_WARN, "experts");
    if (top > 0 && st->experts > 0)
        len = (size_t)snprintf(text, sizeof text, "%5d of %u", top, st->experts);
    else if (top > 0)
        len = (size_t)snprintf(text, sizeof text, "%5d", top);
    if (drop > 0)
        (void)snprintf(text + len, sizeof text - len, "%sweight %.3g", len ? ", " : " ", (double)drop);
    ui_canvas_puts(p->c, row, p->col + 8, p->end, UI_STYLE_WARN, text);
}

/* Only while answers have to match something. */
static void meter_grammar(Pane *p) {
    char text[64];
    if (ui_status_grammar(p->s, text, sizeof text))
        ui_canvas_puts(p->c, next(p), p->col, p->end, UI_STYLE_WARN, text);
}

static void meter_context(Pane *p) {
    const QSFStats *st = p->s->stats;
    rule(p);
    int row = next(p);
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, "CTX");
    if (st->ctx_size == 0 && !ui_status_has(p->s, UI_NEEDS_MEMORY)) { /* the server does not say its size */
        if (st->ctx_used > 0)
            ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "%u tok", st->ctx_used);
        else
            ui_canvas_puts(p->c, row, p->col + 4, p->end, UI_STYLE_DIM, "not known yet");
        return;
    }
    if (st->ctx_used == 0 && !ui_status_has(p->s, UI_NEEDS_MEMORY)) { /* or how much of it is used */
        ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "-/%u", st->ctx_size);
        return;
    }
    int at = ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "%u/%u ", st->ctx_used,
                              st->ctx_size);
    double used = part(st->ctx_used, st->ctx_size);
    part_row(p, row, at, used, used >= 0.9);
}

static void meter_ram(Pane *p) {
    const QSFStats *st = p->s->stats;
    char used[24], budget[24];
    uint64_t sum = ui_status_used(st);
    if (!ui_status_has(p->s, UI_NEEDS_MEMORY)) return;
    ui_format_mb(sum, used, sizeof used);
    rule(p);
    int row = next(p);
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, "RAM");
    if (st->budget == 0) {
        ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "%s MB", used);
        return;
    }
    (void)snprintf(budget, sizeof budget, "%.0f", (double)st->budget / 1048576.0);
    int at = ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "%s/%s MB ", used, budget);
    part_row(p, row, at, part((double)sum, (double)st->budget), ui_status_over(st));
}

/* Are there experts, not all of which are in memory? */
static bool some_experts(const UiStatus *s) {
    return s->stats->expert.n > 0 && s->stats->expert.resident < s->stats->expert.n;
}

static int sampling_rows(const UiStatus *s) {
    int knobs = 0, wide = 0;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (is_shown(s, row)) *(ui_setting_has_files(row) ? &wide : &knobs) += 1;
    }
    return 2 + (knobs + 1) / 2 + wide;
}

/* Rows that the meters below need: RSS, disk, sampling and the last token. */
static int rows_below(const UiStatus *s) {
    int io = s->stats->streamed_bytes == 0
                 ? 0
                 : 3 + some_experts(s) + ui_status_offers(s) + (s->n_layers > 0 ? UI_HEAT_ROWS : 0);
    return 1 + io + sampling_rows(s) + (s->stats->out_tokens > 0);
}

static void ram_row(Pane *p, const char *name, uint64_t bytes) {
    char used[24];
    ui_format_mb(bytes, used, sizeof used);
    ui_canvas_printf(p->c, next(p), p->col + 1, p->end, UI_STYLE_DIM, "%-20.20s %7s", name, used);
}

/* The largest owners, as many as fit, in the order of the engine; the others combined. */
static void meter_ram_rows(Pane *p) {
    const QSFStats *st = p->s->stats;
    if (!ui_status_has(p->s, UI_NEEDS_MEMORY)) return;
    int room = p->end_row - p->row - rows_below(p->s);
    uint64_t others = 0;
    uint32_t n = st->n_mem < QSF_STATS_MEM ? st->n_mem : QSF_STATS_MEM;
    for (uint32_t i = 0; i < n; i++) {
        int larger = 0, seen = 0;
        for (uint32_t k = 0; k < n; k++) {
            seen += st->mem[k].used >= UI_SMALL_BYTES;
            larger += st->mem[k].used > st->mem[i].used || (st->mem[k].used == st->mem[i].used && k < i);
        }
        int most = seen + 1 > room ? room - 1 : seen;
        if (st->mem[i].used < UI_SMALL_BYTES || larger >= most)
            others += st->mem[i].used;
        else
            ram_row(p, st->mem[i].name, st->mem[i].used);
    }
    if (others > 0 && room > 0) ram_row(p, "others", others);
}

static void meter_rss(Pane *p) {
    char rss[24], peak[48];
    if (!ui_status_has(p->s, UI_NEEDS_MEMORY)) return;
    ui_format_mb(p->s->stats->rss, rss, sizeof rss);
    ui_format_peak(p->s->stats->recent_peak_rss, p->s->stats->peak_rss, peak, sizeof peak);
    int row = next(p);
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, "RSS");
    ui_canvas_printf(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "%s  peak %s MB", rss, peak);
}

/* "341 MB/tok", as measured or, before the first token, as planned; with the name of the back end if it
 * fits. */
static void token_bytes(const QSFStats *st, char *dst, size_t cap) {
    double bytes = st->bytes_per_token > 0 ? st->bytes_per_token : (double)st->streamed_bytes;
    double mb = bytes / 1048576.0;
    (void)snprintf(dst, cap, "%.*f MB/tok", mb < 9.95 ? 1 : 0, mb);
}

/* What the key would bring. */
static void offer(Pane *p) {
    const QSFBudgetStep *more = p->s->more;
    if (!ui_status_offers(p->s)) return;
    const int row = next(p), at = ui_canvas_puts(p->c, row, p->col + 1, p->end, UI_STYLE_KEY, "F4");
    const unsigned long long mb = (unsigned long long)(more->budget >> 20);
    if (more->streamed == 0)
        ui_canvas_printf(p->c, row, at + 1, p->end, UI_STYLE_NOTICE, "%llu MB: nothing streams", mb);
    else
        ui_canvas_printf(p->c, row, at + 1, p->end, UI_STYLE_NOTICE, "%llu MB: %.0f MB/tok", mb,
                         (double)more->streamed / 1048576.0);
}

/* "experts 71% hit, 1210/3456 MB", as measured or, before the first token, as planned. */
static void experts(Pane *p) {
    const QSFExpertInfo *x = &p->s->stats->expert;
    char in[24], all[24];
    if (!some_experts(p->s)) return;
    ui_format_mb((uint64_t)((double)x->bytes * x->resident / x->n), in, sizeof in);
    ui_format_mb(x->bytes, all, sizeof all);
    ui_canvas_printf(p->c, next(p), p->col + 1, p->end, UI_STYLE_VALUE, "experts %.0f%% hit, %s/%s MB",
                     100 * (x->uses > 0 ? x->hits : x->expected_hits), in, all);
}

static void heat(Pane *p) {
    const QSFStats *st = p->s->stats;
    UiHeat h = { p->s->layers, p->s->n_layers, st->layer, st->state >= QSF_STATE_PREFILL,
                 some_experts(p->s) };
    if (h.n == 0 || p->end_row - p->row < UI_HEAT_ROWS + sampling_rows(p->s)) return;
    ui_heat_draw(p->c, p->row, p->col + 1, p->end, &h);
    p->row += UI_HEAT_ROWS;
}

static void meter_io(Pane *p) {
    const QSFStats *st = p->s->stats;
    char text[48];
    if (st->streamed_bytes == 0) return;
    rule(p);
    int row = next(p);
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, "IO");
    if (st->state >= QSF_STATE_PREFILL || st->out_tokens > 0)
        ui_canvas_printf(p->c, row, p->col + 4, p->end, st->stall >= 0.5 ? UI_STYLE_HOT : UI_STYLE_VALUE,
                         "%.2f GB/s  stall %.0f%%", st->io_gbps, st->stall * 100);
    else
        ui_canvas_puts(p->c, row, p->col + 4, p->end, UI_STYLE_VALUE, "- GB/s");
    if (st->n_layers > 0 && st->state >= QSF_STATE_PREFILL) {
        (void)snprintf(text, sizeof text, "L%02u/%u", ui_status_layer(st), st->n_layers);
        right(p, row, UI_STYLE_DIM, text);
    }
    row = next(p);
    token_bytes(st, text, sizeof text);
    int at = ui_canvas_puts(p->c, row, p->col + 1, p->end, UI_STYLE_VALUE, text);
    ui_canvas_puts(p->c, row, at + 2, p->end, UI_STYLE_DIM, st->io_name);
    experts(p);
    offer(p);
    heat(p);
}

static void knob_cell(Pane *p, int row, int col, size_t i) {
    const QSFSetting *set = qsf_setting_at(i);
    char shown[24];
    bool chosen = p->s->knob == i && set->step > 0;
    ui_status_value(p->s, set, shown, sizeof shown);
    /* A long name is shortened to its first word so that the value is always visible. */
    size_t len = strlen(set->name);
    if (len + strlen(shown) > 14) len = strcspn(set->name, "-");
    ui_canvas_printf(p->c, row, col, p->end, chosen ? UI_STYLE_KEY : UI_STYLE_VALUE, "%s%.*s %s",
                     chosen ? "*" : " ", (int)len, set->name, shown);
}

/* Names of files need their own row. */
static void wide_cell(Pane *p, const QSFSetting *set) {
    char shown[64];
    ui_status_value(p->s, set, shown, sizeof shown);
    const int row = next(p);
    const int at = ui_canvas_printf(p->c, row, p->col, p->end, UI_STYLE_VALUE, " %.*s ",
                                    (int)strcspn(set->name, "-"), set->name);
    ui_canvas_puts(p->c, row, at, p->end, UI_STYLE_VALUE, shown);
}

static void meter_sampling(Pane *p) {
    rule(p);
    int row = next(p), k = 0;
    ui_canvas_puts(p->c, row, p->col, p->end, UI_STYLE_HEAD, "SAMPLE");
    right(p, row, UI_STYLE_DIM, "F5/F6 * F7/F8 -+");
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *set = qsf_setting_at(i);
        if (!is_shown(p->s, set) || ui_setting_has_files(set)) continue;
        if (k % 2 == 0) row = next(p);
        knob_cell(p, row, p->col + (k % 2) * 16, i);
        k++;
    }
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *set = qsf_setting_at(i);
        if (is_shown(p->s, set) && ui_setting_has_files(set)) wide_cell(p, set);
    }
}

static void meter_token(Pane *p) {
    const QSFStats *st = p->s->stats;
    if (st->out_tokens == 0 || !ui_status_has(p->s, UI_NEEDS_TOKENS)) return;
    ui_canvas_printf(p->c, next(p), p->col, p->end, UI_STYLE_VALUE, " entropy %.2f b  p(token) %.2f",
                     st->token_entropy, st->token_p);
}

void ui_status_pane(UiCanvas *c, const UiStatus *s, int row, int end_row, int col, int width) {
    static void (*const meters[])(Pane *) = { meter_state,    meter_download, meter_pinning, meter_decode,
                                              meter_passes,   meter_prefill,  meter_out,     meter_quality,
                                              meter_limits,   meter_grammar,  meter_context, meter_ram,
                                              meter_ram_rows, meter_rss,      meter_io,      meter_sampling,
                                              meter_token };
    Pane p = { .c = c, .s = s, .row = row, .end_row = end_row, .col = col + 2, .end = col + width };
    ui_canvas_vline(c, row, end_row, col, UI_STYLE_DIM);
    for (size_t i = 0; i < sizeof meters / sizeof *meters && p.row < end_row; i++) meters[i](&p);
}
