/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the scales of quantized tensors. Names and shapes: huggingface/transformers integrations/
 * finegrained_fp8.py (fp8), mxfp4.py, bitnet.py. */
#include "src/file/hf/pieces.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/file/rows.h"

#define NAME_MAX_BYTES 512
#define I2_S_TAIL      32u

typedef struct Found {
    const QsfStTensor *t;
    uint32_t file;
} Found;

static bool find(const QsfHfModel *m, const char *name, int len, const char *suffix, Found *f) {
    char full[NAME_MAX_BYTES];
    const int n = snprintf(full, sizeof full, "%.*s%s", len, name, suffix);
    if (n < 0 || (size_t)n >= sizeof full) return false;
    for (f->file = 0; f->file < m->s->n_files; f->file++) {
        f->t = qsf_st_find(&m->h[f->file], full, (size_t)n);
        if (f->t != NULL) return true;
    }
    return false;
}

/* weight -> weight_scale_inv or weight_scale; x_blocks -> x_scales. */
static bool scales_of(const QsfHfModel *m, const char *name, Found *f) {
    const size_t n = strlen(name), k = sizeof "_blocks" - 1;
    if (n > k && strcmp(name + n - k, "_blocks") == 0) return find(m, name, (int)(n - k), "_scales", f);
    return find(m, name, (int)n, "_scale_inv", f) || find(m, name, (int)n, "_scale", f);
}

bool qsf_hf_scales_has(const QsfHfModel *m, const QsfHfPiece *p) {
    Found f;
    return scales_of(m, p->t->name, &f);
}

int qsf_hf_scales_kind(const QsfHfModel *m, const QsfHfPiece *p, QsfDerived *d) {
    const QsfStTensor *t = p->t;
    const bool f8 = t->dtype != QSF_ST_NO_DTYPE, copy = d->kind == QSF_DERIVE_COPY;
    if (f8 && d->kind <= QSF_DERIVE_NEG_EXP) {
        d->scaled_f8 = qsf_hf_scales_has(m, p);
        if (d->scaled_f8) d->src_dtype = QK_GGML_BF16;
        return QSF_OK;
    }
    if (!f8 && d->kind == QSF_DERIVE_MXFP4) return QSF_OK;
    if (!f8 && copy && strcmp(m->quantized, "bitnet") == 0) {
        d->kind = QSF_DERIVE_TERNARY;
        return QSF_OK;
    }
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%.*s' is of dtype %s, which is not supported for it",
                       m->s->files[p->file].path, QSF_HF_SHOWN, t->name, t->type_name);
}

static int bad_scales(const QsfHfModel *m, const Found *f, const char *what) {
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: tensor '%.*s' %s", m->s->files[f->file].path, QSF_HF_SHOWN,
                       f->t->name, what);
}

/* The scale of all of a ternary tensor. */
static int read_one(const QsfHfModel *m, const Found *f, QsfDerived *d) {
    unsigned char b[4];
    const uint64_t n = f->t->end - f->t->begin;
    if (f->t->dtype == QSF_ST_NO_DTYPE || n != (f->t->dtype == QK_GGML_F32 ? 4u : 2u))
        return bad_scales(m, f, "is not one scale of type F32, F16 or BF16");
    int rc = qsf_file_pread(&m->s->files[f->file], b, (size_t)n, f->t->begin, m->err);
    if (rc != QSF_OK) return rc;
    const float stored = qsf_float_of(f->t->dtype, b), scale = m->scale_is_factor ? stored : 1.0f / stored;
    if (!isfinite(scale) || !isfinite(stored)) return bad_scales(m, f, "is 0 or not a number");
    if (d->n_parts > 1 && memcmp(&scale, &d->tail, sizeof scale) != 0)
        return bad_scales(m, f, "differs from the scale of the tensors that it is joined with");
    d->tail = scale;
    d->tail_bytes = I2_S_TAIL;
    return QSF_OK;
}

/* Scales of blocks of rows and columns, of rows (or columns, where those are the outputs), or one for all. */
static int set_blocks(const QsfHfModel *m, const QsfHfPiece *p, const Found *f, const uint64_t *shape,
                      uint32_t n_dims, QsfF8Scales *f8) {
    const QsfStTensor *t = f->t;
    const uint64_t rows = shape[n_dims - 2], cols = shape[n_dims - 1], matrices = n_dims == 3 ? shape[0] : 1;
    const uint64_t n = (t->end - t->begin) / (t->dtype == QK_GGML_F32 ? 4 : 2);
    if (t->dtype != QK_GGML_F32 && t->dtype != QK_GGML_F16 && t->dtype != QK_GGML_BF16)
        return bad_scales(m, f, "is not of dtype F32, F16 or BF16");
    /* Experts that are transposed have their outputs in columns. */
    const bool by_column = n_dims == 3 && p->row->how == QSF_DERIVE_TRANSPOSE;
    uint64_t block_r = m->scale_block[0], block_c = m->scale_block[1];
    if (n == matrices) {
        block_r = rows;
        block_c = cols;
    } else if (block_r == 0 && n == (by_column ? cols : rows) * matrices) {
        block_r = by_column ? rows : 1;
        block_c = by_column ? 1 : cols;
    }
    if (block_r == 0 || block_c == 0 || block_r > UINT32_MAX || block_c > UINT32_MAX ||
        n != (rows + block_r - 1) / block_r * ((cols + block_c - 1) / block_c) * matrices)
        return bad_scales(m, f, "has a different number of scales than the weights have blocks");
    *f8 = (QsfF8Scales){ .rows = rows, .codes = p->t->dtype, .dtype = t->dtype };
    f8->cols = (uint32_t)((cols + block_c - 1) / block_c);
    f8->block_r = (uint32_t)block_r;
    f8->block_c = (uint32_t)block_c;
    return QSF_OK;
}

int qsf_hf_scales_find(const QsfHfModel *m, const QsfHfPiece *p, const uint64_t *shape, uint32_t n_dims,
                       QsfDerived *d, QsfDerivedPart *part) {
    Found f;
    if (!scales_of(m, p->t->name, &f))
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: the scales of tensor '%.*s' are missing", m->s->dir,
                           QSF_HF_SHOWN, p->t->name);
    part->scale_file = f.file;
    part->scale_at = f.t->begin;
    if (d->kind == QSF_DERIVE_TERNARY) return read_one(m, &f, d);
    if (d->scaled_f8) return set_blocks(m, p, &f, shape, n_dims, &part->f8);
    uint64_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) n *= shape[i];
    return f.t->end - f.t->begin == n ? QSF_OK : bad_scales(m, &f, "does not have one byte for each block");
}
