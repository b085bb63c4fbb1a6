/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layout of a file that says how often the experts of a model were used (docs/FORMATS.md, "Habits"): the
 * engine writes and reads it (engine/habits/file.h), and a conversion may choose formats by it. */
#ifndef QSF_FILE_HABITS_H
#define QSF_FILE_HABITS_H

#include <stddef.h>
#include <stdint.h>

#define QSF_HABITS_MAGIC   "QSFHABIT" /* 8 bytes */
#define QSF_HABITS_VERSION 1u
#define QSF_HABITS_DEPTHS  64u
/* When more tokens were counted, all counts are halved: old habits fade. */
#define QSF_HABITS_TOKENS 8192u

/* Offsets of what a file has. All numbers are little-endian. */
enum {
    QSF_HABITS_AT_VERSION = 8,                                       /* 4 bytes */
    QSF_HABITS_AT_N = 12,                                            /* 4: experts of all blocks */
    QSF_HABITS_AT_MODEL = 16,                                        /* 8 */
    QSF_HABITS_AT_TOKENS = 24,                                       /* 4 */
    QSF_HABITS_AT_DEPTH = 28,                                        /* 4 each */
    QSF_HABITS_AT_USES = QSF_HABITS_AT_DEPTH + 4 * QSF_HABITS_DEPTHS /* (n) of 2; then a CRC-32 of 4 */
};

/* Returns the size of a file for n experts. */
static inline size_t qsf_habits_file_bytes(uint32_t n) { return QSF_HABITS_AT_USES + 2 * (size_t)n + 4; }

/* Returns a little-endian number of at most 8 bytes. */
static inline uint64_t qsf_habits_get(const unsigned char *p, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

/* Returns what is wrong with p (bytes), which should be a whole file for n experts of a model with this
 * identity, in words that follow its name; NULL: nothing. model NULL: of any. Any thread. */
const char *qsf_habits_fault(const unsigned char *p, size_t bytes, uint32_t n, const uint64_t *model);

#endif
