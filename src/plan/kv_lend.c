/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/kv_lend.h"

#include <string.h>

#include "src/plan/layout.h"

#define STEP_BYTES (1u << 20)
#define STEP_LEAST 32u

/* ---- memory of positions ---- */

uint64_t qsf_lend_kv_bytes(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types, uint32_t ctx, uint32_t used) {
    const uint64_t all = qsf_kv_bytes(spec, n, types, ctx);
    uint64_t sum = 0;
    if (used >= ctx) return all;
    for (uint32_t i = 0; i < n && used > 0; i++) {
        const uint64_t tiles = qk_kv_tiles(qsf_kv_positions(&spec[i], used));
        for (unsigned which = 0; which < (spec[i].v_is_k ? 1u : 2u);
             which++) /* a run begins anywhere in a page */
            sum += spec[i].heads *
                   (qsf_pages(tiles * qsf_kv_tile(&spec[i], types, which)) + qsf_page_bytes());
    }
    return sum < all ? sum : all;
}

uint32_t qsf_lend_step(const QsfKvSpec *spec, uint32_t n, QsfKvTypes types) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) bytes += qsf_kv_spec_bytes(&spec[i], types, STEP_LEAST);
    if (bytes == 0) return 0;
    const uint64_t steps = (STEP_BYTES + bytes - 1) / bytes;
    return steps * STEP_LEAST < UINT32_MAX / 2 ? (uint32_t)steps * STEP_LEAST : UINT32_MAX / 2;
}

uint32_t qsf_lend_positions(uint32_t used, uint32_t step, uint32_t ctx) {
    if (step == 0 || used >= ctx) return ctx;
    const uint64_t n = ((uint64_t)used + step - 1) / step * step;
    return n == 0 ? (step < ctx ? step : ctx) : n < ctx ? (uint32_t)n : ctx;
}

/* ---- the order ---- */

static uint32_t reverse_bits(uint32_t v, unsigned n) {
    uint32_t r = 0;
    for (unsigned i = 0; i < n; i++) r |= (v >> i & 1u) << (n - 1 - i);
    return r;
}

static bool streams(const QsfModel *m, const QsfBlockSet *skip, const uint32_t *pinned, uint32_t unit,
                    bool expert) {
    QsfUnit u;
    if (m->prog.unit[unit].on_demand != expert) return false;
    if (skip != NULL && qsf_blocks_have(skip, m->prog.unit[unit].block)) return false;
    qsf_unit_at(m, unit, &u);
    return u.compressed == NULL && pinned[unit] < u.items;
}

/* Experts by their number, then by block: as many of each block. */
static uint32_t add_experts(const QsfModel *m, const QsfBlockSet *skip, const uint32_t *pinned,
                            uint32_t *order) {
    uint32_t at[QSF_MAX_EXPERTS + 1] = { 0 }, n_units = qsf_unit_count(m);
    for (uint32_t i = 0; i < n_units; i++)
        if (streams(m, skip, pinned, i, true)) at[m->prog.unit[i].expert + 1]++;
    for (uint32_t e = 0; e < QSF_MAX_EXPERTS; e++) at[e + 1] += at[e];
    const uint32_t n = at[QSF_MAX_EXPERTS];
    for (uint32_t i = 0; i < n_units; i++)
        if (streams(m, skip, pinned, i, true)) order[at[m->prog.unit[i].expert]++] = i;
    return n;
}

/* Every beginning of the list is spread evenly over the pass. */
static uint32_t add_fixed(const QsfModel *m, const QsfBlockSet *skip, const uint32_t *pinned,
                          uint32_t *order) {
    const uint32_t n_units = qsf_unit_count(m);
    unsigned bits = 0;
    uint32_t n = 0;
    while (bits < 31 && (1u << bits) < n_units) bits++;
    for (uint32_t k = 0; k < 1u << bits; k++) {
        const uint32_t i = reverse_bits(k, bits);
        if (i < n_units && streams(m, skip, pinned, i, false)) order[n++] = i;
    }
    return n;
}

uint32_t qsf_lend_order(const QsfModel *m, const QsfBlockSet *skip, const uint32_t *pinned, uint32_t *order) {
    const uint32_t n = add_fixed(m, skip, pinned, order);
    return n + add_experts(m, skip, pinned, order + n);
}

/* ---- rows ---- */

static uint64_t more_bytes(const QsfUnit *u, uint32_t pinned, uint32_t items) {
    return qsf_unit_pinned_bytes(u, items) - qsf_unit_pinned_bytes(u, pinned);
}

/* Returns the largest number of items in [pinned, u->items) that fits, a multiple of the quantum. */
static uint32_t part_that_fits(const QsfUnit *u, uint32_t pinned, uint64_t room) {
    uint32_t lo = pinned / QSF_ROW_QUANTUM,
             hi = (u->items + QSF_ROW_QUANTUM - 1) / QSF_ROW_QUANTUM; /* too much */
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (more_bytes(u, pinned, mid * QSF_ROW_QUANTUM) <= room)
            lo = mid;
        else
            hi = mid;
    }
    return lo * QSF_ROW_QUANTUM;
}

uint32_t qsf_lend_items(const QsfUnit *u, uint32_t pinned, uint64_t *room) {
    uint32_t n = u->items;
    if (*room == 0) return pinned; /* not even the rest of a page */
    if (more_bytes(u, pinned, n) > *room) n = u->on_demand ? pinned : part_that_fits(u, pinned, *room);
    *room -= more_bytes(u, pinned, n);
    return n;
}
