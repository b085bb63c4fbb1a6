/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_INTTYPES_H
#define STUB_INTTYPES_H
#include <stdint.h>
#define PRId32  "d"
#define PRIi32  "i"
#define PRIu32  "u"
#define PRIx32  "x"
#define PRIX32  "X"
#define PRId64  "lld"
#define PRIi64  "lli"
#define PRIu64  "llu"
#define PRIx64  "llx"
#define PRIX64  "llX"
#define PRIuMAX "ju"
#define SCNu32  "u"
#define SCNd64  "lld"
#define SCNu64  "llu"
#define SCNx64  "llx"
#endif
