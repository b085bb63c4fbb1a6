/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A piece of the text is evaluated with everything, then again with each of the variants: layers skipped as
 * each quality would, and all layers from a possible exit on left out. Where a token ends is decided by its
 * own logits, and later tokens find the KV cache complete, so what an exit with any margin gives can be
 * computed from the measurements of that exit. */
#include "src/measure/quality_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/quality/quality.h"
#include "src/sample/score.h"

#define QSF_MEASURED_EXITS    8u
#define QSF_MEASURED_VARIANTS (QSF_MEASURED_EXITS + QSF_QUALITY_CHOICES)

/* A token with a variant: divergence from everything and -log p of the next token, nats; how far its two
 * largest logits are apart. */
typedef struct QsfMeasuredToken {
    float kl, nll, margin;
} QsfMeasuredToken;

typedef struct QsfMeasuredVariant {
    QsfQuality quality; /* exit = 0: layers that a quality would skip; else all layers after
                           the exit, for all tokens */
    float lowest;       /* quality that would leave out the same */
    QsfMeasuredToken token[QSF_MEASURED_TOKENS];
} QsfMeasuredVariant;

typedef struct QsfMeasured {
    uint32_t n_tokens, n_variants;
    double base_nll[QSF_MEASURED_TOKENS];
    QsfMeasuredVariant variant[QSF_MEASURED_VARIANTS];
} QsfMeasured;

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

/* After the start of the text was evaluated: lists the variants that are worth measuring. QSF_E_USAGE:
 * nothing of this model can be left out. */
static int measured_variants(QsfMeasured *m, const QsfRuntime *rt, QsfErr *err) {
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

/* For each quality, the variant, and for an exit the margin, with the smallest divergence among those that do
 * not cost more than this quality allows, or than a higher quality does. */
static void measured_choose(const QsfMeasured *m, const QsfModel *model, QsfQualityTable *out) {
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

#define PIECE_MOST 64u /* tokens whose logits are kept at a time */

typedef struct Measure {
    const QsfQualityMeasure *p;
    QsfMeasured *m;
    size_t begin;                /* of the window: position 0 */
    float *base;                 /* (piece, n_vocab) logits with everything; row 0 is position base_pos */
    double base_sum[PIECE_MOST]; /* qsf_score_log_sum of each */
    uint64_t base_bytes;
    uint32_t base_pos, piece;
    size_t first;     /* number of the first scored token of the piece */
    uint32_t variant; /* that is being evaluated */
} Measure;

static uint32_t piece_tokens(uint32_t n_vocab) {
    const uint64_t n = QSF_MEASURED_BYTES / (4ull * n_vocab);
    return n < 1 ? 1 : n > PIECE_MOST ? PIECE_MOST : (uint32_t)n;
}

/* ---- one piece ---- */

static const float *base_of(const Measure *s, uint32_t pos) {
    return s->base + (size_t)(pos - s->base_pos) * s->p->rt->model.hp.n_vocab;
}

static double nll_of(const Measure *s, uint32_t pos, const float *logits, double log_sum) {
    return log_sum - (double)logits[s->p->ids[s->begin + pos + 1]];
}

static void on_base(void *arg, uint32_t pos, const float *logits) {
    Measure *s = arg;
    const uint32_t n = s->p->rt->model.hp.n_vocab;
    const size_t i = s->first + pos - s->base_pos;
    memcpy(s->base + (size_t)(pos - s->base_pos) * n, logits, n * sizeof *logits);
    s->base_sum[pos - s->base_pos] = qsf_score_log_sum(logits, n);
    s->m->base_nll[i] = nll_of(s, pos, logits, s->base_sum[pos - s->base_pos]);
}

static void on_variant(void *arg, uint32_t pos, const float *logits) {
    Measure *s = arg;
    const uint32_t n = s->p->rt->model.hp.n_vocab;
    QsfMeasuredToken *t = &s->m->variant[s->variant].token[s->first + pos - s->base_pos];
    t->kl = (float)qsf_score_divergence(base_of(s, pos), s->base_sum[pos - s->base_pos], logits, n);
    t->nll = (float)nll_of(s, pos, logits, qsf_score_log_sum(logits, n));
    t->margin = qsf_forward_margin(logits, n);
}

/* Makes positions [0, pos) the whole cache, evaluated with everything. */
static int rewind_to(const Measure *s, uint32_t pos, QsfErr *err) {
    QsfForward *f = s->p->rt->fwd;
    const uint32_t exact = qsf_forward_exact(f), keep = qsf_forward_truncate(f, exact < pos ? exact : pos);
    return qsf_forward_eval(f, s->p->ids + s->begin + keep, pos - keep, NULL, NULL, err);
}

/* Tokens [pos, pos + n) of the window. */
static int measure_piece(Measure *s, uint32_t pos, uint32_t n, QsfErr *err) {
    QsfForward *f = s->p->rt->fwd;
    const int32_t *ids = s->p->ids + s->begin + pos;
    const QsfQuality all = { .value = 1 };
    s->base_pos = pos;
    int rc = qsf_forward_eval(f, ids, n, on_base, s, err);
    for (s->variant = 0; rc == QSF_OK && s->variant < s->m->n_variants; s->variant++) {
        rc = rewind_to(s, pos, err);
        qsf_forward_set_quality(f, &s->m->variant[s->variant].quality);
        if (rc == QSF_OK) rc = qsf_forward_decode(f, ids, n, on_variant, s, err);
        qsf_forward_set_quality(f, &all);
    }
    if (rc == QSF_OK) rc = rewind_to(s, pos, err);
    return rc == QSF_OK ? qsf_forward_eval(f, ids, n, NULL, NULL, err) : rc;
}

/* ---- the text ---- */

/* The last token of a window predicts nothing. */
static int measure_window(Measure *s, uint32_t n, QsfErr *err) {
    const QsfQualityMeasure *p = s->p;
    qsf_forward_truncate(p->rt->fwd, 0);
    int rc = qsf_forward_eval(p->rt->fwd, p->ids + s->begin, QSF_MEASURED_CONTEXT, NULL, NULL, err);
    if (rc == QSF_OK && s->m->n_variants == 0) rc = measured_variants(s->m, p->rt, err);
    for (uint32_t pos = QSF_MEASURED_CONTEXT, k; rc == QSF_OK && pos + 1 < n; pos += k) {
        k = n - 1 - pos < s->piece ? n - 1 - pos : s->piece;
        rc = measure_piece(s, pos, k, err);
        s->first += k;
        if (p->progress != NULL) p->progress(p->arg, s->first, s->m->n_tokens);
    }
    return rc;
}

/* Returns how many tokens of the text are scored. */
static size_t scored(size_t n, uint32_t window) {
    size_t sum = 0;
    for (size_t at = 0; at < n; at += window) {
        const size_t here = n - at < window ? n - at : window;
        if (here > QSF_MEASURED_CONTEXT + 1) sum += here - QSF_MEASURED_CONTEXT - 1;
    }
    return sum < QSF_MEASURED_TOKENS ? sum : QSF_MEASURED_TOKENS;
}

static int check(const QsfQualityMeasure *p, uint32_t window, size_t n, QsfErr *err) {
    const uint32_t n_vocab = p->rt->model.hp.n_vocab;
    if (window < QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST)
        return qsf_err_set(err, QSF_E_USAGE, "a context of %u tokens is too short, the minimum is %u (--ctx)",
                           (unsigned)window, QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST);
    if (n < QSF_MEASURED_LEAST)
        return qsf_err_set(err, QSF_E_USAGE, "the text has %zu tokens, at least %u are needed", p->n,
                           QSF_MEASURED_CONTEXT + QSF_MEASURED_LEAST + 1);
    if (qsf_forward_evicts(p->rt->fwd))
        return qsf_err_set(err, QSF_E_USAGE,
                           "with an eviction policy, quality leaves nothing out (--eviction-policy none)");
    for (size_t i = 0; i < p->n; i++)
        if (p->ids[i] < 0 || (uint32_t)p->ids[i] >= n_vocab)
            return qsf_err_set(err, QSF_E_MODEL, "%s: token id %ld is outside the model's vocabulary of %u",
                               qsf_source_path(p->rt->model.src), (long)p->ids[i], (unsigned)n_vocab);
    return QSF_OK;
}

static int measure_text(Measure *s, uint32_t window, QsfErr *err) {
    int rc = QSF_OK;
    for (; rc == QSF_OK && s->first < s->m->n_tokens; s->begin += window) {
        const size_t left = s->p->n - s->begin, wanted = s->m->n_tokens - s->first + QSF_MEASURED_CONTEXT + 1;
        size_t n = left < window ? left : window;
        if (n > wanted) n = wanted;
        if (n > QSF_MEASURED_CONTEXT + 1) rc = measure_window(s, (uint32_t)n, err);
    }
    return rc;
}

int qsf_quality_measure(const QsfQualityMeasure *p, QsfQualityTable *out, QsfErr *err) {
    const uint32_t ctx = qsf_forward_ctx(p->rt->fwd), n_vocab = p->rt->model.hp.n_vocab;
    const uint32_t window = ctx < QSF_MEASURED_WINDOW ? ctx : QSF_MEASURED_WINDOW;
    Measure s = { .p = p, .piece = piece_tokens(n_vocab) };
    const size_t n = scored(p->n, window);
    void *mem = NULL;
    int rc = check(p, window, n, err);
    if (rc != QSF_OK) return rc;
    s.base_bytes = 4ull * n_vocab * s.piece;
    s.m = calloc(1, sizeof *s.m);
    if (s.m == NULL) return qsf_err_memory(err, "measurements");
    s.m->n_tokens = (uint32_t)n;
    rc = qsf_mem_map(&p->rt->ledger, QSF_MEM_TRANSCRIPT, s.base_bytes, "logits of a piece", &mem, err);
    s.base = mem;
    if (rc == QSF_OK) rc = measure_text(&s, window, err);
    if (rc == QSF_OK) measured_choose(s.m, &p->rt->model, out);
    if (mem != NULL) qsf_mem_unmap(&p->rt->ledger, QSF_MEM_TRANSCRIPT, mem, s.base_bytes);
    free(s.m);
    return rc;
}
