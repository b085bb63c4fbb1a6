/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readable numbers, always with units. Any thread. */
#ifndef QSF_UI_FORMAT_H
#define QSF_UI_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "ui/transcript.h"

/* "09:42" local time; "" for 0. */
void ui_format_clock(double t, char *dst, size_t cap);
/* "0:00:57" */
void ui_format_elapsed(double seconds, char *dst, size_t cap);
/* "4.4s", "1m33s", "2h05m" */
void ui_format_span(double seconds, char *dst, size_t cap);
/* Tokens per second in at most 4 characters: "0.42", "3.42", "41.0", "118"; "-" if unknown. */
void ui_format_tps(double tps, char *dst, size_t cap);
/* "0.9 MB", "40.0 MB", "1.50 GB" */
void ui_format_bytes(uint64_t bytes, char *dst, size_t cap);
/* The size of a small file: "812 B", "12 KB", "1.2 MB" */
void ui_format_file(uint64_t bytes, char *dst, size_t cap);
/* "3,204" */
void ui_format_count(int64_t n, char *dst, size_t cap);
/* How long ago: "just now", "5 min ago", "3 h ago", "yesterday", "4 days ago", or the date "2026-08-01"; ""
 * for 0. Both in seconds since 1970. */
void ui_format_ago(double then, double now, char *dst, size_t cap);
/* MB of 2^20 bytes without a unit: "0.9", "40.0", "187" */
void ui_format_mb(uint64_t bytes, char *dst, size_t cap);
/* The peak of the resident set with the budget in force, and behind it in parentheses the highest one of the
 * program, if that was higher: "40.2 (120)". */
void ui_format_peak(uint64_t recent, uint64_t ever, char *dst, size_t cap);
/* Facts about an answer in at most room cells, the least important dropped first: "61 tok  3.42
 * t/s seed 7  stopped". "" when nothing. */
void ui_format_answer(const UiItem *it, int room, char *dst, size_t cap);
/* Facts about reasoning: "thinking, 12 tok, 3.0s", "thought, 12 tok, 3.0s". */
void ui_format_thought(const UiItem *thought, char *dst, size_t cap);
/* A setting's value in short form: ".70", "40", "off". value as returned by qsf_setting_get. */
void ui_format_knob(const char *value, char *dst, size_t cap);

#endif
