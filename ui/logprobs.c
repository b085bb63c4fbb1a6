/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements ui/logprobs.h, with the fields of qsf-run --top-logprobs. */
#include "ui/logprobs.h"

#include <math.h>
#include <string.h>

#include "ui/json.h"
#include "ui/walk.h"

#define TEXT_MAX 1024 /* bytes of a token */

static void put_token(UiBuf *b, UiApp *a, int32_t id, float p) {
    char text[TEXT_MAX];
    size_t n = a->engine.token_text(a->engine.self, id, text, sizeof text, NULL);
    if (n > sizeof text) n = sizeof text;
    ui_buf_printf(b, "{\"id\": %d, \"token\": ", (int)id);
    ui_json_string(b, text, n);
    ui_buf_puts(b, ", \"bytes\": [");
    for (size_t i = 0; i < n; i++)
        ui_buf_printf(b, "%s%u", i > 0 ? ", " : "", (unsigned)(unsigned char)text[i]);
    if (p > 0)
        ui_buf_printf(b, "], \"logprob\": %.4f", log((double)p));
    else
        ui_buf_puts(b, "], \"logprob\": null");
}

static void put_stages(UiBuf *b, const QSFWhy *w, uint32_t n) {
    for (uint32_t s = 0; s < w->n_stages; s++) {
        ui_buf_printf(b, "%s{\"stage\": \"%s\", \"kept\": %u, \"p\": [", s > 0 ? ", " : "", w->stage[s].name,
                      w->stage[s].kept);
        for (uint32_t i = 0; i < n; i++)
            ui_buf_printf(b, "%s%.4g", i > 0 ? ", " : "", (double)w->stage[s].p[i]);
        ui_buf_puts(b, "]}");
    }
}

/* The first n of the candidates, and the chosen one. */
static uint32_t reduce(QSFWhy *w, uint32_t n) {
    uint32_t at = 0;
    while (at + 1 < w->n && w->candidate[at] != w->id) at++;
    if (n >= w->n) return w->n;
    if (at < n) return n;
    w->candidate[n] = w->candidate[at];
    w->p[n] = w->p[at];
    for (uint32_t s = 0; s < w->n_stages; s++) w->stage[s].p[n] = w->stage[s].p[at];
    return n + 1;
}

static void put_why(UiBuf *b, UiApp *a, QSFWhy *w, uint32_t n) {
    float p = 0;
    n = reduce(w, n);
    for (uint32_t i = 0; i < n; i++)
        if (w->candidate[i] == w->id) p = w->p[i];
    put_token(b, a, w->id, p);
    ui_buf_puts(b, ", \"top\": [");
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) ui_buf_puts(b, ", ");
        put_token(b, a, w->candidate[i], w->p[i]);
        ui_buf_puts(b, "}");
    }
    ui_buf_puts(b, "], \"stages\": [");
    put_stages(b, w, n);
    ui_buf_printf(b, "], \"decided\": \"%s\"",
                  w->decided >= 0  ? w->stage[w->decided].name
                  : w->random >= 0 ? "draw"
                                   : "temperature");
    if (w->random >= 0) ui_buf_printf(b, ", \"random\": %.6f", w->random);
    ui_buf_puts(b, "}");
}

void ui_put_logprobs(UiBuf *b, UiApp *a, unsigned n) {
    QSFTokens t;
    QSFWhy w;
    bool more = false;
    if (!ui_walk_known(a, &t)) return;
    for (uint32_t i = 0; i < t.n; i++) {
        if (!a->engine.token_why(a->engine.self, i, &w)) continue;
        if (more) ui_buf_puts(b, ", ");
        put_why(b, a, &w, n);
        more = true;
    }
}
