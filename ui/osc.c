/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operating system commands of terminals: implements ui/osc.h. */
#include "ui/osc.h"

#include <string.h>

#define SCREEN_PIECE 76

static void base64(UiBuf *b, const char *text, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < len; i += 3) {
        const size_t n = len - i < 3 ? len - i : 3;
        const unsigned a = s[i], c = n > 1 ? s[i + 1] : 0, d = n > 2 ? s[i + 2] : 0;
        const unsigned v = a << 16 | c << 8 | d;
        const char four[4] = { digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                               n > 2 ? digits[v & 63] : '=' };
        ui_buf_add(b, four, 4);
    }
}

bool ui_osc_answered(const char *term) {
    static const char *const others[] = { "linux", "vt", "cons25", "ansi", "eterm" };
    for (size_t i = 0; term && i < sizeof others / sizeof *others; i++)
        if (strncmp(term, others[i], strlen(others[i])) == 0) return false;
    return term != NULL;
}

UiOscWrap ui_osc_wrap(const char *term, const char *tmux) {
    if (tmux && *tmux) return UI_OSC_TMUX;
    return term && strncmp(term, "screen", 6) == 0 ? UI_OSC_SCREEN : UI_OSC_PLAIN;
}

/* Every ESC in it is doubled. */
static void for_tmux(UiBuf *b, const UiBuf *sequence) {
    ui_buf_puts(b, "\x1bPtmux;");
    for (size_t i = 0; i < sequence->len; i++) {
        if (sequence->data[i] == '\x1b') ui_buf_puts(b, "\x1b");
        ui_buf_add(b, sequence->data + i, 1);
    }
    ui_buf_puts(b, "\x1b\\");
}

static void for_screen(UiBuf *b, const UiBuf *sequence) {
    for (size_t i = 0; i < sequence->len; i += SCREEN_PIECE) {
        const size_t n = sequence->len - i < SCREEN_PIECE ? sequence->len - i : SCREEN_PIECE;
        ui_buf_puts(b, "\x1bP");
        ui_buf_add(b, sequence->data + i, n);
        ui_buf_puts(b, "\x1b\\");
    }
}

void ui_osc_put(UiBuf *b, UiOscWrap wrap, const UiBuf *sequence) {
    if (sequence->failed) b->failed = true;
    if (sequence->failed) return;
    if (wrap != UI_OSC_SCREEN) ui_buf_add(b, ui_buf_str(sequence), sequence->len);
    if (wrap == UI_OSC_TMUX) for_tmux(b, sequence);
    if (wrap == UI_OSC_SCREEN) for_screen(b, sequence);
}

bool ui_osc52(UiBuf *b, UiOscWrap wrap, const char *text, size_t len) {
    UiBuf sequence = { 0 };
    if (len > UI_OSC52_MAX) return false;
    ui_buf_puts(&sequence, "\x1b]52;c;");
    base64(&sequence, text, len);
    ui_buf_puts(&sequence, "\a");
    ui_osc_put(b, wrap, &sequence);
    ui_buf_free(&sequence);
    return !b->failed;
}
