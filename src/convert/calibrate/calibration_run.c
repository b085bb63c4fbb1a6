/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two passes. The first runs over all of the text and collects the squares of the inputs of the matrices and
 * the residual before and after each layer. The second runs over a few tokens once for each layer, undoing
 * what that layer changed. */
#include "src/convert/calibrate/calibration_run.h"

#include <string.h>

#include "src/plan/layout.h"
#include "src/sample/score.h"

#define BASE_FLOATS ((uint64_t)8 << 20) /* maximum size of the distributions kept for comparison */
#define NO_LAYER    UINT32_MAX

typedef struct Calibrator {
    const QsfCalibrateRun *r;
    const QsfCalibratePlan *p;
    QsfCalibration *out;
    uint8_t *mem;
    uint64_t bytes;
    double *cosine;          /* (n_layers) */
    double *log_sum;         /* (n_scored) */
    uint64_t *count;         /* (n_counts) columns of each set of channels */
    float *before;           /* (window + 1, widest) residual before the current block, and one after it */
    float *scratch;          /* (2, widest list) */
    float *base;             /* (n_scored, n_vocab) logits with all layers */
    uint32_t n_scored, step; /* number of positions compared, and their distance */
    size_t skip_at;          /* first token of the second pass */
    uint32_t n_skip;
    double kl;      /* sum */
    bool second;    /* pass */
    uint32_t layer; /* the layer skipped */
    uint64_t done, all;
} Calibrator;

/* ---- sizes */

int qsf_calibrate_plan(QsfCalibratePlan *out, const QsfModel *m, uint32_t window, QsfErr *err) {
    const uint32_t ctx = m->hp.n_ctx_train;
    *out = (QsfCalibratePlan){ .n_layers = m->hp.n_named + m->hp.n_extra,
                               .n_named = m->hp.n_named,
                               .n_vocab = m->hp.n_vocab,
                               .window = ctx > 0 && ctx < window ? ctx : window };
    int rc = qsf_channels_make(&out->channels, m, err);
    if (rc == QSF_OK) rc = qsf_residual_make(&out->residual, m, err);
    if (rc != QSF_OK) qsf_calibrate_plan_free(out);
    return rc;
}

void qsf_calibrate_plan_free(QsfCalibratePlan *p) {
    qsf_channels_free(&p->channels);
    qsf_residual_free(&p->residual);
}

/* Computes the number of positions compared among n, and the distance between them. */
static uint32_t scored_of(uint32_t n, uint32_t n_vocab, uint32_t *step) {
    uint64_t room = BASE_FLOATS / n_vocab;
    *step = room >= n ? 1 : room > 0 ? (uint32_t)((n + room - 1) / room) : n;
    return n / *step;
}

static uint64_t layout(Calibrator *c) {
    const QsfCalibratePlan *p = c->p;
    c->n_scored = scored_of(c->n_skip, p->n_vocab, &c->step);
    const uint64_t size[] = { p->n_layers * sizeof(double),
                              c->n_scored * sizeof(double),
                              p->channels.n_counts * sizeof(uint64_t),
                              (p->window + 1ull) * p->residual.widest * sizeof(float),
                              2ull * p->channels.widest * sizeof(float),
                              (uint64_t)c->n_scored * p->n_vocab * sizeof(float) };
    enum { N = sizeof size / sizeof *size };
    uint8_t *at[N];
    uint64_t sum = 0;
    for (int i = 0; i < N; i++) {
        at[i] = c->mem != NULL ? c->mem + sum : NULL;
        sum += size[i];
    }
    c->cosine = (double *)(void *)at[0];
    c->log_sum = (double *)(void *)at[1];
    c->count = (uint64_t *)(void *)at[2];
    c->before = (float *)(void *)at[3];
    c->scratch = (float *)(void *)at[4];
    c->base = (float *)(void *)at[5];
    return qsf_pages(sum);
}

static uint32_t skip_count(size_t n, uint32_t window) {
    uint32_t most = window < QSF_CALIBRATE_SKIP_TOKENS ? window : QSF_CALIBRATE_SKIP_TOKENS;
    return n < most ? (uint32_t)n : most;
}

/* The energies outlive the run; they are charged while it lasts. */
static uint64_t energy_bytes(const QsfCalibratePlan *p) {
    return qsf_pages(p->channels.n_energies * sizeof(float));
}

uint64_t qsf_calibrate_run_bytes(const QsfCalibratePlan *p) {
    Calibrator c = { .p = p, .n_skip = skip_count(SIZE_MAX, p->window) };
    return layout(&c) + energy_bytes(p);
}

/* ---- blocks */

/* Copies a block's residual of column i of the tap from the forward pass to v, or back. */
static void copy_residual(const Calibrator *c, const QsfResidualBlock *b, uint32_t i, float *v,
                          bool restore) {
    for (uint32_t k = 0; k < b->n; k++) {
        const QsfSlice s = c->p->residual.slice[b->first + k];
        uint32_t stride;
        float *x = qsf_forward_tapped(c->r->rt->fwd, s, &stride) + (size_t)i * stride;
        memcpy(restore ? x : v, restore ? v : x, s.width * sizeof *v);
        v += s.width;
    }
}

static float *before_at(const Calibrator *c, const QsfResidualBlock *b, uint32_t pos) {
    return c->before + (size_t)pos * b->width;
}

/* The block with this number has been computed, for the columns of t. */
static void end_block(Calibrator *c, const QsfTapData *t, uint32_t block) {
    const QsfResidualBlock *b = &c->p->residual.block[block];
    const uint32_t layer = block % c->p->n_named;
    float *now = c->before + (size_t)c->p->window * c->p->residual.widest;
    if (c->second && layer != c->layer) return;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        float *before = before_at(c, b, t->pos + i);
        copy_residual(c, b, i, c->second ? before : now, c->second);
        if (!c->second) c->cosine[layer] += qsf_score_cosine(before, now, b->width);
    }
}

static void begin_block(Calibrator *c, const QsfTapData *t, uint32_t block) {
    const QsfResidualBlock *b = &c->p->residual.block[block];
    for (uint32_t i = 0; i < t->n_cols; i++) copy_residual(c, b, i, before_at(c, b, t->pos + i), false);
}

static void see_border(Calibrator *c, const QsfTapData *t) {
    const QsfProgram *p = &c->r->rt->model.prog;
    const uint32_t block = p->step[t->step].block;
    if (t->step > 0 && p->step[t->step - 1].block < p->n_blocks) end_block(c, t, p->step[t->step - 1].block);
    if (block < p->n_blocks) begin_block(c, t, block);
}

static void see(void *arg, const QsfTapData *t) {
    Calibrator *c = arg;
    if (t->x == NULL)
        see_border(c, t);
    else if (!c->second)
        qsf_energies_add(&c->p->channels, &c->r->rt->model.prog.step[t->step], t, c->out->energy, c->count);
}

/* ---- passes */

static void tell(Calibrator *c) {
    if (c->r->progress != NULL) c->r->progress(c->r->arg, c->done, c->all);
}

static void count_token(void *arg, uint32_t pos, const float *logits) {
    Calibrator *c = arg;
    (void)pos;
    (void)logits;
    c->done++;
    tell(c);
}

/* Evaluates ids[begin, begin + n) from an empty context and passes the logits of each position to fn. */
static int evaluate(Calibrator *c, size_t begin, size_t n, QsfLogitsFn fn, QsfErr *err) {
    const QsfCalibrateRun *r = c->r;
    int32_t *head = r->ids + begin, kept = *head;
    if (begin > 0 && r->bos >= 0) *head = r->bos;
    qsf_forward_truncate(r->rt->fwd, 0);
    int rc = qsf_forward_eval(r->rt->fwd, head, n, fn, c, err);
    *head = kept;
    return rc;
}

static int watch(Calibrator *c, QsfErr *err) {
    const QsfCalibrateRun *r = c->r;
    const uint32_t window = c->p->window;
    int rc = QSF_OK;
    for (size_t at = 0; rc == QSF_OK && at < r->n; at += window)
        rc = evaluate(c, at, r->n - at < window ? r->n - at : window, count_token, err);
    return rc;
}

static void compare(void *arg, uint32_t pos, const float *logits) {
    Calibrator *c = arg;
    const uint32_t n_vocab = c->p->n_vocab, row = pos / c->step;
    c->done++;
    tell(c);
    if (pos % c->step != c->step - 1) return;
    float *base = c->base + (size_t)row * n_vocab;
    if (c->layer != NO_LAYER) {
        c->kl += qsf_score_divergence(base, c->log_sum[row], logits, n_vocab);
        return;
    }
    memcpy(base, logits, n_vocab * sizeof *base);
    c->log_sum[row] = qsf_score_log_sum(logits, n_vocab);
}

static int skip_layers(Calibrator *c, QsfErr *err) {
    int rc = QSF_OK;
    c->second = true;
    c->layer = NO_LAYER;
    for (uint32_t pass = 0; rc == QSF_OK && pass <= c->p->n_named; pass++) {
        if (pass > 0) c->layer = pass - 1;
        c->kl = 0;
        rc = evaluate(c, c->skip_at, c->n_skip, compare, err);
        if (rc == QSF_OK && pass > 0) c->out->skip_kl[c->layer] = (float)(c->kl / c->n_scored);
    }
    return rc;
}

/* ---- all */

/* The mean over the blocks of a layer. A block that changes nothing has no residual to compare. */
static void mean_cosines(const Calibrator *c) {
    const QsfResidual *r = &c->p->residual;
    for (uint32_t l = 0; l < c->p->n_layers; l++) {
        double sum = c->cosine[l] / (double)c->r->n, n = 0;
        for (uint32_t b = l; l < c->p->n_named && b < r->n_blocks; b += c->p->n_named) {
            if (r->block[b].end == r->block[b].begin) sum += 1;
            n += 1;
        }
        c->out->cosine[l] = n > 0 ? (float)(sum / n) : 1.0f;
    }
}

static int run(Calibrator *c, QsfErr *err) {
    QsfRuntime *rt = c->r->rt;
    qsf_ledger_freeze(&rt->ledger);
    tell(c);
    qsf_forward_tap(rt->fwd, see, c);
    int rc = watch(c, err);
    if (rc == QSF_OK) rc = skip_layers(c, err);
    qsf_forward_tap(rt->fwd, NULL, NULL);
    qsf_ledger_thaw(&rt->ledger);
    if (rc != QSF_OK) return rc;
    qsf_energies_finish(&c->p->channels, c->out->energy, c->count, c->scratch);
    mean_cosines(c);
    c->out->tokens = c->r->n;
    c->out->skip_tokens = c->n_scored;
    return QSF_OK;
}

static int run_mapped(Calibrator *c, QsfErr *err) {
    const QsfChannels *ch = &c->p->channels;
    QsfLedger *ledger = &c->r->rt->ledger;
    void *mem;
    int rc = qsf_mem_map(ledger, QSF_MEM_TRANSCRIPT, c->bytes, "calibration", &mem, err);
    if (rc != QSF_OK) return rc;
    c->mem = mem;
    (void)layout(c);
    rc = qsf_calibration_make(c->out, c->p->n_layers, ch->n_tensors, ch->n_energies, err);
    if (rc == QSF_OK) {
        memcpy(c->out->tensor, ch->tensor, ch->n_tensors * sizeof *ch->tensor);
        rc = run(c, err);
    }
    if (rc != QSF_OK) qsf_calibration_free(c->out);
    qsf_mem_unmap(ledger, QSF_MEM_TRANSCRIPT, mem, c->bytes);
    return rc;
}

int qsf_calibrate_run(const QsfCalibrateRun *r, QsfCalibration *out, QsfErr *err) {
    const QsfCalibratePlan *p = r->plan;
    const uint64_t energies = energy_bytes(p);
    Calibrator c = { .r = r, .p = p, .out = out, .n_skip = skip_count(r->n, p->window) };
    *out = (QsfCalibration){ 0 };
    c.skip_at = (r->n - c.n_skip) / 2 / p->window * p->window;
    c.all = r->n + (uint64_t)c.n_skip * (p->n_named + 1u);
    c.bytes = layout(&c);
    int rc = qsf_ledger_reserve(&r->rt->ledger, QSF_MEM_TRANSCRIPT, energies, "calibration", err);
    if (rc != QSF_OK) return rc;
    rc = run_mapped(&c, err);
    qsf_ledger_release(&r->rt->ledger, QSF_MEM_TRANSCRIPT, energies);
    return rc;
}
