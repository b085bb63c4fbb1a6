/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers in a snapshot's file: little-endian. */
#ifndef QSF_ENGINE_SNAPSHOT_NUMBER_H
#define QSF_ENGINE_SNAPSHOT_NUMBER_H

#include <stdint.h>

static inline void qsf_snap_put32(uint8_t *p, uint32_t v) {
    for (unsigned i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}
static inline void qsf_snap_put64(uint8_t *p, uint64_t v) {
    qsf_snap_put32(p, (uint32_t)v);
    qsf_snap_put32(p + 4, (uint32_t)(v >> 32));
}
static inline uint32_t qsf_snap_get32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t qsf_snap_get64(const uint8_t *p) {
    return qsf_snap_get32(p) | (uint64_t)qsf_snap_get32(p + 4) << 32;
}

#endif
