/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What curses cannot draw. */
#include "ui/overlay.h"

#include <stdlib.h>
#include <string.h>

static bool is_over(const UiCell *cell) { return cell->ink.link > 0 || cell->ink.attrs & UI_ATTR_STRIKE; }

static uint64_t hash(uint64_t h, const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* FNV-1a. The numbers of links are those of one frame: the URLs count. */
static uint64_t hash_cell(uint64_t h, const UiCanvas *c, const UiCell *cell) {
    const uint8_t look[] = { cell->len, cell->ink.style, cell->ink.attrs };
    h = hash(hash(h, look, sizeof look), cell->text, cell->len);
    if (cell->ink.link > 0) {
        const char *url = ui_canvas_url(c, cell->ink.link);
        h = hash(h, url, strlen(url) + 1);
    }
    return h;
}

static UiOverlayRow hash_row(const UiCanvas *c, int row) {
    const UiCell *cells = c->cells + (size_t)row * (size_t)c->cols;
    UiOverlayRow r = { 0, 14695981039346656037u };
    for (int col = 0; col < c->cols; col++) {
        r.all = hash_cell(r.all, c, &cells[col]);
        if (!is_over(&cells[col])) continue;
        if (r.over == 0) r.over = 14695981039346656037u;
        r.over = hash_cell(hash(r.over, &col, sizeof col), c, &cells[col]);
    }
    return r;
}

bool ui_overlay_row(UiOverlay *o, const UiCanvas *c, int row, bool again, bool *renew) {
    *renew = false;
    if (c->rows != o->n) {
        UiOverlayRow *p = realloc(o->rows, (size_t)(c->rows > 0 ? c->rows : 1) * sizeof *p);
        if (!p) return false;
        memset(p, 0, (size_t)c->rows * sizeof *p);
        o->rows = p;
        o->n = c->rows;
    }
    const UiOverlayRow last = o->rows[row], now = hash_row(c, row);
    o->rows[row] = now;
    *renew = !again && last.over != 0 && last.over != now.over;
    return now.over != 0 && (again || last.all != now.all);
}

/* base: 30 or 40, for text or background. */
static void write_color(int32_t color, unsigned base, UiBuf *out) {
    if (color >= UI_COLOR_RGB)
        ui_buf_printf(out, ";%u;2;%u;%u;%u", base + 8, (unsigned)color >> 16 & 255,
                      (unsigned)color >> 8 & 255, (unsigned)color & 255);
    else if (color >= 16)
        ui_buf_printf(out, ";%u;5;%u", base + 8, (unsigned)color);
    else if (color >= 0)
        ui_buf_printf(out, ";%u", base + (unsigned)color + (color >= 8 ? 52 : 0));
}

static void write_look(const UiInk *ink, const UiPaint *paints, UiBuf *out) {
    static const struct {
        unsigned attr;
        const char *code;
    } codes[] = { { UI_ATTR_BOLD, ";1" },      { UI_ATTR_DIM, ";2" },     { UI_ATTR_ITALIC, ";3" },
                  { UI_ATTR_UNDERLINE, ";4" }, { UI_ATTR_REVERSE, ";7" }, { UI_ATTR_STRIKE, ";9" } };
    const UiPaint *paint = &paints[ink->style];
    const unsigned attrs = ink->attrs | paint->attrs;
    ui_buf_puts(out, "\x1b[0");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (attrs & codes[i].attr) ui_buf_puts(out, codes[i].code);
    }
    write_color(paint->fg, 30, out);
    write_color(paint->bg, 40, out);
    ui_buf_puts(out, "m");
}

static bool same_ink(const UiInk *a, const UiInk *b) {
    return a->style == b->style && a->attrs == b->attrs && a->link == b->link;
}

/* Runs with the same id are one link, over several rows too. */
static void begin_link(const char *url, UiBuf *out) {
    const uint64_t id = hash(14695981039346656037u, url, strlen(url));
    ui_buf_printf(out, "\x1b]8;id=%08x;%s\x1b\\", (unsigned)(id ^ id >> 32), url);
}

void ui_overlay_write(const UiCanvas *c, int row, const UiPaint *paints, UiBuf *out) {
    const UiCell *cells = c->cells + (size_t)row * (size_t)c->cols;
    for (int col = 0; col < c->cols;) {
        const UiInk *ink = &cells[col].ink;
        if (!is_over(&cells[col])) {
            col++;
            continue;
        }
        ui_buf_printf(out, "\x1b[%d;%dH", row + 1, col + 1);
        write_look(ink, paints, out);
        if (ink->link > 0) begin_link(ui_canvas_url(c, ink->link), out);
        for (; col < c->cols && same_ink(ink, &cells[col].ink); col++)
            ui_buf_add(out, cells[col].text, cells[col].len);
        if (ink->link > 0) ui_buf_puts(out, "\x1b]8;;\x1b\\");
    }
}

void ui_overlay_free(UiOverlay *o) {
    free(o->rows);
    *o = (UiOverlay){ 0 };
}

/* ---- which terminals ---- */

typedef struct Known {
    const char *name, *value; /* prefix of the value; NULL: any */
    double version;           /* of the variable `number`, at least */
    const char *number;
} Known;

static const Known known[] = {
    { "VTE_VERSION", NULL, 5000, "VTE_VERSION" },
    { "KONSOLE_VERSION", NULL, 201200, "KONSOLE_VERSION" },
    { "WT_SESSION", NULL, 0, NULL },
    { "KITTY_WINDOW_ID", NULL, 0, NULL },
    { "DOMTERM", NULL, 0, NULL },
    { "TERM_PROGRAM", "iTerm.app", 3.1, "TERM_PROGRAM_VERSION" },
    { "TERM_PROGRAM", "WezTerm", 0, NULL },
    { "TERM_PROGRAM", "ghostty", 0, NULL },
    { "TERM_PROGRAM", "vscode", 1.72, "TERM_PROGRAM_VERSION" },
    { "TERM", "xterm-kitty", 0, NULL },
    { "TERM", "xterm-ghostty", 0, NULL },
    { "TERM", "alacritty", 0, NULL },
    { "TERM", "foot", 0, NULL },
    { "TERM", "contour", 0, NULL },
    { "TERM", "wezterm", 0, NULL },
};

static bool matches(const Known *k, const char *(*env)(const char *name)) {
    const char *value = env(k->name), *number = k->number ? env(k->number) : NULL;
    if (!value || !*value || (k->value && strncmp(value, k->value, strlen(k->value)) != 0)) return false;
    return !k->number || (number && strtod(number, NULL) >= k->version);
}

bool ui_overlay_links(const char *(*env)(const char *name)) {
    static const Known tmux = { "TERM_PROGRAM", "tmux", 3.4, "TERM_PROGRAM_VERSION" };
    const char *force = env("FORCE_HYPERLINK"), *program = env("TERM_PROGRAM");
    if (force && *force) return strcmp(force, "0") != 0;
    /* Inside of tmux the variables of the terminal around it mean nothing. */
    if (program && strcmp(program, "tmux") == 0) return matches(&tmux, env);
    if (env("TMUX") || env("STY")) return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (matches(&known[i], env)) return true;
    }
    return false;
}
