/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds stop strings in a stream of text: holds back text that may become one, and returns the rest.
 * Allocates only when it is opened. One thread. */
#ifndef QSF_ENGINE_STOPPER_H
#define QSF_ENGINE_STOPPER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_STOP_MAX 4096 /* bytes of the longest stop string */

typedef struct QsfStopper {
    const char *const *stop; /* (n_stop), borrowed */
    size_t n_stop;
    char *buf; /* (cap): the text that is not decided yet */
    size_t len, cap;
    size_t out; /* leading bytes of buf that the last call returned */
    bool hit;
} QsfStopper;

/* Opens a stopper. The strings are borrowed until it is closed. piece_max is the maximum length of one feed.
 * QSF_E_USAGE: a stop string is empty, too long or not UTF-8; QSF_E_RUNTIME: out of memory. */
int qsf_stopper_open(QsfStopper *s, const char *const *stop, size_t n_stop, size_t piece_max, QsfErr *err);
void qsf_stopper_close(QsfStopper *s); /* a zeroed one is allowed */

/* Adds text (at most piece_max bytes) and returns the *n bytes that can no longer become part of a stop
 * string, valid until the next call. The stop string that is complete first ends the text: s->hit is set, and
 * nothing may be fed after that. The text is followed by a NUL when nothing is held back. */
const char *qsf_stopper_feed(QsfStopper *s, const char *text, size_t len, size_t *n);
/* Ends the text without a stop string and returns what is still held back. */
const char *qsf_stopper_flush(QsfStopper *s, size_t *n);

#endif
