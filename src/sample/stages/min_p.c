/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tokens that are at least min_p times as likely as the likeliest (Nguyen et al. 2024, "Turning Up the
 * Heat"). */
#include <math.h>

#include "src/sample/chain.h"

static bool on(const QsfChain *c) { return c->p->min_p > 0; }

static void apply(QsfChain *c) {
    qsf_chain_at_least(c, qsf_chain_max(c) + (float)(log((double)c->p->min_p) * c->temperature));
}

const QsfStage qsf_stage_min_p = { "min-p", "minp", QSF_STAGE_TRUNCATES | QSF_STAGE_KEEPS_BEST,
                                   on,      apply,  NULL };
