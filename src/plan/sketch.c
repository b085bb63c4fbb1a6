/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/sketch.h"

#include <string.h>

#include "src/plan/layout.h"

#define ROWS_LEAST 32768u /* smaller heads are a small part of a token */
#define PART_LEAST 10u    /* so is a head below this fraction of the bytes of a token */
#define CHOSEN     64u    /* one of 64 groups is always multiplied in full */
#define STAGE      (1u << 20)

static uint64_t active_bytes(const QsfModel *m) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        sum += qsf_unit_active_bytes(&u);
    }
    return sum;
}

/* Is there a step that multiplies one column by the unit and does nothing else? */
static bool is_plain(const QsfModel *m, const QsfUnit *u) {
    const QsfProgram *p = &m->prog;
    for (uint32_t i = p->head_step; i < p->n_steps; i++)
        if (p->step[i].op == QSF_OP_LINEAR && p->step[i].u.linear.unit == u->index)
            return p->step[i].u.linear.act == QSF_ACT_NONE && p->step[i].out[0].buf == QSF_BUF_LOGITS;
    return false;
}

static bool can_be_sketched(const QsfModel *m, const QsfUnit *u) {
    return u->n == 1 && u->heads == 0 && !u->on_demand && u->compressed == NULL && u->rows[0] >= ROWS_LEAST &&
           u->rows[0] == m->hp.n_vocab && u->k % QK_Q1_BLOCK == 0 && is_plain(m, u);
}

static uint64_t place(QsfSketchShape *s, uint64_t bytes) {
    const uint64_t at = s->total;
    s->total += (bytes + 63) & ~63ull;
    return at;
}

bool qsf_sketch_shape(const QsfModel *m, int threads, QsfSketchShape *s) {
    QsfUnit u;
    memset(s, 0, sizeof *s);
    if (qsf_unit_count(m) == 0) return false;
    qsf_unit_at(m, qsf_unit_count(m) - 1, &u);
    const uint64_t head = (uint64_t)u.rows[0] * u.row_bytes[0]; /* also if it is borrowed */
    if (!can_be_sketched(m, &u) || head < active_bytes(m) / PART_LEAST) return false;
    const uint64_t row = u.k / QK_Q1_BLOCK * sizeof(qk_q1_0);
    if (3 * row > u.row_bytes[0]) return false; /* it would gain little */
    s->unit = u.index;
    s->rows = u.rows[0];
    s->k = u.k;
    s->groups = (s->rows + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM;
    s->chosen = s->groups / CHOSEN;
    s->row_bytes = row;
    s->head_group = QSF_ROW_QUANTUM * u.row_bytes[0];
    s->chosen_bytes = s->chosen * s->head_group;
    s->stage_groups = s->head_group < STAGE ? STAGE / s->head_group : 1;
    (void)place(s, s->groups * QSF_ROW_QUANTUM * row);
    s->mean = place(s, u.k * sizeof(float));
    s->best = place(s, s->groups * sizeof(float));
    s->picks = place(s, s->chosen * sizeof(qk_pick));
    s->list = place(s, s->groups * sizeof(uint32_t));
    s->values = place(s, s->chosen * QSF_ROW_QUANTUM * sizeof(float));
    s->stage = place(s, s->stage_groups * s->head_group);
    /* Per thread: a row as floats and as in the file, and a group of the sketch. */
    s->scratch_rows = ((4ull * u.k + 63) & ~63ull) + ((u.row_bytes[0] + 63) & ~63ull);
    s->scratch_stride = s->scratch_rows + ((QSF_ROW_QUANTUM * row + 63) & ~63ull);
    s->scratch = place(s, (uint64_t)threads * s->scratch_stride);
    s->total = qsf_pages(s->total);
    return true;
}
