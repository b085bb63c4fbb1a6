/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF files in memory. Uses literal offsets, not those of the code under test. */
#include "tests/harness/qsf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/crc32.h"

#define META_U32 4u

QsfImage qsf_image_load(const char *path) {
    QsfImage m = { NULL, 0 };
    FILE *f = fopen(path, "rb");
    if (f == NULL) return m;
    long len = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    rewind(f);
    m.b = len > 0 ? malloc((size_t)len) : NULL;
    if (m.b != NULL) m.len = fread(m.b, 1, (size_t)len, f);
    fclose(f);
    return m;
}

uint64_t qsf_image_get(const unsigned char *b, unsigned n) {
    uint64_t v = 0;
    for (unsigned i = n; i > 0; i--) v = v << 8 | b[i - 1];
    return v;
}

void qsf_image_put(unsigned char *b, unsigned n, uint64_t v) {
    for (unsigned i = 0; i < n; i++) b[i] = (unsigned char)(v >> 8 * i);
}

uint32_t qsf_image_crc(const QsfImage *m, uint64_t off, uint64_t len) {
    if (off > m->len || len > m->len - off) return 0;
    return qsf_crc32(0, m->b + off, (size_t)len);
}

QsfImageMap qsf_image_map(const QsfImage *m) {
    QsfImageMap at = { .index = qsf_image_get(m->b + 56, 8),
                       .embed = qsf_image_get(m->b + 64, 8),
                       .last = qsf_image_get(m->b + 72, 8),
                       .meta = qsf_image_get(m->b + 100, 8),
                       .meta_len = qsf_image_get(m->b + 108, 8),
                       .n_layers = qsf_image_get(m->b + 16, 4) };
    at.embed_len = 16 + qsf_image_get(m->b + at.embed + 4, 4);
    return at;
}

/* Sets a u32 of the metadata, at its offset. */
static void set_key(QsfImage *m, const QsfImageMap *at, const char *key, uint32_t v) {
    const size_t n = strlen(key);
    unsigned char *p = m->b + at->meta, *end = p + at->meta_len;
    while ((p = memmem(p, (size_t)(end - p), key, n)) != NULL) {
        p += n;
        if (end - p < 8) return;
        if (qsf_image_get(p, 4) != META_U32) continue;
        qsf_image_put(p + 4, 4, v);
        return;
    }
}

void qsf_image_fix(QsfImage *m, const QsfImageMap *at) {
    for (uint64_t i = 0; i < at->n_layers; i++) {
        unsigned char *e = m->b + at->index + 32 * i;
        qsf_image_put(e + 20, 4, qsf_image_crc(m, qsf_image_get(e, 8), qsf_image_get(e + 8, 4)));
    }
    set_key(m, at, "qsf.crc32.index", qsf_image_crc(m, at->index, 32 * at->n_layers));
    set_key(m, at, "qsf.crc32.embedding", qsf_image_crc(m, at->embed, at->embed_len));
    set_key(m, at, "qsf.crc32.final", qsf_image_crc(m, at->last, m->len - at->last));
    set_key(m, at, "qsf.crc32.header100", qsf_crc32(qsf_image_crc(m, 100, 16), m->b + 120, 8));
    qsf_image_put(m->b + 116, 4, qsf_image_crc(m, at->meta, at->meta_len));
    qsf_image_put(m->b + 96, 4, qsf_image_crc(m, 0, 96));
}
