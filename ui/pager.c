/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A text over the transcript that can be scrolled. */
#include "ui/pager.h"

#include <string.h>

#include "ui/help.h"
#include "ui/search.h"
#include "ui/wrap.h"

#define HELP_WIDTH_MAX 100
#define NARROW         60
#define WHEEL_LINES    3

void ui_pager_free(UiPager *p) {
    ui_buf_free(&p->title);
    ui_buf_free(&p->text);
    ui_pager_find_end(&p->find);
    *p = (UiPager){ 0 };
}

void ui_pager_help(UiPager *p) {
    p->open = p->help = true;
    p->asks = NULL;
    p->top = p->width = 0;
    ui_pager_find_end(&p->find);
}

void ui_pager_show(UiPager *p, const char *title, const char *text, size_t len) {
    ui_buf_clear(&p->title);
    ui_buf_clear(&p->text);
    ui_buf_puts(&p->title, title);
    ui_buf_add(&p->text, text, len);
    p->open = true;
    p->help = false;
    p->asks = NULL;
    p->top = 0;
    ui_pager_find_end(&p->find);
}

static bool is_sequence(const UiKey *k, const char *csi, const char *ss3) {
    return k->n == 3 && (memcmp(k->bytes, csi, 3) == 0 || memcmp(k->bytes, ss3, 3) == 0);
}

void ui_pager_key(UiPager *p, const UiKey *k, int rows) {
    const bool slash = k->action == UI_DO_EDIT && k->n == 1 && k->bytes[0] == '/';
    int page = rows > 3 ? rows - 2 : 1;
    bool up = is_sequence(k, "\x1b[A", "\x1bOA"), down = is_sequence(k, "\x1b[B", "\x1bOB");
    bool home = is_sequence(k, "\x1b[H", "\x1bOH"), end = is_sequence(k, "\x1b[F", "\x1bOF");
    if (!p->asks && ui_pager_find_key(&p->find, k)) return;
    if (!p->asks && (slash || k->action == UI_DO_SEARCH))
        ui_pager_find_begin(&p->find);
    else if (k->action == UI_DO_PAGE_UP)
        p->top -= page;
    else if (k->action == UI_DO_PAGE_DOWN || (k->n == 1 && k->bytes[0] == ' '))
        p->top += page;
    else if (k->action == UI_DO_LINE_UP || up)
        p->top--;
    else if (k->action == UI_DO_LINE_DOWN || down)
        p->top++;
    else if (k->action == UI_DO_HOME || home)
        p->top = 0;
    else if (k->action == UI_DO_END || end)
        p->top = 1 << 24; /* drawing knows the last line */
    else if (k->action == UI_DO_WHEEL_UP)
        p->top -= WHEEL_LINES;
    else if (k->action == UI_DO_WHEEL_DOWN)
        p->top += WHEEL_LINES;
    else if (k->action != UI_DO_REDRAW && k->action != UI_DO_MOUSE)
        p->open = p->asks != NULL;
}

bool ui_pager_paste(UiPager *p, const char *text, size_t len) {
    if (p->asks && p->open) return true;
    p->open = p->open && p->find.typing;
    if (p->open) ui_pager_find_paste(&p->find, text, len);
    return p->open;
}

/* Calls with each screen line; returns their number. */
static int each_line(const char *s, size_t len, int cols,
                     void (*fn)(void *arg, int i, const char *s, const UiLine *l), void *arg) {
    unsigned indent = 0, next = 0;
    int n = 0;
    while (len > 0 && s[len - 1] == '\n') len--;
    for (size_t off = 0; off < len; n++) {
        UiLine line;
        off = ui_wrap_next(s, len, off, indent, cols > 0 ? cols : 1, &line, &next);
        indent = next;
        if (fn) fn(arg, n, s, &line);
    }
    return n;
}

int ui_pager_lines(const char *text, size_t len, int cols) { return each_line(text, len, cols, NULL, NULL); }

typedef struct Lines {
    UiCanvas *c;
    int row, first, shown, cols;
    bool help;
} Lines;

/* Headings of the help start in the first column. */
static void draw_line(void *arg, int i, const char *s, const UiLine *l) {
    const Lines *d = arg;
    if (i < d->first || i >= d->first + d->shown) return;
    bool head = d->help && l->len > 0 && l->indent == 0 && s[l->off] != ' ';
    ui_canvas_put(d->c, d->row + i - d->first, 1 + (int)l->indent, d->cols,
                  head ? UI_STYLE_HEAD : UI_STYLE_TEXT, s + l->off, l->len);
}

/* Where in the text a screen line begins, and which line has a place in the text. */
typedef struct Place {
    int line;           /* its start is looked for */
    size_t off, sought; /* that of the line; the place */
    int found;
} Place;

static void look_for(void *arg, int i, const char *s, const UiLine *l) {
    Place *p = arg;
    (void)s;
    if (i == p->line) p->off = l->off;
    if (l->off <= p->sought) p->found = i;
}

static Place place_of(const UiPager *p, int cols, size_t sought) {
    Place place = { .line = p->top, .sought = sought };
    (void)each_line(ui_buf_str(&p->text), p->text.len, cols, look_for, &place);
    return place;
}

/* Moves the current place of a search into view. */
static void search(UiPager *p, int cols, int shown) {
    UiPagerFind *f = &p->find;
    if (f->stale) ui_pager_find_update(f, ui_buf_str(&p->text), p->text.len, place_of(p, cols, 0).off);
    if (!f->go || f->n == 0) return;
    const int line = place_of(p, cols, f->all[f->at]).found;
    f->go = false;
    if (line < p->top || line >= p->top + shown) p->top = line - shown / 3;
}

/* The help depends on the width. */
static void make_help(UiPager *p, int cols) {
    if (!p->help || p->width == cols) return;
    ui_buf_clear(&p->text);
    ui_help_all(&p->text, true, cols > HELP_WIDTH_MAX ? HELP_WIDTH_MAX : cols - 2);
    p->width = cols;
    p->find.stale = true;
}

static void draw_foot(const UiPager *p, UiCanvas *c, int row, int cols, int shown, int n) {
    if (ui_pager_find_draw(&p->find, c, row, cols)) return;
    if (p->asks) {
        int col = ui_canvas_puts(c, row, 1, cols, UI_STYLE_WARN, p->asks);
        if (n > shown && col + 20 < cols)
            ui_canvas_printf(c, row, col + 2, cols, UI_STYLE_NOTICE, "%d-%d of %d", p->top + 1,
                             p->top + shown, n);
        return;
    }
    if (n > shown)
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE,
                         cols < NARROW ? "%d-%d/%d PgUp/PgDn, / searches, q closes"
                                       : "%d-%d of %d  PgUp/PgDn scroll, / searches, any other key closes",
                         p->top + 1, p->top + shown, n);
    else
        ui_canvas_puts(c, row, 1, cols, UI_STYLE_NOTICE, "any key closes, / searches");
}

void ui_pager_draw(UiPager *p, UiCanvas *c, int row, int rows, int cols) {
    make_help(p, cols);
    if (!p->help && rows > 4) {
        ui_canvas_puts(c, row++, 1, cols, UI_STYLE_HEAD, ui_buf_str(&p->title));
        rows--;
    }
    int n = ui_pager_lines(ui_buf_str(&p->text), p->text.len, cols - 2), shown = rows - 1;
    int last = n > shown ? n - shown : 0;
    p->top = p->top < 0 ? 0 : p->top > last ? last : p->top;
    search(p, cols - 2, shown);
    p->top = p->top < 0 ? 0 : p->top > last ? last : p->top;
    Lines lines = { .c = c, .row = row, .first = p->top, .shown = shown, .cols = cols, .help = p->help };
    (void)each_line(ui_buf_str(&p->text), p->text.len, cols - 2, draw_line, &lines);
    ui_search_mark(p->find.search, c, row, shown, cols);
    draw_foot(p, c, row + shown, cols, shown, n);
}
