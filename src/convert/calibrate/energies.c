/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/calibrate/energies.h"

#include <string.h>

#include "src/sample/score.h"

/* Minimum energy relative to the median of the list, so that channels that this text happens not to use
 * still count a little. The mean is unsuitable: in some models a few channels are a million times larger than
 * the others. */
#define FLOOR 0.01
#define MOST  1e30f /* of an energy, so that products of weights stay finite */

static void add_squares(float *sum, const QsfTapData *t, uint32_t off) {
    for (uint32_t i = 0; i < t->n_cols; i++) {
        const float *x = t->x + (size_t)i * t->x_stride + off;
        for (uint32_t k = 0; k < t->k; k++) sum[k] += x[k] * x[k];
    }
}

void qsf_energies_add(const QsfChannels *c, const QsfStep *s, const QsfTapData *t, float *sum,
                      uint64_t *count) {
    const bool routed = t->expert != QSF_NONE;
    const uint32_t stride = s->op == QSF_OP_HEAD_LINEAR ? s->u.head_linear.in_stride : 0;
    for (uint32_t i = c->first[t->step]; i < c->first[t->step + 1]; i++) {
        const QsfChannelList *l = &c->list[c->add[i].list];
        if (l->routed != routed) continue;
        const uint32_t begin = routed ? t->expert : 0, end = routed ? t->expert + 1 : l->sets;
        for (uint32_t set = begin; set < end; set++) {
            add_squares(sum + l->at + (uint64_t)set * l->width, t, routed ? 0 : set * stride);
            count[l->count + set] += t->n_cols;
        }
    }
}

/* Computes the mean of all sets of a list. */
static void mean_of_all(const QsfChannelList *l, const float *sum, const uint64_t *count, float *out) {
    uint64_t n = 0;
    for (uint32_t s = 0; s < l->sets; s++) n += count[l->count + s];
    for (uint32_t k = 0; k < l->width; k++) {
        double all = 0;
        for (uint32_t s = 0; s < l->sets; s++) all += (double)sum[l->at + (uint64_t)s * l->width + k];
        out[k] = n > 0 ? (float)(all / (double)n) : 0;
    }
}

static void raise_to_floor(float *e, uint32_t n, float *scratch) {
    for (uint32_t k = 0; k < n; k++) {
        if (!(e[k] < MOST)) e[k] = MOST;
        scratch[k] = e[k];
    }
    qsf_score_sort(scratch, n);
    const float least = (float)(FLOOR * qsf_score_median(scratch, n));
    for (uint32_t k = 0; k < n; k++)
        if (e[k] < least) e[k] = least;
}

void qsf_energies_finish(const QsfChannels *c, float *sum, const uint64_t *count, float *scratch) {
    float *mean = scratch + c->widest;
    for (uint32_t i = 0; i < c->n_lists; i++) {
        const QsfChannelList *l = &c->list[i];
        const double more = l->routed ? 1 : 0; /* columns with the mean of all experts */
        memset(mean, 0, l->width * sizeof *mean);
        if (l->routed) mean_of_all(l, sum, count, mean);
        for (uint32_t s = 0; s < l->sets; s++) {
            float *e = sum + l->at + (uint64_t)s * l->width;
            const double n = (double)count[l->count + s] + more;
            for (uint32_t k = 0; k < l->width && n > 0; k++)
                e[k] = (float)(((double)e[k] + more * (double)mean[k]) / n);
            raise_to_floor(e, l->width, scratch);
        }
    }
}
