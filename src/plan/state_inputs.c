/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step needs to continue its state once more (forward/replay.c): parts of its inputs, without what is
 * only read by outputs, and without what convolutions before it compute again. */
#include "src/plan/layout.h"

/* ---- ranges of floats ---- */

typedef struct Range {
    uint32_t from, to; /* empty: from >= to */
} Range;

static bool is_empty(Range r) { return r.from >= r.to; }

/* Returns the part of a slice that is in w. */
static Range common(QsfSlice w, QsfSlice part) {
    const uint32_t w_end = w.off + w.width, end = part.off + part.width;
    if (w.buf != part.buf || w.buf == QSF_NONE || w.width == 0) return (Range){ 0, 0 };
    return (Range){ w.off > part.off ? w.off : part.off, w_end < end ? w_end : end };
}

/* One range: the newer one, with the older one if that continues it. */
static Range with(Range have, Range more) {
    if (is_empty(have) || more.to < have.from || have.to < more.from) return more;
    return (Range){ more.from < have.from ? more.from : have.from, more.to > have.to ? more.to : have.to };
}

/* One range: of two that are left the second one. */
static Range without(Range have, Range less) {
    if (less.to <= have.from || have.to <= less.from) return have;
    if (less.to < have.to) return (Range){ less.to, have.to };
    return (Range){ have.from, less.from };
}

/* ---- what is computed again ---- */

/* Returns the part of a slice that convolutions of the block leave there for step i. */
static Range computed(const QsfProgram *p, uint32_t i, QsfSlice part) {
    Range have = { 0, 0 };
    uint32_t first = i;
    while (first > 0 && p->step[first - 1].block == p->step[i].block) first--;
    for (uint32_t j = first; j < i; j++)
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++) {
            const QsfStep *s = &p->step[j];
            const Range w = common(s->out[k], part);
            if (is_empty(w)) continue;
            have = s->op == QSF_OP_CONV && k == 0 ? with(have, w) : without(have, w);
        }
    return have;
}

/* Adds a part without that, if it is at one end of it. */
static void add(QsfStateInputs *in, const QsfProgram *p, uint32_t i, QsfSlice part) {
    const Range again = computed(p, i, part);
    const uint32_t end = part.off + part.width;
    if (!is_empty(again) && again.from == part.off) {
        part.off = again.to;
        part.width = end - again.to;
    } else if (!is_empty(again) && again.to == end) {
        part.width = again.from - part.off;
    }
    if (part.width == 0) return;
    in->part[in->n++] = part;
    in->floats += qsf_pad16(part.width);
}

static QsfSlice after(QsfSlice s, uint32_t n) { return (QsfSlice){ s.buf, s.off + n, s.width - n }; }

/* ---- steps ---- */

/* Left out are C of a scan, queries of linear attention, and decays that are the head's. */
void qsf_state_inputs(const QsfProgram *p, uint32_t i, QsfStateInputs *in) {
    const QsfStep *s = &p->step[i];
    *in = (QsfStateInputs){ 0 };
    switch (s->op) {
    case QSF_OP_SHIFT:
    case QSF_OP_CONV: add(in, p, i, s->in); break;
    case QSF_OP_SCAN1:
    case QSF_OP_SCAN2:
        add(in, p, i, s->in);
        add(in, p, i, s->in2);
        add(in, p, i, (QsfSlice){ s->in3.buf, s->in3.off, s->u.scan.groups * s->u.scan.n });
        break;
    case QSF_OP_DELTA:
        add(in, p, i, after(s->in, s->u.delta.k_heads * s->u.delta.k_dim));
        add(in, p, i, s->in2);
        add(in, p, i, s->in3);
        break;
    case QSF_OP_WKV:
        add(in, p, i, after(s->in, (s->u.wkv.kind == QSF_WKV_FIXED ? 2 : 1) * s->u.wkv.slot));
        break;
    default: break;
    }
}
