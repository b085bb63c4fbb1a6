/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ranges of code points as sequences of ranges of bytes: a range is split until the bytes of its ends differ
 * only where all later bytes take every value. */
#include "src/base/utf8.h"
#include "src/grammar/program.h"

/* Splits lo..hi where the number of bytes changes; returns the end of the first part. */
static uint32_t same_length(uint32_t lo, uint32_t hi) {
    static const uint32_t last[] = { 0x7F, 0x7FF, 0xFFFF };
    for (int i = 0; i < 3; i++)
        if (lo <= last[i] && hi > last[i]) return last[i];
    return hi;
}

/* The end of the first part of lo..hi, which have the same number of bytes, that is one sequence. */
static uint32_t one_sequence(uint32_t lo, uint32_t hi, unsigned bytes) {
    for (unsigned i = 1; i < bytes; i++) {
        const uint32_t low = (1u << (6 * i)) - 1;
        if ((lo & ~low) == (hi & ~low)) continue;
        if ((lo & low) != 0) return lo | low;
        if ((hi & low) != low) return (hi & ~low) - 1;
    }
    return hi;
}

void qsf_utf8_sequences(uint32_t lo, uint32_t hi, QsfPutBytes put, void *arg) {
    for (uint32_t end; lo <= hi; lo = end + 1) {
        char a[4], b[4];
        const unsigned n = (unsigned)qsf_utf8_put(lo, a);
        end = same_length(lo, hi);
        for (uint32_t part = 0; part != end;) {
            part = end;
            end = one_sequence(lo, end, n);
        }
        (void)qsf_utf8_put(end, b);
        put(arg, (const uint8_t *)a, (const uint8_t *)b, n);
        if (end == UINT32_MAX) break;
    }
}
