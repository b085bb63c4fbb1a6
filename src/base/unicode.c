/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grapheme clusters and cell widths over utf8proc's tables. */
#include "src/base/unicode.h"

#ifndef QSF_WITHOUT_UTF8PROC

#include <utf8proc.h>

#include "src/base/utf8.h"

#define ILL_FORMED  0xFFFFFFFFu
#define ZWJ         0x200Du
#define EMOJI_STYLE 0xFE0Fu /* variation selector 16 */

bool qsf_unicode_has_forms(void) { return true; }

bool qsf_unicode_guessed(void) { return false; }

/* The properties that determine the width of a cluster. */
typedef struct Cluster {
    int sum;          /* widths of its characters, including marks */
    int n_flags;      /* regional indicators: two make one flag */
    bool pictograph;  /* begins with an emoji character */
    bool emoji_style; /* has an emoji variation selector, joiner or skin tone */
} Cluster;

static bool is_flag_half(uint32_t cp) { return cp >= 0x1F1E6 && cp <= 0x1F1FF; }
static bool is_skin_tone(uint32_t cp) { return cp >= 0x1F3FB && cp <= 0x1F3FF; }

/* A keycap base (digit, # or *) becomes an emoji under VS16 like a pictograph does. */
static bool is_pictograph(uint32_t cp) {
    return utf8proc_get_property((utf8proc_int32_t)cp)->boundclass ==
               UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC ||
           (cp >= '0' && cp <= '9') || cp == '#' || cp == '*';
}

/* Vowels and finals of conjoining jamo: they share the cells of the leading consonant. */
static bool is_jamo_tail(uint32_t cp) {
    return (cp >= 0x1160 && cp <= 0x11FF) || (cp >= 0xD7B0 && cp <= 0xD7FF);
}

static void add_char(Cluster *c, uint32_t cp, bool first) {
    if (first) c->pictograph = is_pictograph(cp);
    if (is_flag_half(cp)) c->n_flags++;
    if (!first && (cp == EMOJI_STYLE || cp == ZWJ || is_skin_tone(cp))) c->emoji_style = true;
    if (first || !is_jamo_tail(cp)) c->sum += utf8proc_charwidth((utf8proc_int32_t)cp);
}

static int cluster_cells(const Cluster *c) {
    if (c->n_flags >= 2) return 2;
    if (c->pictograph && c->emoji_style) return 2;
    return c->sum;
}

size_t qsf_grapheme_next(const char *s, size_t len, int *cells) {
    uint32_t cp, prev;
    if (cells != NULL) *cells = 1;
    size_t at = qsf_utf8_next(s, len, &prev);
    if (at == 0 || prev == ILL_FORMED) return at;
    Cluster c = { 0 };
    add_char(&c, prev, true);
    utf8proc_int32_t state = 0;
    while (at < len) {
        size_t n = qsf_utf8_next(s + at, len - at, &cp);
        if (cp == ILL_FORMED ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)prev, (utf8proc_int32_t)cp, &state))
            break;
        add_char(&c, cp, false);
        prev = cp;
        at += n;
    }
    if (cells != NULL) *cells = cluster_cells(&c);
    return at;
}

size_t qsf_text_cells(const char *s, size_t len) {
    size_t total = 0;
    while (len > 0) {
        int cells;
        size_t n = qsf_grapheme_next(s, len, &cells);
        total += (size_t)cells;
        s += n;
        len -= n;
    }
    return total;
}

const char *qsf_unicode_category(uint32_t cp) {
    return cp > 0x10FFFF ? "Cn" : utf8proc_category_string((utf8proc_int32_t)cp);
}

uint32_t qsf_unicode_upper(uint32_t cp) {
    return cp > 0x10FFFF ? cp : (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
}

uint32_t qsf_unicode_lower(uint32_t cp) {
    return cp > 0x10FFFF ? cp : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
}

#endif
