/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grapheme clusters, cell widths and normal forms over utf8proc's tables. */
#include "src/base/unicode.h"

#ifndef QSF_WITHOUT_UTF8PROC

#include <stdlib.h>
#include <utf8proc.h>

#include "src/base/interrupt.h"
#include "src/base/strbuf.h"
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

/* --- normal forms (UAX #15) over utf8proc's tables, in time that grows with the length of a text only:
 * utf8proc's own function sorts a run of marks by exchanging neighbours, which is quadratic --- */

#define NONE        0xFFFFFFFFu
#define CLASS_SHIFT 21   /* above a code point */
#define LONGEST     32   /* characters that one is decomposed into: 18 in Unicode 16 */
#define CHECK_EVERY 4096 /* characters between two looks at the interrupt flag; a power of 2 */

/* What has been read and not written yet: a starter and the marks after it. */
typedef struct Former {
    QsfStrbuf out;
    bool compose, stop;
    utf8proc_option_t options;
    uint32_t starter;      /* or NONE */
    uint32_t *mark;        /* (n) in the order of the text: class << CLASS_SHIFT | code point; 0 = composed */
    size_t n, left, cap;   /* left: those that were not composed */
    uint32_t classes[256]; /* marks by class, as they were read */
    bool sorted;
} Former;

static unsigned class_of(uint32_t cp) {
    return (unsigned)utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
}

/* The character composed of two, or NONE. */
static uint32_t pair(uint32_t a, uint32_t b) {
    utf8proc_int32_t both[2] = { (utf8proc_int32_t)a, (utf8proc_int32_t)b };
    const utf8proc_option_t how = UTF8PROC_COMPOSE | UTF8PROC_STABLE;
    return utf8proc_normalize_utf32(both, 2, how) == 1 ? (uint32_t)both[0] : NONE;
}

/* Whether a starter may be composed with one before it: vowel signs, conjoining jamo, Kirat Rai vowels. */
static bool may_join(uint32_t cp) {
    if (cp < 0x300) return false;
    if ((cp >= 0x1160 && cp <= 0x11FF) || (cp >= 0x16D63 && cp <= 0x16D6A)) return true;
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC;
}

static bool stopped(Former *f, size_t i) {
    if (i % CHECK_EVERY == 0 && qsf_interrupted()) f->stop = true;
    return f->stop;
}

/* Composes the marks with the starter. In the order of their classes, the first mark of a class that cannot
 * be composed blocks the others of that class, and no others. */
static void compose_marks(Former *f) {
    if (!f->compose || f->starter == NONE) return;
    for (unsigned c = 1; c < 256; c++) {
        size_t i = 0;
        for (uint32_t due = f->classes[c]; due > 0 && !stopped(f, i); i++) {
            if (f->mark[i] >> CLASS_SHIFT != c) continue;
            const uint32_t whole = pair(f->starter, f->mark[i] & ((1u << CLASS_SHIFT) - 1));
            if (whole == NONE) break;
            f->starter = whole;
            f->mark[i] = 0;
            f->left--;
            due--;
        }
    }
}

/* Writes the marks of a class, 0 = of all. */
static void write_marks(Former *f, unsigned c) {
    uint32_t due = c > 0 ? f->classes[c] : (uint32_t)f->n;
    for (size_t i = 0; i < f->n && due > 0 && !stopped(f, i); i++) {
        const uint32_t of = f->mark[i] >> CLASS_SHIFT;
        if (of == 0 || (c > 0 && of != c)) continue;
        qsf_strbuf_add_utf8(&f->out, f->mark[i] & ((1u << CLASS_SHIFT) - 1));
        due--;
    }
}

static void write_run(Former *f) {
    if (f->starter != NONE) qsf_strbuf_add_utf8(&f->out, f->starter);
    if (f->left > 0 && f->sorted) write_marks(f, 0);
    for (unsigned c = 1; f->left > 0 && !f->sorted && c < 256; c++) write_marks(f, c);
    for (unsigned c = 0; f->n > 0 && c < 256; c++) f->classes[c] = 0;
    f->starter = NONE;
    f->n = f->left = 0;
    f->sorted = true;
}

static void add_mark(Former *f, uint32_t cp, unsigned c) {
    if (f->n == f->cap) {
        const size_t cap = f->cap < 64 ? 64 : f->cap + f->cap / 2;
        uint32_t *mark = realloc(f->mark, cap * sizeof *mark);
        f->out.failed = f->out.failed || mark == NULL;
        if (mark == NULL) return;
        f->mark = mark;
        f->cap = cap;
    }
    f->sorted = f->sorted && (f->n == 0 || f->mark[f->n - 1] >> CLASS_SHIFT <= c);
    f->mark[f->n++] = (uint32_t)c << CLASS_SHIFT | cp;
    f->left++;
    f->classes[c]++;
}

static void add_starter(Former *f, uint32_t cp) {
    if (f->n > 0) compose_marks(f);
    if (f->compose && f->starter != NONE && f->left == 0 && may_join(cp)) {
        const uint32_t whole = pair(f->starter, cp);
        if (whole != NONE) {
            f->starter = whole;
            for (unsigned c = 0; f->n > 0 && c < 256; c++) f->classes[c] = 0;
            f->n = 0;
            return;
        }
    }
    write_run(f);
    f->starter = cp;
}

static void add_decomposed(Former *f, uint32_t cp) {
    utf8proc_int32_t part[LONGEST];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, part, LONGEST, f->options, &boundary);
    if (n < 0 || n > LONGEST) f->out.failed = true; /* not a character: the caller has checked it */
    for (utf8proc_ssize_t i = 0; i < n && n <= LONGEST; i++) {
        const unsigned c = class_of((uint32_t)part[i]);
        if (c > 0)
            add_mark(f, (uint32_t)part[i], c);
        else
            add_starter(f, (uint32_t)part[i]);
    }
}

/* ASCII characters are starters that nothing is composed to: all but the last can be written. */
static size_t add_ascii(Former *f, const char *s, size_t len) {
    size_t n = 0;
    const size_t most = len < CHECK_EVERY ? len : CHECK_EVERY;
    while (n < most && (unsigned char)s[n] < 0x80) n++;
    if (n == 0) return 0;
    add_starter(f, (unsigned char)s[0]);
    if (n == 1) return 1;
    write_run(f);
    qsf_strbuf_add(&f->out, s + 1, n - 2);
    f->starter = (unsigned char)s[n - 1];
    return n;
}

char *qsf_normal_form(const char *s, size_t len, QsfNormalForm form, size_t *out_len) {
    const bool compat = form == QSF_NFKC || form == QSF_NFKD;
    Former f = {
        .compose = form == QSF_NFC || form == QSF_NFKC,
        .options = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0),
        .starter = NONE,
        .sorted = true,
    };
    size_t at = 0, n;
    for (size_t chars = 0; at < len && !f.out.failed && !stopped(&f, chars); at += n, chars++) {
        uint32_t cp;
        if ((n = add_ascii(&f, s + at, len - at)) > 0) {
            if (qsf_interrupted()) f.stop = true;
            continue;
        }
        n = qsf_utf8_next(s + at, len - at, &cp);
        if (cp == NONE) break;
        add_decomposed(&f, cp);
    }
    const bool all = at == len && !f.stop;
    if (all && f.n > 0) compose_marks(&f);
    if (all) write_run(&f);
    free(f.mark);
    qsf_strbuf_add(&f.out, "", 0);
    if (!all || f.stop || !qsf_strbuf_ok(&f.out)) {
        qsf_strbuf_free(&f.out);
        return NULL;
    }
    return qsf_strbuf_take(&f.out, out_len);
}

#endif
