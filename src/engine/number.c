/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Locale-free numbers, and the sizes of qsf_engine.h ("200", "1.5G", "25%"). */
#include "src/engine/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "qsf_engine.h"
#include "src/base/checked.h"

#define MANTISSA_DIGITS 18 /* more digits than a double has make no difference and would overflow */
#define EXPONENT_MAX    400
#define MIB             ((double)(1u << 20))
#define SIZE_LIMIT      0x1p60 /* an exabyte: sums of sizes cannot overflow */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Exact for |e| <= 22 and mantissas below 2^53, which is all that settings need. */
static double scale_by_ten(double m, int e) {
    double ten = 1;
    for (int i = e < 0 ? -e : e; i > 0; i--) ten *= 10;
    return e < 0 ? m / ten : m * ten;
}

/* Reads an exponent like "e-5" at s, if there is a complete one. */
static const char *read_exponent(const char *s, int *e) {
    if (*s != 'e' && *s != 'E') return s;
    const char *p = s + 1;
    bool neg = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (!is_digit(*p)) return s;
    int v = 0;
    for (; is_digit(*p); p++)
        if (v < EXPONENT_MAX) v = v * 10 + (*p - '0');
    if (v > EXPONENT_MAX) v = EXPONENT_MAX;
    *e += neg ? -v : v;
    return p;
}

bool qsf_number_parse(const char *s, double *out, const char **end) {
    bool neg = *s == '-', any = false, point = false;
    if (*s == '-' || *s == '+') s++;
    uint64_t m = 0;
    int e = 0, digits = 0;
    for (;; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*s)) break;
        any = true;
        if (digits < MANTISSA_DIGITS) {
            m = m * 10 + (uint64_t)(*s - '0');
            if (m != 0) digits++;
            if (point) e--;
        } else if (!point) {
            if (e < EXPONENT_MAX) e++;
        }
    }
    if (!any) return false;
    *end = read_exponent(s, &e);
    double v = m == 0 ? 0 : scale_by_ten((double)m, e);
    *out = neg ? -v : v;
    return true;
}

bool qsf_u64_parse(const char *s, uint64_t *out) {
    uint64_t v = 0;
    if (!is_digit(*s)) return false;
    for (; is_digit(*s); s++)
        if (!qsf_mul_u64(v, 10, &v) || !qsf_add_u64(v, (uint64_t)(*s - '0'), &v)) return false;
    if (*s != '\0') return false;
    *out = v;
    return true;
}

void qsf_number_print(float v, char *dst, size_t cap) {
    double a = fabs((double)v), ten = 1;
    int places = 0;
    if (!(a < 0x1p63)) { /* no fraction; infinities and what is not a number, too */
        snprintf(dst, cap, "%.0f", (double)v);
        return;
    }
    while (places < 15 && a * ten < 0x1p50 && (float)(nearbyint(a * ten) / ten) != (float)a) {
        ten *= 10;
        places++;
    }
    unsigned long long n = (unsigned long long)nearbyint(a * ten), unit = (unsigned long long)ten;
    const char *sign = v < 0 ? "-" : "";
    if (places == 0)
        snprintf(dst, cap, "%s%llu", sign, n);
    else
        snprintf(dst, cap, "%s%llu.%0*llu", sign, n / unit, places, n % unit);
}

/* Units are powers of 1024 however they are spelled; a bare number is MB. */
static const struct {
    const char *name;
    double bytes;
} units[] = {
    { "", MIB },
    { "B", 1 },
    { "K", 1024 },
    { "KB", 1024 },
    { "KiB", 1024 },
    { "M", MIB },
    { "MB", MIB },
    { "MiB", MIB },
    { "G", MIB * 1024 },
    { "GB", MIB * 1024 },
    { "GiB", MIB * 1024 },
    { "T", MIB * 0x1p20 },
    { "TB", MIB * 0x1p20 },
    { "TiB", MIB * 0x1p20 },
};

bool qsf_parse_size(const char *text, uint64_t *bytes, uint32_t *percent) {
    double v;
    const char *end;
    if (text == NULL || bytes == NULL || percent == NULL) return false;
    if (strcasecmp(text, "auto") == 0) {
        *bytes = 0;
        *percent = 0;
        return true;
    }
    if (!is_digit(*text) && *text != '.') return false;
    if (!qsf_number_parse(text, &v, &end)) return false;
    if (strcmp(end, "%") == 0) {
        if (!(v >= 1 && v <= 100) || v != nearbyint(v)) return false;
        *bytes = 0;
        *percent = (uint32_t)v;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(end, units[i].name) != 0) continue;
        double b = v * units[i].bytes;
        if (!(b >= 0 && b <= SIZE_LIMIT)) return false;
        *bytes = (uint64_t)b;
        *percent = 0;
        return true;
    }
    return false;
}
