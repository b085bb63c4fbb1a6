/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files that implement qsf.h share. */
#ifndef QSF_ENGINE_API_IMPL_H
#define QSF_ENGINE_API_IMPL_H

#include "qsf_engine.h"
#include "src/base/err.h"

/* Clears and returns the error of this thread's last call. A call that runs callbacks uses its own error and
 * copies it here at its end, because calls made by a callback use this one too. */
QsfErr *qsf_api_begin(void);
/* QSF_E_USAGE when one is out of range. */
int qsf_api_check_sampling(float temperature, float top_p, QsfErr *err);
/* The parameters of a call with these; the other stages are off. */
QSFParams qsf_api_sampling(float temperature, float top_p);

/* api_grammar.c: what answers have to match; zeroed: anything. */
typedef struct QsfApiGrammar {
    uint8_t kind; /* QSFGrammarKind */
    char *text;   /* (len + 1) owned */
    size_t len;
} QsfApiGrammar;
/* As qsf_config_set_grammar. After a failure g is as before. */
int qsf_api_grammar_set(QsfApiGrammar *g, const char *kind, const char *text, QsfErr *err);
/* *dst is freed by the caller. QSF_E_RUNTIME. */
int qsf_api_grammar_copy(QsfApiGrammar *dst, const QsfApiGrammar *src, QsfErr *err);
/* Frees the text; g is then that of no grammar. */
void qsf_api_grammar_free(QsfApiGrammar *g);

#endif
