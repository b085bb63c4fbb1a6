/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of a grammar: from a setting, a file or a request; checks before an answer. */
#include "src/engine/hold_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static int read_file(const char *path, const char *setting, QsfStrbuf *out, QsfErr *err) {
    char buf[8192];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (f == NULL) return qsf_err_set(err, QSF_E_MODEL, "%s: %s: %s", setting, path, strerror(errno));
    while ((n = fread(buf, 1, sizeof buf, f)) > 0 && out->len <= QSF_GRAMMAR_TEXT_MAX)
        qsf_strbuf_add(out, buf, n);
    const int wrong = ferror(f) ? errno : 0;
    (void)fclose(f);
    if (wrong != 0) return qsf_err_set(err, QSF_E_MODEL, "%s: %s: %s", setting, path, strerror(wrong));
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "the grammar");
}

int qsf_hold_text(const QSFParams *p, QsfStrbuf *out, QsfGrammarKind *kind, QsfErr *err) {
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

void qsf_hold_name(const QSFParams *p, char *out, size_t cap) {
    const size_t k = p->grammar_kind < N_KINDS ? p->grammar_kind : QSF_GRAMMAR_NONE;
    const bool any = k == QSF_GRAMMAR_SCHEMA && strcmp(p->grammar, "any") == 0;
    snprintf(out, cap, "%.200s", kinds[k].file && !any ? p->grammar : kinds[k].name);
}

int qsf_grammar_check(const QSFParams *p, char *err, size_t cap) {
    QsfErr e = { 0 };
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfGrammarKind kind = QSF_KIND_N;
    QsfGrammar *g = NULL;
    char name[256];
    if (err == NULL) cap = 0;
    int rc = p != NULL ? QSF_OK : qsf_err_set(&e, QSF_E_USAGE, "the parameters are NULL");
    if (rc == QSF_OK) rc = qsf_hold_text(p, &text, &kind, &e);
    if (rc == QSF_OK && kind != QSF_KIND_N) {
        rc = qsf_grammar_new(&g, kind, qsf_strbuf_str(&text), text.len, &e);
        qsf_hold_name(p, name, sizeof name);
        qsf_err_prefix(&e, "%s", name);
    }
    qsf_grammar_free(g);
    qsf_strbuf_free(&text);
    const size_t n = qsf_utf8_clean(e.msg, strlen(e.msg), false);
    if (rc != QSF_OK) snprintf(err, cap, "%.*s", (int)n, e.msg);
    return rc;
}
