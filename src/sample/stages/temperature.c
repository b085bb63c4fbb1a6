/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Logits are divided by the temperature; at 0 only the likeliest token is left. With a dynamic range it
 * goes from temperature - range to temperature + range with the entropy of the candidates, as a part of the
 * largest possible one (kalomaze/koboldcpp; "dynatemp" of ggml-org/llama.cpp). */
#include <math.h>

#include "src/sample/chain.h"

static bool on(const QsfChain *c) {
    if (!(c->p->temperature > 0)) return !(c->p->least > 0);
    return c->p->temperature != 1.0f || c->p->dynatemp > 0;
}

static float dynamic(QsfChain *c) {
    const double t = (double)c->p->temperature, range = (double)c->p->dynatemp;
    const double exponent = c->p->dynatemp_exponent > 0 ? (double)c->p->dynatemp_exponent : 1;
    const double low = t > range ? t - range : 0, part = qsf_chain_entropy(c) / log((double)c->n);
    return (float)(low + (t + range - low) * pow(part < 0 ? 0 : part > 1 ? 1 : part, exponent));
}

static void apply(QsfChain *c) {
    float t = c->p->temperature;
    if (t > 0 && c->p->dynatemp > 0 && c->n > 1) t = dynamic(c);
    if (c->p->temperature > 0)
        c->temperature *= (double)qsf_chain_warm(t);
    else
        qsf_chain_keep_one(c, qsf_chain_best(c));
}

const QsfStage qsf_stage_temperature = { "temperature", "temp", QSF_STAGE_KEEPS_BEST, on, apply, NULL };
