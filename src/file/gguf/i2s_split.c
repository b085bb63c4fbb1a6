/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_S tensors whose scales are another tensor: finds and checks it, and joins both. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/file/gguf/i2s.h"
#include "src/file/rows.h"

enum { NAME_MAX_LEN = 1100 }; /* longer than any name in a GGUF file, with a suffix */

static int compare(const void *a, const void *b) {
    return strcmp((*(const QsfTensor *const *)a)->name, (*(const QsfTensor *const *)b)->name);
}

static const QsfTensor *named(const QsfI2sNames *names, const char *name, size_t len, const char *suffix) {
    char full[NAME_MAX_LEN];
    if (len + strlen(suffix) >= sizeof full) return NULL;
    memcpy(full, name, len);
    memcpy(full + len, suffix, strlen(suffix) + 1);
    const QsfTensor key = { .name = full }, *p = &key;
    const QsfTensor **found = bsearch(&p, names->by_name, (size_t)names->n, sizeof p, compare);
    return found != NULL ? *found : NULL;
}

const QsfTensor *qsf_i2s_scales(const QsfI2sNames *names, const char *name) {
    static const char *const suffixes[] = { ".scale", ".scales", "_scale", "_scales" };
    const size_t len = strlen(name), weight = strlen(".weight");
    const bool longer = len > weight && strcmp(name + len - weight, ".weight") == 0;
    const QsfTensor *t = NULL;
    for (size_t i = 0; t == NULL && i < sizeof suffixes / sizeof *suffixes; i++) {
        t = named(names, name, len, suffixes[i]);
        if (t == NULL && longer) t = named(names, name, len - weight, suffixes[i]);
    }
    return t;
}

static int check(const QsfSource *s, const QsfTensor *t, const QsfTensor *scales, QsfErr *err) {
    const uint64_t blocks = t->bytes / qsf_dtype(QSF_DTYPE_I2_SPLIT)->block_bytes;
    const uint64_t n = scales->ne[0] * qsf_tensor_n_rows(scales); /* checked by the reader */
    const char *path = s->files[scales->file].path;
    if (scales->dtype != QK_GGML_F32 && scales->dtype != QK_GGML_F16)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor '%s' has the scales of '%s' and is of type %s, expected F16 or F32",
                           path, scales->name, t->name, qsf_dtype(scales->dtype)->name);
    if (n != blocks)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor '%s' has %" PRIu64 " elements, expected %" PRIu64
                           ", a scale for each block of 32 elements of '%s' (%" PRIu64 " x %" PRIu64 ")",
                           path, scales->name, n, blocks, t->name, t->ne[0], qsf_tensor_n_rows(t));
    return QSF_OK;
}

/* Makes t a derived tensor; part and map are for it. */
static int join(QsfSource *s, QsfTensor *t, const QsfTensor *scales, QsfDerivedPart *part, QsfRowMap *map,
                QsfErr *err) {
    const QsfDtype *from = qsf_dtype(QSF_DTYPE_I2_SPLIT), *to = qsf_dtype(QK_GGML_I2_32);
    const uint64_t rows = qsf_tensor_n_rows(t), blocks = t->ne[0] / from->block_elems;
    QsfDerived d = { .kind = QSF_DERIVE_SPLIT32,
                     .cols = t->ne[0],
                     .src_rows = rows,
                     .src_cols = blocks,
                     .src_elem = from->block_bytes,
                     .scale_dtype = scales->dtype,
                     .n_parts = 1,
                     .part = part };
    *map = (QsfRowMap){ .run = rows, .stride = rows };
    *part = (QsfDerivedPart){ .rows = rows,
                              .file = t->file,
                              .scale_file = scales->file,
                              .at = t->offset,
                              .scale_at = scales->offset,
                              .map = map };
    if (!qsf_dtype_row_bytes(to, t->ne[0], &d.row_bytes) || !qsf_dtype_tensor_bytes(to, t->ne, &t->bytes))
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is too large", s->files[t->file].path, t->name);
    t->dtype = QK_GGML_I2_32;
    qsf_derived_add(s, &d, t);
    return QSF_OK;
}

int qsf_i2s_join(QsfSource *s, const QsfI2sNames *names, QsfErr *err) {
    const QsfI2s *x = s->i2s;
    uint64_t n = 0, kept = 0;
    int rc = QSF_OK;
    qsf_derived_clear(s);
    memset(x->joined, 0, (size_t)x->n * sizeof *x->joined);
    for (uint64_t i = 0; rc == QSF_OK && i < x->n; i++) {
        QsfTensor *t = &s->tensors[i];
        if (t->dtype != QSF_DTYPE_I2_SPLIT) continue;
        const QsfTensor *scales = qsf_i2s_scales(names, t->name); /* not NULL in this layout */
        rc = check(s, t, scales, err);
        if (rc == QSF_OK && s->derived == NULL) rc = qsf_derived_open(s, x->n_i2s, err);
        if (rc == QSF_OK) rc = join(s, t, scales, &x->part[n], &x->map[n], err);
        x->joined[scales - s->tensors] = true;
        n++;
    }
    for (uint64_t i = 0; rc == QSF_OK && i < x->n; i++)
        if (!x->joined[i]) s->tensors[kept++] = s->tensors[i];
    if (rc == QSF_OK) s->n_tensors = kept;
    return rc;
}
