/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages over several lines. */
#include "ui/quoted.h"

#include <string.h>

#define QUOTES "\"\"\""

static bool starts(const char *text, size_t len) { return len >= 3 && memcmp(text, QUOTES, 3) == 0; }

static bool ends(const char *text, size_t len) { return len >= 6 && memcmp(text + len - 3, QUOTES, 3) == 0; }

void ui_quoted_skip_mark(const char **text, size_t *len) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (*len < sizeof mark - 1 || memcmp(*text, mark, sizeof mark - 1) != 0) return;
    *text += sizeof mark - 1;
    *len -= sizeof mark - 1;
}

bool ui_quoted_open(const char *text, size_t len) { return starts(text, len) && !ends(text, len); }

void ui_quoted_strip(const char **text, size_t *len) {
    if (!starts(*text, *len)) return;
    bool closed = ends(*text, *len);
    *text += 3;
    *len -= closed ? 6 : 3;
    if (*len > 0 && **text == '\n') {
        (*text)++;
        (*len)--;
    }
    if (closed && *len > 0 && (*text)[*len - 1] == '\n') (*len)--;
}

bool ui_lines_feed(UiLines *l, const char *line, size_t len) {
    if (!l->inside) {
        ui_quoted_skip_mark(&line, &len);
        ui_buf_clear(&l->text);
    } else {
        ui_buf_add(&l->text, "\n", 1);
    }
    ui_buf_add(&l->text, line, len);
    l->inside = ui_quoted_open(ui_buf_str(&l->text), l->text.len);
    return !l->inside;
}

bool ui_lines_end(UiLines *l) {
    bool some = l->inside;
    l->inside = false;
    return some;
}
