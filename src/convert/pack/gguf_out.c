/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes GGUF files sequentially: first lists the tensors, their names, types and sizes. */
#include "src/convert/pack/gguf_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "src/convert/pack/items.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/file/dtype.h"
#include "src/file/model_keys.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/write.h"
#include "src/file/rows.h"
#include "src/file/source_impl.h"

/* ---- the list of tensors ---- */

#define GGUF_PARTS 3u /* that a tensor can consist of */

typedef struct GgufTensor {
    const char *name;
    const QsfTensor *part[GGUF_PARTS]; /* (n_parts) rows of the source, one after the other */
    uint32_t n_parts, experts; /* of experts, this many, the parts are found by their names, and part[0]
                                          is the first one */
    uint32_t n_dims, type;     /* type: number in the file */
    uint64_t ne[4];
    uint64_t bytes;
} GgufTensor;

typedef struct GgufList {
    GgufTensor *tensor; /* (n) */
    uint64_t n;
    bool flavored; /* there are I2_S tensors that only their size distinguishes */
} GgufList;

enum { I2_S_FLAVORS = 36 }; /* src/file/i2s.h */

/* Tensors that QSF stores as their parts (items_list.c). */
static const struct {
    const char *name, *part[GGUF_PARTS + 1];
} fused[] = {
    { "attn_qkv.weight", { "attn_q.weight", "attn_k.weight", "attn_v.weight" } },
    { "attn_qkv.bias", { "attn_q.bias", "attn_k.bias", "attn_v.bias" } },
    { "ffn_up.weight", { "ffn_gate.weight", "ffn_up.weight" } },
};

typedef struct Lister {
    const QsfSource *s;
    GgufList *l;
    int32_t *join; /* (tensors of s) index of the fused name that it is a part of, or -1 */
    QsfErr *err;
} Lister;

/* ---- joined tensors */

/* Returns part i of t. */
static const QsfTensor *part_of(const QsfSource *s, const GgufTensor *t, uint32_t i) {
    char name[QSF_ITEM_NAME];
    if (t->experts == 0) return t->part[i];
    const uint32_t pieces = qsf_expert_pieces(t->name);
    return qsf_source_find_tensor(s, qsf_expert_name(t->name, i / pieces, i % pieces, name));
}

/* The same for a tensor of all experts. */
static bool find_experts(const Lister *c, GgufTensor *t) {
    const uint32_t pieces = qsf_expert_pieces(t->name);
    if (pieces == 0) return false;
    t->experts = 1; /* finds parts by name */
    for (t->n_parts = 0; part_of(c->s, t, t->n_parts) != NULL;) t->n_parts++;
    t->experts = t->n_parts / pieces;
    if (t->n_parts == 0 || t->n_parts % pieces != 0) return false;
    t->part[0] = part_of(c->s, t, 0);
    return true;
}

/* Finds the parts of the tensor `name`; false if it has none, or they do not exist. */
static bool find_parts(const Lister *c, const char *name, GgufTensor *t) {
    char full[QSFF_NAME_MAX + 64];
    uint32_t layer;
    const char *rest = qsf_name_in_layer(name, &layer);
    if (find_experts(c, t)) return true;
    t->experts = 0;
    for (size_t k = 0; rest != NULL && k < sizeof fused / sizeof *fused; k++) {
        if (strcmp(fused[k].name, rest) != 0) continue;
        for (t->n_parts = 0; fused[k].part[t->n_parts] != NULL; t->n_parts++) {
            (void)snprintf(full, sizeof full, "blk.%" PRIu32 ".%s", layer, fused[k].part[t->n_parts]);
            t->part[t->n_parts] = qsf_source_find_tensor(c->s, full);
            if (t->part[t->n_parts] == NULL) return false;
        }
        return true;
    }
    return false;
}

/* Can the parts be one tensor? They cannot if they have different types. */
static bool fits(const Lister *c, const GgufTensor *t) {
    const QsfTensor *first = t->part[0], *old = qsf_source_find_tensor(c->s, t->name);
    bool is_part = old == NULL;
    if (first->n_dims > 2 || qsf_dtype(first->dtype)->tail_bytes > 0) return false;
    if (first->n_dims == 1 && qsf_dtype(first->dtype)->block_elems != 1) return false;
    for (uint32_t i = 0; i < t->n_parts; i++) {
        const QsfTensor *p = part_of(c->s, t, i);
        if (t->experts > 0 && (p->n_dims != 2 || p->ne[1] != first->ne[1])) return false;
        if (p->dtype != first->dtype || p->n_dims != first->n_dims) return false;
        if (p->n_dims == 2 && p->ne[0] != first->ne[0]) return false;
        if (c->join[p - qsf_source_tensor(c->s, 0)] >= 0) return false;
        is_part |= p == old;
    }
    return is_part; /* otherwise the file has a tensor of this name */
}

static void join_dims(GgufTensor *t) {
    t->n_dims = t->part[0]->n_dims;
    memcpy(t->ne, t->part[0]->ne, sizeof t->ne);
    if (t->experts > 0) {
        t->n_dims = 3;
        t->ne[1] *= t->n_parts / t->experts;
        t->ne[2] = t->experts;
        return;
    }
    for (unsigned i = 1; i < t->n_parts; i++) t->ne[t->n_dims - 1] += t->part[i]->ne[t->n_dims - 1];
}

static void mark_joined(const Lister *c) {
    const QsfNamed *names = c->s->named;
    GgufTensor t;
    for (uint32_t i = 0; names != NULL && i < names->n_fused && i < INT32_MAX; i++) {
        t = (GgufTensor){ .name = names->fused[i] };
        if (!find_parts(c, t.name, &t) || !fits(c, &t)) continue;
        for (uint32_t k = 0; k < t.n_parts; k++)
            c->join[part_of(c->s, &t, k) - qsf_source_tensor(c->s, 0)] = (int32_t)i;
    }
}

/* ---- all */

static bool gguf_type(uint32_t dtype, uint32_t *type) {
    const bool flavor = dtype == QK_GGML_I2_256 || dtype == QK_GGML_I2_32;
    *type = flavor ? I2_S_FLAVORS : dtype;
    return flavor || dtype < QK_GGML_QSF;
}

static int finish(const Lister *c, GgufTensor *t) {
    const QsfDtype *d = qsf_dtype(t->part[0]->dtype);
    if (!gguf_type(d->id, &t->type))
        return qsf_err_set(c->err, QSF_E_MODEL,
                           "%s: tensor '%s' is of type %s, which GGUF does not have; convert the model to "
                           "another QSF file with --quant-type q4_k, q6_k, q8_0 or f16 first",
                           qsf_source_path(c->s), t->name, d->name);
    c->l->flavored |= t->type != d->id;
    if (!qsf_dtype_tensor_bytes(d, t->ne, &t->bytes))
        return qsf_err_set(c->err, QSF_E_MODEL, "%s: tensor '%s' has an impossible shape",
                           qsf_source_path(c->s), t->name);
    return QSF_OK;
}

/* Is t the first part of the tensor? An expert's is found without looking for all of them. */
static bool is_first(const Lister *c, const char *name, const QsfTensor *t) {
    GgufTensor all = { .name = name, .experts = 1 };
    if (qsf_expert_pieces(name) > 0 && part_of(c->s, &all, 0) != NULL) return part_of(c->s, &all, 0) == t;
    return find_parts(c, name, &all) && all.part[0] == t;
}

static int add(const Lister *c, uint64_t i) {
    const QsfTensor *t = qsf_source_tensor(c->s, i);
    GgufTensor *out = &c->l->tensor[c->l->n];
    const int32_t join = c->join[i];
    *out = (GgufTensor){ .name = t->name, .part = { t }, .n_parts = 1 };
    if (join >= 0) out->name = c->s->named->fused[join];
    if (join >= 0 && !is_first(c, out->name, t)) return QSF_OK; /* with the first */
    if (join >= 0 && !find_parts(c, out->name, out)) return QSF_OK;
    join_dims(out);
    c->l->n++;
    return finish(c, out);
}

static void free_list(GgufList *l) {
    free(l->tensor);
    *l = (GgufList){ 0 };
}

/* Lists the tensors of s for a GGUF file. QSF_E_MODEL names a tensor of a type that GGUF does not have;
 * QSF_E_RUNTIME if out of memory. The caller frees the list. */
static int list_tensors(GgufList *l, const QsfSource *s, QsfErr *err) {
    const uint64_t n = qsf_source_n_tensors(s);
    Lister c = { .s = s, .l = l, .err = err };
    *l = (GgufList){ .tensor = calloc((size_t)n + 1, sizeof *l->tensor) };
    c.join = malloc(((size_t)n + 1) * sizeof *c.join);
    int rc = l->tensor != NULL && c.join != NULL ? QSF_OK : qsf_err_memory(err, "%s", qsf_source_path(s));
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) c.join[i] = -1;
    if (rc == QSF_OK) mark_joined(&c);
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) rc = add(&c, i);
    free(c.join);
    if (rc != QSF_OK) free_list(l);
    return rc;
}

/* ---- the file ---- */

#define PIECE_BYTES       ((size_t)1 << 18)
#define ALIGNMENT_DEFAULT 32u
#define KEY_ALIGNMENT     "general.alignment"

typedef struct GgufOut {
    const QsfSource *s;
    const QsfGgufOptions *o;
    const char *path;
    GgufList l;
    QsfGgufReport *r;
    QsfNewFile file;
    qk_table kernels;     /* plain C: only unpacks groups */
    unsigned char *piece; /* (PIECE_BYTES) of a tensor */
    unsigned char *buf;   /* (n_buf of PIECE_BYTES) not yet written */
    size_t n_buf;
    uint64_t pos; /* bytes so far */
    uint32_t alignment;
    bool set_alignment; /* the file declares its alignment */
    const GgufTensor *now;
    uint64_t done, all; /* bytes of tensors */
} GgufOut;

/* ---- bytes */

static int flush(GgufOut *g, QsfErr *err) {
    const unsigned char *p = g->buf;
    uint64_t at = g->pos - g->n_buf;
    for (; g->n_buf > 0 && !g->o->dry;) {
        ssize_t n = pwrite(g->file.file.fd, p, g->n_buf, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) errno = ENOSPC;
        if (n <= 0)
            return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot write at byte offset %" PRIu64 ": %s", g->path,
                               at, strerror(errno));
        p += n;
        at += (uint64_t)n;
        g->n_buf -= (size_t)n;
    }
    g->n_buf = 0;
    return QSF_OK;
}

static int put(void *arg, const void *data, size_t len, QsfErr *err) {
    GgufOut *g = arg;
    const unsigned char *p = data;
    int rc = QSF_OK;
    while (rc == QSF_OK && len > 0) {
        const size_t n = PIECE_BYTES - g->n_buf < len ? PIECE_BYTES - g->n_buf : len;
        memcpy(g->buf + g->n_buf, p, n);
        g->n_buf += n;
        g->pos += n;
        p += n;
        len -= n;
        if (g->n_buf == PIECE_BYTES) rc = flush(g, err);
    }
    return rc;
}

static int put_buffer(GgufOut *g, QsfStrbuf *b, QsfErr *err) {
    int rc = qsf_strbuf_ok(b) ? put(g, b->data, b->len, err) : qsf_err_memory(err, "%s", g->path);
    qsf_strbuf_free(b);
    return rc;
}

static uint64_t aligned(const GgufOut *g, uint64_t v) {
    return (v + g->alignment - 1) / g->alignment * g->alignment;
}

static int pad(GgufOut *g, QsfErr *err) {
    static const unsigned char zeros[256];
    int rc = QSF_OK;
    for (uint64_t n = aligned(g, g->pos) - g->pos; rc == QSF_OK && n > 0;) {
        const size_t m = n < sizeof zeros ? (size_t)n : sizeof zeros;
        rc = put(g, zeros, m, err);
        n -= m;
    }
    return rc;
}

/* ---- metadata */

/* The end of a key that programs which read GGUF do not have. */
static bool is_yarn_truncate(const char *key) {
    static const char end[] = "." QSF_KEY_YARN_TRUNCATE;
    const size_t n = strlen(key), k = sizeof end - 1;
    return n > k && strcmp(key + n - k, end) == 0;
}

static bool carried(const GgufOut *g, const QsfMetaEntry *e) {
    if (is_yarn_truncate(e->key)) return false;
    if (strcmp(e->key, KEY_ALIGNMENT) == 0) return g->set_alignment;
    return !e->hidden && !e->derived && !qsf_key_of_file(e->key);
}

/* A larger alignment would hide the sizes that distinguish the layouts of I2_S (src/file/i2s.h). */
static int choose_alignment(GgufOut *g, QsfErr *err) {
    g->alignment = ALIGNMENT_DEFAULT;
    if (!qsf_meta_has(g->s, KEY_ALIGNMENT) || g->l.flavored) return QSF_OK;
    uint32_t v;
    int rc = qsf_meta_u32(g->s, KEY_ALIGNMENT, ALIGNMENT_DEFAULT, &v, err);
    if (rc != QSF_OK) return rc;
    g->set_alignment = v > 0 && v % 8 == 0;
    if (g->set_alignment) g->alignment = v;
    return QSF_OK;
}

static int put_header(GgufOut *g, QsfErr *err) {
    const QsfMetaTable *t = &g->s->meta;
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (uint32_t i = 0; i < t->n; i++) {
        const QsfMetaEntry *e = &t->e[i];
        g->r->n_pairs += carried(g, e);
        if (is_yarn_truncate(e->key) && !e->hidden && e->type == QSF_META_BOOL && e->v.u == 0)
            g->r->yarn_rounded = true;
    }
    g->r->n_tensors = g->l.n;
    qsf_strbuf_adds(&b, "GGUF");
    qsf_meta_put_le(&b, 3, 4);
    qsf_meta_put_le(&b, g->r->n_tensors, 8);
    qsf_meta_put_le(&b, g->r->n_pairs, 8);
    int rc = put_buffer(g, &b, err);
    for (uint32_t i = 0; rc == QSF_OK && i < t->n; i++)
        if (carried(g, &t->e[i])) rc = qsf_meta_copy_entry(g->s, &t->e[i], put, g, err);
    return rc;
}

static int put_table(GgufOut *g, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    uint64_t off = 0;
    for (uint64_t i = 0; i < g->l.n; i++) {
        const GgufTensor *t = &g->l.tensor[i];
        qsf_meta_put_str(&b, t->name, strlen(t->name));
        qsf_meta_put_le(&b, t->n_dims, 4);
        for (uint32_t d = 0; d < t->n_dims; d++) qsf_meta_put_le(&b, t->ne[d], 8);
        qsf_meta_put_le(&b, t->type, 4);
        qsf_meta_put_le(&b, off, 8);
        off = aligned(g, off + t->bytes);
        g->all += t->bytes;
    }
    return put_buffer(g, &b, err);
}

/* ---- tensors */

static int put_data(void *arg, const void *data, size_t len, QsfErr *err) {
    GgufOut *g = arg;
    int rc = put(g, data, len, err);
    g->done += len;
    if (g->o->progress != NULL) g->o->progress(g->o->progress_arg, g->now->name, g->done, g->all);
    if (rc == QSF_OK && g->o->cancel != NULL && atomic_load(g->o->cancel) != 0)
        rc = qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    return rc;
}

static int put_part(GgufOut *g, const QsfTensor *t, QsfErr *err) {
    const uint32_t tail = qsf_dtype(t->dtype)->tail_bytes;
    QsfRowReader r;
    int rc = qsf_rowreader_open(&r, g->s, t, &g->kernels, err);
    if (rc == QSF_OK)
        rc = qsf_rowreader_copy(&r, 0, qsf_tensor_n_rows(t), g->piece, PIECE_BYTES, put_data, g, err);
    qsf_rowreader_close(&r);
    if (rc != QSF_OK || tail == 0) return rc;
    rc = qsf_source_read_bytes(g->s, t, t->bytes - tail, g->piece, tail, err);
    return rc == QSF_OK ? put_data(g, g->piece, tail, err) : rc;
}

static int put_tensors(GgufOut *g, QsfErr *err) {
    int rc = pad(g, err);
    for (uint64_t i = 0; rc == QSF_OK && i < g->l.n; i++) {
        g->now = &g->l.tensor[i];
        for (uint32_t k = 0; rc == QSF_OK && k < g->now->n_parts && !g->o->dry; k++)
            rc = put_part(g, part_of(g->s, g->now, k), err);
        if (g->o->dry) g->pos += g->now->bytes;
        if (rc == QSF_OK) rc = pad(g, err);
    }
    return rc;
}

/* ---- all */

static int open_file(GgufOut *g, QsfErr *err) {
    struct stat st;
    if (g->o->dry) return QSF_OK;
    if (stat(g->path, &st) == 0 && !S_ISREG(st.st_mode))
        return qsf_err_set(err, QSF_E_USAGE, "%s: exists and is not a regular file; not overwritten",
                           g->path);
    return qsf_newfile_create(&g->file, g->path, err);
}

int qsf_write_gguf(const QsfSource *s, const char *path, const QsfGgufOptions *o, QsfGgufReport *report,
                   QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    *report = (QsfGgufReport){ 0 };
    GgufOut g = { .s = s, .o = o, .path = path, .r = report };
    qk_table_init(&g.kernels, QK_LEVEL_REF);
    g.piece = malloc(PIECE_BYTES);
    g.buf = malloc(PIECE_BYTES);
    int rc = g.piece != NULL && g.buf != NULL ? QSF_OK : qsf_err_memory(err, "%s", path);
    if (rc == QSF_OK) rc = list_tensors(&g.l, s, err);
    if (rc == QSF_OK) rc = choose_alignment(&g, err);
    if (rc == QSF_OK) rc = open_file(&g, err);
    if (rc == QSF_OK) rc = put_header(&g, err);
    if (rc == QSF_OK) rc = put_table(&g, err);
    if (rc == QSF_OK) rc = put_tensors(&g, err);
    if (rc == QSF_OK) rc = flush(&g, err);
    if (rc == QSF_OK && !o->dry) rc = qsf_newfile_commit(&g.file, err);
    qsf_newfile_discard(&g.file);
    report->bytes = g.pos;
    free_list(&g.l);
    free(g.piece);
    free(g.buf);
    return rc;
}
