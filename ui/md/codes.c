/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The blocks of code of a text. */
#include <string.h>

#include "ui/md/parse.h"
#include "ui/md/split.h"

static bool contents(const UiMdDoc *d, const char *text, const UiMdBlock *b, UiBuf *out) {
    ui_buf_clear(out);
    for (uint32_t i = 0; i < b->n; i++) {
        const UiMdRun *run = &d->runs[b->run + i];
        if (!ui_buf_add(out, ui_md_text(d, text, run), run->len)) return false;
    }
    return true;
}

static size_t first_word(const char *s, size_t len) {
    size_t n = 0;
    while (n < len && s[n] != ' ' && s[n] != '\t') n++;
    return n;
}

size_t ui_md_codes(const char *text, size_t len, bool (*fn)(void *arg, const UiMdCode *code), void *arg) {
    UiMdDoc d = { 0 };
    UiBuf lines = { 0 }, spaced = { 0 };
    size_t calls = 0;
    bool more = ui_md_spaced(&spaced, text, len) &&
                ui_md_parse(&d, ui_buf_str(&spaced), spaced.len, spaced.len, false);
    for (size_t i = 0; i < d.n_blocks && more; i++) {
        const UiMdBlock *b = &d.blocks[i];
        if (b->kind != UI_MD_CODE || !contents(&d, ui_buf_str(&spaced), b, &lines)) continue;
        const char *info = ui_buf_str(&d.own) + b->info;
        const UiMdCode code = { .number = b->number,
                                .info = info,
                                .info_len = b->info_len,
                                .lang_len = first_word(info, b->info_len),
                                .text = ui_buf_str(&lines),
                                .len = lines.len };
        more = fn(arg, &code);
        calls++;
    }
    ui_buf_free(&lines);
    ui_buf_free(&spaced);
    ui_md_free(&d);
    return calls;
}
