/* SPDX-License-Identifier: GPL-3.0-or-later */
/* newlocale and uselocale are in xlocale.h there. */
#ifndef STUB_LOCALE_H
#define STUB_LOCALE_H
#define LC_ALL      0
#define LC_COLLATE  1
#define LC_CTYPE    2
#define LC_MONETARY 3
#define LC_NUMERIC  4
#define LC_TIME     5
#define LC_MESSAGES 6
struct lconv {
    char *decimal_point;
};
struct lconv *localeconv(void);
char *setlocale(int what, const char *name);
#endif
