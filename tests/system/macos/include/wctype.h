/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_WCTYPE_H
#define STUB_WCTYPE_H
#include "qsf_darwin.h"
typedef unsigned long wctype_t;
int iswalnum(wint_t c);
int iswalpha(wint_t c);
int iswprint(wint_t c);
int iswspace(wint_t c);
wint_t towlower(wint_t c);
wint_t towupper(wint_t c);
#endif
