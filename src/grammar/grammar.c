/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles a grammar with the reader of its kind: implements grammar.h. */
#include "src/grammar/grammar.h"

#include <stdlib.h>

#include "src/base/utf8.h"
#include "src/grammar/program.h"

typedef int (*QsfReader)(QsfGrammarBuild *b, const char *text, size_t len);

static const QsfReader readers[QSF_KIND_N] = { [QSF_KIND_GBNF] = qsf_read_gbnf,
                                               [QSF_KIND_SCHEMA] = qsf_read_schema,
                                               [QSF_KIND_REGEX] = qsf_read_regex,
                                               [QSF_KIND_WORDS] = qsf_read_words };

static int compile(QsfGrammar *g, QsfGrammarKind kind, const char *text, size_t len, QsfErr *err) {
    QsfGrammarBuild b;
    qsf_gbuild_init(&b, err);
    int rc = readers[kind](&b, text, len);
    if (rc == QSF_OK && b.failed) rc = err->code;
    if (rc == QSF_OK) rc = qsf_grammar_emit(g, &b);
    if (rc == QSF_OK) rc = qsf_grammar_analyse(g, &b);
    qsf_gbuild_free(&b);
    return rc;
}

int qsf_grammar_new(QsfGrammar **out, QsfGrammarKind kind, const char *text, size_t len, QsfErr *err) {
    QsfErr own = { 0 }; /* the failure has to be known */
    *out = NULL;
    if (len > QSF_GRAMMAR_TEXT_MAX)
        return qsf_err_set(err, QSF_E_USAGE, "the grammar is too large: %zu bytes of at most %u", len,
                           QSF_GRAMMAR_TEXT_MAX);
    if (!qsf_utf8_valid(text, len)) return qsf_err_set(err, QSF_E_USAGE, "the grammar is not UTF-8");
    QsfGrammar *g = calloc(1, sizeof *g);
    if (g == NULL) return qsf_err_memory(err, "the grammar");
    int rc = compile(g, kind, text, len, &own);
    if (rc == QSF_OK) {
        *out = g;
        return QSF_OK;
    }
    qsf_grammar_free(g);
    return qsf_err_pass(err, &own);
}

void qsf_grammar_free(QsfGrammar *g) {
    if (g == NULL) return;
    free(g->code);
    free(g->cost);
    free(g->tail);
    free(g->start);
    free(g->rank);
    free(g);
}

uint64_t qsf_grammar_bytes(const QsfGrammar *g) {
    return sizeof *g + (uint64_t)g->cap * sizeof *g->code + g->n * 5ull + g->cap_rules * 4ull +
           g->n_rules * 4ull;
}
