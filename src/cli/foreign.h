/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options and commands of other programs (llama.cpp, Ollama), and what to do here instead. Any thread. */
#ifndef QSF_CLI_FOREIGN_H
#define QSF_CLI_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

/* What the option of this name, word[0..len) without dashes, is here; NULL: not one of theirs. before: only
 * those that would mean something else here, written with one dash, such as "hf". Static. */
const char *qsf_foreign_option(const char *word, size_t len, bool before);

#endif
