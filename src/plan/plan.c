/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a plan from a configuration that fits: the rest of the budget goes to a larger prefill chunk and to
 * pinned rows. */
#include "src/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "src/plan/kv_lend.h"
#include "src/plan/plan_impl.h"
#include "src/plan/units.h"

#define BATCH_STEP    4u
#define BATCH_MOST    128u /* with more, computation hides the reads anyway */
#define BATCH_EXPERTS 512u /* but an expert is computed for few of the columns */
#define BATCH_ENOUGH  64u  /* where little streams */

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t activations(const QsfPricing *s, const QsfConfig *c, uint32_t batch) {
    uint64_t rows[QSF_MEM_N];
    QsfConfig next = *c;
    next.batch = batch;
    qsf_pricing_rows(s, &next, rows);
    return rows[QSF_MEM_ACTIVATIONS];
}

/* Number of columns whose computation hides the reads of a chunk when most weights stream. */
static uint32_t most_batch(const QsfPricing *s) {
    for (uint32_t i = 0; s->shape.on_demand && i < s->shape.n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        if (u.on_demand && u.n_used > 0 && u.n_expert / u.n_used < BATCH_EXPERTS / BATCH_MOST)
            return BATCH_MOST * (u.n_expert / u.n_used);
        if (u.on_demand) return BATCH_EXPERTS;
    }
    return BATCH_MOST;
}

/* With less to read, fewer columns are enough, and the memory saved is used for pins. */
static uint32_t useful_batch(const QsfPricing *s, uint64_t left) {
    uint64_t all = s->shape.weight_bytes, stream = left < all ? all - left : 0;
    const uint32_t most = most_batch(s);
    if (stream >= all / 4) return most;
    uint64_t n = stream / (all / 4 / most + 1) / BATCH_STEP * BATCH_STEP;
    return n > BATCH_ENOUGH ? (uint32_t)n : BATCH_ENOUGH;
}

/* Memory for passes with drafts: the most columns for which `room` is enough. Returns what it takes. */
static uint64_t take_drafts(const QsfPricing *s, QsfConfig *c, uint64_t room) {
    uint64_t rows[QSF_MEM_N];
    const uint64_t before = qsf_pricing_rows(s, c, rows);
    const uint32_t batch = qsf_pricing_batch(s, c);
    if (s->o->drafting == QSF_DRAFTING_OFF || batch < 2) return 0;
    for (c->draft_cols = batch < QSF_DRAFT_COLS ? batch : QSF_DRAFT_COLS; c->draft_cols > 1;
         c->draft_cols /= 2) {
        const uint64_t more = qsf_pricing_rows(s, c, rows) - before;
        if (more <= room) return more;
    }
    c->draft_cols = 0;
    return 0;
}

/* A larger chunk reads streamed weights less often during prefill; it may use a sixteenth of the budget, of
 * which half may be for drafts.
 * Returns what is left for pins: the whole sixteenth is set aside, so that more memory never means fewer
 * pins. */
static uint64_t grow_batch(const QsfPricing *s, QsfConfig *c, uint64_t left, bool lowered) {
    uint64_t now = activations(s, c, c->batch), share = s->budget / 16 > now ? s->budget / 16 - now : 0;
    uint32_t most = useful_batch(s, left);
    if (c->batch < QSF_BATCH_LEAST) return left;
    share = min_u64(share, left);
    const uint64_t drafts = lowered ? 0 : take_drafts(s, c, share / 2);
    if (s->o->batch != 0) return left - drafts;
    now = activations(s, c, c->batch);
    share -= drafts;
    left -= drafts;
    while (c->batch < most && activations(s, c, c->batch + BATCH_STEP) - now <= share) c->batch += BATCH_STEP;
    return left - (c->batch == most ? activations(s, c, c->batch) - now : share);
}

static void pin_all(const QsfPricing *s, QsfPlan *p) {
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        p->pinned_items[i] = u.items;
    }
    p->pinned_bytes = p->weight_bytes;
}

/* With early exit: what passes over the blocks after it stream for one token. */
static uint64_t after_exit(const QsfPricing *s, const QsfPlan *p) {
    double sum = 0;
    for (uint32_t i = 0; i < p->n_units && qsf_quality_exits(&s->o->quality); i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        const uint32_t pinned = p->pinned_items[i];
        const double all = (double)qsf_quality_unit_bytes(&s->o->quality, &u);
        if (qsf_plan_skips(s, i) && !qsf_quality_sketches(&s->o->quality, i) && pinned < u.items)
            sum += u.on_demand ? all * (1 - p->expert_hits)
                               : all * (double)qsf_unit_item_bytes(&u, pinned, u.items) / (double)u.bytes;
    }
    return (uint64_t)sum;
}

/* Does anything besides experts with slots of their own stream? */
static bool needs_slots(const QsfPricing *s, const QsfPlan *p, const QsfSpread *r) {
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        if (p->pinned_items[i] < u.items && !(u.on_demand && r->slots > 0)) return true;
    }
    return false;
}

/* Spreads `room` bytes. If experts with slots of their own are all that streams, or nothing does, they get
 * the memory of the slots that layers stream through, too. */
static QsfSpread spread(const QsfPricing *s, QsfConfig *c, uint64_t room, bool lowered, QsfPlan *p) {
    QsfConfig without = *c;
    uint64_t rows[QSF_MEM_N];
    without.n_slots = 0;
    if (s->shape.on_demand && !lowered) {
        const uint64_t freed = qsf_pricing_rows(s, c, rows) - qsf_pricing_rows(s, &without, rows);
        const QsfSpread r = qsf_plan_spread(s, c->slot_bytes, room + freed, p->pinned_items);
        if (!needs_slots(s, p, &r)) {
            c->n_slots = 0;
            return r;
        }
    }
    return qsf_plan_spread(s, c->slot_bytes, room, p->pinned_items);
}

/* lowered: the budget is too small for the preferred configuration, so all unpinned weights stream. */
static void pin_some(const QsfPricing *s, QsfConfig *c, bool lowered, QsfPlan *p) {
    uint64_t left = grow_batch(s, c, s->budget - qsf_pricing_rows(s, c, p->rows), lowered);
    QsfSpread r = spread(s, c, c->pinned_unit_bytes + (lowered ? 0 : left), lowered, p);
    c->pinned_unit_bytes = r.held;
    p->expert_slots = r.slots;
    p->expert_hits = r.hits;
    p->expert_known = qsf_expert_hits_of(s->o->expert_depth, r.slots, s->shape.n_experts) >= 0;
    p->pinned_bytes = r.weight;
    p->streamed_bytes = r.streamed + after_exit(s, p);
}

/* Bytes that every pass reads. */
static uint64_t disk_bytes(const QsfPricing *s, const QsfPlan *p) {
    uint64_t sum = 0, experts = 0;
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, i, &u);
        if (qsf_quality_sketches(&s->o->quality, i) && p->pinned_items[i] < u.items)
            sum += qsf_quality_unit_bytes(&s->o->quality, &u);
        if (qsf_plan_skips(s, i)) continue;
        if (u.on_demand)
            experts += p->pinned_items[i] < u.items ? qsf_quality_unit_bytes(&s->o->quality, &u) : 0;
        else if (u.compressed == NULL)
            sum += qsf_unit_item_bytes(&u, p->pinned_items[i], u.items);
        else if (qsf_unit_opens_compressed(&u) && p->pinned_items[i] < u.items)
            sum += u.compressed->bytes;
    }
    return sum + (uint64_t)((double)experts * (1 - p->expert_hits)) + after_exit(s, p);
}

/* The pinned head of a tied model is the embedding table. */
static bool head_is_table(const QsfPricing *s, const QsfPlan *p) {
    QsfUnit u;
    qsf_unit_at(s->m, p->n_units - 1, &u);
    return s->m->prog.tied_head && p->pinned_items[p->n_units - 1] == u.items;
}

/* used and most: of all caches. */
static QsfKvReason why(const QsfPricing *s, int set, qk_kv used, qk_kv most, qk_kv best) {
    if (set >= 0) return used == (qk_kv)set && most == used ? QSF_KV_SET : QSF_KV_INSTEAD;
    if (s->o->exact) return QSF_KV_SET;
    return qsf_kv_type_bits(used) < qsf_kv_type_bits(best) ? QSF_KV_LOWERED : QSF_KV_DEFAULT;
}

static bool has_v(const QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_kv; i++)
        if (!p->kv[i].v_is_k) return true;
    return p->n_kv == 0;
}

static void take_types(const QsfPricing *s, const QsfConfig *c, QsfPlan *p) {
    const QsfProgram *prog = &s->m->prog;
    p->kv = qsf_pricing_kv(s, c);
    p->kv_set = (QsfKvTypes){ s->o->k >= 0 ? (qk_kv)s->o->k : p->kv.k,
                              s->o->v >= 0 ? (qk_kv)s->o->v : p->kv.v };
    p->kv_most = qsf_kv_types_most(prog->kv, prog->n_kv, qsf_pricing_wanted_kv(s, c));
    p->why_k = why(s, s->o->k, p->kv.k, p->kv_most.k, qsf_kv_choice(0).k);
    p->why_v = why(s, s->o->v, p->kv.v, p->kv_most.v, qsf_kv_choice(0).v);
    if (has_v(prog)) return;
    p->why_v = p->why_k;
    p->kv_set.v = p->kv_set.k;
}

static void take_config(const QsfPricing *s, const QsfConfig *c, QsfPlan *p) {
    p->total = qsf_pricing_rows(s, c, p->rows);
    p->budget = s->budget;
    p->ctx = c->ctx;
    p->wanted_ctx = qsf_plan_wanted_ctx(s);
    take_types(s, c, p);
    p->checkpoints = qsf_pricing_checkpoints(s, p->kv, p->ctx);
    p->state_bytes = qsf_state_bytes(&s->m->prog, p->kv);
    p->batch = qsf_pricing_batch(s, c);
    p->threads = s->o->threads;
    p->threads_auto = s->o->threads_auto;
    p->exact = s->o->exact;
    p->n_slots = c->n_slots;
    p->slot_bytes = c->slot_bytes;
    p->n_stages = qsf_stages(&s->shape, c->n_slots);
    p->stage_bytes = s->shape.stage_bytes;
    p->embed_rows = c->embed_rows;
    p->sketch_bytes = s->sketch.total;
    p->draft_cols = c->draft_cols;
    p->holds = s->o->holds;
    p->hold = s->o->hold;
    for (unsigned i = 0; i < QSF_MEM_N; i++) p->beside_bytes += s->o->beside[i];
    p->lookup_tokens = c->draft_cols > 0 ? qsf_lookup_tokens(c->ctx) : 0;
    p->adapters = s->o->adapters;
    p->adapters_stream = s->adapters_stream;
    p->stream = s->o->stream;
}

/* Part of a head with a sketch would be of no use. */
static void drop_sketched(const QsfPricing *s, QsfPlan *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_lend; i++)
        if (!qsf_quality_sketches(&s->o->quality, p->lend[i])) p->lend[n++] = p->lend[i];
    p->n_lend = n;
}

/* Everything else is pinned: what is lent is for experts. */
static void lend_slots(const QsfPricing *s, uint64_t room, QsfPlan *p) {
    const uint64_t left = s->shape.n_experts - p->expert_slots,
                   n = min_u64(room / p->expert_slot_bytes, left);
    const double more = qsf_plan_expert_hits(s, p->expert_slots + n) - p->expert_hits;
    p->lent_weight = n * (s->shape.expert_bytes / s->shape.n_experts);
    p->lent_active = (uint64_t)((double)s->shape.expert_active * (more > 0 ? more : 0));
    if (p->lent_active > p->streamed_bytes) p->lent_active = p->streamed_bytes;
}

/* At the start of a conversation the KV cache has memory for one step of positions. */
static int lend(const QsfPricing *s, const QsfConfig *c, QsfPlan *p, QsfErr *err) {
    const QsfProgram *prog = &s->m->prog;
    const QsfKvTypes types = qsf_pricing_kv(s, c);
    const uint32_t step = qsf_lend_step(prog->kv, prog->n_kv, types),
                   start = qsf_lend_positions(0, step, c->ctx);
    uint64_t room = qsf_kv_bytes(prog->kv, prog->n_kv, types, c->ctx) -
                    qsf_lend_kv_bytes(prog->kv, prog->n_kv, types, c->ctx, start);
    /* What is kept after an eviction is anywhere. */
    if (room == 0 || s->o->kv_lists || s->o->kv_at_once) return QSF_OK;
    p->kv_step = step;
    if (p->expert_slots > 0) {
        lend_slots(s, room, p);
        return QSF_OK;
    }
    p->lend = malloc(p->n_units * sizeof *p->lend);
    if (p->lend == NULL) return qsf_err_memory(err, "plan");
    p->n_lend = qsf_lend_order(s->m, qsf_quality_below(&s->o->quality) ? &s->o->quality.skip : NULL,
                               p->pinned_items, p->lend);
    drop_sketched(s, p);
    for (uint32_t i = 0; i < p->n_lend; i++) {
        QsfUnit u;
        qsf_unit_at(s->m, p->lend[i], &u);
        const uint32_t from = p->pinned_items[u.index], n = qsf_lend_items(&u, from, &room);
        const uint64_t more = qsf_unit_item_bytes(&u, from, n);
        p->lent_weight += more;
        p->lent_active += u.on_demand && more > 0 ? qsf_quality_unit_bytes(&s->o->quality, &u) : more;
        if (n < u.items) break;
    }
    return QSF_OK;
}

static int write_plan(const QsfPricing *s, QsfConfig *c, bool lowered, QsfPlan *p, QsfErr *err) {
    p->pinned_items = calloc(s->shape.n_units, sizeof *p->pinned_items);
    if (p->pinned_items == NULL) return qsf_err_memory(err, "plan");
    p->n_units = s->shape.n_units;
    p->weight_bytes = s->shape.weight_bytes;
    p->expert_bytes = s->shape.expert_bytes;
    p->n_experts = (uint32_t)s->shape.n_experts;
    p->experts_used = s->shape.experts_used;
    p->expert_slot_bytes = s->shape.expert_slot;
    p->active_bytes = qsf_quality_reduces(&s->o->quality) ? qsf_quality_bytes(&s->o->quality, s->m)
                                                          : s->shape.active_bytes;
    if (c->n_slots == 0) {
        pin_all(s, p);
        (void)take_drafts(s, c, s->budget - qsf_pricing_rows(s, c, p->rows));
    } else {
        pin_some(s, c, lowered, p);
    }
    p->disk_bytes = disk_bytes(s, p);
    const bool streams = c->n_slots > 0 || p->expert_slots > 0;
    int rc = streams && s->o->pin_cap == UINT64_MAX ? lend(s, c, p, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    p->embed_resident = c->embed_resident || head_is_table(s, p);
    if (p->embed_resident) c->embed_rows = 0;
    take_config(s, c, p);
    qsf_plan_note(s, c, p);
    return QSF_OK;
}

/* Can the page cache hold the file beside this process? Then the next start reads nothing from disk. */
static bool cache_has_room(const QsfPricing *s, const QsfPlan *p) {
    uint64_t file = s->m->src != NULL ? qsf_source_bytes(s->m->src)
                                      : s->shape.weight_bytes + s->shape.embed_bytes;
    return p->streamed_bytes == 0 && s->o->available > p->budget && s->o->available - p->budget >= file;
}

static bool may_hold_head(const QsfPricing *s) {
    QsfUnit u;
    qsf_unit_at(s->m, s->shape.n_units - 1, &u);
    return !qsf_plan_holds_head(s) || u.bytes <= s->o->pin_cap;
}

/* Reads adapters block by block only if nothing else fits. */
static bool find(QsfPricing *s, QsfConfig *c, bool *lowered) {
    s->adapters_stream = false;
    if (s->budget < s->o->opening_bytes) return false;
    if (qsf_plan_search(s, c, lowered)) return true;
    s->adapters_stream = qsf_adapters_stream(s->o->adapters);
    return s->adapters_stream && qsf_plan_search(s, c, lowered);
}

int qsf_plan_make(QsfPlan *p, const QsfModel *m, const QsfPlanOptions *o, QsfErr *err) {
    QsfPricing s;
    QsfConfig c;
    bool lowered;
    memset(p, 0, sizeof *p);
    if (m->vocab_only) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: contains only a vocabulary, no weights",
                           qsf_source_path(m->src));
    }
    if (m->prog.max_ctx != 0 && o->ctx > m->prog.max_ctx)
        return qsf_err_set(err, QSF_E_CONTEXT,
                           "%s: the model has %u positions, so the context cannot be %u tokens",
                           qsf_source_path(m->src), m->prog.max_ctx, o->ctx);
    if (o->ctx != 0 && o->ctx < o->ctx_floor)
        return qsf_err_set(err, QSF_E_CONTEXT, "the context cannot be %u tokens: %u are in use", o->ctx,
                           o->ctx_floor - 1);
    qsf_pricing_init(&s, m, o);
    if (!may_hold_head(&s))
        return qsf_err_set(err, QSF_E_USAGE,
                           "the resident embedding table of this model is its head, which pin %llu MB does "
                           "not allow: set embedding to lru, or raise pin",
                           (unsigned long long)(o->pin_cap / QSF_MIB));
    if (o->budget == 0) s.budget = qsf_plan_auto_half(o);
    bool found = find(&s, &c, &lowered);
    if (!found && o->budget == 0 && qsf_plan_auto_most(o) > s.budget) {
        s.budget = qsf_plan_auto_more(m, o);
        s.above_half = true;
        found = find(&s, &c, &lowered);
    }
    if (!found) {
        c = qsf_plan_least(&s);
        qsf_plan_refuse(&s, &c, qsf_plan_smallest_beside(m, o, 0),
                        err); /* the advice must work for the next run */
        return QSF_E_BUDGET;
    }
    int rc = write_plan(&s, &c, lowered, p, err);
    if (rc != QSF_OK) return rc;
    if (o->budget == 0) qsf_plan_auto_trim(p, o->text_bytes);
    p->stream.keep_cached = cache_has_room(&s, p);
    return QSF_OK;
}

void qsf_plan_free(QsfPlan *p) {
    free(p->pinned_items);
    p->pinned_items = NULL;
    free(p->lend);
    p->lend = NULL;
}
