/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads bytes and rows of tensors, wherever they are, and converts floats. */
#include "src/file/rows.h"

#include <fcntl.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/base/half.h"
#include "src/file/dtype.h"
#include "src/file/source_impl.h"

static const QsfTensorNote *note_of(const QsfSource *s, const QsfTensor *t) {
    return s->notes != NULL ? &s->notes[t - s->tensors] : NULL;
}

uint64_t qsf_tensor_n_rows(const QsfTensor *t) {
    return t->ne[1] * t->ne[2] * t->ne[3]; /* checked at open */
}

static int outside(const QsfTensor *t, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: read outside tensor '%s'", t->name);
}

int qsf_source_read_bytes(const QsfSource *s, const QsfTensor *t, uint64_t at, void *dst, size_t len,
                          QsfErr *err) {
    if (!qsf_range_ok(at, len, t->bytes)) return outside(t, err);
    if (t->compressed != NULL) return s->compressed_ops->read(s, t, at, dst, len, err);
    if (t->file == QSF_FILE_NONE) {
        memcpy(dst, (const char *)note_of(s, t)->made + at, len);
        return QSF_OK;
    }
    if (t->file == s->n_files) return qsf_source_virtual_read(s, t->offset + at, len, dst, err);
    return qsf_file_pread(&s->files[t->file], dst, len, t->offset + at, err);
}

void qsf_source_will_need(const QsfSource *s, const QsfTensor *t, uint64_t at, uint64_t len) {
    if (t->file == QSF_FILE_NONE || !qsf_range_ok(at, len, t->bytes)) return;
    if (t->file == s->n_files)
        qsf_source_virtual_advise(s, t->offset + at, len, QSF_ADVICE_WILL_NEED);
    else
        qsf_file_will_need(&s->files[t->file], t->offset + at, len);
}

bool qsf_source_is_directory(const QsfSource *s) { return s->dir != NULL; }

int qsf_source_read_stored(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, void *out,
                           QsfErr *err) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the readers refuse unknown ones */
    uint64_t bytes;
    if (!qsf_dtype_row_bytes(type, t->ne[0], &bytes) || !qsf_range_ok(first, n, qsf_tensor_n_rows(t)))
        return outside(t, err);
    if (t->x16)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: the rows of tensor '%s' are interleaved", t->name);
    return qsf_source_read_bytes(s, t, first * bytes, out, (size_t)(n * bytes), err);
}

/* --- floats --- */

typedef float (*ToFloat)(const unsigned char *p);

static uint32_t low_16(const unsigned char *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static float of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float of_f32(const unsigned char *p) { return of_bits(low_16(p) | low_16(p + 2) << 16); }
static float of_bf16(const unsigned char *p) { return of_bits(low_16(p) << 16); }

static float of_half_bits(unsigned bits) {
    const unsigned char b[2] = { (unsigned char)bits, (unsigned char)(bits >> 8) };
    return qsf_half_get(b);
}

/* As in kernels/f8.h. */
static float of_e4m3(const unsigned char *p) {
    if ((*p & 0x7f) == 0x7f) return of_bits(0x7fc00000);
    return of_half_bits((*p & 0x80u) << 8 | (*p & 0x7fu) << 7) * 256.0f;
}

static float of_e5m2(const unsigned char *p) { return of_half_bits((unsigned)*p << 8); }

typedef struct Plain {
    uint32_t dtype, bytes;
    ToFloat convert;
} Plain;

static const Plain plain[] = {
    { QK_GGML_F32, QK_BYTES_F32, of_f32 },          { QK_GGML_F16, QK_BYTES_F16, qsf_half_get },
    { QK_GGML_BF16, QK_BYTES_BF16, of_bf16 },       { QK_GGML_F8_E4M3, QK_BYTES_F8_E4M3, of_e4m3 },
    { QK_GGML_F8_E5M2, QK_BYTES_F8_E5M2, of_e5m2 },
};

static const Plain *plain_of(uint32_t dtype) {
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i].dtype == dtype) return &plain[i];
    return NULL;
}

float qsf_float_of(uint32_t dtype, const unsigned char *p) { return plain_of(dtype)->convert(p); }

int qsf_source_read_rows(const QsfSource *s, const QsfTensor *t, uint64_t first, uint64_t n, float *out,
                         QsfErr *err) {
    const Plain *p = plain_of(t->dtype);
    if (p == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, expected F32, F16, BF16 or F8",
                           qsf_source_path(s), t->name, qsf_dtype(t->dtype)->name);
    if (!qsf_range_ok(first, n, qsf_tensor_n_rows(t))) return outside(t, err);
    /* Stored values are read to the end of out: none is longer than a float, so each is converted before it
     * is overwritten. */
    size_t elems = (size_t)(n * t->ne[0]);
    unsigned char *stored = (unsigned char *)out + elems * (sizeof *out - p->bytes);
    int rc = qsf_source_read_stored(s, t, first, n, stored, err);
    for (size_t i = 0; rc == QSF_OK && i < elems; i++) out[i] = p->convert(stored + i * p->bytes);
    return rc;
}
