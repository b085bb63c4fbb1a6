/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writing JSON: implements ui/json.h. */
#include "ui/json.h"

#include <string.h>

/* Length of the UTF-8 sequence at s, 0 if it is ill-formed: JSON must be UTF-8, whatever a model
 * generated. */
static size_t sequence(const char *s, size_t len) {
    unsigned char c = (unsigned char)s[0];
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
    }
    unsigned char d = n > 1 ? (unsigned char)s[1] : 0;
    bool bad = (c == 0xe0 && d < 0xa0) || (c == 0xed && d >= 0xa0) || (c == 0xf0 && d < 0x90) ||
               (c == 0xf4 && d >= 0x90);
    return bad ? 0 : n;
}

void ui_json_string(UiBuf *b, const char *s, size_t len) {
    ui_buf_puts(b, "\"");
    while (len > 0) {
        size_t n = sequence(s, len);
        unsigned char c = (unsigned char)*s;
        if (n == 0)
            ui_buf_puts(b, "\\ufffd");
        else if (c == '"' || c == '\\')
            ui_buf_printf(b, "\\%c", c);
        else if (c == '\n')
            ui_buf_puts(b, "\\n");
        else if (c < 0x20 || c == 0x7f)
            ui_buf_printf(b, "\\u%04x", c);
        else if (c == 0xc2 && (unsigned char)s[1] < 0xa0)
            ui_buf_printf(b, "\\u%04x", (unsigned char)s[1]);
        else
            ui_buf_add(b, s, n);
        s += n ? n : 1;
        len -= n ? n : 1;
    }
    ui_buf_puts(b, "\"");
}

void ui_json_field(UiBuf *b, const char *name, const char *value) {
    ui_buf_printf(b, "\"%s\": ", name);
    ui_json_string(b, value, strlen(value));
}
