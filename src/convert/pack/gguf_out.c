/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes GGUF files sequentially. */
#include "src/convert/pack/gguf_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/newfile.h"
#include "src/convert/pack/gguf_list.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/file/dtype.h"
#include "src/file/model_keys.h"
#include "src/file/qsf/write.h"
#include "src/file/rows.h"
#include "src/file/source_impl.h"

#define PIECE_BYTES       ((size_t)1 << 18)
#define ALIGNMENT_DEFAULT 32u
#define KEY_ALIGNMENT     "general.alignment"

typedef struct GgufOut {
    const QsfSource *s;
    const QsfGgufOptions *o;
    const char *path;
    QsfGgufList l;
    QsfGgufReport *r;
    QsfNewFile file;
    qk_table kernels;     /* plain C: only unpacks groups */
    unsigned char *piece; /* (PIECE_BYTES) of a tensor */
    unsigned char *buf;   /* (n_buf of PIECE_BYTES) not yet written */
    size_t n_buf;
    uint64_t pos; /* bytes so far */
    uint32_t alignment;
    bool set_alignment; /* the file declares its alignment */
    const QsfGgufTensor *now;
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
        const QsfGgufTensor *t = &g->l.tensor[i];
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
        for (unsigned k = 0; rc == QSF_OK && k < g->now->n_parts && !g->o->dry; k++)
            rc = put_part(g, g->now->part[k], err);
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
    if (rc == QSF_OK) rc = qsf_gguf_list(&g.l, s, err);
    if (rc == QSF_OK) rc = choose_alignment(&g, err);
    if (rc == QSF_OK) rc = open_file(&g, err);
    if (rc == QSF_OK) rc = put_header(&g, err);
    if (rc == QSF_OK) rc = put_table(&g, err);
    if (rc == QSF_OK) rc = put_tensors(&g, err);
    if (rc == QSF_OK) rc = flush(&g, err);
    if (rc == QSF_OK && !o->dry) rc = qsf_newfile_commit(&g.file, err);
    qsf_newfile_discard(&g.file);
    report->bytes = g.pos;
    qsf_gguf_list_free(&g.l);
    free(g.piece);
    free(g.buf);
    return rc;
}
