/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When an expert will probably be used again: those that must wait longest are given up first.
 *
 * The rate of uses per position is the sum of two averages with different half-lives: one knows what the
 * conversation is about, the other one what the last positions chose. 1 / rate positions pass until the next
 * use, on average, and a block that is still to come in this position comes round earlier than one that has
 * just passed. The constants were chosen on one recorded answer and checked on others (docs/PERFORMANCE.md,
 * "Which experts stay").
 *
 * A prompt computes all its positions in a block before the next one. What is in memory of the blocks that
 * are to come is used once more in this pass, if the prompt chooses as large a part of their experts as of
 * those of the running block; so the blocks that have passed give up theirs first. */
#include <math.h>

#include "src/stream/expert_pool_impl.h"

#define SLOW_HALF   16.0f /* positions after which a use counts half */
#define FAST_HALF   1.0f
#define FAST_PART   0.3f  /* of the rate; the slow average has the rest */
#define PROMPT_PART 0.25f /* of the rate: prompts use other experts than answers */
#define SCALE_MOST  64.0f /* positions until the averages are scaled down */
#define RATE_LEAST  1e-9f
#define PROMPT_WAIT SLOW_HALF /* positions of an answer that a pass of a prompt counts as */

static float decay(float positions, float half) { return exp2f(-positions / half); }

/* Both averages have the unit of the last scaling. */
static void scale_down(QsfExpertPool *p) {
    const float fast = decay(p->now, FAST_HALF), slow = decay(p->now, SLOW_HALF);
    for (uint32_t e = 0; e < p->n_experts; e++) {
        p->expert[e].fast *= fast;
        p->expert[e].slow *= slow;
    }
    p->now = 0;
}

void qsf_expert_pool_begin_pass(QsfExpertPool *p, uint32_t n) {
    p->now += (float)n;
    if (p->now > SCALE_MOST) scale_down(p);
    p->part = n == 1 ? 1.0f : PROMPT_PART;
    p->fast_now = decay(p->now, FAST_HALF);
    p->slow_now = decay(p->now, SLOW_HALF);
    p->positions = n;
    p->block_to = p->n_chosen = 0;
    p->pass++;
    if (n == 1) qsf_expert_ahead_position(p);
}

/* The experts of the block that e belongs to. */
static void find_block(QsfExpertPool *p, uint32_t e) {
    const uint16_t block = p->expert[e].block;
    for (p->block_from = e; p->block_from > 0 && p->expert[p->block_from - 1].block == block;)
        p->block_from--;
    for (p->block_to = e + 1; p->block_to < p->n_experts && p->expert[p->block_to].block == block;)
        p->block_to++;
    p->n_chosen = 0;
}

float qsf_expert_chosen(const QsfExpertPool *p) {
    return p->n_chosen > 0 ? (float)p->n_chosen / (float)(p->block_to - p->block_from) : 0;
}

void qsf_expert_pool_use(QsfExpertPool *p, uint32_t unit, uint32_t later) {
    const uint32_t e = qsf_expert_find(p, unit);
    QsfExpert *x = &p->expert[e];
    const float fast = FAST_PART * (1 - decay(1, FAST_HALF)),
                slow = (1 - FAST_PART) * (1 - decay(1, SLOW_HALF));
    if (p->positions > 1 && (e < p->block_from || e >= p->block_to)) find_block(p, e);
    p->n_chosen += p->positions > 1 && x->used_in != p->pass;
    p->block = x->block;
    x->used_in = p->pass;
    if (later >= QSF_EXPERT_AGES) return;
    x->fast += p->part * fast * p->fast_age[later] / p->fast_now;
    x->slow += p->part * slow * p->slow_age[later] / p->slow_now;
}

float qsf_expert_wait(const QsfExpertPool *p, uint32_t e) {
    const QsfExpert *x = &p->expert[e];
    const float rate = x->fast * p->fast_now + x->slow * p->slow_now,
                blocks = (float)x->block - (float)p->block;
    if (p->positions > 1 && x->block > p->block) {
        const float chosen = qsf_expert_chosen(p), often = fminf(rate * (float)p->positions, 1),
                    part = chosen + (1 - chosen) * often;
        return PROMPT_WAIT * (1 / (part + RATE_LEAST) - 1) + blocks * p->each_block;
    }
    return 1 / (rate + RATE_LEAST) - 1 + blocks * p->each_block + (x->block > p->block ? 0 : 1);
}

void qsf_expert_set_rate(QsfExpertPool *p, uint32_t e, float rate) {
    p->expert[e].fast = 0;
    p->expert[e].slow = rate / p->slow_now;
}

void qsf_expert_policy_init(QsfExpertPool *p) {
    for (uint32_t e = 0; e < p->n_experts; e++) {
        p->expert[e].block = (uint16_t)p->units[p->unit[e]].u.layer;
        if (p->expert[e].block >= p->block) p->block = p->expert[e].block; /* as after a pass */
    }
    p->each_block = 1 / (1 + (float)p->block);
    for (uint32_t i = 0; i < QSF_EXPERT_AGES; i++) {
        p->fast_age[i] = decay((float)i, FAST_HALF);
        p->slow_age[i] = decay((float)i, SLOW_HALF);
    }
    qsf_expert_pool_begin_pass(p, 0);
}
