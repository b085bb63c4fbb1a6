/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The format of files of whole distributions (qsf-run --kl-save, --kl-base; docs/QUANTIZATION.md).
 * Little-endian:
 *
 *   u32 rows, u32 vocabulary           rows = scored tokens
 *   f32 log-probability [rows][vocabulary], natural logarithm
 *   description of the rows (a file may end before it):
 *   u8  magic[8] = "QSFDISTR", u32 version = 2, u32 tokens, u32 window, u32 stride, u32 flags, u32 name bytes
 *   u8  name[name bytes]               of the model file
 *   i32 id[tokens]                     the whole text, BOS included
 *   u32 checksum[rows]                 CRC-32 of each row; version 1 has neither this nor the next
 *   u32 checksum                       CRC-32 of all bytes except the rows and this checksum */
#ifndef QSF_MEASURE_KLFORMAT_H
#define QSF_MEASURE_KLFORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define QSF_KL_MAGIC   "QSFDISTR"
#define QSF_KL_VERSION 2u
#define QSF_KL_PLAIN   1u        /* the version without checksums */
#define QSF_KL_HEAD    8u        /* bytes before the rows */
#define QSF_KL_ABOUT   32u       /* bytes from the magic to the name */
#define QSF_KL_NAME    255u      /* maximum bytes of the name */
#define QSF_KL_WINDOW  16777216u /* the longest context that --ctx accepts */
#define QSF_KL_PIECE   16384u    /* maximum floats that are read or written at once */

enum { QSF_KL_BOS = 1 }; /* flags: every window begins with BOS */

typedef struct QsfKlAbout {
    uint32_t n_rows, n_vocab;
    bool complete; /* the file has a description of the rows; otherwise the rest is 0 */
    uint32_t n_ids, window, stride, flags;
    char name[QSF_KL_NAME + 1]; /* reduced to printable ASCII */
} QsfKlAbout;

#endif
