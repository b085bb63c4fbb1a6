/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Long pastes in the input line. */
#include "ui/compose/folds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/format.h"

static const char head[] = "\xf4\x8f\xbf"; /* of U+10FFC0 in UTF-8; the last byte is 0x80 and the index */

static bool ends_line(const char *text, size_t len, size_t i) {
    return text[i] == '\n' || (text[i] == '\r' && !(i + 1 < len && text[i + 1] == '\n'));
}

size_t ui_fold_lines(const char *text, size_t len) {
    size_t n = len > 0 && !ends_line(text, len, len - 1);
    for (size_t i = 0; i < len; i++) n += ends_line(text, len, i);
    return n;
}

bool ui_folds_add(UiFolds *f, UiFold fold, char *dst) {
    size_t i = 0;
    while (i < UI_FOLDS && f->items[i].text) i++;
    if (i == UI_FOLDS) return false;
    f->items[i] = fold;
    f->bytes += fold.len;
    memcpy(dst, head, UI_FOLD_BYTES - 1);
    dst[UI_FOLD_BYTES - 1] = (char)(0x80 + i);
    return true;
}

int ui_fold_at(const char *text, size_t len) {
    if (len < UI_FOLD_BYTES || memcmp(text, head, UI_FOLD_BYTES - 1) != 0) return -1;
    const int i = (unsigned char)text[UI_FOLD_BYTES - 1] - 0x80;
    return i < UI_FOLDS ? i : -1;
}

void ui_fold_label(const UiFolds *f, int i, char *dst, size_t cap) {
    const UiFold *p = &f->items[i];
    char tokens[32];
    ui_format_count(p->tokens, tokens, sizeof tokens);
    if (!p->text)
        (void)snprintf(dst, cap, "[pasted text that was sent]");
    else if (p->tokens < 0)
        (void)qsf_text_snprintf(dst, cap, "[pasted %zu lines]", p->lines);
    else
        (void)qsf_text_snprintf(dst, cap, "[pasted %zu lines, %s%s tokens]", p->lines,
                                p->about ? "about " : "", tokens);
}

/* The next paste at or after *at, -1 = none; *at: where it is, or len. */
static int next(const char *text, size_t len, size_t *at) {
    for (; *at < len; (*at)++) {
        const char *c = memchr(text + *at, head[0], len - *at);
        if (!c) break;
        *at = (size_t)(c - text);
        const int i = ui_fold_at(c, len - *at);
        if (i >= 0) return i;
    }
    *at = len;
    return -1;
}

bool ui_folds_any(const char *text, size_t len) {
    size_t at = 0;
    return next(text, len, &at) >= 0;
}

void ui_folds_expand(const UiFolds *f, const char *text, size_t len, UiBuf *out) {
    size_t from = 0, at = 0;
    for (int i; (i = next(text, len, &at)) >= 0; from = at += UI_FOLD_BYTES) {
        ui_buf_add(out, text + from, at - from);
        if (f->items[i].text) ui_buf_add(out, f->items[i].text, f->items[i].len);
    }
    ui_buf_add(out, text + from, len - from);
}

size_t ui_folds_size(const UiFolds *f, const char *text, size_t len, int64_t *tokens) {
    size_t at = 0, size = len;
    *tokens = 0;
    for (int i; (i = next(text, len, &at)) >= 0; at += UI_FOLD_BYTES) {
        size += f->items[i].len - UI_FOLD_BYTES;
        if (f->items[i].tokens > 0) *tokens += f->items[i].tokens;
    }
    return size;
}

void ui_folds_clean(char *text, size_t len) {
    for (size_t at = 0; next(text, len, &at) >= 0; at += UI_FOLD_BYTES) memset(text + at, '?', UI_FOLD_BYTES);
}

void ui_folds_keep(UiFolds *f, const char *line, size_t len) {
    bool used[UI_FOLDS] = { false };
    size_t at = 0;
    for (int i; (i = next(line, len, &at)) >= 0; at += UI_FOLD_BYTES) used[i] = true;
    for (size_t i = 0; i < UI_FOLDS; i++) {
        if (used[i] || !f->items[i].text) continue;
        f->bytes -= f->items[i].len;
        free(f->items[i].text);
        f->items[i] = (UiFold){ 0 };
    }
}
