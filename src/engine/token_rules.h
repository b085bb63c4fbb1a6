/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The settings logit-bias, ban and dry-breakers, which name tokens by text, for one vocabulary. One thread;
 * nothing is allocated. */
#ifndef QSF_ENGINE_TOKEN_RULES_H
#define QSF_ENGINE_TOKEN_RULES_H

#include "src/engine/runtime.h"
#include "src/engine/setting_lists.h"

#define QSF_RULES_ITEMS (QSF_SETTING_TEXT / 2) /* of a list: each has a byte and a comma */

typedef struct QsfTokenRule {
    uint16_t at, len; /* its text in QsfTokenRuleList.texts */
    int32_t id;       /* -1: by text */
    float bias;
    bool found; /* a token has the text */
} QsfTokenRule;

typedef struct QsfTokenRuleList {
    char value[QSF_SETTING_TEXT], texts[QSF_SETTING_TEXT];
    QsfTokenRule rule[QSF_RULES_ITEMS];
    size_t n, n_texts;
} QsfTokenRuleList;

/* Zeroed, it has no rules. */
typedef struct QsfTokenRules {
    QsfTokenRuleList biases, bans;
    QsfBias bias[QSF_RULES_ITEMS]; /* (n_bias) */
    size_t n_bias;
    uint64_t *denied;         /* of the sampler: tokens that have a banned text; NULL = none */
    char tail[QSF_LIST_ITEM]; /* (n_tail) the end of the text so far */
    size_t n_tail;
    char before[QSF_LIST_ITEM]; /* (n_before) the end of the text that dry-breakers are looked for in */
    size_t n_before;
    const QsfRuntime *rt;
    const QSFParams *params;
    char *const *piece; /* to (piece_cap) bytes of scratch, which may move */
    size_t piece_cap;
} QsfTokenRules;

/* Follows the parameters, which stay borrowed; cheap if nothing changed, otherwise a pass over the
 * vocabulary. QSF_E_USAGE: a bias for a token that the model does not have, or more tokens than
 * QSF_RULES_ITEMS. */
int qsf_token_rules_update(QsfTokenRules *r, const QSFParams *p, QsfErr *err);
/* Adds the text of a token to what was written. */
void qsf_token_rules_wrote(QsfTokenRules *r, int32_t id);
/* How many of the tokens, written one after another, have no banned text and no bias of -inf, up to the
 * first that has. Follows the parameters of the last update. */
size_t qsf_token_rules_allow(QsfTokenRules *r, const int32_t *ids, size_t n);
/* Fills what the sampler needs. */
void qsf_token_rules_input(QsfTokenRules *r, QsfSamplerInput *in);

#endif
