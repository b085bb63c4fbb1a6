/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_STRINGS_H
#define STUB_STRINGS_H
#include <stddef.h>
int strcasecmp(const char *a, const char *b);
int strncasecmp(const char *a, const char *b, size_t n);
#endif
