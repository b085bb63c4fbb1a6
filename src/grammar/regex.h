/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regular expressions: the part of ECMA-262 that the pattern of JSON Schema uses, without backtracking. */
#ifndef QSF_GRAMMAR_REGEX_H
#define QSF_GRAMMAR_REGEX_H

#include "src/grammar/build.h"

#define QSF_REGEX_REPEAT_MAX 10000u

/* Parses text[0..len), valid UTF-8. Returns a node with QSF_NODE_BEGIN and END; 0 on failure. */
uint32_t qsf_regex_parse(QsfGrammarBuild *b, const char *text, size_t len);
/* The automaton of such a node: of the texts that match as a whole, or (search) of those with a part that
 * matches. The caller frees it. NULL: b has failed. */
QsfGraph *qsf_regex_graph(QsfGrammarBuild *b, uint32_t node, bool search);

#endif
