/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Readable numbers. */
#include "ui/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_text.h"

#define MB 1048576.0

void ui_format_clock(double t, char *dst, size_t cap) {
    time_t when = (time_t)t;
    struct tm tm;
    dst[0] = '\0';
    if (t > 0 && localtime_r(&when, &tm)) (void)strftime(dst, cap, "%H:%M", &tm);
}

void ui_format_elapsed(double seconds, char *dst, size_t cap) {
    unsigned long s = seconds > 0 && seconds < 1e9 ? (unsigned long)seconds : 0;
    (void)snprintf(dst, cap, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
}

void ui_format_span(double seconds, char *dst, size_t cap) {
    if (!(seconds >= 0) || seconds > 1e6) {
        (void)snprintf(dst, cap, "-");
        return;
    }
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (seconds < 10)
        (void)snprintf(dst, cap, "%.1fs", seconds);
    else if (s < 60)
        (void)snprintf(dst, cap, "%lus", s);
    else if (s < 3600)
        (void)snprintf(dst, cap, "%lum%02lus", s / 60, s % 60);
    else
        (void)snprintf(dst, cap, "%luh%02lum", s / 3600, s / 60 % 60);
}

void ui_format_tps(double tps, char *dst, size_t cap) {
    if (!(tps > 0))
        (void)snprintf(dst, cap, "-");
    else
        (void)snprintf(dst, cap, "%.*f", tps < 9.995 ? 2 : tps < 99.95 ? 1 : 0, tps);
}

void ui_format_bytes(uint64_t bytes, char *dst, size_t cap) {
    double mb = (double)bytes / MB;
    if (mb < 1000)
        (void)snprintf(dst, cap, "%.1f MB", mb);
    else
        (void)snprintf(dst, cap, "%.2f GB", mb / 1024);
}

void ui_format_file(uint64_t bytes, char *dst, size_t cap) {
    if (bytes < 1024)
        (void)snprintf(dst, cap, "%u B", (unsigned)bytes);
    else if (bytes < 1000 * 1024)
        (void)snprintf(dst, cap, "%u KB", (unsigned)((bytes + 512) / 1024));
    else
        ui_format_bytes(bytes, dst, cap);
}

/* Days since then in local time: 1 is yesterday, however few hours that is. */
static int days_between(time_t then, time_t now) {
    struct tm a, b;
    if (!localtime_r(&then, &a) || !localtime_r(&now, &b)) return -1;
    a.tm_hour = b.tm_hour = 12;
    a.tm_min = b.tm_min = a.tm_sec = b.tm_sec = 0;
    a.tm_isdst = b.tm_isdst = -1;
    return (int)lround(difftime(mktime(&b), mktime(&a)) / 86400);
}

void ui_format_ago(double then, double now, char *dst, size_t cap) {
    const double ago = now - then;
    dst[0] = '\0';
    if (!(then > 0 && then < 1e11)) return;
    const time_t t = (time_t)then;
    const int days = ago >= 0 ? days_between(t, (time_t)now) : -1;
    struct tm tm;
    if (ago > -60 && ago < 60) /* clocks differ a little */
        (void)snprintf(dst, cap, "just now");
    else if (ago >= 0 && ago < 3600)
        (void)snprintf(dst, cap, "%d min ago", (int)(ago / 60));
    else if (days == 0)
        (void)snprintf(dst, cap, "%d h ago", (int)(ago / 3600));
    else if (days == 1)
        (void)snprintf(dst, cap, "yesterday");
    else if (days > 1 && days < 7)
        (void)qsf_text_snprintf(dst, cap, "%d days ago", days);
    else if (localtime_r(&t, &tm))
        (void)strftime(dst, cap, "%Y-%m-%d", &tm);
}

void ui_format_mb(uint64_t bytes, char *dst, size_t cap) {
    double mb = (double)bytes / MB;
    (void)snprintf(dst, cap, "%.*f", mb < 99.95 ? 1 : 0, mb);
}

void ui_format_peak(uint64_t recent, uint64_t ever, char *dst, size_t cap) {
    const bool lower = recent > 0 && recent < ever;
    char now[24], all[24];
    ui_format_mb(lower ? recent : ever, now, sizeof now);
    ui_format_mb(ever, all, sizeof all);
    if (lower)
        (void)snprintf(dst, cap, "%s (%s)", now, all);
    else
        (void)snprintf(dst, cap, "%s", now);
}

/* Tokens of the prompt that were in the KV cache. */
static void reused(const UiItem *it, UiBuf *b) {
    char part[24], all[24];
    ui_format_count(it->reused, part, sizeof part);
    ui_format_count(it->prompt, all, sizeof all);
    if (it->prompt > 0 && it->reused > 0) ui_buf_printf(b, "  reused %s of %s", part, all);
}

/* detail 0: why it ended; 1: and the tokens; 2: and their speed; 3: and the seed; 4: and what was reused. */
static void answer_facts(const UiItem *it, int detail, UiBuf *b) {
    char tps[24];
    bool early = it->stop[0] && strcmp(it->stop, "eos") != 0 && strcmp(it->stop, "stop") != 0;
    ui_format_tps(it->tps, tps, sizeof tps);
    if (detail > 3) reused(it, b);
    if (detail > 0 && it->tokens > 0) ui_buf_printf(b, "  %s%u tok", it->about ? "~" : "", it->tokens);
    if (detail > 1 && it->tokens > 0 && it->tps > 0)
        ui_buf_printf(b, "  %s%s t/s", it->about ? "~" : "", tps);
    if (detail > 2 && it->seed != 0) ui_buf_printf(b, "  seed %llu", (unsigned long long)it->seed);
    if (early) ui_buf_printf(b, "  %s", strcmp(it->stop, "interrupted") == 0 ? "stopped" : it->stop);
}

void ui_format_answer(const UiItem *it, int room, char *dst, size_t cap) {
    dst[0] = '\0';
    for (int detail = 4; detail >= 0; detail--) {
        UiBuf b = { 0 };
        answer_facts(it, detail, &b);
        bool fits = b.len <= (size_t)(room > 0 ? room : 0) + 2;
        if (fits && b.len > 2) (void)snprintf(dst, cap, "%s", ui_buf_str(&b) + 2);
        ui_buf_free(&b);
        if (fits) return;
    }
}

void ui_format_thought(const UiItem *thought, char *dst, size_t cap) {
    UiBuf b = { 0 };
    char span[24];
    ui_buf_puts(&b, thought->open ? "thinking" : "thought");
    if (thought->tokens > 0) ui_buf_printf(&b, ", %u tok", thought->tokens);
    ui_format_span(thought->seconds, span, sizeof span);
    if (thought->seconds > 0) ui_buf_printf(&b, ", %s", span);
    if (thought->stop[0]) ui_buf_printf(&b, ", %s", thought->stop);
    (void)snprintf(dst, cap, "%s", ui_buf_str(&b));
    ui_buf_free(&b);
}

void ui_format_knob(const char *value, char *dst, size_t cap) {
    char *end;
    double v = strtod(value, &end);
    if (*value == '\0' || *end != '\0' || !strchr(value, '.')) {
        (void)snprintf(dst, cap, "%s", value);
        return;
    }
    char text[40];
    (void)snprintf(text, sizeof text, "%.2f", v);
    (void)snprintf(dst, cap, "%s", text[0] == '0' && text[1] == '.' ? text + 1 : text);
}

void ui_format_count(int64_t n, char *dst, size_t cap) {
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t to = 0;
    for (int i = 0; i < len && to + 2 < cap; i++) {
        if (i > 0 && (len - i) % 3 == 0) dst[to++] = ',';
        dst[to++] = digits[i];
    }
    dst[to] = '\0';
}
