/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many tokens a text has at least: a token stands for no more bytes than its stored text has, unless the
 * vocabulary drops or shortens text first. */
#include "src/token/tokenizer_impl.h"

#define FORM_SHRINKS 4u /* a normal form has at least a quarter of the bytes: 4 become 1, or 8 become 3 */

static bool all_have_tokens(const int32_t id[256]) {
    for (unsigned b = 0; b < 256; b++)
        if (id[b] < 0) return false;
    return true;
}

/* Whether every byte of what the algorithm is given becomes a part of a token or a token. */
static bool keeps_all(const QsfTokenizer *t) {
    switch (t->kind->algorithm) {
    case QSF_ALG_SPM: return !qsf_charsmap_active(&t->charsmap) && all_have_tokens(t->spm.byte_id);
    case QSF_ALG_BPE:
        if (t->bpe.trained && t->bpe.fallback) return all_have_tokens(t->bpe.fallback_id);
        if (t->bpe.trained && (t->bpe.chars || t->bpe.mapped)) return false;
        return all_have_tokens(t->bpe.byte_id);
    case QSF_ALG_UNIGRAM:
        return !qsf_charsmap_active(&t->charsmap) && t->unigram.fallback && !t->unigram.trained;
    case QSF_ALG_GREEDY:
    case QSF_ALG_PLAMO: break;
    }
    return false;
}

/* By how much the steps may shorten a text; 0 = to nothing. */
static unsigned steps_shrink(const QsfTextSteps *s) {
    unsigned shrink = 1;
    for (unsigned i = 0; i < s->n; i++) {
        const QsfTextStep *step = &s->step[i];
        switch (step->kind) {
        case QSF_TEXT_STEP_FORM: shrink *= FORM_SHRINKS; break;
        case QSF_TEXT_STEP_SPLIT:
            if (step->cut == QSF_CUT_REMOVED) return 0;
            break;
        case QSF_TEXT_STEP_REPLACE_TEXT:
            if (step->by_len < step->len) return 0;
            break;
        case QSF_TEXT_STEP_SPACES:
            if (step->len == 0) return 0;
            break;
        case QSF_TEXT_STEP_PREPEND:
        case QSF_TEXT_STEP_PREFIX:
        case QSF_TEXT_STEP_BYTES: break;
        default: return 0;
        }
        if (shrink > FORM_SHRINKS) return 0;
    }
    return shrink;
}

static bool strips(const QsfVocab *v) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->attr[i] & (QSF_ATTR_LSTRIP | QSF_ATTR_RSTRIP)) return true;
    return false;
}

/* Counts bytes that are not in any white space. */
static size_t count_graphic(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += text[i] > ' ' && text[i] < 0x7F;
    return n;
}

size_t qsf_tokenizer_least(const QsfTokenizer *t, const char *text, size_t len) {
    unsigned shrink = t->steps.present ? steps_shrink(&t->steps) : t->normal_form >= 0 ? FORM_SHRINKS : 1;
    if (shrink == 0 || t->vocab.max_len == 0 || !keeps_all(t)) return 0;
    if (len / t->vocab.max_len / shrink == 0) return 0;
    return (strips(&t->vocab) ? count_graphic(text, len) : len) / t->vocab.max_len / shrink;
}
