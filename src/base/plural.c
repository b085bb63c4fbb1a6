/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/plural.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* Nouns that messages count, as tests/system/plurals.sh checks. */
static const char *const nouns[] = {
    "allocation", "answer",    "argument", "block",      "branch",    "byte",      "cache",   "change",
    "channel",    "character", "column",   "command",    "day",       "dimension", "element", "entry",
    "eviction",   "exchange",  "expert",   "expression", "file",      "filter",    "folder",  "format",
    "group",      "head",      "hour",     "id",         "key",       "layer",     "level",   "line",
    "logit",      "mapping",   "merge",    "message",    "minute",    "model",     "name",    "number",
    "operator",   "outlier",   "override", "pair",       "parameter", "part",      "piece",   "position",
    "process",    "prompt",    "property", "question",   "round",     "row",       "schema",  "second",
    "session",    "slot",      "state",    "step",       "template",  "tensor",    "thread",  "time",
    "token",      "value",     "version",  "window",     "word"
};

/* Words between a number and its noun. */
static const char *const adjectives[] = { "KV",       "answer", "chat",    "embedding", "generated",
                                          "metadata", "more",   "named",   "postfix",   "prompt",
                                          "queued",   "scored", "special", "token" };

static const char *const verbs[][2] = { { "are", "is" },         { "do", "does" },    { "fit", "fits" },
                                        { "follow", "follows" }, { "have", "has" },   { "hold", "holds" },
                                        { "leave", "leaves" },   { "make", "makes" }, { "need", "needs" },
                                        { "take", "takes" },     { "use", "uses" },   { "were", "was" } };

static size_t word_length(const char *s) {
    size_t n = 0;
    while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z')) n++;
    return n;
}

static bool is_word(const char *s, size_t len, const char *word) {
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

/* Is it the plural of this noun: entries, branches, days? */
static bool is_plural(const char *s, size_t len, const char *noun) {
    const size_t n = strlen(noun);
    const char last = noun[n - 1], before = noun[n - 2];
    if (len <= n || s[len - 1] != 's') return false;
    if (last == 'y' && !strchr("aeou", before))
        return len == n + 2 && memcmp(s, noun, n - 1) == 0 && memcmp(s + n - 1, "ies", 3) == 0;
    const bool hisses = last == 's' || (last == 'h' && before == 'c');
    return len == n + (hisses ? 2 : 1) && memcmp(s, noun, n) == 0 && (!hisses || s[n] == 'e');
}

typedef struct Place {
    const char *at; /* the plural noun in the format */
    size_t len;
    const char *noun;
} Place;

/* Finds the noun that the text after a conversion begins with. */
static bool find_noun(const char *s, Place *p) {
    for (unsigned words = 0; *s == ' ' && words < 3; words++) {
        const size_t len = word_length(++s);
        bool adjective = false;
        for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++) {
            if (!is_plural(s, len, nouns[i])) continue;
            *p = (Place){ s, len, nouns[i] };
            return true;
        }
        for (size_t i = 0; i < sizeof adjectives / sizeof *adjectives; i++)
            adjective = adjective || is_word(s, len, adjectives[i]);
        if (!adjective) return false;
        s += len;
    }
    return false;
}

/* A conversion of a format, after its '%'. */
typedef struct Conversion {
    const char *end; /* the byte after it */
    bool star[2];    /* width and precision are arguments */
    int precision;   /* -1 = none, or an argument */
    char length;     /* 'H' = hh, 'L' = ll, otherwise its letter; 0 = none */
    char type;
} Conversion;

static Conversion parse(const char *s) {
    Conversion c = { .precision = -1 };
    s += strspn(s, "-+ #0'");
    if ((c.star[0] = *s == '*')) s++;
    s += strspn(s, "0123456789");
    if (*s == '.') {
        s++;
        if ((c.star[1] = *s == '*'))
            s++;
        else
            for (c.precision = 0; *s >= '0' && *s <= '9'; s++)
                if (c.precision < 1000) c.precision = c.precision * 10 + (*s - '0');
    }
    if (*s != '\0' && strchr("hljztq", *s)) {
        c.length = *s++;
        if (*s == c.length) c.length = *s++ == 'h' ? 'H' : 'L';
    }
    c.type = *s;
    c.end = *s != '\0' ? s + 1 : s;
    return c;
}

static bool is_one_text(const char *s, int precision) {
    return s != NULL && precision != 0 && s[0] == '1' && (precision == 1 || s[1] == '\0');
}

/* Takes the arguments of a conversion. *one: its value is 1. false: of a type that is not known here. */
static bool take(const Conversion *c, va_list *ap, bool *one) {
    int precision = c->precision;
    *one = false;
    if (c->star[0]) (void)va_arg(*ap, int);
    if (c->star[1]) precision = va_arg(*ap, int);
    switch (c->type) {
    case '%': return true;
    case 's': *one = is_one_text(va_arg(*ap, const char *), precision); return c->length == 0;
    case 'p': (void)va_arg(*ap, void *); return true;
    case 'c': (void)va_arg(*ap, int); return c->length == 0;
    case 'e':
    case 'f':
    case 'g': (void)va_arg(*ap, double); return c->length == 0;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X': break;
    default: return false;
    }
    switch (c->length) { /* signed and unsigned integers are passed alike */
    case 0:
    case 'h':
    case 'H': *one = va_arg(*ap, unsigned) == 1; return true;
    case 'l': *one = va_arg(*ap, unsigned long) == 1; return true;
    case 'L': *one = va_arg(*ap, unsigned long long) == 1; return true;
    case 'j': *one = va_arg(*ap, uintmax_t) == 1; return true;
    case 'z':
    case 't': *one = va_arg(*ap, size_t) == 1; return true;
    default: return false;
    }
}

/* Whether any number of the format counts something: most do not. */
static bool counts(const char *fmt) {
    Place p;
    for (const char *s = fmt; (s = strchr(s, '%')) != NULL;) {
        s = parse(s + 1).end;
        if (find_noun(s, &p)) return true;
    }
    return false;
}

/* Appends to buf, as far as there is space; what does not fit makes *n QSF_PLURAL_FORMAT. */
static void put(char *buf, size_t *n, const char *s, size_t len) {
    if (*n + len >= QSF_PLURAL_FORMAT) {
        *n = QSF_PLURAL_FORMAT;
        return;
    }
    memcpy(buf + *n, s, len);
    *n += len;
}

/* The singular noun, and the verb after it. Returns the rest of the format. */
static const char *put_singular(char *buf, size_t *n, const Place *p) {
    const char *rest = p->at + p->len;
    put(buf, n, p->noun, strlen(p->noun));
    const size_t len = *rest == ' ' ? word_length(rest + 1) : 0;
    for (size_t i = 0; len > 0 && i < sizeof verbs / sizeof *verbs; i++) {
        if (!is_word(rest + 1, len, verbs[i][0])) continue;
        put(buf, n, " ", 1);
        put(buf, n, verbs[i][1], strlen(verbs[i][1]));
        return rest + 1 + len;
    }
    return rest;
}

/* Copies fmt with what is singular. false: nothing is, or it cannot be changed. */
static bool rewrite(char *buf, const char *fmt, va_list *ap) {
    const char *from = fmt; /* not copied yet */
    size_t n = 0;
    bool any = false;
    Place p;
    for (const char *s = fmt; (s = strchr(s, '%')) != NULL;) {
        const Conversion c = parse(s + 1);
        bool one;
        if (!take(&c, ap, &one)) return false;
        s = c.end;
        if (!one || !find_noun(s, &p)) continue;
        put(buf, &n, from, (size_t)(p.at - from));
        from = s = put_singular(buf, &n, &p);
        any = true;
    }
    put(buf, &n, from, strlen(from) + 1);
    return any && n < QSF_PLURAL_FORMAT;
}

const char *qsf_plural_format(char buf[QSF_PLURAL_FORMAT], const char *fmt, va_list ap) {
    if (!counts(fmt)) return fmt;
    va_list again;
    va_copy(again, ap);
    const bool changed = rewrite(buf, fmt, &again);
    va_end(again);
    return changed ? buf : fmt;
}

int qsf_plural_vsnprintf(char *dst, size_t cap, const char *fmt, va_list ap) {
    char buf[QSF_PLURAL_FORMAT];
    return vsnprintf(dst, cap, qsf_plural_format(buf, fmt, ap), ap);
}

int qsf_plural_snprintf(char *dst, size_t cap, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = qsf_plural_vsnprintf(dst, cap, fmt, ap);
    va_end(ap);
    return n;
}

int qsf_plural_vfprintf(FILE *to, const char *fmt, va_list ap) {
    char buf[QSF_PLURAL_FORMAT];
    return vfprintf(to, qsf_plural_format(buf, fmt, ap), ap);
}

int qsf_plural_fprintf(FILE *to, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = qsf_plural_vfprintf(to, fmt, ap);
    va_end(ap);
    return n;
}
