/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidate lists: the few tokens of a vocabulary that a draw chooses among, found without sorting the
 * vocabulary. Pure functions over the caller's buffers; nothing is allocated. Any thread. */
#ifndef QSF_SAMPLE_SELECT_H
#define QSF_SAMPLE_SELECT_H

#include <stddef.h>
#include <stdint.h>

typedef struct QsfCandidate {
    float x; /* logit */
    int32_t id;
} QsfCandidate;

/* The order of candidates is by logit, on a tie by id, so that it is the same on every machine. */

/* The k best of x (n), best first, into cand (k); k <= n. */
void qsf_select_top_k(QsfCandidate *cand, size_t k, const float *x, size_t n);

/* Candidates of which the fewest best have probabilities p (n) that reach top_p of their sum, into cand (at
 * most n); returns their number. The first *sure of them, in the order of their ids, are all needed; behind
 * them are, best first, those that are about as likely as the last one needed. max is the largest of x. */
size_t qsf_select_nucleus(QsfCandidate *cand, const float *x, const float *p, size_t n, float max,
                          double top_p, size_t *sure);

/* Those of x (n) that are at least limit, by id, into cand (at most n). */
size_t qsf_select_at_least(QsfCandidate *cand, const float *x, size_t n, float limit);

#endif
