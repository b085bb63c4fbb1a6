/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/measure/quality_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/quality/quality.h"
#include "src/sample/score.h"

#define FIRST_EXIT 0.3 /* of the depth: earlier logits agree too rarely */
#define COLUMN_COST \
    0.25 /* of one more position in a pass over the blocks after the exit, beside the first one */
#define MARGINS      64u    /* that are tried for an exit */
#define MARGIN_SCALE 1000.0 /* margins are stored in thousandths */

/* ---- variants ---- */

/* In the order of falling quality. */
static void add_variant(QsfMeasured *m, const QsfModel *model, const QsfQuality *q) {
    QsfMeasuredVariant *v = m->variant;
    for (; v < m->variant + m->n_variants; v++) {
        if (v->quality.exit != q->exit || !qsf_blocks_equal(&v->quality.skip, &q->skip) ||
            qsf_quality_bytes(&v->quality, model) != qsf_quality_bytes(q, model))
            continue;
        v->lowest = q->value;
        return;
    }
    if (m->n_variants == QSF_MEASURED_VARIANTS) return;
    v->quality = *q;
    v->lowest = q->value;
    m->n_variants++;
}

/* Exits at even distances, the last one before the last block. */
static void add_exits(QsfMeasured *m, const QsfRuntime *rt) {
    const uint32_t n = rt->model.prog.n_blocks, first = (uint32_t)ceil(FIRST_EXIT * n);
    for (uint32_t i = 0; i < QSF_MEASURED_EXITS && n > 1; i++) {
        uint32_t block = first + (n - 1 - first) * i / (QSF_MEASURED_EXITS - 1);
        QsfQuality q = { .value = 0.5f };
        if (block < 1 || block >= n || !qsf_blocks_have(qsf_forward_exits(rt->fwd), block)) continue;
        qsf_quality_exit(&q, &rt->model, block, QSF_EVERY_MARGIN, 0);
        add_variant(m, &rt->model, &q);
    }
}

int qsf_measured_variants(QsfMeasured *m, const QsfRuntime *rt, QsfErr *err) {
    const QsfQuality all = { .value = 1 };
    add_exits(m, rt);
    for (uint32_t i = QSF_QUALITY_CHOICES; i > 0; i--) {
        QsfQuality q;
        qsf_runtime_choose_layers(rt, (float)i / QSF_QUALITY_TENTHS, &q);
        if (qsf_quality_bytes(&q, &rt->model) < qsf_quality_bytes(&all, &rt->model))
            add_variant(m, &rt->model, &q);
    }
    if (m->n_variants > 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE,
                       "%s: no layer of this model can be skipped, and no token can end early",
                       qsf_source_path(rt->model.src));
}

/* ---- what an exit with a margin gives ---- */

typedef struct Outcome {
    double work;    /* of a token: bytes that it multiplies, a pass over several positions counting as more */
    double full;    /* passes over the blocks after the exit */
    double kl, nll; /* means */
} Outcome;

/* Bytes of the blocks that every token needs, of the others, and of the head. */
typedef struct Parts {
    double always, after, head, all;
} Parts;

static Parts parts_of(const QsfModel *m, const QsfBlockSet *skip) {
    Parts p = { 0, 0, 0, 0 };
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        const double bytes = (double)qsf_unit_active_bytes(&u);
        *(u.layer == m->prog.n_blocks      ? &p.head
          : qsf_blocks_have(skip, u.layer) ? &p.after
                                           : &p.always) += bytes;
        p.all += bytes;
    }
    return p;
}

/* Tokens in the order of the text, as qsf_forward_decode treats them. */
static Outcome outcome_of(const QsfMeasured *m, const QsfMeasuredVariant *v, const Parts *p, float margin) {
    Outcome o = { 0, 0, 0, 0 };
    uint32_t waiting = 0;
    double work = 0;
    for (uint32_t i = 0; i < m->n_tokens; i++) {
        const QsfMeasuredToken *t = &v->token[i];
        const bool ends = t->margin >= margin;
        o.kl += ends ? (double)t->kl : 0;
        o.nll += ends ? (double)t->nll : m->base_nll[i];
        waiting++;
        if (ends && waiting <= QSF_PENDING_POSITIONS) continue;
        o.full += 1;
        work += (p->after + p->head) * (1 + COLUMN_COST * (waiting - 1));
        waiting = 0;
    }
    const double n = m->n_tokens;
    o.full /= n;
    o.kl /= n;
    o.nll /= n;
    o.work = p->always + p->head + work / n;
    return o;
}

static Outcome outcome_of_skip(const QsfMeasured *m, const QsfMeasuredVariant *v, const QsfModel *model) {
    Outcome o = { 0, 0, 0, 0 };
    for (uint32_t i = 0; i < m->n_tokens; i++) {
        o.kl += (double)v->token[i].kl / m->n_tokens;
        o.nll += (double)v->token[i].nll / m->n_tokens;
    }
    o.work = (double)qsf_quality_bytes(&v->quality, model);
    return o;
}

/* ---- the choice ---- */

typedef struct Best {
    Outcome o;
    const QsfMeasuredVariant *v; /* NULL: nothing yet */
    float margin;
} Best;

/* Layers are chosen so that they come nearest to what a quality asks for, which may be a little above it. */
static double skip_limit(const QsfMeasuredVariant *v, double quality, double allowed, double cheapest) {
    return (double)v->lowest > quality + 1e-3 && allowed < cheapest ? allowed : cheapest;
}

static void consider(Best *b, const QsfMeasuredVariant *v, Outcome o, float margin, double most) {
    if (o.work > most || (b->v != NULL && o.kl >= b->o.kl)) return;
    *b = (Best){ .o = o, .v = v, .margin = margin };
}

/* The margin that a part of the tokens reaches, in whole thousandths. */
static float margin_at(const float *sorted, uint32_t n, uint32_t i) {
    const double m = (double)sorted[(size_t)(n - 1) * i / MARGINS];
    return (float)(ceil(m * MARGIN_SCALE) / MARGIN_SCALE);
}

static void consider_exits(Best *b, const QsfMeasured *m, const QsfMeasuredVariant *v, const QsfModel *model,
                           double most) {
    float sorted[QSF_MEASURED_TOKENS];
    const Parts p = parts_of(model, &v->quality.skip);
    for (uint32_t i = 0; i < m->n_tokens; i++) sorted[i] = v->token[i].margin;
    qsf_score_sort(sorted, m->n_tokens);
    for (uint32_t i = 0; i <= MARGINS; i++) {
        const float margin = i == 0 ? 0 : margin_at(sorted, m->n_tokens, i);
        consider(b, v, outcome_of(m, v, &p, margin), margin, most);
    }
}

static void fill(QsfQualityChoice *row, const Best *b, double base_nll) {
    const QsfQuality *q = &b->v->quality;
    *row = (QsfQualityChoice){ .exit = q->exit,
                               .kl = (float)b->o.kl,
                               .perplexity = (float)exp(b->o.nll - base_nll) };
    if (q->exit > 0) {
        row->margin = b->margin;
        row->full = (float)b->o.full;
    } else {
        row->skip = q->skip;
    }
}

void qsf_measured_choose(const QsfMeasured *m, const QsfModel *model, QsfQualityTable *out) {
    const QsfBlockSet none = { { 0 } };
    const double all = parts_of(model, &none).all;
    double base_nll = 0, cheapest = all;
    Best last = { .v = NULL };
    out->n_tokens = m->n_tokens;
    out->n_blocks = model->prog.n_blocks;
    for (uint32_t i = 0; i < m->n_tokens; i++) base_nll += m->base_nll[i] / m->n_tokens;
    for (uint32_t i = QSF_QUALITY_CHOICES; i-- > 0;) {
        const double q = (double)(i + 1) / QSF_QUALITY_TENTHS, allowed = all * q;
        Best b = { .v = NULL };
        for (uint32_t k = 0; k < m->n_variants; k++) {
            const QsfMeasuredVariant *v = &m->variant[k];
            if (v->quality.exit > 0)
                consider_exits(&b, m, v, model, allowed < cheapest ? allowed : cheapest);
            else
                consider(&b, v, outcome_of_skip(m, v, model), 0, skip_limit(v, q, allowed, cheapest));
        }
        if (b.v != NULL) last = b, cheapest = b.o.work;
        if (last.v != NULL)
            fill(&out->row[i], &last, base_nll);
        else
            out->row[i] = (QsfQualityChoice){ .perplexity = 1 };
    }
}
