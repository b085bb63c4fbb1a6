/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Copies metadata from a source to a file, encoded as in GGUF v3 (ggml-org/ggml docs/gguf.md). */
#include <string.h>

#include "src/file/source_impl.h"

#define PIECE 65536u

static uint64_t scalar_bits(const QsfMetaEntry *e) {
    uint64_t bits = e->v.u;
    uint32_t low;
    float f;
    switch (e->type) {
    case QSF_META_F32:
        f = (float)e->v.f;
        memcpy(&low, &f, sizeof low);
        return low;
    case QSF_META_F64: memcpy(&bits, &e->v.f, sizeof bits); return bits;
    case QSF_META_I8:
    case QSF_META_I16:
    case QSF_META_I32:
    case QSF_META_I64: return (uint64_t)e->v.i;
    default: return bits;
    }
}

/* Encodes a pair without the elements of an array. */
static void put_entry(QsfStrbuf *b, const QsfMetaEntry *e) {
    qsf_meta_put_str(b, e->key, e->key_len);
    qsf_meta_put_le(b, (uint64_t)e->type, 4);
    if (e->type == QSF_META_ARRAY) {
        qsf_meta_put_le(b, (uint64_t)e->elem, 4);
        qsf_meta_put_le(b, e->v.arr.count, 8);
    } else if (e->type == QSF_META_STRING) {
        qsf_meta_put_str(b, e->v.str.s, (size_t)e->v.str.len);
    } else {
        qsf_meta_put_le(b, scalar_bits(e), qsf_meta_type_bytes(e->type));
    }
}

/* Copies the elements from the file of the source. */
static int copy_elements(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg,
                         QsfErr *err) {
    unsigned char piece[PIECE];
    if (e->v.arr.mem != NULL) return sink(arg, e->v.arr.mem, (size_t)e->v.arr.bytes, err);
    int rc = QSF_OK;
    for (uint64_t done = 0; rc == QSF_OK && done < e->v.arr.bytes;) {
        uint64_t left = e->v.arr.bytes - done;
        size_t n = left < PIECE ? (size_t)left : PIECE;
        rc = qsf_file_pread(&s->files[0], piece, n, e->v.arr.off + done, err);
        if (rc == QSF_OK) rc = sink(arg, piece, n, err);
        done += n;
    }
    return rc;
}

int qsf_meta_copy_entry(const QsfSource *s, const QsfMetaEntry *e, QsfMetaSink sink, void *arg, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_entry(&b, e);
    int rc = qsf_strbuf_ok(&b) ? sink(arg, b.data, b.len, err)
                               : qsf_err_memory(err, "metadata key '%s'", e->key);
    qsf_strbuf_free(&b);
    return rc == QSF_OK && e->type == QSF_META_ARRAY ? copy_elements(s, e, sink, arg, err) : rc;
}
