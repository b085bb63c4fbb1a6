/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prefill speed against the length of the prompt, and decode speed against the context, within a time. */
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/run/picture.h"

#define FIRST_LENGTH 8u
#define GEN_MOST     16u
#define GEN_LEAST    2u
#define GEN_SHARE    3.0 /* a third of the time is for decoding */
#define ROUNDS_MOST  16u

/* ---- what to measure ---- */

/* Seconds for one length. A pass over the weights is never faster than decoding a token. */
static double cost(double length, double gen, double prefill_tps, double decode_tps) {
    const double prefill = length / prefill_tps, pass = 1 / decode_tps;
    return (prefill > pass ? prefill : pass) + gen / decode_tps;
}

void run_curve_plan(RunCurvePlan *p, uint32_t ctx, double prefill_tps, double decode_tps, unsigned repeats) {
    const double each = RUN_CURVE_SECONDS / GEN_SHARE * decode_tps / RUN_LENGTHS;
    *p = (RunCurvePlan){ .n_gen = each >= GEN_MOST   ? GEN_MOST
                                  : each > GEN_LEAST ? (uint32_t)each
                                                     : GEN_LEAST };
    if (!(prefill_tps > 0) || !(decode_tps > 0)) return;
    for (uint64_t length = FIRST_LENGTH; p->n < RUN_LENGTHS && length + p->n_gen <= ctx; length *= 2) {
        const double more = cost((double)length, p->n_gen, prefill_tps, decode_tps);
        if (p->seconds + more > RUN_CURVE_SECONDS) break;
        p->seconds += more;
        p->length[p->n++] = (uint32_t)length;
    }
    if (p->n == 0) return;
    if (repeats > ROUNDS_MOST) repeats = ROUNDS_MOST;
    p->rounds = 1;
    while (p->rounds < repeats && p->seconds * (p->rounds + 1) <= RUN_CURVE_SECONDS) p->rounds++;
    p->seconds *= p->rounds;
}

/* ---- measuring ---- */

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double run_median(double *v, size_t n) {
    qsort(v, n, sizeof *v, compare_double);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

typedef struct Samples {
    double prefill[RUN_LENGTHS][ROUNDS_MOST], decode[RUN_LENGTHS][ROUNDS_MOST];
    unsigned n[RUN_LENGTHS];
} Samples;

static double per_second(uint32_t n, uint64_t ns) { return ns > 0 ? n * 1e9 / (double)ns : 0; }

static int measure(Samples *s, unsigned i, const RunCurvePlan *p, QsfRuntime *rt, const int32_t *ids,
                   QsfErr *err) {
    const uint32_t length = p->length[i];
    qsf_forward_truncate(rt->fwd, 0);
    const uint64_t t0 = qsf_now_ns();
    if (qsf_forward_eval(rt->fwd, ids, length, NULL, NULL, err)) return err->code;
    const uint64_t t1 = qsf_now_ns();
    for (uint32_t k = 0; k < p->n_gen; k++)
        if (qsf_forward_decode(rt->fwd, ids + length + k, 1, NULL, NULL, err)) return err->code;
    s->prefill[i][s->n[i]] = per_second(length, t1 - t0);
    s->decode[i][s->n[i]] = per_second(p->n_gen, qsf_now_ns() - t1);
    s->n[i]++;
    return QSF_OK;
}

int run_curve(RunCurve *c, const RunCurvePlan *p, QsfRuntime *rt, const int32_t *ids, QsfErr *err) {
    Samples s;
    const uint64_t begun = qsf_now_ns();
    memset(&s, 0, sizeof s);
    *c = (RunCurve){ 0 };
    double took[RUN_LENGTHS] = { 0 }; /* seconds */
    for (unsigned round = 0; round < p->rounds; round++)
        for (unsigned i = 0; i < p->n; i++) {
            const uint64_t from = qsf_now_ns();
            /* Attention makes a length take more than twice as long as the one before. */
            const double next = round > 0 ? 1.2 * took[i] : i > 0 ? 2.5 * took[i - 1] : 0;
            if ((double)(from - begun) / 1e9 + next > RUN_CURVE_SECONDS) break;
            if (measure(&s, i, p, rt, ids, err)) return err->code;
            took[i] = (double)(qsf_now_ns() - from) / 1e9;
        }
    for (unsigned i = 0; i < p->n && s.n[i] > 0; i++) {
        c->length[i] = p->length[i];
        c->prefill_tps[i] = run_median(s.prefill[i], s.n[i]);
        c->decode_tps[i] = run_median(s.decode[i], s.n[i]);
        c->n++;
    }
    return QSF_OK;
}
