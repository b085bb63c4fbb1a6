/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CRC-32 with libdeflate, which is many times faster than a disk can be read. */
#include "src/base/crc32.h"

#ifndef QSF_WITHOUT_LIBDEFLATE
#include <libdeflate.h>
#endif

#define POLYNOMIAL 0xEDB88320u /* bit 31 is x^0 */

/* Returns a * b modulo the polynomial. */
static uint32_t times(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) product ^= b;
        b = (b & 1) != 0 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* Multiplies crc by x^(8n), by repeated squaring: each byte that follows is a factor of x^8. */
uint32_t qsf_crc32_shift(uint32_t crc, uint64_t n) {
    uint32_t power = 1u << (31 - 8); /* x^8 */
    for (; n != 0; n >>= 1) {
        if ((n & 1) != 0) crc = times(power, crc);
        power = times(power, power);
    }
    return crc;
}

#ifndef QSF_WITHOUT_LIBDEFLATE
uint32_t qsf_crc32(uint32_t crc, const void *p, size_t len) {
    return len == 0 ? crc : libdeflate_crc32(crc, p, len); /* with NULL, libdeflate ignores crc */
}
#endif
