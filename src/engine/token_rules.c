/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles lists of texts, and looks for banned texts. */
#include "src/engine/token_rules.h"

#include <math.h>
#include <string.h>

static size_t text_of(const QsfTokenRules *r, int32_t id, bool special) {
    const size_t n = qsf_tokenizer_piece(r->rt->tok, id, special, *r->piece, r->piece_cap);
    return n < r->piece_cap ? n : r->piece_cap;
}

static uint32_t n_vocab(const QsfTokenRules *r) {
    const uint32_t n = qsf_tokenizer_n_vocab(r->rt->tok), logits = r->rt->model.hp.n_vocab;
    return n < logits ? n : logits;
}

/* Splits a value that the settings have checked. */
static void split(QsfTokenRuleList *l, const char *value, bool biased) {
    const char *at = l->value, *item;
    size_t len;
    memcpy(l->value, value, sizeof l->value);
    l->n = l->n_texts = 0;
    while (l->n < QSF_RULES_ITEMS && qsf_list_next(&at, &item, &len)) {
        QsfListToken token;
        float bias = -INFINITY;
        if (!(biased ? qsf_list_bias(item, len, &token, &bias) : qsf_list_token(item, len, &token))) continue;
        if (token.len > sizeof l->texts - l->n_texts) break; /* never: a text is not longer than its item */
        memcpy(l->texts + l->n_texts, token.text, token.len);
        l->rule[l->n++] = (QsfTokenRule){
            .at = (uint16_t)l->n_texts, .len = (uint16_t)token.len, .id = token.id, .bias = bias
        };
        l->n_texts += token.len;
    }
}

static int add_bias(QsfTokenRules *r, int32_t id, float bias, QsfErr *err) {
    if (r->n_bias == QSF_RULES_ITEMS)
        return qsf_err_set(err, QSF_E_USAGE, "logit-bias: more than %d tokens have these texts",
                           QSF_RULES_ITEMS);
    r->bias[r->n_bias++] = (QsfBias){ id, bias };
    return QSF_OK;
}

/* Biases of the token whose text is in the scratch. */
static int match(QsfTokenRules *r, int32_t id, size_t len, QsfErr *err) {
    QsfTokenRuleList *l = &r->biases;
    for (size_t i = 0; i < l->n; i++) {
        QsfTokenRule *one = &l->rule[i];
        if (one->id >= 0 || one->len != len || memcmp(l->texts + one->at, *r->piece, len) != 0) continue;
        one->found = true;
        int rc = add_bias(r, id, one->bias, err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}

static int compile_biases(QsfTokenRules *r, QsfErr *err) {
    QsfTokenRuleList *l = &r->biases;
    const uint32_t n = n_vocab(r);
    bool by_text = false;
    int rc = QSF_OK;
    r->n_bias = 0;
    for (size_t i = 0; rc == QSF_OK && i < l->n; i++) {
        by_text = by_text || l->rule[i].id < 0;
        if (l->rule[i].id < 0) continue;
        if ((uint32_t)l->rule[i].id >= n)
            return qsf_err_set(err, QSF_E_USAGE, "logit-bias: there is no token #%d: the model has %u tokens",
                               (int)l->rule[i].id, n);
        rc = add_bias(r, l->rule[i].id, l->rule[i].bias, err);
    }
    for (uint32_t id = 0; rc == QSF_OK && by_text && id < n; id++)
        rc = match(r, (int32_t)id, text_of(r, (int32_t)id, true), err);
    for (size_t i = 0; rc == QSF_OK && i < l->n; i++)
        if (l->rule[i].id < 0 && !l->rule[i].found)
            return qsf_err_set(err, QSF_E_USAGE, "logit-bias: no token of this model has the text '%.*s'%s",
                               (int)l->rule[i].len, l->texts + l->rule[i].at,
                               r->rt->settings.commands ? "; /bias off TOKEN removes it" : "");
    return rc;
}

/* Does text have a banned one that ends after its first `old` bytes? */
static bool has_banned(const QsfTokenRuleList *l, const char *text, size_t len, size_t old) {
    for (size_t i = 0; i < l->n; i++) {
        const QsfTokenRule *one = &l->rule[i];
        const size_t from = old >= one->len ? old - one->len + 1 : 0;
        if (one->len > 0 && len >= from + one->len &&
            memmem(text + from, len - from, l->texts + one->at, one->len) != NULL)
            return true;
    }
    return false;
}

static int compile_bans(QsfTokenRules *r, QsfErr *err) {
    const uint32_t n = n_vocab(r);
    r->denied = NULL;
    if (r->bans.n == 0) return QSF_OK;
    uint64_t *set = qsf_sampler_set(r->rt->sampler);
    memset(set, 0, QSF_TOKEN_SET_WORDS(n) * sizeof *set);
    for (size_t i = 0; i < r->bans.n; i++) {
        const int32_t id = r->bans.rule[i].id;
        if (id >= 0 && (uint32_t)id >= n)
            return qsf_err_set(err, QSF_E_USAGE, "ban: there is no token #%d: the model has %u tokens",
                               (int)id, n);
        if (id >= 0) set[id / 64] |= (uint64_t)1 << (id % 64);
    }
    for (uint32_t id = 0; id < n; id++)
        if (has_banned(&r->bans, *r->piece, text_of(r, (int32_t)id, false), 0))
            set[id / 64] |= (uint64_t)1 << (id % 64);
    r->denied = set;
    return QSF_OK;
}

int qsf_token_rules_update(QsfTokenRules *r, const QSFParams *p, QsfErr *err) {
    int rc = QSF_OK;
    r->params = p;
    if (strcmp(p->logit_bias, r->biases.value) != 0) {
        split(&r->biases, p->logit_bias, true);
        rc = compile_biases(r, err);
    }
    if (rc == QSF_OK && strcmp(p->ban, r->bans.value) != 0) {
        split(&r->bans, p->ban, false);
        rc = compile_bans(r, err);
    }
    return rc;
}

void qsf_token_rules_wrote(QsfTokenRules *r, int32_t id) {
    size_t n = text_of(r, id, false), keep = sizeof r->tail;
    const char *text = *r->piece;
    if (n >= keep) {
        text += n - keep;
        n = keep;
    }
    keep -= n;
    if (r->n_tail > keep) {
        memmove(r->tail, r->tail + (r->n_tail - keep), keep);
        r->n_tail = keep;
    }
    memcpy(r->tail + r->n_tail, text, n);
    r->n_tail += n;
}

/* With what was written, does the token complete a banned text? */
static bool rejects(void *arg, int32_t id) {
    QsfTokenRules *r = arg;
    char text[2 * QSF_LIST_ITEM];
    size_t n = text_of(r, id, false);
    if (n > QSF_LIST_ITEM) n = QSF_LIST_ITEM; /* the rest is in the set of the tokens */
    memcpy(text, r->tail, r->n_tail);
    memcpy(text + r->n_tail, *r->piece, n);
    return has_banned(&r->bans, text, r->n_tail + n, r->n_tail);
}

static bool forbids(QsfTokenRules *r, int32_t id) {
    for (size_t i = 0; i < r->n_bias; i++)
        if (r->bias[i].id == id && isinf(r->bias[i].bias)) return true;
    if (r->denied != NULL && (r->denied[id / 64] >> (id % 64) & 1) != 0) return true;
    return r->bans.n_texts > 0 && rejects(r, id);
}

size_t qsf_token_rules_allow(QsfTokenRules *r, const int32_t *ids, size_t n) {
    const size_t n_tail = r->n_tail;
    char tail[sizeof r->tail];
    size_t i = 0;
    if (r->n_bias == 0 && r->bans.n == 0) return n;
    memcpy(tail, r->tail, n_tail);
    for (; i < n && !forbids(r, ids[i]); i++) qsf_token_rules_wrote(r, ids[i]);
    memcpy(r->tail, tail, n_tail);
    r->n_tail = n_tail;
    return i;
}

/* --- texts at which repeated sequences end --- */

/* Does text have one that ends after its first `old` bytes? */
static bool has_breaker(const QsfTokenRules *r, const char *text, size_t n, size_t old) {
    const char *at = r->params->dry_breakers, *item;
    char one[QSF_LIST_ITEM];
    size_t len, one_len;
    while (qsf_list_next(&at, &item, &len)) {
        if (!qsf_list_text(item, len, one, &one_len)) continue;
        const size_t from = old >= one_len ? old - one_len + 1 : 0;
        if (n >= from + one_len && memmem(text + from, n - from, one, one_len) != NULL) return true;
    }
    return false;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The beginning of a text becomes that of piece (n) with it. */
static void prepend(char *text, size_t *len, const char *piece, size_t n) {
    const size_t head = least(n, QSF_LIST_ITEM), rest = least(*len, QSF_LIST_ITEM - head);
    memmove(text + head, text, rest);
    memcpy(text, piece, head);
    *len = head + rest;
}

/* Goes back token by token; a text may begin in a token and end in a later one. A special token ends a
 * sequence, too. */
static size_t unbroken(void *arg, const int32_t *ids, size_t n, size_t most) {
    QsfTokenRules *r = arg;
    char after[QSF_LIST_ITEM], join[2 * QSF_LIST_ITEM];
    size_t n_after = 0, count = 0;
    r->n_before = 0;
    for (; count < most && count < n; count++) {
        const size_t len = text_of(r, ids[n - 1 - count], false), tail = least(len, QSF_LIST_ITEM);
        if (len == 0 || has_breaker(r, *r->piece, len, 0)) break;
        memcpy(join, *r->piece + (len - tail), tail);
        memcpy(join + tail, after, n_after);
        if (has_breaker(r, join, tail + n_after, tail)) break;
        const size_t space = least(tail, sizeof r->before - r->n_before);
        memmove(r->before + space, r->before, r->n_before);
        memcpy(r->before, *r->piece + (len - space), space);
        r->n_before += space;
        prepend(after, &n_after, *r->piece, len);
    }
    return count;
}

static bool breaks(void *arg, int32_t id) {
    QsfTokenRules *r = arg;
    char join[2 * QSF_LIST_ITEM];
    const size_t n = text_of(r, id, false), head = least(n, QSF_LIST_ITEM);
    if (n == 0 || has_breaker(r, *r->piece, n, 0)) return true;
    memcpy(join, r->before, r->n_before);
    memcpy(join + r->n_before, *r->piece, head);
    return has_breaker(r, join, r->n_before + head, r->n_before);
}

void qsf_token_rules_input(QsfTokenRules *r, QsfSamplerInput *in) {
    in->bias = r->bias;
    in->n_bias = r->n_bias;
    in->denied = r->denied;
    in->rejects = r->bans.n_texts > 0 ? rejects : NULL;
    in->unbroken = unbroken;
    in->breaks = breaks;
    in->arg = r;
}
