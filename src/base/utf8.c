/* SPDX-License-Identifier: GPL-3.0-or-later */
/* UTF-8 decoding by the table of well-formed sequences (The Unicode Standard, table 3-7). */
#include "src/base/utf8.h"

#include <string.h>

#include "src/base/interrupt.h"

#define ILL_FORMED 0xFFFFFFFFu

/* Returns the sequence length for a first byte, 0 if no well-formed sequence begins with it. */
static size_t lead_length(unsigned char b) {
    if (b < 0x80) return 1;
    if (b >= 0xC2 && b <= 0xDF) return 2;
    if (b >= 0xE0 && b <= 0xEF) return 3;
    if (b >= 0xF0 && b <= 0xF4) return 4;
    return 0;
}

/* Returns whether b may follow the first byte lead: the second byte rules out overlong forms,
 * surrogates and values past U+10FFFF. */
static bool second_ok(unsigned char lead, unsigned char b) {
    unsigned char lo = 0x80, hi = 0xBF;
    if (lead == 0xE0) lo = 0xA0;
    if (lead == 0xED) hi = 0x9F;
    if (lead == 0xF0) lo = 0x90;
    if (lead == 0xF4) hi = 0x8F;
    return b >= lo && b <= hi;
}

size_t qsf_utf8_next(const char *s, size_t len, uint32_t *cp) {
    if (len == 0) return 0;
    const unsigned char *p = (const unsigned char *)s;
    size_t n = lead_length(p[0]);
    if (n == 1) {
        *cp = p[0];
        return 1;
    }
    *cp = ILL_FORMED;
    if (n == 0 || n > len || !second_ok(p[0], p[1])) return 1;
    uint32_t v = p[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 1;
        v = v << 6 | (p[i] & 0x3Fu);
    }
    *cp = v;
    return n;
}

size_t qsf_utf8_put(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    out[0] = (char)((0xF00u >> n & 0xF0u) | cp);
    return n;
}

bool qsf_utf8_valid(const char *s, size_t len) {
    while (len > 0) {
        uint32_t cp;
        size_t n = qsf_utf8_next(s, len, &cp);
        if (cp == ILL_FORMED) return false;
        s += n;
        len -= n;
    }
    return true;
}

size_t qsf_utf8_run(const char *s, size_t len, bool *ok) {
    uint32_t cp = 0;
    size_t n = qsf_utf8_next(s, len, &cp);
    *ok = cp != 0xFFFFFFFFu;
    for (unsigned i = 1; n < len; i++) {
        size_t step = qsf_utf8_next(s + n, len - n, &cp);
        if ((cp != 0xFFFFFFFFu) != *ok || (i % 65536 == 0 && qsf_interrupted())) break;
        n += step;
    }
    return n;
}

size_t qsf_utf8_bom(const char *s, size_t len) {
    return len >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

size_t qsf_utf8_incomplete_tail(const char *s, size_t len) {
    const unsigned char *p = (const unsigned char *)s;
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char b = p[len - back];
        if ((b & 0xC0) == 0x80) continue;
        if (lead_length(b) <= back) return 0;
        return back == 1 || second_ok(b, p[len - back + 1]) ? back : 0;
    }
    return 0;
}

bool qsf_utf8_is_hidden(uint32_t cp) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x061C, 0x061C }, { 0x200E, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x2060 },
        { 0x2066, 0x206F }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE007F },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last) return true;
    return false;
}

/* Characters that control a terminal, or make a line display differently from its byte order. */
static bool is_control(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7F && cp <= 0x9F) || qsf_utf8_is_hidden(cp);
}

size_t qsf_utf8_clean(char *s, size_t len, bool keep_newlines) {
    size_t out = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = qsf_utf8_next(s + i, len - i, &cp);
        if (cp == '\n' && keep_newlines) {
            s[out++] = '\n';
        } else if (cp == ILL_FORMED || is_control(cp)) {
            s[out++] = '?';
        } else {
            for (size_t k = 0; k < n; k++) s[out++] = s[i + k];
        }
        i += n;
    }
    return out;
}
