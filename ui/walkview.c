/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of tokens at a place of the last answer. */
#include "ui/walkview.h"

#include <string.h>

#include "ui/walk.h"

#define KEYS_FROM 70 /* cells of a window in which the keys are named */

static bool is_arrow(const UiKey *k, char letter) {
    return k->n == 3 && k->bytes[0] == '\x1b' && (k->bytes[1] == '[' || k->bytes[1] == 'O') &&
           k->bytes[2] == letter;
}

static void report(UiScreen *s, const char *why) {
    s->flash_until = 0;
    if (why) ui_screen_flash(s, "%s", why);
}

static void take(UiScreen *s, unsigned row) {
    report(s, ui_walk_take(s->app, row));
    if (!s->app->walk.open) ui_chatview_end(&s->view);
}

static void leave(UiScreen *s) {
    ui_walk_close(s->app);
    ui_chatview_end(&s->view);
}

/* Keys that only scroll or draw leave the list open. */
static bool passes(const UiKey *k) {
    switch (k->action) {
    case UI_DO_SUSPEND:
    case UI_DO_REDRAW:
    case UI_DO_PANE:
    case UI_DO_PAGE_UP:
    case UI_DO_PAGE_DOWN:
    case UI_DO_LINE_UP:
    case UI_DO_LINE_DOWN:
    case UI_DO_WHEEL_UP:
    case UI_DO_WHEEL_DOWN:
    case UI_DO_MOUSE: return true;
    default: return false;
    }
}

static bool walking_key(UiScreen *s, const UiKey *k) {
    UiApp *a = s->app;
    const char c = k->action == UI_DO_EDIT && k->n == 1 ? k->bytes[0] : '\0';
    if (is_arrow(k, 'D'))
        report(s, ui_walk_step(a, -1));
    else if (is_arrow(k, 'C'))
        report(s, ui_walk_step(a, 1));
    else if (is_arrow(k, 'A') || is_arrow(k, 'B'))
        ui_walk_move(a, is_arrow(k, 'A') ? -1 : 1);
    else if (c == '\r')
        take(s, a->walk.row);
    else if (c >= '1' && c <= '9')
        take(s, (unsigned)(c - '1'));
    else if (k->action == UI_DO_ESCAPE || k->action == UI_DO_STOP)
        leave(s);
    else if (passes(k))
        return false;
    else
        return leave(s), false; /* what is typed is for the input */
    return true;
}

bool ui_walk_key(UiScreen *s, const UiKey *k) {
    if (k->action == UI_DO_TOKEN_BACK || k->action == UI_DO_TOKEN_NEXT) {
        report(s, ui_walk_step(s->app, k->action == UI_DO_TOKEN_BACK ? -1 : 1));
        if (s->app->running == UI_REQUEST_TOKENS && s->app->walk.opens)
            ui_screen_flash(s, "the tokens of the answer are being evaluated: ^C stops that");
        s->flash_tokens = s->app->running == UI_REQUEST_TOKENS;
        return true;
    }
    return s->app->walk.open && walking_key(s, k);
}

void ui_walk_show(UiScreen *s) {
    const UiTints *t = &s->tints;
    if (!t->walks || t->item == 0) s->walked = 0;
    if (!t->walks || t->item == 0 || s->walked == t->at + 1) return;
    if (s->walked == 0) s->flash_until = 0; /* nothing is being evaluated */
    ui_chatview_show(&s->view, &s->app->chat, t->item, t->cursor);
    s->walked = t->at + 1;
}

int ui_walk_panel_rows(const UiApp *a, int rows) {
    const int part = rows >= 20 ? rows / 2 - 2 : rows / 3 > 2 ? rows / 3 : 2, need = 1 + (int)ui_walk_rows(a);
    return !a->walk.open ? 0 : need < part ? need : part;
}

static void draw_head(UiCanvas *c, const UiApp *a, int row, int cols) {
    static const char keys[] = "1-9 Enter choose, Esc leaves ";
    const UiWalk *w = &a->walk;
    const bool silent = w->token.text_end == w->begin;
    const int end = cols >= KEYS_FROM ? cols - (int)strlen(keys) - 1 : cols;
    ui_canvas_printf(c, row, 1, end, UI_STYLE_HEAD, "token %u of %u  %.1f %%  %.2f bits%s", w->at + 1, w->n,
                     (double)w->token.p * 100, (double)w->token.entropy, silent ? "  no text" : "");
    if (end < cols) ui_canvas_puts(c, row, end, cols, UI_STYLE_DIM, keys);
}

static void draw_candidate(UiCanvas *c, const UiApp *a, unsigned i, int row, int cols) {
    const UiWalk *w = &a->walk;
    const QSFCandidate t = ui_walk_row(a, i);
    const bool chosen = i == w->row;
    char text[400];
    ui_walk_text(a, t.id, text, sizeof text);
    int at = ui_canvas_puts(c, row, 0, cols, UI_STYLE_KEY, chosen ? ">" : " ");
    at = ui_canvas_printf(c, row, at, cols, UI_STYLE_KEY, "%u", i + 1);
    at = ui_canvas_puts(c, row, at, cols, UI_STYLE_GOOD, t.id == w->token.id ? " * " : "   ");
    at = ui_canvas_printf(c, row, at, cols, UI_STYLE_DIM, "%6.2f %%  ", (double)t.p * 100);
    ui_canvas_puts(c, row, at, cols, chosen ? UI_STYLE_TITLE : UI_STYLE_TEXT, text);
}

void ui_walk_draw(UiCanvas *c, const UiApp *a, int row, int rows, int cols) {
    const unsigned n = ui_walk_rows(a), shown = (unsigned)rows - 1;
    unsigned first = a->walk.row >= shown ? a->walk.row - shown + 1 : 0;
    draw_head(c, a, row, cols);
    for (unsigned i = 0; i < shown && first + i < n; i++)
        draw_candidate(c, a, first + i, row + 1 + (int)i, cols);
}
