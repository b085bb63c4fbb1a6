/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scoring a text: which tokens of it are judged in which window, log-probabilities in double precision, and
 * the statistics of what they give. No state of its own, nothing is allocated; any thread. */
#ifndef QSF_SAMPLE_SCORE_H
#define QSF_SAMPLE_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tokens [begin, end) of the text are evaluated from an empty context; [first, end) of them are scored, each
 * from the logits of the token before it, so begin < first < end. */
typedef struct QsfScoreWindow {
    size_t begin, first, end;
} QsfScoreWindow;

/* Window k of a text of n tokens. Windows begin at 0, stride, 2 * stride, ..., hold `window` tokens (the last
 * one what is left) and end with the first that reaches the end of the text. The first scores all but token
 * 0, which nothing precedes; a later one what lies beyond the end of the one before it. With stride == window
 * there is no overlap and the first token of every window goes without a score. 2 <= window,
 * 1 <= stride <= window. False when there is no such window, or nothing in it to score. */
bool qsf_score_window(size_t n, uint32_t window, uint32_t stride, size_t k, QsfScoreWindow *out);
/* Tokens scored and windows evaluated in all; windows may be NULL. */
size_t qsf_score_count(size_t n, uint32_t window, uint32_t stride, size_t *windows);

/* log(sum(exp(x))) of n >= 1 finite numbers, in double: x[i] minus it is the log-probability of i. */
double qsf_score_log_sum(const float *x, size_t n);

/* KL(P || Q) in nats of the distributions that n >= 1 logits p and q stand for, p_sum being the log-sum of p;
 * never below 0, where rounding would leave it. */
double qsf_score_divergence(const float *p, double p_sum, const float *q, size_t n);
/* Cosine of two vectors of n numbers; 1 where both are zero, 0 where one is. */
double qsf_score_cosine(const float *a, const float *b, size_t n);

/* A running mean and its error (Welford). Zero-initialise. */
typedef struct QsfMean {
    uint64_t n;
    double mean, m2; /* m2: sum of squared differences from the mean */
} QsfMean;
/* Adds a value; a zeroed QsfMean has none. */
void qsf_mean_add(QsfMean *m, double v);
/* Standard error of the mean, as if the values were independent; 0 for fewer than two. */
double qsf_mean_error(const QsfMean *m);

/* Sorts ascending, in place. */
void qsf_score_sort(float *v, size_t n);
/* Of n >= 1 sorted values: the smallest one that a part p (0..1) of all does not exceed. */
float qsf_score_quantile(const float *sorted, size_t n, double p);
/* Of n >= 1 sorted values: the middle one, or the mean of the two in the middle. */
double qsf_score_median(const float *sorted, size_t n);

#endif
