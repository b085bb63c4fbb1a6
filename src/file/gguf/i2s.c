/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which of four layouts an I2_S tensor has, by its size; and joins those whose scales are another tensor. */
#include "src/file/i2s.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/derive/derive.h"
#include "src/file/dtype.h"
#include "src/file/gguf/gguf.h"
#include "src/file/rows.h"

enum { NAME_MAX_LEN = 1100 }; /* longer than any name in a GGUF file, with a suffix */

/* What choosing a layout again begins with; in the arena of the source. */
typedef struct QsfI2s {
    const QsfTensor *stored;   /* (n) the tensors as the files list them */
    const uint32_t *alignment; /* (n_files) */
    bool *joined;              /* (n) tensors of scales that are part of another tensor */
    QsfDerivedPart *part;      /* (n_i2s) */
    QsfRowMap *map;            /* (n_i2s) */
    uint64_t n, n_i2s;
} QsfI2s;

/* The tensors of a source by their names. */
typedef struct Names {
    const QsfTensor **by_name; /* (n) */
    uint64_t n;
} Names;

/* What a tensor is looked at with. */
typedef struct Finder {
    const QsfSource *s;
    const uint32_t *alignment; /* of each file */
    Names names;
    int wanted; /* or -1 */
    QsfErr *err;
} Finder;

static bool is_i2s(const QsfTensor *t) {
    for (int f = 0; f < QSF_I2S_LAYOUTS; f++)
        if (t->dtype == qsf_i2s_layouts[f].dtype) return true;
    return false;
}

static int by_place(const void *a, const void *b) {
    const QsfTensor *x = *(QsfTensor *const *)a, *y = *(QsfTensor *const *)b;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const QsfTensor *const *)a)->name, (*(const QsfTensor *const *)b)->name);
}

/* --- scales in another tensor --- */

static const QsfTensor *named(const Names *names, const char *name, size_t len, const char *suffix) {
    char full[NAME_MAX_LEN];
    if (len + strlen(suffix) >= sizeof full) return NULL;
    memcpy(full, name, len);
    memcpy(full + len, suffix, strlen(suffix) + 1);
    const QsfTensor key = { .name = full }, *p = &key;
    const QsfTensor **found = bsearch(&p, names->by_name, (size_t)names->n, sizeof p, by_name);
    return found != NULL ? *found : NULL;
}

/* Returns the tensor with the scales of the tensor with this name, or NULL. */
static const QsfTensor *find_scales(const Names *names, const char *name) {
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

/* Makes the tensors of type I2_SPLIT derived ones of type I2_32, and takes their scales out of the table. */
static int join_all(QsfSource *s, const Names *names, QsfErr *err) {
    const QsfI2s *x = s->i2s;
    uint64_t n = 0, kept = 0;
    int rc = QSF_OK;
    qsf_derived_clear(s);
    memset(x->joined, 0, (size_t)x->n * sizeof *x->joined);
    for (uint64_t i = 0; rc == QSF_OK && i < x->n; i++) {
        QsfTensor *t = &s->tensors[i];
        if (t->dtype != QSF_DTYPE_I2_SPLIT) continue;
        const QsfTensor *scales = find_scales(names, t->name); /* not NULL in this layout */
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

/* --- the layout of a tensor --- */

/* Returns the bytes of a tensor of this layout; 0 if its rows do not consist of blocks. */
static uint64_t expected(const QsfTensor *t, int flavor) {
    uint64_t bytes;
    return qsf_dtype_tensor_bytes(qsf_dtype(qsf_i2s_layouts[flavor].dtype), t->ne, &bytes) ? bytes : 0;
}

static bool fits(const Finder *f, const QsfTensor *t, int flavor, uint64_t space) {
    const uint64_t bytes = expected(t, flavor);
    return bytes != 0 && bytes <= space && space - bytes < f->alignment[t->file];
}

static int no_flavor(const Finder *f, const QsfTensor *t, uint64_t space) {
    uint64_t bytes[QSF_I2S_LAYOUTS];
    for (int i = 0; i < QSF_I2S_LAYOUTS; i++) bytes[i] = expected(t, i);
    return qsf_err_set(f->err, QSF_E_MODEL,
                       "%s: tensor '%s' of type I2_S (%" PRIu64 " x %" PRIu64 ") has %" PRIu64
                       " bytes, %s: %" PRIu64 " (microsoft), %" PRIu64 " (bitnet32f16), %" PRIu64
                       " (split32), %" PRIu64
                       " (qk256); 0 means that its rows are not a multiple of the block",
                       f->s->files[t->file].path, t->name, t->ne[0], qsf_tensor_n_rows(t), space,
                       f->wanted < 0 ? "expected one of" : "not the size for --i2s-flavor", bytes[0],
                       bytes[1], bytes[2], bytes[3]);
}

static int no_scales(const Finder *f, const QsfTensor *t) {
    return qsf_err_set(f->err, QSF_E_MODEL,
                       "%s: tensor '%s' of type I2_S (%" PRIu64 " x %" PRIu64
                       ") has the size of the layout split32, but there is no tensor with its scales: the "
                       "same name, with or without '.weight', followed by .scale, .scales, _scale or "
                       "_scales",
                       f->s->files[t->file].path, t->name, t->ne[0], qsf_tensor_n_rows(t));
}

/* Sets the layout of a tensor with `space` bytes up to the next one. */
static int choose(const Finder *f, QsfTensor *t, uint64_t space) {
    const bool scales = find_scales(&f->names, t->name) != NULL;
    bool bare = false;
    for (int i = 0; i < QSF_I2S_LAYOUTS; i++) {
        const bool allowed = f->wanted >= 0 ? i == f->wanted
                                            : qsf_i2s_layouts[i].dtype != QK_GGML_I2_256 || !scales;
        if (!allowed || !fits(f, t, i, space)) continue;
        if (qsf_i2s_layouts[i].split && !scales) {
            bare = true;
            continue;
        }
        t->dtype = qsf_i2s_layouts[i].dtype;
        t->bytes = expected(t, i);
        t->scale = 1.0f;
        return QSF_OK;
    }
    return bare ? no_scales(f, t) : no_flavor(f, t, space);
}

/* order: all tensors by file and offset. */
static int resolve(const Finder *f, QsfTensor **order) {
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < f->names.n; i++) {
        QsfTensor *t = order[i];
        if (!is_i2s(t)) continue;
        uint64_t end = f->s->files[t->file].size;
        for (uint64_t j = i + 1; j < f->names.n && order[j]->file == t->file; j++)
            if (order[j]->offset > t->offset) {
                end = order[j]->offset;
                break;
            }
        rc = choose(f, t, end > t->offset ? end - t->offset : 0);
        if (rc == QSF_OK && t->dtype == QK_GGML_I2_S) rc = qsf_i2s_read_scale(f->s, t, f->err);
    }
    return rc;
}

/* Chooses the layouts of all tensors, which are as the files list them. */
static int resolve_all(QsfSource *s, Finder *f, QsfErr *err) {
    const size_t n = (size_t)s->n_tensors;
    QsfTensor **order = malloc(n * sizeof *order);
    f->names = (Names){ malloc(n * sizeof *f->names.by_name), n };
    int rc = order == NULL || f->names.by_name == NULL ? qsf_err_memory(err, "%s", s->files[0].path) : QSF_OK;
    if (rc == QSF_OK) {
        for (size_t i = 0; i < n; i++) f->names.by_name[i] = order[i] = &s->tensors[i];
        qsort(order, n, sizeof *order, by_place);
        qsort(f->names.by_name, n, sizeof *f->names.by_name, by_name);
        rc = resolve(f, order);
    }
    if (rc == QSF_OK) rc = join_all(s, &f->names, err);
    free(order);
    free(f->names.by_name);
    return rc;
}

/* Sets type, size, place and scale of the I2_S tensors again. wanted: the layout that all must have; -1: any.
 * QSF_E_MODEL, with the sizes found and expected, if a tensor fits no layout, or not the wanted one, or if
 * the scales of a split32 tensor are missing, or their type or number is wrong. */
static int choose_all(QsfSource *s, int wanted, QsfErr *err) {
    Finder f = { .s = s, .alignment = s->i2s->alignment, .wanted = wanted, .err = err };
    s->n_tensors = s->i2s->n;
    memcpy(s->tensors, s->i2s->stored, (size_t)s->n_tensors * sizeof *s->tensors);
    int rc = resolve_all(s, &f, err);
    return rc == QSF_OK ? qsf_source_index_tensors(s, err) : rc;
}

int qsf_i2s_open(QsfSource *s, const QsfGgufPart *parts, QsfErr *err) {
    QsfI2s x = { .n = s->n_tensors };
    for (uint64_t i = 0; i < x.n; i++) x.n_i2s += is_i2s(&s->tensors[i]);
    if (x.n_i2s == 0) return QSF_OK;
    QsfTensor *stored = qsf_source_alloc(s, x.n, sizeof *stored, err);
    uint32_t *alignment = qsf_source_alloc(s, s->n_files, sizeof *alignment, err);
    x.joined = qsf_source_alloc(s, x.n, sizeof *x.joined, err);
    x.part = qsf_source_alloc(s, x.n_i2s, sizeof *x.part, err);
    x.map = qsf_source_alloc(s, x.n_i2s, sizeof *x.map, err);
    s->i2s = qsf_source_alloc(s, 1, sizeof *s->i2s, err);
    if (stored == NULL || alignment == NULL || x.joined == NULL || x.part == NULL || x.map == NULL ||
        s->i2s == NULL)
        return err->code;
    memcpy(stored, s->tensors, (size_t)x.n * sizeof *stored);
    for (uint32_t i = 0; i < s->n_files; i++) alignment[i] = parts[i].alignment;
    x.stored = stored;
    x.alignment = alignment;
    *s->i2s = x;
    s->choose_i2s = choose_all;
    return choose_all(s, -1, err);
}
