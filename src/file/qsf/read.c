/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a QSF v1 file (man/qsf-format.5) as a source: its metadata, and the position of every tensor, with
 * its GGUF name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/base/crc32.h"
#include "src/file/dtype.h"
#include "src/file/format.h"
#include "src/file/i2s.h"
#include "src/file/meta_read.h"
#include "src/file/qsf/compressed.h"
#include "src/file/qsf/fields.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/parts.h"
#include "src/file/rows.h"

#define PIECE        4096u
#define NAME_MAX_LEN 96
#define LABEL_MAX    512
#define FINAL_MAX    (2u * QSFT_N) /* tensors of the final section with a type: each once, with outliers */

typedef struct Reader {
    QsfSource *s;
    QsfErr *err;
    const QsfFile *f;
    const char *path;
    QsfFileHeader head;
    QsfEmbedHeader embed;
    uint32_t embed_dtype;
    uint64_t embed_bytes;      /* with its header */
    QsfIndexEntry *index;      /* (n_layers) */
    uint64_t *layer_bytes;     /* (n_layers) */
    uint64_t cap;              /* of s->tensors */
    QsfCompressed *compressed; /* the compressed layer being read, else NULL */
    uint32_t index_crc, crc100;
} Reader;

/* Checks that [off, off + bytes) lies in the file, before anything else is trusted. */
static int need_range(const Reader *r, QsfSectionKind kind, uint64_t off, uint64_t bytes) {
    if (qsf_range_ok(off, bytes, r->f->size)) return QSF_OK;
    return qsf_err_set(r->err, QSF_E_MODEL,
                       "%s: truncated: the %s needs %" PRIu64 " bytes at byte offset %" PRIu64
                       ", the file has %" PRIu64,
                       r->path, qsf_section_name(kind), bytes, off, r->f->size);
}

static int read_head(Reader *r) {
    unsigned char b[QSFF_HEAD_BYTES];
    if (r->f->size < sizeof b)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: truncated: the header needs %u bytes at byte offset 0, the file has %" PRIu64,
                           r->path, QSFF_HEAD_BYTES, r->f->size);
    int rc = qsf_file_pread(r->f, b, sizeof b, 0, r->err);
    if (rc == QSF_OK) rc = qsf_file_header_decode(&r->head, b, r->path, r->err);
    if (rc != QSF_OK) return rc;
    r->crc100 = qsf_file_header_crc100(b);
    if ((uint32_t)r->f->size != r->head.size_low)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: the file has %" PRIu64 " bytes, which does not fit the %" PRIu32
                           " at byte offset 92: truncated?",
                           r->path, r->f->size, r->head.size_low);
    return QSF_OK;
}

static int read_index(Reader *r) {
    const uint32_t n = r->head.n_layers;
    unsigned char b[QSFF_INDEX_BYTES];
    int rc = need_range(r, QSFS_INDEX, r->head.index_off, (uint64_t)n * sizeof b);
    if (rc != QSF_OK) return rc;
    r->index = qsf_source_alloc(r->s, n, sizeof *r->index, r->err);
    r->layer_bytes = qsf_source_alloc(r->s, n, sizeof *r->layer_bytes, r->err);
    if (r->index == NULL || r->layer_bytes == NULL) return r->err->code;
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++) {
        uint64_t at = r->head.index_off + (uint64_t)i * sizeof b;
        rc = qsf_file_pread(r->f, b, sizeof b, at, r->err);
        r->index_crc = qsf_crc32(r->index_crc, b, sizeof b);
        if (rc == QSF_OK) rc = qsf_index_entry_decode(&r->index[i], b, r->path, at, r->err);
    }
    if (rc == QSF_OK && r->head.code != qsf_common_code(r->index, n))
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: quantization type %u at byte offset 48 is not that of the layers (%u)",
                           r->path, r->head.code, qsf_common_code(r->index, n));
    return rc;
}

static int check_meta_crc(const Reader *r) {
    unsigned char b[PIECE];
    uint32_t crc = 0;
    for (uint64_t done = 0; done < r->head.meta_bytes;) {
        uint64_t left = r->head.meta_bytes - done;
        size_t n = left < sizeof b ? (size_t)left : sizeof b;
        int rc = qsf_file_pread(r->f, b, n, r->head.meta_off + done, r->err);
        if (rc != QSF_OK) return rc;
        crc = qsf_crc32(crc, b, n);
        done += n;
    }
    if (crc == r->head.meta_crc) return QSF_OK;
    return qsf_err_set(r->err, QSF_E_MODEL,
                       "%s: the metadata at byte offset %" PRIu64 " is damaged: checksum %08" PRIX32
                       ", but %08" PRIX32 " at byte offset 116",
                       r->path, r->head.meta_off, crc, r->head.meta_crc);
}

static int read_pairs(Reader *r) {
    QsfCursor c;
    int rc = qsf_cursor_open(&c, r->f, r->head.meta_off, r->head.meta_bytes, r->err);
    if (rc == QSF_OK) rc = qsf_meta_read_pairs(r->s, &c, QSF_FIELDS_MAX, &r->s->meta, r->err);
    if (rc == QSF_OK && qsf_cursor_left(&c) != 0)
        rc = qsf_err_set(r->err, QSF_E_MODEL,
                         "%s: the metadata ends at byte offset %" PRIu64 ", %" PRIu64 " bytes before its end",
                         r->path, c.pos, qsf_cursor_left(&c));
    qsf_cursor_close(&c);
    return rc;
}

static int read_meta(Reader *r) {
    const QsfFileHeader *h = &r->head;
    if (h->meta_off == 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: has no metadata (0 at byte offset 100), and so neither a tokenizer nor all "
                           "that computing needs",
                           r->path);
    int rc = need_range(r, QSFS_META, h->meta_off, h->meta_bytes);
    if (rc == QSF_OK) rc = check_meta_crc(r);
    if (rc == QSF_OK) rc = read_pairs(r);
    if (rc == QSF_OK) rc = qsf_fields_crc(r->s, QSF_KEY_CRC_HEAD100, r->crc100, 100, false, r->err);
    if (rc == QSF_OK) rc = qsf_fields_crc(r->s, QSF_KEY_CRC_INDEX, r->index_crc, h->index_off, false, r->err);
    if (rc == QSF_OK)
        rc = qsf_fields_layer_bytes(r->s, r->index, h->n_layers, h->index_off, r->layer_bytes, r->err);
    if (rc == QSF_OK) rc = qsf_named_read(r->s, h->n_layers, r->err);
    return rc == QSF_OK ? qsf_fields_apply(h, r->s, r->err) : rc;
}

static int read_embed(Reader *r) {
    unsigned char b[QSFF_EMBED_BYTES];
    const QsfFileHeader *h = &r->head;
    int rc = need_range(r, QSFS_EMBED, h->embed_off, sizeof b);
    if (rc == QSF_OK) rc = qsf_file_pread(r->f, b, sizeof b, h->embed_off, r->err);
    if (rc == QSF_OK)
        rc = qsf_embed_section(h, b, r->path, &r->embed, &r->embed_dtype, &r->embed_bytes, r->err);
    return rc;
}

/* Checks that every section lies in the file and that none overlap. */
static int check_places(Reader *r) {
    const QsfFileHeader *h = &r->head;
    QsfSection *sec = qsf_source_alloc(r->s, (uint64_t)h->n_layers + 4, sizeof *sec, r->err);
    if (sec == NULL) return r->err->code;
    int rc = need_range(r, QSFS_FINAL, h->final_off, qsf_final_norm_bytes(h));
    uint32_t n = qsf_sections_of_header(h, r->f->size, sec);
    for (uint32_t i = 0; i < n; i++)
        if (sec[i].kind == QSFS_EMBED) sec[i].bytes = r->embed_bytes;
    for (uint32_t i = 0; i < h->n_layers; i++)
        sec[n++] = (QsfSection){ r->index[i].off, r->layer_bytes[i], QSFS_LAYER, i };
    for (uint32_t i = 0; rc == QSF_OK && i < n; i++)
        rc = need_range(r, sec[i].kind, sec[i].off, sec[i].bytes);
    return rc == QSF_OK ? qsf_sections_check(sec, n, h, r->path, r->err) : rc;
}

/* Adds a tensor of rows x cols at byte offset off. */
static int add(Reader *r, const char *name, uint32_t dtype, uint32_t cols, uint32_t rows, uint64_t off,
               uint64_t bytes) {
    const QsfDtype *d = qsf_dtype(dtype);
    if (cols % d->block_elems != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' at byte offset %" PRIu64 " has rows of %" PRIu32
                           " columns, padded to blocks of %" PRIu32 ", which is not supported",
                           r->path, name, off, cols, d->block_elems);
    if (r->s->n_tensors == r->cap)
        return qsf_err_set(r->err, QSF_E_MODEL, "%s: too many tensors before byte offset %" PRIu64, r->path,
                           off);
    QsfTensor *t = &r->s->tensors[r->s->n_tensors];
    *t = (QsfTensor){ .dtype = dtype,
                      .n_dims = rows == 1 ? 1 : 2,
                      .ne = { cols, rows, 1, 1 },
                      .offset = off,
                      .bytes = bytes,
                      .file = r->compressed != NULL ? QSF_FILE_NONE : 0,
                      .compressed = r->compressed };
    t->name = qsf_arena_strdup(&r->s->arena, name, strlen(name), r->err);
    if (t->name == NULL) return r->err->code;
    r->s->n_tensors++;
    return QSF_OK;
}

/* Gives a tensor with all experts three dimensions. */
static int split_experts(Reader *r) {
    QsfTensor *t = &r->s->tensors[r->s->n_tensors - 1];
    char key[NAME_MAX_LEN];
    const char *arch;
    uint32_t n = 0;
    int rc = qsf_meta_str(r->s, "general.architecture", &arch, NULL, r->err);
    if (rc != QSF_OK) return rc;
    snprintf(key, sizeof key, "%s.expert_count", arch);
    rc = qsf_meta_u32(r->s, key, 0, &n, r->err);
    if (rc != QSF_OK) return rc;
    if (n == 0 || t->ne[1] % n != 0)
        return qsf_err_set(r->err, QSF_E_MODEL,
                           "%s: tensor '%s' at byte offset %" PRIu64 " has %" PRIu64
                           " rows, which are not those of %" PRIu32 " experts (%s)",
                           r->path, t->name, t->offset, t->ne[1], n, key);
    t->n_dims = 3;
    t->ne[1] /= n;
    t->ne[2] = n;
    return QSF_OK;
}

/* Prepends "blk.N." to names of tensors in layers. */
static void prefix_of(const QsfTensorScope *sc, char out[NAME_MAX_LEN]) {
    out[0] = '\0';
    if (!sc->final) snprintf(out, NAME_MAX_LEN, "blk.%" PRIu32 ".", sc->layer);
}

static int add_ffn_biases(Reader *r, const char *prefix, const QsfTensorPlace *p, uint64_t off) {
    char name[NAME_MAX_LEN];
    uint64_t each = p->bytes / p->head.cols, up = each * r->head.ffn;
    snprintf(name, sizeof name, "%.32sffn_up.bias", prefix);
    int rc = up > 0 ? add(r, name, p->dtype, r->head.ffn, 1, off, up) : QSF_OK;
    snprintf(name, sizeof name, "%.32sffn_down.bias", prefix);
    return rc == QSF_OK ? add(r, name, p->dtype, r->head.hidden, 1, off + up, p->bytes - up) : rc;
}

static void set_layout(QsfTensor *t, const QsfTensorPlace *p) {
    t->x16 = p->head.layout != QSFF_ROWS;
    t->by_block = p->head.layout == QSFF_GROUPS && qsf_group_by_use(p->dtype);
}

static int add_named(Reader *r, const QsfTensorPlace *p, uint64_t off) {
    int rc = add(r, p->named->name, p->dtype, p->head.cols, p->head.rows, off, p->bytes);
    if (rc != QSF_OK) return rc;
    QsfTensor *t = &r->s->tensors[r->s->n_tensors - 1];
    t->n_dims = p->named->n_dims;
    memcpy(t->ne, p->named->ne, sizeof t->ne);
    set_layout(t, p);
    return QSF_OK;
}

/* Names outliers after the tensor before them. */
static int add_tensor(Reader *r, const QsfTensorScope *sc, uint32_t before, const QsfTensorPlace *p,
                      uint64_t off) {
    char name[NAME_MAX_LEN], prefix[NAME_MAX_LEN];
    prefix_of(sc, prefix);
    if (p->head.type == QSFT_FFN_BIASES) return add_ffn_biases(r, prefix, p, off);
    if (p->named != NULL) return add_named(r, p, off);
    bool outliers = p->head.type == QSFT_OUTLIERS;
    snprintf(name, sizeof name, "%.32s%.40s%s", prefix,
             qsf_tensor_type_name(outliers ? before : p->head.type), outliers ? ".outliers" : "");
    int rc = add(r, name, p->dtype, p->head.cols, p->head.rows, off, p->bytes);
    if (rc == QSF_OK) set_layout(&r->s->tensors[r->s->n_tensors - 1], p);
    return rc == QSF_OK && qsf_tensor_type_is_experts(p->head.type) ? split_experts(r) : rc;
}

/* Reads the header of the next tensor, at byte offset `at` of the file or of the decompressed layer. */
static int read_head_of(Reader *r, uint32_t i, uint64_t at, unsigned char b[QSFF_TENSOR_BYTES]) {
    if (r->compressed == NULL) return qsf_file_pread(r->f, b, QSFF_TENSOR_BYTES, at, r->err);
    r->compressed->head_at[i] = (uint32_t)at;
    memcpy(b, r->compressed->heads + i * QSFF_TENSOR_BYTES, QSFF_TENSOR_BYTES);
    return QSF_OK;
}

/* Reads the tensors of the section [base, base + bytes) after its first `pos` bytes: n of them, or all if n
 * is 0. */
static int walk(Reader *r, QsfTensorScope *sc, uint64_t base, uint64_t pos, uint64_t bytes, uint32_t n) {
    while (n > 0 ? sc->count < n : pos < bytes) {
        unsigned char b[QSFF_TENSOR_BYTES];
        QsfTensorPlace p;
        uint32_t before = sc->last.type;
        pos = qsf_tensor_next(pos, r->head.flags);
        int rc = qsf_tensor_fits(sc, base, pos, QSFF_TENSOR_BYTES, bytes, r->err);
        if (rc == QSF_OK) rc = read_head_of(r, sc->count, base + pos, b);
        if (rc == QSF_OK) rc = qsf_scope_tensor(sc, b, base + pos, &p, r->err);
        pos += QSFF_TENSOR_BYTES;
        if (rc == QSF_OK) rc = qsf_tensor_fits(sc, base, pos, p.bytes, bytes, r->err);
        if (rc == QSF_OK) rc = add_tensor(r, sc, before, &p, base + pos);
        if (rc != QSF_OK) return rc;
        pos += p.bytes;
    }
    return qsf_section_used(sc, base, pos, bytes, r->err);
}

static int read_layer(Reader *r, uint32_t i) {
    const QsfIndexEntry *e = &r->index[i];
    char label[LABEL_MAX];
    QsfTensorScope sc = {
        .path = r->path, .head = &r->head, .names = r->s->named, .layer = i, .code = e->code
    };
    r->compressed = qsf_compressed_of(r->s, i);
    if (r->compressed != NULL) sc.path = qsf_compressed_label(r->compressed, r->path, label, sizeof label);
    int rc = r->compressed != NULL ? walk(r, &sc, 0, 0, e->whole_bytes, e->n_tensors)
                                   : walk(r, &sc, e->off, 0, r->layer_bytes[i], e->n_tensors);
    r->compressed = NULL;
    return rc == QSF_OK ? qsf_scope_end(&sc, false, r->err) : rc;
}

/* Adds the fp16 norms, unless the file has fp32 ones, which take precedence. */
static int add_norms(Reader *r, const QsfTensorScope *sc) {
    const QsfFileHeader *h = &r->head;
    static const uint32_t types[] = { QSFT_FINAL_NORM, QSFT_FINAL_NORM_BIAS };
    uint64_t bytes = 2ull * h->hidden;
    int rc = QSF_OK;
    const uint32_t most = r->s->named->norms, n = h->norm == QSFF_LAYER_NORM ? 2 : 1;
    for (unsigned i = 0; rc == QSF_OK && i < (n < most ? n : most); i++)
        if (!(sc->seen >> types[i] & 1))
            rc = add(r, qsf_tensor_type_name(types[i]), 1, h->hidden, 1, h->final_off + i * bytes, bytes);
    return rc;
}

static int read_final(Reader *r) {
    const QsfFileHeader *h = &r->head;
    QsfTensorScope sc = {
        .path = r->path, .head = h, .names = r->s->named, .final = true, .code = QSFF_MIXED
    };
    uint64_t pos = qsf_final_norm_bytes(h);
    unsigned char flag;
    bool tied;
    int rc = qsf_file_pread(r->f, &flag, 1, h->final_off + pos - 1, r->err);
    if (rc == QSF_OK) rc = qsf_final_flag(flag, h->final_off + pos - 1, r->path, &tied, r->err);
    if (rc == QSF_OK) rc = walk(r, &sc, h->final_off, pos, r->f->size - h->final_off, 0);
    if (rc == QSF_OK) rc = qsf_scope_end(&sc, tied, r->err);
    return rc == QSF_OK ? add_norms(r, &sc) : rc;
}

static int read_tensors(Reader *r) {
    const QsfNamed *names = r->s->named;
    r->cap = 1 + FINAL_MAX + (names->n - names->first[r->head.n_layers]) +
             r->head.n_layers; /* FFN biases count twice */
    for (uint32_t i = 0; i < r->head.n_layers; i++) r->cap += r->index[i].n_tensors;
    r->s->tensors = qsf_source_alloc(r->s, r->cap, sizeof *r->s->tensors, r->err);
    if (r->s->tensors == NULL) return r->err->code;
    int rc = qsf_compressed_open(r->s, &r->head, r->index, r->err);
    if (rc == QSF_OK)
        rc = add(r, qsf_named_embedding(names), r->embed_dtype, r->embed.cols, r->embed.rows,
                 r->head.embed_off + QSFF_EMBED_BYTES, r->embed_bytes - QSFF_EMBED_BYTES);
    for (uint32_t i = 0; rc == QSF_OK && i < r->head.n_layers; i++) rc = read_layer(r, i);
    if (rc == QSF_OK) rc = read_final(r);
    return rc == QSF_OK ? qsf_source_index_tensors(r->s, r->err) : rc;
}

static void add_checksum(Reader *r, uint64_t off, uint64_t bytes, uint32_t crc, const char *name) {
    QsfChecksumPart *p = &r->s->checksums[r->s->n_checksums++];
    *p = (QsfChecksumPart){ .crc = crc, .off = off, .bytes = bytes };
    (void)snprintf(p->name, sizeof p->name, "%s", name);
}

/* Adds the checksum of a section if the metadata has it. */
static int add_section_sum(Reader *r, const char *key, uint64_t off, uint64_t bytes, const char *name) {
    uint32_t crc = 0;
    int rc = qsf_meta_has(r->s, key) ? qsf_meta_u32(r->s, key, 0, &crc, r->err) : QSF_OK;
    if (rc == QSF_OK && qsf_meta_has(r->s, key)) add_checksum(r, off, bytes, crc, name);
    return rc;
}

static int list_sums(Reader *r) {
    const QsfFileHeader *h = &r->head;
    char name[24];
    r->s->checksums = qsf_source_alloc(r->s, (uint64_t)h->n_layers + 2, sizeof *r->s->checksums, r->err);
    if (r->s->checksums == NULL) return r->err->code;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (r->layer_bytes[i] == 0) continue;
        (void)snprintf(name, sizeof name, "layer %" PRIu32, i);
        add_checksum(r, r->index[i].off, r->layer_bytes[i], r->index[i].crc, name);
    }
    int rc = add_section_sum(r, QSF_KEY_CRC_EMBED, h->embed_off, r->embed_bytes, "the embedding");
    return rc == QSF_OK ? add_section_sum(r, QSF_KEY_CRC_FINAL, h->final_off, r->f->size - h->final_off,
                                          "the final section")
                        : rc;
}

static int open_qsf(QsfSource *s, QsfErr *err) {
    Reader r = { .s = s, .err = err, .f = &s->files[0], .path = s->files[0].path };
    snprintf(s->format, sizeof s->format, "QSF v%u", QSFF_VERSION);
    int rc = read_head(&r);
    if (rc == QSF_OK) rc = read_index(&r);
    if (rc == QSF_OK) rc = read_meta(&r);
    if (rc == QSF_OK) rc = read_embed(&r);
    if (rc == QSF_OK) rc = check_places(&r);
    if (rc == QSF_OK) rc = read_tensors(&r);
    if (rc == QSF_OK) rc = list_sums(&r);
    for (uint64_t i = 0; rc == QSF_OK && i < s->n_tensors; i++)
        if (s->tensors[i].dtype == QK_GGML_I2_S) rc = qsf_i2s_read_scale(s, &s->tensors[i], err);
    return rc;
}

static bool matches(const unsigned char *head, size_t n) { return n >= 4 && memcmp(head, "QSF1", 4) == 0; }

const QsfFormat qsf_format_qsf = { "QSF", matches, open_qsf };
