/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CRC-32 as in zlib, gzip and PNG (ISO 3309: polynomial 0x04C11DB7, reflected, all ones in and out). The one
 * door to libdeflate (where a build leaves that out, crc32_plain.c does without). */
#ifndef QSF_BASE_CRC32_H
#define QSF_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* CRC of what gave `crc` followed by len bytes at p; of p alone with crc 0. p may be NULL where len is 0. Any
 * thread. */
uint32_t qsf_crc32(uint32_t crc, const void *p, size_t len);

/* What crc contributes to the CRC of a text in which n more bytes follow: with a and b the CRCs of two texts,
 * qsf_crc32_shift(a, length of the second) ^ b is that of both, one behind the other. So the pieces of a text can be
 * summed in any order. A few hundred nanoseconds. Any thread. */
uint32_t qsf_crc32_shift(uint32_t crc, uint64_t n);

#endif
