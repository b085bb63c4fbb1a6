/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidate lists: the few tokens of a vocabulary that a draw chooses among, found without sorting the
 * vocabulary. Pure functions over the caller's buffers; nothing is allocated. Any thread. */
#ifndef QSF_SAMPLE_SELECT_H
#define QSF_SAMPLE_SELECT_H

#include <stddef.h>
#include <stdint.h>

typedef struct QsfCandidate {
    float x;     /* logit */
    int32_t id;
} QsfCandidate;

/* The order of candidates is by logit, on a tie by id, so that it is the same on every machine. */

/* The k best of x (n), best first, into cand (k); k <= n. */
void qsf_select_top_k(QsfCandidate *cand, size_t k, const float *x, size_t n);

/* The fewest best candidates of x (n) whose probabilities p (n) reach top_p of their sum, best first, and a
 * few more: all that are about as likely as the last of them. Into cand (at most n); returns their number.
 * max is the largest of x. */
size_t qsf_select_nucleus(QsfCandidate *cand, const float *x, const float *p, size_t n, float max, double top_p);

/* Those of x (n) that are at least limit, by id, into cand (at most n). */
size_t qsf_select_at_least(QsfCandidate *cand, const float *x, size_t n, float limit);

#endif
