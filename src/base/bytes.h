/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Little-endian numbers in bytes of any alignment. The caller has checked that the bytes exist. */
#ifndef QSF_BASE_BYTES_H
#define QSF_BASE_BYTES_H

#include <stdint.h>

static inline uint32_t qsf_get_le32(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t qsf_get_le64(const unsigned char *p) {
    return qsf_get_le32(p) | (uint64_t)qsf_get_le32(p + 4) << 32;
}
static inline void qsf_put_le32(unsigned char *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (unsigned char)(v >> 8 * i);
}
static inline void qsf_put_le64(unsigned char *p, uint64_t v) {
    qsf_put_le32(p, (uint32_t)v);
    qsf_put_le32(p + 4, (uint32_t)(v >> 32));
}

#endif
