/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gaps between positions that an eviction policy kept, when the cache has become longer than what the model was trained for.
 * Keys are stored rotated by their positions, and the distance between a query and the first of them grows without limit, to
 * rotations that the model never saw. As in StreamingLLM (Xiao et al. 2023) the keys are then turned on, so that all that
 * is kept is seen without gaps before the newest tile. Only differences of positions matter: a key that is rotated by the
 * angles of d positions has moved by d. */
#include <math.h>

#include "src/forward/forward_impl.h"

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

/* How far entry e of a list has to be for all that is kept to be without gaps, in tiles. */
static uint32_t tiles_on(const QsfKvLists *l, uint32_t cache, uint32_t e) {
    const qk_kv_slot *list = qsf_kvlist(l, cache);
    const uint32_t n = l->n[cache];
    return list[n - 1].tile - (n - 1 - e) - list[e].tile;
}

/* The tile in this slot after k. */
static void turn_tile(const QsfForward *f, uint32_t cache, const qk_kv_ops *ops, uint8_t *k, uint32_t slot,
                      const Turn *turn, const float *cs) {
    const uint32_t dim = f->kv.spec[cache].dim;
    float row[QSF_MAX_HEAD_DIM];
    const qk_rope r = {
        .x = row + turn->off, .cs = cs, .n_rot = turn->table->n_rot, .n_heads = 1, .n_pos = 1
    };
    for (uint32_t i = 0; i < QK_KV_TILE; i++) {
        const size_t place = (size_t)slot * QK_KV_TILE + i;
        ops->load(row, k, 0, place, dim);
        if (turn->table->kind == QSF_ROPE_PAIRS)
            f->table->rope_pairs_batch(&r);
        else
            f->table->rope_halves_batch(&r);
        ops->store(k, 0, place, row, dim);
    }
}

static void turn_head(const QsfForward *f, uint32_t cache, uint32_t h, const Turn *turn) {
    const QsfKvLists *l = &f->kv.lists;
    uint8_t *k = qsf_kvcache_tile(&f->kv, cache, 0, h, 0);
    float cs[QSF_MAX_HEAD_DIM];
    uint32_t made_for = 0;
    for (uint32_t e = 0; e < l->n[cache]; e++) {
        const uint32_t slot = qsf_kvlist(l, cache)[e].slot;
        const uint32_t d = tiles_on(l, cache, e) - qsf_kvlist_moved(l, cache)[slot];
        if (d == 0) continue;
        if (d != made_for) angles(f, turn->table, d * QK_KV_TILE, cs);
        made_for = d;
        turn_tile(f, cache, qsf_kvcache_ops(&f->kv, cache, 0), k, slot, turn, cs);
        uint8_t *recent = qsf_kvrecent_held(&f->kv, cache, 0, h, qsf_kvlist(l, cache)[e].tile, f->kv.n_past,
                                            qsf_recurrent_old_recent(&f->recurrent));
        const qk_kv type = qsf_kv_recent_type(&f->kv.spec[cache], f->kv.types, 0);
        if (recent != NULL) turn_tile(f, cache, &f->table->kv[type], recent, 0, turn, cs);
    }
}

/* Would the oldest position be farther from the n-th next one than the model was trained for? */
static bool too_far(const QsfForward *f, uint32_t cache, uint32_t n) {
    const QsfKvLists *l = &f->kv.lists;
    if (qsf_kvcache_ring(&f->kv, cache) > 0 || l->n[cache] == 0) return false;
    const qk_kv_slot *first = qsf_kvlist(l, cache);
    const uint64_t seen_at = ((uint64_t)first->tile + qsf_kvlist_moved(l, cache)[first->slot]) * QK_KV_TILE;
    return (uint64_t)f->kv.n_past + n > f->model->hp.n_ctx_train + seen_at;
}

void qsf_gaps_close(QsfForward *f, uint32_t n) {
    QsfKvLists *l = &f->kv.lists;
    const QsfProgram *p = &f->model->prog;
    if (!l->on || f->model->hp.n_ctx_train == 0) return;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const QsfStep *store = &p->step[s];
        const uint32_t cache = store->u.kv;
        Turn turn;
        if (store->op != QSF_OP_KV_STORE || !too_far(f, cache, n)) continue;
        const QsfKvSpec *kv = &f->kv.spec[cache];
        for (uint32_t h = 0; h < kv->heads; h++)
            if (find_turn(p, store, h, kv->dim, &turn)) turn_head(f, cache, h, &turn);
        if (f->kv.recent.on[cache])
            qsf_recurrent_forget(&f->recurrent, 0); /* their keys are where they were */
        for (uint32_t e = 0; e < l->n[cache]; e++)
            qsf_kvlist_moved(l, cache)[qsf_kvlist(l, cache)[e].slot] = tiles_on(l, cache, e);
    }
}
