/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks the steps of a program, first to count the uses of each tensor, then to give them lists of channels;
 * then adds up what their inputs are. */
#include "src/convert/calibrate/channels.h"

#include <stdlib.h>
#include <string.h>

#include "src/sample/score.h"

/* ---- lists of channels ---- */

enum {
    SAME_MAX = 8, /* slices to remember */
    PER_STEP = 4  /* lists that a step can add to: of each tensor of a unit, and of the output of experts */
};

/* How a step uses the tensors of a unit. */
typedef struct Use {
    uint32_t unit, sets;
    uint32_t experts; /* this many have such a unit, two units apart; 0: none */
    bool routed;
    QsfSlice in; /* what all its columns read, if that is one list; else buf QSF_NONE */
} Use;

/* What is known about a tensor. */
typedef struct Known {
    uint32_t n_uses; /* steps that use it; 0: it is not weighted */
    uint32_t last;   /* 1 + the last of them */
    uint32_t list;   /* if there are several uses */
    uint32_t sets;
    bool routed, mixed;
} Known;

typedef struct Maker {
    QsfChannels *c;
    const QsfModel *m;
    const QsfProgram *p;
    Known *known; /* (n_tensors) */
    struct {
        QsfSlice in;
        uint32_t list;
    } same[SAME_MAX]; /* (n_same) slices that nothing wrote since they were added to a list */
    unsigned n_same;
} Maker;

static uint64_t index_of(const Maker *m, const QsfTensor *t) {
    return (uint64_t)(t - qsf_source_tensor(m->m->src, 0));
}

/* ---- the uses of a step */

/* Fills out[0..2) and returns their number. */
static unsigned uses_of(const QsfStep *s, Use out[2]) {
    const QsfSlice none = { QSF_NONE, 0, 0 };
    if (s->op == QSF_OP_LINEAR) {
        out[0] = (Use){ s->u.linear.unit, 1, 0, false, s->in };
        return 1;
    }
    if (s->op == QSF_OP_HEAD_LINEAR) {
        out[0] = (Use){ s->u.head_linear.unit, s->u.head_linear.heads, 0, false, none };
        return 1;
    }
    if (s->op != QSF_OP_EXPERTS) return 0;
    const uint32_t n = s->u.experts.n_expert;
    out[0] = (Use){ s->u.experts.unit, 1, n, false, s->in };
    out[1] = (Use){ s->u.experts.unit + 1, n, n, true, none };
    return 2;
}

static bool is_looked_up(const Maker *m, const QsfTensor *t) {
    return t == m->p->embed || t == m->p->token_table;
}

/* Lists the tensors of a unit, each once. */
static unsigned tensors_of(const Maker *m, uint32_t unit, uint64_t out[QSF_UNIT_TENSORS]) {
    const QsfUnitSpec *u = &m->p->unit[unit];
    unsigned n = 0;
    for (unsigned i = 0; i < u->n; i++) {
        const uint64_t t = index_of(m, u->tensor[i]);
        bool seen = is_looked_up(m, u->tensor[i]);
        for (unsigned k = 0; k < n; k++) seen = seen || out[k] == t;
        if (!seen) out[n++] = t;
    }
    return n;
}

static void count_use(const Maker *m, uint32_t step, const Use *use) {
    uint64_t t[QSF_UNIT_TENSORS];
    const unsigned n = tensors_of(m, use->unit, t);
    for (unsigned i = 0; i < n; i++) {
        Known *k = &m->known[t[i]];
        if (k->n_uses > 0 && (k->sets != use->sets || k->routed != use->routed)) k->mixed = true;
        k->n_uses += k->last != step + 1;
        k->last = step + 1;
        k->sets = use->sets;
        k->routed = use->routed;
        k->list = QSF_NONE;
    }
}

/* ---- lists */

static uint32_t new_list(const Maker *m, uint32_t width, const Use *use) {
    QsfChannels *c = m->c;
    c->list[c->n_lists] = (QsfChannelList){ c->n_energies, c->n_counts, width, use->sets, use->routed };
    c->n_energies += (uint64_t)use->sets * width;
    c->n_counts += use->sets;
    if (width > c->widest) c->widest = width;
    return c->n_lists++;
}

static void add_to(const Maker *m, uint32_t step, uint32_t list) {
    QsfChannels *c = m->c;
    for (uint32_t i = c->first[step]; i < c->n_adds; i++)
        if (c->add[i].list == list) return;
    c->add[c->n_adds++] = (QsfChannelAdd){ step, list };
}

/* Returns the list that the step's input is added to for tensors that no other step uses. */
static uint32_t common_list(Maker *m, uint32_t step, const Use *use, uint32_t width) {
    const bool kept = use->in.buf != QSF_NONE;
    for (unsigned i = 0; kept && i < m->n_same; i++)
        if (memcmp(&m->same[i].in, &use->in, sizeof use->in) == 0) return m->same[i].list;
    const uint32_t list = new_list(m, width, use);
    add_to(m, step, list);
    if (kept && m->n_same < SAME_MAX) {
        m->same[m->n_same].in = use->in;
        m->same[m->n_same++].list = list;
    }
    return list;
}

/* The matrices of experts are parts of the tensors of the first one, or tensors of their own. These have a
 * part of its list, which has a set for each expert if the input is that of one expert. */
static void give_experts(const Maker *m, const Use *use) {
    const QsfUnitSpec *first = &m->p->unit[use->unit];
    if (use->experts == 0 || m->p->unit[use->unit + 2 * (use->experts - 1)].tensor[0] == first->tensor[0])
        return;
    for (uint32_t e = use->experts; e-- > 0;) { /* the first one at last: it has what is taken here */
        for (unsigned i = 0; i < first->n; i++) {
            const QsfTensor *t = m->p->unit[use->unit + 2 * e].tensor[i];
            const QsfCalTensor of = m->c->tensor[index_of(m, first->tensor[i])];
            if (of.sets > 0)
                m->c->tensor[index_of(m, t)] =
                    (QsfCalTensor){ of.at + (of.sets > 1 ? (uint64_t)e * of.width : 0), of.width, 1 };
        }
    }
}

static void give_lists(Maker *m, uint32_t step, const Use *use) {
    uint64_t t[QSF_UNIT_TENSORS];
    const unsigned n = tensors_of(m, use->unit, t);
    const uint32_t width = (uint32_t)m->p->unit[use->unit].tensor[0]->ne[0];
    uint32_t common = QSF_NONE;
    for (unsigned i = 0; i < n; i++) {
        Known *k = &m->known[t[i]];
        if (k->mixed) continue;
        if (k->n_uses > 1) {
            if (k->list == QSF_NONE) k->list = new_list(m, width, use);
            add_to(m, step, k->list);
        } else {
            if (common == QSF_NONE) common = common_list(m, step, use, width);
            k->list = common;
        }
        m->c->tensor[t[i]] = (QsfCalTensor){ m->c->list[k->list].at, width, use->sets };
    }
    give_experts(m, use);
}

/* Forgets the slices that a step writes. */
static void forget(Maker *m, const QsfStep *s) {
    unsigned n = 0;
    for (unsigned i = 0; i < m->n_same; i++) {
        const QsfSlice *in = &m->same[i].in;
        bool written = false;
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++) {
            const QsfSlice *o = &s->out[k];
            written = written ||
                      (o->buf == in->buf && o->off < in->off + in->width && in->off < o->off + o->width);
        }
        if (!written) m->same[n++] = m->same[i];
    }
    m->n_same = n;
}

/* ---- all */

static bool make_room(Maker *m) {
    QsfChannels *c = m->c;
    size_t n = 0;
    for (uint32_t i = 0; i < m->p->n_steps; i++) {
        Use use[2];
        n += uses_of(&m->p->step[i], use) > 0 ? PER_STEP : 0;
    }
    c->n_tensors = qsf_source_n_tensors(m->m->src);
    c->tensor = calloc((size_t)c->n_tensors + 1, sizeof *c->tensor);
    c->list = calloc(n + 1, sizeof *c->list);
    c->add = calloc(n + 1, sizeof *c->add);
    c->first = calloc((size_t)m->p->n_steps + 1, sizeof *c->first);
    m->known = calloc((size_t)c->n_tensors + 1, sizeof *m->known);
    return c->tensor != NULL && c->list != NULL && c->add != NULL && c->first != NULL && m->known != NULL;
}

static void walk(Maker *m) {
    const QsfProgram *p = m->p;
    Use use[2];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const unsigned n = uses_of(&p->step[i], use);
        for (unsigned k = 0; k < n; k++) count_use(m, i, &use[k]);
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        m->c->first[i] = m->c->n_adds;
        const unsigned n = uses_of(&p->step[i], use);
        for (unsigned k = 0; k < n; k++) give_lists(m, i, &use[k]);
        forget(m, &p->step[i]);
    }
    m->c->first[p->n_steps] = m->c->n_adds;
}

int qsf_channels_make(QsfChannels *out, const QsfModel *m, QsfErr *err) {
    Maker k = { .c = out, .m = m, .p = &m->prog };
    *out = (QsfChannels){ 0 };
    const bool ok = make_room(&k);
    if (ok) walk(&k);
    free(k.known);
    if (ok) return QSF_OK;
    qsf_channels_free(out);
    return qsf_err_memory(err, "%s", qsf_source_path(m->src));
}

void qsf_channels_free(QsfChannels *c) {
    free(c->tensor);
    free(c->list);
    free(c->add);
    free(c->first);
    *c = (QsfChannels){ 0 };
}

/* ---- energies ---- */

/* Minimum energy relative to the median of the list, so that channels that this text happens not to use
 * still count a little. The mean is unsuitable: in some models a few channels are a million times larger than
 * the others. */
#define FLOOR 0.01
#define MOST  1e30f /* of an energy, so that products of weights stay finite */

static void add_squares(float *sum, const QsfTapData *t, uint32_t off) {
    for (uint32_t i = 0; i < t->n_cols; i++) {
        const float *x = t->x + (size_t)i * t->x_stride + off;
        for (uint32_t k = 0; k < t->k; k++) sum[k] += x[k] * x[k];
    }
}

void qsf_energies_add(const QsfChannels *c, const QsfStep *s, const QsfTapData *t, float *sum,
                      uint64_t *count) {
    const bool routed = t->expert != QSF_NONE;
    const uint32_t stride = s->op == QSF_OP_HEAD_LINEAR ? s->u.head_linear.in_stride : 0;
    for (uint32_t i = c->first[t->step]; i < c->first[t->step + 1]; i++) {
        const QsfChannelList *l = &c->list[c->add[i].list];
        if (l->routed != routed) continue;
        const uint32_t begin = routed ? t->expert : 0, end = routed ? t->expert + 1 : l->sets;
        for (uint32_t set = begin; set < end; set++) {
            add_squares(sum + l->at + (uint64_t)set * l->width, t, routed ? 0 : set * stride);
            count[l->count + set] += t->n_cols;
        }
    }
}

/* Computes the mean of all sets of a list. */
static void mean_of_all(const QsfChannelList *l, const float *sum, const uint64_t *count, float *out) {
    uint64_t n = 0;
    for (uint32_t s = 0; s < l->sets; s++) n += count[l->count + s];
    for (uint32_t k = 0; k < l->width; k++) {
        double all = 0;
        for (uint32_t s = 0; s < l->sets; s++) all += (double)sum[l->at + (uint64_t)s * l->width + k];
        out[k] = n > 0 ? (float)(all / (double)n) : 0;
    }
}

static void raise_to_floor(float *e, uint32_t n, float *scratch) {
    for (uint32_t k = 0; k < n; k++) {
        if (!(e[k] < MOST)) e[k] = MOST;
        scratch[k] = e[k];
    }
    qsf_score_sort(scratch, n);
    const float least = (float)(FLOOR * qsf_score_median(scratch, n));
    for (uint32_t k = 0; k < n; k++)
        if (e[k] < least) e[k] = least;
}

void qsf_energies_finish(const QsfChannels *c, float *sum, const uint64_t *count, float *scratch) {
    float *mean = scratch + c->widest;
    for (uint32_t i = 0; i < c->n_lists; i++) {
        const QsfChannelList *l = &c->list[i];
        const double more = l->routed ? 1 : 0; /* columns with the mean of all experts */
        memset(mean, 0, l->width * sizeof *mean);
        if (l->routed) mean_of_all(l, sum, count, mean);
        for (uint32_t s = 0; s < l->sets; s++) {
            float *e = sum + l->at + (uint64_t)s * l->width;
            const double n = (double)count[l->count + s] + more;
            for (uint32_t k = 0; k < l->width && n > 0; k++)
                e[k] = (float)(((double)e[k] + more * (double)mean[k]) / n);
            raise_to_floor(e, l->width, scratch);
        }
    }
}
