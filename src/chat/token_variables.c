/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The variables of a template that hold special tokens, as passed by huggingface/transformers: those that a
 * vocabulary has, and of the missing ones only bos_token and eos_token (empty), because templates rely on
 * them. */
#include <stdlib.h>
#include <string.h>

#include "src/chat/chat_impl.h"

/* Names and keys; the keys as in ggml-org/ggml docs/gguf.md. */
static const struct {
    const char *name, *key;
} FROM_KEYS[] = {
    { "unk_token", "tokenizer.ggml.unknown_token_id" }, { "sep_token", "tokenizer.ggml.seperator_token_id" },
    { "pad_token", "tokenizer.ggml.padding_token_id" }, { "cls_token", "tokenizer.ggml.cls_token_id" },
    { "mask_token", "tokenizer.ggml.mask_token_id" },
};

static int no_memory(QsfErr *err) { return qsf_err_memory(err, "special tokens of the chat template"); }

/* Sets or replaces a variable; when the array is full, others are ignored. */
static int put(QsfChatTemplate *t, const char *name, const char *text, size_t len, QsfErr *err) {
    size_t i = 0;
    while (i < t->n_vars && strcmp(t->vars[i].name, name) != 0) i++;
    if (i == QSF_CHAT_VARS) return QSF_OK;
    char *copy = strndup(text, len);
    if (copy == NULL) return no_memory(err);
    if (i == t->n_vars) {
        t->vars[i].name = strdup(name);
        if (t->vars[i].name == NULL) {
            free(copy);
            return no_memory(err);
        }
        t->n_vars++;
    }
    free(t->vars[i].text);
    t->vars[i].text = copy;
    return QSF_OK;
}

/* The stored text of token id; id -1 = none: then "" if always is set, otherwise no variable. */
static int put_id(QsfChatTemplate *t, const QsfTokenizer *tok, const char *name, int64_t id, bool always,
                  QsfErr *err) {
    size_t len = 0;
    bool known = id >= 0 && id < (int64_t)qsf_tokenizer_n_vocab(tok);
    if (!known && !always) return QSF_OK;
    const char *text = known ? qsf_tokenizer_raw(tok, (int32_t)id, &len) : "";
    return put(t, name, text, len, err);
}

/* Vocabularies without a key for the unknown token mark it by its type. */
static int64_t unknown_by_type(const QsfTokenizer *tok) {
    for (uint32_t id = 0; id < qsf_tokenizer_n_vocab(tok); id++)
        if (qsf_tokenizer_type(tok, (int32_t)id) == QSF_TOKEN_UNKNOWN) return id;
    return -1;
}

static int from_vocabulary(QsfChatTemplate *t, const QsfSource *src, const QsfTokenizer *tok, QsfErr *err) {
    int rc = put_id(t, tok, "bos_token", qsf_tokenizer_bos(tok), true, err);
    if (rc == QSF_OK) rc = put_id(t, tok, "eos_token", qsf_tokenizer_eos(tok), true, err);
    for (size_t i = 0; i < sizeof FROM_KEYS / sizeof *FROM_KEYS && rc == QSF_OK; i++) {
        QsfErr ignored = { 0 }; /* the tokenizer reports keys of a wrong type */
        int64_t id = -1;
        if (qsf_meta_i64(src, FROM_KEYS[i].key, -1, &id, &ignored) != QSF_OK) id = -1;
        if (id < 0 && i == 0) id = unknown_by_type(tok);
        rc = put_id(t, tok, FROM_KEYS[i].name, id, false, err);
    }
    return rc;
}

/* A token is a string, or an object with its text and flags. */
static const char *token_text(const QsfJson *v, size_t *len) {
    const QsfJson *content = qsf_json_get(v, "content");
    return qsf_json_string(content != NULL ? content : v, len);
}

static int from_config(QsfChatTemplate *t, const QsfJson *config, QsfErr *err) {
    const char *key, *text;
    const QsfJson *value;
    size_t len;
    int rc = QSF_OK;
    for (const void *it = NULL; rc == QSF_OK && (it = qsf_json_next(config, it, &key, &value)) != NULL;) {
        size_t n = strlen(key), end = strlen("_token");
        if (n <= end || strcmp(key + n - end, "_token") != 0) continue;
        if ((text = token_text(value, &len)) != NULL) rc = put(t, key, text, len, err);
    }
    const QsfJson *more = qsf_json_get(config, "additional_special_tokens");
    for (size_t i = 0; i < qsf_json_size(more) && t->n_more < QSF_CHAT_MORE && rc == QSF_OK; i++) {
        if ((text = token_text(qsf_json_at(more, i), &len)) == NULL) continue;
        if ((t->more[t->n_more] = strndup(text, len)) == NULL) return no_memory(err);
        t->n_more++;
    }
    return rc;
}

int qsf_chat_vars_init(QsfChatTemplate *t, const QsfSource *src, const QsfTokenizer *tok,
                       const QsfJson *config, QsfErr *err) {
    int rc = from_vocabulary(t, src, tok, err);
    return rc == QSF_OK && config != NULL ? from_config(t, config, err) : rc;
}

void qsf_chat_vars_free(QsfChatTemplate *t) {
    for (size_t i = 0; i < t->n_vars; i++) {
        free(t->vars[i].name);
        free(t->vars[i].text);
    }
    for (size_t i = 0; i < t->n_more; i++) free(t->more[i]);
    t->n_vars = t->n_more = 0;
}

static QsfJVal own_text(QsfJMem *m, const char *s) { return qsf_j_str(m, s, strlen(s), QSF_J_TEXT); }

void qsf_chat_vars_bind(const QsfChatTemplate *t, QsfJinjaVars *v) {
    QsfJMem *m = qsf_jinja_vars_mem(v);
    for (size_t i = 0; i < t->n_vars; i++) qsf_jinja_set(v, t->vars[i].name, own_text(m, t->vars[i].text));
    if (t->n_more == 0) return;
    QsfJVal list = qsf_j_list(m, QSF_J_LIST, t->n_more);
    for (size_t i = 0; i < t->n_more && list.type == QSF_J_LIST; i++)
        qsf_j_append(m, list.u.l, own_text(m, t->more[i]));
    qsf_jinja_set(v, "additional_special_tokens", list);
}
