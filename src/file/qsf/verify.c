/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one-pass check of a QSF file. */
#include "src/file/qsf/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/bytes.h"
#include "src/file/lfs.h"
#include "src/file/meta_read.h"
#include "src/file/qsf/compressed.h"
#include "src/file/qsf/fields.h"
#include "src/file/qsf/groups.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/parts.h"
#include "src/file/qsf/scores.h"
#include "src/file/qsf/stream.h"

#define LABEL_MAX 512

typedef struct Verifier {
    QsfStream in;
    const char *path;
    QsfErr *err;
    QsfVerifyReport *r;
    QsfFileHeader head;
    QsfSection *sec; /* (n_sec) by place */
    uint32_t n_sec;
    QsfIndexEntry *index;  /* (n_layers) */
    uint64_t *layer_bytes; /* (n_layers) */
    QsfSource *meta;
    QsfStrbuf meta_bytes;
    const unsigned char *heads; /* of the compressed layer being read, from the metadata; else NULL */
    QsfUnpacker unpacker;
    bool have_index, have_meta;
    uint32_t crc100, index_crc, embed_crc, final_crc;
} Verifier;

/* --- pieces --- */

static int check_head(Verifier *v) {
    unsigned char b[QSFF_HEAD_BYTES] = { 0 };
    QsfErr pointer = { 0 };
    int rc = qsf_stream_take(&v->in, b, sizeof b, "header", v->err);
    if ((rc == QSF_OK || rc == QSF_E_MODEL) &&
        qsf_lfs_check_bytes(v->path, b, sizeof b, &pointer) != QSF_OK) {
        qsf_err_clear(v->err); /* it may be shorter than a header */
        return qsf_err_pass(v->err, &pointer);
    }
    if (rc == QSF_OK) rc = qsf_file_header_decode(&v->head, b, v->path, v->err);
    if (rc != QSF_OK) return rc;
    v->crc100 = qsf_file_header_crc100(b);
    v->sec = calloc((size_t)v->head.n_layers + 4, sizeof *v->sec);
    v->index = calloc(v->head.n_layers, sizeof *v->index);
    v->layer_bytes = calloc(v->head.n_layers, sizeof *v->layer_bytes);
    if (v->sec == NULL || v->index == NULL || v->layer_bytes == NULL)
        return qsf_err_memory(v->err, "%s", v->path);
    if (v->head.meta_off == 0)
        return qsf_err_set(v->err, QSF_E_MODEL,
                           "%s: has no metadata (0 at byte offset 100), and so no checksums", v->path);
    v->n_sec = qsf_sections_of_header(&v->head, 0, v->sec);
    return qsf_sections_check(v->sec, v->n_sec, &v->head, v->path, v->err);
}

/* Checks the layer sizes when both index and metadata have been read. */
static int check_layer_sizes(Verifier *v) {
    if (!v->have_index || !v->have_meta) return QSF_OK;
    return qsf_fields_layer_bytes(v->meta, v->index, v->head.n_layers, v->head.index_off, v->layer_bytes,
                                  v->err);
}

/* Adds the layers to the list of sections. */
static int add_layers(Verifier *v) {
    for (uint32_t i = 0; i < v->head.n_layers; i++) {
        if (!v->have_meta) v->layer_bytes[i] = v->index[i].bytes;
        if (!v->have_meta && v->index[i].bytes == QSFF_LONG)
            return qsf_err_set(v->err, QSF_E_MODEL,
                               "%s: the index at byte offset %" PRIu64 " has layers of 4 GiB or more, whose "
                               "sizes must come before it, in the metadata",
                               v->path, v->head.index_off);
        v->sec[v->n_sec++] = (QsfSection){ v->index[i].off, v->layer_bytes[i], QSFS_LAYER, i };
    }
    return qsf_sections_check(v->sec, v->n_sec, &v->head, v->path, v->err);
}

static int check_index(Verifier *v) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < v->head.n_layers; i++) {
        unsigned char b[QSFF_INDEX_BYTES];
        uint64_t at = v->in.pos;
        rc = qsf_stream_take(&v->in, b, sizeof b, "layer index", v->err);
        if (rc == QSF_OK) rc = qsf_index_entry_decode(&v->index[i], b, v->path, at, v->err);
    }
    if (rc != QSF_OK) return rc;
    v->index_crc = v->in.crc;
    v->have_index = true;
    if (v->head.code != qsf_common_code(v->index, v->head.n_layers))
        return qsf_err_set(
            v->err, QSF_E_MODEL,
            "%s: quantization type %u at byte offset 48 does not match that of the layers (%u)", v->path,
            v->head.code, qsf_common_code(v->index, v->head.n_layers));
    rc = check_layer_sizes(v);
    return rc == QSF_OK ? add_layers(v) : rc;
}

/* Creates a source without files or tensors, for the metadata. */
static int make_source(Verifier *v, QsfLedger *ledger) {
    QsfSource *s = calloc(1, sizeof *s);
    if (s == NULL) return qsf_err_memory(v->err, "%s", v->path);
    v->meta = s;
    s->ledger = ledger;
    qsf_arena_init(&s->arena, ledger, QSF_MEM_META, "model metadata", 0);
    s->files = qsf_arena_alloc(&s->arena, sizeof *s->files, 16, v->err);
    if (s->files == NULL) return v->err->code;
    s->files[0] = (QsfFile){ .fd = -1, .path = strdup(v->path) };
    s->n_files = 1;
    return s->files[0].path != NULL ? QSF_OK : qsf_err_memory(v->err, "%s", v->path);
}

static int read_pairs(Verifier *v) {
    QsfCursor c;
    const unsigned char *bytes = (const unsigned char *)v->meta_bytes.data;
    qsf_cursor_memory(&c, &v->meta->files[0], bytes, v->meta_bytes.len);
    int rc = qsf_meta_read_pairs(v->meta, &c, QSF_FIELDS_MAX, &v->meta->meta, v->err);
    if (rc == QSF_OK && qsf_cursor_left(&c) != 0)
        rc = qsf_err_set(v->err, QSF_E_MODEL, "%" PRIu64 " bytes follow its last pair", qsf_cursor_left(&c));
    qsf_cursor_close(&c);
    if (rc != QSF_OK)
        qsf_err_prefix(v->err, "%s: metadata at byte offset %" PRIu64, v->path, v->head.meta_off);
    for (uint32_t i = 0; rc == QSF_OK && i < v->meta->meta.n; i++) {
        QsfMetaEntry *e = &v->meta->meta.e[i];
        if (e->type == QSF_META_ARRAY) e->v.arr.mem = bytes + e->v.arr.off;
    }
    return rc;
}

/* Grows the buffer with the data actually read, not with the size in the header. */
static int check_meta(Verifier *v) {
    const unsigned char *p;
    size_t n;
    int rc = QSF_OK;
    if (v->head.meta_bytes > QSF_MADE_MAX)
        return qsf_err_set(v->err, QSF_E_MODEL,
                           "%s: the metadata size at byte offset 108 is %" PRIu64
                           ", more than the limit of %" PRIu64,
                           v->path, v->head.meta_bytes, QSF_MADE_MAX);
    for (uint64_t left = v->head.meta_bytes; rc == QSF_OK && left > 0; left -= n) {
        rc = qsf_stream_some(&v->in, left, "metadata", &p, &n, v->err);
        if (rc != QSF_OK) break;
        qsf_strbuf_add(&v->meta_bytes, p, n);
    }
    if (rc == QSF_OK && !qsf_strbuf_ok(&v->meta_bytes)) rc = qsf_err_memory(v->err, "%s", v->path);
    if (rc == QSF_OK && v->in.crc != v->head.meta_crc)
        rc = qsf_err_set(v->err, QSF_E_MODEL,
                         "%s: the metadata at byte offset %" PRIu64 " is damaged: checksum %08" PRIX32
                         ", but %08" PRIX32 " at byte offset 116",
                         v->path, v->head.meta_off, v->in.crc, v->head.meta_crc);
    if (rc == QSF_OK) rc = read_pairs(v);
    if (rc == QSF_OK) v->r->meta_pairs = v->meta->meta.n;
    if (rc == QSF_OK) rc = qsf_named_read(v->meta, v->head.n_layers, v->err);
    if (rc == QSF_OK) rc = qsf_fields_apply(&v->head, v->meta, v->err);
    v->have_meta = rc == QSF_OK;
    return rc == QSF_OK ? check_layer_sizes(v) : rc;
}

static int check_embed(Verifier *v) {
    unsigned char b[QSFF_EMBED_BYTES];
    QsfEmbedHeader e;
    uint32_t dtype;
    uint64_t bytes;
    int rc = qsf_stream_take(&v->in, b, sizeof b, "embedding header", v->err);
    if (rc == QSF_OK) rc = qsf_embed_section(&v->head, b, v->path, &e, &dtype, &bytes, v->err);
    if (rc == QSF_OK) rc = qsf_stream_skip(&v->in, bytes - sizeof b, "embedding", v->err);
    v->embed_crc = v->in.crc;
    v->r->n_tensors++;
    return rc;
}

/* Checks that each outlier lies inside the matrix before it. */
static int check_outliers(Verifier *v, const QsfTensorHeader *of, const QsfTensorPlace *p) {
    unsigned char b[10];
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < p->head.rows; i++) {
        uint64_t at = v->in.pos;
        rc = qsf_stream_take(&v->in, b, sizeof b, "outliers", v->err);
        if (rc == QSF_OK && (qsf_get_le32(b) >= of->rows || qsf_get_le32(b + 4) >= of->cols))
            rc = qsf_err_set(v->err, QSF_E_MODEL,
                             "%s: the outlier at byte offset %" PRIu64 " is row %" PRIu32 ", column %" PRIu32
                             " of a matrix of %" PRIu32 " x %" PRIu32,
                             v->in.path, at, qsf_get_le32(b), qsf_get_le32(b + 4), of->rows, of->cols);
    }
    return rc;
}

/* Checks that header n of a compressed layer is the one in the metadata. */
static int check_announced(const Verifier *v, uint32_t n, const unsigned char b[QSFF_TENSOR_BYTES]) {
    if (v->heads == NULL || memcmp(b, v->heads + n * QSFF_TENSOR_BYTES, QSFF_TENSOR_BYTES) == 0)
        return QSF_OK;
    return qsf_err_set(v->err, QSF_E_MODEL,
                       "%s: the tensor header at byte offset %" PRIu64
                       " does not match the metadata (" QSF_KEY_LAYER_HEADS ")",
                       v->in.path, v->in.pos - QSFF_TENSOR_BYTES);
}

/* Reads the next tensor of the section at base; the size `bytes` of the final section is unknown. */
static int check_tensor(Verifier *v, QsfTensorScope *sc, uint64_t base, uint64_t bytes) {
    unsigned char b[QSFF_TENSOR_BYTES];
    QsfTensorPlace p;
    const QsfTensorHeader of = sc->last;
    uint64_t used = v->in.pos - base, at = qsf_tensor_next(used, v->head.flags);
    int rc = sc->final ? QSF_OK : qsf_tensor_fits(sc, base, at, sizeof b, bytes, v->err);
    if (rc == QSF_OK) rc = qsf_stream_zeros(&v->in, at - used, v->err);
    if (rc == QSF_OK) rc = qsf_stream_take(&v->in, b, sizeof b, "tensor header", v->err);
    if (rc == QSF_OK) rc = check_announced(v, sc->count, b);
    if (rc == QSF_OK) rc = qsf_scope_tensor(sc, b, base + at, &p, v->err);
    if (rc == QSF_OK && !sc->final) rc = qsf_tensor_fits(sc, base, at + sizeof b, p.bytes, bytes, v->err);
    if (rc != QSF_OK) return rc;
    v->r->n_tensors++;
    return p.head.type == QSFT_OUTLIERS
               ? check_outliers(v, &of, &p)
               : qsf_groups_verify(&v->in, &p,
                                   p.named != NULL ? p.named->name : qsf_tensor_type_name(p.head.type),
                                   v->err);
}

/* Reads all tensors of the layer sc, which has `bytes` bytes at base. */
static int check_tensors(Verifier *v, QsfTensorScope *sc, uint64_t base, uint64_t bytes, uint32_t n) {
    int rc = QSF_OK;
    for (uint32_t t = 0; rc == QSF_OK && t < n; t++) rc = check_tensor(v, sc, base, bytes);
    return rc == QSF_OK ? qsf_section_used(sc, base, v->in.pos - base, bytes, v->err) : rc;
}

static int check_layer_crc(const Verifier *v, uint32_t i) {
    const QsfIndexEntry *e = &v->index[i];
    if (v->in.crc == e->crc) return QSF_OK;
    return qsf_err_set(v->err, QSF_E_MODEL,
                       "%s: layer %" PRIu32 " from byte offset %" PRIu64 " is damaged: checksum %08" PRIX32
                       ", but %08" PRIX32 " in the index",
                       v->path, i, e->off, v->in.crc, e->crc);
}

/* Checks the decompressed layer c as if it were a file. */
static int check_whole(Verifier *v, const QsfCompressed *c, unsigned char *whole) {
    char label[LABEL_MAX];
    const QsfStream file = v->in;
    QsfTensorScope sc = { .path = qsf_compressed_label(c, v->path, label, sizeof label),
                          .head = &v->head,
                          .names = v->meta->named,
                          .layer = c->layer,
                          .code = v->index[c->layer].code };
    v->in = (QsfStream){ .fd = -1, .path = label, .buf = whole, .have = (size_t)c->whole_bytes };
    int rc = check_tensors(v, &sc, 0, c->whole_bytes, c->n_heads);
    v->in = file;
    return rc == QSF_OK ? qsf_scope_end(&sc, false, v->err) : rc;
}

/* Returns the headers of layer i in the metadata; NULL if it has none. */
static int find_heads(Verifier *v, uint32_t i) {
    uint64_t at, count = 0;
    v->heads = NULL;
    if (!v->have_meta)
        return qsf_err_set(v->err, QSF_E_MODEL,
                           "%s: layer %" PRIu32 " at byte offset %" PRIu64
                           " is compressed and lies before the metadata",
                           v->path, i, v->index[i].off);
    int rc = qsf_layer_heads(v->meta, v->index, v->head.n_layers, &at, &v->heads, &count, v->err);
    for (uint32_t k = 0; rc == QSF_OK && count > 0 && k < i; k++)
        if (v->index[k].compression != QSFF_STORED) v->heads += v->index[k].n_tensors * QSFF_TENSOR_BYTES;
    return rc;
}

/* raw and whole are buffers for the layer as stored and decompressed. */
static int unpack_layer(Verifier *v, const QsfCompressed *c, unsigned char *raw, unsigned char *whole) {
    int rc = qsf_stream_take(&v->in, raw, c->bytes, "compressed layer", v->err);
    if (rc == QSF_OK) rc = check_layer_crc(v, c->layer);
    if (rc == QSF_OK) rc = qsf_unpacker_need(&v->unpacker, c->how, v->err);
    if (rc == QSF_OK) rc = qsf_compressed_unpack(v->meta, c, &v->unpacker, raw, whole, v->err);
    return rc == QSF_OK ? check_whole(v, c, whole) : rc;
}

static int check_compressed_layer(Verifier *v, uint32_t i) {
    const QsfIndexEntry *e = &v->index[i];
    const QsfCompressed c = { .layer = i,
                              .off = e->off,
                              .bytes = e->bytes,
                              .whole_bytes = e->whole_bytes,
                              .crc = e->crc,
                              .how = e->compression,
                              .n_heads = e->n_tensors };
    QsfLedger *l = v->meta->ledger;
    void *raw = NULL, *whole = NULL;
    int rc = find_heads(v, i);
    if (rc == QSF_OK) rc = qsf_mem_map(l, QSF_MEM_META, e->bytes, "compressed layer", &raw, v->err);
    if (rc == QSF_OK) rc = qsf_mem_map(l, QSF_MEM_META, e->whole_bytes, "decompressed layer", &whole, v->err);
    if (rc == QSF_OK) rc = unpack_layer(v, &c, raw, whole);
    qsf_mem_unmap(l, QSF_MEM_META, raw, e->bytes);
    qsf_mem_unmap(l, QSF_MEM_META, whole, e->whole_bytes);
    v->heads = NULL;
    v->r->n_compressed++;
    return rc;
}

/* Returns the named tensors; NULL before the metadata was read. */
static const QsfNamed *names_of(const Verifier *v) { return v->have_meta ? v->meta->named : NULL; }

static int check_layer(Verifier *v, uint32_t i) {
    const QsfIndexEntry *e = &v->index[i];
    QsfTensorScope sc = {
        .path = v->path, .head = &v->head, .names = names_of(v), .layer = i, .code = e->code
    };
    if (e->compression != QSFF_STORED) return check_compressed_layer(v, i);
    int rc = check_tensors(v, &sc, e->off, v->layer_bytes[i], e->n_tensors);
    if (rc == QSF_OK) rc = check_layer_crc(v, i);
    return rc == QSF_OK ? qsf_scope_end(&sc, false, v->err) : rc;
}

static uint32_t norms_of(const Verifier *v) {
    const uint32_t n = v->head.norm == QSFF_LAYER_NORM ? 2 : 1;
    return v->have_meta && v->meta->named->norms < n ? v->meta->named->norms : n;
}

static int check_final(Verifier *v) {
    QsfTensorScope sc = {
        .path = v->path, .head = &v->head, .names = names_of(v), .final = true, .code = QSFF_MIXED
    };
    unsigned char flag;
    bool tied, end = false;
    int rc = qsf_stream_skip(&v->in, qsf_final_norm_bytes(&v->head) - 1, "final norm", v->err);
    if (rc == QSF_OK) rc = qsf_stream_take(&v->in, &flag, 1, "head flag", v->err);
    if (rc == QSF_OK) rc = qsf_final_flag(flag, v->in.pos - 1, v->path, &tied, v->err);
    v->r->n_tensors += norms_of(v);
    if (rc == QSF_OK) rc = qsf_stream_fill(&v->in, &end, v->err);
    while (rc == QSF_OK && !end) {
        rc = check_tensor(v, &sc, v->head.final_off, 0);
        if (rc == QSF_OK) rc = qsf_stream_fill(&v->in, &end, v->err);
    }
    v->final_crc = v->in.crc;
    return rc == QSF_OK ? qsf_scope_end(&sc, tied, v->err) : rc;
}

/* --- the whole file --- */

static int check_section(Verifier *v, const QsfSection *s) {
    const QsfSection sec = *s; /* the index moves the list */
    if (sec.off < v->in.pos)
        return qsf_err_set(v->err, QSF_E_MODEL,
                           "%s: the %s at byte offset %" PRIu64 " overlaps what ends at %" PRIu64, v->path,
                           qsf_section_name(sec.kind), sec.off, v->in.pos);
    int rc = qsf_stream_zeros(&v->in, sec.off - v->in.pos, v->err);
    v->in.crc = 0;
    if (rc != QSF_OK) return rc;
    switch (sec.kind) {
    case QSFS_INDEX: return check_index(v);
    case QSFS_META: return check_meta(v);
    case QSFS_EMBED: return check_embed(v);
    case QSFS_LAYER: return check_layer(v, sec.layer);
    default: return check_final(v);
    }
}

/* Checks that are only possible at the end. */
static int check_rest(Verifier *v) {
    const QsfFileHeader *h = &v->head;
    const struct {
        const char *key;
        uint32_t crc;
        uint64_t at;
    } sums[] = { { QSF_KEY_CRC_HEAD100, v->crc100, 100 },
                 { QSF_KEY_CRC_INDEX, v->index_crc, h->index_off },
                 { QSF_KEY_CRC_EMBED, v->embed_crc, h->embed_off },
                 { QSF_KEY_CRC_FINAL, v->final_crc, h->final_off } };
    if (h->size_low != (uint32_t)v->in.pos)
        return qsf_err_set(v->err, QSF_E_MODEL,
                           "%s: has %" PRIu64 " bytes, which does not match the %" PRIu32
                           " at byte offset 92",
                           v->path, v->in.pos, h->size_low);
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof sums / sizeof *sums; i++)
        rc = qsf_fields_crc(v->meta, sums[i].key, sums[i].crc, sums[i].at, true, v->err);
    return rc == QSF_OK ? qsf_scores_check(v->meta, v->index, h->n_layers, h->index_off, v->err) : rc;
}

static int check_all(Verifier *v) {
    int rc = check_head(v);
    for (uint32_t i = 0; rc == QSF_OK && i < v->n_sec; i++) rc = check_section(v, &v->sec[i]);
    if (rc == QSF_OK) rc = check_rest(v);
    v->r->bytes = v->in.pos;
    v->r->n_layers = v->head.n_layers;
    return rc;
}

int qsf_verify_fd(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err) {
    return qsf_verify_fd_meta(fd, name, ledger, r, NULL, NULL, err);
}

int qsf_verify_fd_meta(int fd, const char *name, QsfLedger *ledger, QsfVerifyReport *r,
                       int (*look)(void *arg, const QsfSource *meta, QsfErr *err), void *arg, QsfErr *err) {
    QsfErr local = { 0 };
    Verifier v = {
        .in = { .fd = fd, .path = name }, .path = name, .err = err != NULL ? err : &local, .r = r
    };
    *r = (QsfVerifyReport){ 0 };
    int rc = qsf_stream_open(&v.in, v.err);
    if (rc == QSF_OK) rc = make_source(&v, ledger);
    if (rc == QSF_OK) rc = check_all(&v);
    if (rc == QSF_OK && look != NULL) rc = look(arg, v.meta, v.err);
    qsf_source_close(v.meta);
    qsf_strbuf_free(&v.meta_bytes);
    qsf_unpacker_close(&v.unpacker);
    free(v.layer_bytes);
    free(v.index);
    free(v.sec);
    qsf_stream_close(&v.in);
    return rc;
}

int qsf_verify_file(const char *path, QsfLedger *ledger, QsfVerifyReport *r, QsfErr *err) {
    QsfFile f;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_verify_fd(f.fd, path, ledger, r, err);
    qsf_file_close(&f);
    return rc;
}
