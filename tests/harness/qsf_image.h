/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A QSF file in memory, to be damaged, with functions to correct its checksums. */
#ifndef QSF_TESTS_QSF_IMAGE_H
#define QSF_TESTS_QSF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct QsfImage {
    unsigned char *b; /* (len), freed by the caller */
    size_t len;
} QsfImage;

/* Offsets in the undamaged file. */
typedef struct QsfImageMap {
    uint64_t index, embed, embed_len, last, meta, meta_len, n_layers;
} QsfImageMap;

/* b is NULL if the file cannot be read. */
QsfImage qsf_image_load(const char *path);
QsfImageMap qsf_image_map(const QsfImage *m);
/* n bytes, the lowest first. */
uint64_t qsf_image_get(const unsigned char *b, unsigned n);
void qsf_image_put(unsigned char *b, unsigned n, uint64_t v);
/* 0 for offsets outside the file. */
uint32_t qsf_image_crc(const QsfImage *m, uint64_t off, uint64_t len);
/* Updates all checksums to match the current contents. */
void qsf_image_fix(QsfImage *m, const QsfImageMap *at);

#endif
