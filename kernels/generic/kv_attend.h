/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention of a set of queries over the cached positions of one KV head, for any vector of
 * v_<isa>.h: block after block with a running maximum, span after span merged. No result depends
 * on which queries are together. */
#ifndef QSF_KERNELS_GENERIC_KV_ATTEND_H
#define QSF_KERNELS_GENERIC_KV_ATTEND_H

/* Queries as K's type wants them. As floats groups are stored one after the other; within a group the queries
 * are adjacent for each dimension. */
static void kv_pack(const kv_work *w) {
    const qk_attn *a = w->a;
    float turned[QK_KV_MAX_DIM];
    for (size_t i = 0; i < w->n;) {
        const size_t nq = (size_t)kv_group(w, i);
        for (size_t r = 0; r < nq; r++) {
            const float *x = a->q + (i + r) / a->n_heads * a->q_stride + (i + r) % a->n_heads * w->dim;
            if (w->fk->rotated) {
                qk_kv_rotate(turned, x, w->dim, 1);
                x = turned;
            }
            if (w->fk->scores)
                kv_pack_ints(w, i, r, nq, turned);
            else
                for (size_t d = 0; d < w->dim; d++) w->q[i * w->dim + d * nq + r] = x[d];
        }
        i += nq;
    }
}

/* Whether scores are more than a scaled product. */
static int kv_adjusts(const qk_attn *a) { return a->softcap > 0.0f || a->slopes; }

/* Scales the scores of query i in the block at b, caps them, and adds the bias of their distance.
 * tanh(x) is 1 - 2 / (e^2x + 1). */
static void kv_adjust(const kv_work *w, size_t i, size_t b, float *s) {
    const qk_attn *a = w->a;
    const float slope = a->slopes ? a->slopes[i % a->n_heads] : 0.0f, cap = a->softcap;
    float bias[QK_KV_BLOCK];
    const float at = (float)(a->pos + i / a->n_heads);
    for (size_t j = 0; j < QK_KV_BLOCK; j++)
        bias[j] = b + j < w->end[i] ? slope * ((float)qk_kv_position(a, b + j) - at) : 0.0f;
    for (size_t j = 0; j < QK_KV_BLOCK; j += V) {
        vf x = v_mul(v_load(s + j), v_set(a->scale));
        if (cap > 0.0f) {
            const vf two_x = v_mul(x, v_set(2.0f * V_LOG2E / cap));
            const vf e = v_exp2(v_min(two_x, v_set(60.0f)));
            const vf t = v_sub(v_set(1.0f), v_div(v_set(2.0f), v_add(e, v_set(1.0f))));
            x = v_mul(v_set(cap), t);
        }
        v_store(s + j, v_add(x, v_load(bias + j)));
    }
}

/* Weights may be as large as 2^8 before the maximum follows: it does so once or twice in a span, not at every
 * position that beats it by a little, so that weights need not wait for the maximum. */
#define KV_SLACK 8.0f

static void kv_rescale(float *acc, size_t n, float by) {
    for (size_t i = 0; i < n; i += V) v_store(acc + i, v_mul(v_load(acc + i), v_set(by)));
}

/* What a query has added up so far, relative to the new maximum m. */
static void kv_raise(const kv_work *w, float *lanes, float *part, float m) {
    const float by = v_exp2_one(part[0] - m);
    const int first = part[0] == -INFINITY; /* nothing there */
    part[0] = m;
    if (first) return;
    kv_rescale(lanes, 16, by);
    kv_rescale(part + 16, w->pad, by);
}

/* -inf at the positions of the block at b that a query does not see: they weigh nothing. */
static void kv_hide(const kv_work *w, size_t b, float *s, kv_range r) {
    for (size_t j = 0; j < r.lo; j++) s[j] = -INFINITY;
    for (size_t j = r.hi; j < QK_KV_BLOCK; j++) s[j] = -INFINITY;
    if (!w->a->list) return;
    const uint64_t kept = kv_kept(w, b);
    for (size_t j = r.lo; j < r.hi; j++)
        if (!(kept >> j & 1)) s[j] = -INFINITY;
}

/* Products of query i with a block become its scores, of what it sees. */
QK_INLINE void kv_finish_scores(const kv_work *w, size_t i, size_t b, kv_range r, const float *scale) {
    float *s = w->s + i * QK_KV_BLOCK;
    for (int j = 0; scale && j < QK_KV_BLOCK / V; j++)
        v_store(s + j * V, v_mul(v_load(s + j * V), v_load(scale + j * V)));
    if (kv_adjusts(w->a)) kv_adjust(w, i, b, s);
    if (r.lo > 0 || r.hi < QK_KV_BLOCK || w->a->list) kv_hide(w, b, s, r);
}

enum { KV_VECTORS = QK_KV_BLOCK / V };

/* Scores of query i become weights, times scale_v if that is not NULL; its maximum, sums and what it has
 * added up so far follow the new maximum. All in base 2: c is scale * log2 e, the maximum is one of c * s. */
QK_INLINE void kv_weigh(const kv_work *w, size_t i, size_t b, kv_range r, float c, const float *scale,
                        const float *scale_v) {
    const int all = r.lo == 0 && r.hi == QK_KV_BLOCK && !w->a->list;
    vf x[KV_VECTORS];
    float *s = w->s + i * QK_KV_BLOCK, *lanes = w->lanes + i * 16, *part = w->part + i * w->stride;
    vf best = v_set(-INFINITY);
    if (kv_adjusts(w->a) || !all) {
        kv_finish_scores(w, i, b, r, scale);
        scale = NULL;
    }
    for (int j = 0; j < KV_VECTORS; j++) {
        x[j] = scale ? v_mul(v_load(s + j * V), v_load(scale + j * V)) : v_load(s + j * V);
        best = v_max(x[j], best); /* in this order a NaN leaves best as it is */
    }
    if (v_above(v_mul(best, v_set(c)), v_set(part[0] + KV_SLACK)))
        kv_raise(w, lanes, part, c * v_largest(best));
    const vf minus_m = v_set(-part[0]);
    for (int j = 0; j < KV_VECTORS; j++) x[j] = v_exp2(v_fma(x[j], v_set(c), minus_m));
    for (int j = 0; j < 16; j += V) {
        vf sum = v_load(lanes + j);
        for (int k = j / V; k < KV_VECTORS; k += 16 / V) sum = v_add(sum, x[k]);
        v_store(lanes + j, sum);
    }
    for (int j = 0; j < KV_VECTORS; j++) {
        /* The scale of what is not seen, which weighs 0, may be anything, also a NaN. */
        if (scale_v)
            x[j] = v_mul(x[j], all ? v_load(scale_v + j * V) : v_where(x[j], v_load(scale_v + j * V)));
        v_store(s + j * V, x[j]);
    }
}

/* Products of the nq queries that start at i with K that lies at k. */
static void kv_score_group(const kv_work *w, const kv_view *x, const kv_tiles *k, size_t i, int nq) {
    if (w->fk->scores) {
        w->fk->scores(w, i, k, x->tiles, nq);
        return;
    }
    const kv_score_fn score = x->open_k ? kv_score_4 : w->fk->score;
    score(w->s + i * QK_KV_BLOCK, w->q + i * w->dim, *k, w->dim, x->tiles * QK_KV_TILE, nq);
}

/* Scores and weights of the group that starts at i, of K that lies at k. The weights are multiplied with the
 * scales of V if these are not NULL. */
static void kv_weigh_group(const kv_work *w, const kv_view *x, kv_tiles k, size_t i, size_t b,
                           const float *scale_v) {
    const float c = (kv_adjusts(w->a) ? 1.0f : w->a->scale) * V_LOG2E,
                *scale = w->fk->open_scale ? w->scale : NULL;
    const size_t nq = (size_t)kv_group(w, i);
    kv_score_group(w, x, &k, i, (int)nq);
    for (size_t q = i; q < i + nq; q++) {
        const kv_range r = x->all ? kv_all : kv_range_of(w, q, b);
        if (r.lo < r.hi)
            kv_weigh(w, q, b, r, c, scale, scale_v);
        else if (scale_v)
            memset(w->s + q * QK_KV_BLOCK, 0, QK_KV_BLOCK * sizeof *w->s);
    }
}

/* Weighted rows of the group that starts at i, of n dimensions of V that lie at v; acc: the
 * sums of the first query. */
static void kv_mix_group(const kv_work *w, const kv_view *x, kv_mix_fn mix, float *acc, kv_tiles v, size_t n,
                         size_t i, size_t b) {
    const int nq = kv_group(w, i);
    const float *s = w->s + i * QK_KV_BLOCK;
    kv_range r[KV_GROUP] = { kv_all };
    if (x->all) {
        mix(acc, w->stride, s, v, n, kv_all, nq);
        return;
    }
    for (int q = 0; q < nq; q++) r[q] = kv_range_of(w, i + (size_t)q, b);
    kv_mix_ranges(acc, w->stride, s, v, n, r, nq, mix);
}

/* Weighted rows of all queries, dimensions [from, from + n) of V that lie at v. */
static void kv_mix_all(const kv_work *w, const kv_view *x, kv_mix_fn mix, kv_tiles v, size_t from, size_t n,
                       size_t b) {
    for (size_t i = 0; i < w->n; i += (size_t)kv_group(w, i))
        kv_mix_group(w, x, mix, w->part + i * w->stride + 16 + from, v, n, i, b);
}

/* The same where V is K, which lies at k: some dimensions at a time, which the first cache
 * holds for all queries. */
static void kv_mix_k(const kv_work *w, const kv_view *x, const kv_tiles *k, size_t b) {
    for (size_t from = 0; from < w->pad; from += QK_KV_PANEL) {
        const size_t n = w->pad - from < QK_KV_PANEL ? w->pad - from : QK_KV_PANEL;
        kv_mix_all(w, x, kv_mix_4, kv_turn(w, x, k, from, n), from, n, b);
    }
}

/* The same with integers. */
static void kv_mix_group_ints(const kv_work *w, const kv_view *x, size_t i) {
    const int nq = kv_group(w, i);
    kv_weights ints;
    kv_weights_to_ints(&ints, w->s + i * QK_KV_BLOCK, (size_t)nq);
    const qk_kv_rows rows = {
        x->v.at,  i == 0 ? x->v.ahead : NULL,   x->tiles, w->dim, ints.high[0], ints.low[0], ints.scale,
        ints.sum, w->part + i * w->stride + 16, w->stride
    };
    w->fv->rows(&rows, nq);
}

/* Weights times the scales of V. */
static void kv_scale_weights(const kv_work *w) {
    for (size_t i = 0; i < w->n * QK_KV_BLOCK; i += V)
        v_store(w->s + i, v_mul(v_load(w->s + i), v_load(w->scale_v + i % QK_KV_BLOCK)));
}

/* The positions starting at b. */
static void kv_block(const kv_work *w, size_t b, size_t tiles) {
    const kv_view x = kv_view_at(w, b, tiles);
    const kv_tiles k = x.open_k ? kv_open_k(w, &x) : x.k;
    const int with_ints = w->fv->rows && w->a->v;
    if (w->fk->open_scale) kv_open_scale(w, w->fk, w->scale, &x.k, tiles);
    if (w->fv->open_scale) kv_open_scale(w, w->fv, w->scale_v, &x.v, tiles);
    for (size_t i = 0; i < w->n; i += (size_t)kv_group(w, i)) {
        kv_weigh_group(w, &x, k, i, b, with_ints ? w->scale_v : NULL);
        if (with_ints) kv_mix_group_ints(w, &x, i);
    }
    if (with_ints) return;
    if (w->fv->open_scale) kv_scale_weights(w);
    if (!w->a->v)
        kv_mix_k(w, &x, &k, b);
    else if (x.open_v)
        kv_mix_all(w, &x, kv_mix_4, kv_open_v(w, &x), 0, w->pad, b);
    else
        kv_mix_all(w, &x, w->fv->mix, x.v, 0, w->pad, b);
}

/* Sixteen lane sums, halves added to halves. */
static float kv_fold(const float *lanes) {
    float t[8];
    for (size_t i = 0; i < 8; i++) t[i] = lanes[i] + lanes[i + 8];
    for (size_t n = 4; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++) t[i] += t[i + n];
    return t[0];
}

/* The parts of all queries in one span; a sum of 0 means that a query sees nothing of it. */
static void kv_span(const kv_work *w, size_t span) {
    const size_t last = w->end[w->n - 1], first = w->start[0];
    size_t b = span * QK_KV_SPAN, end = b + QK_KV_SPAN < last ? b + QK_KV_SPAN : last;
    if (b < first) b = first / QK_KV_BLOCK * QK_KV_BLOCK;
    for (size_t i = 0; i < w->n; i++) {
        float *part = w->part + i * w->stride;
        memset(part, 0, (16 + w->pad) * sizeof *part);
        memset(w->lanes + i * 16, 0, 16 * sizeof *w->lanes);
        part[0] = -INFINITY;
    }
    for (; b < end; b += QK_KV_BLOCK)
        kv_block(w, b, qk_kv_tiles(end - b < QK_KV_BLOCK ? end - b : QK_KV_BLOCK));
    for (size_t i = 0; i < w->n; i++) w->part[i * w->stride + 1] = kv_fold(w->lanes + i * 16);
}

/* Adds a later part to an earlier one. */
static void kv_join(float *into, const float *part, size_t pad) {
    if (part[1] == 0.0f) return;
    if (into[1] == 0.0f) {
        memcpy(into, part, (16 + pad) * sizeof *into);
        return;
    }
    const float m = part[0] > into[0] ? part[0] : into[0];
    const float x = v_exp2_one(into[0] - m), y = v_exp2_one(part[0] - m);
    into[0] = m;
    into[1] = into[1] * x + part[1] * y;
    for (size_t i = 16; i < 16 + pad; i += V)
        v_store(into + i, v_add(v_mul(v_load(into + i), v_set(x)), v_mul(v_load(part + i), v_set(y))));
}

/* y from the part of a query; sink: NULL, or the logit that only adds to the sum; rotated: the
 * rows of V were. */
static void kv_finish(float *y, const float *part, size_t dim, const float *sink, int rotated) {
    float inverse = 1.0f / part[1];
    if (sink) {
        const float at = *sink * V_LOG2E, m = at > part[0] ? at : part[0], here = v_exp2_one(part[0] - m);
        inverse = here / (part[1] * here + v_exp2_one(at - m));
    }
    const vf by = v_set(inverse);
    size_t i = 0;
    for (; i + V <= dim; i += V) v_store(y + i, v_mul(v_load(part + 16 + i), by));
    if (i < dim) v_store_some(y + i, dim - i, v_mul(v_load(part + 16 + i), by));
    if (rotated) qk_kv_rotate(y, y, dim, 1);
}

/* Adds the weights of query i for the positions starting at b, of scores in base 2. */
static void kv_add_weights(const kv_work *w, size_t i, size_t b, float c) {
    const float *part = w->part + i * w->stride;
    const vf by = v_set((float)QK_KV_MASS / part[1]), minus_m = v_set(-part[0]);
    float *s = w->s + i * QK_KV_BLOCK;
    for (int j = 0; j < QK_KV_BLOCK; j += V)
        v_store(s + j, v_mul(v_exp2(v_fma(v_load(s + j), v_set(c), minus_m)), by));
    for (size_t t = 0; t < KV_TILES && b + t * QK_KV_TILE < w->end[i]; t++) {
        uint64_t *to = w->a->mass + QK_KV_TILE * kv_slot(w->a, b / QK_KV_TILE + t);
        for (size_t j = 0; j < QK_KV_TILE; j++) {
            const float x = s[t * QK_KV_TILE + j];
            if (x > 0.0f && x <= 2.0f * QK_KV_MASS) to[j] += (uint64_t)(x + 0.5f); /* not of a NaN */
        }
    }
}

/* The weights of the block at b, once the sums over all blocks are known. */
static void kv_add_mass(const kv_work *w, size_t b) {
    const size_t left = w->end[w->n - 1] - b, tiles = qk_kv_tiles(left < QK_KV_BLOCK ? left : QK_KV_BLOCK);
    const kv_view x = kv_view_at(w, b, tiles);
    const kv_tiles k = x.open_k ? kv_open_k(w, &x) : x.k;
    const float c = (kv_adjusts(w->a) ? 1.0f : w->a->scale) * V_LOG2E;
    if (w->fk->open_scale) kv_open_scale(w, w->fk, w->scale, &x.k, tiles);
    for (size_t i = 0; i < w->n; i += (size_t)kv_group(w, i)) {
        const size_t nq = (size_t)kv_group(w, i);
        if ((i + nq - 1) / w->a->n_heads < w->a->mass_from) continue;
        kv_score_group(w, &x, &k, i, (int)nq);
        for (size_t q = i; q < i + nq; q++) {
            const kv_range r = x.all ? kv_all : kv_range_of(w, q, b);
            if (r.lo >= r.hi || q / w->a->n_heads < w->a->mass_from) continue;
            kv_finish_scores(w, q, b, r, w->fk->open_scale ? w->scale : NULL);
            kv_add_weights(w, q, b, c);
        }
    }
}

static void kv_attend_span(const qk_attn *a, const kv_format *f, size_t span, float *part,
                           size_t part_stride) {
    kv_work w = kv_work_at(a, f);
    kv_pack(&w);
    w.part = part;
    w.stride = part_stride;
    kv_span(&w, span);
}

/* Adds the mass of all blocks of w, whose queries are packed; the joined parts are at sum. */
static void kv_add_masses(kv_work *w, float *sum) {
    w->part = sum;
    for (size_t b = w->start[0] / QK_KV_BLOCK * QK_KV_BLOCK; b < w->end[w->n - 1]; b += QK_KV_BLOCK)
        kv_add_mass(w, b);
}

/* Joins the rest of what the queries see to the parts at sum; part: room for as many. */
static void kv_attend_recent(const qk_attn *a, float *sum, float *part) {
    kv_work w = kv_work_at(a->recent, kv_format_of[a->recent_type]);
    w.part = part;
    kv_pack(&w);
    kv_span(&w, 0);
    for (size_t i = 0; i < w.n; i++) kv_join(sum + i * w.stride, part + i * w.stride, w.pad);
    if (a->mass) kv_add_masses(&w, sum);
}

static void kv_attend(const qk_attn *a, const kv_format *f) {
    kv_work w = kv_work_at(a, f);
    float *sum = w.part, *part = w.part + w.n * w.stride;
    const size_t spans = qk_kv_spans(w.end[w.n - 1]);
    const size_t first = w.start[0] / QK_KV_SPAN;
    kv_pack(&w);
    kv_span(&w, first);
    for (size_t s = first + 1; s < spans; s++) {
        w.part = part;
        kv_span(&w, s);
        for (size_t i = 0; i < w.n; i++) kv_join(sum + i * w.stride, part + i * w.stride, w.pad);
    }
    if (a->recent) kv_attend_recent(a, sum, part);
    if (a->recent && a->mass) kv_pack(&w); /* in the same place */
    if (a->mass) kv_add_masses(&w, sum);
    for (size_t i = 0; i < w.n; i++)
        kv_finish(a->y + i / a->n_heads * a->y_stride + i % a->n_heads * w.dim, sum + i * w.stride, w.dim,
                  a->sinks ? a->sinks + i % a->n_heads : NULL, w.fv->rotated);
}

static void kv_merge(float *y, float *part, size_t n, size_t part_stride, size_t dim, const float *sink,
                     int rotated) {
    for (size_t s = 1; s < n; s++) kv_join(part, part + s * part_stride, qk_kv_pad(dim));
    kv_finish(y, part, dim, sink, rotated);
}

#endif
