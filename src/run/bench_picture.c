/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The picture of --bench: where the time of a token goes, and speeds against length. */
#include <stdio.h>

#include "qsf_text.h"
#include "src/run/picture.h"
#include "src/svg/chart.h"

#define WIDTH    800.0
#define BARS_X   176.0
#define BARS_Y   112.0
#define BAR_STEP 21.0
#define CURVE_W  318.0
#define CURVE_H  150.0
#define LEFT     56.0
#define KINDS    11

/* The kinds of steps in the order of a token; those that took no time are left out. */
static unsigned kinds_of(const RunBreakdown *p, QsfChartBar *bars, char texts[KINDS][60]) {
    const QsfChartBar all[KINDS] = {
        { "attention inputs (Q, K, V)", p->matmul_ms[QSF_MATMUL_ATTN_IN], QSF_INK_BLUE, NULL },
        { "attention", p->attention_ms, QSF_INK_GREEN, NULL },
        { "attention output", p->matmul_ms[QSF_MATMUL_ATTN_OUT], QSF_INK_BLUE, NULL },
        { "FFN, up and gate", p->matmul_ms[QSF_MATMUL_FFN_IN], QSF_INK_BLUE, NULL },
        { "FFN, down", p->matmul_ms[QSF_MATMUL_FFN_OUT], QSF_INK_BLUE, NULL },
        { "head", p->matmul_ms[QSF_MATMUL_HEAD], QSF_INK_BLUE, NULL },
        { "norms and quantizing", p->prep_ms, QSF_INK_GREEN, NULL },
        { "waiting for threads", p->sync_ms, QSF_INK_GRAY, NULL },
        { "waiting for the disk", p->disk_ms, QSF_INK_ORANGE, NULL },
        { "other", p->other_ms, QSF_INK_GRAY, NULL },
        { "sampling", p->sampling_ms, QSF_INK_GRAY, NULL },
    };
    double sum = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < KINDS; i++) sum += all[i].value > 0 ? all[i].value : 0;
    for (unsigned i = 0; i < KINDS; i++) {
        char ms[QSF_NUMBER_BYTES];
        if (!(all[i].value > 0)) continue;
        qsf_svg_number(all[i].value, ms);
        const unsigned percent = (unsigned)(100 * all[i].value / sum + 0.5);
        if (percent > 0)
            snprintf(texts[n], sizeof texts[n], "%s ms, %u %%", ms, percent);
        else
            snprintf(texts[n], sizeof texts[n], "%s ms, below 1 %%", ms);
        bars[n] = all[i];
        bars[n].text = texts[n];
        n++;
    }
    return n;
}

static void note_of(const RunBenchNumbers *n, char *dst, size_t cap) {
    char budget[QSF_NUMBER_BYTES], read[QSF_NUMBER_BYTES], streams[80] = "";
    qsf_svg_number(n->budget_mb, budget);
    qsf_svg_number(n->streamed_mb, read);
    if (n->streamed_mb >= 0.05) snprintf(streams, sizeof streams, ", %s MB read per token", read);
    snprintf(dst, cap, "%s, budget %s MB%s, %d thread%s, %s", n->model, budget, streams, n->threads,
             n->threads == 1 ? "" : "s", n->level);
}

static void describe(const RunBenchNumbers *n, char *dst, size_t cap) {
    char prefill[QSF_NUMBER_BYTES], decode[QSF_NUMBER_BYTES];
    qsf_svg_number(n->prefill_tps, prefill);
    qsf_svg_number(n->decode_tps, decode);
    qsf_text_snprintf(
        dst, cap,
        "A prompt of %u tokens is read at %s tokens per second, %u tokens are decoded at %s. "
        "Three charts: the time of a token by kind of step, prefill speed against the length of the prompt, "
        "decode speed against the context.",
        n->n_prompt, prefill, n->n_gen, decode);
}

static void draw_curve(QsfStrbuf *b, const QsfChartFrame *f, const RunCurve *c, const double *tps, QsfInk ink,
                       const char *axis) {
    QsfPoint at[RUN_LENGTHS];
    for (unsigned i = 0; i < c->n; i++) at[i] = (QsfPoint){ c->length[i], tps[i] };
    if (c->n > 0) {
        qsf_chart_curve(b, f, at, c->n, ink, axis);
        return;
    }
    const QsfSvgText t = { f->x, f->y + f->h / 2, QSF_CHART_LABEL, QSF_INK_FAINT, QSF_ANCHOR_START, false };
    qsf_svg_text(b, &t, "too slow, or the context too short, to be measured");
}

void run_bench_picture(QsfStrbuf *svg, const RunBenchNumbers *n) {
    QsfChartBar bars[KINDS];
    char texts[KINDS][60], text[600], heading[120], number[QSF_NUMBER_BYTES];
    const unsigned n_bars = kinds_of(&n->part, bars, texts);
    const QsfChartFrame top = { BARS_X, BARS_Y, WIDTH - BARS_X - 24, BAR_STEP * n_bars };
    const double y = BARS_Y + top.h + 64;
    const QsfChartFrame left = { LEFT, y, CURVE_W, CURVE_H },
                        right = { WIDTH - 24 - CURVE_W, y, CURVE_W, CURVE_H };
    describe(n, text, sizeof text);
    qsf_svg_begin(svg, WIDTH, y + CURVE_H + 52, "Speed of a model", text);
    note_of(n, text, sizeof text);
    qsf_chart_title(svg, 16, WIDTH - 32, "Where the time of a token goes, and how length changes speed",
                    text);
    qsf_svg_number(n->decode_tps > 0 ? 1000 / n->decode_tps : 0, number);
    snprintf(heading, sizeof heading,
             "Time of a decoded token by kind of step: %s ms (blue: products with matrices)", number);
    const QsfChartFrame over = { 16, BARS_Y, 0, 0 };
    qsf_chart_heading(svg, &over, heading);
    qsf_chart_bars(svg, &top, bars, n_bars, BAR_STEP);
    qsf_chart_heading(svg, &left, "Prefill, tokens per second");
    draw_curve(svg, &left, &n->curve, n->curve.prefill_tps, QSF_INK_BLUE, "tokens of the prompt");
    qsf_chart_heading(svg, &right, "Decoding, tokens per second");
    draw_curve(svg, &right, &n->curve, n->curve.decode_tps, QSF_INK_ORANGE, "tokens in the context");
    qsf_svg_end(svg);
}
