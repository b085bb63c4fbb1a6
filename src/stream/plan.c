/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The search for a plan: a table of tiers from comfortable to bare, the first that fits wins; then what
 * is left of the budget goes to a bigger prefill chunk and to pinned units. */
#include "src/stream/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/stream/plan_impl.h"
#include "src/stream/units.h"

#define CTX_STEP 32u
#define CTX_COMFORT 512u
#define BATCH_MAX 512u
/* Columns per pass over streamed weights: with more, reading hides behind computing anyway. */
#define BATCH_STREAM 128u
#define BASE_JITTER (256u * 1024) /* between the resident sets of two runs of one program */
#define SLOT_PREFERRED (4 * QSF_MIB)

typedef enum SlotSize { SLOT_NONE, SLOT_WIDE, SLOT_MIB, SLOT_SMALL, SLOT_LEAST } SlotSize;

/* ctx_floor: how far the context may be lowered in this tier; UINT32_MAX = not at all. */
typedef struct Tier {
    SlotSize slot;          /* SLOT_NONE = everything pinned */
    uint32_t n_slots;
    uint32_t batch;
    uint32_t ctx_floor;
    bool embed_resident;
} Tier;

/* design §4, "plan order". A chunk of 16 tokens costs little: before that, streaming loses. */
static const Tier tiers[] = {
    {SLOT_NONE, 0, 512, UINT32_MAX, true},   {SLOT_NONE, 0, 256, UINT32_MAX, true},
    {SLOT_NONE, 0, 128, UINT32_MAX, true},   {SLOT_NONE, 0, 64, UINT32_MAX, true},
    {SLOT_NONE, 0, 64, UINT32_MAX, false},   {SLOT_NONE, 0, 16, UINT32_MAX, false},
    {SLOT_WIDE, 2, 64, UINT32_MAX, false},   {SLOT_NONE, 0, 16, CTX_COMFORT, false},
    {SLOT_WIDE, 2, 64, CTX_COMFORT, false},  {SLOT_WIDE, 2, 32, CTX_COMFORT, false},
    {SLOT_WIDE, 2, 16, CTX_COMFORT, false},  {SLOT_MIB, 2, 16, CTX_COMFORT, false},
    {SLOT_SMALL, 2, 16, CTX_COMFORT, false}, {SLOT_SMALL, 1, 16, CTX_COMFORT, false},
    {SLOT_LEAST, 1, 16, QSF_CTX_MIN, false}, {SLOT_LEAST, 1, 4, QSF_CTX_MIN, false},
    {SLOT_LEAST, 1, 1, QSF_CTX_MIN, false},  {SLOT_NONE, 0, 1, QSF_CTX_MIN, false},
};
#define N_TIERS (sizeof tiers / sizeof *tiers)

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint32_t wanted_ctx(const QsfPricing *s) {
    if (s->o->ctx != 0) return s->o->ctx;
    uint32_t train = s->m->hp.n_ctx_train;
    return train != 0 && train < QSF_CTX_DEFAULT ? train : QSF_CTX_DEFAULT;
}

static uint64_t slot_bytes(const QsfPricing *s, SlotSize size) {
    static const uint64_t want[] = {
        [SLOT_WIDE] = SLOT_PREFERRED, [SLOT_MIB] = QSF_MIB, [SLOT_SMALL] = QSF_MIB / 4
    };
    if (size == SLOT_NONE) return 0;
    uint64_t b = size == SLOT_LEAST ? 0 : want[size];
    if (size == SLOT_WIDE) b = max_u64(min_u64(b, qsf_pages(s->budget / 48)), QSF_MIB);
    return max_u64(min_u64(b, s->shape.max_slot), s->shape.min_slot);
}

static QsfConfig tier_config(const QsfPricing *s, const Tier *t, uint32_t ctx) {
    bool all = t->slot == SLOT_NONE;
    return (QsfConfig){
        .ctx = ctx,
        .batch = s->o->batch != 0 ? s->o->batch : t->batch,
        .n_slots = t->n_slots,
        .slot_bytes = slot_bytes(s, t->slot),
        .pinned_unit_bytes = all ? s->shape.pinned_units_bytes : 0,
        .embed_resident = t->embed_resident && !s->m->tied_head,
    };
}

static bool fits(const QsfPricing *s, const QsfConfig *c) {
    uint64_t rows[QSF_MEM_N];
    return qsf_pricing_rows(s, c, rows) <= s->budget;
}

/* Lowers ctx in steps to the largest that fits, not below floor. */
static bool lower_ctx(const QsfPricing *s, QsfConfig *c, uint32_t floor) {
    uint32_t lo = (floor + CTX_STEP - 1) / CTX_STEP, hi = c->ctx / CTX_STEP; /* in steps */
    uint32_t best = 0;
    while (lo <= hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        c->ctx = mid * CTX_STEP;
        if (fits(s, c)) {
            best = mid;
            lo = mid + 1;
        } else {
            hi = mid - 1;
        }
    }
    c->ctx = best * CTX_STEP;
    return best > 0;
}

static bool try_tier(const QsfPricing *s, const Tier *t, QsfConfig *out) {
    if (t->slot == SLOT_NONE && s->shape.weight_bytes > s->o->pin_cap) return false;
    *out = tier_config(s, t, wanted_ctx(s));
    if (fits(s, out)) return true;
    if (s->o->ctx != 0 || t->ctx_floor >= out->ctx) return false;
    return lower_ctx(s, out, t->ctx_floor);
}

static bool search(const QsfPricing *s, QsfConfig *out) {
    for (size_t i = 0; i < N_TIERS; i++) {
        if (try_tier(s, &tiers[i], out)) return true;
    }
    return false;
}

/* The cheapest configuration of all, for the refusal. */
static QsfConfig least_config(const QsfPricing *s) {
    uint32_t ctx = s->o->ctx != 0 ? s->o->ctx : (uint32_t)min_u64(QSF_CTX_MIN, wanted_ctx(s));
    uint64_t rows[QSF_MEM_N];
    QsfConfig stream = tier_config(s, &tiers[N_TIERS - 2], ctx);
    if (s->shape.weight_bytes > s->o->pin_cap) return stream;
    QsfConfig whole = tier_config(s, &tiers[N_TIERS - 1], ctx);
    return qsf_pricing_rows(s, &whole, rows) < qsf_pricing_rows(s, &stream, rows) ? whole : stream;
}

/* A bigger chunk reads streamed weights less often during prefill; it may take a sixteenth of the budget. */
static void grow_batch(const QsfPricing *s, QsfConfig *c) {
    uint64_t rows[QSF_MEM_N];
    while (s->o->batch == 0 && c->batch >= 16 && c->batch < BATCH_STREAM) {
        QsfConfig next = *c;
        next.batch *= 2;
        if (qsf_pricing_rows(s, &next, rows) > s->budget || rows[QSF_MEM_ACTIVATIONS] > s->budget / 16)
            return;
        *c = next;
    }
}

typedef struct Pinning {
    uint64_t left, cap;   /* budget left, and bytes that --pin still allows */
    uint64_t weight, held; /* of the pinned units: their bytes, and what they occupy */
} Pinning;

static bool pin(const QsfPricing *s, QsfPlan *p, uint32_t unit, Pinning *z) {
    QsfUnit u;
    qsf_unit_at(s->m, unit, &u);
    uint64_t whole = qsf_unit_pinned_bytes(&u, u.items);
    if (whole > z->left || u.bytes > z->cap) return false;
    p->pinned_items[unit] = u.items;
    z->left -= whole;
    z->cap -= u.bytes;
    z->weight += u.bytes;
    z->held += whole;
    return true;
}

/* Spreads pinned units evenly between streamed ones, so that their computation hides reads: an
 * error-diffusing walk pins every unit at which the running share is due, a second fills the rest. */
static void pin_spread(const QsfPricing *s, QsfPlan *p, Pinning *z) {
    double due = 0, share = (double)min_u64(z->left, z->cap) / (double)s->shape.pinned_units_bytes;
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        due += share * (double)u.bytes;
        if (due >= (double)u.bytes / 2 && pin(s, p, i, z)) due -= (double)u.bytes;
    }
    for (uint32_t i = 0; i < s->shape.n_units; i++) {
        if (p->pinned_items[i] == 0) pin(s, p, i, z);
    }
}

static void write_note(const QsfPricing *s, const QsfConfig *c, QsfPlan *p) {
    uint32_t want = wanted_ctx(s);
    size_t at = 0;
    if (c->ctx < want) {
        at = (size_t)snprintf(p->note, sizeof p->note, "context lowered from %u to %u tokens", want, c->ctx);
    }
    if (c->n_slots > 0 && c->slot_bytes < min_u64(QSF_MIB, s->shape.max_slot)) {
        snprintf(p->note + at, sizeof p->note - at, "%s%u layer slot%s of %llu KB", at > 0 ? ", " : "",
                 c->n_slots, c->n_slots == 1 ? "" : "s", (unsigned long long)(c->slot_bytes >> 10));
        at = strlen(p->note);
    }
    if (at > 0)
        snprintf(p->note + at, sizeof p->note - at, " to fit %llu MB", (unsigned long long)(s->budget >> 20));
}

static int write_plan(const QsfPricing *s, QsfConfig *c, QsfPlan *p, QsfErr *err) {
    p->pinned_items = calloc(s->shape.n_units, sizeof *p->pinned_items);
    if (p->pinned_items == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: plan");
    p->n_units = s->shape.n_units;
    p->weight_bytes = p->pinned_bytes = s->shape.weight_bytes;
    if (c->n_slots == 0) {
        for (uint32_t i = 0; i < p->n_units; i++) p->pinned_items[i] = UINT32_MAX;
    } else {
        grow_batch(s, c);
        Pinning z = {.left = s->budget - qsf_pricing_rows(s, c, p->rows), .cap = s->o->pin_cap};
        pin_spread(s, p, &z);
        c->pinned_unit_bytes = z.held;
        p->pinned_bytes = z.weight;
        p->streamed_bytes = p->weight_bytes - z.weight;
    }
    p->total = qsf_pricing_rows(s, c, p->rows);
    p->budget = s->budget;
    p->ctx = c->ctx;
    p->kv = s->kv;
    p->batch = c->batch;
    p->threads = s->o->threads;
    p->io = s->o->io;
    p->direct = s->o->direct;
    p->exact = s->o->exact;
    p->n_slots = c->n_slots;
    p->slot_bytes = c->slot_bytes;
    p->embed_resident = c->embed_resident || (s->m->tied_head && p->pinned_items[p->n_units - 1] > 0);
    write_note(s, c, p);
    return QSF_OK;
}

/* Auto: at most half of what is available, and no more than is used. */
static void trim_budget(QsfPlan *p) {
    uint64_t rest = p->total - p->rows[QSF_MEM_KERNEL];
    uint64_t b = (rest + QSF_MIB) / 997 * 1000 + 2 * QSF_MIB;
    b = b / QSF_MIB * QSF_MIB;
    if (b >= p->budget) return;
    p->budget = b;
    p->rows[QSF_MEM_KERNEL] = QSF_MIB + b / 1000 * 3;
    p->total = rest + p->rows[QSF_MEM_KERNEL];
}

uint64_t qsf_plan_smallest(const QsfModel *m, const QsfPlanOptions *o) {
    QsfPricing s;
    QsfConfig c;
    qsf_pricing_init(&s, m, o);
    uint64_t lo = 1, hi = 1; /* MiB */
    for (s.budget = QSF_MIB; !search(&s, &c) && hi < (1ull << 40); s.budget = hi * QSF_MIB) {
        lo = hi + 1;
        hi *= 2;
    }
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        s.budget = mid * QSF_MIB;
        if (search(&s, &c)) hi = mid;
        else lo = mid + 1;
    }
    return hi * QSF_MIB;
}

static uint64_t auto_budget(const QsfPlanOptions *o) {
    uint64_t half = o->available / 2 / QSF_MIB * QSF_MIB;
    return half != 0 ? half : QSF_BUDGET_DEFAULT;
}

int qsf_plan_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, QsfErr *err) {
    QsfPricing s;
    QsfConfig c;
    memset(p, 0, sizeof *p);
    if (m->vocab_only) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: holds a vocabulary only, no weights",
                           qsf_source_path(m->src));
    }
    qsf_pricing_init(&s, m, o);
    if (o->budget == 0) s.budget = auto_budget(o);
    if (!search(&s, &c)) {
        c = least_config(&s);
        QsfPlanOptions next = *o; /* the next run must be able to take the advice */
        next.base_bytes += BASE_JITTER;
        qsf_plan_refuse(&s, &c, qsf_plan_smallest(m, &next), err);
        return QSF_E_BUDGET;
    }
    int rc = write_plan(&s, &c, p, err);
    if (rc == QSF_OK && o->budget == 0) trim_budget(p);
    return rc;
}

void qsf_plan_free(QsfPlan *p) {
    free(p->pinned_items);
    p->pinned_items = NULL;
}
