/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Computes the memory of a configuration by category. Every row is an upper bound of the memory the process
 * will touch, so that the sum is an upper bound of VmHWM. */
#include <string.h>

#include "src/base/checked.h"
#include "src/plan/drafting.h"
#include "src/plan/options.h"
#include "src/plan/plan_impl.h"
#include "src/plan/units.h"

#define STACK_BYTES (256u * 1024)
/* Added to the resident set before loading: code pages and data of the forward pass that are first touched
 * while computing, and libc's per-thread arenas. */
#define CODE_SLACK              (512u * 1024)
#define CODE_PER_THREAD         (64u * 1024)
#define SAMPLER_BYTES_PER_TOKEN 17u /* candidates and sets of the sampler, beside 4 bytes of logit */
#define SAMPLER_SLACK           (64u * 1024)
#define META_SLACK              (64u * 1024) /* structs of the forward pass, the loader and the plan */

void qsf_pricing_init(QsfPricing *s, const QsfModel *m, const QsfPlanOptions *o) {
    memset(s, 0, sizeof *s);
    s->m = m;
    s->o = o;
    qk_table_init(&s->table, QK_LEVEL_REF);
    qsf_shape_make(&s->shape, m, &s->table);
    s->budget = o->budget;
    if ((qsf_quality_below(&o->quality) && o->quality.head.groups > 0) || o->holds)
        (void)qsf_sketch_shape(m, o->threads, &s->sketch);
}

/* set: as the user set it, or -1. */
static qk_kv type_of(const QsfPricing *s, int set, bool kept, bool held, qk_kv now, qk_kv choice) {
    if (set >= 0 && set < QK_KV_N) return (qk_kv)set;
    if (s->o->exact) return QK_KV_F32;
    if (!kept) return choice;
    return held || qsf_kv_type_bits(now) < qsf_kv_type_bits(choice) ? now : choice;
}

QsfKvTypes qsf_pricing_wanted_kv(const QsfPricing *s, const QsfConfig *c) {
    const QsfPlanOptions *o = s->o;
    const QsfKvTypes choice = qsf_kv_choice(qsf_kv_choices() - 1 - c->kv);
    return (QsfKvTypes){ type_of(s, o->k, o->keep_k, c->hold_kv, o->kv_now.k, choice.k),
                         type_of(s, o->v, o->keep_v, c->hold_kv, o->kv_now.v, choice.v) };
}

QsfKvTypes qsf_pricing_kv(const QsfPricing *s, const QsfConfig *c) {
    return qsf_kv_types_used(s->m->prog.kv, s->m->prog.n_kv, qsf_pricing_wanted_kv(s, c));
}

static uint64_t meta_bytes(const QsfPricing *s) {
    uint64_t layers = s->m->hp.n_layers;
    /* Units, and in which order they are lent memory; counters per layer; what was measured of its
     * importance; positions that wait for the blocks after an early exit. */
    return s->o->meta_bytes + qsf_adapters_meta(s->o->adapters) +
           qsf_pages(s->shape.n_units * (QSF_WEIGHT_UNIT_BYTES + QSF_LEND_BYTES)) +
           qsf_pages(s->shape.n_experts * QSF_EXPERT_BYTES) +
           qsf_pages((layers + 1) * (QSF_LAYER_COUNTER_BYTES + 4 * sizeof(uint64_t))) +
           qsf_pages(layers * QSF_MEASURE_POSITIONS * sizeof(float)) +
           qsf_pages((QSF_PENDING_POSITIONS + 1) * (uint64_t)s->m->hp.hidden * sizeof(float)) + META_SLACK;
}

/* Rounds to whole MiB: the resident set before loading varies from run to run, the plan should not. Only its
 * file pages vary (measured: by 160 to 320 KB, its own memory by 12): the kernel maps those of the page cache
 * that are in an aligned window of 64 KB around a page that is touched, and where the windows begin in a
 * program or library is random. So the rounded sum differs by a MiB if it is near a whole one. */
static uint64_t code_bytes(const QsfPricing *s) {
    uint64_t base = (s->o->base_bytes + QSF_MIB - 1) / QSF_MIB * QSF_MIB;
    return base + CODE_SLACK + (uint64_t)s->o->threads * CODE_PER_THREAD;
}

static uint64_t stack_bytes(const QsfPricing *s) {
    /* Compute threads but the first, the loader, and the thread that drives the computation. */
    uint64_t n = (uint64_t)(s->o->threads - 1) + 1 + 1;
    return n * STACK_BYTES + (s->shape.on_demand ? 2 : 1) * qsf_io_stack_bytes(s->o->stream.kind);
}

static uint64_t list_bytes(const QsfPricing *s, uint32_t ctx) {
    QsfKvListLayout l;
    if (!s->o->kv_lists) return 0;
    qsf_kv_list_layout(&l, s->m->prog.n_kv, ctx, s->o->kv_mass ? (uint32_t)s->o->threads : 0);
    return l.total;
}

uint32_t qsf_pricing_batch(const QsfPricing *s, const QsfConfig *c) {
    const QsfProgram *p = &s->m->prog;
    const uint32_t ctx = qsf_plan_wanted_ctx(s);
    uint32_t most = c->batch < c->ctx ? c->batch : c->ctx;
    for (uint32_t i = 0; i < p->n_kv && most > QSF_KV_SLACK; i++)
        if (qsf_kv_positions(&p->kv[i], ctx) < ctx) most = QSF_KV_SLACK;
    return most;
}

uint32_t qsf_pricing_checkpoints(const QsfPricing *s, QsfKvTypes types, uint32_t ctx) {
    const uint32_t n = qsf_checkpoint_count(&s->m->prog, types, ctx, s->budget), most = s->o->checkpoints;
    return most > 0 && n > most ? most : n;
}

uint64_t qsf_pricing_rows(const QsfPricing *s, const QsfConfig *c, uint64_t *rows) {
    const QsfHparams *hp = &s->m->hp;
    const QsfKvTypes types = qsf_pricing_kv(s, c);
    QsfLayout l;
    qsf_layout_make(&l, s->m, &s->shape, qsf_pricing_batch(s, c), c->draft_cols, c->ctx, types, s->o->threads,
                    s->o->exact);
    const uint64_t groups = s->shape.on_demand ? 1u + (uint64_t)s->o->threads : 1;
    rows[QSF_MEM_PINNED] = c->pinned_unit_bytes + groups * s->shape.group_bytes +
                           qsf_pages(4 * s->shape.param_floats) + s->sketch.total +
                           qsf_adapters_pages(s->o->adapters, s->adapters_stream);
    /* Experts stream through slots of their own. */
    rows[QSF_MEM_SLOTS] = (s->shape.on_demand ? 2 : 1) * c->n_slots * c->slot_bytes +
                          qsf_staging_bytes(&s->shape, c->n_slots);
    const uint32_t checkpoints = qsf_pricing_checkpoints(s, types, c->ctx);
    rows[QSF_MEM_KV] = qsf_kv_bytes(s->m->prog.kv, s->m->prog.n_kv, types, c->ctx) + list_bytes(s, c->ctx) +
                       qsf_recurrent_bytes(&s->m->prog, types, checkpoints) +
                       (s->o->holds ? qsf_pages(qsf_state_bytes(&s->m->prog, types)) : 0);
    rows[QSF_MEM_ACTIVATIONS] = l.total + qsf_adapters_pass_bytes(s->o->adapters, l.n_cols);
    rows[QSF_MEM_LOGITS] = qsf_pages(4ull * hp->n_vocab) + SAMPLER_BYTES_PER_TOKEN * (uint64_t)hp->n_vocab +
                           SAMPLER_SLACK;
    rows[QSF_MEM_EMBED] = c->embed_resident ? qsf_pages(s->shape.embed_bytes)
                                            : qsf_rowcache_bytes(c->embed_rows, s->shape.embed_row_bytes);
    rows[QSF_MEM_TOKENIZER] = s->o->tokenizer_bytes;
    rows[QSF_MEM_META] = meta_bytes(s);
    rows[QSF_MEM_TRANSCRIPT] = s->o->transcript_bytes + qsf_plan_timeline_bytes(qsf_plan_wanted_ctx(s)) +
                               (c->draft_cols > 0 ? qsf_lookup_bytes(qsf_lookup_tokens(c->ctx)) : 0);
    rows[QSF_MEM_STACKS] = stack_bytes(s);
    rows[QSF_MEM_CODE] = code_bytes(s);
    rows[QSF_MEM_KERNEL] = QSF_MIB + s->budget / 1000 * 3;
    uint64_t sum = 0;
    for (unsigned i = 0; i < QSF_MEM_N; i++) {
        rows[i] += s->o->beside[i];
        if (!qsf_add_u64(sum, rows[i], &sum)) return UINT64_MAX;
    }
    return sum;
}
