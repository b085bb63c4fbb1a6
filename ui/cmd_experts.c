/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /experts: where the experts of a sparse model are, layer by layer, and what other budgets would mean. */
#include <stdio.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/format.h"
#include "ui/heat.h"

#define UI_CELL 20 /* columns of a layer; the lines fit 38, what is left of a screen of 40 */

static double part(double a, double b) { return b > 0 ? a / b : 0; }

static double percent(double a, double b) { return 100 * part(a, b); }

/* ---- in all ---- */

static void totals(const QSFStats *s, uint32_t layers, UiBuf *b) {
    const QSFExpertInfo *x = &s->expert;
    char all[32], in[32], slot[32];
    ui_format_bytes(x->bytes, all, sizeof all);
    ui_format_bytes((uint64_t)((double)x->bytes * part(x->resident, x->n)), in, sizeof in);
    ui_format_bytes(x->slot_bytes, slot, sizeof slot);
    ui_buf_printf(b, "experts  %u in %u layers, %s\n", x->n, layers, all);
    ui_buf_printf(b, "in RAM   %u (%.0f %%), %s\n", x->resident, percent(x->resident, x->n), in);
    if (x->resident == x->n && s->pin_done < s->pin_total) /* counted as soon as they have their place */
        ui_buf_printf(b, "reading  %.0f %% of it done\n", percent((double)s->pin_done, (double)s->pin_total));
    if (x->slots > 0)
        ui_buf_printf(b, "slots    %u of %s\n", x->slots, slot);
    else if (x->resident < x->n && s->pin_done >= s->pin_total)
        ui_buf_puts(b, "slots    none: each is read when it is chosen\n");
}

static void measured(const QSFStats *s, UiBuf *b) {
    const QSFExpertInfo *x = &s->expert;
    char uses[24], mb[32];
    ui_format_count((int64_t)x->uses, uses, sizeof uses);
    ui_format_bytes((uint64_t)(s->bytes_per_token > 0 ? s->bytes_per_token : 0), mb, sizeof mb);
    if (x->uses > 0)
        ui_buf_printf(b, "hits     %.0f %% of %s", 100 * x->hits, uses);
    else
        ui_buf_puts(b, "hits     -");
    if (x->slots > 0) ui_buf_printf(b, " (expected %.0f %%)", 100 * x->expected_hits);
    ui_buf_puts(b, "\n");
    if (x->uses > 0 && x->resident < x->n)
        ui_buf_printf(b, "disk     %s/token\nwaiting  %.0f %% of the last request\n", mb, s->stall * 100);
}

/* ---- layer by layer ---- */

static void cell(UiBuf *b, uint32_t i, const QSFLayerStats *l, bool ascii) {
    char hits[16] = "  -", in[32];
    if (l->expert_uses > 0)
        (void)snprintf(hits, sizeof hits, "%3.0f%%",
                       percent((double)(l->expert_uses - l->expert_misses), (double)l->expert_uses));
    (void)snprintf(in, sizeof in, "%u/%u", l->experts_in, l->experts);
    ui_buf_printf(b, "%3u %s %-7s %-4s", i + 1, ui_heat_cell(part(l->experts_in, l->experts), !ascii), in,
                  hits);
}

static uint32_t layers_with(const UiApp *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_layers; i++) n += a->layers[i].experts > 0;
    return n;
}

static void layers(const UiApp *a, UiBuf *b) {
    const int room = ui_text_columns(a) / UI_CELL, most = room < 1 ? 1 : room > 8 ? 8 : room;
    int column = 0;
    ui_buf_puts(b, "layers   experts in RAM, hits\n");
    for (uint32_t i = 0; i < a->n_layers; i++) {
        if (a->layers[i].experts == 0) continue;
        if (column > 0) ui_buf_puts(b, "  ");
        cell(b, i, &a->layers[i], a->chat.ascii);
        if (++column < most) continue;
        ui_buf_puts(b, "\n");
        column = 0;
    }
    if (column > 0) ui_buf_puts(b, "\n");
}

/* ---- other budgets ---- */

/* "1.5 GB", "2000 MB": as they are written after /budget. */
static void size(uint64_t bytes, char *dst, size_t cap) {
    const unsigned long long mb = bytes >> 20;
    if (mb >= 1024 && mb % 512 == 0)
        (void)snprintf(dst, cap, "%.4g GB", (double)mb / 1024);
    else
        (void)snprintf(dst, cap, "%llu MB", mb);
}

static void budget(const QSFExpertBudget *x, const QSFStats *s, UiBuf *b) {
    char mb[32], tps[24];
    size(x->budget, mb, sizeof mb);
    ui_format_tps(x->tps, tps, sizeof tps);
    ui_buf_printf(b, "at %s: %.0f %%", mb, 100 * x->hits);
    if (x->tps > 0) ui_buf_printf(b, ", about %s t/s", tps);
    ui_buf_puts(b, x->budget == s->budget ? " now\n" : "\n");
}

static void budgets(UiApp *a, UiBuf *b) {
    QSFExpertBudget list[QSF_EXPERT_BUDGETS];
    const QSFExpertInfo *x = &a->stats.expert;
    const uint32_t n = a->engine.expert_budgets(a->engine.self, list, QSF_EXPERT_BUDGETS);
    if (n > 0) ui_buf_puts(b, "budgets  hits, by the last choices\n");
    for (uint32_t i = 0; i < n && i < QSF_EXPERT_BUDGETS; i++) budget(&list[i], &a->stats, b);
    if (n == 0 && x->slots == 0 && x->resident < x->n)
        ui_buf_puts(b, "budgets  the other weights do not fit, either\n");
    else if (n == 0 && x->uses == 0)
        ui_buf_puts(b, "budgets  known after some tokens\n");
}

/* ---- the command ---- */

static bool forget(UiApp *a) {
    char err[300] = "";
    if (a->engine.forget_experts(a->engine.self, err, sizeof err) != 0) {
        ui_app_say(a, UI_ERROR, "/experts forget: %s", err);
        return false;
    }
    ui_app_print(a, UI_OUTPUT, "which experts were used is forgotten");
    return true;
}

static bool show(UiApp *a) {
    UiBuf b = { 0 };
    ui_app_refresh(a);
    if (a->stats.state == QSF_STATE_EMPTY || a->stats.state == QSF_STATE_LOADING)
        ui_buf_puts(&b, "no model is loaded");
    else if (a->stats.expert.n == 0)
        ui_buf_puts(&b, "the model has no experts: each token uses all of it");
    else {
        totals(&a->stats, layers_with(a), &b);
        measured(&a->stats, &b);
        layers(a, &b);
        budgets(a, &b);
        ui_buf_puts(&b, "/experts forget drops what is kept");
    }
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

bool ui_cmd_experts(UiApp *a, const char *name, const char *args) {
    if (*args == '\0') return show(a);
    if (strcmp(args, "forget") == 0) return forget(a);
    ui_app_say(a, UI_ERROR, "/%s: only \"forget\" can follow, not '%.40s'", name, args);
    return false;
}
