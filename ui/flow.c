/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streamed text, broken at words. */
#include "ui/flow.h"

#include <string.h>

#include "qsf_text.h"

#define WORD_MAX 256 /* bytes that wait for the end of a word */

static void put(UiFlow *f, const char *s, size_t len) { f->write(f->arg, s, len); }

static bool is_fence(const char *s, size_t len) {
    return len >= 3 && (memcmp(s, "```", 3) == 0 || memcmp(s, "~~~", 3) == 0);
}

static void put_word(UiFlow *f) {
    const char *word = ui_buf_str(&f->word);
    const size_t len = f->word.len;
    if (len == 0) return;
    const int cells = (int)qsf_text_width(word, len);
    if (!f->inside && is_fence(word, len)) f->code = !f->code;
    if (f->width > 0 && !f->code && f->col > 0 && f->col + f->blanks + cells > f->width) {
        put(f, "\n", 1);
        f->col = f->blanks = 0;
    }
    f->col += f->blanks + cells;
    for (; f->blanks > 0; f->blanks--) put(f, " ", 1);
    put(f, word, len);
    if (f->width > 0 && f->col > f->width) f->col %= f->width; /* the terminal has broken it */
    f->inside = true;
    ui_buf_clear(&f->word);
}

static void end_line(UiFlow *f) {
    put_word(f);
    for (; f->blanks > 0; f->blanks--) put(f, " ", 1);
    put(f, "\n", 1);
    f->col = 0;
    f->inside = false;
}

/* U+3000 to U+D7FF: lines break beside them without blanks. */
static bool is_wide(char c) { return (unsigned char)c >= 0xe3 && (unsigned char)c <= 0xed; }

void ui_flow_add(UiFlow *f, const char *s, size_t len) {
    for (size_t i = 0, n; i < len; i += n) {
        n = 1;
        if (s[i] == '\n') {
            end_line(f);
        } else if (s[i] == ' ') {
            put_word(f);
            f->blanks++;
        } else if (is_wide(s[i]) && len - i >= 3) {
            put_word(f);
            ui_buf_add(&f->word, s + i, n = 3);
            put_word(f);
        } else {
            ui_buf_add(&f->word, s + i, 1);
            const bool whole = i + 1 == len || ((unsigned char)s[i + 1] & 0xc0) != 0x80;
            if (f->word.len >= WORD_MAX && whole) put_word(f);
        }
    }
}

void ui_flow_end(UiFlow *f) {
    put_word(f);
    ui_buf_free(&f->word);
}
