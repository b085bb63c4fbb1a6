/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rendered segments to token ids. The text is tokenized as a whole, as the model was trained: a word that
 * goes over the border of a segment stays one word. Only special tokens mind the borders. */
#include <stdlib.h>
#include <string.h>

#include "src/text/chat_impl.h"

/* Does the template itself begin the text with BOS? */
static bool begins_with_bos(const QsfTokenizer *tok, const QsfRendered *r) {
    size_t len = 0;
    int32_t bos = qsf_tokenizer_bos(tok);
    const char *text = bos < 0 ? NULL : qsf_tokenizer_raw(tok, bos, &len);
    return len > 0 && r->n_segs > 0 && r->segs[0].trusted && r->segs[0].len >= len &&
           memcmp(r->text.data, text, len) == 0;
}

int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, QsfIds *out, QsfErr *err) {
    unsigned flags = QSF_TOK_SPECIAL | (begins_with_bos(tok, r) ? 0 : QSF_TOK_BOS);
    uint8_t *trusted = malloc(r->text.len + 1);
    if (trusted == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: rendered messages");
    for (size_t i = 0; i < r->n_segs; i++) memset(trusted + r->segs[i].off, r->segs[i].trusted, r->segs[i].len);
    int rc = qsf_tokenizer_encode_marked(tok, qsf_strbuf_str(&r->text), r->text.len, trusted, flags, out, err);
    free(trusted);
    return rc;
}

/* Without a template: the contents one after another. */
static int encode_plain(const QsfTokenizer *tok, const QsfMsg *msgs, size_t n, QsfIds *out, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (i > 0) qsf_strbuf_addc(&b, '\n');
        if (msgs[i].len > 0) qsf_strbuf_add(&b, msgs[i].content, msgs[i].len);
    }
    int rc = qsf_strbuf_ok(&b) ? qsf_tokenizer_encode(tok, qsf_strbuf_str(&b), b.len, QSF_TOK_BOS, out, err)
                               : qsf_err_set(err, QSF_E_RUNTIME, "out of memory: messages");
    qsf_strbuf_free(&b);
    return rc;
}

int qsf_chat_encode(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                    bool add_generation_prompt, bool continue_last, QsfIds *out, QsfErr *err) {
    QsfRendered r = { 0 };
    if (t == NULL) return encode_plain(tok, msgs, n, out, err);
    int rc = qsf_chat_render(t, msgs, n, add_generation_prompt, continue_last, &r, err);
    if (rc == QSF_OK) rc = qsf_chat_encode_rendered(tok, &r, out, err);
    qsf_rendered_free(&r);
    return rc;
}
