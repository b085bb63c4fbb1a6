/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffer sizes from a program. */
#include "src/plan/layout.h"

#include <string.h>

#include "src/file/qsf/codec.h"
#include "src/file/qsf/layout.h"
#include "src/plan/expert_span.h"
#include "src/plan/sketch.h"
#include "src/plan/units.h"

#define CHECKPOINT_SHARE 16u /* checkpoints use at most this part of the budget */
#define RECENT_SHARE     6u  /* and those of recent positions alone this part of the caches */
#define RECENT_LEAST     2u  /* checkpoints at any size: of the start and the end of the last prompt */

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* first: the unit before. */
static void count_expert(QsfShape *s, const QsfUnit *first, const QsfUnit *u) {
    QsfExpertSpan span;
    if (!u->on_demand) return;
    s->on_demand = true;
    s->expert_bytes += u->bytes;
    s->expert_active += qsf_unit_active_bytes(u);
    if (u->n_used > s->experts_used) s->experts_used = u->n_used;
    if (u->matmul_class != QSF_MATMUL_FFN_OUT) return;
    s->n_experts++;
    s->expert_blocks += u->expert == 0;
    qsf_expert_span(first, u, &span);
    s->expert_slot = max_u64(s->expert_slot, span.all.bytes);
}

void qsf_shape_make(QsfShape *s, const QsfModel *m, const qk_table *t) {
    memset(s, 0, sizeof *s);
    s->n_units = qsf_unit_count(m);
    QsfUnit u = { 0 };
    for (uint32_t i = 0; i < s->n_units; i++) {
        const QsfUnit before = u;
        qsf_unit_at(m, i, &u);
        const uint64_t whole = qsf_unit_pinned_bytes(&u, u.items);
        s->weight_bytes += u.bytes;
        count_expert(s, &before, &u);
        s->active_bytes += qsf_unit_active_bytes(&u);
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
            const uint64_t inputs = u.heads > 0 ? u.heads : 1;
            if (act != QK_ACT_F32)
                s->act_stride[act] = max_u64(s->act_stride[act], inputs * qk_act_bytes(act, u.k));
        }
    }
    QsfSketchShape sketch;
    const qk_act act = t->weight[QSF_SKETCH_TYPE].act;
    if (qsf_sketch_shape(m, 1, &sketch))
        s->act_stride[act] = max_u64(s->act_stride[act], qk_act_bytes(act, sketch.k));
    const QsfTensor *e = m->prog.embed;
    s->embed_bytes = e->bytes;
    s->embed_row_bytes = s->row_bytes = e->bytes / e->ne[1];
    const QsfTensor *const tables[] = { m->prog.token_table, m->prog.position_table };
    for (unsigned i = 0; i < 2; i++)
        if (tables[i] != NULL) s->row_bytes = max_u64(s->row_bytes, tables[i]->bytes / tables[i]->ne[1]);
    s->param_floats = m->prog.param_floats + m->prog.ones;
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

/* Sizes that attention needs: the maximum over all its steps. */
static void attention_sizes(const QsfProgram *p, uint64_t *scratch, uint64_t *parts) {
    *scratch = *parts = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->step[i].op != QSF_OP_ATTENTION) continue;
        const QsfAttentionStep *a = &p->step[i].u.attention;
        const uint32_t dim = p->kv[a->kv].dim;
        const bool v_is_k = p->kv[a->kv].v_is_k;
        *scratch = max_u64(*scratch, v_is_k ? qk_attn_scratch_v_is_k(dim) : qk_attn_scratch(dim));
        *parts = max_u64(*parts, (uint64_t)a->heads * qk_attn_part(dim));
    }
}

/* What an indexer writes of a column: a score for each position, or for each head and block. */
static uint64_t score_floats(const QsfIndexStep *x, uint32_t ctx) {
    const uint64_t n = x->block == 0 ? ctx : x->heads * (ctx / x->block + 1ull);
    return (n + 15) & ~(uint64_t)15;
}

/* Bytes of tiles of what attention reads of each KV head. */
static uint64_t gathered_bytes(const QsfStep *s, const QsfKvSpec *kv, QsfKvTypes types) {
    const uint32_t block = s->u.attention.block > 0 ? s->u.attention.block : 1;
    const uint64_t tiles = qk_kv_tiles((size_t)(s->in2.width / kv->heads) * block);
    return kv->heads * tiles *
           (qsf_kv_tile(kv, types, 0) + (kv->v_is_k ? 0 : (uint64_t)qsf_kv_tile(kv, types, 1)));
}

/* Sizes that sparse attention needs. */
static void place_sparse(QsfLayout *l, const QsfProgram *p, uint32_t ctx, QsfKvTypes types) {
    uint64_t gathered = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const QsfStep *s = &p->step[i];
        if (s->op == QSF_OP_INDEX) l->score_stride = max_u64(l->score_stride, score_floats(&s->u.index, ctx));
        if (s->op == QSF_OP_ATTENTION && s->in2.buf != QSF_NONE)
            gathered = max_u64(gathered, gathered_bytes(s, &p->kv[s->u.attention.kv], types));
    }
    l->scores = place(l, 4 * l->score_stride * (l->n_cols < QSF_INDEX_COLS ? l->n_cols : QSF_INDEX_COLS));
    l->gathered = place(l, gathered);
}

/* The most tiles of a head that a pass reads as recent ones: the first tile, two before that of the first
 * column, and those of the columns, of which the first and the last one may be cut. */
static uint32_t staged_tiles(uint32_t n_cols) { return 3 + (uint32_t)qk_kv_tiles(n_cols) + 1; }

/* Bytes of all tiles, K and V, that a pass over n_cols columns reads as recent ones, of the largest of n
 * caches. */
static uint64_t staged_bytes(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types, uint32_t n_cols) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = max_u64(most, qsf_kv_recent_bytes(&spec[i], types) / QSF_KV_RECENT_TILES);
    return most * staged_tiles(n_cols);
}

/* Room for the logits of the positions of a pass, and for what states are made of. */
static void place_drafts(QsfLayout *l, const QsfModel *m, uint32_t draft_cols) {
    const uint64_t logits = (uint64_t)draft_cols * qsf_pad16(m->hp.n_vocab);
    l->draft_cols = draft_cols;
    if (draft_cols > 1 && draft_cols * (m->prog.col_floats - m->prog.head_floats) < logits) {
        const uint64_t at = place(l,
                                  4 * logits); /* whatever n_cols is: more columns never take less memory */
        if (l->spare_floats < logits) {
            l->spare = at;
            l->spare_floats = logits;
        }
    }
    for (uint32_t i = 0; i < m->prog.n_steps; i++) {
        QsfStateInputs in;
        qsf_state_inputs(&m->prog, i, &in);
        l->kept_floats += in.floats;
    }
    l->kept = place(l, draft_cols > 1 ? 4 * (draft_cols - 1) * l->kept_floats : 0);
}

void qsf_layout_make(QsfLayout *l, const QsfModel *m, const QsfShape *s, uint32_t n_cols, uint32_t draft_cols,
                     uint32_t ctx, QsfKvTypes types, int threads, bool exact) {
    const QsfProgram *p = &m->prog;
    uint64_t scratch, parts, spans = ctx > QK_KV_SPAN ? qk_kv_spans(ctx) : 0;
    memset(l, 0, sizeof *l);
    attention_sizes(p, &scratch, &parts);
    l->n_cols = n_cols;
    l->cols = place(l, 4ull * n_cols * p->col_floats);
    l->spare = l->cols + 4ull * n_cols * p->head_floats;
    l->spare_floats = n_cols * (p->col_floats - p->head_floats);
    for (unsigned a = 0; a < QK_ACT_N; a++) {
        l->act_stride[a] = exact ? 0 : s->act_stride[a];
        l->act[a] = place(l, n_cols * l->act_stride[a]);
    }
    l->cs = place(l, 4ull * n_cols * p->rope_floats);
    l->attn_stride = (scratch + 63) & ~(uint64_t)63;
    l->attn = place(l, (uint64_t)threads * l->attn_stride);
    place_sparse(l, p, ctx, types);
    const uint64_t recent = staged_bytes(p->kv, p->n_kv, types, n_cols);
    l->recent = place(l, recent);
    l->parts = place(l, 4u * (spans > 0 && recent > 0 ? spans + 1 : spans) * parts);
    l->exact_stride = exact ? qsf_pad16(s->max_k) : 0;
    l->exact = place(l, 4u * (uint64_t)threads * l->exact_stride);
    l->chosen = place(l, s->on_demand ? 4ull * n_cols : 0);
    l->row = place(l, s->row_bytes);
    place_drafts(l, m, draft_cols);
    l->total = qsf_pages(l->total);
}

uint32_t qsf_kv_positions(const QsfKvSpec *spec, uint32_t ctx) {
    if (spec->window == 0) return ctx;
    const uint64_t ring = ((uint64_t)spec->window + QSF_KV_SLACK + QK_KV_BLOCK - 1) / QK_KV_BLOCK *
                          QK_KV_BLOCK;
    return ring < ctx ? (uint32_t)ring : ctx;
}

uint64_t qsf_kv_spec_bytes(const QsfKvSpec *spec, QsfKvTypes types, uint32_t ctx) {
    const uint64_t k = qsf_kv_tile(spec, types, 0), v = spec->v_is_k ? 0 : qsf_kv_tile(spec, types, 1);
    return spec->heads * (uint64_t)qk_kv_tiles(qsf_kv_positions(spec, ctx)) * (k + v);
}

uint64_t qsf_kv_bytes(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types, uint32_t ctx) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += qsf_kv_spec_bytes(&spec[i], types, ctx);
    return qsf_pages(sum);
}

void qsf_kv_list_layout(QsfKvListLayout *l, uint32_t n_caches, uint32_t ctx, uint32_t threads) {
    const uint64_t cap = qk_kv_tiles(ctx), all = cap * n_caches, mass = threads > 0 ? 8ull * QK_KV_TILE : 0;
    QsfLayout sizes = { 0 };
    l->mass = place(&sizes, mass * all);
    l->saved_mass = place(&sizes, mass * all * QSF_KV_WEIGHT_COPIES);
    l->worker_mass = place(&sizes, mass * cap * threads);
    l->entry = place(&sizes, all * sizeof(qk_kv_slot));
    l->spare = place(&sizes, all * sizeof(uint32_t));
    l->moved = place(&sizes, all * sizeof(uint32_t));
    l->drop = place(&sizes, cap);
    l->total = qsf_pages(sizes.total);
}

uint64_t qsf_kv_recent_bytes(const QsfKvSpec *spec, QsfKvTypes types) {
    if (!qsf_kv_has_recent(spec, types)) return 0;
    const uint64_t k = qsf_kv_recent_tile(spec, types, 0), v = qsf_kv_recent_tile(spec, types, 1);
    return spec->heads * QSF_KV_RECENT_TILES * (k + v);
}

uint64_t qsf_state_bytes(const QsfProgram *p, QsfKvTypes types) {
    uint64_t sum = 4 * p->state_floats;
    for (uint32_t i = 0; i < p->n_kv; i++) sum += qsf_kv_recent_bytes(&p->kv[i], types);
    return (sum + 63) & ~(uint64_t)63;
}

uint32_t qsf_checkpoint_count(const QsfProgram *p, QsfKvTypes types, uint32_t ctx, uint64_t budget) {
    const uint64_t bytes = qsf_state_bytes(p, types);
    if (bytes == 0) return 0;
    uint64_t most = QSF_CHECKPOINTS_MAX;
    if (p->state_floats == 0) {
        const uint64_t share = qsf_kv_bytes(p->kv, p->n_kv, types, ctx) / RECENT_SHARE / bytes;
        most = share < RECENT_LEAST ? RECENT_LEAST : share < most ? share : most;
    }
    const uint64_t n = budget / CHECKPOINT_SHARE / bytes;
    return (uint32_t)(n < most ? n : most);
}

uint64_t qsf_recurrent_bytes(const QsfProgram *p, QsfKvTypes types, uint32_t n_checkpoints) {
    return qsf_pages((2 + (uint64_t)n_checkpoints) * qsf_state_bytes(p, types));
}

uint64_t qsf_rowcache_bytes(uint32_t rows, uint64_t row_bytes) {
    uint64_t index = 1;
    if (rows == 0) return 0;
    while (index < 2ull * rows) index *= 2;
    return qsf_pages(rows * (((row_bytes + 63) & ~63ull) + QSF_ROWCACHE_ENTRY) + 4 * index);
}
