/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The progress line of a conversion: percentage, estimated time left, current tensor. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/utf8.h"
#include "src/convert/convert.h"

#define PROGRESS_NS 200000000u

void convert_progress_begin(ConvertProgress *p, const ConvertOptions *o) {
    uint64_t now = qsf_now_ns();
    *p = (ConvertProgress){ .on = !o->quiet && isatty(STDERR_FILENO), .started = now, .shown = now };
}

void convert_progress_show(ConvertProgress *p, double fraction, const char *what) {
    uint64_t now = qsf_now_ns();
    if (!p->on || now - p->shown < PROGRESS_NS) return;
    p->shown = now;
    double left = fraction > 0 ? (double)(now - p->started) * 1e-9 * (1 - fraction) / fraction : 0;
    char name[48]; /* a tensor's name may be anything */
    snprintf(name, sizeof name, "%s", what);
    name[qsf_utf8_clean(name, strlen(name), false)] = '\0';
    fprintf(stderr, "\r\x1b[K%5.1f %%  %d:%02d left  %s", 100 * fraction, (int)(left / 60),
            (int)fmod(left, 60), name);
}

void convert_progress_end(const ConvertProgress *p) {
    if (p->on && p->shown > p->started) fputs("\r\x1b[K", stderr);
}
