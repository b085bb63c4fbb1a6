/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Word wrap by terminal cells. */
#include "ui/wrap.h"

#include <stdbool.h>

#include "qsf_text.h"

size_t ui_wrap_step(const char *s, size_t len, int col, int *cells) {
    if (len > 0 && *s == '\t') {
        *cells = UI_TAB - col % UI_TAB;
        return 1;
    }
    /* Most text is ASCII: grapheme clusters need not be searched if nothing can combine. */
    if (len > 1 && *s >= 0x20 && *s < 0x7f && (unsigned char)s[1] < 0x80) {
        *cells = 1;
        return 1;
    }
    return qsf_text_grapheme(s, len, cells);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Cells before the words of a paragraph that starts with blanks, "- ", "* ", "+ " or "12. ". */
static unsigned hanging(const char *s, size_t len, int width) {
    size_t i = 0;
    while (i < len && s[i] == ' ') i++;
    size_t at = i;
    if (i + 1 < len && (s[i] == '-' || s[i] == '*' || s[i] == '+') && s[i + 1] == ' ') {
        at = i + 2;
    } else {
        size_t j = i;
        while (j < len && j < i + 3 && is_digit(s[j])) j++;
        if (j > i && j + 1 < len && (s[j] == '.' || s[j] == ')') && s[j + 1] == ' ') at = j + 2;
    }
    return width > 0 && at <= (size_t)width / 3 ? (unsigned)at : 0;
}

size_t ui_wrap_next(const char *s, size_t len, size_t off, unsigned indent, int width, UiLine *line,
                    unsigned *next_indent) {
    int col = (int)indent;
    if (width < 1) width = 1;
    size_t i = off, after_blank = 0, before_blank = 0;
    bool word = false; /* never break at leading blanks */
    bool paragraph = off == 0 || s[off - 1] == '\n';
    *next_indent = paragraph ? hanging(s + off, len - off, width) : indent;
    *line = (UiLine){ .off = off, .indent = indent };
    while (i < len && s[i] != '\n') {
        int cells = 0;
        size_t n = ui_wrap_step(s + i, len - i, col, &cells);
        if (n == 0) break;
        bool blank = s[i] == ' ' || s[i] == '\t';
        if (col + cells > width && !blank) {
            /* A wide character in a one-cell window must be placed somewhere. */
            size_t cut = after_blank > off ? after_blank : i > off ? i : i + n;
            size_t end = after_blank > off ? before_blank : cut;
            line->len = (unsigned)(end - off);
            return cut;
        }
        if (blank && word) {
            if (after_blank != i) before_blank = i;
            after_blank = i + n;
        } else if (cells == 2) {
            /* CJK text has no blanks: it breaks after any wide character. */
            before_blank = after_blank = i + n;
        }
        word = word || !blank;
        col += cells;
        i += n;
    }
    line->len = (unsigned)((after_blank == i && i > off && col > width ? before_blank : i) - off);
    if (i < len && s[i] == '\n') {
        *next_indent = 0;
        return i + 1;
    }
    return len;
}
