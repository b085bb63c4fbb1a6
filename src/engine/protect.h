/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many tokens of a prompt are its system prompt, which is protected from eviction. */
#ifndef QSF_ENGINE_PROTECT_H
#define QSF_ENGINE_PROTECT_H

#include "src/engine/runtime.h"

/* Returns n: ids[0..n) of the prompt of these messages do not depend on the text of the user. 0
 * without a system message, a template or a policy that protects it. Renders the first two messages
 * again, with another text of the user. */
uint32_t qsf_system_tokens(const QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags,
                           const QsfIds *ids);

#endif
