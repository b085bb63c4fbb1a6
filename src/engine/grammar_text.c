/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of a grammar: from a setting, a file or a request; checks before an answer. */
#include "src/engine/grammar_text.h"
#include "src/base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/utf8.h"

/* As QsfGrammarKind of src/grammar. */
static const struct {
    const char *name;
    QsfGrammarKind kind;
    bool file;
} kinds[] = { [QSF_GRAMMAR_NONE] = { "", QSF_KIND_N, false },
              [QSF_GRAMMAR_GBNF] = { "grammar", QSF_KIND_GBNF, true },
              [QSF_GRAMMAR_SCHEMA] = { "json-schema", QSF_KIND_SCHEMA, true },
              [QSF_GRAMMAR_REGEX] = { "regex", QSF_KIND_REGEX, false },
              [QSF_GRAMMAR_WORDS] = { "only", QSF_KIND_WORDS, false } };
#define N_KINDS (sizeof kinds / sizeof *kinds)

#define PIPE_MS 2000 /* for the next bytes of a pipe */

/* read(2), which waits only so long. */
static ssize_t read_some(int fd, char *buf, size_t n) {
    for (;;) {
        const ssize_t got = read(fd, buf, n);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got;
        if (errno == EINTR) continue;
        if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, PIPE_MS) == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* As much of it as shows that it is too long. A pipe without a writer is empty: the chat must not wait. */
static int read_file(const char *path, const char *setting, QsfStrbuf *out, QsfErr *err) {
    char buf[8192];
    ssize_t n = -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd >= 0 && out->len <= QSF_GRAMMAR_TEXT_MAX && (n = read_some(fd, buf, sizeof buf)) > 0)
        qsf_strbuf_add(out, buf, (size_t)n);
    const int wrong = n < 0 ? errno : 0;
    if (fd >= 0) (void)close(fd);
    if (wrong != 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s: %s", setting, path,
                           wrong == ETIMEDOUT ? "nothing comes from this pipe" : strerror(wrong));
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "the grammar");
}

int qsf_grammar_text(const QSFParams *p, QsfStrbuf *out, QsfGrammarKind *kind, QsfErr *err) {
    const size_t k = p->grammar_kind < N_KINDS ? p->grammar_kind : QSF_GRAMMAR_NONE;
    const bool any = k == QSF_GRAMMAR_SCHEMA && strcmp(p->grammar, "any") == 0;
    *kind = kinds[k].kind;
    if (k == QSF_GRAMMAR_NONE) return QSF_OK;
    if (kinds[k].file && !any) return read_file(p->grammar, kinds[k].name, out, err);
    qsf_strbuf_adds(out, p->grammar);
    char *blank = k == QSF_GRAMMAR_WORDS && out->data != NULL ? strchr(out->data, ' ') : NULL;
    if (blank != NULL) *blank = '\n'; /* the expression for the words between */
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "the grammar");
}

void qsf_grammar_name(const QSFParams *p, char *out, size_t cap) {
    const size_t k = p->grammar_kind < N_KINDS ? p->grammar_kind : QSF_GRAMMAR_NONE;
    const bool any = k == QSF_GRAMMAR_SCHEMA && strcmp(p->grammar, "any") == 0;
    snprintf(out, cap, "%.200s", kinds[k].file && !any ? p->grammar : kinds[k].name);
}

int qsf_grammar_check(const QSFParams *p, uint64_t budget, char *err, size_t cap) {
    QsfErr e = { 0 };
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfGrammarKind kind = QSF_KIND_N;
    QsfGrammar *g = NULL;
    char name[256];
    if (err == NULL) cap = 0;
    int rc = p != NULL ? QSF_OK : qsf_err_set(&e, QSF_E_USAGE, "the parameters are NULL");
    if (rc == QSF_OK) rc = qsf_grammar_text(p, &text, &kind, &e);
    if (rc == QSF_OK && kind != QSF_KIND_N) {
        qsf_grammar_name(p, name, sizeof name);
        const QsfMemoryLimit before = qsf_memory_limit_begin(budget);
        rc = qsf_grammar_new(&g, kind, qsf_strbuf_str(&text), text.len, &e);
        qsf_err_prefix(&e, "%s", name);
        rc = qsf_memory_limit_end(&before, rc, name, "the RAM budget", &e);
    }
    qsf_grammar_free(g);
    qsf_strbuf_free(&text);
    const size_t n = qsf_utf8_clean(e.msg, strlen(e.msg), false);
    if (rc != QSF_OK) snprintf(err, cap, "%.*s", (int)n, e.msg);
    return rc;
}
