/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The slots of experts and their owners. */
#include "src/stream/expert_pool_impl.h"

#include <stdlib.h>
#include <string.h>

#include "src/plan/expert_span.h"
#include "src/plan/layout.h"
#include "src/stream/interleave.h"

#define NAME      "expert slots"
#define MOVE_MOST (64u << 20) /* bytes that are moved when the pool shrinks */
/* To convert an expert takes about as long as to multiply its rows twice; groups take half as long as
 * rows. */
#define PACK_HITS 2u
#define PACK_COLS 4u

/* ---- sizes ---- */

/* Returns the number of the expert that a unit belongs to. */
uint32_t qsf_expert_find(const QsfExpertPool *p, uint32_t unit) {
    uint32_t lo = 0, hi = p->n_experts;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (p->unit[mid] <= unit)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

uint8_t *qsf_expert_place(const QsfExpertPool *p, uint32_t e, unsigned which, QsfChunk *c) {
    const QsfWeightUnit *w = &p->units[p->unit[e]];
    qsf_expert_chunk(&w[0].u, &w[1].u, which, c);
    return p->space.base + p->expert[e].slot * p->slot_bytes;
}

/* ---- slots ---- */

void qsf_expert_leave(QsfExpertPool *p, uint32_t e) {
    QsfExpert *x = &p->expert[e];
    if (x->slot == QSF_NO_SLOT) return;
    if (x->unused) qsf_expert_ahead_done(p, e, false);
    if (x->there == 3) qsf_expert_count(p, e, -1);
    p->owner[x->slot] = QSF_NO_SLOT;
    p->n_free++;
    x->slot = QSF_NO_SLOT;
    x->there = 0;
}

void qsf_expert_enter(QsfExpertPool *p, uint32_t e, uint32_t slot) {
    if (p->owner[slot] != QSF_NO_SLOT) qsf_expert_leave(p, p->owner[slot]);
    p->owner[slot] = e;
    p->n_free--;
    p->expert[e].slot = slot;
    p->expert[e].there = p->expert[e].hits = 0;
    p->expert[e].packed = false;
}

/* May the owner of a slot be given up? forced: also one that is still to be computed, if it is complete. */
static bool may_leave(const QsfExpert *x, bool forced) { return !x->queued && (forced || !x->wanted); }

/* Returns a free slot among the first n, or that of the owner that waits longest; QSF_NO_SLOT: all are in
 * use. but: not this expert's. */
uint32_t qsf_expert_find_slot(const QsfExpertPool *p, uint32_t n, uint32_t but, bool forced) {
    uint32_t best = QSF_NO_SLOT;
    float longest = 0;
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t e = p->owner[s];
        if (e == QSF_NO_SLOT) return s;
        if (e == but || !may_leave(&p->expert[e], forced)) continue;
        const float wait = qsf_expert_wait(p, e);
        if (best != QSF_NO_SLOT && wait <= longest) continue;
        best = s;
        longest = wait;
    }
    return best;
}

/* ---- requests ---- */

void qsf_expert_pool_request(QsfExpertPool *p, uint32_t unit) {
    const uint32_t e = qsf_expert_find(p, unit);
    if (p->n_wanted == 0) p->n_list = 0;
    if (p->expert[e].wanted || p->n_list == QSF_MAX_EXPERTS) return;
    p->list[p->n_list++] = e;
    p->expert[e].wanted = true;
    p->n_wanted++;
    if (p->expert[e].unused) qsf_expert_ahead_done(p, e, true);
    if (p->expert[e].there == 3 && p->expert[e].hits < PACK_HITS) p->expert[e].hits++;
}

bool qsf_expert_pool_has(const QsfExpertPool *p, uint32_t unit) {
    return p->expert[qsf_expert_find(p, unit)].there == 3;
}

/* ---- groups ---- */

/* Groups of tensor t of a unit that are multiplied as such, and lie in the file as rows. */
static size_t groups_of(const QsfWeightUnit *w, unsigned t) {
    return w->u.x16[t] ? 0 : qsf_interleaved_rows(w, t, w->u.rows[t]) / QSF_ROW_QUANTUM;
}

size_t qsf_expert_pool_to_pack(QsfExpertPool *p, uint32_t unit, uint32_t n_cols) {
    const QsfExpert *x = &p->expert[qsf_expert_find(p, unit)];
    size_t n = 0;
    if (x->there != 3 || x->packed || (x->hits < PACK_HITS && n_cols < PACK_COLS)) return 0;
    for (uint32_t i = unit; i < unit + 2; i++)
        for (unsigned t = 0; t < p->units[i].u.n; t++) n += groups_of(&p->units[i], t);
    return n;
}

/* Groups [from, to) of those of one tensor, whose rows lie at `at`. */
static void pack_tensor(const QsfWeightUnit *w, unsigned t, uint8_t *at, size_t from, size_t to,
                        uint8_t *scratch) {
    const size_t bytes = QSF_ROW_QUANTUM * (size_t)w->u.row_bytes[t];
    for (size_t g = from; g < to; g++)
        qsf_interleave_convert(w->ops[t], true, at + g * bytes, (size_t)w->u.row_bytes[t], w->u.k, scratch);
}

void qsf_expert_pool_pack(const QsfExpertPool *p, uint32_t unit, size_t from, size_t to, uint8_t *scratch) {
    const uint32_t e = qsf_expert_find(p, unit);
    size_t before = 0;
    for (unsigned which = 0; which < 2; which++) {
        const QsfWeightUnit *w = &p->units[unit + which];
        QsfChunk c;
        uint8_t *slot = qsf_expert_place(p, e, which, &c);
        for (unsigned i = 0; i < c.n_parts; i++) {
            const unsigned t = c.part[i].tensor;
            const size_t n = groups_of(w, t), lo = from > before ? from - before : 0,
                         hi = to > before ? to - before : 0;
            pack_tensor(w, t, slot + c.part[i].at, lo < n ? lo : n, hi < n ? hi : n, scratch);
            before += n;
        }
    }
}

void qsf_expert_pool_packed(QsfExpertPool *p, uint32_t unit) {
    p->expert[qsf_expert_find(p, unit)].packed = true;
}
bool qsf_expert_pool_is_packed(const QsfExpertPool *p, uint32_t unit) {
    return p->expert[qsf_expert_find(p, unit)].packed;
}

/* ---- size ---- */

uint32_t qsf_expert_pool_slots(const QsfExpertPool *p) { return p->n_slots; }
uint64_t qsf_expert_pool_slot_bytes(const QsfExpertPool *p) { return p->slot_bytes; }

/* The owners of slots [n, n_slots) move to those of less wanted ones before. */
static void move_down(QsfExpertPool *p, uint32_t n) {
    uint64_t moved = 0;
    for (uint32_t s = n; s < p->n_slots; s++) {
        const uint32_t e = p->owner[s],
                       to = e != QSF_NO_SLOT ? qsf_expert_find_slot(p, n, e, true) : QSF_NO_SLOT;
        if (e == QSF_NO_SLOT) continue;
        const QsfExpert x = p->expert[e];
        qsf_expert_leave(p, e);
        if (to == QSF_NO_SLOT || moved >= MOVE_MOST ||
            (p->owner[to] != QSF_NO_SLOT && qsf_expert_wait(p, p->owner[to]) <= qsf_expert_wait(p, e)))
            continue;
        qsf_expert_enter(p, e, to);
        memcpy(p->space.base + to * p->slot_bytes, p->space.base + s * p->slot_bytes, p->slot_bytes);
        p->expert[e].there = x.there;
        if (x.there == 3) qsf_expert_count(p, e, 1);
        p->expert[e].packed = x.packed;
        p->expert[e].hits = x.hits;
        moved += p->slot_bytes;
    }
}

int qsf_expert_pool_resize(QsfExpertPool *p, uint32_t n, QsfErr *err) {
    if (n > p->n_experts) n = p->n_experts;
    qsf_expert_ahead_finish(p);
    if (n < p->n_slots) move_down(p, n);
    int rc = qsf_space_resize(p->ledger, QSF_MEM_PINNED, NAME, &p->space.base, p->n_slots * p->slot_bytes,
                              n * p->slot_bytes, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t s = p->n_slots; s < n; s++) p->owner[s] = QSF_NO_SLOT;
    p->n_slots = n;
    p->n_free = 0;
    if (p->o.counters != NULL) atomic_store_explicit(&p->o.counters->expert_slots, n, memory_order_relaxed);
    for (uint32_t s = 0; s < n; s++) p->n_free += p->owner[s] == QSF_NO_SLOT;
    return QSF_OK;
}

/* ---- life ---- */

int qsf_expert_pool_start(QsfExpertPool *p, const QsfLoaderOptions *o, QsfErr *err) {
    const QsfIoOptions io = { .src = o->src, .config = o->stream, .ledger = o->ledger };
    p->o = *o;
    atomic_store_explicit(&o->counters->expert_slots, p->n_slots, memory_order_relaxed);
    return qsf_io_create(&p->io, &io, err);
}

void qsf_expert_pool_stop(QsfExpertPool *p) {
    if (p == NULL || p->io == NULL) return;
    qsf_expert_pool_reset(p);
    qsf_io_destroy(p->io);
    p->io = NULL;
}

static void find_experts(QsfExpertPool *p) {
    for (uint32_t i = 0; i + 1 < p->n_units; i++) {
        const QsfWeightUnit *w = &p->units[i];
        if (!w->u.on_demand) continue;
        QsfExpertSpan span;
        qsf_expert_span(&w[0].u, &w[1].u, &span);
        if (span.all.bytes > p->slot_bytes) p->slot_bytes = span.all.bytes;
        p->unit[p->n_experts] = i;
        p->expert[p->n_experts++] = (QsfExpert){ .slot = QSF_NO_SLOT, .together = span.all.one };
        i++;
    }
}

int qsf_expert_pool_create(QsfExpertPool **out, QsfWeightUnit *units, uint32_t n_units, QsfLedger *ledger,
                           QsfErr *err) {
    *out = NULL;
    QsfExpertPool *p = calloc(1, sizeof *p);
    if (p == NULL) return qsf_err_memory(err, NAME);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_units; i++) n += units[i].u.on_demand;
    n /= 2;
    p->units = units;
    p->n_units = n_units;
    p->ledger = ledger;
    p->meta_bytes = qsf_pages((uint64_t)n * QSF_EXPERT_BYTES);
    int rc = qsf_mem_map(ledger, QSF_MEM_META, p->meta_bytes, "experts", &p->meta, err);
    if (rc == QSF_OK) {
        p->expert = p->meta;
        p->unit = (uint32_t *)(void *)(p->expert + n);
        p->owner = p->unit + n;
        p->order = p->owner + n;
        p->stack = p->order + n;
        p->uses = p->stack + n;
        find_experts(p);
        qsf_expert_policy_init(p);
        qsf_expert_record_init(p);
        rc = qsf_space_open(&p->space, p->n_experts * p->slot_bytes, NAME, err);
    }
    if (rc != QSF_OK) {
        qsf_expert_pool_destroy(p);
        return rc;
    }
    *out = p;
    return QSF_OK;
}

void qsf_expert_pool_destroy(QsfExpertPool *p) {
    QsfErr none = { 0 };
    if (p == NULL) return;
    qsf_expert_pool_stop(p);
    if (p->n_slots > 0) (void)qsf_expert_pool_resize(p, 0, &none);
    qsf_space_close(&p->space);
    qsf_mem_unmap(p->ledger, QSF_MEM_META, p->meta, p->meta_bytes);
    free(p);
}

_Static_assert(sizeof(QsfExpert) + 5 * sizeof(uint32_t) <= QSF_EXPERT_BYTES, "the plan has room for it");
