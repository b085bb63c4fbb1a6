/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of the server: what is taken when requests arrive and when answers wait to be read is charged to one
 * sum with a limit, and that limit, with everything that has a fixed size, is a part of the plan that the
 * engine makes for its RAM budget. So clients never make the process larger than its budget: they are refused
 * instead. Under the lock of the server. */
#ifndef QSF_SERVE_MEMORY_H
#define QSF_SERVE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/options.h"

typedef struct ServeMemory {
    uint64_t used, limit; /* bytes */
} ServeMemory;

/* Returns the limit for texts with these options. */
uint64_t serve_memory_texts(const ServeOptions *o);
/* Returns the bytes that the server takes at most, texts included, besides what a program has that has just
 * begun: for QSFSettings.owner_bytes. */
uint64_t serve_memory_all(const ServeOptions *o);

/* Charges n bytes; false, and nothing is charged, if they do not fit. */
bool serve_memory_take(ServeMemory *r, uint64_t n);
void serve_memory_give(ServeMemory *r, uint64_t n);

/* Sizes that http.c keeps to. */
#define SERVE_CONNECTION_POOL (16u << 10)  /* headers of a request, and parts of its body */
#define SERVE_BLOCK           (4u << 10)   /* of an answer that is sent */
#define SERVE_HTTP_STACK      (256u << 10) /* of the thread */

#endif
