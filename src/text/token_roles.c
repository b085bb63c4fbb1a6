/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special ids: two tables, keys and texts. Both as in ggml-org/llama.cpp src/llama-vocab.cpp. */
#include "src/text/token_roles.h"

#include <string.h>

static const struct {
    QsfTokenRole role;
    const char *key;
} KEYS[] = {
    { QSF_TOKEN_ROLE_BOS, "tokenizer.ggml.bos_token_id" },
    { QSF_TOKEN_ROLE_EOS, "tokenizer.ggml.eos_token_id" },
    { QSF_TOKEN_ROLE_UNK, "tokenizer.ggml.unknown_token_id" },
    { QSF_TOKEN_ROLE_EOT, "tokenizer.ggml.eot_token_id" },
    { QSF_TOKEN_ROLE_EOM, "tokenizer.ggml.eom_token_id" },
    { QSF_TOKEN_ROLE_FIM_PRE, "tokenizer.ggml.prefix_token_id" },
    { QSF_TOKEN_ROLE_FIM_SUF, "tokenizer.ggml.suffix_token_id" },
    { QSF_TOKEN_ROLE_FIM_MID, "tokenizer.ggml.middle_token_id" },
    { QSF_TOKEN_ROLE_FIM_PRE, "tokenizer.ggml.fim_pre_token_id" },
    { QSF_TOKEN_ROLE_FIM_SUF, "tokenizer.ggml.fim_suf_token_id" },
    { QSF_TOKEN_ROLE_FIM_MID, "tokenizer.ggml.fim_mid_token_id" },
    { QSF_TOKEN_ROLE_FIM_PAD, "tokenizer.ggml.fim_pad_token_id" },
    { QSF_TOKEN_ROLE_FIM_REP, "tokenizer.ggml.fim_rep_token_id" },
    { QSF_TOKEN_ROLE_FIM_SEP, "tokenizer.ggml.fim_sep_token_id" },
};

#define BAR "\xEF\xBD\x9C" /* U+FF5C, the bar of DeepSeek's tokens */
#define LOW "\xE2\x96\x81" /* U+2581 */

/* Earlier rows take precedence. always_ends: ends a generation even if another token has the role. */
static const struct {
    QsfTokenRole role;
    bool always_ends;
    const char *text;
} TEXTS[] = {
    { QSF_TOKEN_ROLE_EOT, true, "<|eot_id|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|im_end|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|end|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<end_of_turn>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|endoftext|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<|end_of_text|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<EOT>" },
    { QSF_TOKEN_ROLE_EOT, true, "_<EOT>" },
    { QSF_TOKEN_ROLE_EOT, true, "[EOT]" },
    { QSF_TOKEN_ROLE_EOT, true, "<|return|>" },
    { QSF_TOKEN_ROLE_EOT, true, "<end_of_utterance>" },
    { QSF_TOKEN_ROLE_EOT, false, "<" BAR "end" LOW "of" LOW "sentence" BAR ">" },
    { QSF_TOKEN_ROLE_EOM, true, "<|eom_id|>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<|fim_prefix|>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<fim-prefix>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<" BAR "fim" LOW "begin" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, "<PRE>" },
    { QSF_TOKEN_ROLE_FIM_PRE, false, LOW "<PRE>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<|fim_suffix|>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<fim-suffix>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<" BAR "fim" LOW "hole" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, "<SUF>" },
    { QSF_TOKEN_ROLE_FIM_SUF, false, LOW "<SUF>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<|fim_middle|>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<fim-middle>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<" BAR "fim" LOW "end" BAR ">" },
    { QSF_TOKEN_ROLE_FIM_MID, false, "<MID>" },
    { QSF_TOKEN_ROLE_FIM_MID, false, LOW "<MID>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<|fim_pad|>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<fim-pad>" },
    { QSF_TOKEN_ROLE_FIM_PAD, false, "<PAD>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<|fim_repo|>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<|repo_name|>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<fim-repo>" },
    { QSF_TOKEN_ROLE_FIM_REP, false, "<REPO>" },
    { QSF_TOKEN_ROLE_FIM_SEP, false, "<|file_sep|>" },
};

static const QsfTokenRole ENDS[] = {
    QSF_TOKEN_ROLE_EOS,     QSF_TOKEN_ROLE_EOT,     QSF_TOKEN_ROLE_EOM,
    QSF_TOKEN_ROLE_FIM_PAD, QSF_TOKEN_ROLE_FIM_REP, QSF_TOKEN_ROLE_FIM_SEP,
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

int qsf_roles_read(QsfRoles *r, const QsfSource *src, const QsfVocab *v, const int32_t fallback[3],
                   QsfErr *err) {
    static const QsfTokenRole named[3] = { QSF_TOKEN_ROLE_BOS, QSF_TOKEN_ROLE_EOS, QSF_TOKEN_ROLE_UNK };
    *r = (QsfRoles){ 0 };
    for (size_t i = 0; i < QSF_TOKEN_ROLE_N; i++) r->id[i] = -1;
    for (size_t i = 0; i < 3; i++)
        if (fallback[i] < (int32_t)v->n) r->id[named[i]] = fallback[i];
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        int64_t id;
        if (!qsf_meta_has(src, KEYS[i].key)) continue;
        int rc = qsf_meta_i64(src, KEYS[i].key, -1, &id, err);
        if (rc != QSF_OK) return rc;
        if (id >= 0 && id < (int64_t)v->n) {
            r->id[KEYS[i].role] = (int32_t)id;
        } else {
            r->bad_key = KEYS[i].key;
        }
    }
    return QSF_OK;
}

void qsf_roles_complete(QsfRoles *r, QsfVocab *v) {
    for (size_t i = 0; i < COUNT(TEXTS); i++) {
        int32_t id = qsf_vocab_find(v, TEXTS[i].text, strlen(TEXTS[i].text));
        if (id < 0) continue;
        bool wins = r->id[TEXTS[i].role] < 0;
        if (wins) r->id[TEXTS[i].role] = id;
        if (wins || TEXTS[i].always_ends) qsf_vocab_set_type(v, id, QSF_TOKEN_CONTROL);
        if (TEXTS[i].always_ends) v->attr[id] |= QSF_ATTR_EOG;
    }
    for (size_t i = 0; i < COUNT(ENDS); i++) {
        int32_t id = r->id[ENDS[i]];
        if (id >= 0) v->attr[id] |= QSF_ATTR_EOG;
    }
}
