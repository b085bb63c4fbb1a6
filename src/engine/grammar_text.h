/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of the grammar that parameters name. Any thread. */
#ifndef QSF_ENGINE_GRAMMAR_TEXT_H
#define QSF_ENGINE_GRAMMAR_TEXT_H

#include "qsf_engine.h"
#include "src/base/strbuf.h"
#include "src/grammar/grammar.h"

/* Appends it; *kind is QSF_KIND_N if there is none. QSF_E_MODEL: its file cannot be read; QSF_E_RUNTIME. */
int qsf_grammar_text(const QSFParams *p, QsfStrbuf *out, QsfGrammarKind *kind, QsfErr *err);
/* Its file, or what it is, for messages. */
void qsf_grammar_name(const QSFParams *p, char *out, size_t cap);

#endif
