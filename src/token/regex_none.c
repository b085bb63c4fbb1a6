/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces regex.c in builds without PCRE2: every expression is refused, so nothing is ever matched. */
#include "src/token/regex.h"

#ifdef QSF_WITHOUT_PCRE2

int qsf_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err) {
    (void)pattern;
    *out = NULL;
    return qsf_err_set(err, QSF_E_RUNTIME, "needs PCRE2, which this program was built without");
}

int qsf_regex_compile_ruby(QsfRegex **out, const char *pattern, QsfErr *err) {
    return qsf_regex_compile(out, pattern, err);
}

void qsf_regex_free(QsfRegex *re) { (void)re; }

size_t qsf_regex_bytes(const QsfRegex *re) { return (void)re, 0; }

QsfRegexScratch *qsf_regex_scratch_new(void) { return NULL; }

void qsf_regex_scratch_free(QsfRegexScratch *s) { (void)s; }

bool qsf_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                    size_t *begin, size_t *end) {
    return (void)re, (void)s, (void)text, (void)len, (void)from, (void)begin, (void)end, false;
}

#endif
