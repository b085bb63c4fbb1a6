/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Grammars of qsf.h. */
#include <stdlib.h>
#include <string.h>

#include "src/engine/api_impl.h"
#include "src/grammar/grammar.h"

static const struct {
    const char *name;
    QSFGrammarKind kind;
    QsfGrammarKind compiled;
} kinds[] = { { "gbnf", QSF_GRAMMAR_GBNF, QSF_KIND_GBNF },
              { "json-schema", QSF_GRAMMAR_SCHEMA, QSF_KIND_SCHEMA },
              { "regex", QSF_GRAMMAR_REGEX, QSF_KIND_REGEX },
              { "words", QSF_GRAMMAR_WORDS, QSF_KIND_WORDS } };

void qsf_api_grammar_free(QsfApiGrammar *g) {
    free(g->text);
    *g = (QsfApiGrammar){ 0 };
}

int qsf_api_grammar_copy(QsfApiGrammar *dst, const QsfApiGrammar *src, QsfErr *err) {
    *dst = *src;
    if (src->text == NULL) return QSF_OK;
    dst->text = malloc(src->len + 1);
    if (dst->text == NULL) return qsf_err_memory(err, "the grammar");
    memcpy(dst->text, src->text, src->len + 1);
    return QSF_OK;
}

static int check(QsfGrammarKind kind, const char *name, const char *text, QsfErr *err) {
    QsfGrammar *g = NULL;
    int rc = qsf_grammar_new(&g, kind, text, strlen(text), err);
    if (rc != QSF_OK) qsf_err_prefix(err, "%s", name);
    qsf_grammar_free(g);
    return rc;
}

int qsf_api_grammar_set(QsfApiGrammar *g, const char *kind, const char *text, QsfErr *err) {
    QsfApiGrammar next = { 0 };
    if (kind == NULL || text == NULL) {
        qsf_api_grammar_free(g);
        return QSF_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].name) != 0) continue;
        int rc = check(kinds[i].compiled, kinds[i].name, text, err);
        const QsfApiGrammar given = { (uint8_t)kinds[i].kind, (char *)(uintptr_t)text, strlen(text) };
        if (rc == QSF_OK) rc = qsf_api_grammar_copy(&next, &given, err);
        if (rc != QSF_OK) return rc;
        qsf_api_grammar_free(g);
        *g = next;
        return QSF_OK;
    }
    return qsf_err_set(err, QSF_E_USAGE,
                       "a grammar of kind '%.40s': must be gbnf, json-schema, regex or words", kind);
}
