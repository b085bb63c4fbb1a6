/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/token/chars.h"

#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"

size_t qsf_char_at(const char *s, size_t len, uint32_t *cp) { return qsf_utf8_next(s, len, cp); }

size_t qsf_char_before(const char *s, size_t end, uint32_t *cp) {
    for (size_t n = end < 4 ? end : 4; n > 1; n--)
        if (qsf_utf8_next(s + end - n, n, cp) == n) return n;
    return qsf_utf8_next(s + end - 1, 1, cp);
}

bool qsf_char_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= '\t' && cp <= '\r');
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Symbols with the property Other_Alphabetic: circled, squared and parenthesized Latin letters. */
static bool is_letter_symbol(uint32_t cp) {
    return (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
           (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189);
}

bool qsf_char_is_word(uint32_t cp) {
    if (cp < 0x80) return (cp | 32) - 'a' < 26u || cp - '0' < 10u || cp == '_';
    if (cp > 0x10FFFF) return false;
    const char *c = qsf_unicode_category(cp);
    return *c == 'L' || *c == 'M' || strcmp(c, "Nd") == 0 || strcmp(c, "Nl") == 0 || strcmp(c, "Pc") == 0 ||
           cp == 0x200C || cp == 0x200D || is_letter_symbol(cp);
}
