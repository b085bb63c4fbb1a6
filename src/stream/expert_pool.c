/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The slots, their owners and the reads into them. */
#include "src/stream/expert_pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/space.h"
#include "src/plan/layout.h"
#include "src/stream/checksums.h"
#include "src/stream/interleave.h"

#define NAME       "expert slots"
#define NONE       UINT32_MAX
#define AGES       256u        /* beyond, a use within a pass counts as nothing */
#define SCALE_MOST 500.0       /* half-lives until the scores are scaled down */
#define MOVE_MOST  (64u << 20) /* bytes that are moved when the pool shrinks */
/* To convert an expert takes about as long as to multiply its rows twice; groups take half as long as rows. */
#define PACK_HITS 2u
#define PACK_COLS 4u

typedef struct Expert {
    double score;  /* of the uses, times 2 ^ (now / QSF_EXPERT_HALF) of its last scaling */
    uint32_t slot; /* NONE: it has none */
    uint8_t there; /* bit i: unit i is in the slot */
    bool queued;   /* its units wait to be read, or are being read */
    bool wanted;   /* requested, and its second unit is not released yet */
    bool packed;   /* its rows are in groups */
    uint8_t hits;  /* requests that found it there, PACK_HITS at most */
} Expert;

/* A unit that is being read. */
typedef struct Job {
    uint32_t expert;
    unsigned which;
    unsigned n_reads;
    QsfIoRead read[QSF_UNIT_TENSORS];
} Job;

struct QsfExpertPool {
    QsfWeightUnit *units;
    QsfLedger *ledger;
    QsfLoaderOptions o;
    QsfIo *io; /* NULL: stopped */
    uint32_t n_units, n_experts;
    uint32_t *unit;  /* (n_experts) first units, ascending */
    Expert *expert;  /* (n_experts) */
    uint32_t *owner; /* (n_experts) of slots; NONE: free */
    void *meta;
    uint64_t meta_bytes, slot_bytes;
    QsfSpace space;
    uint32_t n_slots, n_free;
    double now, scale; /* positions, and 2 ^ (now / half) relative to the last scaling */
    double age[AGES];
    Job job[QSF_IO_DEPTH]; /* ring of n_jobs, the oldest one first */
    uint32_t first_job, n_jobs, n_reads;
    uint32_t queue[2 * QSF_MAX_EXPERTS]; /* of units, [queue_at, n_queue) */
    uint32_t queue_at, n_queue;
    uint32_t list[QSF_MAX_EXPERTS]; /* requested experts of the running layer */
    uint32_t n_list, n_wanted;
    uint32_t fill_id, fill_at; /* the next expert of a block, and expert, to fill a free slot with */
    uint64_t busy_since;
};

/* ---- sizes ---- */

static uint64_t bytes_of(const QsfWeightUnit *w) { return qsf_unit_pinned_bytes(&w->u, w->u.items); }

/* Returns the number of the expert that a unit belongs to. */
static uint32_t find(const QsfExpertPool *p, uint32_t unit) {
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

/* Where unit `which` of expert e lies in its slot. */
static uint8_t *place(const QsfExpertPool *p, uint32_t e, unsigned which) {
    uint8_t *slot = p->space.base + p->expert[e].slot * p->slot_bytes;
    return which == 0 ? slot : slot + bytes_of(&p->units[p->unit[e]]);
}

/* ---- slots ---- */

static void leave(QsfExpertPool *p, uint32_t e) {
    Expert *x = &p->expert[e];
    if (x->slot == NONE) return;
    p->owner[x->slot] = NONE;
    p->n_free++;
    x->slot = NONE;
    x->there = 0;
}

static void enter(QsfExpertPool *p, uint32_t e, uint32_t slot) {
    if (p->owner[slot] != NONE) leave(p, p->owner[slot]);
    p->owner[slot] = e;
    p->n_free--;
    p->expert[e].slot = slot;
    p->expert[e].there = p->expert[e].hits = 0;
    p->expert[e].packed = false;
}

/* May the owner of a slot be given up? forced: also one that is still to be computed, if it is complete. */
static bool may_leave(const Expert *x, bool forced) { return !x->queued && (forced || !x->wanted); }

/* Returns a free slot among the first n, or that of the owner with the lowest score; NONE: all are in use. but:
 * not this expert's. */
static uint32_t find_slot(const QsfExpertPool *p, uint32_t n, uint32_t but, bool forced) {
    uint32_t best = NONE;
    for (uint32_t s = 0; s < n; s++) {
        const uint32_t e = p->owner[s];
        if (e == NONE) return s;
        if (e == but || !may_leave(&p->expert[e], forced)) continue;
        if (best == NONE || p->expert[e].score < p->expert[p->owner[best]].score) best = s;
    }
    return best;
}

/* ---- reads ---- */

static void start(QsfExpertPool *p, uint32_t e, unsigned which) {
    const QsfUnit *u = &p->units[p->unit[e] + which].u;
    Job *j = &p->job[(p->first_job + p->n_jobs++) % QSF_IO_DEPTH];
    uint8_t *data = place(p, e, which);
    QsfChunk c;
    qsf_chunk_make(u, 0, u->items, &c);
    *j = (Job){ .expert = e, .which = which };
    if (p->n_jobs == 1) p->busy_since = qsf_now_ns();
    for (unsigned i = 0; i < c.n_parts; i++) {
        QsfIoRead *r = &j->read[j->n_reads++];
        *r = (QsfIoRead){ .file = u->tensor[c.part[i].tensor]->file,
                          .off = c.part[i].file_off,
                          .len = c.part[i].window_bytes,
                          .dst = data + c.part[i].window };
        qsf_io_start(p->io, r);
    }
    p->n_reads += j->n_reads;
}

/* Starts reads in the order of the queue, as many as may be in flight. forced: for the first of them another
 * expert may have to be read again. */
static void read_on(QsfExpertPool *p, bool forced) {
    while (p->queue_at < p->n_queue && p->n_jobs < QSF_IO_DEPTH &&
           p->n_reads + QSF_UNIT_TENSORS <= QSF_IO_DEPTH) {
        const uint32_t unit = p->queue[p->queue_at], e = find(p, unit);
        if (p->expert[e].slot == NONE) {
            const uint32_t slot = find_slot(p, p->n_slots, e, forced && p->n_jobs == 0);
            if (slot == NONE) return;
            enter(p, e, slot);
        }
        start(p, e, unit - p->unit[e]);
        p->queue_at++;
    }
}

static void count(const QsfExpertPool *p, const QsfUnit *u, uint64_t bytes, uint64_t waited_since) {
    QsfStreamCounters *n = p->o.counters;
    const uint64_t now = qsf_now_ns(), ns = now - waited_since;
    atomic_fetch_add_explicit(&n->bytes_read, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->wait_ns, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->read_ns, now - p->busy_since, memory_order_relaxed);
    if (n->layer == NULL) return;
    atomic_fetch_add_explicit(&n->layer[u->layer].read_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->layer[u->layer].wait_ns, ns, memory_order_relaxed);
}

static int verify(const QsfExpertPool *p, QsfWeightUnit *w, const uint8_t *data, QsfErr *err) {
    QsfChunk c;
    int rc = QSF_OK;
    if (p->o.sums == NULL || w->checked_items != 0) return QSF_OK;
    qsf_chunk_make(&w->u, 0, w->u.items, &c);
    for (unsigned i = 0; rc == QSF_OK && i < c.n_parts; i++) {
        const QsfPart *part = &c.part[i];
        rc = qsf_checksums_add(p->o.sums, w, part->tensor, part->row0, part->row1, data + part->at, err);
    }
    if (rc == QSF_OK) w->checked_items = c.item1;
    return rc;
}

/* Waits for the oldest read. */
static int finish(QsfExpertPool *p, QsfErr *err) {
    Job *j = &p->job[p->first_job];
    Expert *x = &p->expert[j->expert];
    QsfWeightUnit *w = &p->units[p->unit[j->expert] + j->which];
    const uint64_t t0 = qsf_now_ns();
    uint64_t got = 0;
    QsfErr later = { 0 };
    int rc = QSF_OK;
    for (unsigned i = 0; i < j->n_reads; i++) { /* all, even after a failure: their memory is in use */
        const int one = qsf_io_wait(p->io, &j->read[i], rc == QSF_OK ? err : &later);
        if (rc == QSF_OK) rc = one;
        got += j->read[i].got;
    }
    qsf_err_clear(&later);
    count(p, &w->u, got, t0);
    p->busy_since = qsf_now_ns();
    p->n_reads -= j->n_reads;
    p->first_job = (p->first_job + 1) % QSF_IO_DEPTH;
    p->n_jobs--;
    if (rc == QSF_OK) rc = verify(p, w, place(p, j->expert, j->which), err);
    if (rc == QSF_OK) x->there |= (uint8_t)(1u << j->which);
    if (j->which == 1) x->queued = false;
    return rc;
}

/* ---- requests ---- */

void qsf_expert_pool_begin_pass(QsfExpertPool *p, uint32_t n) {
    p->now += n;
    p->scale = exp2(p->now / QSF_EXPERT_HALF);
    if (p->now / QSF_EXPERT_HALF < SCALE_MOST) return;
    for (uint32_t e = 0; e < p->n_experts; e++) p->expert[e].score /= p->scale;
    p->now = 0;
    p->scale = 1;
}

void qsf_expert_pool_use(QsfExpertPool *p, uint32_t unit, uint32_t later) {
    if (later < AGES) p->expert[find(p, unit)].score += p->scale * p->age[later];
}

void qsf_expert_pool_request(QsfExpertPool *p, uint32_t unit) {
    const uint32_t e = find(p, unit);
    if (p->n_wanted == 0) p->n_list = 0;
    if (p->expert[e].wanted || p->n_list == QSF_MAX_EXPERTS) return;
    p->list[p->n_list++] = e;
    p->expert[e].wanted = true;
    p->n_wanted++;
    if (p->expert[e].there == 3 && p->expert[e].hits < PACK_HITS) p->expert[e].hits++;
}

bool qsf_expert_pool_has(const QsfExpertPool *p, uint32_t unit) {
    return p->expert[find(p, unit)].there == 3;
}

static bool is_missing(const QsfExpertPool *p, uint32_t e) { return p->expert[e].there != 3; }

static void enqueue(QsfExpertPool *p, uint32_t unit) {
    if (p->n_queue < 2 * QSF_MAX_EXPERTS) p->queue[p->n_queue++] = unit;
}

void qsf_expert_pool_read_ahead(QsfExpertPool *p, bool first_units) {
    p->queue_at = p->n_queue = 0;
    for (uint32_t i = 0; i < p->n_list; i++) {
        const uint32_t e = p->list[i];
        if (!is_missing(p, e)) continue;
        p->expert[e].queued = true;
        enqueue(p, p->unit[e]);
        if (!first_units) enqueue(p, p->unit[e] + 1);
    }
    for (uint32_t i = 0; first_units && i < p->n_list; i++)
        if (is_missing(p, p->list[i])) enqueue(p, p->unit[p->list[i]] + 1);
    read_on(p, false);
}

/* The last two units of the queue come first. */
static void put_first(QsfExpertPool *p) {
    const uint32_t n = p->n_queue - p->queue_at - 2;
    uint32_t last[2] = { p->queue[p->n_queue - 2], p->queue[p->n_queue - 1] };
    memmove(p->queue + p->queue_at + 2, p->queue + p->queue_at, n * sizeof *p->queue);
    memcpy(p->queue + p->queue_at, last, sizeof last);
}

/* It was given up after it was requested. */
static void request_again(QsfExpertPool *p, uint32_t e) {
    const uint32_t left = p->n_queue - p->queue_at;
    memmove(p->queue, p->queue + p->queue_at, left * sizeof *p->queue);
    p->queue_at = 0;
    p->n_queue = left;
    p->expert[e].queued = true;
    enqueue(p, p->unit[e]);
    enqueue(p, p->unit[e] + 1);
    put_first(p);
}

/* Nothing is in flight, and all slots belong to experts that are half read: e comes first, the others begin
 * again. */
static void start_over(QsfExpertPool *p, uint32_t e) {
    p->queue_at = p->n_queue = 0;
    for (uint32_t i = 0; i < p->n_list; i++) {
        const uint32_t x = p->list[i];
        if (!p->expert[x].wanted || !is_missing(p, x)) continue;
        leave(p, x);
        p->expert[x].queued = true;
        enqueue(p, p->unit[x]);
        enqueue(p, p->unit[x] + 1);
        if (x == e) put_first(p);
    }
}

/* Reads until the unit is there. */
static int wait_for(QsfExpertPool *p, uint32_t e, unsigned which, QsfErr *err) {
    const Expert *x = &p->expert[e];
    bool again = false;
    int rc = QSF_OK;
    if (is_missing(p, e) && !x->queued) request_again(p, e);
    while (rc == QSF_OK && !(x->there >> which & 1)) {
        read_on(p, true);
        if (p->n_jobs > 0) {
            rc = finish(p, err);
            read_on(p, false);
        } else if (!again) {
            start_over(p, e);
            again = true;
        } else {
            rc = qsf_err_set(err, QSF_E_RUNTIME, "internal: no slot for expert unit %u", p->unit[e] + which);
        }
    }
    return rc;
}

int qsf_expert_pool_acquire(QsfExpertPool *p, uint32_t unit, QsfChunk *c, const uint8_t **data, QsfErr *err) {
    const uint32_t e = find(p, unit);
    const unsigned which = unit - p->unit[e];
    const QsfUnit *u = &p->units[unit].u;
    if (!p->expert[e].wanted)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: expert unit %u was not requested", unit);
    int rc = wait_for(p, e, which, err);
    if (rc != QSF_OK) return rc;
    qsf_chunk_make(u, 0, u->items, c);
    *data = place(p, e, which);
    return QSF_OK;
}

void qsf_expert_pool_release(QsfExpertPool *p, uint32_t unit) {
    const uint32_t e = find(p, unit);
    if (unit == p->unit[e] || !p->expert[e].wanted) return;
    p->expert[e].wanted = false;
    p->n_wanted--;
    read_on(p, false);
}

/* ---- groups ---- */

/* Groups of tensor t of a unit that are multiplied as such, and lie in the file as rows. */
static size_t groups_of(const QsfWeightUnit *w, unsigned t) {
    return w->u.x16[t] ? 0 : qsf_interleaved_rows(w, t, w->u.rows[t]) / QSF_ROW_QUANTUM;
}

size_t qsf_expert_pool_to_pack(QsfExpertPool *p, uint32_t unit, uint32_t n_cols) {
    const Expert *x = &p->expert[find(p, unit)];
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
    const uint32_t e = find(p, unit);
    size_t before = 0;
    for (unsigned which = 0; which < 2; which++) {
        const QsfWeightUnit *w = &p->units[unit + which];
        QsfChunk c;
        qsf_chunk_make(&w->u, 0, w->u.items, &c);
        for (unsigned i = 0; i < c.n_parts; i++) {
            const unsigned t = c.part[i].tensor;
            const size_t n = groups_of(w, t), lo = from > before ? from - before : 0,
                         hi = to > before ? to - before : 0;
            pack_tensor(w, t, place(p, e, which) + c.part[i].at, lo < n ? lo : n, hi < n ? hi : n, scratch);
            before += n;
        }
    }
}

void qsf_expert_pool_packed(QsfExpertPool *p, uint32_t unit) { p->expert[find(p, unit)].packed = true; }
bool qsf_expert_pool_is_packed(const QsfExpertPool *p, uint32_t unit) {
    return p->expert[find(p, unit)].packed;
}

/* ---- a pass that broke off ---- */

void qsf_expert_pool_reset(QsfExpertPool *p) {
    QsfErr ignored = { 0 };
    while (p->n_jobs > 0) (void)finish(p, &ignored);
    qsf_err_clear(&ignored);
    for (uint32_t i = 0; i < p->n_list; i++) {
        Expert *x = &p->expert[p->list[i]];
        if (x->there != 3) leave(p, p->list[i]);
        x->wanted = x->queued = false;
    }
    p->n_list = p->n_wanted = p->queue_at = p->n_queue = 0;
}

/* ---- free slots ---- */

/* Returns the next expert to fill a slot with, in the order of the ids within their blocks; NONE: all are there. */
static uint32_t next_to_fill(QsfExpertPool *p) {
    for (; p->fill_id < QSF_MAX_EXPERTS; p->fill_id++, p->fill_at = 0) {
        for (; p->fill_at < p->n_experts; p->fill_at++) {
            const uint32_t e = p->fill_at;
            if (p->units[p->unit[e]].u.expert == p->fill_id && p->expert[e].slot == NONE) return e;
        }
    }
    return NONE;
}

/* Starts to read one expert into a free slot; false: there is none, or no expert is missing. */
static bool fill_one(QsfExpertPool *p) {
    const uint32_t e = p->n_free > 0 ? next_to_fill(p) : NONE,
                   slot = e != NONE ? find_slot(p, p->n_slots, e, false) : NONE;
    if (slot == NONE || p->owner[slot] != NONE) return false;
    enter(p, e, slot);
    p->expert[e].queued = true;
    start(p, e, 0);
    start(p, e, 1);
    return true;
}

int qsf_expert_pool_fill(QsfExpertPool *p, uint64_t max_bytes, bool *more, QsfErr *err) {
    const uint32_t most = QSF_IO_DEPTH - 2 * QSF_UNIT_TENSORS;
    uint64_t done = 0;
    int rc = QSF_OK;
    p->fill_id = p->fill_at = 0;
    *more = true;
    while (rc == QSF_OK && done < max_bytes && *more) {
        while (p->n_reads <= most && done < max_bytes && (*more = fill_one(p))) done += p->slot_bytes;
        if (p->n_jobs > 0) rc = finish(p, err);
    }
    while (p->n_jobs > 0) {
        QsfErr later = { 0 };
        const int one = finish(p, rc == QSF_OK ? err : &later);
        if (rc == QSF_OK) rc = one;
        qsf_err_clear(&later);
    }
    for (uint32_t s = 0; rc != QSF_OK && s < p->n_slots; s++)
        if (p->owner[s] != NONE && p->expert[p->owner[s]].there != 3) leave(p, p->owner[s]);
    *more = *more && rc == QSF_OK && p->n_free > 0;
    return rc;
}

/* ---- size ---- */

uint32_t qsf_expert_pool_slots(const QsfExpertPool *p) { return p->n_slots; }
uint64_t qsf_expert_pool_slot_bytes(const QsfExpertPool *p) { return p->slot_bytes; }

/* The owners of slots [n, n_slots) move to those of less wanted ones before. */
static void move_down(QsfExpertPool *p, uint32_t n) {
    uint64_t moved = 0;
    for (uint32_t s = n; s < p->n_slots; s++) {
        const uint32_t e = p->owner[s], to = e != NONE ? find_slot(p, n, e, true) : NONE;
        if (e == NONE) continue;
        const Expert x = p->expert[e];
        leave(p, e);
        if (to == NONE || moved >= MOVE_MOST ||
            (p->owner[to] != NONE && p->expert[p->owner[to]].score >= x.score))
            continue;
        enter(p, e, to);
        memcpy(p->space.base + to * p->slot_bytes, p->space.base + s * p->slot_bytes, p->slot_bytes);
        p->expert[e].there = x.there;
        p->expert[e].packed = x.packed;
        p->expert[e].hits = x.hits;
        moved += p->slot_bytes;
    }
}

int qsf_expert_pool_resize(QsfExpertPool *p, uint32_t n, QsfErr *err) {
    if (n > p->n_experts) n = p->n_experts;
    if (n < p->n_slots) move_down(p, n);
    int rc = qsf_space_resize(p->ledger, QSF_MEM_PINNED, NAME, p->space.base, p->n_slots * p->slot_bytes,
                              n * p->slot_bytes, err);
    if (rc != QSF_OK) return rc;
    for (uint32_t s = p->n_slots; s < n; s++) p->owner[s] = NONE;
    p->n_slots = n;
    p->n_free = 0;
    for (uint32_t s = 0; s < n; s++) p->n_free += p->owner[s] == NONE;
    return QSF_OK;
}

/* ---- life ---- */

int qsf_expert_pool_start(QsfExpertPool *p, const QsfLoaderOptions *o, QsfErr *err) {
    const QsfIoOptions io = { .src = o->src, .config = o->stream, .ledger = o->ledger };
    p->o = *o;
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
        const uint64_t bytes = bytes_of(w) + bytes_of(w + 1);
        if (bytes > p->slot_bytes) p->slot_bytes = bytes;
        p->unit[p->n_experts] = i;
        p->expert[p->n_experts++] = (Expert){ .slot = NONE };
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
    p->scale = 1;
    for (uint32_t i = 0; i < AGES; i++) p->age[i] = exp2(-(double)i / QSF_EXPERT_HALF);
    p->meta_bytes = qsf_pages((uint64_t)n * QSF_EXPERT_BYTES);
    int rc = qsf_mem_map(ledger, QSF_MEM_META, p->meta_bytes, "experts", &p->meta, err);
    if (rc == QSF_OK) {
        p->expert = p->meta;
        p->unit = (uint32_t *)(void *)(p->expert + n);
        p->owner = p->unit + n;
        find_experts(p);
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
    if (p->space.map != NULL) (void)qsf_expert_pool_resize(p, 0, &none);
    qsf_space_close(&p->space);
    qsf_mem_unmap(p->ledger, QSF_MEM_META, p->meta, p->meta_bytes);
    free(p);
}

_Static_assert(sizeof(Expert) + 2 * sizeof(uint32_t) <= QSF_EXPERT_BYTES, "the plan has room for it");
