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

/* Bytes before the quotes: of a command whose text may be a block, too. */
static size_t before(const char *text, size_t len) {
    static const char *const commands[] = { "/system ", "/set system " };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const size_t n = strlen(commands[i]);
        if (len >= n && memcmp(text, commands[i], n) == 0) return n;
    }
    return 0;
}

bool ui_quoted_open(const char *text, size_t len) {
    const size_t n = before(text, len);
    return starts(text + n, len - n) && !ends(text + n, len - n);
}

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

bool ui_lines_at_start(const UiLines *l) { return !l->inside && !l->begun; }

void ui_lines_add(UiLines *l, const char *part, size_t len) {
    if (ui_lines_at_start(l))
        ui_text_limit_begin(&l->cut, &l->text);
    else if (!l->begun)
        ui_text_limit_add(&l->cut, &l->text, "\n", 1);
    l->begun = true;
    ui_text_limit_add(&l->cut, &l->text, part, len);
}

static void skip_mark(UiBuf *b) {
    const char *text = ui_buf_str(b);
    size_t len = b->len;
    ui_quoted_skip_mark(&text, &len);
    if (len == b->len) return;
    memmove(b->data, text, len + 1);
    b->len = len;
}

/* The message is complete. */
static bool done(UiLines *l) {
    l->inside = false;
    if (l->cut.cut) ui_text_limit_count(&l->cut, &l->text);
    return true;
}

bool ui_lines_end_line(UiLines *l) {
    UiBuf *b = &l->text;
    if (!l->begun) ui_lines_add(l, "", 0);
    l->begun = false;
    if (b->len > 0 && b->data[b->len - 1] == '\r') b->data[--b->len] = '\0';
    if (!l->inside && !l->cut.cut) skip_mark(b);
    l->inside = ui_quoted_open(ui_buf_str(b), b->len);
    return l->inside ? false : done(l);
}

bool ui_lines_feed(UiLines *l, const char *line, size_t len) {
    ui_lines_add(l, line, len);
    return ui_lines_end_line(l);
}

bool ui_lines_end(UiLines *l) { return l->inside && done(l); }
