/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searches for a configuration that fits: everything resident if possible; otherwise streaming with the
 * preferred values, which a table of steps lowers one after another, as little as necessary. */
#include "src/plan/plan_impl.h"
#include "src/plan/units.h"

#define CTX_PREFERRED  512u
#define CTX_STEP       32u
#define CTX_STEP_BYTES (2 * QSF_MIB)
#define BATCH_RESIDENT 512u
#define BATCH_TABLE    64u /* smallest prefill chunk with the embedding table in RAM */
#define ROWS_MAX       1024u
#define SLOT_STEP      (64u * 1024)
#define KV_SHARE       4u /* while weights stream, the default context uses at most a quarter */

typedef enum PlanStep { STEP_CTX, STEP_KV, STEP_EMBED, STEP_SLOT_SIZE, STEP_SLOTS, STEP_BATCH } PlanStep;

/* One step of the search and its bound: the minimum when lowering, the maximum when raising. */
typedef struct StepBound {
    PlanStep step;
    uint64_t to;
} StepBound;

/* A 256th of the budget: smaller reads lose more time than the memory they save is worth. */
#define SLOT_USEFUL UINT64_MAX

/* What is reduced, in this order, until a plan fits (docs/MEMORY.md). */
static const StepBound order[] = {
    { STEP_CTX, CTX_PREFERRED },
    { STEP_KV, 0 }, /* K and V with fewer bits, in the order of kvtypes.c */
    { STEP_EMBED, 0 },
    { STEP_SLOT_SIZE, QSF_MIB / 2 },
    { STEP_SLOTS, 2 },
    { STEP_SLOT_SIZE, SLOT_USEFUL },
    { STEP_SLOTS, 1 },
    { STEP_CTX, QSF_CTX_MIN },
    /* The rest saves a few hundred kilobytes, which is better than failing. */
    { STEP_SLOT_SIZE, 0 },
    { STEP_BATCH, 1 },
};
#define N_STEPS (sizeof order / sizeof *order)

/* Memory left after the last step raises these again, in this order, up to the preferred values. */
static const StepBound leftover[] = {
    { STEP_BATCH, UINT64_MAX }, { STEP_SLOTS, 2 },          { STEP_SLOT_SIZE, UINT64_MAX },
    { STEP_SLOTS, UINT64_MAX }, { STEP_EMBED, UINT64_MAX },
};

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- preferred values ---- */

uint32_t qsf_plan_wanted_ctx(const QsfPricing *s) {
    uint32_t ctx = s->o->ctx, train = s->m->hp.n_ctx_train;
    if (ctx == 0) ctx = train != 0 && train < QSF_CTX_DEFAULT ? train : QSF_CTX_DEFAULT;
    return ctx > s->o->ctx_floor ? ctx : s->o->ctx_floor;
}

/* Reads of a megabyte or more reach full speed; with more memory, use fewer and larger ones. */
static uint64_t preferred_slot(const QsfPricing *s) {
    uint64_t b = min_u64(max_u64(qsf_pages(s->budget / 400), QSF_MIB), 4 * QSF_MIB);
    return max_u64(min_u64(b, s->shape.max_slot), s->shape.min_slot);
}

static uint32_t preferred_rows(const QsfPricing *s) {
    /* 16: its share of the index */
    uint64_t row = ((s->shape.embed_row_bytes + 63) & ~63ull) + QSF_ROWCACHE_ENTRY + 16;
    return (uint32_t)min_u64(min_u64(ROWS_MAX, s->m->hp.n_vocab), s->budget / 64 / row);
}

/* A slot holds a whole compressed layer: two, one being filled while the other is used, are as
 * good as more. */
static uint32_t preferred_slots(const QsfPricing *s) {
    if (s->o->slots != 0) return s->o->slots < QSF_MAX_SLOTS ? s->o->slots : QSF_MAX_SLOTS;
    return s->shape.stage_bytes > 0 ? 2 : QSF_MAX_SLOTS;
}

QsfConfig qsf_plan_preferred(const QsfPricing *s) {
    const bool whole = s->o->embedding == QSF_EMBEDDING_RESIDENT;
    return (QsfConfig){
        .ctx = qsf_plan_wanted_ctx(s),
        .kv = qsf_kv_choices() - 1,
        .hold_kv = s->hold_kv,
        .batch = s->o->batch != 0 ? s->o->batch : QSF_BATCH_LEAST,
        .n_slots = preferred_slots(s),
        .slot_bytes = preferred_slot(s),
        .embed_rows = whole ? 0 : preferred_rows(s),
        .embed_resident = whole && !s->m->prog.tied_head,
        .pinned_unit_bytes = qsf_plan_held_bytes(s),
    };
}

static QsfConfig resident(const QsfPricing *s, bool table, uint32_t batch) {
    QsfConfig c = qsf_plan_preferred(s);
    if (s->o->embedding != QSF_EMBEDDING_AUTO) table = s->o->embedding == QSF_EMBEDDING_RESIDENT;
    c.n_slots = 0;
    c.slot_bytes = 0;
    c.batch = s->o->batch != 0 ? s->o->batch : batch;
    c.embed_resident = table && !s->m->prog.tied_head;
    if (table || s->m->prog.tied_head) c.embed_rows = 0;
    c.pinned_unit_bytes = s->shape.pinned_units_bytes;
    return c;
}

/* ---- steps ---- */

static uint64_t get(const QsfConfig *c, PlanStep k) {
    const uint64_t v[] = {
        [STEP_CTX] = c->ctx,          [STEP_KV] = c->kv,
        [STEP_EMBED] = c->embed_rows, [STEP_SLOT_SIZE] = c->slot_bytes,
        [STEP_SLOTS] = c->n_slots,    [STEP_BATCH] = c->batch,
    };
    return v[k];
}

static void set(QsfConfig *c, PlanStep k, uint64_t v) {
    if (k == STEP_SLOT_SIZE) {
        c->slot_bytes = v;
        return;
    }
    uint32_t *at[] = {
        [STEP_CTX] = &c->ctx,    [STEP_KV] = &c->kv,         [STEP_EMBED] = &c->embed_rows,
        [STEP_SLOT_SIZE] = NULL, [STEP_SLOTS] = &c->n_slots, [STEP_BATCH] = &c->batch,
    };
    *at[k] = (uint32_t)v;
}

static uint64_t kv_bytes(const QsfPricing *s, uint32_t ctx) {
    const QsfConfig best = { .kv = qsf_kv_choices() - 1, .hold_kv = s->hold_kv };
    return qsf_kv_bytes(s->m->prog.kv, s->m->prog.n_kv, qsf_pricing_kv(s, &best), ctx);
}

/* Round context lengths look better. But where a token needs much memory, a step may not cost more than a
 * piece of weights, unless the context is short anyway. */
static uint64_t ctx_step(const QsfPricing *s, uint64_t least) {
    uint32_t step = CTX_STEP;
    while (least >= CTX_PREFERRED && step > 1 && kv_bytes(s, step) > CTX_STEP_BYTES) step /= 2;
    return step;
}

static uint64_t step_of(const QsfPricing *s, PlanStep k, uint64_t least) {
    static const uint32_t step[] = {
        [STEP_KV] = 1, [STEP_EMBED] = 16, [STEP_SLOT_SIZE] = SLOT_STEP, [STEP_SLOTS] = 1, [STEP_BATCH] = 1
    };
    return k == STEP_CTX ? ctx_step(s, least) : step[k];
}

/* Nor may it be changed if there is no cache. */
static bool kv_is_set(const QsfPricing *s) {
    const QsfPlanOptions *o = s->o;
    const bool k = o->k >= 0 || (o->keep_k && s->hold_kv), v = o->v >= 0 || (o->keep_v && s->hold_kv);
    return o->exact || s->m->prog.n_kv == 0 || (k && v);
}

static bool set_by_user(const QsfPricing *s, PlanStep k) {
    return (k == STEP_KV && kv_is_set(s)) || (k == STEP_CTX && s->o->ctx != 0) ||
           (k == STEP_SLOTS && s->o->slots != 0) || (k == STEP_BATCH && s->o->batch != 0);
}

/* Returns the minimum of an automatic context while something else can be lowered. */
static uint64_t least_ctx(const QsfPricing *s) {
    return max_u64(CTX_PREFERRED, max_u64(s->o->ctx_floor, s->o->ctx_room));
}

/* Returns the minimum that a step may lower c to. */
static uint64_t least_of(const QsfPricing *s, const StepBound *t, const QsfConfig *c) {
    uint64_t now = get(c, t->step), least = t->to;
    if (set_by_user(s, t->step)) return now;
    if (t->step == STEP_CTX) least = max_u64(least, least == CTX_PREFERRED ? least_ctx(s) : s->o->ctx_floor);
    if (t->step == STEP_SLOT_SIZE) {
        if (least == SLOT_USEFUL) least = qsf_pages(s->budget / 256);
        least = max_u64(least, s->shape.min_slot);
    }
    return min_u64(now, least);
}

static bool fits(const QsfPricing *s, const QsfConfig *c) {
    uint64_t rows[QSF_MEM_N];
    return qsf_pricing_rows(s, c, rows) <= s->budget;
}

/* Sets the value of step k to the largest of least, least + step, ... below most that fits; to least when
 * none does. */
static bool largest(const QsfPricing *s, QsfConfig *c, PlanStep k, uint64_t least, uint64_t step,
                    uint64_t most) {
    uint64_t lo = 0, hi = most > least ? (most - least + step - 1) / step : 0; /* in steps; hi is too much */
    set(c, k, least);
    if (!fits(s, c)) return false;
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        set(c, k, least + mid * step);
        if (fits(s, c))
            lo = mid;
        else
            hi = mid;
    }
    set(c, k, least + lo * step);
    return true;
}

static bool lower_step(const QsfPricing *s, QsfConfig *c, const StepBound *t) {
    uint64_t now = get(c, t->step), least = least_of(s, t, c);
    if (least >= now) return false;
    return largest(s, c, t->step, least, step_of(s, t->step, least), now);
}

/* ---- the search ---- */

static void give_leftover(const QsfPricing *s, const QsfConfig *preferred, QsfConfig *c) {
    for (size_t i = 0; i < sizeof leftover / sizeof *leftover; i++) {
        PlanStep k = leftover[i].step;
        uint64_t now = get(c, k), most = min_u64(get(preferred, k), leftover[i].to);
        if (now >= most) continue;
        set(c, k, most);
        if (!fits(s, c)) largest(s, c, k, now, step_of(s, k, now), most);
    }
}

/* Lowers the values of c, which start as preferred, in order. */
static bool lower(const QsfPricing *s, QsfConfig *c, bool *lowered) {
    const QsfConfig preferred = *c;
    *lowered = false;
    if (fits(s, c)) return true;
    *lowered = true;
    for (size_t i = 0; i < N_STEPS; i++) {
        if (!lower_step(s, c, &order[i])) continue;
        give_leftover(s, &preferred, c);
        return true;
    }
    return false;
}

/* Sets all values to their minimum. */
static void set_minimum(const QsfPricing *s, QsfConfig *c) {
    for (size_t i = 0; i < N_STEPS; i++) set(c, order[i].step, least_of(s, &order[i], c));
}

static bool may_pin_all(const QsfPricing *s) { return s->shape.weight_bytes <= s->o->pin_cap; }

/* Are the weights no larger than the slots they would stream through? */
static bool is_small(const QsfPricing *s) {
    QsfConfig c = qsf_plan_preferred(s);
    return may_pin_all(s) && s->shape.pinned_units_bytes <= c.n_slots * c.slot_bytes;
}

/* Tries everything in RAM with the full context and the largest prefill chunk that fits. */
static bool search_resident(const QsfPricing *s, QsfConfig *out) {
    static const struct {
        bool table;
        uint32_t batch_least;
    } tries[] = { { true, BATCH_TABLE }, { false, QSF_BATCH_LEAST } };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        *out = resident(s, tries[i].table, BATCH_RESIDENT);
        if (fits(s, out)) return true;
        if (s->o->batch == 0 &&
            largest(s, out, STEP_BATCH, tries[i].batch_least, QSF_BATCH_LEAST, BATCH_RESIDENT))
            return true;
    }
    return false;
}

/* Returns the context to start with when streaming: memory reserved for tokens that may never come is missing
 * for weights that are read for every token. */
static uint32_t fair_ctx(const QsfPricing *s) {
    uint64_t wanted = qsf_plan_wanted_ctx(s), least = least_ctx(s);
    if (s->o->ctx != 0 || wanted <= least || kv_bytes(s, (uint32_t)wanted) <= s->budget / KV_SHARE)
        return (uint32_t)wanted;
    uint64_t step = ctx_step(s, least), lo = 0,
             hi = (wanted - least) / step + 1; /* in steps; hi is too much */
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2, ctx = least + mid * step;
        if (kv_bytes(s, (uint32_t)ctx) <= s->budget / KV_SHARE)
            lo = mid;
        else
            hi = mid;
    }
    return (uint32_t)(least + lo * step);
}

/* Tries everything in RAM with a shorter context, but not shorter than it would be when weights stream, and
 * then with a smaller prefill chunk. */
static bool search_shorter(const QsfPricing *s, uint32_t fair, QsfConfig *out) {
    uint32_t wanted = qsf_plan_wanted_ctx(s);
    if (fair >= wanted) return false;
    *out = resident(s, false, BATCH_TABLE);
    if (largest(s, out, STEP_CTX, fair, ctx_step(s, fair), wanted)) return true;
    return s->o->batch == 0 && largest(s, out, STEP_BATCH, QSF_BATCH_LEAST, QSF_BATCH_LEAST, BATCH_TABLE);
}

static bool search(const QsfPricing *s, QsfConfig *out, bool *lowered) {
    uint32_t fair = fair_ctx(s);
    *lowered = false;
    if (may_pin_all(s) && (search_resident(s, out) || search_shorter(s, fair, out))) return true;
    if (is_small(s)) {
        *out = resident(s, false, QSF_BATCH_LEAST);
        if (lower(s, out, lowered)) return true;
    }
    *out = qsf_plan_preferred(s);
    out->ctx = fair;
    return lower(s, out, lowered);
}

/* Types with fewer bits save more than was missing: finds what is best with the types of out,
 * as if the user had set them. */
static void spend(const QsfPricing *s, QsfConfig *out, bool *lowered) {
    const QsfKvTypes types = qsf_pricing_kv(s, out);
    QsfPlanOptions named = *s->o;
    QsfPricing same = *s;
    QsfConfig c;
    bool less;
    named.k = (int)types.k;
    named.v = (int)types.v;
    same.o = &named;
    if (!search(&same, &c, &less)) return;
    c.kv = out->kv;
    *out = c;
    *lowered = less;
}

static bool search_types(const QsfPricing *s, QsfConfig *out, bool *lowered) {
    if (!search(s, out, lowered)) return false;
    if (out->kv + 1 < qsf_kv_choices()) spend(s, out, lowered);
    return true;
}

/* The types that positions in the cache have are changed only if nothing else helps. */
bool qsf_plan_search(const QsfPricing *s, QsfConfig *out, bool *lowered) {
    if (s->o->keep_k || s->o->keep_v) {
        QsfPricing held = *s;
        held.hold_kv = true;
        if (search_types(&held, out, lowered)) return true;
    }
    return search_types(s, out, lowered);
}

QsfConfig qsf_plan_least(const QsfPricing *s) {
    uint64_t rows[QSF_MEM_N];
    QsfConfig stream = qsf_plan_preferred(s), whole = resident(s, false, QSF_BATCH_LEAST);
    set_minimum(s, &stream);
    if (!may_pin_all(s)) return stream;
    set_minimum(s, &whole);
    return qsf_pricing_rows(s, &whole, rows) < qsf_pricing_rows(s, &stream, rows) ? whole : stream;
}
