/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses which rows stream. The streamed share of the weights is diffused over the units: each unit
 * adds its part to a carry, and streams a tail of its rows as soon as the carry is large enough for an
 * efficient read. So the streamed pieces lie evenly between pinned rows, whose computation hides the
 * reads, and no unit reads tiny pieces. Experts are pinned when everything else is, and blocks that an
 * answer skips when memory is left over. */
#include "src/plan/plan_impl.h"
#include "src/plan/units.h"

#define PIECE QSF_MIB      /* below this a read costs more than its bytes */
#define GRAIN (16u * 1024) /* precision of the search */

static uint32_t down16(uint64_t v) { return (uint32_t)(v / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM); }

/* Maximum number of items in a chunk that fills a slot. */
static uint32_t full_chunk(const QsfUnit *u, uint64_t slot_bytes) {
    uint32_t n = qsf_unit_chunk_items(u, UINT32_MAX - QSF_ROW_QUANTUM, slot_bytes);
    return n < u->items ? n : u->items;
}

/* Number of items of u to stream for a carry of `carry` bytes: whole chunks or everything; 0 while the
 * carry is less than a piece. */
static uint32_t quota(const QsfUnit *u, uint64_t slot_bytes, double carry) {
    if (carry >= (double)u->bytes) return u->items;
    double per_item = (double)u->bytes / u->items;
    uint32_t chunk = full_chunk(u, slot_bytes);
    uint32_t piece = chunk * (uint32_t)(1 + (PIECE - 1) / (uint64_t)(per_item * chunk + QSF_WINDOW));
    uint32_t n = (uint32_t)(carry / per_item) / chunk * chunk;
    return n >= piece ? n : 0;
}

/* Number of first items of u that stay pinned when n of them stream; a multiple of the quantum, or all. */
static uint32_t pinned_of(const QsfUnit *u, uint32_t n) {
    if (n == 0) return u->items;
    uint32_t rest = u->items - n;
    uint32_t up = down16(rest + QSF_ROW_QUANTUM - 1);
    return up < u->items ? up : u->items;
}

/* The last unit streams the rest of the carry. */
static uint32_t pinned_of_last(const QsfUnit *u, double carry) {
    if (carry <= 0) return u->items;
    if (carry >= (double)u->bytes) return 0;
    double n = carry / ((double)u->bytes / u->items);
    return down16(u->items - 1 - (uint32_t)n);
}

/* A compressed layer is counted whole, with its first unit. */
uint64_t qsf_plan_held_bytes(const QsfPricing *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        QsfUnit u;
        if (!qsf_plan_holds(s, i)) continue;
        qsf_unit_at(s->m, i, &u);
        if (u.compressed == NULL)
            sum += qsf_unit_pinned_bytes(&u, u.items);
        else if (qsf_unit_opens_compressed(&u))
            sum += qsf_compressed_whole(u.compressed);
    }
    return sum;
}

/* Bytes of the units that every pass of an answer reads, if they stream. */
static uint64_t fixed_bytes(const QsfPricing *s) {
    uint64_t sum = s->shape.weight_bytes - s->shape.expert_bytes;
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        QsfUnit u;
        const bool held = qsf_plan_holds(s, i);
        if (!held && (!qsf_plan_skips(s, i) || s->m->prog.unit[i].on_demand)) continue;
        qsf_unit_at(s->m, i, &u);
        sum -= u.bytes;
    }
    return sum;
}

/* Unit i opens a compressed layer, which is streamed or pinned as a whole, depending on the carry. Returns
 * its number of units. */
static uint32_t load_layer(const QsfPricing *s, uint32_t i, const QsfCompressed *c, double share,
                           double *carry, QsfSpread *r, uint32_t *pinned) {
    uint64_t bytes = 0;
    QsfUnit u;
    uint32_t n = 1;
    for (uint32_t k = 0; k < n; k++) {
        qsf_unit_at(s->m, i + k, &u);
        n = u.layer_units;
        bytes += u.bytes;
        pinned[i + k] = u.items;
    }
    *carry += share * (double)bytes;
    bool streams = *carry >= (double)bytes;
    for (uint32_t k = 0; streams && k < n; k++) pinned[i + k] = 0;
    if (streams) *carry -= (double)bytes;
    r->weight += streams ? 0 : bytes;
    r->streamed += streams ? bytes : 0;
    r->held += streams ? 0 : qsf_compressed_whole(c);
    return n;
}

static QsfSpread diffuse(const QsfPricing *s, uint64_t slot_bytes, uint64_t stream, uint32_t *pinned) {
    QsfSpread r = { 0 };
    const uint64_t fixed = fixed_bytes(s); /* stream <= fixed */
    double carry = 0, share = fixed > 0 ? (double)stream / (double)fixed : 0;
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        const bool last = i + 1 == s->shape.n_units, held = qsf_plan_holds(s, i);
        if (!held && (u.on_demand || qsf_plan_skips(s, i))) {
            pinned[i] = 0;
            if (u.on_demand || qsf_quality_sketches(&s->o->quality, i))
                r.streamed += qsf_quality_unit_bytes(&s->o->quality, &u);
            continue;
        }
        if (u.compressed != NULL) {
            double none = 0;
            i += load_layer(s, i, u.compressed, held ? 0 : share, held ? &none : &carry, &r, pinned) - 1;
            continue;
        }
        if (!held) carry += share * (double)u.bytes;
        pinned[i] = held   ? u.items
                    : last ? pinned_of_last(&u, carry)
                           : pinned_of(&u, quota(&u, slot_bytes, carry));
        uint64_t weight = qsf_unit_item_bytes(&u, 0, pinned[i]);
        carry -= (double)(u.bytes - weight);
        r.weight += weight;
        r.streamed += u.bytes - weight;
        r.held += qsf_unit_pinned_bytes(&u, pinned[i]);
    }
    return r;
}

/* ---- experts ---- */

/* Pins n experts: about the same number, with the lowest ids, in each block, so that more
 * memory never unpins one. */
static QsfSpread pin_experts(const QsfPricing *s, QsfSpread dense, uint64_t n, uint32_t *pinned) {
    const QsfProgram *p = &s->m->prog;
    QsfSpread r = dense;
    uint64_t left = n, blocks = s->shape.expert_blocks;
    for (uint32_t block = 0; block < p->n_blocks; block++) {
        bool any = false;
        const uint64_t here = blocks > 0 ? (left + blocks - 1) / blocks : 0;
        uint32_t done = 0;
        for (uint32_t i = p->block_unit[block]; i < p->block_unit[block + 1]; i++) {
            QsfUnit u;
            if (!p->unit[i].on_demand || qsf_plan_skips(s, i)) continue;
            any = true;
            pinned[i] = 0;
            if (p->unit[i].expert >= here) continue;
            qsf_unit_at(s->m, i, &u);
            pinned[i] = u.items;
            r.held += qsf_unit_pinned_bytes(&u, u.items);
            r.weight += u.bytes;
            r.streamed -= qsf_quality_unit_bytes(&s->o->quality, &u);
            done = u.expert + 1;
        }
        if (any) {
            left -= done;
            blocks--;
        }
    }
    return r;
}

static bool allowed(const QsfPricing *s, const QsfSpread *r, uint64_t room) {
    return r->held <= room && r->weight <= s->o->pin_cap;
}

/* What a token reads of experts if none is in memory. */
static uint64_t experts_streamed(const QsfPricing *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        QsfUnit u;
        if (!s->m->prog.unit[i].on_demand) continue;
        qsf_unit_at(s->m, i, &u);
        sum += qsf_quality_unit_bytes(&s->o->quality, &u);
    }
    return sum;
}

/* Spends what is left after all other units are pinned: all experts, or slots for those that are wanted
 * most. */
static QsfSpread spread_experts(const QsfPricing *s, QsfSpread dense, uint64_t room, uint32_t *pinned) {
    const QsfShape *shape = &s->shape;
    const QsfSpread all = pin_experts(s, dense, shape->n_experts, pinned);
    if (allowed(s, &all, room)) return all;
    QsfSpread r = pin_experts(s, dense, 0, pinned);
    uint64_t slots = (room - r.held) / shape->expert_slot;
    const uint64_t cap = (s->o->pin_cap - r.weight) / (shape->expert_bytes / shape->n_experts);
    if (slots > cap) slots = cap;
    if (slots > shape->n_experts) slots = shape->n_experts;
    if (slots < shape->experts_used || slots < 2) return r;
    r.slots = (uint32_t)slots;
    r.held += slots * shape->expert_slot;
    r.weight += slots * (shape->expert_bytes / shape->n_experts);
    r.hits = qsf_plan_expert_hits(s, slots);
    r.streamed -= (uint64_t)((double)experts_streamed(s) * r.hits);
    return r;
}

/* Pins what an answer skips, for prompts: whole blocks, as long as they fit. */
static QsfSpread pin_skipped(const QsfPricing *s, QsfSpread r, uint64_t room, uint32_t *pinned) {
    const QsfProgram *p = &s->m->prog;
    for (uint32_t block = 0; block < p->n_blocks; block++) {
        QsfSpread more = r;
        QsfUnit u;
        if (p->block_unit[block] == p->block_unit[block + 1] || !qsf_plan_skips(s, p->block_unit[block]))
            continue;
        for (uint32_t i = p->block_unit[block]; i < p->block_unit[block + 1]; i++) {
            qsf_unit_at(s->m, i, &u);
            more.held += qsf_unit_pinned_bytes(&u, u.items);
            more.weight += u.bytes;
        }
        if (!allowed(s, &more, room)) break;
        r = more;
        for (uint32_t i = p->block_unit[block]; i < p->block_unit[block + 1]; i++) {
            qsf_unit_at(s->m, i, &u);
            pinned[i] = u.items;
        }
    }
    return r;
}

/* Pins a head with a sketch, if nothing else streams and all of it fits. */
static QsfSpread pin_sketched(const QsfPricing *s, QsfSpread r, uint64_t room, uint32_t *pinned) {
    const uint32_t head = s->shape.n_units - 1;
    QsfSpread more = r;
    QsfUnit u;
    qsf_unit_at(s->m, head, &u);
    const uint64_t bytes = qsf_quality_unit_bytes(&s->o->quality, &u);
    if (!qsf_quality_sketches(&s->o->quality, head) || pinned[head] > 0 || r.streamed > bytes) return r;
    more.held += qsf_unit_pinned_bytes(&u, u.items);
    more.weight += u.bytes;
    more.streamed -= bytes;
    if (!allowed(s, &more, room)) return r;
    pinned[head] = u.items;
    return more;
}

QsfSpread qsf_plan_spread(const QsfPricing *s, uint64_t slot_bytes, uint64_t room, uint32_t *pinned) {
    const uint64_t all = fixed_bytes(s);
    uint64_t lo = 0, hi = (all + GRAIN - 1) / GRAIN; /* in grains; hi is enough */
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2, stream = mid * GRAIN < all ? mid * GRAIN : all;
        QsfSpread r = diffuse(s, slot_bytes, stream, pinned);
        if (allowed(s, &r, room))
            hi = mid;
        else
            lo = mid + 1;
    }
    QsfSpread r = diffuse(s, slot_bytes, hi * GRAIN < all ? hi * GRAIN : all, pinned);
    if (hi == 0 && s->shape.on_demand) r = spread_experts(s, r, room, pinned);
    r = pin_sketched(s, r, room, pinned);
    return r.streamed == 0 ? pin_skipped(s, r, room, pinned) : r;
}
