/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layers of a model in one row of cells. */
#include "ui/heat.h"

#include <string.h>

#define UI_WAITED 0.1 /* share of a layer's time above which it counts as stalled */

/* Several layers combined into one. */
typedef struct Group {
    double weights, pinned, wait, compute;
    bool now; /* one of them is being computed */
} Group;

static Group group_of(const UiHeat *h, uint32_t from, uint32_t to) {
    Group g = { 0 };
    for (uint32_t i = from; i < to && i < h->n; i++) {
        const QSFLayerStats *l = &h->layers[i];
        const double weights = (double)l->weight_bytes;
        g.weights += weights;
        g.pinned += h->experts && l->experts > 0 ? weights * l->experts_in / l->experts
                                                 : (double)l->pinned_bytes;
        g.wait += (double)l->wait_ns;
        g.compute += (double)l->compute_ns;
    }
    g.now = h->running && h->layer >= from && h->layer < to;
    return g;
}

static bool waited(const Group *g) { return g->wait > 0 && g->wait >= UI_WAITED * (g->wait + g->compute); }

const char *ui_heat_cell(double share, bool unicode) {
    static const char *const blocks[] = { "·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const ascii[] = { ".", "-", "-", "-", "=", "=", "+", "+", "#" };
    int level = share <= 0 ? 0 : share >= 1 ? 8 : 1 + (int)(share * 6.999);
    return (unicode ? blocks : ascii)[level];
}

/* The legend of the row and the marks below it, where there is space after them. */
static void legend(UiCanvas *c, int row, int col, int end, const char *pinned, bool any_waited) {
    static const char waits[] = "! = waited";
    if (col + (int)strlen(pinned) <= end) ui_canvas_puts(c, row, col, end, UI_STYLE_DIM, pinned);
    if (any_waited && col + (int)strlen(waits) <= end)
        ui_canvas_puts(c, row + 1, col, end, UI_STYLE_DIM, waits);
}

void ui_heat_draw(UiCanvas *c, int row, int col, int end, const UiHeat *h) {
    uint32_t room = end > col ? (uint32_t)(end - col) : 0;
    if (h->n == 0 || room == 0) return;
    uint32_t each = (h->n + room - 1) / room;
    bool any = false;
    for (uint32_t from = 0; from < h->n; from += each, col++) {
        Group g = group_of(h, from, from + each);
        bool slow = waited(&g);
        const double share = g.weights > 0 ? g.pinned / g.weights : 0;
        ui_canvas_puts(c, row, col, end, slow ? UI_STYLE_HOT : UI_STYLE_GOOD,
                       ui_heat_cell(share, c->unicode));
        if (g.now)
            ui_canvas_puts(c, row + 1, col, end, UI_STYLE_KEY, c->unicode ? "▲" : "^");
        else if (slow)
            ui_canvas_puts(c, row + 1, col, end, UI_STYLE_HOT, "!");
        any = any || slow;
    }
    legend(c, row, col + 1, end, h->experts ? "experts" : "pinned", any);
}

uint32_t ui_heat_worst(const QSFLayerStats *layers, uint32_t n, uint32_t *out, uint32_t max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = count;
        if (layers[i].wait_ns == 0) continue;
        while (at > 0 && layers[out[at - 1]].wait_ns < layers[i].wait_ns) at--;
        if (at >= max) continue;
        if (count < max) count++;
        memmove(out + at + 1, out + at, (count - at - 1) * sizeof *out);
        out[at] = i;
    }
    return count;
}
