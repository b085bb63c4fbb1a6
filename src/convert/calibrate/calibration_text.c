/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/calibrate/calibration_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/decode.h"
#include "src/base/utf8.h"
#include "src/file/lfs.h"

enum { READ_BYTES = 16384 };

/* ---- bytes */

static bool cancelled(const atomic_int *cancel) { return cancel != NULL && atomic_load(cancel) != 0; }

static int read_all(int fd, const char *path, const atomic_int *cancel, QsfStrbuf *out, QsfErr *err) {
    char buf[READ_BYTES];
    ssize_t n = 1;
    while (n != 0 && out->len <= QSF_CALIBRATE_TEXT_MAX) {
        n = read(fd, buf, sizeof buf);
        if (cancelled(cancel)) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
        if (n < 0 && errno != EINTR) return qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, strerror(errno));
        if (n > 0) qsf_strbuf_add(out, buf, (size_t)n);
    }
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "%s", path);
}

/* Reports the first ill-formed byte. */
static int check_utf8(const char *path, const QsfStrbuf *b, QsfErr *err) {
    size_t line = 1, len;
    uint32_t cp;
    for (size_t at = 0; at < b->len; at += len) {
        len = qsf_utf8_next(b->data + at, b->len - at, &cp);
        if (cp == UINT32_MAX)
            return qsf_err_set(err, QSF_E_MODEL, "%s: line %zu is not UTF-8 (byte offset %zu)", path, line,
                               at);
        line += cp == '\n';
    }
    return QSF_OK;
}

int qsf_calibrate_read(const char *path, const atomic_int *cancel, QsfStrbuf *out, bool *damaged,
                       QsfErr *err) {
    *damaged = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, strerror(errno));
    int rc = read_all(fd, path, cancel, out, err);
    close(fd);
    if (rc != QSF_OK) return rc;
    if (out->len == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: the text is empty", path);
    if (out->len > QSF_CALIBRATE_TEXT_MAX)
        return qsf_err_set(err, QSF_E_MODEL, "%s: more than %u MB of text", path,
                           QSF_CALIBRATE_TEXT_MAX >> 20);
    rc = qsf_lfs_check_bytes(path, out->data, out->len, err);
    if (rc != QSF_OK) return rc;
    *damaged = !qsf_strbuf_decode(out);
    if (!qsf_strbuf_ok(out)) return qsf_err_memory(err, "%s", path);
    return check_utf8(path, out, err);
}

/* ---- chats */

typedef struct Lines {
    const char *at, *end;
    size_t number; /* of the line returned by next() */
} Lines;

/* Returns the next non-blank line. */
static bool next(Lines *l, const char **line, size_t *len) {
    while (l->at < l->end) {
        const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
        *line = l->at;
        *len = (size_t)((stop != NULL ? stop : l->end) - l->at);
        l->at = stop != NULL ? stop + 1 : l->end;
        l->number++;
        for (size_t i = 0; i < *len; i++)
            if (strchr(" \t\r", (*line)[i]) == NULL || (*line)[i] == '\0') return true;
    }
    return false;
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

static bool are_chats(const char *path, const QsfStrbuf *text) {
    Lines l = { text->data, text->data + text->len, 0 };
    QsfErr none = { 0 };
    const char *line;
    size_t len;
    if (has_suffix(path, ".jsonl")) return true;
    if (!next(&l, &line, &len) || *line != '{') return false;
    QsfJson *j = qsf_json_parse(line, len, &none);
    bool yes = j != NULL && qsf_json_get(j, "messages") != NULL;
    qsf_json_free(j);
    return yes;
}

/* The result borrows from j. The caller frees *out. */
static int messages_of(const QsfJson *j, QsfMsg **out, size_t *n, QsfErr *err) {
    const QsfJson *list = j != NULL ? qsf_json_get(j, "messages") : NULL;
    *n = list != NULL && qsf_json_type(list) == QSF_JSON_ARRAY ? qsf_json_size(list) : 0;
    if (*n == 0) return qsf_err_set(err, QSF_E_MODEL, "expected an object with a list of \"messages\"");
    *out = calloc(*n, sizeof **out);
    if (*out == NULL) return qsf_err_memory(err, "messages");
    for (size_t i = 0; i < *n; i++) {
        const QsfJson *m = qsf_json_at(list, i);
        size_t len;
        (*out)[i].role = qsf_json_string(qsf_json_get(m, "role"), &len);
        (*out)[i].content = qsf_json_string(qsf_json_get(m, "content"), &(*out)[i].len);
        if ((*out)[i].role == NULL || (*out)[i].content == NULL)
            return qsf_err_set(err, QSF_E_MODEL, "message %zu lacks a string \"role\" or \"content\"", i + 1);
    }
    return QSF_OK;
}

static int encode_chat(const char *line, size_t len, const QsfChatTemplate *t, const QsfTokenizer *tok,
                       QsfIds *out, QsfErr *err) {
    QsfErr why = { 0 };
    QsfMsg *msgs = NULL;
    size_t n;
    QsfJson *j = qsf_json_parse(line, len, &why);
    int rc = j != NULL || why.memory ? QSF_OK : qsf_err_set(err, QSF_E_MODEL, "%s", why.msg);
    if (rc == QSF_OK && j == NULL) rc = qsf_err_pass(err, &why);
    if (rc == QSF_OK) rc = messages_of(j, &msgs, &n, err);
    if (rc == QSF_OK) {
        rc = qsf_chat_encode(t, tok, msgs, n, 0, out, &why);
        if (rc == QSF_E_RUNTIME && !why.memory)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s", why.msg); /* error raised by the template */
        else if (rc != QSF_OK)
            qsf_err_pass(err, &why);
    }
    free(msgs);
    qsf_json_free(j);
    return rc;
}

static int encode_chats(const char *path, const QsfStrbuf *text, const QsfChatTemplate *t,
                        const QsfTokenizer *tok, QsfIds *out, QsfErr *err) {
    Lines l = { text->data, text->data + text->len, 0 };
    const char *line;
    size_t len;
    int rc = QSF_OK;
    while (rc == QSF_OK && next(&l, &line, &len)) rc = encode_chat(line, len, t, tok, out, err);
    return rc == QSF_OK ? rc : qsf_err_prefix(err, "%s: line %zu", path, l.number);
}

int qsf_calibrate_encode(const char *path, const QsfStrbuf *text, const QsfChatTemplate *t,
                         const QsfTokenizer *tok, QsfIds *out, QsfErr *err) {
    int rc = are_chats(path, text)
                 ? encode_chats(path, text, t, tok, out, err)
                 : qsf_tokenizer_encode(tok, text->data, text->len, QSF_TOK_BOS | QSF_TOK_SPECIAL, out, err);
    if (rc != QSF_OK || out->n >= QSF_CALIBRATE_TOKENS_MIN) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: has %zu tokens, too few to calibrate with: at least %u are needed", path, out->n,
                       QSF_CALIBRATE_TOKENS_MIN);
}
