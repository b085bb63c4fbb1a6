/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which of four layouts an I2_S tensor has, by its size. */
#include "src/format/i2s.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/format/dtype.h"
#include "src/format/rows.h"

enum { TAIL_BYTES = 32, NAME_MAX_LEN = 128 };

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
    const QsfTensor **by_name; /* (n) */
    uint64_t n;
    uint32_t alignment;
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

static bool exists(const Finder *f, const char *name, size_t len, const char *suffix) {
    char full[NAME_MAX_LEN];
    if (len + strlen(suffix) >= sizeof full) return false;
    memcpy(full, name, len);
    memcpy(full + len, suffix, strlen(suffix) + 1);
    const QsfTensor key = { .name = full }, *p = &key;
    return bsearch(&p, f->by_name, (size_t)f->n, sizeof *f->by_name, by_name) != NULL;
}

static bool has_scales(const Finder *f, const char *name) {
    static const char *const suffixes[] = { ".scale", ".scales", "_scale", "_scales" };
    const size_t len = strlen(name), weight = strlen(".weight");
    const bool longer = len > weight && strcmp(name + len - weight, ".weight") == 0;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (exists(f, name, len, suffixes[i]) || (longer && exists(f, name, len - weight, suffixes[i])))
            return true;
    return false;
}

/* Returns the bytes of a tensor of this layout; 0 if its rows do not consist of blocks. */
static uint64_t expected(const QsfTensor *t, int flavor) {
    uint64_t bytes;
    return qsf_dtype_tensor_bytes(qsf_dtype(flavors[flavor].dtype), t->ne, &bytes) ? bytes : 0;
}

static bool fits(const Finder *f, const QsfTensor *t, int flavor, uint64_t space) {
    const uint64_t bytes = expected(t, flavor);
    return bytes != 0 && bytes <= space && space - bytes < f->alignment;
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

/* Sets the layout of a tensor with `space` bytes up to the next one. */
static int choose(const Finder *f, QsfTensor *t, uint64_t space) {
    const bool scales = has_scales(f, t->name);
    for (int i = 0; i < N_FLAVORS; i++) {
        const bool allowed = f->wanted >= 0 ? i == f->wanted : flavors[i].dtype != QK_GGML_I2_256 || !scales;
        if (!allowed || !fits(f, t, i, space) || (flavors[i].split && !scales)) continue;
        t->dtype = flavors[i].dtype;
        t->bytes = expected(t, i);
        t->scale = 1.0f;
        return QSF_OK;
    }
    return no_flavor(f, t, space);
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
    for (uint64_t i = 0; rc == QSF_OK && i < f->n; i++) {
        QsfTensor *t = order[i];
        if (!is_i2s(t)) continue;
        uint64_t end = f->files[t->file].size;
        for (uint64_t j = i + 1; j < f->n && order[j]->file == t->file; j++)
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

int qsf_i2s_resolve(const QsfFile *files, QsfTensor *tensors, uint64_t n, uint32_t alignment,
                    const char *name, QsfErr *err) {
    Finder f = { .files = files, .n = n, .alignment = alignment, .wanted = -1, .err = err };
    bool any = false;
    if (name != NULL && (f.wanted = flavor_of(name, err)) < 0) return QSF_E_USAGE;
    for (uint64_t i = 0; i < n; i++) any |= is_i2s(&tensors[i]);
    if (!any) return QSF_OK;
    QsfTensor **order = malloc((size_t)n * sizeof *order);
    f.by_name = malloc((size_t)n * sizeof *f.by_name);
    int rc = order == NULL || f.by_name == NULL ? qsf_err_memory(err, "%s", files[0].path) : QSF_OK;
    if (rc == QSF_OK) {
        for (uint64_t i = 0; i < n; i++) f.by_name[i] = order[i] = &tensors[i];
        qsort(order, (size_t)n, sizeof *order, by_place);
        qsort(f.by_name, (size_t)n, sizeof *f.by_name, by_name);
        rc = resolve(&f, order);
    }
    free(order);
    free(f.by_name);
    return rc;
}

int qsf_i2s_read_scale(const QsfSource *s, QsfTensor *t, QsfErr *err) {
    return qsf_source_read_bytes(s, t, t->bytes - TAIL_BYTES, &t->scale, sizeof t->scale, err);
}
