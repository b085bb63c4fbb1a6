/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversations whose state is kept as snapshots (QSFRequest.snapshot): which one a request continues. A
 * request names no conversation, so the one is taken that has the longest common beginning of messages. The
 * choice only saves time: the engine compares tokens. The thread of the engine. */
#ifndef QSF_SERVE_SLOTS_H
#define QSF_SERVE_SLOTS_H

#include "serve/options.h"
#include "serve/request.h"
#include "src/base/paths.h"

#define SERVE_PARTS 1024u /* of a conversation that are compared */

/* A conversation: hashes of its beginnings. A part is a message, or 256 bytes of a prompt of
 * /v1/completions. */
typedef struct ServeSlot {
    uint64_t parts[SERVE_PARTS]; /* (n): hash i is of parts 0 ... i */
    uint32_t n, lead;            /* lead: parts that many conversations begin with, the system prompt */
    bool chat;
    uint64_t used;   /* when: 0 = never */
    uint64_t turns;  /* requests that continued it: its file has states of each */
    uint64_t number; /* of its file */
} ServeSlot;

typedef struct ServeSlots {
    ServeSlot *slots; /* (n) */
    uint32_t n;
    ServeSlot *now; /* of the running request, or NULL */
    uint64_t clock, files;
    uint64_t limit; /* bytes of all snapshots; 0 = as qsf_engine.h */
    char dir[QSF_PATH_MAX - 32], path[QSF_PATH_MAX], from[QSF_PATH_MAX];
    int lock; /* a descriptor that is locked as long as the folder is in use */
} ServeSlots;

/* Makes the folder, and removes those of servers that no longer run. QSF_E_RUNTIME: it cannot be made; then
 * nothing is kept. */
int serve_slots_open(ServeSlots *s, const ServeOptions *o, QsfErr *err);
/* Removes all files and the folder. A zeroed one is allowed. */
void serve_slots_close(ServeSlots *s);
/* Chooses the slot of a request. Returns the path of its snapshot, or NULL: its state is not kept. *from: the
 * snapshot of another conversation that begins alike (the same system prompt), or NULL. Both are valid until
 * the next call. */
const char *serve_slots_choose(ServeSlots *s, const ServeRequest *r, const char **from);
/* The request was answered with this text: the next one has it as a message. */
void serve_slots_answered(ServeSlots *s, const char *text, size_t len);

/* Bytes that n slots take. */
size_t serve_slots_bytes(uint32_t n);

#endif
