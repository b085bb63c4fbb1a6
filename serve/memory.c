/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements memory.h. */
#include "serve/memory.h"

#include "serve/job.h"

/* Texts of this many of the largest requests, and of answers beside them. */
#define REQUESTS 4u
#define ANSWERS  (1u << 20)
/* Structures of libmicrohttpd, buffers of the heap. */
#define CONNECTION_MORE (4u << 10)
#define HEAP_MORE       (1u << 20)

uint64_t serve_memory_texts(const ServeOptions *o) { return REQUESTS * o->body_limit + ANSWERS; }

uint64_t serve_memory_all(const ServeOptions *o) {
    const uint64_t connection = SERVE_CONNECTION_POOL + SERVE_BLOCK + CONNECTION_MORE + sizeof(ServeJob);
    return serve_memory_texts(o) + serve_request_room((size_t)o->body_limit) + o->connections * connection +
           SERVE_HTTP_STACK + HEAP_MORE;
}

bool serve_memory_take(ServeMemory *r, uint64_t n) {
    if (n > r->limit - r->used) return false;
    r->used += n;
    return true;
}

void serve_memory_give(ServeMemory *r, uint64_t n) { r->used -= n < r->used ? n : r->used; }
