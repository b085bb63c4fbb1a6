/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention of the columns of a pass over a KV cache, with grouped heads. */
#include <math.h>

#include "src/forward/ops/ops.h"

/* A kernel call processes `heads` query heads of one KV head and `cols` columns. */
typedef struct AttnJob {
    QsfForward *f;
    const QsfStep *s;
    const QsfAttentionStep *a;
    const QsfKvSpec *kv;
    const qk_kv_ops *ops;          /* of K */
    uint32_t group, heads, pieces; /* query heads per KV head; per piece; number of pieces */
    uint32_t cols, blocks;         /* blocks of columns */
    uint32_t first, spans;         /* first span that is seen, and how many */
    uint32_t seen;                 /* positions from there to the last one */
    const qk_kv_slot *list;        /* of the cache; NULL = none */
    size_t n_list;
    bool observed; /* the weights of some columns are wanted */
    bool recent;   /* some positions are read as recent ones: blocks do not go beyond a tile of columns */
} AttnJob;

/* A call: the queries, and if there are recent positions what they see of those. */
typedef struct Queries {
    qk_attn a, recent;
    QsfKvRecentView view;
} Queries;

/* Computes in double and rounds once, so that large positions times small frequencies stay precise. */
void qsf_rope_angles(QsfForward *f, uint32_t n_cols) {
    const QsfProgram *p = &f->model->prog;
    for (uint32_t t = 0; t < p->n_ropes; t++) {
        const QsfRopeTable *r = &p->rope[t];
        const double *freq = r->freq_long != NULL && f->rope_ctx > r->original_ctx ? r->freq_long : r->freq;
        for (uint32_t c = 0; c < n_cols; c++) {
            float *cs = f->cs + (size_t)r->at * f->l.n_cols + (size_t)c * r->n_rot;
            for (uint32_t i = 0; i < r->n_rot / 2; i++) {
                double a = (double)(f->past + c) * freq[i];
                cs[2 * i] = (float)(cos(a) * r->magnitude);
                cs[2 * i + 1] = (float)(sin(a) * r->magnitude);
            }
        }
    }
}

/* Returns the columns [*from, to) of a block; to <= *from: there are none. */
static uint32_t columns_of(const AttnJob *j, uint32_t block, uint32_t *from) {
    const uint32_t past = j->f->past, end = past + j->f->n_cols;
    if (!j->recent) {
        *from = block * j->cols;
        return *from + j->cols < j->f->n_cols ? *from + j->cols : j->f->n_cols;
    }
    const uint32_t in_tile = (QK_KV_TILE + j->cols - 1) / j->cols, tile = past / QK_KV_TILE + block / in_tile;
    uint32_t first = tile * QK_KV_TILE + block % in_tile * j->cols, to = first + j->cols;
    if (to > (tile + 1) * QK_KV_TILE) to = (tile + 1) * QK_KV_TILE;
    if (to > end) to = end;
    if (first < past) first = past;
    *from = first - past;
    return to > first ? to - past : *from;
}

/* Divides what the columns see into what is read from the cache and recent positions. */
static void add_recent(const AttnJob *j, Queries *q, uint32_t kv_head) {
    const QsfKvCache *c = &j->f->kv;
    const uint32_t kv = j->a->kv;
    qsf_kvrecent_view(c, (uint32_t)q->a.pos / QK_KV_TILE, j->list, j->n_list, &q->view);
    q->recent = q->a;
    q->recent.list = q->view.list;
    q->recent.where = q->view.where;
    q->recent.n_list = q->view.n;
    q->recent.k = qsf_kvrecent_tiles(c, kv, 0, kv_head);
    q->recent.v = qsf_kvrecent_tiles(c, kv, 1, kv_head);
    q->recent.v_type = qsf_kv_recent_type(j->kv, c->types, 1);
    q->recent.ring = 0;
    q->a.from = q->view.from;
    q->a.to = q->view.to;
    q->a.recent = &q->recent;
    q->a.recent_type = qsf_kv_recent_type(j->kv, c->types, 0);
}

/* Describes columns [col, to), piece `piece` of all heads. The output may overwrite the query. */
static void queries(const AttnJob *j, Queries *q, int worker, uint32_t col, uint32_t to, uint32_t piece) {
    QsfForward *f = j->f;
    const uint32_t kv_head = piece / j->pieces, from = piece % j->pieces * j->heads, dim = j->kv->dim;
    const size_t head = (size_t)kv_head * j->group + from;
    const QsfKvLists *lists = &f->kv.lists;
    const uint32_t pos = f->past + col;
    q->a = (qk_attn){ .mass = j->observed ? lists->worker_mass + (size_t)worker * lists->cap * QK_KV_TILE
                                          : NULL,
                      .mass_from = f->observe_from > pos ? f->observe_from - pos : 0,
                      .list = j->list,
                      .n_list = j->n_list,
                      .k = qsf_kvcache_k(&f->kv, j->a->kv, kv_head),
                      .v = qsf_kvcache_v(&f->kv, j->a->kv, kv_head),
                      .v_type = qsf_kvcache_type(&f->kv, j->a->kv, 1),
                      .q = qsf_col(f, j->s->in, col) + head * dim,
                      .y = qsf_col(f, j->s->out[0], col) + head * dim,
                      .q_stride = qsf_col_stride(f, j->s->in),
                      .y_stride = qsf_col_stride(f, j->s->out[0]),
                      .head_dim = dim,
                      .n_cols = to - col,
                      .n_heads = j->group - from < j->heads ? j->group - from : j->heads,
                      .pos = f->past + col,
                      .window = j->a->window,
                      .ring = qsf_kvcache_ring(&f->kv, j->a->kv),
                      .chunk = j->a->chunk,
                      .scale = j->a->scale,
                      .softcap = j->a->softcap,
                      .sinks = j->a->sinks == QSF_NONE ? NULL : qsf_param(f, j->a->sinks) + head,
                      .slopes = j->a->slopes == QSF_NONE ? NULL : f->model->prog.slopes[j->a->slopes] + head,
                      .scratch = f->mem + f->l.attn + (size_t)worker * f->l.attn_stride };
    if (j->recent) add_recent(j, q, kv_head);
}

/* Items are (piece of heads, block of columns). */
static void attend(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    for (size_t i = begin; i < end && !qsf_cancelled(j->f); i++) {
        Queries q;
        uint32_t from;
        const uint32_t to = columns_of(j, (uint32_t)(i % j->blocks), &from);
        if (from >= to) continue;
        queries(j, &q, worker, from, to, (uint32_t)(i / j->blocks));
        j->ops->attend(&q.a);
    }
}

/* One column with many positions: items are (piece of heads, span); the last one is that of
 * recent positions. */
static void attend_span(void *arg, int worker, size_t begin, size_t end) {
    const AttnJob *j = arg;
    size_t part = qk_attn_part(j->kv->dim);
    for (size_t i = begin; i < end; i++) {
        uint32_t piece = (uint32_t)(i / j->spans), span = (uint32_t)(i % j->spans);
        size_t head = (size_t)(piece / j->pieces) * j->group + piece % j->pieces * j->heads;
        float *to = j->f->parts + (head * j->spans + span) * part;
        Queries q;
        queries(j, &q, worker, 0, 1, piece);
        if (j->recent && span + 1 == j->spans)
            j->f->table->kv[q.a.recent_type].attend_span(&q.recent, 0, to, j->spans * part);
        else
            j->ops->attend_span(&q.a, j->first + span, to, j->spans * part);
    }
}

static void attend_one_column(AttnJob *j, uint32_t items) {
    QsfForward *f = j->f;
    const size_t dim = j->kv->dim, part = qk_attn_part(dim);
    const qk_kv_ops *v = qsf_kvcache_ops(&f->kv, j->a->kv, 1);
    float *y = qsf_col(f, j->s->out[0], 0);
    qsf_pool_run(f->pool, attend_span, j, (size_t)items * j->spans, 1);
    for (size_t h = 0; h < j->a->heads; h++) {
        const float *sink = j->a->sinks == QSF_NONE ? NULL : qsf_param(f, j->a->sinks) + h;
        v->merge(y + h * dim, f->parts + h * j->spans * part, j->spans, part, dim, sink);
    }
}

/* The spans that the columns see. Positions before them may be many once positions were evicted. */
static void find_spans(AttnJob *j) {
    const QsfForward *f = j->f;
    const qk_attn all = { .list = j->list, .n_list = j->n_list };
    const uint32_t window = j->a->window, end = f->past + 1;
    const size_t last = qk_kv_index(&all, (size_t)f->past + f->n_cols - 1);
    j->first = window > 0 && end > window ? (uint32_t)(qk_kv_index(&all, end - window) / QK_KV_SPAN) : 0;
    j->spans = (uint32_t)(last / QK_KV_SPAN) + 1 - j->first;
    j->seen = (uint32_t)last + 1 - j->first * QK_KV_SPAN;
}

/* Divides heads and columns into calls of at most `most` queries. */
static void divide(AttnJob *j, uint32_t most) {
    const QsfForward *f = j->f;
    j->heads = j->group < most ? j->group : most;
    j->pieces = (j->group + j->heads - 1) / j->heads;
    j->cols = most / j->heads;
    if (j->recent && j->cols > QK_KV_TILE) j->cols = QK_KV_TILE;
    const uint32_t in_tile = (QK_KV_TILE + j->cols - 1) / j->cols;
    j->blocks = j->recent ? (uint32_t)qk_kv_tiles(f->past % QK_KV_TILE + f->n_cols) * in_tile
                          : (f->n_cols + j->cols - 1) / j->cols;
}

/* How long the calls take if each has at most `most` queries: all of them, shared among the threads, or the
 * longest one. Each turns what it reads into rows, which takes as long as TURN queries. */
static double latent_cost(const QsfForward *f, const QsfKvSpec *kv, uint32_t heads, uint32_t n_cols,
                          double spans, uint32_t most) {
    enum { TURN = 5 };
    const uint32_t together = heads < most ? heads : most, cols = most / together;
    const double calls = kv->heads * ceil((double)heads / together) * ceil((double)n_cols / cols);
    const double call = TURN + together * (cols < n_cols ? cols : n_cols);
    return fmax(calls * spans * call / qsf_pool_used(f->pool), fmin(spans, 1) * call);
}

uint32_t qsf_attention_queries(const QsfForward *f, const QsfKvSpec *kv, uint32_t heads, uint32_t n_cols,
                               double spans) {
    if (!kv->v_is_k) return (uint32_t)qk_attn_queries(kv->dim);
    uint32_t best = (uint32_t)qk_attn_queries_v_is_k(kv->dim);
    for (uint32_t most = best / 2; most > 1; most /= 2)
        if (latent_cost(f, kv, heads, n_cols, spans, most) < latent_cost(f, kv, heads, n_cols, spans, best))
            best = most;
    return best;
}

int qsf_attention(QsfForward *f, const QsfStep *s, QsfErr *err) {
    if (s->in2.buf != QSF_NONE) return qsf_sparse_attention(f, s, err);
    const QsfSpan span = qsf_span_begin(f);
    const QsfAttentionStep *a = &s->u.attention;
    const QsfKvSpec *kv = &f->model->prog.kv[a->kv];
    AttnJob j = { .f = f,
                  .s = s,
                  .a = a,
                  .kv = kv,
                  .ops = qsf_kvcache_ops(&f->kv, a->kv, 0),
                  .group = a->heads / kv->heads };
    j.recent = f->kv.recent.on[a->kv];
    j.list = qsf_kvcache_list(&f->kv, a->kv, &j.n_list);
    j.observed = f->kv.lists.mass != NULL && f->past + f->n_cols > f->observe_from &&
                 qsf_kvcache_ring(&f->kv, a->kv) == 0;
    find_spans(&j);
    const bool by_span = f->n_cols == 1 && j.spans > 1 && !j.observed;
    const double spans = by_span ? (double)j.seen / QK_KV_SPAN : 1;
    divide(&j, qsf_attention_queries(f, kv, j.group, f->n_cols, spans));
    uint32_t items = kv->heads * j.pieces;
    if (by_span) {
        j.spans += j.recent;
        attend_one_column(&j, items);
    } else {
        qsf_pool_run(f->pool, attend, &j, (size_t)items * j.blocks, 1);
    }
    if (j.recent) qsf_kvrecent_close(&f->kv, a->kv, false);
    if (j.observed) qsf_kvlist_gather(&f->kv.lists, a->kv, f->past + f->n_cols);
    qsf_span_end(f, &span, &f->n.attention_ns);
    return QSF_OK;
}
