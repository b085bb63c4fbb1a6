/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors that a source computes from its files when they are read: rows in a different order, several
 * tensors joined, parts of one, other types. They lie one after the other in a virtual file, whose number is
 * that after the last real one (qsf_source_n_files): QsfTensor.file and .offset are places there, and reading
 * them gives the bytes that a GGUF file has for the same weights. Nothing is stored: each read reads the real
 * files. Private to the format readers, except for what source.h offers. */
#ifndef QSF_FILE_DERIVE_DERIVE_H
#define QSF_FILE_DERIVE_DERIVE_H

#include "src/file/source_impl.h"

#define QSF_DERIVE_SCRATCH ((size_t)64 << 10) /* bytes of memory for one read */
#define QSF_DERIVE_READERS 4u                 /* reads at a time that need such memory; others wait */

/* How bytes of a tensor are made. Sources of COPY and TRANSPOSE may have any type; the result has the same.
 * F8 with scales counts as BF16 in all kinds up to NEG_EXP. */
typedef enum QsfDeriveKind {
    QSF_DERIVE_COPY,      /* row r is row place(r) of the source */
    QSF_DERIVE_TRANSPOSE, /* row r is column place(r) of the source, which may be several matrices */
    QSF_DERIVE_COLUMNS,   /* column c is column place(c) of the source; rows in order */
    QSF_DERIVE_TIMES,     /* as stored, times a factor */
    QSF_DERIVE_F32,       /* F32 from F32, F16, BF16 */
    QSF_DERIVE_ADD_ONE,   /* the same, x + 1 */
    QSF_DERIVE_NEG_EXP,   /* the same, -exp(x) */
    QSF_DERIVE_MXFP4,     /* MXFP4 from blocks and their scales in two tensors */
    QSF_DERIVE_TERNARY,   /* I2_S from two bits each, four rows in a byte */
    QSF_DERIVE_SPLIT32,   /* I2_32 from codes and their scales in two tensors, rows in order */
    QSF_DERIVE_KINDS
} QsfDeriveKind;

/* Which row of the source a row is: rows come in runs, which begin at rows first, first + stride, first + 2
 * stride... With heads, the rows of each head are stored in two halves: within a head of `head` rows, row 2i
 * is row i of the source, and row 2i + 1 is row head/2 + i. */
typedef struct QsfRowMap {
    uint64_t first, run, stride;
    /* After `period` runs, the next begins `step` rows after the first of them; 0 = never. */
    uint64_t period, step;
    uint32_t head; /* a divisor of run, even; 0 = in order */
    float factor;  /* for TIMES */
    /* For TRANSPOSE of a matrix that is cut into others: their number, the rows of each, how
     * many are used. */
    uint64_t cuts, cut_rows, cut_used;
    uint64_t pad; /* rows of zeros after the last */
} QsfRowMap;

/* The scales of F8 weights, one for each block of rows and columns. */
typedef struct QsfF8Scales {
    uint64_t rows;             /* of a source matrix, whose blocks begin at its first row; 0 = no scales */
    uint32_t codes, dtype;     /* F8_E4M3 or F8_E5M2; F32, F16 or BF16 */
    uint32_t cols;             /* scales in a row of the tensor of scales */
    uint32_t block_r, block_c; /* rows and columns that share a scale */
} QsfF8Scales;

/* A tensor or part of it, from which consecutive rows are made. */
typedef struct QsfDerivedPart {
    uint64_t row0, rows; /* of the result */
    uint32_t file;
    uint32_t scale_file;
    uint64_t at;       /* first byte of the source tensor in the file */
    uint64_t scale_at; /* the same of the tensor with its scales, for kinds that have them */
    const QsfRowMap *map;
    QsfF8Scales f8;
} QsfDerivedPart;

typedef struct QsfDerived {
    QsfDeriveKind kind;
    uint64_t row_bytes;   /* of the result */
    uint64_t cols;        /* elements of a row of the result */
    uint64_t src_rows;    /* of one source matrix; TRANSPOSE: its columns become rows */
    uint64_t src_cols;    /* elements */
    uint64_t src_step;    /* TRANSPOSE: rows from one source matrix to the next */
    uint32_t src_dtype;   /* of the source, a number of dtype.h; 0 for those that have none there */
    uint32_t src_elem;    /* bytes of one of its elements */
    bool scaled_f8;       /* all parts have F8 scales; src_dtype and src_elem are those of BF16 */
    uint32_t scale_dtype; /* SPLIT32: F32 or F16 */
    uint32_t n_parts;
    QsfDerivedPart *part; /* (n_parts), in order of row0 */
    uint32_t tail_bytes;  /* after the last row: `tail`, then zeros */
    float tail;
    uint64_t off, bytes; /* in the virtual file */
} QsfDerived;

/* Returns the row of the source that row r is. */
uint64_t qsf_row_place(const QsfRowMap *m, uint64_t r);
/* Are all places of rows [0, rows) below src_rows? */
bool qsf_row_map_ok(const QsfRowMap *m, uint64_t rows, uint64_t src_rows);

typedef struct QsfDerivedFile QsfDerivedFile;

/* Prepares space for n derived tensors, and makes s->virtual_ops read them. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_derived_open(QsfSource *s, uint64_t n, QsfErr *err);
/* Adds a tensor, whose fields but `off` and `bytes` are set, and returns its place in t->file and t->offset;
 * the parts must stay in place. t->bytes is its size. */
void qsf_derived_add(QsfSource *s, const QsfDerived *d, QsfTensor *t);
/* Removes all tensors that were added. */
void qsf_derived_clear(QsfSource *s);

/* One read within a part, for the functions that make bytes: [at, at + len) relative to the first byte of the
 * part. */
typedef struct QsfDeriveRead {
    const QsfSource *s;
    const QsfDerived *d;
    const QsfDerivedPart *p;
    uint64_t at, len;
    unsigned char *dst;
    unsigned char *scratch; /* (QSF_DERIVE_SCRATCH) */
    QsfErr *err;
} QsfDeriveRead;

/* derive/copy.c, derive/value.c, derive/packed.c */
int qsf_derive_copy(const QsfDeriveRead *r);
int qsf_derive_transpose(const QsfDeriveRead *r);
int qsf_derive_columns(const QsfDeriveRead *r);
int qsf_derive_times(const QsfDeriveRead *r);
int qsf_derive_value(const QsfDeriveRead *r);
int qsf_derive_mxfp4(const QsfDeriveRead *r);
int qsf_derive_ternary(const QsfDeriveRead *r);
int qsf_derive_split32(const QsfDeriveRead *r);

/* Reads from the part's source, relative to its first byte; F8 with scales is read as BF16
 * (derive/value.c). */
int qsf_derive_source(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len);
/* The same for the bytes in the file, without F8 scales, and for the tensor of scales of the part. */
int qsf_derive_stored(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len);
int qsf_derive_scales(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len);
/* Writes elements [col, col + n) of row `row` of the part, BYTES bytes each, for qsf_derive_elements. */
typedef int (*QsfDeriveElems)(const QsfDeriveRead *r, uint64_t row, uint64_t col, uint64_t n,
                              unsigned char *out);
/* Fills the range from whole elements of `bytes` bytes (or blocks, then columns count blocks), at most `most`
 * at a time; bytes x most is at most 4 KiB. */
int qsf_derive_elements(const QsfDeriveRead *r, unsigned bytes, uint64_t most, QsfDeriveElems make);

#endif
