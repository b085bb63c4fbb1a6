/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/pack/pack.h"

#include <stdlib.h>
#include <string.h>

#include "src/convert/pack/expert_uses.h"
#include "src/convert/pack/tensor_rows.h"
#include "src/file/dtype.h"
#include "src/file/qsf/fields.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/scores.h"
#include "src/file/rows.h"

#define PIECE_BYTES ((size_t)1 << 18)

typedef struct Packer {
    const QsfSource *s;
    const QsfPackOptions *o;
    const char *path;
    QsfFileHeader head;
    QsfItems *l;
    QsfWriter w;
    QsfLedger ledger;
    QsfPool *pool;
    QsfEncoder e;
    unsigned char *piece;         /* (PIECE_BYTES) */
    float *norm, *bias;           /* (hidden) each; bias NULL: none */
    bool exact_norm;              /* stored with more than half precision */
    QsfCalibration old;           /* scores of the source */
    const QsfCalibration *scores; /* NULL: no layer scores */
    QsfStrbuf extra;              /* new scores as metadata */
    uint64_t n_extra;
    const QsfItem *now;
    uint64_t done, all; /* bytes of tensors in the output */
} Packer;

/* ---- tensors */

static int put(void *arg, const void *data, size_t len, QsfErr *err) {
    Packer *p = arg;
    int rc = qsf_write_data(&p->w, data, len, err);
    p->done += len;
    if (rc == QSF_OK && p->o->progress != NULL) p->o->progress(p->o->progress_arg, p->now, p->done, p->all);
    return rc == QSF_OK ? qsf_encoder_check(&p->e, err) : rc;
}

/* Copies elements of a bias that is a part of a fused one. */
static int copy_elements(Packer *p, const QsfItem *i, QsfErr *err) {
    const uint64_t each = qsf_dtype(i->t->dtype)->block_bytes, all = i->cols * each;
    int rc = QSF_OK;
    for (uint64_t at = 0; rc == QSF_OK && at < all; at += PIECE_BYTES) {
        size_t n = all - at < PIECE_BYTES ? (size_t)(all - at) : PIECE_BYTES;
        rc = qsf_source_read_bytes(p->s, i->t, i->first * each + at, p->piece, n, err);
        if (rc == QSF_OK) rc = put(p, p->piece, n, err);
    }
    return rc;
}

/* Copies `rows` rows unchanged, in GGUF's order. */
static int copy_rows(Packer *p, const QsfTensor *t, uint64_t first, uint64_t rows, QsfEncodeSink sink,
                     void *arg, QsfErr *err) {
    QsfRowReader r;
    int rc = qsf_rowreader_open(&r, p->s, t, &p->e.kernels, err);
    if (rc == QSF_OK) rc = qsf_rowreader_copy(&r, first, rows, p->piece, PIECE_BYTES, sink, arg, err);
    qsf_rowreader_close(&r);
    return rc;
}

/* Copies the bytes after the last row. */
static int copy_tail(Packer *p, const QsfTensor *t, QsfErr *err) {
    const uint32_t n = qsf_dtype(t->dtype)->tail_bytes;
    if (n == 0) return QSF_OK;
    int rc = qsf_source_read_bytes(p->s, t, t->bytes - n, p->piece, n, err);
    return rc == QSF_OK ? put(p, p->piece, n, err) : rc;
}

/* Writes the rows of an item, unchanged or requantized, without a tail. */
static int give_rows(Packer *p, QsfItem *i, QsfEncodeSink sink, void *arg, QsfErr *err) {
    if (i->code != i->keep) return qsf_encode(&p->e, i, qsf_quant_format_of(i->code), sink, arg, err);
    int rc = copy_rows(p, i->t, i->first, i->rows, sink, arg, err);
    return rc == QSF_OK && i->more != NULL ? copy_rows(p, i->more, 0, 1, sink, arg, err) : rc;
}

static int give_groups(Packer *p, QsfItem *i, QsfErr *err) {
    QsfGrouper g;
    uint32_t dtype = 0;
    (void)qsf_code_dtype(i->code, p->head.block, &dtype); /* checked by qsf_item_become */
    int rc = qsf_grouper_open(&g, dtype, i->cols, &p->e.kernels, put, p, err);
    if (rc != QSF_OK) return rc;
    rc = give_rows(p, i, qsf_grouper_add, &g, err);
    if (rc == QSF_OK) rc = qsf_grouper_end(&g, err);
    qsf_grouper_close(&g);
    return rc;
}

static int put_rows(Packer *p, QsfItem *i, QsfErr *err) {
    p->now = i;
    if (p->o->dry) return qsf_write_skip(&p->w, err);
    if (i->code == i->keep && i->rows == 1 && i->cols < i->t->ne[0]) return copy_elements(p, i, err);
    int rc = i->groups ? give_groups(p, i, err) : give_rows(p, i, put, p, err);
    return rc == QSF_OK && i->code == i->keep ? copy_tail(p, i->t, err) : rc;
}

static int put_item(Packer *p, QsfItem *i, QsfErr *err) {
    int rc = i->type == QSFT_EMBED ? qsf_write_embedding(&p->w, i->code, i->rows, i->cols, err)
             : i->groups           ? qsf_write_groups(&p->w, i->type, i->code, i->rows, i->cols, err)
                                   : qsf_write_tensor(&p->w, i->type, i->code, i->rows, i->cols, err);
    return rc == QSF_OK ? put_rows(p, i, err) : rc;
}

/* Writes n items expert by expert. What is measured is that of the items. */
static int put_experts(Packer *p, uint32_t k, uint32_t n, QsfErr *err) {
    const uint32_t parts = qsf_items_parts(p->l, k, n);
    int rc = QSF_OK;
    for (uint32_t i = k; i < k + n; i++) p->l->item[i].outliers = p->l->item[i].clamped = 0;
    for (uint32_t at = 0; rc == QSF_OK && at < parts; at++) {
        char name[QSF_ITEM_NAME];
        QsfItem part;
        QsfItem *whole = &p->l->item[qsf_items_part(p->l, k, at, &part, name)];
        part.stats = (QsfQuantStats){ 0 };
        part.outliers = part.clamped = 0;
        rc = put_item(p, &part, err);
        part.stats.max_row += part.first;
        qsf_stats_merge(&whole->stats, &part.stats);
        whole->outliers += part.outliers;
        whole->clamped += part.clamped;
    }
    return rc;
}

/* ---- sections */

/* Returns the common code of all matrices of a layer, else QSFF_MIXED. */
static uint8_t layer_code(const QsfItems *l, uint32_t layer) {
    uint8_t common = QSFF_MIXED;
    bool any = false;
    for (uint32_t k = 0; k < l->n; k++) {
        const QsfItem *i = &l->item[k];
        if (i->layer != layer || qsf_tensor_type_is_vector(i->type)) continue;
        if (i->type == QSFT_NAMED && !qsf_item_is_matrix(i)) continue;
        if ((any && i->code != common) || i->n_seldom > 0) return QSFF_MIXED;
        common = i->code;
        any = true;
    }
    return common;
}

/* Must the layer stay uncompressed? Experts are read one at a time. Without a program, tensors
 * without a type may be experts. */
static bool stays_whole(const Packer *p, uint32_t layer) {
    const QsfUses *u = p->o->uses;
    if (u != NULL && layer < u->n_layers) return u->whole[layer];
    for (uint32_t k = 0; k < p->l->n; k++) {
        const QsfItem *i = &p->l->item[k];
        if (i->layer == layer && (i->type == QSFT_NAMED || qsf_tensor_type_is_experts(i->type))) return true;
    }
    return false;
}

static bool compresses_any(const Packer *p) {
    for (uint32_t layer = 0; layer < p->l->n_layers; layer++)
        if (!stays_whole(p, layer)) return true;
    return false;
}

static int put_all(Packer *p, QsfErr *err) {
    QsfItems *l = p->l;
    uint32_t k = 0;
    int rc = put_item(p, &l->item[k++], err); /* the embedding is the first */
    for (uint32_t layer = 0; rc == QSF_OK && layer < l->n_layers; layer++) {
        rc = qsf_write_layer(&p->w, layer_code(l, layer),
                             p->scores != NULL ? qsf_calibration_importance(p->scores, layer) : 0.0f, err);
        if (rc == QSF_OK && stays_whole(p, layer)) qsf_write_uncompressed(&p->w);
        for (uint32_t run; rc == QSF_OK && k < l->n && l->item[k].layer == layer; k += run) {
            run = qsf_items_run(l, k);
            rc = l->item[k].experts > 0 ? put_experts(p, k, run, err) : put_item(p, &l->item[k], err);
        }
    }
    if (rc == QSF_OK) rc = qsf_write_final(&p->w, p->norm, p->bias, l->tied, p->exact_norm, err);
    for (; rc == QSF_OK && k < l->n; k++) rc = put_item(p, &l->item[k], err);
    return rc;
}

static int open_writer(Packer *p, bool dry, QsfErr *err) {
    QsfWriteSpec spec = { .meta = p->s,
                          .extra = p->n_extra > 0 ? &p->extra : NULL,
                          .n_extra = p->n_extra,
                          .instead = p->n_extra > 0 ? QSF_CAL_PREFIX : NULL,
                          .head = p->head,
                          .dry = dry,
                          .named = &p->l->named,
                          .codec = compresses_any(p) ? p->o->codec : QSFF_STORED };
    for (uint32_t k = 0; k < p->l->n && spec.codec != QSFF_STORED; k++)
        spec.n_layer_tensors += p->l->item[k].layer != QSF_FINAL_LAYER;
    return qsf_write_open(&p->w, p->path, &spec, err);
}

/* Computes the file size for the current items. */
static int size_of(void *arg, uint64_t *bytes, QsfErr *err) {
    Packer *p = arg;
    QsfPackOptions dry = *p->o;
    const QsfPackOptions *real = p->o;
    dry.dry = true;
    p->o = &dry;
    int rc = open_writer(p, true, err);
    if (rc == QSF_OK) rc = put_all(p, err);
    *bytes = p->w.pos;
    qsf_write_discard(&p->w);
    p->o = real;
    return rc;
}

/* ---- preparation */

/* Reads a norm of the whole model as floats; *out is NULL if there is none. */
static int read_norm(Packer *p, const char *name, float **out, QsfErr *err) {
    const QsfTensor *t = qsf_source_find_tensor(p->s, name);
    if (t == NULL) return QSF_OK;
    if (t->ne[0] != p->head.hidden || qsf_tensor_n_rows(t) != 1)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' has %llu x %llu elements, expected %u",
                           qsf_source_path(p->s), name, (unsigned long long)t->ne[0],
                           (unsigned long long)qsf_tensor_n_rows(t), p->head.hidden);
    *out = malloc((size_t)p->head.hidden * sizeof **out);
    if (*out == NULL) return qsf_err_memory(err, "%s", qsf_source_path(p->s));
    p->exact_norm |= t->dtype != 1;
    return qsf_source_read_rows(p->s, t, 0, 1, *out, err);
}

static int choose(Packer *p, QsfErr *err) {
    const QsfPackOptions *o = p->o;
    if (o->target > 0) return qsf_choose_for_size(p->l, &o->type, o->target, size_of, p, &p->e, err);
    return qsf_choose(p->l, &o->type, &p->e, err);
}

static int take_scores(Packer *p, QsfErr *err) {
    const QsfCalibration *c = p->o->calibration;
    bool present;
    if (c == NULL) {
        int rc = qsf_calibration_read(&p->old, p->s, p->head.n_layers, &present, err);
        p->scores = rc == QSF_OK && present ? &p->old : NULL;
        return rc;
    }
    p->scores = c;
    qsf_calibration_put(c, &p->extra, &p->n_extra);
    if (!qsf_strbuf_ok(&p->extra)) return qsf_err_memory(err, "%s", p->path);
    if (c->n_layers == p->l->n_layers) {
        if (c->n_tensors == 0) return QSF_OK; /* scores only */
        if (c->n_tensors == qsf_source_n_tensors(p->s)) return qsf_calibration_weigh(c, p->l, p->s, err);
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s: calibration of %llu tensors",
                           qsf_source_path(p->s), (unsigned long long)c->n_tensors);
    }
    return qsf_err_set(err, QSF_E_RUNTIME, "internal: %s: calibration with %u layers", qsf_source_path(p->s),
                       c->n_layers);
}

static int prepare(Packer *p, QsfErr *err) {
    int rc = qsf_fields_of_source(&p->head, p->s, err);
    if (rc == QSF_OK) rc = qsf_items_list(p->l, p->s, &p->head, p->o->uses, !p->o->stacked, err);
    p->head.arch = p->l->arch;
    if (rc == QSF_OK) rc = qsf_items_lay_out(p->l, p->o->x16, p->head.block, err);
    if (rc == QSF_OK) rc = take_scores(p, err);
    if (rc == QSF_OK && p->l->named.norms > 0) rc = read_norm(p, "output_norm.weight", &p->norm, err);
    if (rc == QSF_OK && p->l->norm_bias) rc = read_norm(p, "output_norm.bias", &p->bias, err);
    p->piece = rc == QSF_OK ? malloc(PIECE_BYTES) : NULL;
    if (rc == QSF_OK && p->piece == NULL) rc = qsf_err_memory(err, "%s", p->path);
    if (rc == QSF_OK) rc = qsf_pool_create(&p->pool, p->o->threads, &p->ledger, err);
    if (rc == QSF_OK) qsf_encoder_init(&p->e, p->s, p->pool, p->o->cancel, p->o->type.rule);
    if (rc == QSF_OK) p->e.block = p->o->block;
    if (rc == QSF_OK) rc = choose(p, err);
    if (rc != QSF_OK || p->o->by_use == NULL) return rc;
    return qsf_items_by_use(p->l, p->o->by_use, qsf_source_path(p->s), err);
}

static void count_compressed(const Packer *p, QsfPackReport *r) {
    for (uint32_t i = 0; i < p->w.n_layers; i++) {
        const QsfIndexEntry *e = &p->w.index[i];
        if (e->compression == QSFF_STORED) continue;
        r->n_compressed++;
        r->whole_bytes += e->whole_bytes;
        r->compressed_bytes += e->bytes;
    }
}

static int write_all(Packer *p, QsfPackReport *report, QsfErr *err) {
    int rc = open_writer(p, p->o->dry, err);
    for (uint32_t k = 0; k < p->l->n; k++) p->all += p->l->item[k].bytes;
    if (rc == QSF_OK) rc = put_all(p, err);
    if (rc == QSF_OK && !p->o->dry) {
        uint64_t bytes = p->w.pos;
        count_compressed(p, report);
        rc = qsf_write_finish(&p->w, err);
        p->w.pos = bytes;
    }
    return rc;
}

int qsf_pack(const QsfSource *s, const char *path, const QsfPackOptions *o, QsfPackReport *report,
             QsfErr *err) {
    QsfErr local = { 0 };
    QsfPackReport own = { 0 };
    if (report == NULL) report = &own;
    if (err == NULL) err = &local;
    *report = (QsfPackReport){ 0 };
    Packer p = {
        .s = s, .o = o, .path = path, .l = &report->items, .head = { .flags = o->flags, .block = o->block }
    };
    qsf_ledger_init(&p.ledger, 0);
    int rc = prepare(&p, err);
    if (rc == QSF_OK) rc = write_all(&p, report, err);
    report->bytes = p.w.pos;
    qsf_write_discard(&p.w);
    qsf_encoder_free(&p.e);
    qsf_pool_destroy(p.pool);
    qsf_ledger_destroy(&p.ledger);
    qsf_calibration_free(&p.old);
    qsf_strbuf_free(&p.extra);
    free(p.piece);
    free(p.norm);
    free(p.bias);
    qsf_pack_report_free(&own);
    return rc;
}

void qsf_pack_report_free(QsfPackReport *r) { qsf_items_free(&r->items); }
