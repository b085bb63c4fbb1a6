/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers that have to call a tool. The thread of the runtime. */
#ifndef QSF_ENGINE_TOOL_CHOICE_H
#define QSF_ENGINE_TOOL_CHOICE_H

#include "src/engine/prompt.h"

/* Does the answer have to call a tool, or match a schema if it calls none? */
bool qsf_tool_choice_counts(const QsfRequestCopy *r);
/* Appends the grammar, in GBNF, of answers to such a request. QSF_E_USAGE: the request has no such tool,
 * answers with this chat template cannot be held to a call, or the schema of a tool is not supported, which
 * the message names; QSF_E_BUDGET, QSF_E_RUNTIME without memory, QSF_E_INTERRUPTED. */
int qsf_tool_choice_grammar(QsfRuntime *rt, const QsfRequestCopy *r, QsfStrbuf *out, QsfErr *err);

#endif
