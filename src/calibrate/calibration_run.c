/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two passes. The first runs over all of the text and collects the squares of the inputs of the matrices and
 * the hidden state before and after each layer. The second runs over a few tokens once for each layer,
 * skipping that layer. */
#include "src/calibrate/calibration_run.h"

#include <string.h>

#include "src/plan/layout.h"
#include "src/sample/score.h"

#define BASE_FLOATS ((uint64_t)8 << 20) /* maximum size of the distributions kept for comparison */
/* Minimum energy relative to the median of the input, so that channels that this text happens not to use
 * still count a little. The mean is unsuitable: in some models a few channels are a million times larger than
 * the others. */
#define FLOOR 0.01

typedef struct Calibrator {
    const QsfCalibrateRun *r;
    QsfCalibration *out;
    uint8_t *mem;
    uint64_t bytes;
    double *energy;  /* as out->energy */
    double *cosine;  /* (n_layers) */
    float *before;   /* (window, hidden) hidden state before the current layer; later one sorted input */
    float *base;     /* (n_scored, n_vocab) logits with all layers */
    double *log_sum; /* (n_scored) */
    uint32_t n_scored, step; /* number of positions compared, and their distance */
    size_t skip_at;          /* first token of the second pass */
    uint32_t n_skip, scored;
    double kl;      /* sum */
    uint32_t layer; /* the layer skipped */
    uint64_t done, all;
} Calibrator;

/* ---- sizes */

static uint64_t energy_count(uint32_t n_layers, const uint32_t *widths) {
    uint64_t sum = 0;
    for (int i = 0; i < QSF_CAL_INPUTS; i++) sum += widths[i];
    return sum * n_layers + widths[QSF_CAL_QKV];
}

static uint64_t before_count(const uint32_t *widths, uint32_t window) {
    uint64_t most = (uint64_t)window * widths[QSF_CAL_QKV];
    for (int i = 0; i < QSF_CAL_INPUTS; i++)
        if (widths[i] > most) most = widths[i];
    return most;
}

/* Computes the number of positions compared among n, and the distance between them. */
static uint32_t scored_of(uint32_t n, uint32_t n_vocab, uint32_t *step) {
    uint64_t room = n_vocab > 0 ? BASE_FLOATS / n_vocab : 0; /* 0: from a header not checked yet */
    *step = room >= n ? 1 : room > 0 ? (uint32_t)((n + room - 1) / room) : n;
    return n / *step;
}

static uint64_t layout(Calibrator *c, uint32_t n_layers, const uint32_t *widths, uint32_t n_vocab,
                       uint32_t window, uint32_t n_skip) {
    c->n_scored = scored_of(n_skip, n_vocab, &c->step);
    const uint64_t size[] = { energy_count(n_layers, widths) * sizeof(double), n_layers * sizeof(double),
                              c->n_scored * sizeof(double), before_count(widths, window) * sizeof(float),
                              (uint64_t)c->n_scored * n_vocab * sizeof(float) };
    uint8_t *at[5];
    uint64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        at[i] = c->mem != NULL ? c->mem + sum : NULL;
        sum += size[i];
    }
    c->energy = (double *)(void *)at[0];
    c->cosine = (double *)(void *)at[1];
    c->log_sum = (double *)(void *)at[2];
    c->before = (float *)(void *)at[3];
    c->base = (float *)(void *)at[4];
    return sum;
}

static uint32_t skip_count(size_t n, uint32_t window) {
    uint32_t most = window < QSF_CALIBRATE_SKIP_TOKENS ? window : QSF_CALIBRATE_SKIP_TOKENS;
    return n < most ? (uint32_t)n : most;
}

uint64_t qsf_calibrate_run_bytes(uint32_t n_layers, const uint32_t *widths, uint32_t n_vocab,
                                 uint32_t window) {
    Calibrator c = { .mem = NULL };
    return qsf_pages(layout(&c, n_layers, widths, n_vocab, window, skip_count(SIZE_MAX, window)));
}

/* ---- the first pass */

/* Called between two layers, after the previous one and before this one. */
static void see_hidden(Calibrator *c, const QsfTapData *t) {
    const uint32_t hidden = c->out->width[QSF_CAL_QKV];
    for (uint32_t i = 0; i < t->n_cols; i++) {
        const float *now = t->hidden + (size_t)i * t->hidden_stride;
        float *before = c->before + (size_t)(t->pos + i) * hidden;
        if (t->layer > 0) c->cosine[t->layer - 1] += qsf_score_cosine(before, now, hidden);
        memcpy(before, now, hidden * sizeof *now);
    }
}

static const QsfCalInput input_of[QSF_MATMUL_N] = { QSF_CAL_QKV, QSF_CAL_O, QSF_CAL_FFN_IN, QSF_CAL_FFN_OUT,
                                                    QSF_CAL_QKV };

static void see_input(void *arg, const QsfTapData *t) {
    Calibrator *c = arg;
    double *sum = c->energy +
                  (qsf_calibration_energy(c->out, t->layer, input_of[t->matmul_class]) - c->out->energy);
    if (t->matmul_class == QSF_MATMUL_ATTN_IN || t->matmul_class == QSF_MATMUL_HEAD) see_hidden(c, t);
    for (uint32_t i = 0; i < t->n_cols; i++) {
        const float *x = t->x + (size_t)i * t->x_stride;
        for (uint32_t k = 0; k < t->k; k++) sum[k] += (double)x[k] * (double)x[k];
    }
}

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
    int rc = QSF_OK;
    qsf_forward_tap(r->rt->fwd, see_input, c);
    for (size_t at = 0; rc == QSF_OK && at < r->n; at += r->window)
        rc = evaluate(c, at, r->n - at < r->window ? r->n - at : r->window, count_token, err);
    qsf_forward_tap(r->rt->fwd, NULL, NULL);
    return rc;
}

/* ---- the second pass */

static void compare(void *arg, uint32_t pos, const float *logits) {
    Calibrator *c = arg;
    const uint32_t n_vocab = c->r->rt->model.hp.n_vocab, row = pos / c->step;
    c->done++;
    tell(c);
    if (pos % c->step != c->step - 1) return;
    float *base = c->base + (size_t)row * n_vocab;
    if (c->layer != QSF_LAYER_NONE) {
        c->kl += qsf_score_divergence(base, c->log_sum[row], logits, n_vocab);
        return;
    }
    memcpy(base, logits, n_vocab * sizeof *base);
    c->log_sum[row] = qsf_score_log_sum(logits, n_vocab);
}

static int skip_layer(Calibrator *c, QsfErr *err) {
    int rc = QSF_OK;
    c->layer = QSF_LAYER_NONE;
    for (uint32_t pass = 0; rc == QSF_OK && pass <= c->out->n_layers; pass++) {
        if (pass > 0) c->layer = pass - 1;
        c->kl = 0;
        qsf_forward_skip_layer(c->r->rt->fwd, c->layer);
        rc = evaluate(c, c->skip_at, c->n_skip, compare, err);
        if (rc == QSF_OK && pass > 0) c->out->skip_kl[c->layer] = (float)(c->kl / c->n_scored);
    }
    qsf_forward_skip_layer(c->r->rt->fwd, QSF_LAYER_NONE);
    return rc;
}

/* ---- both passes */

static void mean_energies(const Calibrator *c, uint32_t layer, QsfCalInput input) {
    float *out = qsf_calibration_energy(c->out, layer, input);
    const double *sum = c->energy + (out - c->out->energy);
    const uint32_t n = qsf_calibration_width(c->out, layer, input);
    for (uint32_t k = 0; k < n; k++) c->before[k] = out[k] = (float)(sum[k] / (double)c->r->n);
    qsf_score_sort(c->before, n);
    const float least = (float)(FLOOR * qsf_score_median(c->before, n));
    for (uint32_t k = 0; k < n; k++)
        if (out[k] < least) out[k] = least;
}

static void summarize(const Calibrator *c) {
    const uint32_t n_layers = c->out->n_layers;
    for (uint32_t l = 0; l < n_layers; l++) {
        for (int i = 0; i < QSF_CAL_INPUTS; i++) mean_energies(c, l, (QsfCalInput)i);
        c->out->cosine[l] = (float)(c->cosine[l] / (double)c->r->n);
    }
    mean_energies(c, n_layers, QSF_CAL_QKV);
    c->out->tokens = c->r->n;
    c->out->skip_tokens = c->n_scored;
}

/* A calibration has one set of channels for each of four inputs of a layer. Checks that the program has just these
 * matrix products: others would be added to the wrong channels. */
static int check_program(const QsfModel *m, const QsfCalibration *out, QsfErr *err) {
    const QsfProgram *p = &m->prog;
    const unsigned all = (1u << QSF_MATMUL_HEAD) - 1;
    unsigned seen = 0; /* classes of the block */
    bool ok = p->n_units == 4 * p->n_blocks + 1;
    for (uint32_t i = 0; ok && i < p->n_units; i++) {
        const QsfUnitSpec *u = &p->unit[i];
        if (i > 0 && u->block != p->unit[i - 1].block) {
            ok = seen == all;
            seen = 0;
        }
        ok = ok && (seen >> u->matmul_class & 1) == 0 &&
             u->tensor[0]->ne[0] == qsf_calibration_width(out, u->block, input_of[u->matmul_class]);
        seen |= 1u << u->matmul_class;
    }
    if (ok) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: models of architecture '%s' cannot be calibrated yet",
                       qsf_source_path(m->src), m->hp.arch->name);
}

int qsf_calibrate_run(const QsfCalibrateRun *r, QsfCalibration *out, QsfErr *err) {
    const QsfHparams *hp = &r->rt->model.hp;
    QsfLedger *ledger = &r->rt->ledger;
    Calibrator c = { .r = r, .out = out, .n_skip = skip_count(r->n, r->window) };
    void *mem;
    if (hp->n_layers != out->n_layers)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: calibration with %u layers", out->n_layers);
    int rc = check_program(&r->rt->model, out, err);
    if (rc != QSF_OK) return rc;
    c.skip_at = (r->n - c.n_skip) / 2 / r->window * r->window;
    c.all = r->n + (uint64_t)c.n_skip * (hp->n_layers + 1u);
    c.bytes = qsf_pages(layout(&c, hp->n_layers, out->width, hp->n_vocab, r->window, c.n_skip));
    rc = qsf_mem_map(ledger, QSF_MEM_TRANSCRIPT, c.bytes, "calibration", &mem, err);
    if (rc != QSF_OK) return rc;
    c.mem = mem;
    (void)layout(&c, hp->n_layers, out->width, hp->n_vocab, r->window, c.n_skip);
    qsf_ledger_freeze(ledger);
    tell(&c);
    rc = watch(&c, err);
    if (rc == QSF_OK) rc = skip_layer(&c, err);
    qsf_ledger_thaw(ledger);
    if (rc == QSF_OK) summarize(&c);
    qsf_mem_unmap(ledger, QSF_MEM_TRANSCRIPT, mem, c.bytes);
    return rc;
}
