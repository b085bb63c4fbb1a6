/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a model as QSF: metadata unchanged, tensors unchanged or requantized. */
#ifndef QSF_CONVERT_PACK_PACK_H
#define QSF_CONVERT_PACK_PACK_H

#include "src/convert/pack/calibration.h"
#include "src/convert/pack/choose.h"
#include "src/file/qsf/write.h"

typedef struct QsfPackOptions {
    QsfPackType type;                  /* zeroed: keep */
    uint64_t target;                   /* maximum file size in bytes; 0: no limit */
    const QsfCalibration *calibration; /* NULL, or that of s: its energies are the weights for search and
                                          choice; its scores are written for the layers */
    const QsfUses *uses; /* NULL, or what the program of s does with its tensors; without it, tensors
                                          without a type are neither quantized nor interleaved */
    uint32_t flags;      /* QSFF_PAGES, QSFF_LINES */
    bool stacked;        /* the matrices of all experts as one tensor, as in GGUF; otherwise those of one
                                 expert follow one another, if uses say which they are */
    const char *by_use;  /* NULL, or a trace of choices: seldom used experts get fewer bits (expert_uses.h) */
    bool x16;            /* interleave rows of matrices by 16 if there are kernels for the format */
    uint32_t block;      /* block size of codes 0 to 4; 0: 64. 128 and 256 are slightly smaller and
                                 worse; only qsf_pack can read them, no kernel supports them */
    uint8_t codec;       /* compression of layers (qsf/write.h); zeroed: none */
    bool dry;            /* choose, but write nothing: sizes are exact (with compression: upper limits),
                                 errors are unknown */
    int threads;         /* 0: 1 */
    const atomic_int *cancel; /* NULL, or a nonzero value cancels */
    /* NULL, or called periodically with the bytes of tensors done and in total. */
    void (*progress)(void *arg, const QsfItem *now, uint64_t done, uint64_t all);
    void *progress_arg;
} QsfPackOptions;

typedef struct QsfPackReport {
    QsfItems items;            /* names belong to the source, weights to the calibration */
    uint64_t bytes;            /* of the file */
    uint64_t whole_bytes;      /* uncompressed size of the compressed layers; 0 with dry */
    uint64_t compressed_bytes; /* their compressed size */
    uint32_t n_compressed;     /* number of compressed layers */
} QsfPackReport;

/* Writes s to path. Without a calibration, the layer scores of s are kept. Memory does not grow with the
 * model: a piece of a tensor at a time and, with compression, one layer uncompressed and compressed. report:
 * NULL, or receives the result for each tensor; the caller frees it, also on failure. QSF_E_MODEL names a
 * tensor that QSF cannot store, that is missing, that has the wrong shape, or that has a value that is not a
 * number; QSF_E_USAGE: the target cannot be met, or as qsf_write_open; QSF_E_RUNTIME, QSF_E_INTERRUPTED. On
 * failure nothing is left behind. */
int qsf_pack(const QsfSource *s, const char *path, const QsfPackOptions *o, QsfPackReport *report,
             QsfErr *err);
void qsf_pack_report_free(QsfPackReport *r); /* *r may be zeroed */

#endif
