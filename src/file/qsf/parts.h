/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Consistency between the pieces of a QSF file: the position of sections, and which tensors a section may
 * contain. Shared by the reader, which seeks, and the verifier, which reads every byte once. */
#ifndef QSF_FILE_QSF_PARTS_H
#define QSF_FILE_QSF_PARTS_H

#include "src/file/qsf/layout.h"
#include "src/file/qsf/names.h"

typedef enum QsfSectionKind { QSFS_INDEX, QSFS_META, QSFS_EMBED, QSFS_LAYER, QSFS_FINAL } QsfSectionKind;

typedef struct QsfSection {
    uint64_t off, bytes; /* the final section extends to the end of the file; bytes 0 if that is unknown */
    QsfSectionKind kind;
    uint32_t layer;
} QsfSection;

/* Returns "layer index", "metadata", ...; static. */
const char *qsf_section_name(QsfSectionKind kind);

/* Lists the sections that the header locates in s (space for 4) and returns their number. The size of the
 * embedding is that of its header only. file_bytes 0: unknown. */
uint32_t qsf_sections_of_header(const QsfFileHeader *h, uint64_t file_bytes, QsfSection *s);
/* Sorts by offset and checks. QSF_E_MODEL: two sections overlap, one begins in the header or lacks the 4 KiB
 * alignment that the flags declare, a layer lies before the index, or any section after the final one. */
int qsf_sections_check(QsfSection *s, uint32_t n, const QsfFileHeader *h, const char *path, QsfErr *err);

/* State while reading the tensors of a section in order. Zero-initialize except for path, head, names, final,
 * layer and code. */
typedef struct QsfTensorScope {
    const char *path;
    const QsfFileHeader *head;
    const QsfNamed *names; /* NULL: the metadata was not read yet, so named tensors are an error */
    bool final;            /* the final section; otherwise a layer: */
    uint32_t layer;
    uint8_t code;            /* of the layer; the final section has none: QSFF_MIXED */
    uint64_t seen;           /* set of 1 << type of the tensors so far */
    uint32_t count, n_named; /* tensors so far, and those of them that are named */
    QsfTensorHeader last;    /* the newest */
} QsfTensorScope;

typedef struct QsfTensorPlace {
    QsfTensorHeader head;
    uint32_t dtype;              /* dtype.h */
    uint64_t bytes;              /* of its data, which follows the header */
    const QsfNamedTensor *named; /* NULL if its type determines its name */
} QsfTensorPlace;

/* Returns the offset of the next tensor header in its section, of which `pos` bytes are used so far. */
uint64_t qsf_tensor_next(uint64_t pos, uint32_t flags);
/* Decodes and checks the tensor header b at byte offset `at` of the file. QSF_E_MODEL: errors of decoding; a
 * type that is unknown, misplaced or a duplicate; a shape or code that its type cannot have; a named tensor
 * without a name, or with dimensions that do not match. */
int qsf_scope_tensor(QsfTensorScope *s, const unsigned char b[QSFF_TENSOR_BYTES], uint64_t at,
                     QsfTensorPlace *t, QsfErr *err);
/* Checks, after the last tensor, that none is missing and that no named one has the name of another. tied:
 * the head is the embedding. QSF_E_MODEL. */
int qsf_scope_end(const QsfTensorScope *s, bool tied, QsfErr *err);

/* Decodes the embedding header b and checks it against h; *bytes = size of its section. QSF_E_MODEL. */
int qsf_embed_section(const QsfFileHeader *h, const unsigned char b[QSFF_EMBED_BYTES], const char *path,
                      QsfEmbedHeader *e, uint32_t *dtype, uint64_t *bytes, QsfErr *err);
/* Returns the size of the final section before its tensors: norm, bias with LayerNorm, and the head flag. */
uint64_t qsf_final_norm_bytes(const QsfFileHeader *h);
/* Decodes the head flag at byte offset `at`. QSF_E_MODEL. */
int qsf_final_flag(unsigned char flag, uint64_t at, const char *path, bool *tied, QsfErr *err);

/* Checks that `need` bytes at pos lie inside the section of `bytes` bytes at base. QSF_E_MODEL. */
int qsf_tensor_fits(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t need, uint64_t bytes,
                    QsfErr *err);
/* Checks that the tensors of the section, which end at pos, fill it. QSF_E_MODEL. */
int qsf_section_used(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t bytes, QsfErr *err);

/* Returns the code of all layers if they have the same one, else QSFF_MIXED. */
uint8_t qsf_common_code(const QsfIndexEntry *e, uint32_t n);

#endif
