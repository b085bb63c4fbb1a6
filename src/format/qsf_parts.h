/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the pieces of a QSF file say of each other: where sections lie, what tensors a section may hold.
 * Shared by the reader, which jumps, and the verifier, which sees every byte once. */
#ifndef QSF_FORMAT_QSF_PARTS_H
#define QSF_FORMAT_QSF_PARTS_H

#include "src/format/qsf_layout.h"

typedef enum QsfSectionKind { QSFS_INDEX, QSFS_META, QSFS_EMBED, QSFS_LAYER, QSFS_FINAL } QsfSectionKind;

typedef struct QsfSection {
    uint64_t off, bytes; /* bytes of the final section: to the end of the file; 0 where that is not known */
    QsfSectionKind kind;
    uint32_t layer;
} QsfSection;

/* "layer index", "metadata", ...; static. */
const char *qsf_section_name(QsfSectionKind kind);

/* The sections that the header names, into s (room for 4); returns how many. The embedding's bytes are those
 * of its header only. file_bytes 0: not known. */
uint32_t qsf_sections_of_header(const QsfFileHeader *h, uint64_t file_bytes, QsfSection *s);
/* Sorts by place. QSF_E_MODEL: two overlap, one begins in the header or off the 4 KiB that the flags promise,
 * a layer stands before the index, anything behind the final section. */
int qsf_sections_check(QsfSection *s, uint32_t n, const QsfFileHeader *h, const char *path, QsfErr *err);

/* A section's tensors, one after the other. Zero-initialise with these: */
typedef struct QsfTensorScope {
    const char *path;
    const QsfFileHeader *head;
    bool final; /* the final section; else: */
    uint32_t layer;
    uint8_t code;  /* of the layer; the final section has none: QSFF_MIXED */
    uint64_t seen; /* 1 << type: of those so far */
    uint32_t count;
    QsfTensorHeader last; /* the newest */
} QsfTensorScope;

typedef struct QsfTensorPlace {
    QsfTensorHeader head;
    uint32_t dtype; /* dtype.h */
    uint64_t bytes; /* of its data, which follows the header */
} QsfTensorPlace;

/* Where the next tensor header stands, `pos` bytes from the start of the section being used so far. */
uint64_t qsf_tensor_next(uint64_t pos, uint32_t flags);
/* The 16 bytes b of a tensor header at byte offset `at` of the file. QSF_E_MODEL: what decoding finds, a type
 * that is unknown, out of place or there twice, a shape or code that its type cannot have. */
int qsf_scope_tensor(QsfTensorScope *s, const unsigned char b[QSFF_TENSOR_BYTES], uint64_t at,
                     QsfTensorPlace *t, QsfErr *err);
/* After the last tensor; tied: the head is the embedding. QSF_E_MODEL: one is missing. */
int qsf_scope_end(const QsfTensorScope *s, bool tied, QsfErr *err);

/* The embedding's header b, held against h; *bytes: of its section. QSF_E_MODEL. */
int qsf_embed_section(const QsfFileHeader *h, const unsigned char b[QSFF_EMBED_BYTES], const char *path,
                      QsfEmbedHeader *e, uint32_t *dtype, uint64_t *bytes, QsfErr *err);
/* Bytes of the final section before its tensors: norm, bias with LayerNorm, and the byte that says whether
 * there is a head. */
uint64_t qsf_final_norm_bytes(const QsfFileHeader *h);
/* What that byte, at byte offset `at`, says. QSF_E_MODEL. */
int qsf_final_flag(unsigned char flag, uint64_t at, const char *path, bool *tied, QsfErr *err);

/* QSF_E_MODEL unless `need` bytes from pos on lie inside the `bytes` of the section at base. */
int qsf_tensor_fits(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t need, uint64_t bytes,
                    QsfErr *err);
/* QSF_E_MODEL unless the tensors of the section, which end at pos, fill it. */
int qsf_section_used(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t bytes, QsfErr *err);

/* The code of the header when all layers have the same, else QSFF_MIXED. */
uint8_t qsf_common_code(const QsfIndexEntry *e, uint32_t n);

#endif
