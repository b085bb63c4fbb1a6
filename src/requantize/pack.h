/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model as a QSF file: every metadata entry as it is, tensors as they are or packed anew. */
#ifndef QSF_PACK_PACK_H
#define QSF_PACK_PACK_H

#include "src/format/qsf_write.h"
#include "src/requantize/calibration.h"
#include "src/requantize/choose.h"

typedef struct QsfPackOptions {
    QsfPackType type;         /* zeroed: keep */
    uint64_t target;          /* bytes the file may have at most; 0: no target */
    const QsfCalibration *calibration; /* NULL, or of s: its energies become the weights of search and choice, its
                                          scores the layers' */
    uint32_t flags;           /* QSFF_PAGES, QSFF_LINES */
    bool x16;                 /* rows of matrices are interleaved by 16 where their format has kernels for it */
    uint32_t block;           /* of the codes 0 to 4; 0: 64. 128 and 256 are a little smaller and worse, and only read back
                                 by qsf_pack: no kernel computes with them */
    uint8_t press;            /* compression of layers (qsf_write.h); zeroed: none */
    bool dry;                 /* choose, but write nothing: sizes are exact (with compression: at most that), errors not
                                 known */
    int threads;              /* 0: 1 */
    const atomic_int *cancel; /* NULL, or not 0 ends it */
    /* NULL, or called from time to time: bytes of tensors done and in all. */
    void (*progress)(void *arg, const QsfItem *now, uint64_t done, uint64_t all);
    void *progress_arg;
} QsfPackOptions;

typedef struct QsfPackReport {
    QsfItems items;           /* names are the source's, weights the calibration's */
    uint64_t bytes;           /* of the file */
    uint64_t whole_bytes;     /* what the compressed layers would take as they are; 0 with dry */
    uint64_t compressed_bytes;   /* what they take */
    uint32_t n_compressed;       /* so many layers are compressed */
} QsfPackReport;

/* Writes s to path, with the scores of layers that s has, where there is no calibration, in memory that does not grow with
 * the model: a piece of a tensor at a time, and with compression a layer as it is and compressed. report: NULL, or what
 * became of each tensor; the caller frees it, whatever is returned. QSF_E_MODEL: QSF has no place for a tensor, which is
 * named, one is missing or of the wrong shape, or has a value that is no number; QSF_E_USAGE: the target cannot be met,
 * or as qsf_write_open; QSF_E_RUNTIME, QSF_E_INTERRUPTED. On failure nothing is left behind. */
int qsf_pack(const QsfSource *s, const char *path, const QsfPackOptions *o, QsfPackReport *report, QsfErr *err);
void qsf_pack_report_free(QsfPackReport *r); /* a zeroed one is allowed */

#endif
