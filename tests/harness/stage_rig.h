/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sampler of N tokens, 400 if it is not defined before, for the tests of its stages. To be included after
 * cmocka.h. */
#ifndef STAGE_RIG_H
#define STAGE_RIG_H

#include "src/sample/rng.h"
#include "src/sample/sampler.h"

#ifndef N
#define N 400
#endif

static qk_table table;
static QsfLedger ledger;
static QsfSampler *sampler;

static void random_logits(float *x, uint64_t seed, double spread) {
    QsfRng r;
    qsf_rng_seed(&r, seed);
    for (size_t i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < 12; j++) sum += qsf_rng_unit(&r);
        x[i] = (float)((sum - 6) * spread);
    }
}

static QSFParams plain(void) {
    return (
        QSFParams){ .temperature = 1, .top_p = 1, .repeat_penalty = 1, .repeat_last_n = 64, .typical = 1 };
}

static QsfSample next(const QsfSamplerInput *in) {
    QsfSample out;
    QsfErr err = { 0 };
    assert_int_equal(qsf_sampler_next(sampler, in, &out, &err), QSF_OK);
    return out;
}

static int setup(void **state) {
    (void)state;
    QsfErr err = { 0 };
    qk_table_init(&table, qk_cpu_best());
    qsf_ledger_init(&ledger, 0);
    return qsf_sampler_create(&sampler, N, &table, &ledger, &err);
}

static int teardown(void **state) {
    (void)state;
    qsf_sampler_destroy(sampler);
    qsf_ledger_destroy(&ledger);
    return 0;
}

#endif
