/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The full screen: layout and drawing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_remote.h"
#include "ui/compose/pending.h"
#include "ui/ctx_full.h"
#include "ui/format.h"
#include "ui/guide.h"
#include "ui/screen.h"
#include "ui/statuspane.h"
#include "ui/walkview.h"

/* Rows of each part from top to bottom; 0 for parts that a small window has no space for. */
typedef struct Layout {
    int title, body, status_rule, status, rule, queue, walk, input, menu, hint_rule, offer, hints;
    bool pane;
} Layout;

/* ---- title ---- */

static int clip(const char *text, size_t max_cells) {
    size_t len = strlen(text), i = 0, used = 0;
    while (i < len) {
        int cells = 0;
        size_t n = qsf_text_grapheme(text + i, len - i, &cells);
        if (n == 0 || used + (size_t)cells > max_cells) break;
        used += (size_t)cells;
        i += n;
    }
    return (int)i;
}

/* While it is being loaded, or when that failed, shows the file name instead of the model's name; of a server
 * whose first model is meant, its URL, without the mark that ends it. */
static const char *file_name(const char *path, char *url, size_t cap) {
    if (qsf_connect_is(path)) {
        const char *from = path + strlen("connect:");
        if (*qsf_connect_model(path)) return qsf_connect_model(path);
        (void)snprintf(url, cap, "%.*s", (int)strcspn(from, "#"), from);
        return url;
    }
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A name that was chosen, unless there is a title; a date says less than the first words. */
static void session_label(const UiApp *a, char *dst, size_t cap) {
    const bool titled = a->session.title[0] || ui_session_is_dated(a->session.name);
    dst[0] = '\0';
    if (titled) ui_app_title(a, dst, cap);
    if (!dst[0]) (void)snprintf(dst, cap, "%s", a->session.name);
}

static void draw_title(UiScreen *s, int row, int cols) {
    UiCanvas *c = &s->canvas;
    const UiApp *a = s->app;
    const QSFStats *st = &a->stats;
    char right[80] = "", when[16], name[sizeof a->session.name], url[200] = "";
    const char *template = st->state == QSF_STATE_EMPTY ? "" : st->template_name;
    /* One that could not be loaded is none. */
    const bool none = !a->model_path || (!a->model_ready && a->running != UI_REQUEST_LOAD);
    const char *model = none                ? "no model"
                        : st->model_name[0] ? st->model_name
                                            : file_name(a->model_path, url, sizeof url);
    const unsigned threads = st->state == QSF_STATE_PREFILL ? st->prefill_threads : st->threads;
    ui_canvas_fill(c, row, 0, cols, UI_STYLE_TITLE);
    ui_format_clock((double)time(NULL), when, sizeof when);
    if (cols >= 60 && threads > 0)
        (void)snprintf(right, sizeof right, "%u thread%s  %s ", threads, threads == 1 ? "" : "s", when);
    else if (cols >= 60)
        (void)snprintf(right, sizeof right, "%s ", when);
    int end = cols - (int)strlen(right);
    size_t room = (size_t)cols / 3;
    int at = ui_canvas_puts(c, row, cols >= 60 ? 1 : 0, end, UI_STYLE_TITLE, "qsf-chat");
    if ((a->session.on || a->no_save) && a->session.name[0]) {
        session_label(a, name, sizeof name);
        at = ui_canvas_printf(c, row, at + (cols >= 60 ? 2 : 1), end - 1, UI_STYLE_TITLE, "%.*s%s",
                              clip(name, room), name,
                              a->session.failing || !a->session.on ? " (not saved)" : "");
    }
    at = ui_canvas_printf(c, row, at + (cols >= 60 ? 2 : 1), end - 1, UI_STYLE_TITLE, "%.*s",
                          clip(model, room), model);
    if (*template && cols >= 60)
        ui_canvas_printf(c, row, at + 2, end - 1, UI_STYLE_TITLE, "%.*s", clip(template, room), template);
    ui_canvas_puts(c, row, end, cols, UI_STYLE_TITLE, right);
}

/* ---- rules, queue, menu, hints ---- */

/* While a message is typed: its tokens, the room for it, and how long it takes to read it. */
static void draw_typed(UiScreen *s, const UiInputView *in, int64_t more, int row, int cols) {
    const UiApp *a = s->app;
    char tokens[24], room[24], span[24], done[24];
    double seconds;
    const int64_t n = ui_app_typed(s->app, in->text, in->len, more, &seconds);
    const int64_t left = (int64_t)a->stats.ctx_size - a->stats.ctx_used;
    if (n == 0 || cols < UI_STRIP_FROM) return;
    ui_format_count(n, tokens, sizeof tokens);
    ui_format_count(left > 0 ? left : 0, room, sizeof room);
    const int64_t ready = ui_ahead_ready(a, n);
    if (ready > 0) ui_format_count(ready, done, sizeof done);
    int col = ui_canvas_printf(&s->canvas, row, 1, cols, UI_STYLE_DIM, " %s tokens%s%s%s, room for %s ",
                               tokens, ready > 0 ? ", " : "", ready > 0 ? done : "", ready > 0 ? " read" : "",
                               room);
    if (seconds < 1) return;
    ui_format_span(seconds, span, sizeof span);
    ui_canvas_printf(&s->canvas, row, col, cols, UI_STYLE_DIM, "(first token in about %s) ", span);
}

/* Shown before Enter, if the conversation or the message makes it too long; otherwise how long it is. */
static void draw_length(UiScreen *s, const UiInputView *in, int row, int cols) {
    char advice[100];
    const bool command = in->len > 0 && in->text[0] == '/' && !(in->len > 1 && in->text[1] == '/');
    const size_t len = command ? 0 : in->len;
    const int64_t extra = command ? 0 : ui_attach_tokens(s->app) + in->pasted;
    const int64_t more = ui_app_busy(s->app) ? 0 : ui_app_too_long(s->app, in->text, len, extra);
    if (more == 0 && !command) draw_typed(s, in, extra, row, cols);
    if (more == 0) return;
    int col = ui_canvas_printf(&s->canvas, row, 1, cols, UI_STYLE_WARN, " %s%lld tokens too long",
                               cols >= UI_STRIP_FROM ? "about " : "", (long long)more);
    size_t room = cols > col + 3 ? (size_t)(cols - col - 2) : 1;
    (void)ui_app_context_advice(s->app, (int64_t)s->app->stats.ctx_size + more, len > 0, advice,
                                room < sizeof advice ? room : sizeof advice);
    ui_canvas_printf(&s->canvas, row, col, cols, UI_STYLE_WARN, "%s%s ", *advice ? ": " : "", advice);
}

/* The choices at a full context; with one of them typed, that it waits for Enter. false: nothing is
 * asked, or a message is typed. */
static bool draw_question(UiScreen *s, const UiInputView *in, int row, int cols) {
    static const char head[] = " context full: ";
    const bool wide = cols >= 70;
    char names[80];
    if (in->len > 1 || !ui_ctx_full_open(s->app) || s->app->compact.ready) return false;
    if (in->len == 1) {
        const char *name = ui_ctx_full_name(s->app, in->text[0]);
        if (name) ui_canvas_printf(&s->canvas, row, 1, cols, UI_STYLE_WARN, " Enter: %s ", name);
        return name != NULL;
    }
    ui_ctx_full_names(s->app, cols - (wide ? (int)sizeof head : 2), names, sizeof names);
    ui_canvas_printf(&s->canvas, row, 1, cols, UI_STYLE_WARN, "%s%s ", wide ? head : " ", names);
    return true;
}

static void draw_rule(UiScreen *s, const UiInputView *in, int row, int cols) {
    UiCanvas *c = &s->canvas;
    size_t below = ui_chatview_below(&s->view);
    ui_canvas_hline(c, row, 0, cols, UI_STYLE_DIM);
    if (s->searching && s->search.n > 0) {
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, " %zu/%zu %s  n N Esc ", s->search.at + 1,
                         s->search.n, ui_buf_str(&s->search.pattern));
        return;
    }
    const bool stopped = (s->flash_stops && !s->app->stopping) ||
                         (s->flash_tokens && s->app->running != UI_REQUEST_TOKENS);
    if (s->flash[0] && s->flash_until > ui_now() && !stopped)
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, " %s ", s->flash);
    else if (!draw_question(s, in, row, cols))
        draw_length(s, in, row, cols);
    if (below > 0 && cols >= 30) {
        char text[48];
        (void)snprintf(text, sizeof text, " %zu line%s below ", below, below == 1 ? "" : "s");
        ui_canvas_puts(c, row, cols - (int)strlen(text) - 1, cols, UI_STYLE_NOTICE, text);
    }
}

/* Names of files and sessions, and the first words of sessions, may contain anything. */
static char *clean(const char *text) { return qsf_clean_dup(text, strlen(text), true); }

static int menu_width(const UiCompletion *list, size_t first, int n) {
    int wide = 0;
    for (int i = 0; i < n && first + (size_t)i < list->n; i++) {
        char *text = clean(list->choices[first + (size_t)i].text);
        int w = text ? (int)qsf_text_width(text, strlen(text)) : 0;
        wide = w > wide ? w : wide;
        free(text);
    }
    return wide;
}

static void draw_choice(UiCanvas *c, const UiChoice *o, bool chosen, int row, int wide, int cols) {
    char *text = clean(o->text), *help = clean(o->help);
    if (chosen) ui_canvas_puts(c, row, 0, cols, UI_STYLE_KEY, ">");
    ui_canvas_puts(c, row, 2, cols, chosen ? UI_STYLE_TITLE : UI_STYLE_KEY, text ? text : "");
    if (wide + 4 < cols - 10) ui_canvas_puts(c, row, wide + 4, cols, UI_STYLE_DIM, help ? help : "");
    free(text);
    free(help);
}

/* Which choices are shown, "7-11 of 29, and 18 more: Tab", or the number of the chosen one, "8 of 29, ...".
 *  */
static void draw_pages(UiCanvas *c, const UiMenu *m, size_t from, size_t to, int row, int cols) {
    const size_t n = m->list.n;
    const char *more = n == UI_CHOICES ? " or more" : "";
    int col = m->chosen >= 0
                  ? ui_canvas_printf(c, row, 2, cols, UI_STYLE_DIM, "%ld of %zu%s", m->chosen + 1, n, more)
                  : ui_canvas_printf(c, row, 2, cols, UI_STYLE_DIM, "%zu-%zu of %zu%s", from, to, n, more);
    if (to < n)
        col = ui_canvas_printf(c, row, col, cols, UI_STYLE_DIM, ", and %zu more: Tab", n - to);
    else
        col = ui_canvas_puts(c, row, col, cols, UI_STYLE_DIM, ", Tab: the first ones");
    if (cols >= UI_STRIP_FROM) ui_canvas_puts(c, row, col, cols, UI_STYLE_DIM, "; arrows and Enter choose");
}

/* If not all choices fit, the last row says which of them are shown. */
static void draw_menu(UiScreen *s, const UiInputView *in, int row, int rows, int cols) {
    UiCanvas *c = &s->canvas;
    const UiCompletion *list = &in->menu->list;
    const size_t n = list->n, first = in->menu->first < n ? in->menu->first : 0;
    bool pages = n > (size_t)rows;
    if (rows == 0) return;
    s->menu_rows = pages && rows > 1 ? rows - 1 : rows;
    int wide = menu_width(list, first, s->menu_rows), shown = 0;
    for (; shown < s->menu_rows && first + (size_t)shown < n; shown++) {
        const size_t i = first + (size_t)shown;
        draw_choice(c, &list->choices[i], (long)i == in->menu->chosen, row + shown, wide, cols);
    }
    if (pages && rows > 1) draw_pages(c, in->menu, first + 1, first + (size_t)shown, row + rows - 1, cols);
}

/* Questions a new user may ask, as many as fit, and how to switch to other models. */
static void draw_offer(UiScreen *s, int row, int cols) {
    static const char model[] = "/model PATH";
    UiCanvas *c = &s->canvas;
    const char *sep = c->unicode ? " · " : " | ";
    int end = cols - (int)strlen(model) - 2;
    int col = ui_canvas_puts(c, row, 1, cols, UI_STYLE_KEY, "Tab");
    for (size_t i = 0; i < UI_GUIDE_QUESTIONS; i++) {
        const char *text = ui_guide_question(i), *gap = i > 0 ? sep : " ";
        if (col + (i > 0 ? 3 : 1) + (int)strlen(text) > end) break;
        col = ui_canvas_puts(c, row, col, cols, UI_STYLE_DIM, gap);
        col = ui_canvas_puts(c, row, col, cols, UI_STYLE_TEXT, text);
    }
    if (col <= end) ui_canvas_puts(c, row, col + 2, cols, UI_STYLE_KEY, model);
}

static bool has_thought(const UiApp *a) {
    const UiItem *last = ui_transcript_last_of(&a->chat, UI_ANSWER);
    return last && ui_item_thought(last);
}

static void draw_hints(UiScreen *s, int row, int cols) {
    UiCanvas *c = &s->canvas;
    bool busy = ui_app_busy(s->app);
    const char *const hints[][2] = {
        { "F1", "help" },
        { "^C", busy ? "stop" : "clear" },
        { "^T", has_thought(s->app) ? "thinking" : NULL },
        { "F2", "pane" },
        { "PgUp/PgDn", "scroll" },
        { "^R", "history" },
        { "F5-F8", "sampling" },
        { "Tab", "complete" },
        { "Alt-Enter", "new line" },
        { "^D", "quit" },
    };
    int col = 1;
    for (size_t i = 0; i < sizeof hints / sizeof *hints && !s->app->walk.open; i++) {
        if (!hints[i][1]) continue;
        int need = (int)(strlen(hints[i][0]) + 1 + strlen(hints[i][1]));
        if (col + need > cols) continue;
        col = ui_canvas_puts(c, row, col, cols, UI_STYLE_KEY, hints[i][0]);
        col = ui_canvas_printf(c, row, col, cols, UI_STYLE_DIM, " %s", hints[i][1]) + 2;
    }
}

/* Files that the message names, in its pastes too. */
static void look_at_files(UiApp *a, const UiInputView *in) {
    ui_attach_look(a, in->text, in->len);
    for (size_t at = 0; in->folds && in->whole != in->len && at < in->len; at++) {
        const int i = ui_fold_at(in->text + at, in->len - at);
        if (i >= 0 && in->folds->items[i].text)
            ui_attach_look_more(a, in->folds->items[i].text, in->folds->items[i].len);
    }
}

/* ---- the whole screen ---- */

static Layout arrange(const UiScreen *s, const UiInputView *in, int rows, int cols, int input_rows) {
    Layout l = { 0 };
    bool status = s->pane && rows >= 5 && cols >= 20;
    int third = rows / 3 > 1 ? rows / 3 : 1;
    l.input = input_rows < third ? input_rows : third;
    l.title = rows >= 6;
    l.pane = status && cols >= UI_PANE_FROM && rows >= 12;
    l.status = !status || l.pane ? 0 : cols >= UI_STRIP_FROM && rows >= 8 ? 2 : 1;
    l.status_rule = l.status > 0 && rows >= 8;
    l.rule = rows >= 4;
    l.queue = ui_pending_rows(s->app, rows);
    l.walk = ui_walk_panel_rows(s->app, rows);
    l.hints = rows >= 16;
    l.hint_rule = rows >= 20;
    l.offer = rows >= 12 && ui_guide_offers(s->app);
    int most = rows >= 24 ? 6 : rows >= 12 ? 3 : 0;
    if (in->menu->asked && rows >= 4) most = rows / 2;
    l.menu = in->menu->list.n < (size_t)most ? (int)in->menu->list.n : most;
    int used = l.title + l.status_rule + l.status + l.rule + l.queue + l.walk + l.input + l.menu +
               l.hint_rule + l.offer + l.hints;
    l.body = rows - used;
    if (l.body < 0) l.body = 0;
    return l;
}

static void draw_body(UiScreen *s, const Layout *l, const UiStatus *status, int row, int cols) {
    int width = l->pane ? cols - UI_PANE_WIDTH - 1 : cols;
    s->body_rows = l->body;
    ui_screen_ask_summary(s);
    if (s->pager.open) {
        ui_pager_draw(&s->pager, &s->canvas, row, l->body, cols);
        return;
    }
    if (s->picker.open) {
        ui_picker_draw(&s->picker, &s->canvas, row, l->body, cols, (double)time(NULL));
        return;
    }
    if (s->models.open) {
        ui_model_picker_draw(&s->models, &s->canvas, row, l->body, cols);
        return;
    }
    s->app->columns = width - 2; /* the widest margin of output */
    s->view.compact = cols < UI_STRIP_FROM;
    s->view.unfold = s->app->settings.show_thinking;
    s->view.raw = s->app->raw;
    s->view.max_width = s->app->text_width;
    ui_tints_update(&s->tints, s->app);
    s->view.plain = s->tints.item;
    s->view.tints = s->tints.spans;
    s->view.n_tints = s->tints.n;
    s->view.look.unicode = s->canvas.unicode;
    ui_chatview_sync(&s->view, &s->app->chat, width, l->body);
    ui_walk_show(s);
    ui_chatview_draw(&s->view, &s->app->chat, &s->canvas, row, 0);
    if (s->searching) ui_search_mark(s->search.search, &s->canvas, row, l->body, width);
    if (l->pane) ui_status_pane(&s->canvas, status, row, row + l->body, cols - UI_PANE_WIDTH, UI_PANE_WIDTH);
}

static int draw_status(UiScreen *s, const Layout *l, const UiStatus *status, int row, int cols) {
    if (l->status_rule) ui_canvas_hline(&s->canvas, row++, 0, cols, UI_STYLE_DIM);
    if (l->status == 2)
        ui_status_strip(&s->canvas, status, row, cols);
    else if (l->status == 1)
        ui_status_line(&s->canvas, status, row, cols);
    return row + l->status;
}

static void draw_input(UiScreen *s, const UiInputView *in, const Layout *l, int row, int cols) {
    int point_row, point_col;
    (void)ui_input_rows(in, cols, &point_row, &point_col);
    int first = point_row >= l->input ? point_row - l->input + 1 : 0;
    ui_input_draw(in, &s->canvas, row, l->input, first, cols);
}

void ui_screen_draw(UiScreen *s, const UiInputView *in, int rows, int cols) {
    UiApp *a = s->app;
    if (!ui_canvas_resize(&s->canvas, rows, cols)) return;
    look_at_files(a, in);
    UiStatus status = {
        .stats = &a->stats,
        .settings = &a->settings,
        .layers = a->layers,
        .n_layers = a->n_layers,
        .spark = a->spark,
        .n_spark = a->n_spark,
        .knob = a->knob,
        .stopping = a->stopping,
        .more = &a->more,
        .engine = &a->engine,
        .pin_left = ui_app_pin_left(a),
        .downloading = ui_download_running(a),
        .get_done = a->download.done,
        .get_total = a->download.total,
        .get_left = ui_download_left(a),
    };
    int point_row, point_col;
    int input_rows = ui_input_rows(in, cols, &point_row, &point_col);
    Layout l = arrange(s, in, rows, cols, input_rows);
    int row = 0;
    if (l.title) draw_title(s, row++, cols);
    draw_body(s, &l, &status, row, cols);
    const int cursor_row = s->canvas.cursor_row, cursor_col = s->canvas.cursor_col;
    row = draw_status(s, &l, &status, row + l.body, cols);
    if (l.rule) draw_rule(s, in, row++, cols);
    if (l.queue) ui_pending_draw(&s->canvas, a, row, rows, cols);
    row += l.queue;
    if (l.walk) ui_walk_draw(&s->canvas, a, row, l.walk, cols);
    row += l.walk;
    draw_input(s, in, &l, row, cols);
    row += l.input;
    draw_menu(s, in, row, l.menu, cols);
    row += l.menu;
    if (l.hint_rule) ui_canvas_hline(&s->canvas, row++, 0, cols, UI_STYLE_DIM);
    /* Tab completes what else is typed. */
    if (l.offer && (in->len == 0 || ui_guide_next(a, in->text, in->len))) draw_offer(s, row, cols);
    row += l.offer;
    if (l.hints) draw_hints(s, row, cols);
    if (s->pager.open || s->picker.open || s->models.open) { /* not in the input line */
        s->canvas.cursor_row = cursor_row;
        s->canvas.cursor_col = cursor_col;
    }
}
