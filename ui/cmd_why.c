/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /why: how a token of the last answer was chosen, stage by stage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/walk.h"

#define NAME_CELLS  13
#define COUNT_CELLS 8
#define P_CELLS     8

/* Which token is meant: N, the one that was walked to, or the last. false: reported. The command was typed,
 * which ends the walk; its place stays until there is another answer. */
static bool choose(UiApp *a, const char *name, const char *args, const QSFTokens *t, uint32_t *i) {
    char *end;
    const unsigned long n = strtoul(args, &end, 10);
    *i = a->walk.n == t->n ? a->walk.at : t->n - 1;
    if (!*args) return true;
    *i = (uint32_t)n - 1;
    if (*args >= '0' && *args <= '9' && *end == '\0' && n >= 1 && n <= t->n) return true;
    ui_app_say(a, UI_ERROR, "/%s expects the number of a token, 1 to %u, not '%.20s'", name, t->n, args);
    return false;
}

/* The chosen token first, then the likeliest others. */
static uint32_t in_order(const QSFWhy *w, uint32_t *order) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->candidate[i] == w->id) order[n++] = i;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->candidate[i] != w->id) order[n++] = i;
    return n;
}

static void put_p(UiBuf *b, float p) {
    if (p <= 0)
        ui_buf_printf(b, "%*s", P_CELLS, "-");
    else
        ui_buf_printf(b, "%*.*f", P_CELLS, p < 0.001f ? 4 : p < 0.1f ? 2 : 1, (double)p * 100);
}

static void put_row(UiBuf *b, const char *name, uint32_t kept, const float *p, const uint32_t *order,
                    uint32_t n) {
    ui_buf_printf(b, "%-*s%*u", NAME_CELLS, name, COUNT_CELLS, kept);
    for (uint32_t i = 0; i < n; i++) put_p(b, p[order[i]]);
    ui_buf_puts(b, "\n");
}

static void put_end(UiBuf *b, const QSFWhy *w) {
    if (w->decided >= 0)
        ui_buf_printf(b, "decided by %s: one token was left", w->stage[w->decided].name);
    else if (w->random >= 0)
        ui_buf_printf(b, "decided by the draw: random number %.6f", w->random);
    else
        ui_buf_puts(b, "the most likely token was taken");
}

static void put_table(UiApp *a, const QSFWhy *w, uint32_t i, uint32_t n_tokens, UiBuf *b) {
    uint32_t order[QSF_WHY_TOKENS], n = in_order(w, order);
    const int room = (ui_text_columns(a) - NAME_CELLS - COUNT_CELLS) / P_CELLS;
    char text[400];
    if (room > 0 && n > (uint32_t)room) n = (uint32_t)room;
    ui_walk_text(a, w->id, text, sizeof text);
    ui_buf_printf(b, "token %u of %u: %s\n%-*s%*s", i + 1, n_tokens, text, NAME_CELLS, "% after", COUNT_CELLS,
                  "left");
    for (uint32_t k = 0; k < n; k++) ui_buf_printf(b, "%*c", P_CELLS, (int)('A' + k));
    ui_buf_puts(b, "\n");
    put_row(b, "model", w->n_vocab, w->p, order, n);
    for (uint32_t s = 0; s < w->n_stages; s++)
        put_row(b, w->stage[s].name, w->stage[s].kept, w->stage[s].p, order, n);
    for (uint32_t k = 0; k < n; k++) {
        ui_walk_text(a, w->candidate[order[k]], text, sizeof text);
        ui_buf_printf(b, "%c %s%s\n", (int)('A' + k), text, k == 0 ? " (chosen)" : "");
    }
    put_end(b, w);
}

bool ui_cmd_why(UiApp *a, const char *name, const char *args) {
    QSFTokens t;
    QSFWhy w;
    UiBuf b = { 0 };
    uint32_t i;
    if (!ui_walk_item(a) || !ui_walk_known(a, &t)) {
        ui_app_say(a, UI_ERROR,
                   "/%s: no tokens are known: ask something first; it explains the last answer of this run",
                   name);
        return false;
    }
    if (!choose(a, name, args, &t, &i)) return false;
    if (!a->engine.token_why(a->engine.self, i, &w)) {
        ui_app_say(a, UI_ERROR,
                   "/%s: how token %u was chosen is not known: it was given, or is not one of the last %u",
                   name, i + 1, QSF_WHY_KNOWN);
        return false;
    }
    put_table(a, &w, i, t.n, &b);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}
