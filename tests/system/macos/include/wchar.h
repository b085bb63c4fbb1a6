/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_WCHAR_H
#define STUB_WCHAR_H
#include "qsf_darwin.h"
#include <stdarg.h>
typedef union stub_mbstate {
    char state[128];
    long long align;
} mbstate_t;
#ifndef WEOF
#define WEOF ((wint_t)-1)
#endif
size_t mbrtowc(wchar_t *w, const char *s, size_t n, mbstate_t *st);
size_t wcrtomb(char *s, wchar_t w, mbstate_t *st);
size_t wcslen(const wchar_t *s);
int wcswidth(const wchar_t *s, size_t n);
int wcwidth(wchar_t w);
#endif
