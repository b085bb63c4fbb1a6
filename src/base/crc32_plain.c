/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CRC-32 for builds without libdeflate: slicing by 8 (eight tables, eight bytes per step), about 2 GB/s. */
#include "src/base/crc32.h"

#ifdef QSF_WITHOUT_LIBDEFLATE

#include <pthread.h>

#define POLYNOMIAL 0xEDB88320u /* bit 31 is x^0 */

/* table[k][b] is the contribution of byte b if k more bytes follow it in the same step. */
static uint32_t table[8][256];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_table(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; bit++) c = (c & 1) != 0 ? c >> 1 ^ POLYNOMIAL : c >> 1;
        table[0][b] = c;
    }
    for (int k = 1; k < 8; k++) {
        for (int b = 0; b < 256; b++) table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
    }
}

static uint32_t eight_bytes(uint32_t crc, const uint8_t *p) {
    uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    return table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
           table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
}

uint32_t qsf_crc32(uint32_t crc, const void *p, size_t len) {
    const uint8_t *b = p;
    pthread_once(&made, make_table);
    crc = ~crc;
    for (; len >= 8; len -= 8, b += 8) crc = eight_bytes(crc, b);
    for (; len > 0; len--, b++) crc = crc >> 8 ^ table[0][(crc ^ *b) & 255];
    return ~crc;
}

#endif
