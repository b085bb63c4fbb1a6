/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rendered segments to token ids. The text is tokenized as a whole, as in training: a word across a segment
 * boundary stays one word. Only special tokens may not cross boundaries. */
#include <stdlib.h>
#include <string.h>

#include "src/chat/impl.h"

/* Whether the text begins with BOS, where that is allowed. */
static bool begins_with_bos(const QsfTokenizer *tok, const char *text, size_t len, size_t trusted) {
    size_t n = 0;
    int32_t bos = qsf_tokenizer_bos(tok);
    const char *name = bos < 0 ? NULL : qsf_tokenizer_raw(tok, bos, &n);
    return n > 0 && trusted >= n && len >= n && memcmp(text, name, n) == 0;
}

int qsf_chat_encode_rendered(const QsfTokenizer *tok, const QsfRendered *r, bool allow, QsfIds *out,
                             QsfErr *err) {
    const char *text = qsf_strbuf_str(&r->text);
    size_t first = allow ? r->text.len : r->n_segs > 0 && r->segs[0].trusted ? r->segs[0].len : 0;
    unsigned flags = QSF_TOK_SPECIAL | (begins_with_bos(tok, text, r->text.len, first) ? 0 : QSF_TOK_BOS);
    if (allow) return qsf_tokenizer_encode(tok, text, r->text.len, flags, out, err);
    uint8_t *trusted = malloc(r->text.len + 1);
    if (trusted == NULL) return qsf_err_memory(err, "rendered messages");
    for (size_t i = 0; i < r->n_segs; i++)
        memset(trusted + r->segs[i].off, r->segs[i].trusted, r->segs[i].len);
    int rc = qsf_tokenizer_encode_marked(tok, text, r->text.len, trusted, flags, out, err);
    free(trusted);
    return rc;
}

/* Without a template: the concatenated contents. */
static int encode_plain(const QsfTokenizer *tok, const QsfMsg *msgs, size_t n, bool allow, QsfIds *out,
                        QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (i > 0) qsf_strbuf_addc(&b, '\n');
        if (msgs[i].len > 0) qsf_strbuf_add(&b, msgs[i].content, msgs[i].len);
    }
    int rc = QSF_OK;
    if (!qsf_strbuf_ok(&b)) {
        rc = qsf_err_memory(err, "messages");
    } else {
        const char *text = qsf_strbuf_str(&b);
        unsigned flags = allow ? QSF_TOK_SPECIAL : 0;
        if (!begins_with_bos(tok, text, b.len, allow ? b.len : 0)) flags |= QSF_TOK_BOS;
        rc = qsf_tokenizer_encode(tok, text, b.len, flags, out, err);
    }
    qsf_strbuf_free(&b);
    return rc;
}

int qsf_chat_encode_checked(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                            unsigned flags, QsfIds *out, size_t *lost, QsfErr *err) {
    QsfRendered r = { 0 };
    bool allow = flags & QSF_CHAT_ALLOW_SPECIAL;
    if (lost != NULL) *lost = 0;
    if (t == NULL) return encode_plain(tok, msgs, n, allow, out, err);
    int rc = qsf_chat_render(t, msgs, n, flags, &r, err);
    if (lost != NULL) *lost = r.lost;
    if (rc == QSF_OK) rc = qsf_chat_encode_rendered(tok, &r, allow, out, err);
    qsf_rendered_free(&r);
    return rc;
}

int qsf_chat_encode(const QsfChatTemplate *t, const QsfTokenizer *tok, const QsfMsg *msgs, size_t n,
                    unsigned flags, QsfIds *out, QsfErr *err) {
    return qsf_chat_encode_checked(t, tok, msgs, n, flags, out, NULL, err);
}

/* --- display --- */

static bool blank(const char *s, size_t len) {
    while (len > 0 && strchr(" \t\r\n", s[len - 1]) != NULL && s[len - 1] != '\0') len--;
    return len == 0;
}

/* In some vocabularies runs of spaces are user-defined tokens; to a reader they are text. */
static bool is_marked(const QsfTokenizer *tok, int32_t id, const char *text, size_t len) {
    QsfTokenType type = qsf_tokenizer_type(tok, id);
    return type == QSF_TOKEN_CONTROL || type == QSF_TOKEN_UNKNOWN ||
           (type == QSF_TOKEN_USER && !blank(text, len));
}

int qsf_chat_show(const QsfTokenizer *tok, const QsfIds *ids, QsfStrbuf *out, size_t *n_special,
                  QsfErr *err) {
    char *piece = malloc(QSF_PIECE_MAX);
    size_t count = 0;
    for (size_t i = 0; i < ids->n && piece != NULL; i++) {
        size_t len = qsf_tokenizer_piece(tok, ids->data[i], true, piece, QSF_PIECE_MAX);
        bool mark = is_marked(tok, ids->data[i], piece, len);
        if (mark) qsf_strbuf_adds(out, QSF_CHAT_MARK_OPEN);
        qsf_strbuf_add(out, piece, len);
        if (mark) qsf_strbuf_adds(out, QSF_CHAT_MARK_CLOSE);
        count += mark;
    }
    if (n_special != NULL) *n_special = count;
    bool ok = piece != NULL && qsf_strbuf_ok(out);
    free(piece);
    return ok ? QSF_OK : qsf_err_memory(err, "the prompt as text");
}
