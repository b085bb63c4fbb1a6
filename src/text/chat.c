/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing the chat template: the model's own, a file that the user names, or a file in place of a template
 * that we cannot run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/text/chat_impl.h"

#define KEY_TEMPLATE "tokenizer.chat_template"

/* The stored text of a token as a string of its own. */
static char *token_text(const QsfTokenizer *tok, int32_t id) {
    size_t len = 0;
    const char *p = id < 0 ? "" : qsf_tokenizer_raw(tok, id, &len);
    return strndup(p, len);
}

/* Compiles; takes text and name, also when it fails. where names the template in messages. */
static int make(QsfChatTemplate **out, const QsfTokenizer *tok, char *text, size_t len, char *name,
                const char *where, QsfErr *err) {
    QsfChatTemplate *t = calloc(1, sizeof *t);
    *out = NULL;
    if (t == NULL) {
        free(text);
        free(name);
        return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: chat template");
    }
    *t = (QsfChatTemplate){ .name = name,
                            .source = text,
                            .source_len = len,
                            .bos = token_text(tok, qsf_tokenizer_bos(tok)),
                            .eos = token_text(tok, qsf_tokenizer_eos(tok)) };
    int rc = QSF_OK;
    if (text == NULL || name == NULL || t->bos == NULL || t->eos == NULL)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "out of memory: chat template");
    else if ((rc = qsf_jinja_compile(&t->jinja, text, len, NULL, err)) != QSF_OK)
        qsf_err_prefix(err, "chat template %s", where);
    if (rc == QSF_OK)
        *out = t;
    else
        qsf_chat_template_close(t);
    return rc;
}

void qsf_chat_template_close(QsfChatTemplate *t) {
    if (t == NULL) return;
    qsf_jinja_free(t->jinja);
    free(t->name);
    free(t->source);
    free(t->bos);
    free(t->eos);
    free(t);
}

const char *qsf_chat_template_name(const QsfChatTemplate *t) { return t->name; }
const char *qsf_chat_template_source(const QsfChatTemplate *t) { return t->source; }

static int open_file(QsfChatTemplate **out, const QsfTokenizer *tok, const char *name, QsfErr *err) {
    char *text, *base;
    size_t len;
    int rc = qsf_chat_file_read(name, &text, &len, &base, err);
    return rc != QSF_OK ? rc : make(out, tok, text, len, base, name, err);
}

/* --- a file in place of the model's template --- */

/* What a family of templates cannot do without, the most telling ones first. */
static const struct {
    const char *mark, *file;
    bool token; /* the mark is one token of the vocabularies of that family */
} families[] = {
    { "<|im_start|>", "chatml", true },   { "<|start_header_id|>", "llama3", true },
    { "<start_of_turn>", "gemma", true }, { "<|end|>", "phi3", true },
    { "<|user|>", "zephyr", false },      { "<<SYS>>", "llama2", false },
    { "[INST]", "mistral", true },        { "### Instruction", "alpaca", false },
};

/* The file for a template with this text (NULL: only by the vocabulary), or NULL. */
static const char *family_of(const char *text, size_t len, const QsfTokenizer *tok) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const char *mark = families[i].mark;
        if (text != NULL && memmem(text, len, mark, strlen(mark)) != NULL) return families[i].file;
        if (text == NULL && families[i].token && qsf_tokenizer_find(tok, mark, strlen(mark)) >= 0)
            return families[i].file;
    }
    return NULL;
}

/* Does it render at all? A template may refuse (raise) what we try, but not break. */
static int try_out(const QsfChatTemplate *t, QsfErr *err) {
    QsfErr e = { 0 };
    bool raised;
    int rc = qsf_chat_try(t, &raised, &e);
    return rc == QSF_OK || raised ? QSF_OK : qsf_err_set(err, QSF_E_MODEL, "%s", e.msg);
}

static int open_replacement(QsfChatTemplate **out, const QsfTokenizer *tok, const char *text, size_t len,
                            const QsfErr *why, char *notice, size_t notice_cap, QsfErr *err) {
    const char *file = family_of(text, len, tok);
    QsfErr ignored = { 0 };
    if (file == NULL) file = family_of(NULL, 0, tok);
    if (file == NULL || open_file(out, tok, file, &ignored) != QSF_OK)
        return qsf_err_set(err, QSF_E_MODEL, "%s; choose another one with --template", why->msg);
    if (notice != NULL && notice_cap > 0)
        snprintf(notice, notice_cap, "The model's chat template cannot be used (%s): using %s instead.",
                 why->msg, file);
    return QSF_OK;
}

static int open_model(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, char *notice,
                      size_t notice_cap, QsfErr *err) {
    const char *text;
    size_t len;
    QsfErr why = { 0 };
    int rc = qsf_meta_str(src, KEY_TEMPLATE, &text, &len, err);
    if (rc != QSF_OK || text == NULL || len == 0) return rc; /* a base model: *out stays NULL */
    char *copy = malloc(len + 1);
    if (copy == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: chat template");
    memcpy(copy, text, len);
    copy[len] = '\0';
    rc = make(out, tok, copy, len, strdup("model"), "of the model", &why);
    if (rc == QSF_OK && try_out(*out, &why) == QSF_OK) return QSF_OK;
    qsf_chat_template_close(*out);
    *out = NULL;
    if (why.code == QSF_E_RUNTIME) return qsf_err_set(err, QSF_E_RUNTIME, "%s", why.msg);
    return open_replacement(out, tok, text, len, &why, notice, notice_cap, err);
}

int qsf_chat_template_open(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok,
                           const char *name, char *notice, size_t notice_cap, QsfErr *err) {
    *out = NULL;
    if (notice != NULL && notice_cap > 0) notice[0] = '\0';
    if (name == NULL) return open_model(out, src, tok, notice, notice_cap, err);
    if (strcmp(name, "raw") == 0 || strcmp(name, "raw.jinja") == 0) return QSF_OK;
    return open_file(out, tok, name, err);
}
