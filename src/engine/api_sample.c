/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf_sample, and the sampling parameters of qsf.h. */
#include <math.h>

#include "qsf.h"
#include "src/engine/api_impl.h"
#include "src/sample/rng.h"
#include "src/sample/sampler.h"

int qsf_api_check_sampling(float temperature, float top_p, QsfErr *err) {
    if (!(temperature >= 0 && isfinite(temperature)))
        return qsf_err_set(err, QSF_E_USAGE, "temperature is %g, must be 0 or more", (double)temperature);
    if (!(top_p > 0 && top_p <= 1))
        return qsf_err_set(err, QSF_E_USAGE, "top_p is %g, must be above 0 and at most 1", (double)top_p);
    return QSF_OK;
}

QSFParams qsf_api_sampling(float temperature, float top_p) {
    return (QSFParams){ .temperature = temperature, .top_p = top_p, .repeat_penalty = 1 };
}

/* Can a token be sampled: is there a logit that is neither NaN nor -infinity? */
static bool any_choice(const float *logits, int n) {
    for (int i = 0; i < n; i++)
        if (logits[i] > -INFINITY) return true;
    return false;
}

int qsf_sample(const float *logits, int vocab_size, float temperature, float top_p) {
    static _Thread_local bool seeded;
    static _Thread_local QsfRng rng;
    QsfErr *err = qsf_api_begin();
    QsfLedger ledger;
    qk_table table;
    QsfSampler *s;
    QsfSample out = { .id = -1 };
    if (logits == NULL || vocab_size < 1) {
        qsf_err_set(err, QSF_E_USAGE, "logits is NULL or empty");
        return -1;
    }
    if (qsf_api_check_sampling(temperature, top_p, err) != QSF_OK) return -1;
    if (!any_choice(logits, vocab_size)) {
        qsf_err_set(err, QSF_E_USAGE, "cannot sample: all %d logits are NaN or -infinity", vocab_size);
        return -1;
    }
    if (!seeded) qsf_rng_seed(&rng, qsf_random_seed());
    seeded = true;
    qk_table_init(&table, qk_cpu_best());
    qsf_ledger_init(&ledger, 0);
    if (qsf_sampler_create(&s, (uint32_t)vocab_size, &table, &ledger, err) == QSF_OK) {
        QSFParams p = qsf_api_sampling(temperature, top_p);
        qsf_sampler_seed(s, qsf_rng_next(&rng));
        const QsfSamplerInput in = { .logits = logits, .params = &p };
        if (qsf_sampler_next(s, &in, &out, err) != QSF_OK) out.id = -1;
        qsf_sampler_destroy(s);
    }
    qsf_ledger_destroy(&ledger);
    return out.id;
}
