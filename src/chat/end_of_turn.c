/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a turn as written by the template: some models end their answers with a token that the file's
 * metadata does not declare (tokenizer.ggml.eos_token_id and the like). The token directly after an answer in
 * the middle of a conversation is the one that the model was trained to end answers with. */
#include <stdlib.h>
#include <string.h>

#include "src/chat/chat_impl.h"

#define ANSWER   "Zqxjk" /* text that no template contains */
#define QUESTION "Vwpbf"

static bool is_blank(const QsfTokenizer *tok, int32_t id) {
    char text[64];
    size_t n = qsf_tokenizer_piece(tok, id, true, text, sizeof text);
    if (n > sizeof text) return false;
    for (size_t i = 0; i < n; i++)
        if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0') return false;
    return true;
}

/* Whether it is a token that plain text never becomes. Begin-of-text separates turns in some templates, and
 * no model generates it. */
static bool ends_turn(const QsfTokenizer *tok, int32_t id) {
    QsfTokenType type = qsf_tokenizer_type(tok, id);
    if (id == qsf_tokenizer_bos(tok) && id != qsf_tokenizer_eos(tok)) return false;
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_USER;
}

/* Begin-of-text may be an end too, and separates turns. */
static bool is_declared(const QsfTokenizer *tok, int32_t id) {
    return qsf_tokenizer_is_eog(tok, id) && id != qsf_tokenizer_bos(tok);
}

/* The first token of the text that is not only white space, if it ends turns. Not if a declared end follows
 * it: then it ends something else, such as the element that an answer is in. */
static int find_end(const QsfTokenizer *tok, const char *text, size_t len, int32_t *id, QsfErr *err) {
    QsfIds ids = { 0 };
    int rc = qsf_tokenizer_encode(tok, text, len, QSF_TOK_SPECIAL | QSF_TOK_NO_PREFIX, &ids, err);
    size_t i = 0;
    bool declared = false;
    while (i < ids.n && is_blank(tok, ids.data[i])) i++;
    for (size_t k = i + 1; k < ids.n; k++) declared = declared || is_declared(tok, ids.data[k]);
    bool ends = i < ids.n && ends_turn(tok, ids.data[i]) && !qsf_tokenizer_is_eom(tok, ids.data[i]);
    if (rc == QSF_OK && ends && (!declared || is_declared(tok, ids.data[i]))) *id = ids.data[i];
    qsf_ids_free(&ids);
    return rc;
}

int qsf_chat_turn_end(const QsfChatTemplate *t, const QsfTokenizer *tok, int32_t *id, QsfErr *err) {
    static const QsfMsg talk[] = { { .role = "user", .content = "Hello", .len = 5 },
                                   { .role = "assistant", .content = ANSWER, .len = sizeof ANSWER - 1 },
                                   { .role = "user", .content = QUESTION, .len = sizeof QUESTION - 1 } };
    QsfRendered r = { 0 };
    QsfErr why = { 0 };
    *id = -1;
    if (t == NULL) return QSF_OK;
    int rc = qsf_chat_render(t, talk, sizeof talk / sizeof *talk, QSF_CHAT_GENERATE, &r, &why);
    if (rc == QSF_OK) {
        const char *text = qsf_strbuf_str(&r.text), *end = text + r.text.len;
        const char *at = memmem(text, r.text.len, ANSWER, sizeof ANSWER - 1);
        if (at != NULL) at += sizeof ANSWER - 1;
        const char *next = at == NULL ? NULL : memmem(at, (size_t)(end - at), QUESTION, sizeof QUESTION - 1);
        if (at != NULL) rc = find_end(tok, at, (size_t)((next != NULL ? next : end) - at), id, err);
    } else {
        rc = why.memory ? qsf_err_pass(err, &why) : QSF_OK; /* a template may refuse such a conversation */
    }
    qsf_rendered_free(&r);
    return rc;
}
