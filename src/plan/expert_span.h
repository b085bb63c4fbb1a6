/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the matrices of one expert lie in the file, and in its slot. In a GGUF file each is a separate range,
 * or gate and up are one; in a QSF file all of them follow one another (man/qsf-format.5). Pure functions. */
#ifndef QSF_PLAN_EXPERT_SPAN_H
#define QSF_PLAN_EXPERT_SPAN_H

#include "src/plan/units.h"

/* Matrices of one file that are read at once, because that is no more than the windows of each. */
typedef struct QsfExpertRange {
    bool one;       /* false: each window is read alone */
    uint64_t from;  /* of one: its offset in the file, a multiple of QSF_WINDOW */
    uint64_t bytes; /* of the range, or of all windows: what it needs in a slot, a multiple of QSF_WINDOW */
} QsfExpertRange;

typedef struct QsfExpertSpan {
    QsfExpertRange all;     /* of both units; if it is not one, each unit may be */
    QsfExpertRange unit[2]; /* the second lies after the first in the slot */
} QsfExpertSpan;

/* Fills out for an expert with these two units. */
void qsf_expert_span(const QsfUnit *first, const QsfUnit *second, QsfExpertSpan *out);
/* Makes the chunk of all of the first (which 0) or second unit, in which window and at of the parts count
 * from the start of the slot. */
void qsf_expert_chunk(const QsfUnit *first, const QsfUnit *second, unsigned which, QsfChunk *c);

#endif
