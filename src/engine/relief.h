/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gives memory back while the machine is short of it, by the setting memory-threshold-mb. One thread. */
#ifndef QSF_ENGINE_RELIEF_H
#define QSF_ENGINE_RELIEF_H

#include "src/engine/runtime.h"

/* Between two tokens, with the ledger thawed: looks at the memory at most four times a second. While it is short, gives back
 * weights in the unused part of the context, and with an eviction policy a quarter of the positions at a time; when there
 * is plenty again, both may grow. Returns true with a sentence in note the first time that something is given back, and
 * the first time that nothing can be. */
bool qsf_runtime_relieve(QsfRuntime *r, char *note, size_t cap);

#endif
