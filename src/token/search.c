/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searching for what a user has typed: implements qsf_search.h. */
#include "qsf_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/token/regex.h"

struct QSFSearch {
    QsfRegex *re;
    QsfRegexScratch *scratch;
};

/* Letters after a backslash are classes: \S is not a capital S. Other scripts than Latin decide as ASCII
 * letters do: without one, case does not matter. */
static bool has_capital(const char *pattern) {
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p >= 'A' && *p <= 'Z')
            return true;
    }
    return false;
}

static int compile(QsfRegex **re, const char *pattern, QsfErr *e) {
    const size_t len = strlen(pattern);
    QsfRegex *exact = NULL;
    int rc = qsf_regex_compile(&exact, pattern, e); /* its message has the offset in what was typed */
    if (rc != QSF_OK || has_capital(pattern)) {
        *re = exact;
        return rc;
    }
    char *any_case = malloc(len + 5);
    if (any_case) {
        memcpy(any_case, "(?i)", 4);
        memcpy(any_case + 4, pattern, len + 1);
        rc = qsf_regex_compile(re, any_case, e);
    } else {
        rc = qsf_err_set(e, QSF_E_RUNTIME, "out of memory");
    }
    free(any_case);
    qsf_regex_free(exact);
    return rc;
}

QSFSearch *qsf_search_new(const char *pattern, char *err, size_t cap) {
    QsfErr e = { 0 };
    QSFSearch *s = calloc(1, sizeof *s);
    if (s && compile(&s->re, pattern, &e) == QSF_OK) s->scratch = qsf_regex_scratch_new();
    if (s && s->scratch) return s;
    (void)snprintf(err, cap, "%s: %s", pattern, e.msg[0] ? e.msg : "out of memory");
    qsf_search_free(s);
    return NULL;
}

void qsf_search_free(QSFSearch *s) {
    if (!s) return;
    qsf_regex_scratch_free(s->scratch);
    qsf_regex_free(s->re);
    free(s);
}

bool qsf_search_find(QSFSearch *s, const char *text, size_t len, size_t from, size_t *begin, size_t *end) {
    return qsf_regex_find(s->re, s->scratch, text, len, from, begin, end);
}
