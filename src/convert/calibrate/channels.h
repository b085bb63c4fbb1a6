/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which inputs of matrices a calibration adds up, and which tensors they weight: read from the program.
 * Tensors that one step multiplies by one input share a list of channels, as do steps that read the same
 * values one after the other. */
#ifndef QSF_CONVERT_CALIBRATE_CHANNELS_H
#define QSF_CONVERT_CALIBRATE_CHANNELS_H

#include "src/convert/pack/calibration.h"
#include "src/forward/forward.h"
#include "src/model/model.h"

/* A list of channels, or one for each of the matrices of a tensor. */
typedef struct QsfChannelList {
    uint64_t at;          /* energies before it: as QsfCalTensor.at */
    uint64_t count;       /* counters before it */
    uint32_t width, sets; /* (sets, width) energies, and one counter of columns for each set */
    bool routed;          /* the sets are those of experts: a column belongs to those that it chose */
} QsfChannelList;

/* The input of a step is added to a list. */
typedef struct QsfChannelAdd {
    uint32_t step, list;
} QsfChannelAdd;

typedef struct QsfChannels {
    QsfCalTensor *tensor; /* (n_tensors) of the source, in its order */
    uint64_t n_tensors;
    QsfChannelList *list;
    uint32_t n_lists;
    QsfChannelAdd *add; /* in the order of the steps */
    uint32_t n_adds;
    uint32_t *first; /* (n_steps + 1) number of adds before each step */
    uint64_t n_energies, n_counts;
    uint32_t widest;
} QsfChannels;

/* Reads the program of m. Not weighted: the embedding and the token table, also where a step multiplies by
 * them, and a tensor that is both one matrix and a matrix for each head or expert. QSF_E_RUNTIME if out of
 * memory. The caller frees *out. */
int qsf_channels_make(QsfChannels *out, const QsfModel *m, QsfErr *err);
void qsf_channels_free(QsfChannels *c); /* *c may be zeroed */

/* Squares of inputs are added up by channel, in the order of the positions; the sums become means.
 *
 * Adds the columns of t, the input of step s, to the sums (n_energies) and counts (n_counts)
 * of the step's lists. */
void qsf_energies_add(const QsfChannels *c, const QsfStep *s, const QsfTapData *t, float *sum,
                      uint64_t *count);
/* Replaces the sums by means with the floor of qsf_calibrate_run. scratch: (2, c->widest). */
void qsf_energies_finish(const QsfChannels *c, float *sum, const uint64_t *count, float *scratch);

#endif
