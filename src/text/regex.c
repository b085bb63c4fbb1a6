/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Wraps PCRE2, 8-bit, in five functions. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/text/regex.h"

#ifndef QSF_WITHOUT_PCRE2

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "src/text/regex_ruby.h"

struct QsfRegex {
    pcre2_code *code;
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

static pcre2_code *compile(const char *pattern, size_t len, QsfErr *err) {
    int code;
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE | PCRE2_DOLLAR_ENDONLY;
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

int qsf_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err) {
    *out = NULL;
    QsfStrbuf text = QSF_STRBUF_INIT;
    rewrite(&text, pattern);
    QsfRegex *re = qsf_strbuf_ok(&text) ? calloc(1, sizeof *re) : NULL;
    if (re == NULL) {
        qsf_strbuf_free(&text);
        return qsf_err_memory(err, "a regular expression");
    }
    re->code = compile(qsf_strbuf_str(&text), text.len, err);
    qsf_strbuf_free(&text);
    if (re->code == NULL) {
        free(re);
        return QSF_E_RUNTIME;
    }
    /* Without JIT (not built in, or no executable memory) pcre2_match interprets: slower, but the same
     * result. */
    (void)pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
    size_t code_bytes = 0, jit_bytes = 0;
    (void)pcre2_pattern_info(re->code, PCRE2_INFO_SIZE, &code_bytes);
    (void)pcre2_pattern_info(re->code, PCRE2_INFO_JITSIZE, &jit_bytes);
    re->bytes = sizeof *re + code_bytes + jit_bytes;
    *out = re;
    return QSF_OK;
}

int qsf_regex_compile_ruby(QsfRegex **out, const char *pattern, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    *out = NULL;
    int rc = qsf_regex_from_ruby(&text, pattern, err);
    if (rc == QSF_OK)
        rc = qsf_strbuf_ok(&text) ? qsf_regex_compile(out, qsf_strbuf_str(&text), err)
                                  : qsf_err_memory(err, "a regular expression");
    qsf_strbuf_free(&text);
    return rc;
}

void qsf_regex_free(QsfRegex *re) {
    if (re == NULL) return;
    pcre2_code_free(re->code);
    free(re);
}

size_t qsf_regex_bytes(const QsfRegex *re) { return re->bytes; }

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
    return s;
}

void qsf_regex_scratch_free(QsfRegexScratch *s) {
    if (s == NULL) return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->ctx);
    free(s);
}

static int match(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int rc = pcre2_match(re->code, subject, len, from, PCRE2_NO_UTF_CHECK, s->data, s->ctx);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) { /* machine code has a 32 KiB stack, the interpreter a heap */
        rc = pcre2_match(re->code, subject, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->data, s->ctx);
    }
    return rc;
}

bool qsf_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                    size_t *begin, size_t *end) {
    uint32_t limit = MATCH_LIMIT_FIRST;
    int rc;
    (void)pcre2_set_match_limit(s->ctx, limit);
    while ((rc = match(re, s, text, len, from)) == PCRE2_ERROR_MATCHLIMIT && limit < MATCH_LIMIT) {
        limit *= MATCH_LIMIT_TIMES;
        (void)pcre2_set_match_limit(s->ctx, limit);
    }
    if (rc < 0) return false;
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->data);
    *begin = span[0];
    *end = span[1];
    return limit == MATCH_LIMIT_FIRST || (*end - from) * STEPS_PER_BYTE >= limit || ++s->wasted <= WASTED_MAX;
}

#endif
