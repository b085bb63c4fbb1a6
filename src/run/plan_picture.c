/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The picture of --plan: three charts over the same budgets. */
#include <stdio.h>

#include "src/run/picture.h"
#include "src/svg/chart.h"

#define WIDTH  800.0
#define LEFT   56.0
#define PLOT_W 588.0 /* the names of the owners are to the right */

static const struct {
    const char *name;
    QsfInk ink;
} owners[RUN_OWNER_N] = {
    [RUN_OWNER_WEIGHTS] = { "weights", QSF_INK_BLUE },
    [RUN_OWNER_SLOTS] = { "streaming", QSF_INK_ORANGE },
    [RUN_OWNER_KV] = { "KV cache", QSF_INK_GREEN },
    [RUN_OWNER_COMPUTING] = { "activations", QSF_INK_PURPLE },
    [RUN_OWNER_TEXT] = { "tokenizer, text", QSF_INK_YELLOW },
    [RUN_OWNER_PROGRAM] = { "program", QSF_INK_GRAY },
};

static const QsfChartFrame speed = { LEFT, 110, PLOT_W, 112 }, reads = { LEFT, 274, PLOT_W, 84 },
                           memory = { LEFT, 410, PLOT_W, 190 };
#define AXIS_Y 618.0 /* base line of the budgets */
#define HEIGHT 682.0

static void note_of(const RunSweep *s, char *dst, size_t cap) {
    char weights[QSF_NUMBER_BYTES], disk[QSF_NUMBER_BYTES], tail[80] = "";
    qsf_svg_number(s->weights_mb, weights);
    qsf_svg_number(s->disk_gbps, disk);
    if (s->disk_gbps > 0) snprintf(tail, sizeof tail, ", from a disk that reads %s GB/s", disk);
    snprintf(dst, cap, "%s, %s MB of weights%s, %d thread%s", s->model, weights, tail, s->threads,
             s->threads == 1 ? "" : "s");
}

static void describe(const RunSweep *s, char *dst, size_t cap) {
    char budget[QSF_NUMBER_BYTES], tps[QSF_NUMBER_BYTES], read[QSF_NUMBER_BYTES], said[100] = "";
    qsf_svg_number(s->budget_mb[s->chosen], budget);
    qsf_svg_number(s->tps[s->chosen], tps);
    qsf_svg_number(s->read_mb[s->chosen], read);
    if (s->predicted) snprintf(said, sizeof said, "%s tokens per second, ", tps);
    snprintf(
        dst, cap,
        "Three charts over %u RAM budgets: predicted tokens per second, megabytes read from disk per token, "
        "and memory by owner. The chosen budget is %s MB: %s%s MB read per token.",
        s->n, budget, said, read);
}

static void draw_band(QsfStrbuf *b, const RunSweep *s) {
    const double w = PLOT_W / s->n, x = qsf_chart_column(&speed, s->chosen, s->n);
    qsf_svg_rect(b, QSF_INK_BAND, x - w / 2, 70, w, HEIGHT - 82);
}

static void draw_speeds(QsfStrbuf *b, const RunSweep *s) {
    qsf_chart_heading(b, &speed, "Tokens per second, predicted");
    if (s->predicted) {
        qsf_chart_columns(b, &speed, s->tps, s->n, s->chosen, QSF_INK_BLUE);
        return;
    }
    const QsfSvgText t = { LEFT,          speed.y + speed.h / 2, QSF_CHART_LABEL,
                           QSF_INK_FAINT, QSF_ANCHOR_START,      false };
    qsf_svg_text(b, &t, "no prediction: the speed of the disk or of the matrices could not be measured");
}

/* The names beside the stacks have the numbers of the chosen budget. */
static void draw_owners(QsfStrbuf *b, const RunSweep *s) {
    QsfChartPart parts[RUN_OWNER_N];
    char budget[QSF_NUMBER_BYTES], text[60];
    const QsfSvgText t = { LEFT + PLOT_W + 6, memory.y - 20,    QSF_CHART_SMALL,
                           QSF_INK_BLUE,      QSF_ANCHOR_START, true };
    qsf_chart_heading(b, &memory, "Memory by owner, MB; the line is the budget");
    for (unsigned k = 0; k < RUN_OWNER_N; k++)
        parts[k] = (QsfChartPart){ owners[k].name, owners[k].ink, s->owner_mb[k] };
    qsf_chart_stacks(b, &memory, parts, RUN_OWNER_N, s->n, s->chosen, s->budget_mb);
    qsf_svg_number(s->budget_mb[s->chosen], budget);
    snprintf(text, sizeof text, "with %s MB", budget);
    qsf_svg_text(b, &t, text);
}

/* Budgets, and below them the contexts that their plans have. */
static void draw_axis(QsfStrbuf *b, const RunSweep *s) {
    char label[QSF_NUMBER_BYTES];
    for (unsigned i = 0; i < s->n; i++) {
        const bool chosen = i == s->chosen;
        const double x = qsf_chart_column(&memory, i, s->n);
        const QsfSvgText budget = { x, AXIS_Y, QSF_CHART_LABEL, QSF_INK_TEXT, QSF_ANCHOR_MIDDLE, chosen };
        const QsfSvgText ctx = { x, AXIS_Y + 20, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_MIDDLE, false };
        const QsfSvgText mark = { x, AXIS_Y + 40, QSF_CHART_SMALL, QSF_INK_BLUE, QSF_ANCHOR_MIDDLE, true };
        qsf_svg_number(s->budget_mb[i], label);
        qsf_svg_text(b, &budget, label);
        qsf_svg_number(s->context[i], label);
        qsf_svg_text(b, &ctx, label);
        if (chosen) qsf_svg_text(b, &mark, "chosen");
    }
    const QsfSvgText right = { LEFT + PLOT_W + 6, AXIS_Y,           QSF_CHART_LABEL,
                               QSF_INK_TEXT,      QSF_ANCHOR_START, false };
    const QsfSvgText below = {
        right.x, AXIS_Y + 20, QSF_CHART_SMALL, QSF_INK_FAINT, QSF_ANCHOR_START, false
    };
    qsf_svg_text(b, &right, "MB of RAM budget");
    qsf_svg_text(b, &below, "tokens of context");
}

void run_plan_picture(QsfStrbuf *svg, const RunSweep *s) {
    char text[600];
    describe(s, text, sizeof text);
    qsf_svg_begin(svg, WIDTH, HEIGHT, "What a RAM budget buys", text);
    note_of(s, text, sizeof text);
    draw_band(svg, s);
    qsf_chart_title(svg, 16, WIDTH - 32, "What a RAM budget buys", text);
    draw_speeds(svg, s);
    qsf_chart_heading(svg, &reads, "Read from disk per token, MB");
    qsf_chart_columns(svg, &reads, s->read_mb, s->n, s->chosen, QSF_INK_ORANGE);
    draw_owners(svg, s);
    draw_axis(svg, s);
    qsf_svg_end(svg);
}
