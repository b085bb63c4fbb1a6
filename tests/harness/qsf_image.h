/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A QSF file in memory, to be damaged, and its checksums made right again. */
#ifndef QSF_TESTS_QSF_IMAGE_H
#define QSF_TESTS_QSF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct QsfImage {
    unsigned char *b; /* (len), the caller's to free */
    size_t len;
} QsfImage;

/* Where things stand in the undamaged file. */
typedef struct QsfImageMap {
    uint64_t index, embed, embed_len, last, meta, meta_len, n_layers;
} QsfImageMap;

/* b is NULL when the file cannot be read. */
QsfImage qsf_image_load(const char *path);
QsfImageMap qsf_image_map(const QsfImage *m);
/* n bytes, the lowest first. */
uint64_t qsf_image_get(const unsigned char *b, unsigned n);
void qsf_image_put(unsigned char *b, unsigned n, uint64_t v);
/* 0 for what does not lie in the file. */
uint32_t qsf_image_crc(const QsfImage *m, uint64_t off, uint64_t len);
/* All checksums, as if what stands there now had been written. */
void qsf_image_fix(QsfImage *m, const QsfImageMap *at);

#endif
