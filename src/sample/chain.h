/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state that the stages of the sampler work on, and the table of stages. Candidates begin as the whole
 * vocabulary (dense: their logits are x) and become a list (cand) with the first stage that chooses some of
 * them. A temperature is not applied to logits: probabilities are softmax(logit / temperature), so that a
 * later stage finds the logits exact. Only for files of src/sample; one thread; nothing is allocated. */
#ifndef QSF_SAMPLE_CHAIN_H
#define QSF_SAMPLE_CHAIN_H

#include <stdbool.h>

#include "src/sample/rng.h"
#include "src/sample/sampler.h"

/* Logit of tokens that cannot be chosen; finite, so that differences are not NaN. */
#define QSF_LOGIT_LOWEST (-1e30f)

/* What stages remember from token to token; zeroed by qsf_sampler_seed. */
typedef struct QsfChainMemory {
    bool mirostat, adaptive; /* what follows has begun */
    double mu;               /* mirostat: the most surprise, in bits */
    double p_sum, p_weight;  /* adaptive-p: of the probabilities of chosen tokens, decayed */
} QsfChainMemory;

typedef struct QsfChain {
    const QsfSamplerInput *in;
    const QSFParams *p;
    const qk_table *table;
    QsfRng *rng;
    QsfChainMemory *memory;
    const uint64_t *allowed; /* as in, without those that were rejected */
    uint32_t n_vocab;
    bool dense;
    bool sorted;        /* the list is best first, the lower id first on a tie */
    uint32_t n;         /* candidates left */
    bool removed;       /* dense: some x are QSF_LOGIT_LOWEST */
    bool changed;       /* logits are no longer those of the model */
    double temperature; /* so far; 1 before the stage of that name */
    float entropy;      /* at p->temperature, before anything was removed, in bits; -1 = not known yet */
    bool best_known;
    size_t best;            /* index of the largest x or candidate, if best_known */
    qk_pick *cand;          /* (n_vocab) */
    float *x;               /* (n_vocab) logits; not needed, but overwritten, when no longer dense */
    float *prob;            /* (n_vocab), after x in memory: scratch, or probabilities (prob_temperature) */
    float prob_temperature; /* prob is softmax(x / it); 0 = something else */
    float nats;             /* the entropy of prob then */
    bool prob_by_id;        /* prob has what a stage needs after the draw */
    double share;           /* mirostat: probability of what it kept */
    uint32_t applied;       /* bit i: stage i of the table */
    double u;               /* the random number of the draw; -1 = none was needed */
} QsfChain;

enum {
    QSF_STAGE_FIXED = 1,     /* first or last, as in the table, whatever the order is */
    QSF_STAGE_LOGITS = 2,    /* only changes logits */
    QSF_STAGE_TRUNCATES = 4, /* not applied with mirostat, which has its own limit */
    QSF_STAGE_KEEPS_BEST = 8 /* never removes the likeliest token: without effect at temperature 0 */
};

typedef struct QsfStage {
    const char *name;
    const char *aliases; /* "temp,x", or "" */
    unsigned flags;      /* QSF_STAGE_* */
    /* Would apply() do anything? */
    bool (*on)(const QsfChain *c);
    /* Leaves at least one candidate, if there is one. */
    void (*apply)(QsfChain *c);
    /* After the draw, if it was applied; may be NULL. */
    void (*drawn)(QsfChain *c, const QsfSample *s);
} QsfStage;

extern const QsfStage qsf_stage_logit_bias, qsf_stage_constraints, qsf_stage_penalties, qsf_stage_dry,
    qsf_stage_top_n_sigma, qsf_stage_top_k, qsf_stage_typical, qsf_stage_top_p, qsf_stage_min_p,
    qsf_stage_xtc, qsf_stage_least, qsf_stage_temperature, qsf_stage_mirostat, qsf_stage_adaptive_p;

/* The stages in their default order, and their number. A place in it + 1 is the number of a stage in
 * QSFParams.samplers. */
extern const QsfStage *const qsf_sampler_stages[];
extern const size_t qsf_n_sampler_stages;

/* NaN, which compares false with everything, and -infinity become QSF_LOGIT_LOWEST. */
float qsf_logit_clean(float v);
/* A temperature above 0, but not so low that numbers overflow. */
float qsf_chain_warm(float temperature);
/* Nats to bits, never below 0. */
float qsf_bits(float nats);

/* Index of the likeliest candidate: of x when dense, otherwise of cand; the lowest id on a tie. */
size_t qsf_chain_best(QsfChain *c);
/* Its logit. */
float qsf_chain_max(QsfChain *c);
/* Dense only: makes prob the probabilities. */
void qsf_chain_probabilities(QsfChain *c);
/* The logit of a token that has probability p. */
float qsf_chain_logit_of(QsfChain *c, double p);
/* The entropy of the candidates, in nats. */
double qsf_chain_entropy(QsfChain *c);
/* Dense only: this token can no longer be chosen. */
void qsf_chain_forbid(QsfChain *c, size_t id);
/* Only this candidate is left: an index in x or cand. */
void qsf_chain_keep_one(QsfChain *c, size_t i);
/* Keeps the k likeliest. */
void qsf_chain_top_k(QsfChain *c, size_t k);
/* The sum of exp((logit - max) / temperature) of all candidates. */
double qsf_chain_total(QsfChain *c);
/* Is the list so long that its probabilities are computed by a kernel, in float? The others are in double. */
bool qsf_chain_is_long(const QsfChain *c);
/* A long list only: x[i] becomes the probability of candidate i. Returns the entropy in nats. */
double qsf_chain_soften(QsfChain *c);
/* To be called after logits were changed. */
void qsf_chain_changed(QsfChain *c);
/* The first n of cand are the candidates now, except those that cannot be chosen. */
void qsf_chain_adopt(QsfChain *c, size_t n);
/* Keeps the candidates whose logit is at least limit; the likeliest stays in any case. */
void qsf_chain_at_least(QsfChain *c, float limit);
/* What a selection keeps: `count` candidates, or with count 0 until the sum of their weights,
 * exp((logit - max) / temperature), reaches `weight`. The first `sure` candidates are kept besides these. */
typedef struct QsfSelection {
    double max, weight;
    size_t count, sure;
} QsfSelection;
/* A list only: of the candidates that are not sure, keeps those of the largest keys, key[i].x being that of
 * candidate key[i].id; the order of the list stays. key (n - sure) is reordered; it may be qsf_chain_scratch.
 * At least one is kept. Takes O(n) steps, as nothing is sorted. */
void qsf_chain_select(QsfChain *c, qk_pick *key, const QsfSelection *s);
/* n_vocab elements in the memory of x and prob, for lists. */
qk_pick *qsf_chain_scratch(QsfChain *c);

/* Applies the stages in the order of p->samplers. False when no candidate is left. Where all logits are NaN,
 * those that are left cannot be chosen. */
bool qsf_chain_run(QsfChain *c);
/* To be called with the token that was drawn. */
void qsf_chain_drawn(QsfChain *c, const QsfSample *s);

#endif
