/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The built-in themes, and colors on terminals that have fewer of them. */
#include "ui/theme.h"

#include <stdio.h>
#include <string.h>

#define B UI_ATTR_BOLD
#define D UI_ATTR_DIM
#define U UI_ATTR_UNDERLINE
#define R UI_ATTR_REVERSE
#define T UI_COLOR_DEFAULT

typedef struct Row {
    const char *role;
    int16_t ansi; /* a basic color, readable on any background */
    uint8_t attrs, mono;
    int16_t dark, light; /* of those that terminals do not redefine: 16 to 255 */
    int16_t bg;          /* with dark and light; reverse is left out then */
} Row;

/* Contrast on assumed backgrounds: tests/unit/ui/ui_theme.c. */
static const Row table[UI_STYLE_COUNT] = {
    [UI_STYLE_TEXT] = { "text", T, 0, 0, T, T, T },
    [UI_STYLE_TITLE] = { "title", T, R, R, T, T, T },
    [UI_STYLE_USER] = { "user", 6, B, B, 80, 24, T },
    [UI_STYLE_ANSWER] = { "answer", 2, B, B, 114, 22, T },
    [UI_STYLE_REASONING] = { "reasoning", T, D, D, 248, 241, T },
    [UI_STYLE_DIM] = { "dim", T, D, D, 247, 242, T },
    [UI_STYLE_NOTICE] = { "notice", 4, 0, 0, 111, 25, T },
    [UI_STYLE_ERROR] = { "error", 1, B, B, 210, 124, T },
    [UI_STYLE_HEAD] = { "status-name", T, B, B, T, T, T },
    [UI_STYLE_VALUE] = { "status", T, 0, 0, T, T, T },
    [UI_STYLE_GOOD] = { "good", 2, 0, 0, 114, 22, T },
    [UI_STYLE_WARN] = { "warning", 1, B, R, 210, 124, T },
    [UI_STYLE_HOT] = { "hot", 1, B, B, 210, 124, T },
    [UI_STYLE_KEY] = { "key", T, B, B, T, T, T },
    [UI_STYLE_QUEUED] = { "queued", 5, 0, U, 176, 90, T },
    [UI_STYLE_MATCH] = { "match", 3, R, R, 16, 16, 221 },
    [UI_STYLE_H1] = { "heading-1", 5, B | U, B | U, 183, 54, T },
    [UI_STYLE_H2] = { "heading-2", 5, B, B, 183, 54, T },
    [UI_STYLE_H3] = { "heading-3", 5, 0, U, 183, 54, T },
    [UI_STYLE_MARK] = { "bullet", 6, 0, B, 80, 24, T },
    [UI_STYLE_QUOTE] = { "quote", 6, 0, D, 80, 24, T },
    [UI_STYLE_LINK] = { "link", 4, U, U, 111, 25, T },
    [UI_STYLE_INLINE] = { "inline-code", 6, 0, U, 116, 23, T },
    [UI_STYLE_SURE] = { "token-sure", 2, 0, D, 114, 22, T },
    [UI_STYLE_LIKELY] = { "token-likely", T, 0, 0, T, T, T },
    [UI_STYLE_UNSURE] = { "token-unsure", 5, 0, B, 176, 90, T },
    [UI_STYLE_GUESS] = { "token-guess", 1, B, B | U, 210, 124, T },
    [UI_STYLE_CODE] = { "code", T, 0, 0, T, T, T },
    [UI_STYLE_CODE_KEYWORD] = { "code-keyword", 5, 0, B, 176, 90, T },
    [UI_STYLE_CODE_TYPE] = { "code-type", 6, 0, 0, 80, 23, T },
    [UI_STYLE_CODE_STRING] = { "code-string", 2, 0, 0, 114, 22, T },
    [UI_STYLE_CODE_NUMBER] = { "code-number", 1, 0, 0, 216, 94, T },
    [UI_STYLE_CODE_COMMENT] = { "code-comment", T, D, D, 247, 242, T },
    [UI_STYLE_CODE_DIRECTIVE] = { "code-directive", 5, 0, 0, 183, 91, T },
    [UI_STYLE_CODE_FUNCTION] = { "code-function", 4, B, 0, 111, 25, T },
    [UI_STYLE_CODE_KEY] = { "code-key", 6, 0, 0, 80, 24, T },
    [UI_STYLE_CODE_ADDED] = { "code-added", 2, 0, B, 114, 22, T },
    [UI_STYLE_CODE_REMOVED] = { "code-removed", 1, 0, D, 210, 124, T },
    [UI_STYLE_CODE_HUNK] = { "code-hunk", 6, B, U, 80, 24, T },
};

static const char *const names[] = { "auto", "dark", "light", "ansi", "mono" };

const char *ui_theme_at(size_t i) { return i < sizeof names / sizeof *names ? names[i] : NULL; }

bool ui_theme_is_built_in(const char *name) {
    for (size_t i = 0; ui_theme_at(i); i++)
        if (strcmp(ui_theme_at(i), name) == 0) return true;
    return false;
}

static UiStyleRow ansi_row(UiStyle s) {
    const Row *r = &table[s];
    return (UiStyleRow){ r->ansi, UI_COLOR_DEFAULT, r->attrs, r->mono, false };
}

/* A color replaces dimness, a background replaces reversal. */
static UiStyleRow colored_row(UiStyle s, bool light) {
    const Row *r = &table[s];
    UiStyleRow row = { light ? r->light : r->dark, r->bg, r->attrs, r->mono, false };
    if (row.fg >= 0) row.attrs &= (uint8_t)~UI_ATTR_DIM;
    if (row.bg >= 0) row.attrs &= (uint8_t)~UI_ATTR_REVERSE;
    return row;
}

bool ui_theme_begin(UiTheme *t, const char *name, UiBackground background) {
    const bool dark = strcmp(name, "dark") == 0, light = strcmp(name, "light") == 0;
    const bool mono = strcmp(name, "mono") == 0, known = ui_theme_is_built_in(name);
    const bool ask = !known || strcmp(name, "auto") == 0;
    for (int s = 0; s < UI_STYLE_COUNT; s++) {
        UiStyleRow row = ansi_row((UiStyle)s);
        if (dark || light || (ask && background != UI_BACKGROUND_UNKNOWN))
            row = colored_row((UiStyle)s, light || (ask && background == UI_BACKGROUND_LIGHT));
        if (mono) row = (UiStyleRow){ UI_COLOR_DEFAULT, UI_COLOR_DEFAULT, row.mono, row.mono, true };
        t->rows[s] = row;
    }
    return known;
}

/* ---- roles ---- */

const char *ui_theme_role(size_t i) {
    return i == UI_STYLE_COUNT ? "heading" : i < UI_STYLE_COUNT ? table[i].role : NULL;
}

static const struct {
    const char *name;
    uint8_t attr;
} attributes[] = {
    { "bold", B }, { "dim", D }, { "italic", UI_ATTR_ITALIC }, { "underline", U }, { "reverse", R }
};

static bool hex_of(const char *s, size_t len, int32_t *color) {
    static const char digits[] = "0123456789abcdef";
    int32_t value = 0;
    if (len != 7) return false;
    for (size_t i = 1; i < len; i++) {
        const char c = s[i] >= 'A' && s[i] <= 'F' ? (char)(s[i] | 32) : s[i],
                   *at = c ? strchr(digits, c) : NULL;
        if (!at) return false;
        value = value * 16 + (int32_t)(at - digits);
    }
    *color = UI_COLOR_RGB + value;
    return true;
}

static bool number_of(const char *s, size_t len, int32_t *color) {
    int32_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9' || value > 255) return false;
        value = value * 10 + (s[i] - '0');
    }
    *color = value;
    return len > 0 && value <= 255;
}

static bool is_word(const char *s, size_t len, const char *word) {
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static bool color_of(const char *s, size_t len, int32_t *color) {
    static const char *const basic[] = {
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"
    };
    const bool bright = len > 7 && memcmp(s, "bright-", 7) == 0;
    if (is_word(s, len, "default")) {
        *color = UI_COLOR_DEFAULT;
        return true;
    }
    for (int32_t i = 0; i < 8; i++) {
        if (!is_word(s + (bright ? 7 : 0), len - (bright ? 7 : 0), basic[i])) continue;
        *color = i + (bright ? 8 : 0);
        return true;
    }
    return *s == '#' ? hex_of(s, len, color) : number_of(s, len, color);
}

static uint8_t attribute_of(const char *s, size_t len) {
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (is_word(s, len, attributes[i].name)) return attributes[i].attr;
    return 0;
}

/* NULL, or what is wrong with the word of len bytes at *at. */
static const char *parse(const char *value, UiStyleRow *row, const char **at, size_t *len) {
    enum { FIRST, SECOND, AFTER } next = FIRST; /* color */
    *row = (UiStyleRow){ UI_COLOR_DEFAULT, UI_COLOR_DEFAULT, 0, 0, true };
    for (const char *p = value + strspn(value, " \t\n"); *p; p += *len, p += strspn(p, " \t\n")) {
        *at = p;
        *len = strcspn(p, " \t\n");
        const uint8_t attr = next == SECOND ? 0 : attribute_of(p, *len);
        row->attrs |= attr;
        if (attr) continue;
        if (next != SECOND && row->bg == UI_COLOR_DEFAULT && is_word(p, *len, "on")) {
            next = SECOND;
            continue;
        }
        if (next == AFTER || !color_of(p, *len, next == FIRST ? &row->fg : &row->bg))
            return next == AFTER ? "is one color too many" : "is not a color or an attribute";
        next = AFTER;
    }
    *at = "on";
    *len = 2;
    row->mono = row->attrs;
    return next == SECOND ? "is not followed by a color" : NULL;
}

bool ui_theme_set(UiTheme *t, const char *role, const char *value, char *err, size_t cap) {
    UiStyleRow row;
    const char *at = value;
    size_t len = 0;
    const bool headings = strcmp(role, "heading") == 0;
    int first = 0, last;
    while (first < UI_STYLE_COUNT && strcmp(table[first].role, role) != 0) first++;
    if (headings) first = UI_STYLE_H1;
    last = headings ? UI_STYLE_H3 : first;
    if (first == UI_STYLE_COUNT) {
        (void)snprintf(err, cap, "unknown role '%.40s'", role);
        return false;
    }
    const char *wrong = parse(value, &row, &at, &len);
    if (wrong) {
        (void)snprintf(
            err, cap,
            "%s: '%.*s' %s: expected a color (red, bright-red, default, 0 to 255, #rrggbb), on and "
            "another one, and bold, dim, italic, underline or reverse",
            role, len < 40 ? (int)len : 40, at, wrong);
        return false;
    }
    for (int s = first; t && s <= last; s++) t->rows[s] = row;
    return true;
}

/* ---- depths ---- */

static uint32_t rgb(uint32_t r, uint32_t g, uint32_t b) { return r << 16 | g << 8 | b; }

/* A color as 0xRRGGBB; of those that a terminal may define otherwise, what xterm has. */
static uint32_t rgb_of(int32_t color) {
    static const uint32_t basic[] = { 0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                      0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                      0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff };
    static const uint8_t levels[] = { 0, 95, 135, 175, 215, 255 };
    if (color >= UI_COLOR_RGB) return (uint32_t)(color - UI_COLOR_RGB);
    if (color < 0) return 0;
    if (color < 16) return basic[color];
    if (color >= 232) return rgb(1, 1, 1) * (uint32_t)(8 + 10 * (color - 232));
    color -= 16;
    return rgb(levels[color / 36 % 6], levels[color / 6 % 6], levels[color % 6]);
}

static int32_t distance(uint32_t a, uint32_t b) {
    int32_t sum = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        const int32_t d = (int32_t)(a >> shift & 255) - (int32_t)(b >> shift & 255);
        sum += d * d;
    }
    return sum;
}

static int32_t nearest(uint32_t color, int32_t from, int32_t to) {
    int32_t best = from;
    for (int32_t i = from; i < to; i++)
        if (distance(rgb_of(i), color) < distance(rgb_of(best), color)) best = i;
    return best;
}

static int32_t fit(int32_t color, UiDepth depth) {
    if (color == UI_COLOR_DEFAULT) return color;
    switch (depth) {
    case UI_DEPTH_DIRECT: return color < 8 ? color : UI_COLOR_RGB + (int32_t)rgb_of(color);
    case UI_DEPTH_256: return color < 256 ? color : nearest(rgb_of(color), 16, 256);
    case UI_DEPTH_16: return color < 16 ? color : nearest(rgb_of(color), 0, 16);
    case UI_DEPTH_8: return color < 16 ? color & 7 : nearest(rgb_of(color), 0, 8);
    case UI_DEPTH_NONE: break;
    }
    return UI_COLOR_DEFAULT;
}

UiPaint ui_theme_paint(const UiTheme *t, UiStyle s, UiDepth depth) {
    UiStyleRow row = t->rows[(unsigned)s < UI_STYLE_COUNT ? s : UI_STYLE_TEXT];
    if (depth == UI_DEPTH_NONE) return (UiPaint){ UI_COLOR_DEFAULT, UI_COLOR_DEFAULT, row.mono };
    if (depth < UI_DEPTH_256 && !row.own) row = ansi_row(s);
    return (UiPaint){ fit(row.fg, depth), fit(row.bg, depth), row.attrs };
}

/* ---- the background ---- */

/* One to four hexadecimal digits, scaled to 0..1; *at is moved past them. */
static bool channel(const char **at, const char *end, double *value) {
    static const char digits[] = "0123456789abcdef";
    unsigned n = 0, sum = 0;
    for (; *at < end && n < 4; n++, (*at)++) {
        const char c = **at >= 'A' && **at <= 'F' ? (char)(**at | 32) : **at,
                   *d = c ? strchr(digits, c) : NULL;
        if (!d) break;
        sum = sum * 16 + (unsigned)(d - digits);
    }
    if (n > 0) *value = (double)sum / (double)((1u << 4 * n) - 1);
    return n > 0;
}

UiBackground ui_theme_answer(const char *bytes, size_t len) {
    static const char head[] = "\x1b]11;rgb";
    const char *p = bytes + sizeof head - 1, *end = bytes + len;
    double c[3];
    if (len < sizeof head || memcmp(bytes, head, sizeof head - 1) != 0) return UI_BACKGROUND_UNKNOWN;
    p += *p == 'a'; /* rgba */
    for (int i = 0; i < 3; i++) {
        if (p >= end || *p++ != (i == 0 ? ':' : '/')) return UI_BACKGROUND_UNKNOWN;
        if (!channel(&p, end, &c[i])) return UI_BACKGROUND_UNKNOWN;
    }
    return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] < 0.5 ? UI_BACKGROUND_DARK : UI_BACKGROUND_LIGHT;
}

UiBackground ui_theme_colorfgbg(const char *value) {
    const char *last = value ? strrchr(value, ';') : NULL;
    int32_t color;
    if (!last || !number_of(last + 1, strlen(last + 1), &color) || color > 15) return UI_BACKGROUND_UNKNOWN;
    return color == 7 || color > 8 ? UI_BACKGROUND_LIGHT : UI_BACKGROUND_DARK;
}
