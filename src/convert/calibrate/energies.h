/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adds up the squares of inputs by channel, in the order of the positions, and turns the sums into means. */
#ifndef QSF_CONVERT_CALIBRATE_ENERGIES_H
#define QSF_CONVERT_CALIBRATE_ENERGIES_H

#include "src/convert/calibrate/channels.h"
#include "src/forward/forward.h"

/* Adds the columns of t, the input of step s, to the sums (n_energies) and counts (n_counts)
 * of the step's lists. */
void qsf_energies_add(const QsfChannels *c, const QsfStep *s, const QsfTapData *t, float *sum,
                      uint64_t *count);
/* Replaces the sums by means with the floor of qsf_calibrate_run. scratch: (2, c->widest). */
void qsf_energies_finish(const QsfChannels *c, float *sum, const uint64_t *count, float *scratch);

#endif
