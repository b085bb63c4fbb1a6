/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CRC-32 as in zlib, gzip and PNG (ISO 3309: polynomial 0x04C11DB7, reflected, all ones in and out). The only
 * interface to libdeflate; builds without it use crc32_plain.c. */
#ifndef QSF_BASE_CRC32_H
#define QSF_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continues a checksum: `crc` is the CRC of the bytes so far (0 to start), the result that of those bytes
 * followed by len bytes at p. p may be NULL if len is 0. Any thread. */
uint32_t qsf_crc32(uint32_t crc, const void *p, size_t len);

/* Shifts a CRC past n more bytes: if a and b are the CRCs of two blocks, qsf_crc32_shift(a, length of the
 * second) ^ b is the CRC of their concatenation, so blocks can be checksummed in any order. Takes a few
 * hundred nanoseconds. Any thread. */
uint32_t qsf_crc32_shift(uint32_t crc, uint64_t n);

#endif
