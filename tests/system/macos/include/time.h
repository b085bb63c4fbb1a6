/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_TIME_H
#define STUB_TIME_H
#include "qsf_darwin.h"
typedef enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 6, CLOCK_PROCESS_CPUTIME_ID = 12 } clockid_t;
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
    long tm_gmtoff;
    char *tm_zone;
};
int clock_gettime(clockid_t clock, struct timespec *t);
double difftime(time_t a, time_t b);
struct tm *gmtime_r(const time_t *t, struct tm *out);
struct tm *localtime_r(const time_t *t, struct tm *out);
time_t mktime(struct tm *t);
int nanosleep(const struct timespec *t, struct timespec *left);
size_t strftime(char *s, size_t n, const char *fmt, const struct tm *t);
char *strptime(const char *s, const char *fmt, struct tm *t);
time_t time(time_t *t);
time_t timegm(struct tm *t);
#endif
