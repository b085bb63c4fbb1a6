/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes one GGUF tensor from its pieces: shape, type, and where its bytes come from. */
#include <stdio.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/hf/pieces.h"
#include "src/file/rows.h"

#define GGUF_NAME_MAX 128

/* The tensor under construction. */
typedef struct Maker {
    QsfHfModel *m;
    const QsfHfPiece *p; /* (n) */
    uint32_t n;
    QsfTensor *out;
    QsfDerived d;
    uint32_t n_dims;   /* of a source, without middle dimensions of size 1 */
    uint64_t shape[3]; /* likewise */
} Maker;

static int bad(const Maker *k, const QsfHfPiece *p, const char *what) {
    return qsf_err_set(k->m->err, QSF_E_MODEL, "%s: tensor '%.*s' %s", k->m->s->files[p->file].path,
                       QSF_HF_SHOWN, p->t->name, what);
}

/* --- the source --- */

/* Copies the shape, without dimensions of size 1 between others. */
static int read_shape(const Maker *k, const QsfHfPiece *p, uint32_t *n_dims, uint64_t shape[3]) {
    const QsfStTensor *t = p->t;
    const bool packed = p->row->how == QSF_DERIVE_MXFP4 &&
                        t->n_dims == 4; /* the last dimension: bytes of a block */
    *n_dims = 0;
    for (uint32_t i = 0; i < t->n_dims && i < 4; i++) {
        if (t->shape[i] == 0) return bad(k, p, "has a dimension of size 0");
        const bool middle = i > 0 && i + 1 < t->n_dims && t->shape[i] == 1 && t->n_dims > p->row->n_dims;
        if (packed && i == 3 && t->shape[i] != 16) return bad(k, p, "has blocks that are not of 16 bytes");
        if (middle || (packed && i == 3)) continue;
        if (*n_dims < 3) shape[*n_dims] = t->shape[i];
        ++*n_dims;
    }
    if (*n_dims == p->row->n_dims && t->n_dims <= 4) return QSF_OK;
    return qsf_err_set(k->m->err, QSF_E_MODEL, "%s: tensor '%.*s' has %u dimensions, expected %u",
                       k->m->s->files[p->file].path, QSF_HF_SHOWN, t->name, t->n_dims, p->row->n_dims);
}

static int bad_type(const Maker *k, const QsfHfPiece *p, const char *expected) {
    return qsf_err_set(k->m->err, QSF_E_MODEL, "%s: tensor '%.*s' is of dtype %s, expected %s",
                       k->m->s->files[p->file].path, QSF_HF_SHOWN, p->t->name, p->t->type_name, expected);
}

static bool is_f8(const QsfStTensor *t) { return t->dtype == QK_GGML_F8_E4M3 || t->dtype == QK_GGML_F8_E5M2; }

/* Chooses how the bytes are made, and the type of the result. */
static int choose_kind(Maker *k) {
    const QsfHfPiece *p = k->p;
    const QsfStTensor *t = p->t;
    QsfDerived *d = &k->d;
    d->kind = p->row->how;
    d->src_dtype = t->dtype;
    const bool f8 = is_f8(t);
    const bool bytes = strcmp(t->type_name, "U8") == 0;
    if (k->m->quantized != NULL && (f8 || bytes)) {
        int rc = qsf_hf_scales_kind(k->m, p, d);
        if (rc != QSF_OK || !f8 || d->scaled_f8) return rc;
    }
    if (d->kind == QSF_DERIVE_MXFP4) return bad_type(k, p, "U8");
    if (d->kind == QSF_DERIVE_TIMES && f8) return bad_type(k, p, "F32, F16 or BF16");
    if (t->dtype == QSF_ST_NO_DTYPE) return bad_type(k, p, "F32, F16, BF16, F8_E4M3 or F8_E5M2");
    return QSF_OK;
}

/* Types of the result, and elements of one unit of a row in source and result. */
static uint32_t result_type(const QsfDerived *d) {
    switch (d->kind) {
    case QSF_DERIVE_F32:
    case QSF_DERIVE_ADD_ONE:
    case QSF_DERIVE_NEG_EXP: return QK_GGML_F32;
    case QSF_DERIVE_MXFP4: return QK_GGML_MXFP4;
    case QSF_DERIVE_TERNARY: return QK_GGML_I2_S;
    default: return d->src_dtype;
    }
}

static bool has_scales(const QsfDerived *d) { return d->scaled_f8 || d->kind > QSF_DERIVE_NEG_EXP; }

/* Sets the sizes of the source matrix, and the columns of the result in k->out->ne[0]. */
static int set_source(Maker *k) {
    QsfDerived *d = &k->d;
    const uint64_t *shape = k->shape;
    const uint32_t n = k->n_dims;
    d->src_cols = n == 1 ? 1 : shape[n - 1];
    d->src_rows = n == 1 ? shape[0] : shape[n - 2];
    d->src_elem = d->kind == QSF_DERIVE_MXFP4     ? 16
                  : d->kind == QSF_DERIVE_TERNARY ? 1
                                                  : qsf_dtype(d->src_dtype)->block_bytes;
    d->cols = d->kind == QSF_DERIVE_TRANSPOSE ? d->src_rows : d->src_cols;
    k->out->ne[0] = d->kind == QSF_DERIVE_MXFP4 ? d->cols * 32 : d->cols;
    k->out->dtype = result_type(d);
    if (n == 1 && has_scales(d)) return bad(k, k->p, "is quantized, but has one dimension");
    if (qsf_dtype_row_bytes(qsf_dtype(k->out->dtype), k->out->ne[0], &d->row_bytes)) return QSF_OK;
    return bad(k, k->p, "has rows of a length that is not a multiple of its blocks");
}

/* --- parts --- */

static const QsfRowMap *keep_map(Maker *k, const QsfRowMap *map) {
    QsfDerivedPart *part = k->d.part;
    for (uint32_t i = k->d.n_parts; i > 0; i--) /* experts have the same */
        if (memcmp(part[i - 1].map, map, sizeof *map) == 0) return part[i - 1].map;
    QsfRowMap *copy = qsf_source_alloc(k->m->s, 1, sizeof *copy, k->m->err);
    if (copy != NULL) *copy = *map;
    return copy;
}

/* Rows of the source that can be chosen from: those of the result if all are taken. */
static uint64_t source_rows(const Maker *k, const uint64_t *shape) {
    const QsfDerived *d = &k->d;
    const uint64_t each = d->kind == QSF_DERIVE_TRANSPOSE ? d->src_cols : d->src_rows;
    const uint64_t rows = d->kind == QSF_DERIVE_TERNARY ? 4 * each : each;
    return k->n_dims == 3 ? rows * shape[0] : rows;
}

static int set_cols(Maker *k, const QsfHfPiece *p, uint64_t cols) {
    k->d.cols = k->out->ne[0] = cols;
    if (qsf_dtype_row_bytes(qsf_dtype(k->out->dtype), cols, &k->d.row_bytes)) return QSF_OK;
    return bad(k, p, "has rows of a length that is not a multiple of its blocks");
}

/* Columns in a different order: whole rows of the source are read. */
static int set_columns(Maker *k, const QsfHfPiece *p, uint64_t cols) {
    if (k->n > 1) return bad(k, p, "cannot be joined with others");
    if (k->d.src_cols * k->d.src_elem > QSF_DERIVE_SCRATCH) return bad(k, p, "has rows that are too long");
    return set_cols(k, p, cols);
}

/* Transposes the first rows of each of several matrices that are one in the file. */
static int cut_source(Maker *k, const QsfHfPiece *p, const QsfRowMap *map, uint64_t *n) {
    QsfDerived *d = &k->d;
    uint64_t rows;
    if (k->n > 1 || d->kind != QSF_DERIVE_TRANSPOSE || map->cut_used == 0 || map->cut_used > map->cut_rows ||
        !qsf_mul_u64(map->cuts, map->cut_rows, &rows) || rows != d->src_rows)
        return bad(k, p, "has a different number of rows than its heads (config.json) make");
    d->src_rows = map->cut_used;
    d->src_step = map->cut_rows;
    *n = map->cuts * d->src_cols;
    return set_cols(k, p, map->cut_used);
}

static int add_part(Maker *k, const QsfHfPiece *p) {
    QsfHfModel *m = k->m;
    uint32_t n_dims;
    uint64_t shape[3], n;
    int rc = read_shape(k, p, &n_dims, shape);
    if (rc != QSF_OK) return rc;
    const bool scaled = m->quantized != NULL && is_f8(p->t) && qsf_hf_scales_has(m, p);
    if (n_dims != k->n_dims || scaled != k->d.scaled_f8 || p->t->dtype != k->p->t->dtype ||
        p->row->how != k->p->row->how || (n_dims > 1 && shape[n_dims - 1] != k->shape[n_dims - 1]))
        return bad(k, p, "has another type or width than the tensors it is joined with");
    k->d.src_step = k->d.src_rows = n_dims == 1 ? shape[0] : shape[n_dims - 2];
    const uint64_t all = source_rows(k, shape);
    const bool columns = k->d.kind == QSF_DERIVE_COLUMNS;
    QsfRowMap map;
    memset(&map, 0, sizeof map);
    map.run = map.stride = n = columns ? k->d.src_cols : all;
    map.factor = 1;
    if (p->row->rows != NULL) rc = p->row->rows(m, n, &map, &n);
    if (rc != QSF_OK)
        return qsf_err_prefix(m->err, "%s: tensor '%.*s'", m->s->files[p->file].path, QSF_HF_SHOWN,
                              p->t->name);
    if (map.cuts > 0) {
        rc = cut_source(k, p, &map, &n);
        if (rc != QSF_OK) return rc;
    } else if (!qsf_row_map_ok(&map, n, columns ? k->d.src_cols : all)) {
        return bad(k, p, columns ? "has too few columns" : "has too few rows");
    }
    if (map.pad > 0 && (k->n > 1 || k->n_dims != 2 || map.pad > UINT32_MAX / k->d.row_bytes))
        return bad(k, p, "has too few rows");
    if (map.pad > 0) k->d.tail_bytes = (uint32_t)(map.pad * k->d.row_bytes);
    if (columns) {
        rc = set_columns(k, p, n);
        if (rc != QSF_OK) return rc;
        n = all;
    }
    QsfDerivedPart *part = &k->d.part[k->d.n_parts];
    const uint64_t row0 = k->d.n_parts > 0 ? part[-1].row0 + part[-1].rows : 0;
    *part = (QsfDerivedPart){ .row0 = row0, .rows = n, .file = p->file, .at = p->t->begin };
    part->map = keep_map(k, &map);
    k->d.n_parts++;
    if (part->map == NULL) return m->err->code;
    return has_scales(&k->d) ? qsf_hf_scales_find(m, p, shape, n_dims, &k->d, part) : QSF_OK;
}

/* Checks that experts are numbered from 0, without gaps, and parts too. */
static int check_order(const Maker *k) {
    for (uint32_t i = 0; i < k->n; i++) {
        const QsfHfPiece *p = &k->p[i];
        if (i > 0 && p->row->part == p[-1].row->part && p->expert == p[-1].expert)
            return bad(k, p, "appears twice, under different names");
        if (p->expert >= 0 && k->p[0].row->part == p->row->part && (uint32_t)p->expert != i)
            return qsf_err_set(k->m->err, QSF_E_MODEL, "%s: has no expert %u beside tensor '%.*s'",
                               k->m->s->dir, i, QSF_HF_SHOWN, p->t->name);
    }
    const QsfHfPiece *last = &k->p[k->n - 1];
    if (last->expert >= 0 && last->row->part == 0 && k->m->n_experts > 0 && k->n != k->m->n_experts)
        return qsf_err_set(k->m->err, QSF_E_MODEL,
                           "%s: there are %u experts (config.json), but tensor '%.*s' is of the last one",
                           k->m->s->dir, k->m->n_experts, QSF_HF_SHOWN, last->t->name);
    return QSF_OK;
}

/* --- the result --- */

static const char *gguf_name(const Maker *k) {
    char name[GGUF_NAME_MAX];
    size_t n = 0;
    for (const char *c = k->p->row->gguf; *c != '\0' && n + 12 < sizeof name; c++) {
        if (*c == '#')
            n += (size_t)snprintf(name + n, sizeof name - n, "%d", k->p->layer);
        else
            name[n++] = *c;
    }
    return qsf_arena_strdup(&k->m->s->arena, name, n, k->m->err);
}

/* A vector stays one; matrices of experts, and those in one tensor, become the third dimension. */
static int set_shape(Maker *k) {
    QsfTensor *t = k->out;
    const QsfDerivedPart *last = &k->d.part[k->d.n_parts - 1];
    const uint64_t rows = last->row0 + last->rows, stacked = k->p->expert >= 0 ? k->n
                                                             : k->n_dims == 3  ? k->shape[0]
                                                                               : 1;
    if (rows % stacked != 0) return bad(k, k->p, "does not have the same number of rows for each expert");
    t->ne[1] = rows / stacked;
    t->ne[1] += last->map->pad;
    t->ne[2] = stacked;
    t->n_dims = k->p->expert >= 0 || k->n_dims == 3 ? 3 : 2;
    if (k->n_dims == 1) { /* rows of one element */
        t->ne[0] = t->ne[1];
        t->ne[1] = t->ne[2];
        t->ne[2] = 1;
        t->n_dims--;
    }
    if (!qsf_mul_u64(rows, k->d.row_bytes, &t->bytes)) return bad(k, k->p, "is too large");
    t->bytes += k->d.tail_bytes;
    t->scale = k->d.tail;
    return k->p->row->shape != NULL ? k->p->row->shape(k->m, t) : QSF_OK;
}

/* Are the bytes those of one tensor in a file? */
static bool is_stored(const Maker *k) {
    const QsfDerivedPart *p = &k->d.part[0];
    return k->d.kind == QSF_DERIVE_COPY && !k->d.scaled_f8 && k->n == 1 && k->d.tail_bytes == 0 &&
           p->map->head == 0 && p->map->first == 0 && p->map->run == p->rows;
}

static int place(Maker *k) {
    QsfHfModel *m = k->m;
    if (is_stored(k)) {
        k->out->file = k->d.part[0].file;
        k->out->offset = k->d.part[0].at;
        return QSF_OK;
    }
    if (m->s->derived == NULL) {
        int rc = qsf_derived_open(m->s, m->n_targets, m->err);
        if (rc != QSF_OK) return rc;
    }
    qsf_derived_add(m->s, &k->d, k->out);
    return QSF_OK;
}

int qsf_hf_tensor_make(QsfHfModel *m, const QsfHfPiece *p, uint32_t n, QsfTensor *out) {
    Maker k = { .m = m, .p = p, .n = n, .out = out };
    *out = (QsfTensor){ .ne = { 1, 1, 1, 1 } };
    int rc = check_order(&k);
    if (rc == QSF_OK) rc = read_shape(&k, p, &k.n_dims, k.shape);
    if (rc == QSF_OK) rc = choose_kind(&k);
    if (rc == QSF_OK) rc = set_source(&k);
    if (rc != QSF_OK) return rc;
    k.d.part = qsf_source_alloc(m->s, n, sizeof *k.d.part, m->err);
    out->name = k.d.part != NULL ? gguf_name(&k) : NULL;
    if (out->name == NULL) return m->err->code;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) rc = add_part(&k, &p[i]);
    if (rc == QSF_OK) rc = set_shape(&k);
    return rc == QSF_OK ? place(&k) : rc;
}
