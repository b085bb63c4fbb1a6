/* SPDX-License-Identifier: GPL-3.0-or-later */
/* URLs in text that are not marked as links. They are found here and not by md4c, so that one that is still
 * being written is a link from its first characters. */
#include "ui/md/url.h"

#include <stdbool.h>
#include <string.h>

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || (unsigned char)c >= 0x80;
}

/* Bytes of what a URL begins with, 0 = something else. */
static size_t prefix(const char *s, size_t len) {
    static const char *const all[] = { "http://", "https://", "www." };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i]);
        if (len > n && memcmp(s, all[i], n) == 0 && is_word(s[n])) return n;
    }
    return 0;
}

static bool is_end(char c) {
    return (c >= 0 && c <= ' ') || c == 0x7f || c == '<' || c == '>' || c == '"' || c == '`';
}

static size_t url_length(const char *s, size_t len, size_t start) {
    size_t n = start, open = 0, closed = 0;
    for (; n < len && !is_end(s[n]); n++) {
        open += s[n] == '(';
        closed += s[n] == ')';
    }
    while (n > start) {
        const bool extra = s[n - 1] == ')' && closed > open;
        if (!extra && !strchr("?!.,:;*_~'|]", s[n - 1])) break;
        closed -= extra;
        n--;
    }
    return n;
}

size_t ui_md_url(const char *text, size_t len, size_t from, size_t *at) {
    for (size_t i = from; i < len; i++) {
        if (text[i] != 'h' && text[i] != 'w') continue;
        if (i > 0 && is_word(text[i - 1])) continue;
        const size_t start = prefix(text + i, len - i);
        if (start == 0) continue;
        *at = i;
        return url_length(text + i, len - i, start);
    }
    return 0;
}
