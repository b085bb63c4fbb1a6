/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers that other programs write and jansson refuses: integers beyond 64 bits
 * (huggingface/transformers writes model_max_length as int(1e30) if it knows no limit), reals beyond a
 * double, and Python's Infinity and NaN. */
#ifndef QSF_BASE_JSONNUMBER_H
#define QSF_BASE_JSONNUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/strbuf.h"

/* Appends text[0..len) to out, with integers outside int64_t written as reals, and numbers beyond
 * the largest double Infinity and NaN as the largest double, outside strings. Returns false, with
 * nothing appended, if there are none: then the text can be parsed as it is. Check out afterwards.
 * Does not check syntax. Any thread. */
bool qsf_json_numbers(const char *text, size_t len, QsfStrbuf *out);

#endif
