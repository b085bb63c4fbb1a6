/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as people type them, read and written without the locale: a chat that runs under a locale
 * with decimal commas must not read "0.7" as 0. Any thread; no state. */
#ifndef QSF_ENGINE_NUMBER_H
#define QSF_ENGINE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads [+-]digits[.digits][e[+-]digits] at s. *end is the first byte after it. False (nothing is
 * written) when s does not begin with a number; there is no spelling of NaN or infinity. */
bool qsf_number_parse(const char *s, double *out, const char **end);

/* The whole of s is an unsigned decimal integer that fits; no sign, no spaces. */
bool qsf_u64_parse(const char *s, uint64_t *out);

/* Shortest plain decimal (no exponent) that qsf_number_parse reads back as the same float, up to 15
 * digits after the point. v is finite and below 2^53. */
void qsf_number_print(float v, char *dst, size_t cap);

#endif
