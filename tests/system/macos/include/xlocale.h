/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_XLOCALE_H
#define STUB_XLOCALE_H
#define LC_COLLATE_MASK  (1 << 0)
#define LC_CTYPE_MASK    (1 << 1)
#define LC_MESSAGES_MASK (1 << 2)
#define LC_MONETARY_MASK (1 << 3)
#define LC_NUMERIC_MASK  (1 << 4)
#define LC_TIME_MASK     (1 << 5)
#define LC_ALL_MASK      0x3f
typedef struct stub_locale *locale_t;
int freelocale(locale_t l);
locale_t newlocale(int mask, const char *name, locale_t base);
locale_t uselocale(locale_t l);
double strtod_l(const char *s, char **end, locale_t l);
#endif
