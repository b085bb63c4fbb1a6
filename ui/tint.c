/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Styles by token. */
#include "ui/tint.h"

#include <stdlib.h>
#include <string.h>

#include "ui/walk.h"

#define PIECE 32u   /* tokens that are asked for at once */
#define BYTES 1024u /* of text that are cleaned at once */

static UiStyle style_of(UiTint tint, const QSFToken *token) {
    const float p = token->p, bits = token->entropy;
    if (tint == UI_TINT_OFF) return UI_STYLE_TEXT;
    if (tint == UI_TINT_PROBABILITY)
        return p >= 0.9f   ? UI_STYLE_SURE
               : p >= 0.5f ? UI_STYLE_LIKELY
               : p >= 0.1f ? UI_STYLE_UNSURE
                           : UI_STYLE_GUESS;
    return bits < 0.5f ? UI_STYLE_SURE
           : bits < 2  ? UI_STYLE_LIKELY
           : bits < 4  ? UI_STYLE_UNSURE
                       : UI_STYLE_GUESS;
}

/* Converts places in the text to places in the text that is shown instead of it. */
typedef struct Shown {
    const UiItem *it;
    QSFClean clean;
    size_t raw, shown;
} Shown;

static size_t shown_at(Shown *s, size_t raw) {
    char out[QSF_CLEAN_MAX(BYTES)];
    if (raw > s->it->raw.len) raw = s->it->raw.len;
    if (!s->it->differs) return raw;
    while (s->raw < raw) {
        const size_t n = raw - s->raw < BYTES ? raw - s->raw : BYTES;
        s->shown += qsf_clean(&s->clean, ui_buf_str(&s->it->raw) + s->raw, n, false, out);
        s->raw += n;
    }
    return s->shown;
}

static bool add(UiTints *t, size_t end, UiStyle style) {
    if (t->n == t->cap) {
        const size_t cap = t->cap ? t->cap * 2 : 64;
        UiTintSpan *p = realloc(t->spans, cap * sizeof *p);
        if (!p) return false;
        t->spans = p;
        t->cap = cap;
    }
    t->spans[t->n++] = (UiTintSpan){ .end = (uint32_t)end, .style = (uint8_t)style };
    return true;
}

static bool make(UiTints *t, const UiApp *a, const UiItem *it, const QSFTokens *known) {
    Shown s = { .it = it, .clean = { .ascii = a->chat.ascii } };
    QSFToken rows[PIECE];
    uint32_t n = 0;
    t->cursor = 0;
    for (uint32_t i = known->first; i < known->n; i += n) {
        n = a->engine.token_rows(a->engine.self, i, rows, PIECE);
        for (uint32_t k = 0; k < n; k++) {
            const bool here = t->walks && i + k == t->at;
            if (here) t->cursor = shown_at(&s, a->walk.begin);
            if (!add(t, shown_at(&s, rows[k].text_end), here ? UI_STYLE_MATCH : style_of(t->tint, &rows[k])))
                return false;
        }
        if (n == 0) break;
    }
    /* The text of tokens without rows belongs to the first one that has one. */
    if (known->first > 0 && t->n > 0) t->spans[0].style = UI_STYLE_TEXT;
    return true;
}

void ui_tints_update(UiTints *t, const UiApp *a) {
    const UiItem *it = ui_walk_item(a);
    QSFTokens known;
    const bool wanted = (a->tint != UI_TINT_OFF || a->walk.open) && ui_walk_known(a, &known);
    if (!wanted || !it) {
        t->item = 0;
        return;
    }
    const bool same = t->item == it->id && t->request == known.request && t->version == it->version &&
                      t->tokens == known.n && t->tint == a->tint && t->walks == a->walk.open &&
                      t->at == a->walk.at;
    if (same) return;
    t->item = it->id;
    t->request = known.request;
    t->version = it->version;
    t->tokens = known.n;
    t->tint = a->tint;
    t->walks = a->walk.open;
    t->at = a->walk.at;
    t->n = 0;
    if (!make(t, a, it, &known)) t->item = 0;
}

void ui_tints_free(UiTints *t) {
    free(t->spans);
    *t = (UiTints){ 0 };
}
