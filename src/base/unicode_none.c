/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces unicode.c in builds without utf8proc: supports ASCII only. */
#include "src/base/unicode.h"

#ifdef QSF_WITHOUT_UTF8PROC

#include "src/base/utf8.h"

static _Thread_local bool guessed;

bool qsf_unicode_has_forms(void) { return false; }

bool qsf_unicode_guessed(void) {
    bool was = guessed;
    guessed = false;
    return was;
}

/* Treats each character as a separate cluster, one cell wide; layout may be misaligned. */
size_t qsf_grapheme_next(const char *s, size_t len, int *cells) {
    uint32_t cp;
    size_t n = qsf_utf8_next(s, len, &cp);
    if (cells != NULL) *cells = n == 1 && ((unsigned char)*s < 32 || *s == 127) ? 0 : 1;
    return n;
}

size_t qsf_text_cells(const char *s, size_t len) {
    size_t total = 0;
    for (int cells; len > 0; total += (size_t)cells) {
        size_t n = qsf_grapheme_next(s, len, &cells);
        s += n;
        len -= n;
    }
    return total;
}

char *qsf_normal_form(const char *s, size_t len, QsfNormalForm form, size_t *out_len) {
    return (void)s, (void)len, (void)form, (void)out_len, NULL;
}

static bool among(uint32_t cp, const char *set) {
    while (*set != '\0' && (unsigned char)*set != cp) set++;
    return *set != '\0';
}

const char *qsf_unicode_category(uint32_t cp) {
    if (cp >= 128) {
        guessed = guessed || cp <= 0x10FFFF;
        return "Cn";
    }
    if (cp < 32 || cp == 127) return "Cc";
    if (cp - 'A' < 26u) return "Lu";
    if (cp - 'a' < 26u) return "Ll";
    if (cp - '0' < 10u) return "Nd";
    static const struct {
        const char *category, *characters;
    } rest[] = {
        { "Zs", " " }, { "Sc", "$" }, { "Sk", "^`" },  { "Sm", "+<=>|~" },
        { "Pc", "_" }, { "Pd", "-" }, { "Ps", "([{" }, { "Pe", ")]}" },
    };
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        if (among(cp, rest[i].characters)) return rest[i].category;
    return "Po";
}

uint32_t qsf_unicode_upper(uint32_t cp) {
    guessed = guessed || (cp >= 128 && cp <= 0x10FFFF);
    return cp - 'a' < 26u ? cp - 32 : cp;
}

uint32_t qsf_unicode_lower(uint32_t cp) {
    guessed = guessed || (cp >= 128 && cp <= 0x10FFFF);
    return cp - 'A' < 26u ? cp + 32 : cp;
}

#endif
