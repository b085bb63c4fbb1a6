/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing and printing of numbers, independent of the locale: under a locale with decimal commas "0.7" must
 * not be read as 0. Any thread; no state. */
#ifndef QSF_ENGINE_NUMBER_H
#define QSF_ENGINE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses [+-]digits[.digits][e[+-]digits] at s. *end is the first byte after it. false, without writing
 * anything, when s does not begin with a number. NaN and infinity are not accepted. */
bool qsf_number_parse(const char *s, double *out, const char **end);

/* Parses s, which must be an unsigned decimal integer that fits, without sign or spaces; false otherwise. */
bool qsf_u64_parse(const char *s, uint64_t *out);

/* Prints the shortest decimal without exponent that qsf_number_parse reads back as the same float, with up to
 * 15 digits after the decimal point. v is finite and below 2^53. */
void qsf_number_print(float v, char *dst, size_t cap);

#endif
