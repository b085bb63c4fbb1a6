/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Order of sections and of the tensors in them. */
#include "src/file/qsf/parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/checked.h"
#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/names.h"

const char *qsf_section_name(QsfSectionKind kind) {
    static const char *const names[] = { "layer index", "metadata", "embedding", "layer", "final section" };
    return names[kind];
}

uint32_t qsf_sections_of_header(const QsfFileHeader *h, uint64_t file_bytes, QsfSection *s) {
    uint32_t n = 0;
    s[n++] = (QsfSection){ h->index_off, (uint64_t)h->n_layers * QSFF_INDEX_BYTES, QSFS_INDEX, 0 };
    if (h->meta_off != 0) s[n++] = (QsfSection){ h->meta_off, h->meta_bytes, QSFS_META, 0 };
    s[n++] = (QsfSection){ h->embed_off, QSFF_EMBED_BYTES, QSFS_EMBED, 0 };
    s[n++] = (QsfSection){ h->final_off, file_bytes > h->final_off ? file_bytes - h->final_off : 0,
                           QSFS_FINAL, 0 };
    return n;
}

static int by_place(const void *a, const void *b) {
    const QsfSection *x = a, *y = b;
    if (x->off != y->off) return x->off < y->off ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int check_section(const QsfSection *s, const QsfFileHeader *h, uint64_t end, const char *path,
                         QsfErr *err) {
    const char *what = qsf_section_name(s->kind);
    if (s->off < end)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the %s at byte offset %" PRIu64 " overlaps what ends at %" PRIu64, path, what,
                           s->off, end);
    if ((h->flags & QSFF_PAGES) && s->off % QSFF_PAGE != 0)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the %s at byte offset %" PRIu64
                           " is not aligned to 4 KiB, as the flags promise",
                           path, what, s->off);
    if (s->kind == QSFS_LAYER && s->off < h->index_off)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: layer %" PRIu32 " at byte offset %" PRIu64 " lies before the layer index",
                           path, s->layer, s->off);
    return QSF_OK;
}

int qsf_sections_check(QsfSection *s, uint32_t n, const QsfFileHeader *h, const char *path, QsfErr *err) {
    uint64_t end = QSFF_HEAD_BYTES;
    qsort(s, n, sizeof *s, by_place);
    for (uint32_t i = 0; i < n; i++) {
        int rc = check_section(&s[i], h, end, path, err);
        if (rc != QSF_OK) return rc;
        if (s[i].kind == QSFS_FINAL && i + 1 < n)
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: the %s at byte offset %" PRIu64
                               " lies after the final section at %" PRIu64,
                               path, qsf_section_name(s[i + 1].kind), s[i + 1].off, s[i].off);
        if (!qsf_add_u64(s[i].off, s[i].bytes, &end))
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: the %s at byte offset %" PRIu64 " has an impossible size", path,
                               qsf_section_name(s[i].kind), s[i].off);
    }
    return QSF_OK;
}

uint64_t qsf_tensor_next(uint64_t pos, uint32_t flags) {
    if (!(flags & QSFF_LINES)) return pos;
    return (pos + QSFF_TENSOR_BYTES + QSFF_LINE - 1) / QSFF_LINE * QSFF_LINE - QSFF_TENSOR_BYTES;
}

/* Returns the index of the section in QsfNamed.first. */
static uint32_t section_of(const QsfTensorScope *s) { return s->final ? s->names->n_layers : s->layer; }

static int bad(const QsfTensorScope *s, const QsfTensorHeader *t, uint64_t at, const char *what,
               QsfErr *err) {
    const char *name = qsf_tensor_type_name(t->type);
    if (t->type == QSFT_NAMED && s->names != NULL) {
        const uint32_t next = s->names->first[section_of(s)] + s->n_named;
        if (next < s->names->first[section_of(s) + 1]) name = s->names->tensor[next].name;
    }
    if (s->final)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor type %" PRIu32 " (%s) at byte offset %" PRIu64
                           " of the final section %s",
                           s->path, t->type, name != NULL ? name : "unknown", at, what);
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: tensor type %" PRIu32 " (%s) at byte offset %" PRIu64 " in layer %" PRIu32 " %s",
                       s->path, t->type, name != NULL ? name : "unknown", at, s->layer, what);
}

/* Checks that the tensor is allowed at this position. */
static int check_type(const QsfTensorScope *s, const QsfTensorHeader *t, uint64_t at, QsfErr *err) {
    if (!(s->final ? qsf_tensor_type_in_final(t->type) : qsf_tensor_type_in_layer(t->type)))
        return bad(s, t, at, "is not allowed there", err);
    if (t->type == QSFT_OUTLIERS) {
        bool matrix = s->count > 0 && s->last.type != QSFT_OUTLIERS && s->last.type != QSFT_NAMED &&
                      !qsf_tensor_type_is_vector(s->last.type);
        return matrix ? QSF_OK : bad(s, t, at, "does not follow a matrix", err);
    }
    if (t->type == QSFT_NAMED) return QSF_OK;
    return s->seen >> t->type & 1 ? bad(s, t, at, "occurs twice", err) : QSF_OK;
}

/* Finds the name of a named tensor and compares its dimensions. */
static int check_named(QsfTensorScope *s, QsfTensorPlace *p, uint64_t at, QsfErr *err) {
    const QsfTensorHeader *t = &p->head;
    uint64_t rows = 1;
    p->named = NULL;
    if (t->type != QSFT_NAMED) return QSF_OK;
    if (s->names == NULL) return bad(s, t, at, "lies before the metadata, which has its name", err);
    const uint32_t i = s->names->first[section_of(s)] + s->n_named;
    if (i >= s->names->first[section_of(s) + 1])
        return bad(s, t, at, "has no name in the metadata (" QSF_KEY_NAMES ")", err);
    p->named = &s->names->tensor[i];
    for (int d = 1; d < 4; d++)
        if (!qsf_mul_u64(rows, p->named->ne[d], &rows)) rows = UINT64_MAX;
    if (p->named->ne[0] != t->cols || rows != t->rows)
        return bad(s, t, at, "has a shape that does not match the metadata (" QSF_KEY_DIMS ")", err);
    if (t->cols % qsf_dtype(p->dtype)->block_elems != 0)
        return bad(s, t, at, "has rows that are not a multiple of a block", err);
    s->n_named++;
    return QSF_OK;
}

/* The size of an outlier: row, column, value. */
#define OUTLIER_BYTES 10u
#define DTYPE_I8      24u

static int check_shape(const QsfTensorScope *s, const QsfTensorPlace *p, uint64_t at, QsfErr *err) {
    const QsfTensorHeader *t = &p->head;
    const QsfFileHeader *h = s->head;
    const QsfDtype *d = qsf_dtype(p->dtype);
    if (t->type == QSFT_OUTLIERS)
        return t->cols == OUTLIER_BYTES && p->dtype == DTYPE_I8
                   ? QSF_OK
                   : bad(s, t, at, "does not have rows of ten bytes", err);
    if (qsf_tensor_type_is_vector(t->type) && (t->rows != 1 || d->block_elems != 1 || !d->supported))
        return bad(s, t, at, "is not one row of floats", err);
    if ((t->type == QSFT_FINAL_NORM || t->type == QSFT_FINAL_NORM_BIAS) &&
        (t->cols != h->hidden || p->dtype != 0))
        return bad(s, t, at, "is not one row of F32 with the length of the hidden dimension", err);
    if (t->type == QSFT_FFN_BIASES && t->cols != (uint64_t)h->ffn + h->hidden)
        return bad(s, t, at, "does not have the length of both FFN dimensions together", err);
    if (t->type == QSFT_GATE_BIAS && t->cols != h->ffn)
        return bad(s, t, at, "does not have the length of the FFN dimension", err);
    if (t->type == QSFT_HEAD && (t->rows != h->n_vocab || t->cols != h->hidden))
        return bad(s, t, at, "does not have the shape of vocabulary size by hidden dimension", err);
    return QSF_OK;
}

static int check_layout(const QsfTensorScope *s, const QsfTensorPlace *p, uint64_t at, QsfErr *err) {
    const QsfTensorHeader *t = &p->head;
    if (t->layout == QSFF_ROWS) return QSF_OK;
    if (!(s->head->flags & QSFF_X16))
        return bad(s, t, at, "is interleaved by 16 rows, which the flags do not declare", err);
    if (!qsf_tensor_type_is_matrix(t->type)) return bad(s, t, at, "cannot be interleaved by 16 rows", err);
    if (qsf_group_planes(p->dtype) == 0)
        return bad(s, t, at, "is interleaved by 16 rows, which its quantization type does not support", err);
    if (t->layout == QSFF_GROUPS_BY_USE && !qsf_group_by_use(p->dtype))
        return bad(s, t, at, "has layout 2, which its quantization type does not have", err);
    return QSF_OK;
}

int qsf_scope_tensor(QsfTensorScope *s, const unsigned char b[QSFF_TENSOR_BYTES], uint64_t at,
                     QsfTensorPlace *t, QsfErr *err) {
    int rc = qsf_tensor_header_decode(&t->head, b, s->path, at, err);
    if (rc == QSF_OK) rc = check_type(s, &t->head, at, err);
    if (rc != QSF_OK) return rc;
    uint8_t code = t->head.code == QSFF_LAYER_CODE ? s->code : t->head.code;
    if (!qsf_code_dtype(code, s->head->block, &t->dtype)) /* only if the code of the layer is "mixed" */
        return bad(s, &t->head, at, "has no quantization type of its own, and neither has its layer", err);
    rc = check_layout(s, t, at, err);
    if (rc != QSF_OK) return rc;
    uint64_t rows = t->head.layout != QSFF_ROWS ? qsf_group_rows(t->head.rows) : t->head.rows;
    if (!qsf_code_bytes(t->dtype, rows, t->head.cols, &t->bytes))
        return bad(s, &t->head, at, "has an impossible shape", err);
    rc = check_shape(s, t, at, err);
    if (rc == QSF_OK) rc = check_named(s, t, at, err);
    if (rc != QSF_OK) return rc;
    s->seen |= (uint64_t)1 << t->head.type;
    s->last = t->head;
    s->count++;
    return QSF_OK;
}

/* Returns the types of the final norm that the section has: stored as f16, or as tensors. */
static uint64_t norm_types(const QsfTensorScope *s) {
    const uint64_t norm = (uint64_t)1 << QSFT_FINAL_NORM, bias = (uint64_t)1 << QSFT_FINAL_NORM_BIAS;
    if (!s->final || s->names->norms == 0) return 0;
    return s->names->norms == QSF_NORMS_ALL && s->head->norm == QSFF_LAYER_NORM ? norm | bias : norm;
}

/* Checks that the names of the section were all used, and that none is that of another tensor. */
static int check_names(const QsfTensorScope *s, QsfErr *err) {
    if (s->names == NULL) return QSF_OK;
    const uint32_t first = s->names->first[section_of(s)], end = s->names->first[section_of(s) + 1];
    const uint64_t head = s->final && s->names->embed_is_head ? (uint64_t)1 << QSFT_HEAD : 0;
    const uint64_t seen = s->seen | norm_types(s) | head;
    if ((s->seen & head) != 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' appears twice", s->path,
                           qsf_tensor_type_name(QSFT_HEAD));
    if (s->n_named < end - first)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is missing (" QSF_KEY_NAMES ")", s->path,
                           s->names->tensor[first + s->n_named].name);
    for (uint32_t i = first; i < end; i++) {
        uint32_t type, layer;
        if (qsf_tensor_type_of(s->names->tensor[i].name, &type, &layer) &&
            (type == QSFT_EMBED ? !s->names->embed_is_head : (seen >> type & 1) != 0))
            return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' appears twice", s->path,
                               s->names->tensor[i].name);
    }
    return QSF_OK;
}

/* A tensor of the final norm that the metadata says the model does not have. */
static int check_norms(const QsfTensorScope *s, QsfErr *err) {
    if (!s->final || s->names == NULL || s->names->norms == QSF_NORMS_ALL) return QSF_OK;
    const uint64_t bias = (uint64_t)1 << QSFT_FINAL_NORM_BIAS, norm = (uint64_t)1 << QSFT_FINAL_NORM;
    if ((s->seen & (s->names->norms == 0 ? norm | bias : bias)) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the final section contains a final norm that the model does not have, "
                       "according to " QSF_KEY_FINAL_NORM,
                       s->path);
}

int qsf_scope_end(const QsfTensorScope *s, bool tied, QsfErr *err) {
    int rc = check_names(s, err);
    if (rc == QSF_OK) rc = check_norms(s, err);
    if (rc != QSF_OK) return rc;
    uint64_t head = (uint64_t)1 << QSFT_HEAD;
    if (s->final && tied && (s->seen & head))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the final section at byte offset %" PRIu64
                           " contains a head, but its flag says it does not",
                           s->path, s->head->final_off);
    uint64_t missing = (s->final ? (tied ? 0 : head) : qsf_arch_needs(s->head->arch)) & ~s->seen;
    for (uint32_t t = 0; t < QSFT_N && missing != 0; t++)
        if (missing >> t & 1) {
            if (s->final)
                return qsf_err_set(
                    err, QSF_E_MODEL,
                    "%s: tensor '%s' is missing from the final section at byte offset %" PRIu64, s->path,
                    qsf_tensor_type_name(t), s->head->final_off);
            return qsf_err_set(err, QSF_E_MODEL, "%s: tensor 'blk.%" PRIu32 ".%s' is missing", s->path,
                               s->layer, qsf_tensor_type_name(t));
        }
    return QSF_OK;
}

int qsf_embed_section(const QsfFileHeader *h, const unsigned char b[QSFF_EMBED_BYTES], const char *path,
                      QsfEmbedHeader *e, uint32_t *dtype, uint64_t *bytes, QsfErr *err) {
    uint64_t at = h->embed_off, rows = 0;
    int rc = qsf_embed_header_decode(e, b, path, at, err);
    if (rc != QSF_OK) return rc;
    if (e->rows != h->n_vocab || e->cols != h->hidden)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the embedding at byte offset %" PRIu64 " has %" PRIu32 " x %" PRIu32
                           " elements, the header says %" PRIu32 " x %" PRIu32,
                           path, at, e->rows, e->cols, h->n_vocab, h->hidden);
    if (!qsf_code_dtype(e->code, h->block, dtype) || !qsf_code_bytes(*dtype, e->rows, e->cols, &rows) ||
        e->bytes != (rows < QSFF_LONG ? rows : QSFF_LONG) || !qsf_add_u64(rows, QSFF_EMBED_BYTES, bytes))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the embedding size at byte offset %" PRIu64 " is %" PRIu32
                           ", its rows take %" PRIu64 " bytes",
                           path, at + 4, e->bytes, rows);
    return QSF_OK;
}

uint64_t qsf_final_norm_bytes(const QsfFileHeader *h) {
    return 2ull * h->hidden * (h->norm == QSFF_LAYER_NORM ? 2 : 1) + 1;
}

int qsf_final_flag(unsigned char flag, uint64_t at, const char *path, bool *tied, QsfErr *err) {
    *tied = flag == 0xFF;
    if (flag == 0xFF || flag == 0x00) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: the head flag at byte offset %" PRIu64 " is 0x%02X, expected 0x00 or 0xFF", path,
                       at, flag);
}

int qsf_tensor_fits(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t need, uint64_t bytes,
                    QsfErr *err) {
    if (qsf_range_ok(pos, need, bytes)) return QSF_OK;
    const char *what = s->final ? "the final section" : "a layer";
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: tensor %" PRIu32 " of %s needs %" PRIu64 " bytes at byte offset %" PRIu64
                       ", which ends at %" PRIu64,
                       s->path, s->count, what, need, base + pos, base + bytes);
}

int qsf_section_used(const QsfTensorScope *s, uint64_t base, uint64_t pos, uint64_t bytes, QsfErr *err) {
    if (pos == bytes) return QSF_OK;
    const char *what = s->final ? "the final section" : "a layer";
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: %" PRIu64 " bytes at byte offset %" PRIu64 " follow the last tensor of %s",
                       s->path, bytes - pos, base + pos, what);
}

uint8_t qsf_common_code(const QsfIndexEntry *e, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (e[i].code != e[0].code) return QSFF_MIXED;
    return e[0].code;
}
