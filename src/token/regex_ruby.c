/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/token/regex_ruby.h"

#include <stdlib.h>
#include <string.h>

#define WORD "\\p{L}\\p{M}\\p{N}\\p{Pc}"

typedef struct Rewriter {
    QsfStrbuf *out;
    const char *p; /* the rest */
    bool in_class;
    QsfErr *err;
} Rewriter;

static int refuse(const Rewriter *r, const char *what, size_t len) {
    return qsf_err_set(r->err, QSF_E_RUNTIME, "regular expression: \"%.*s\" is not supported", (int)len,
                       what);
}

static void copy(Rewriter *r, size_t n) {
    qsf_strbuf_add(r->out, r->p, n);
    r->p += n;
}

static int write_instead(Rewriter *r, const char *s, size_t n) {
    qsf_strbuf_adds(r->out, s);
    r->p += n;
    return QSF_OK;
}

/* \uHHHH */
static int code_point(Rewriter *r) {
    static const char hex[] = "0123456789abcdefABCDEF";
    if (strspn(r->p + 2, hex) < 4) return refuse(r, r->p, 2);
    qsf_strbuf_addf(r->out, "\\x{%.4s}", r->p + 2);
    r->p += 6;
    return QSF_OK;
}

static int escape(Rewriter *r) {
    const char c = r->p[1];
    const char *close;
    switch (c) {
    case 'w': return write_instead(r, r->in_class ? WORD : "[" WORD "]", 2);
    case 'W': return r->in_class ? refuse(r, "\\W in a class", 13) : write_instead(r, "[^" WORD "]", 2);
    case 'b':
        if (r->in_class) break;
        return write_instead(r, "(?:(?<=[" WORD "])(?![" WORD "])|(?<![" WORD "])(?=[" WORD "]))", 2);
    case 'B': return write_instead(r, "(?:(?<=[" WORD "])(?=[" WORD "])|(?<![" WORD "])(?![" WORD "]))", 2);
    case 'u': return code_point(r);
    case 'h':
    case 'H':
    case 'y':
    case 'Y':
    case 'O':
    case 'N':
    case 'K': return refuse(r, r->p, 2);
    case 'p':
    case 'P':
    case 'x':
        close = r->p[2] == '{' ? strchr(r->p, '}') : NULL;
        copy(r, close != NULL ? (size_t)(close - r->p) + 1 : 2);
        return QSF_OK;
    default: break;
    }
    copy(r, c != '\0' ? 2 : 1);
    return QSF_OK;
}

static int class_char(Rewriter *r) {
    if (r->p[0] == '[' && r->p[1] == ':') {
        const char *close = strstr(r->p, ":]");
        if (close == NULL) return refuse(r, "[:", 2);
        copy(r, (size_t)(close - r->p) + 2);
        return QSF_OK;
    }
    if (r->p[0] == '[') return refuse(r, "a class in a class", 18);
    if (r->p[0] == '&' && r->p[1] == '&') return refuse(r, "&&", 2);
    if (r->p[0] == ']') r->in_class = false;
    copy(r, 1);
    return QSF_OK;
}

/* {n}, {n,}, {,m} and {n,m}: a + after one repeats it, where in PCRE2 it forbids backtracking. */
static int braces(Rewriter *r) {
    static const char digits[] = "0123456789";
    const char *low = r->p + 1, *after = low + strspn(low, digits);
    const bool comma = *after == ',';
    const char *high = after + comma, *close = high + strspn(high, digits);
    if (*close != '}' || close == r->p + 1 || (comma && close == r->p + 2)) {
        copy(r, 1); /* not a quantifier */
        return QSF_OK;
    }
    const bool no_low = after == low, repeats = close[1] == '+', large = strlen(low) > 6 && close - low > 12;
    if (!repeats && !no_low) {
        copy(r, (size_t)(close - r->p) + 1);
        return QSF_OK;
    }
    const long n = no_low ? 0 : strtol(low, NULL, 10);
    if (!repeats) {
        qsf_strbuf_addf(r->out, "{0,%.*s}", (int)(close - high), high);
    } else if (large || n > 1 || (n == 0 && !comma)) {
        return refuse(r, r->p, (size_t)(close - r->p) + 2);
    } else {
        qsf_strbuf_adds(r->out, n == 0 ? "*" : "+"); /* all numbers of n or more are sums of such */
    }
    r->p = close + 1 + repeats;
    return QSF_OK;
}

/* (?imx-imx: Ruby's m is PCRE2's s. */
static int group(Rewriter *r) {
    if (r->p[1] != '?') {
        copy(r, 1);
        return QSF_OK;
    }
    if (r->p[2] == '~') return refuse(r, "(?~", 3);
    const size_t n = strspn(r->p + 2, "imx-");
    const bool options = n > 0 && (r->p[2 + n] == ')' || r->p[2 + n] == ':');
    copy(r, 2);
    for (size_t i = 0; options && i < n; i++) {
        qsf_strbuf_addc(r->out, *r->p == 'm' ? 's' : *r->p);
        r->p++;
    }
    return QSF_OK;
}

int qsf_regex_from_ruby(QsfStrbuf *out, const char *pattern, QsfErr *err) {
    Rewriter r = { .out = out, .p = pattern, .err = err };
    int rc = QSF_OK;
    qsf_strbuf_adds(out, "(?m)"); /* of PCRE2: ^ and $ at the ends of lines */
    while (*r.p != '\0' && rc == QSF_OK) {
        if (*r.p == '\\') {
            rc = escape(&r);
        } else if (r.in_class) {
            rc = class_char(&r);
        } else if (*r.p == '{') {
            rc = braces(&r);
        } else if (*r.p == '(') {
            rc = group(&r);
        } else {
            r.in_class = *r.p == '[';
            copy(&r, 1);
        }
    }
    return rc;
}
