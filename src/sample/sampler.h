/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From logits to a token id: a chain of stages (src/sample/stages), then one draw. Parameters come by value
 * with every token, so that a live change acts at once. Allocates only at creation. One thread. */
#ifndef QSF_SAMPLE_SAMPLER_H
#define QSF_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "qsf_engine.h"
#include "src/base/ledger.h"

typedef struct QsfSampler QsfSampler;

/* Buffers for n_vocab candidates, charged to LOGITS. */
int qsf_sampler_create(QsfSampler **out, uint32_t n_vocab, const qk_table *table, QsfLedger *ledger,
                       QsfErr *err);
/* Frees the buffers. NULL is allowed. */
void qsf_sampler_destroy(QsfSampler *s);

/* Restarts the generator (xoshiro, seeded so that equal seeds give equal draws on every machine), and what
 * stages remember from token to token. */
void qsf_sampler_seed(QsfSampler *s, uint64_t seed);

/* A set of tokens: bit id % 64 of word id / 64. */
#define QSF_TOKEN_SET_WORDS(n_vocab) (((size_t)(n_vocab) + 63) / 64)

/* One token. What is zero is not used; everything is borrowed for the call. */
/* Added to the logit of a token; -INFINITY: it is never chosen. */
typedef struct QsfBias {
    int32_t id;
    float bias;
} QsfBias;

typedef struct QsfSamplerInput {
    const float *logits; /* (n_vocab), not changed */
    const QSFParams *params;
    const uint64_t *allowed; /* the set of tokens that may be chosen; NULL = all. Whatever the parameters
                                are, no other token is chosen */
    const int32_t *recent;   /* (n_recent) tokens of the conversation, oldest first, for penalties */
    size_t n_recent;
    const int32_t *banned; /* (n_banned) ids that may not be chosen (ignore_eos) */
    size_t n_banned;
    const QsfBias *bias; /* (n_bias) ids outside the vocabulary are ignored */
    size_t n_bias;
    const uint64_t *denied; /* the set of tokens that may not be chosen; NULL = none */
    /* Whether the token that was chosen may not be: then another one is. NULL: none; arg is of all three. */
    bool (*rejects)(void *arg, int32_t id);
    /* For dry: how many of the tokens at the end of ids (n), at most `most`, have no text at which repeated
     * sequences end; then whether such a text ends in a token that follows them. NULL: as breaks says of each
     * token alone; there is no such text. */
    size_t (*unbroken)(void *arg, const int32_t *ids, size_t n, size_t most);
    bool (*breaks)(void *arg, int32_t id);
    void *arg;
    /* May change the logits (n), which are a finite copy then, before everything else; NULL = none. What it
     * leaves NaN or -infinity is not chosen. Called again for the same token if one was rejected. */
    void (*change)(void *arg, float *logits, uint32_t n);
    void *change_arg;
    QSFWhy *why;    /* filled, unless the call fails; NULL = not needed. Costs up to as much as the call */
    uint32_t n_why; /* likeliest tokens in it, at most QSF_WHY_TOKENS - 1 */
} QsfSamplerInput;

typedef struct QsfSample {
    int32_t id;
    float p;       /* probability of id after the filters */
    float entropy; /* of the distribution after temperature, before the filters, in bits */
    uint32_t kept; /* candidates that survived all filters */
    float
        plain; /* entropy, in bits, of the distribution at temperature 1, if the sampler holds it; -1 = not */
} QsfSample;

/* Applies the stages in the order of params->samplers and draws. temperature 0: the likeliest token that is
 * left, the lowest id on a tie. QSF_E_RUNTIME when no token may be chosen: allowed is empty, or has only
 * tokens that are banned, or whose logits are -infinity or NaN; *out is then undefined. */
int qsf_sampler_next(QsfSampler *s, const QsfSamplerInput *in, QsfSample *out, QsfErr *err);

/* A set of tokens for the caller's use, in the sampler's memory; its content is undefined at first. */
uint64_t *qsf_sampler_set(QsfSampler *s);

/* The order of stages as text: names, separated by ',' or ';', of stages that are not always first or last;
 * '_' equals '-'. qsf_samplers_parse fills out (QSF_SAMPLERS_MAX) as QSFParams.samplers; "default" is the
 * default order. False with a sentence in why (cap) for an unknown name or one that comes twice. Any
 * thread. */
bool qsf_samplers_parse(const char *text, uint8_t *out, char *why, size_t cap);
/* Writes "default", or what reads back. */
void qsf_samplers_print(const uint8_t *samplers, char *dst, size_t cap);

/* Fills *out, except text_end and reasoning_end, with what the model says about token id of the vocabulary:
 * its distribution is softmax(logits), which must be finite, with the n likeliest tokens, at most
 * QSF_CANDIDATES_MOST. plain: that of the qsf_sampler_next that was
 * just called with the same logits, which then need not be passed over again; otherwise -1. Later draws do
 * not change. */
void qsf_sampler_look(QsfSampler *s, const float *logits, int32_t id, float plain, uint32_t n, QSFToken *out);
/* The same from what is known about the choice of a token, without another pass; false if that is too
 * little. */
bool qsf_sampler_look_why(const QSFWhy *w, uint32_t n, QSFToken *out);

#endif
