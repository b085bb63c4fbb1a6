/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which of four layouts an I2_S tensor has, by its size. */
#include "src/file/gguf/i2s.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"

enum { TAIL_BYTES = 32 };

static const struct {
    const char *name;
    uint32_t dtype;
    bool split; /* its scales are another tensor */
} flavors[] = {
    { "microsoft", QK_GGML_I2_S, false },
    { "bitnet32f16", QK_GGML_I2_32, false },
    { "split32", QSF_DTYPE_I2_SPLIT, true },
    { "qk256", QK_GGML_I2_256, false },
};
enum { N_FLAVORS = sizeof flavors / sizeof *flavors };

/* What a tensor is looked at with. */
typedef struct Finder {
    const QsfFile *files;
    const uint32_t *alignment; /* of each file */
    QsfI2sNames names;
    int wanted; /* or -1 */
    QsfErr *err;
} Finder;

static bool is_i2s(const QsfTensor *t) {
    for (int f = 0; f < N_FLAVORS; f++)
        if (t->dtype == flavors[f].dtype) return true;
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

/* Returns the bytes of a tensor of this layout; 0 if its rows do not consist of blocks. */
static uint64_t expected(const QsfTensor *t, int flavor) {
    uint64_t bytes;
    return qsf_dtype_tensor_bytes(qsf_dtype(flavors[flavor].dtype), t->ne, &bytes) ? bytes : 0;
}

static bool fits(const Finder *f, const QsfTensor *t, int flavor, uint64_t space) {
    const uint64_t bytes = expected(t, flavor);
    return bytes != 0 && bytes <= space && space - bytes < f->alignment[t->file];
}

static int no_flavor(const Finder *f, const QsfTensor *t, uint64_t space) {
    uint64_t bytes[N_FLAVORS];
    for (int i = 0; i < N_FLAVORS; i++) bytes[i] = expected(t, i);
    return qsf_err_set(f->err, QSF_E_MODEL,
                       "%s: tensor '%s' of type I2_S (%" PRIu64 " x %" PRIu64 ") has %" PRIu64
                       " bytes, %s: %" PRIu64 " (microsoft), %" PRIu64 " (bitnet32f16), %" PRIu64
                       " (split32), %" PRIu64
                       " (qk256); 0 means that its rows are not a multiple of the block",
                       f->files[t->file].path, t->name, t->ne[0], qsf_tensor_n_rows(t), space,
                       f->wanted < 0 ? "expected one of" : "not the size for --i2s-flavor", bytes[0],
                       bytes[1], bytes[2], bytes[3]);
}

static int no_scales(const Finder *f, const QsfTensor *t) {
    return qsf_err_set(f->err, QSF_E_MODEL,
                       "%s: tensor '%s' of type I2_S (%" PRIu64 " x %" PRIu64
                       ") has the size of the layout split32, but there is no tensor with its scales: the "
                       "same name, with or without '.weight', followed by .scale, .scales, _scale or "
                       "_scales",
                       f->files[t->file].path, t->name, t->ne[0], qsf_tensor_n_rows(t));
}

/* Sets the layout of a tensor with `space` bytes up to the next one. */
static int choose(const Finder *f, QsfTensor *t, uint64_t space) {
    const bool scales = qsf_i2s_scales(&f->names, t->name) != NULL;
    bool bare = false;
    for (int i = 0; i < N_FLAVORS; i++) {
        const bool allowed = f->wanted >= 0 ? i == f->wanted : flavors[i].dtype != QK_GGML_I2_256 || !scales;
        if (!allowed || !fits(f, t, i, space)) continue;
        if (flavors[i].split && !scales) {
            bare = true;
            continue;
        }
        t->dtype = flavors[i].dtype;
        t->bytes = expected(t, i);
        t->scale = 1.0f;
        return QSF_OK;
    }
    return bare ? no_scales(f, t) : no_flavor(f, t, space);
}

static int read_scale(const QsfFile *file, QsfTensor *t, QsfErr *err) {
    unsigned char b[4];
    const int rc = qsf_file_pread(file, b, sizeof b, t->offset + t->bytes - TAIL_BYTES, err);
    if (rc == QSF_OK) memcpy(&t->scale, b, sizeof b);
    return rc;
}

/* order: all tensors by file and offset. */
static int resolve(const Finder *f, QsfTensor **order) {
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < f->names.n; i++) {
        QsfTensor *t = order[i];
        if (!is_i2s(t)) continue;
        uint64_t end = f->files[t->file].size;
        for (uint64_t j = i + 1; j < f->names.n && order[j]->file == t->file; j++)
            if (order[j]->offset > t->offset) {
                end = order[j]->offset;
                break;
            }
        rc = choose(f, t, end > t->offset ? end - t->offset : 0);
        if (rc == QSF_OK && t->dtype == QK_GGML_I2_S) rc = read_scale(&f->files[t->file], t, f->err);
    }
    return rc;
}

static int flavor_of(const char *name, QsfErr *err) {
    for (int i = 0; i < N_FLAVORS; i++)
        if (strcmp(name, flavors[i].name) == 0) return i;
    (void)qsf_err_set(err, QSF_E_USAGE, "'%s' is not an I2_S layout; it must be " QSF_I2S_NAMES, name);
    return -1;
}

/* Chooses the layouts of all tensors, which are as the files list them. */
static int resolve_all(QsfSource *s, Finder *f, QsfErr *err) {
    const size_t n = (size_t)s->n_tensors;
    QsfTensor **order = malloc(n * sizeof *order);
    f->names = (QsfI2sNames){ malloc(n * sizeof *f->names.by_name), n };
    int rc = order == NULL || f->names.by_name == NULL ? qsf_err_memory(err, "%s", s->files[0].path) : QSF_OK;
    if (rc == QSF_OK) {
        for (size_t i = 0; i < n; i++) f->names.by_name[i] = order[i] = &s->tensors[i];
        qsort(order, n, sizeof *order, by_place);
        qsort(f->names.by_name, n, sizeof *f->names.by_name, by_name);
        rc = resolve(f, order);
    }
    if (rc == QSF_OK) rc = qsf_i2s_join(s, &f->names, err);
    free(order);
    free(f->names.by_name);
    return rc;
}

int qsf_i2s_choose(QsfSource *s, const char *name, QsfErr *err) {
    Finder f = { .files = s->files, .wanted = -1, .err = err };
    if (name != NULL && (f.wanted = flavor_of(name, err)) < 0) return QSF_E_USAGE;
    if (s->i2s == NULL) return QSF_OK;
    f.alignment = s->i2s->alignment;
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
    return qsf_i2s_choose(s, NULL, err);
}

int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err) {
    return qsf_source_read_bytes(s, t, t->bytes - TAIL_BYTES, &t->scale, sizeof t->scale, err);
}
