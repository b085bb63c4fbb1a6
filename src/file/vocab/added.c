/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special tokens of Hugging Face tokenizers: added tokens, tokens that a post-processor adds around a text,
 * and tokenizer_config.json. */
#include <stdio.h>
#include <string.h>

#include "src/file/vocab/draft.h"

/* A member that this program does not know may change where the token is found. */
static int check_members(const QsfVocabDraft *d, uint64_t id, const QsfJson *v, QsfErr *err) {
    static const char *const known[] = { "id",     "content",     "special",    "lstrip",
                                         "rstrip", "single_word", "normalized", "__type" };
    const char *key;
    const QsfJson *value;
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &value)) != NULL;) {
        size_t i = 0, n = sizeof known / sizeof *known;
        while (i < n && strcmp(known[i], key) != 0) i++;
        if (i == n)
            return qsf_err_set(err, QSF_E_MODEL, "%s: added token %llu with \"%.80s\" is not supported",
                               d->s->files[0].path, (unsigned long long)id, key);
    }
    return QSF_OK;
}

int qsf_hf_added_token(QsfVocabDraft *d, uint64_t id, const QsfJson *v, QsfErr *err) {
    size_t len;
    const char *text = qsf_json_string(qsf_json_get(v, "content"), &len);
    if (text == NULL)
        return qsf_err_set(err, QSF_E_MODEL, "%s: added token %llu has no content", d->s->files[0].path,
                           (unsigned long long)id);
    int rc = check_members(d, id, v, err);
    if (rc != QSF_OK) return rc;
    bool special = qsf_json_bool(qsf_json_get(v, "special"), false);
    const bool is_new = id >= d->n || d->tok[id].type == 0;
    bool unknown = id < d->n && d->tok[id].type == QSF_DRAFT_UNKNOWN;
    int type = unknown ? QSF_DRAFT_UNKNOWN : special ? QSF_DRAFT_CONTROL : QSF_DRAFT_USER;
    rc = qsf_draft_set(d, id, text, len, 0, type, err);
    if (rc != QSF_OK) return rc;
    QsfDraftToken *t = &d->tok[id];
    t->added = len > 0;
    t->added_only = t->added_only || is_new;
    t->lstrip = qsf_json_bool(qsf_json_get(v, "lstrip"), false);
    t->rstrip = qsf_json_bool(qsf_json_get(v, "rstrip"), false);
    t->single_word = qsf_json_bool(qsf_json_get(v, "single_word"), false);
    t->normalized = qsf_json_bool(qsf_json_get(v, "normalized"), !special);
    return QSF_OK;
}

/* --- tokens around a text --- */

static int32_t template_token(const QsfVocabDraft *d, const QsfJson *part) {
    size_t len;
    const char *s = qsf_json_string(qsf_json_get(qsf_json_get(part, "SpecialToken"), "id"), &len);
    return s != NULL ? qsf_draft_find(d, s, len) : -1;
}

/* A single token before the text is BOS, a single one after it EOS; a sequence of several is left to the chat
 * template, which contains it. */
static void read_template(QsfVocabDraft *d, const QsfJson *parts) {
    size_t n = qsf_json_size(parts), text = 0;
    while (text < n && qsf_json_get(qsf_json_at(parts, text), "Sequence") == NULL) text++;
    if (text == n) return;
    int32_t bos = text == 1 ? template_token(d, qsf_json_at(parts, 0)) : -1;
    int32_t eos = n - text == 2 ? template_token(d, qsf_json_at(parts, n - 1)) : -1;
    d->add_bos = bos >= 0;
    d->add_eos = eos >= 0;
    if (bos >= 0) d->bos = bos;
    if (eos >= 0) d->eos = eos;
}

/* RobertaProcessing and BertProcessing have "cls" and "sep", each a pair of text and id. */
static void read_pair(const QsfVocabDraft *d, const QsfJson *pair, int32_t *id, int *add) {
    int64_t v = qsf_json_int(qsf_json_at(pair, 1), -1);
    if (v < 0 || v >= (int64_t)d->n) return;
    *id = (int32_t)v;
    *add = 1;
}

void qsf_hf_post_processor(QsfVocabDraft *d, const QsfJson *v) {
    const QsfJson *list = qsf_json_get(v, "processors");
    size_t n = list != NULL ? qsf_json_size(list) : 1;
    if (d->add_bos < 0) d->add_bos = 0;
    if (d->add_eos < 0) d->add_eos = 0;
    for (size_t i = 0; i < n; i++) {
        const QsfJson *p = list != NULL ? qsf_json_at(list, i) : v;
        const QsfJson *single = qsf_json_get(p, "single");
        if (single != NULL) read_template(d, single);
        read_pair(d, qsf_json_get(p, "cls"), &d->bos, &d->add_bos);
        read_pair(d, qsf_json_get(p, "sep"), &d->eos, &d->add_eos);
    }
}

/* --- tokenizer_config.json --- */

/* Finds a token given by its text, or by an object with the text as "content". */
static void named_token(const QsfVocabDraft *d, const QsfJson *v, int32_t *id) {
    size_t len;
    const char *s = qsf_json_string(v, &len);
    if (s == NULL) s = qsf_json_string(qsf_json_get(v, "content"), &len);
    int32_t found = s != NULL ? qsf_draft_find(d, s, len) : -1;
    if (found >= 0) *id = found;
}

static void read_flag(const QsfJson *v, const char *key, int *flag) {
    const QsfJson *f = qsf_json_get(v, key);
    if (f != NULL && qsf_json_type(f) == QSF_JSON_BOOL) *flag = qsf_json_bool(f, false);
}

static int later_tokens(QsfVocabDraft *d, const QsfJson *list, QsfErr *err) {
    const char *key;
    const QsfJson *v;
    int rc = QSF_OK;
    for (const void *it = NULL; rc == QSF_OK && (it = qsf_json_next(list, it, &key, &v)) != NULL;) {
        uint64_t id = 0;
        size_t n = strspn(key, "0123456789");
        bool ok = n > 0 && n < 10 && key[n] == '\0';
        for (size_t i = 0; ok && i < n; i++) id = id * 10 + (uint64_t)(key[i] - '0');
        if (!ok)
            return qsf_err_set(err, QSF_E_MODEL, "added_tokens_decoder: \"%.40s\" is not a token id", key);
        rc = qsf_hf_added_token(d, id, v, err);
    }
    return rc;
}

int qsf_hf_config(QsfVocabDraft *d, const QsfJson *v, QsfErr *err) {
    int rc = later_tokens(d, qsf_json_get(v, "added_tokens_decoder"), err);
    if (rc != QSF_OK) return rc;
    named_token(d, qsf_json_get(v, "bos_token"), &d->bos);
    named_token(d, qsf_json_get(v, "eos_token"), &d->eos);
    named_token(d, qsf_json_get(v, "unk_token"), &d->unk);
    named_token(d, qsf_json_get(v, "pad_token"), &d->pad);
    read_flag(v, "add_bos_token", &d->add_bos);
    read_flag(v, "add_eos_token", &d->add_eos);
    read_flag(v, "clean_up_tokenization_spaces", &d->clean_spaces);
    return qsf_hf_templates(d->s, qsf_json_get(v, "chat_template"), err);
}
