/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions of Oniguruma with Ruby's syntax (kkos/oniguruma doc/RE), written for PCRE2. */
#ifndef QSF_TOKEN_REGEX_RUBY_H
#define QSF_TOKEN_REGEX_RUBY_H

#include "src/base/err.h"
#include "src/base/strbuf.h"

/* Appends pattern to out so that PCRE2 with Unicode classes means the same by it: multiline anchors,
 * letters and marks in \w and \b, (?m) as (?s), \uHHHH, {n,m}+ as a repetition and {,n}.
 * QSF_E_RUNTIME names what cannot be written: nested classes and their intersections, escapes that
 * only Oniguruma has. Check out afterwards. */
int qsf_regex_from_ruby(QsfStrbuf *out, const char *pattern, QsfErr *err);

#endif
