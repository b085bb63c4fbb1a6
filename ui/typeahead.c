/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/typeahead.h"

#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "qsf_text.h"

static bool kept; /* NOFLSH was set here */

void ui_typeahead_keep(void) {
    struct termios t;
    if (kept || tcgetattr(STDIN_FILENO, &t) != 0 || (t.c_lflag & NOFLSH)) return;
    t.c_lflag |= NOFLSH;
    kept = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

void ui_typeahead_restore(void) {
    struct termios t;
    if (!kept || tcgetattr(STDIN_FILENO, &t) != 0) return;
    t.c_lflag &= ~(tcflag_t)NOFLSH;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
    kept = false;
}

/* Bytes of a key that is not text, such as an arrow: ESC [ 1 ; 5 A. */
static size_t key_length(const char *s, size_t len) {
    size_t n = 1;
    if (s[0] != '\x1b' || len < 2) return n;
    if (s[n++] != '[') return s[1] == 'O' && len > 2 ? 3 : n;
    while (n < len && (unsigned char)s[n] < 0x40) n++;
    return n < len ? n + 1 : n;
}

/* Keys that are not text are left out. Enter is a newline or, where the terminal does not translate it, a
 * carriage return. */
static void add_clean(UiBuf *out, const UiBuf *typed) {
    UiBuf text = { 0 };
    const char *s = ui_buf_str(typed);
    for (size_t i = 0; i < typed->len;) {
        const unsigned char c = (unsigned char)s[i];
        const bool enter = c == '\r' || c == '\n', control = c < ' ' && c != '\t';
        if (enter || (!control && c != 0x7f)) ui_buf_add(&text, enter ? "\n" : &s[i], 1);
        i += control && !enter ? key_length(s + i, typed->len - i) : 1;
    }
    char *clean = qsf_clean_dup(ui_buf_str(&text), text.len, false);
    if (clean) ui_buf_puts(out, clean);
    free(clean);
    ui_buf_free(&text);
}

void ui_typeahead_take(UiBuf *out) {
    struct termios lines, bytes;
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    UiBuf typed = { 0 };
    char part[1024];
    if (tcgetattr(STDIN_FILENO, &lines) != 0) return;
    bytes = lines;
    bytes.c_lflag &= ~(tcflag_t)ICANON; /* otherwise a line without its end stays there */
    bytes.c_cc[VMIN] = 0;
    bytes.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &bytes) != 0) return;
    while (poll(&p, 1, 0) > 0 && (p.revents & POLLIN)) {
        const ssize_t n = read(STDIN_FILENO, part, sizeof part);
        if (n <= 0) break;
        ui_buf_add(&typed, part, (size_t)n);
    }
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &lines);
    add_clean(out, &typed);
    ui_buf_free(&typed);
}
