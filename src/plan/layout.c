/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffer sizes from hyperparameters. */
#include "src/plan/layout.h"

#include <string.h>

#include "src/format/qsf_codec.h"
#include "src/format/qsf_layout.h"
#include "src/plan/units.h"

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

bool qsf_role_is_matrix(QsfRole r) {
    static const bool matrix[QSF_ROLE_N] = {
        [QSF_ROLE_Q] = true,    [QSF_ROLE_K] = true,     [QSF_ROLE_V] = true,
        [QSF_ROLE_O] = true,    [QSF_ROLE_GATE] = true,  [QSF_ROLE_UP] = true,
        [QSF_ROLE_DOWN] = true, [QSF_ROLE_EMBED] = true, [QSF_ROLE_HEAD] = true,
    };
    return matrix[r];
}

static uint64_t param_floats(const QsfModel *m) {
    uint64_t sum = qsf_pad16(m->hp.n_rot); /* the rotation frequencies, n_rot / 2 doubles */
    for (unsigned r = 0; r < QSF_ROLE_N; r++) {
        if (qsf_role_is_matrix((QsfRole)r)) continue;
        uint32_t n = r < QSF_ROLE_LAYER_N ? m->hp.n_layers : 1;
        for (uint32_t l = 0; l < n; l++) {
            const QsfTensor *t = qsf_model_tensor(m, (QsfRole)r, l);
            if (t != NULL) sum += qsf_pad16((uint32_t)(t->ne[0] * t->ne[1]));
        }
    }
    return sum;
}

void qsf_shape_make(QsfShape *s, const QsfModel *m, const qk_table *t) {
    memset(s, 0, sizeof *s);
    s->n_units = qsf_unit_count(m);
    for (uint32_t i = 0; i < s->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        uint64_t whole = qsf_unit_pinned_bytes(&u, u.items);
        s->weight_bytes += u.bytes;
        s->pinned_units_bytes += whole;
        s->max_slot = max_u64(s->max_slot, max_u64(whole, qsf_pages(qsf_unit_min_slot(&u))));
        s->min_slot = max_u64(s->min_slot, qsf_pages(qsf_unit_min_slot(&u)));
        s->group_bytes = max_u64(s->group_bytes, qsf_pages(qsf_unit_group_bytes(&u, t)));
        if (u.compressed != NULL) {
            s->stage_bytes = max_u64(s->stage_bytes, qsf_compressed_windows(u.compressed));
            if (u.compressed->how == QSFF_ZSTD) s->unpack_bytes = QSF_ZSTD_READER_BYTES;
        }
        if (u.k > s->max_k) s->max_k = u.k;
        for (unsigned j = 0; j < u.n; j++) {
            qk_act act = t->weight[u.type[j]].act;
            if (act != QK_ACT_F32) s->act_stride[act] = max_u64(s->act_stride[act], qk_act_bytes(act, u.k));
        }
    }
    const QsfTensor *e = qsf_model_tensor(m, QSF_ROLE_EMBED, 0);
    s->embed_bytes = e->bytes;
    s->embed_row_bytes = e->bytes / e->ne[1];
    s->param_floats = param_floats(m);
}

uint32_t qsf_stages(const QsfShape *s, uint32_t n_slots) {
    return s->stage_bytes == 0 ? 0 : n_slots > 1 ? 2 : 1;
}

uint64_t qsf_staging_bytes(const QsfShape *s, uint32_t n_slots) {
    return qsf_stages(s, n_slots) * s->stage_bytes + s->unpack_bytes;
}

/* Appends a buffer of bytes and returns its offset. */
static uint64_t place(QsfLayout *l, uint64_t bytes) {
    uint64_t at = l->total;
    l->total += (bytes + 63) & ~(uint64_t)63;
    return at;
}

void qsf_layout_make(QsfLayout *l, const QsfModel *m, const QsfShape *s, uint32_t n_cols, uint32_t ctx,
                     int threads, bool exact) {
    const QsfHparams *hp = &m->hp;
    memset(l, 0, sizeof *l);
    l->n_cols = n_cols;
    l->x_stride = qsf_pad16(hp->hidden);
    l->q_stride = qsf_pad16(hp->n_heads * hp->head_dim);
    l->kv_stride = qsf_pad16(hp->n_kv_heads * hp->head_dim);
    l->ffn_stride = qsf_pad16(hp->ffn);
    l->attn_stride = (qk_attn_scratch(hp->head_dim) + 63) & ~(uint64_t)63;
    uint64_t spans = ctx > QK_KV_SPAN ? qk_kv_spans(ctx) : 0;
    l->work_floats = n_cols *
                     max_u64((uint64_t)l->q_stride + 2 * (uint64_t)l->kv_stride, 2 * (uint64_t)l->ffn_stride);
    l->x = place(l, 4ull * n_cols * l->x_stride);
    l->xn = place(l, 4ull * n_cols * l->x_stride);
    l->work = place(l, 4ull * l->work_floats);
    for (unsigned a = 0; a < QK_ACT_N; a++) {
        l->act_stride[a] = exact ? 0 : s->act_stride[a];
        l->act[a] = place(l, n_cols * l->act_stride[a]);
    }
    l->cs = place(l, 4ull * n_cols * hp->n_rot);
    l->attn = place(l, (uint64_t)threads * l->attn_stride);
    l->parts = place(l, 4u * spans * hp->n_heads * qk_attn_part(hp->head_dim));
    l->exact_stride = exact ? qsf_pad16(s->max_k) : 0;
    l->exact = place(l, 4u * (uint64_t)threads * l->exact_stride);
    l->row = place(l, s->embed_row_bytes);
    l->total = qsf_pages(l->total);
}

uint64_t qsf_kv_bytes(const QsfHparams *hp, const qk_kv_ops *ops, uint32_t ctx) {
    uint64_t per_head = (uint64_t)qk_kv_tiles(ctx) * ops->tile_bytes(hp->head_dim);
    return qsf_pages(2ull * hp->n_layers * hp->n_kv_heads * per_head);
}

uint64_t qsf_rowcache_bytes(uint32_t rows, uint64_t row_bytes) {
    uint64_t index = 1;
    if (rows == 0) return 0;
    while (index < 2ull * rows) index *= 2;
    return qsf_pages(rows * (((row_bytes + 63) & ~63ull) + QSF_ROWCACHE_ENTRY) + 4 * index);
}
