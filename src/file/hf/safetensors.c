/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the header of a safetensors file. The JSON is scanned together with the 8 length bytes before it, so
 * that byte offsets in messages are those of the file. */
#include "src/file/hf/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/base/checked.h"
#include "src/base/jsonscan.h"
#include "src/file/whole.h"

#define LENGTH_BYTES 8u
#define MIN_HEADER   2u /* {} */
#define SHOWN        80 /* bytes of a name in a message */

/* huggingface/safetensors safetensors/src/tensor.rs, enum Dtype; numbers of dtype.h. */
typedef struct StType {
    const char *name;
    uint32_t bits, dtype;
} StType;

static const StType types[] = {
    { "F32", 32, QK_GGML_F32 },
    { "F16", 16, QK_GGML_F16 },
    { "BF16", 16, QK_GGML_BF16 },
    { "F64", 64, QSF_ST_NO_DTYPE },
    { "C64", 64, QSF_ST_NO_DTYPE },
    { "I64", 64, QSF_ST_NO_DTYPE },
    { "U64", 64, QSF_ST_NO_DTYPE },
    { "I32", 32, QSF_ST_NO_DTYPE },
    { "U32", 32, QSF_ST_NO_DTYPE },
    { "I16", 16, QSF_ST_NO_DTYPE },
    { "U16", 16, QSF_ST_NO_DTYPE },
    { "I8", 8, QSF_ST_NO_DTYPE },
    { "U8", 8, QSF_ST_NO_DTYPE },
    { "BOOL", 8, QSF_ST_NO_DTYPE },
    { "F8_E4M3", 8, QK_GGML_F8_E4M3 },
    { "F8_E5M2", 8, QK_GGML_F8_E5M2 },
    { "F8_E8M0", 8, QSF_ST_NO_DTYPE },
    { "F8_E4M3FNUZ", 8, QSF_ST_NO_DTYPE },
    { "F8_E5M2FNUZ", 8, QSF_ST_NO_DTYPE },
    { "F6_E2M3", 6, QSF_ST_NO_DTYPE },
    { "F6_E3M2", 6, QSF_ST_NO_DTYPE },
    { "F4", 4, QSF_ST_NO_DTYPE },
};

typedef struct Reader {
    QsfSource *s;
    const QsfFile *f;
    QsfJsonScan j; /* over the length and the header */
    uint64_t data; /* start of the data, the end of the header */
    QsfStrbuf key, text;
    QsfStHeader *h;
    QsfErr *err;
} Reader;

/* Prepends the path to errors of the JSON scanner. */
static int located(const Reader *r, int rc) {
    if (rc == QSF_E_MODEL && strncmp(r->err->msg, "JSON", 4) == 0) qsf_err_prefix(r->err, "%s", r->f->path);
    return rc;
}

static int bad_tensor(const Reader *r, const QsfStTensor *t, const char *what) {
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: tensor '%.*s', described before byte offset %zu, %s",
                       r->f->path, SHOWN, t->name, r->j.at, what);
}

/* --- one tensor --- */

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_RANGE = 4, HAS_ALL = 7 };

typedef struct Described {
    unsigned has;
    const StType *type;
    uint64_t elems;
} Described;

static int read_dtype(Reader *r, QsfStTensor *t, Described *d) {
    int rc = qsf_jscan_string(&r->j, &r->text, r->err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i < sizeof types / sizeof *types && d->type == NULL; i++)
        if (qsf_strbuf_is(&r->text, types[i].name)) d->type = &types[i];
    if (d->type == NULL)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%.*s' has the unknown dtype '%.40s' before byte offset %zu",
                           r->f->path, SHOWN, t->name, qsf_strbuf_str(&r->text), r->j.at);
    t->type_name = d->type->name;
    t->dtype = d->type->dtype;
    return QSF_OK;
}

static int read_shape(Reader *r, QsfStTensor *t, Described *d) {
    bool first = true, more = true;
    d->elems = 1;
    int rc = qsf_jscan_enter(&r->j, '[', r->err);
    while (rc == QSF_OK) {
        uint64_t n = 0;
        rc = qsf_jscan_next(&r->j, ']', &first, &more, r->err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_u64(&r->j, &n, r->err);
        if (rc == QSF_OK && !qsf_mul_u64(d->elems, n, &d->elems))
            rc = bad_tensor(r, t, "has an impossible shape");
        if (t->n_dims < 4) t->shape[t->n_dims] = n;
        t->n_dims++; /* a header of 100 MB has fewer than 2^32 of them */
    }
    return rc;
}

/* Reads "data_offsets", [begin, end) relative to the end of the header, and makes them absolute. */
static int read_range(Reader *r, QsfStTensor *t) {
    uint64_t v[2] = { 0, 0 };
    bool first = true, more = true;
    int rc = qsf_jscan_enter(&r->j, '[', r->err);
    for (int i = 0; rc == QSF_OK && i < 2; i++) {
        rc = qsf_jscan_next(&r->j, ']', &first, &more, r->err);
        if (rc == QSF_OK && !more) rc = bad_tensor(r, t, "has fewer than two data_offsets");
        if (rc == QSF_OK) rc = qsf_jscan_u64(&r->j, &v[i], r->err);
    }
    if (rc == QSF_OK) rc = qsf_jscan_next(&r->j, ']', &first, &more, r->err);
    if (rc == QSF_OK && more) rc = bad_tensor(r, t, "has more than two data_offsets");
    if (rc != QSF_OK) return rc;
    if (v[0] > v[1]) return bad_tensor(r, t, "has data_offsets that end before they begin");
    if (v[1] > r->f->size - r->data)
        return qsf_err_set(
            r->err, QSF_E_MODEL,
            "%s: truncated: tensor '%.*s' ends %llu bytes after the header, but only %llu follow it",
            r->f->path, SHOWN, t->name, (unsigned long long)v[1], (unsigned long long)(r->f->size - r->data));
    t->begin = r->data + v[0];
    t->end = r->data + v[1];
    return QSF_OK;
}

static int read_member(Reader *r, QsfStTensor *t, Described *d) {
    static const char *const names[] = { "dtype", "shape", "data_offsets" };
    size_t begin, end;
    unsigned which = 0;
    int rc = qsf_jscan_key(&r->j, &r->text, r->err);
    if (rc != QSF_OK) return rc;
    while (which < 3 && !qsf_strbuf_is(&r->text, names[which])) which++;
    if (which == 3) return qsf_jscan_skip(&r->j, &begin, &end, r->err);
    if ((d->has & 1u << which) != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%.*s' has two members \"%s\", the second one before byte offset %zu",
                           r->f->path, SHOWN, t->name, names[which], r->j.at);
    d->has |= 1u << which;
    if (which == 0) return read_dtype(r, t, d);
    return which == 1 ? read_shape(r, t, d) : read_range(r, t);
}

/* Checks that the range has exactly the size that type and shape require. */
static int check_size(const Reader *r, const QsfStTensor *t, const Described *d) {
    uint64_t bits;
    if (d->has != HAS_ALL) return bad_tensor(r, t, "lacks one of \"dtype\", \"shape\" and \"data_offsets\"");
    if (!qsf_mul_u64(d->elems, d->type->bits, &bits) || bits % 8 != 0)
        return bad_tensor(r, t, "has an impossible shape");
    if (t->end - t->begin == bits / 8) return QSF_OK;
    return qsf_err_set(
        r->err, QSF_E_MODEL,
        "%s: tensor '%.*s' at byte offset %llu has %llu bytes, but its shape of %llu elements of type %s "
        "takes %llu",
        r->f->path, SHOWN, t->name, (unsigned long long)t->begin, (unsigned long long)(t->end - t->begin),
        (unsigned long long)d->elems, d->type->name, (unsigned long long)(bits / 8));
}

static int read_tensor(Reader *r, QsfStTensor *t) {
    Described d = { 0 };
    bool first = true, more = true;
    int rc = qsf_jscan_enter(&r->j, '{', r->err);
    while (rc == QSF_OK) {
        rc = qsf_jscan_next(&r->j, '}', &first, &more, r->err);
        if (rc != QSF_OK || !more) break;
        rc = read_member(r, t, &d);
    }
    return rc == QSF_OK ? check_size(r, t, &d) : rc;
}

/* --- the object with all tensors --- */

/* Checks "__metadata__", which is not used: if it is damaged, so is the file. */
static int read_notes(Reader *r) {
    bool first = true, more = true;
    int rc = qsf_jscan_enter(&r->j, '{', r->err);
    while (rc == QSF_OK) {
        rc = qsf_jscan_next(&r->j, '}', &first, &more, r->err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_key(&r->j, &r->text, r->err);
        if (rc == QSF_OK) rc = qsf_jscan_string(&r->j, &r->text, r->err);
    }
    return rc;
}

static int add_tensor(Reader *r) {
    QsfStHeader *h = r->h;
    QsfStTensor *t = &h->t[h->n];
    if (r->key.len == 0 || memchr(r->key.data, '\0', r->key.len) != NULL)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: a tensor's name before byte offset %zu is empty or holds a NUL", r->f->path,
                           r->j.at);
    char *name = qsf_source_alloc_opening(r->s, r->key.len + 1, 1, r->err);
    if (name == NULL) return r->err->code;
    memcpy(name, r->key.data, r->key.len);
    t->name = name;
    int rc = read_tensor(r, t);
    if (rc != QSF_OK) return rc;
    if (qsf_hashmap_put(&h->map, (int32_t)h->n) != (int32_t)h->n) return bad_tensor(r, t, "occurs twice");
    h->n++;
    return QSF_OK;
}

/* Reads every tensor; if h->t is NULL, only counts them in *n. */
static int walk(Reader *r, uint64_t *n) {
    bool first = true, more = true, noted = false;
    r->j.at = LENGTH_BYTES;
    *n = 0;
    int rc = qsf_jscan_enter(&r->j, '{', r->err);
    while (rc == QSF_OK) {
        size_t begin, end;
        rc = qsf_jscan_next(&r->j, '}', &first, &more, r->err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_key(&r->j, &r->key, r->err);
        if (rc != QSF_OK) break;
        bool notes = qsf_strbuf_is(&r->key, "__metadata__");
        if (notes && noted)
            return qsf_err_set(r->err, QSF_E_MODEL,
                               "%s: \"__metadata__\" occurs twice, the second time before byte offset %zu",
                               r->f->path, r->j.at);
        noted = noted || notes;
        *n += !notes;
        if (r->h->t == NULL)
            rc = qsf_jscan_skip(&r->j, &begin, &end, r->err);
        else
            rc = notes ? read_notes(r) : add_tensor(r);
    }
    return rc == QSF_OK ? qsf_jscan_end(&r->j, r->err) : rc;
}

static const char *tensor_key(const void *owner, int32_t id, size_t *len) {
    const QsfStTensor *t = (const QsfStTensor *)owner + id;
    *len = strlen(t->name);
    return t->name;
}

const QsfStTensor *qsf_st_find(const QsfStHeader *h, const char *name, size_t len) {
    int32_t id = qsf_hashmap_get(&h->map, name, len);
    return id < 0 ? NULL : &h->t[id];
}

static int by_place(const void *a, const void *b) {
    const QsfStTensor *x = *(const QsfStTensor *const *)a, *y = *(const QsfStTensor *const *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Checks that each tensor of sorted[0..n) begins where the previous one ends, and that the last one ends the
 * file. */
static int check_tiling(const Reader *r, const QsfStTensor *const *sorted, uint64_t n) {
    uint64_t at = r->data, i = 0;
    for (; i < n && sorted[i]->begin <= at; i++) {
        if (sorted[i]->begin < at)
            return qsf_err_set(r->err, QSF_E_MODEL,
                               "%s: tensors '%.*s' and '%.*s' overlap at byte offset %llu", r->f->path, SHOWN,
                               sorted[i - 1]->name, SHOWN, sorted[i]->name,
                               (unsigned long long)sorted[i]->begin);
        at = sorted[i]->end;
    }
    if (i == n && at == r->f->size) return QSF_OK;
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: the bytes at offset %llu and after belong to no tensor",
                       r->f->path, (unsigned long long)at);
}

static int check_ranges(const Reader *r) {
    size_t n = (size_t)r->h->n;
    const QsfStTensor **sorted = malloc((n + 1) * sizeof *sorted);
    if (sorted == NULL) return qsf_err_memory(r->err, "%s", r->f->path);
    for (size_t i = 0; i < n; i++) sorted[i] = &r->h->t[i];
    qsort(sorted, n, sizeof *sorted, by_place);
    int rc = check_tiling(r, sorted, n);
    free(sorted);
    return rc;
}

static int read_all(Reader *r) {
    uint64_t n;
    QsfStHeader *h = r->h;
    int rc = walk(r, &n);
    if (rc != QSF_OK) return rc;
    h->t = qsf_source_alloc_opening(r->s, n, sizeof *h->t, r->err);
    if (h->t == NULL) return r->err->code;
    rc = qsf_hashmap_init(&h->map, &r->s->opening, (uint32_t)n, tensor_key, h->t, r->err);
    if (rc == QSF_OK) rc = walk(r, &n);
    return rc == QSF_OK ? check_ranges(r) : rc;
}

/* Checks the length before anything else is trusted. */
static int read_length(const Reader *r, uint64_t *n) {
    unsigned char b[LENGTH_BYTES];
    const QsfFile *f = r->f;
    if (f->size < LENGTH_BYTES + MIN_HEADER)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: truncated: has %llu bytes, the shortest safetensors file has %u", f->path,
                           (unsigned long long)f->size, LENGTH_BYTES + MIN_HEADER);
    int rc = qsf_file_pread(f, b, sizeof b, 0, r->err);
    *n = 0;
    for (unsigned i = LENGTH_BYTES; i > 0; i--) *n = *n << 8 | b[i - 1];
    if (rc == QSF_OK && (*n < MIN_HEADER || *n > QSF_ST_HEADER_MAX || *n > f->size - LENGTH_BYTES))
        rc = qsf_err_set(
            r->err, QSF_E_MODEL,
            "%s: not a safetensors file, or damaged: its first 8 bytes say that the header has %llu bytes, "
            "expected %u to %llu",
            f->path, (unsigned long long)*n, MIN_HEADER,
            (unsigned long long)(f->size - LENGTH_BYTES < QSF_ST_HEADER_MAX ? f->size - LENGTH_BYTES
                                                                            : QSF_ST_HEADER_MAX));
    return rc;
}

int qsf_st_read(QsfSource *s, uint32_t file, QsfStHeader *h, QsfErr *err) {
    Reader r = { .s = s, .f = &s->files[file], .h = h, .err = err };
    uint64_t n = 0;
    char *text;
    *h = (QsfStHeader){ 0 };
    int rc = read_length(&r, &n);
    if (rc != QSF_OK) return rc;
    rc = qsf_whole_map(s, r.f, LENGTH_BYTES + n, &text, err);
    if (rc != QSF_OK) return rc;
    r.data = LENGTH_BYTES + n;
    qsf_jscan_init(&r.j, text, (size_t)r.data);
    rc = text[LENGTH_BYTES] == '{'
             ? located(&r, read_all(&r))
             : qsf_err_set(err, QSF_E_MODEL, "%s: not a safetensors file: byte 8 should be '{'", r.f->path);
    qsf_strbuf_free(&r.key);
    qsf_strbuf_free(&r.text);
    qsf_whole_unmap(s, text, r.data);
    return rc;
}
