/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The first positions of a sliding cache that has become longer than what the model was trained for. Keys are stored
 * rotated by their positions, and the distance between a query and the first keys grows without limit, to rotations that the
 * model never saw. As in StreamingLLM (Xiao et al. 2023) the protected keys are turned on, so that they are seen right before
 * the window. Only differences of positions matter, so rotating a key by the angles of d positions moves it by d. */
#include <math.h>

#include "src/forward/state.h"

/* The elements of a KV head's key that a rotation turns. */
typedef struct Turn {
    const QsfRopeTable *table;
    uint32_t off; /* in the head */
} Turn;

static bool overlaps(QsfSlice a, QsfSlice b) {
    return a.buf == b.buf && a.off < b.off + b.width && b.off < a.off + a.width;
}

/* Finds the rotation of head h of what `store` stores; false if there is none, or another step changes the key after it. */
static bool find_turn(const QsfProgram *p, const QsfStep *store, uint32_t h, uint32_t dim, Turn *out) {
    const uint32_t head = store->in.off + h * dim;
    for (const QsfStep *s = store; s-- > p->step && s->block == store->block;) {
        bool writes = false;
        for (unsigned o = 0; o < QSF_UNIT_TENSORS; o++)
            writes = writes || (s->out[o].buf != QSF_NONE && overlaps(s->out[o], store->in));
        if (!writes) continue;
        if (s->op != QSF_OP_ROPE) return false;
        for (uint32_t i = 0; i < s->u.rope.heads; i++) {
            const uint32_t at = s->out[0].off + i * s->u.rope.stride + s->u.rope.off;
            if (at < head || at >= head + dim) continue;
            *out = (Turn){ .table = &p->rope[s->u.rope.table], .off = at - head };
            return out->off + out->table->n_rot <= dim;
        }
        if (s->out[0].buf == store->in.buf && s->out[0].off == store->in.off) return false;
    }
    return false;
}

/* cs (n_rot / 2 pairs): the angles of d positions. */
static void angles(const QsfForward *f, const QsfRopeTable *t, uint32_t d, float *cs) {
    const double *freq = t->freq_long != NULL && f->rope_ctx > t->original_ctx ? t->freq_long : t->freq;
    for (uint32_t i = 0; i < t->n_rot / 2; i++) {
        const double a = (double)d * freq[i];
        cs[2 * i] = (float)cos(a);
        cs[2 * i + 1] = (float)sin(a);
    }
}

static void turn_head(QsfForward *f, uint32_t cache, uint32_t h, const Turn *turn, uint32_t tiles,
                      uint32_t to) {
    const QsfKvLists *l = &f->kv.lists;
    const qk_kv_ops *ops = qsf_kvcache_ops(&f->kv, cache, 0);
    const uint32_t dim = f->kv.spec[cache].dim;
    float row[QSF_MAX_HEAD_DIM], cs[QSF_MAX_HEAD_DIM];
    qk_rope r = { .x = row + turn->off, .cs = cs, .n_rot = turn->table->n_rot, .n_heads = 1, .n_pos = 1 };
    uint8_t *k = qsf_kvcache_tile(&f->kv, cache, 0, h, 0);
    uint32_t made_for = 0;
    for (uint32_t e = 0; e < tiles; e++) {
        const qk_kv_slot *s = &qsf_kvlist(l, cache)[e];
        const uint32_t d = to - (s->tile < l->moved_tiles ? l->moved_by : 0);
        if (d == 0) continue;
        if (d != made_for) angles(f, turn->table, d, cs);
        made_for = d;
        for (uint32_t i = 0; i < QK_KV_TILE; i++) {
            const size_t place = (size_t)s->slot * QK_KV_TILE + i;
            ops->load(row, k, 0, place, dim);
            if (turn->table->kind == QSF_ROPE_PAIRS)
                f->table->rope_pairs_batch(&r);
            else
                f->table->rope_halves_batch(&r);
            ops->store(k, 0, place, row, dim);
        }
    }
}

void qsf_sinks_move(QsfForward *f, uint32_t n) {
    QsfKvLists *l = &f->kv.lists;
    const QsfProgram *p = &f->model->prog;
    const uint32_t tiles = (uint32_t)qk_kv_tiles(f->evict.protect), trained = f->model->hp.n_ctx_train;
    uint32_t to = 0;
    if (f->evict.kind != QSF_EVICT_SLIDING || !l->on || tiles == 0 || trained == 0) return;
    for (uint32_t i = 0; i < l->n_caches; i++) {
        if (qsf_kvcache_ring(&f->kv, i) > 0 || l->n[i] <= tiles) continue;
        to = (qsf_kvlist(l, i)[tiles].tile - tiles) * QK_KV_TILE;
        break;
    }
    if (to <= l->moved_by || (uint64_t)f->kv.n_past + n <= (uint64_t)trained + l->moved_by) return;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const QsfStep *store = &p->step[s];
        Turn turn;
        if (store->op != QSF_OP_KV_STORE || qsf_kvcache_ring(&f->kv, store->u.kv) > 0) continue;
        const QsfKvSpec *kv = &f->kv.spec[store->u.kv];
        for (uint32_t h = 0; h < kv->heads; h++)
            if (find_turn(p, store, h, kv->dim, &turn)) turn_head(f, store->u.kv, h, &turn, tiles, to);
    }
    l->moved_by = to;
    l->moved_tiles = tiles;
}
