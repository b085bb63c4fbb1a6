/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Wraps PCRE2, 8-bit; rewrites what it reads differently: white space, and the syntax of Ruby. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/token/regex.h"

#ifndef QSF_WITHOUT_PCRE2

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/strbuf.h"

struct QsfRegex {
    pcre2_code *code;
    pcre2_code *slow; /* the same with callouts between its items, where a long match can be interrupted */
    size_t bytes;
};

struct QsfRegexScratch {
    pcre2_match_data *data;
    pcre2_match_context *ctx;
    unsigned wasted; /* matches that cost far more than their length explains */
};

/* A reasonable expression needs a few steps per character of a piece; the limits only stop runaways: a single
 * match that never ends, and an expression that makes every match expensive. The cost of a match is known
 * from the limit it needed. */
#define MATCH_LIMIT       20000000u
#define MATCH_LIMIT_FIRST 20000u
#define MATCH_LIMIT_TIMES 10u
#define STEPS_PER_BYTE    1000u
#define WASTED_MAX        64u
#define HEAP_LIMIT_KIB    16384u

/* Neither limit bounds the time of one call: each step may read the rest of the text, and each place of the
 * text has its own limit. So a long text is searched in windows, of which the first is short; only the rare
 * match that does not end in it is left to the slow code. */
#define WINDOW       4096u
#define WINDOW_TIMES 16u

/* White_Space of the Unicode Character Database. PCRE2's own \s includes U+180E, which lost the property in
 * Unicode 6.3. */
#define WHITE_SPACE \
    "\\x09-\\x0D\\x20\\x85\\xA0\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"

/* Appends the character class for the escape \s or \S. */
static void add_space_class(QsfStrbuf *out, char escape, bool in_class) {
    if (in_class) {
        qsf_strbuf_adds(out, escape == 's' ? WHITE_SPACE : "\\S");
        return;
    }
    qsf_strbuf_adds(out, escape == 's' ? "[" WHITE_SPACE "]" : "[^" WHITE_SPACE "]");
}

static void rewrite(QsfStrbuf *out, const char *p) {
    bool in_class = false;
    for (; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0') {
            p++;
            if (*p == 's' || *p == 'S') {
                add_space_class(out, *p, in_class);
            } else {
                qsf_strbuf_addc(out, '\\');
                qsf_strbuf_addc(out, *p);
            }
            continue;
        }
        if (*p == '[') in_class = true;
        if (*p == ']') in_class = false;
        qsf_strbuf_addc(out, *p);
    }
}

/* ---- expressions of Oniguruma with Ruby's syntax (kkos/oniguruma doc/RE), written for PCRE2 ---- */

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

/* Appends pattern to out so that PCRE2 with Unicode classes means the same by it: multiline anchors,
 * letters and marks in \w and \b, (?m) as (?s), \uHHHH, {n,m}+ as a repetition and {,n}.
 * QSF_E_RUNTIME names what cannot be written: nested classes and their intersections, escapes that
 * only Oniguruma has. Check out afterwards. */
static int from_ruby(QsfStrbuf *out, const char *pattern, QsfErr *err) {
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

/* ---- compiling ---- */

static pcre2_code *compile(const char *pattern, size_t len, uint32_t more, QsfErr *err) {
    int code;
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_DOLLAR_ENDONLY | more;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, len, options, &code, &at, NULL);
    if (re == NULL && code == PCRE2_ERROR_HEAP_FAILED) qsf_err_memory(err, "a regular expression");
    if (re == NULL) {
        PCRE2_UCHAR msg[128];
        if (pcre2_get_error_message(code, msg, sizeof msg) < 0) msg[0] = '\0';
        qsf_err_set(err, QSF_E_RUNTIME, "regular expression: %s at offset %zu", (const char *)msg,
                    (size_t)at);
    }
    return re;
}

/* Makes machine code and returns the bytes of the expression. Without JIT (not built in, or no executable
 * memory) pcre2_match interprets: slower, but the same result. */
static size_t prepare(pcre2_code *code) {
    size_t code_bytes = 0, jit_bytes = 0;
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    (void)pcre2_pattern_info(code, PCRE2_INFO_SIZE, &code_bytes);
    (void)pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &jit_bytes);
    return code_bytes + jit_bytes;
}

int qsf_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err) {
    *out = NULL;
    QsfStrbuf text = QSF_STRBUF_INIT;
    rewrite(&text, pattern);
    QsfRegex *re = qsf_strbuf_ok(&text) ? calloc(1, sizeof *re) : NULL;
    if (re == NULL) {
        qsf_strbuf_free(&text);
        return qsf_err_memory(err, "a regular expression");
    }
    re->code = compile(qsf_strbuf_str(&text), text.len, 0, err);
    if (re->code != NULL) re->slow = compile(qsf_strbuf_str(&text), text.len, PCRE2_AUTO_CALLOUT, err);
    qsf_strbuf_free(&text);
    if (re->slow == NULL) {
        qsf_regex_free(re);
        return QSF_E_RUNTIME;
    }
    re->bytes = sizeof *re + prepare(re->code) + prepare(re->slow);
    *out = re;
    return QSF_OK;
}

int qsf_regex_compile_ruby(QsfRegex **out, const char *pattern, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    *out = NULL;
    int rc = from_ruby(&text, pattern, err);
    if (rc == QSF_OK)
        rc = qsf_strbuf_ok(&text) ? qsf_regex_compile(out, qsf_strbuf_str(&text), err)
                                  : qsf_err_memory(err, "a regular expression");
    qsf_strbuf_free(&text);
    return rc;
}

void qsf_regex_free(QsfRegex *re) {
    if (re == NULL) return;
    pcre2_code_free(re->code);
    pcre2_code_free(re->slow);
    free(re);
}

size_t qsf_regex_bytes(const QsfRegex *re) { return re->bytes; }

/* Called between the items of the slow code; one item may read the rest of the text. */
static int look(pcre2_callout_block *block, void *ctx) {
    (void)block;
    (void)ctx;
    return qsf_interrupted() ? PCRE2_ERROR_CALLOUT : 0;
}

QsfRegexScratch *qsf_regex_scratch_new(void) {
    QsfRegexScratch *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    s->data = pcre2_match_data_create(1, NULL);
    s->ctx = pcre2_match_context_create(NULL);
    if (s->data == NULL || s->ctx == NULL) {
        qsf_regex_scratch_free(s);
        return NULL;
    }
    (void)pcre2_set_heap_limit(s->ctx, HEAP_LIMIT_KIB);
    (void)pcre2_set_callout(s->ctx, look, NULL);
    return s;
}

void qsf_regex_scratch_free(QsfRegexScratch *s) {
    if (s == NULL) return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->ctx);
    free(s);
}

static int match(const pcre2_code *code, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                 uint32_t options) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    options |= PCRE2_NO_UTF_CHECK;
    int rc = pcre2_match(code, subject, len, from, options, s->data, s->ctx);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* machine code has a 32 KiB stack, the interpreter a heap */
        rc = pcre2_match(code, subject, len, from, options | PCRE2_NO_JIT, s->data, s->ctx);
    return rc;
}

/* Searches the whole text with rising limits; the last one in *limit. */
static int match_all(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                     uint32_t *limit) {
    const pcre2_code *code = len - from > WINDOW ? re->slow : re->code;
    int rc;
    while ((rc = match(code, s, text, len, from, 0)) == PCRE2_ERROR_MATCHLIMIT && *limit < MATCH_LIMIT) {
        if (qsf_interrupted()) return PCRE2_ERROR_CALLOUT;
        code = re->slow;
        *limit *= MATCH_LIMIT_TIMES;
        (void)pcre2_set_match_limit(s->ctx, *limit);
    }
    return rc;
}

/* The end of a window of n bytes after `at`, between two characters. */
static size_t window_end(const char *text, size_t len, size_t at, size_t n) {
    if (len - at <= n) return len;
    for (n += at; n < len && ((unsigned char)text[n] & 0xC0) == 0x80;) n++;
    return n;
}

/* The same window by window. A match, or none, counts only if nothing after the window could change that. */
static int match_windows(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                         uint32_t *limit) {
    size_t size = WINDOW;
    while (len - from > size) {
        if (qsf_interrupted()) return PCRE2_ERROR_CALLOUT;
        const size_t end = window_end(text, len, from, size);
        if (end == len) break;
        const pcre2_code *code = size == WINDOW ? re->code : re->slow;
        int rc = match(code, s, text, end, from, PCRE2_PARTIAL_HARD);
        if (rc == PCRE2_ERROR_NOMATCH) {
            from = end;
            size = WINDOW;
        } else if (rc == PCRE2_ERROR_PARTIAL) {
            size *= WINDOW_TIMES;
        } else if (rc == PCRE2_ERROR_MATCHLIMIT) {
            break;
        } else {
            return rc;
        }
    }
    return match_all(re, s, text, len, from, limit);
}

bool qsf_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                    size_t *begin, size_t *end) {
    uint32_t limit = MATCH_LIMIT_FIRST;
    (void)pcre2_set_match_limit(s->ctx, limit);
    int rc = match_windows(re, s, text, len, from, &limit);
    if (rc < 0) return false;
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->data);
    *begin = span[0];
    *end = span[1];
    return limit == MATCH_LIMIT_FIRST || (*end - from) * STEPS_PER_BYTE >= limit || ++s->wasted <= WASTED_MAX;
}

#endif
