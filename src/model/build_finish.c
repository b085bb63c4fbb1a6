/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of building a program: tensors that are left over, runs of steps, places of buffers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/build.h"

/* ---- tensors that no step uses ---- */

/* Tables written by older converters, which every reader computes itself; and the value mix of block 0 of
 * RWKV-7, which would mix the block's values with themselves. */
static const char *const ignored[] = {
    "attn_rot_embd",      "attn_rot_embd.weight", "attn.rotary_emb.inv_freq",
    "time_mix_v0.weight", "time_mix_v1.weight",   "time_mix_v2.weight"
};

/* Parses "blk.N.rest", N without leading zeros, and returns rest; NULL for other names. */
static const char *block_prefix(const char *name, uint32_t *block) {
    if (strncmp(name, "blk.", 4) != 0) return NULL;
    const char *p = name + 4;
    uint32_t n = 0;
    if (*p == '0' && p[1] != '.') return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > 100000) return NULL;
        n = n * 10 + (uint32_t)(*p - '0');
    }
    if (*p != '.' || p == name + 4) return NULL;
    *block = n;
    return p + 1;
}

static int by_address(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t) * (const QsfTensor *const *)a,
                    y = (uintptr_t) * (const QsfTensor *const *)b;
    return (x > y) - (x < y);
}

/* Lists all tensors that the program uses or that have no effect, sorted by address; the
 * caller frees the list. */
static const QsfTensor **used_tensors(const QsfBuilder *b, size_t *n) {
    const QsfProgram *p = &b->p;
    const QsfTensor **list = calloc((size_t)p->n_units * QSF_UNIT_TENSORS + p->n_params + b->n_unused + 3,
                                    sizeof *list);
    *n = 0;
    if (list == NULL) return NULL;
    for (uint32_t i = 0; i < p->n_units; i++)
        for (unsigned t = 0; t < p->unit[i].n; t++) list[(*n)++] = p->unit[i].tensor[t];
    for (uint32_t i = 0; i < p->n_params; i++) list[(*n)++] = p->param[i].tensor;
    for (uint32_t i = 0; i < b->n_unused; i++) list[(*n)++] = b->unused[i];
    list[(*n)++] = p->embed;
    if (p->token_table != NULL) list[(*n)++] = p->token_table;
    if (p->position_table != NULL) list[(*n)++] = p->position_table;
    qsort(list, *n, sizeof *list, by_address);
    return list;
}

/* Is it a tensor of the only block of a program? */
static bool is_of_block(const QsfBuilder *b, const char *name) {
    uint32_t block;
    return block_prefix(name, &block) != NULL && block == b->first;
}

/* Is the tensor known to have no effect on the logits? */
static bool is_ignored(const QsfBuilder *b, const char *name) {
    uint32_t block;
    const char *rest = block_prefix(name, &block);
    const QsfHparams *hp = qsf_build_hp(b);
    if (qsf_build_is_nextn(b)) return !is_of_block(b, name);
    if (rest != NULL && block >= hp->n_layers && block - hp->n_layers < hp->n_extra) return true;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(ignored[i], rest != NULL ? rest : name) == 0) return true;
    return false;
}

/* Does the tensor belong to a part that turns images or sound into embeddings? */
static bool is_of_other_input(const char *name) {
    static const char *const prefix[] = { "v.", "a.", "mm." };
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        if (strncmp(name, prefix[i], strlen(prefix[i])) == 0) return true;
    return false;
}

static void ignore_tensor(QsfProgram *p, const char *name) {
    if (p->n_ignored++ == 0) p->ignored = name;
}

static void refuse_tensor(QsfBuilder *b, const char *name) {
    uint32_t block;
    const QsfHparams *hp = qsf_build_hp(b);
    if (block_prefix(name, &block) != NULL && block >= hp->n_layers + hp->n_extra)
        qsf_build_fail(b, "tensor '%s' belongs to layer %u, but the model has %u layers", name, block,
                       hp->n_layers);
    else
        qsf_build_fail(b, "tensor '%s' is not supported in a %s model; ignoring it would give wrong answers",
                       name, hp->arch->name);
}

static void check_all_used(QsfBuilder *b) {
    size_t n;
    if (qsf_build_failed(b) || b->m->src == NULL) return;
    const QsfTensor **used = used_tensors(b, &n);
    if (used == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "%s", qsf_source_path(b->m->src)));
        return;
    }
    for (uint64_t i = 0; !qsf_build_failed(b) && i < qsf_source_n_tensors(b->m->src); i++) {
        const QsfTensor *t = qsf_source_tensor(b->m->src, i);
        if (bsearch(&t, used, n, sizeof *used, by_address) != NULL || is_ignored(b, t->name)) continue;
        if (is_of_other_input(t->name))
            ignore_tensor(&b->p, t->name);
        else
            refuse_tensor(b, t->name);
    }
    free(used);
}

/* ---- runs, and how long buffers live ---- */

/* Does the step multiply by matrices that are streamed with a block? */
static bool streams_with_block(const QsfProgram *p, uint32_t step) {
    const uint32_t unit = qsf_step_unit(&p->step[step]);
    return unit != QSF_NONE && p->unit[unit].block < p->n_blocks;
}

/* The head's steps begin after the last step over all columns of the last block: what follows
 * concerns each column alone. */
static uint32_t first_head_step(const QsfProgram *p) {
    uint32_t i = p->n_steps;
    while (i > 0 && p->step[i - 1].block == p->n_blocks && !streams_with_block(p, i - 1)) i--;
    while (i > 0 && qsf_op_is_column(p->step[i - 1].op) && p->step[i - 1].op != QSF_OP_KV_STORE) i--;
    return i;
}

/* Returns where the residual stream is complete: before the norm of the head. */
static uint32_t first_after_blocks(const QsfProgram *p) {
    uint32_t i = p->head_step;
    while (i < p->n_steps && p->step[i].block < p->n_blocks) i++;
    return i;
}

static uint32_t after_last_store(const QsfProgram *p) {
    uint32_t i = p->n_steps;
    while (i > 0 && p->step[i - 1].op != QSF_OP_KV_STORE) i--;
    return i;
}

static void number_runs(QsfProgram *p) {
    uint32_t run = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        p->run[i] = run;
        if (!qsf_op_is_column(p->step[i].op)) run++;
    }
}

static void use(QsfProgram *p, QsfSlice s, uint32_t run) {
    if (s.buf >= p->n_bufs) return; /* none, or the logits */
    QsfBuffer *buf = &p->buf[s.buf];
    if (buf->first == QSF_NONE) buf->first = run;
    buf->last = run;
}

/* In a run all buffers that its steps use exist side by side: threads are at different columns. */
static void find_lifetimes(QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const QsfStep *s = &p->step[i];
        use(p, s->in, p->run[i]);
        use(p, s->in2, p->run[i]);
        use(p, s->in3, p->run[i]);
        for (unsigned k = 0; k < QSF_UNIT_TENSORS; k++) use(p, s->out[k], p->run[i]);
    }
    p->buf[QSF_BUF_X].first = 0; /* written by the embedding */
    if (p->given != QSF_NONE) p->buf[p->given].first = 0;
    p->buf[QSF_BUF_X].last = p->run[p->n_steps - 1];
}

/* ---- places ---- */

/* Returns the lowest place for buffer i beside those in active (n). */
static uint64_t lowest_place(const QsfProgram *p, const uint32_t *active, uint32_t n, uint32_t i) {
    uint64_t off = 0, size = p->buf[i].stride;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = 0; k < n; k++) {
            const QsfBuffer *o = &p->buf[active[k]];
            if (off >= o->off + o->stride || o->off >= off + size) continue;
            off = o->off + o->stride;
            moved = true;
        }
    }
    return off;
}

/* Drops buffers that are no longer used at `run`; returns how many are left. */
static uint32_t drop_dead(const QsfProgram *p, uint32_t *active, uint32_t n, uint32_t run) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++)
        if (p->buf[active[k]].last >= run) active[kept++] = active[k];
    return kept;
}

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* A buffer's number and the run that uses it first. */
typedef struct Start {
    uint32_t run, buf;
} Start;

static int by_start(const void *a, const void *b) {
    const Start *x = a, *y = b;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    return (x->buf > y->buf) - (x->buf < y->buf);
}

static void place_buffers(QsfBuilder *b) {
    QsfProgram *p = &b->p;
    Start *start = calloc(p->n_bufs, sizeof *start);
    uint32_t *active = calloc(p->n_bufs, sizeof *active), n = 0;
    if (start == NULL || active == NULL)
        qsf_build_check(b, qsf_err_memory(b->err, "buffers of the forward pass"));
    for (uint32_t i = 0; !qsf_build_failed(b) && i < p->n_bufs; i++) start[i] = (Start){ p->buf[i].first, i };
    if (!qsf_build_failed(b)) qsort(start, p->n_bufs, sizeof *start, by_start);
    for (uint32_t k = 0; !qsf_build_failed(b) && k < p->n_bufs; k++) {
        const uint32_t i = start[k].buf;
        QsfBuffer *buf = &p->buf[i];
        if (buf->first == QSF_NONE) continue; /* no step uses it */
        n = drop_dead(p, active, n, buf->first);
        buf->off = lowest_place(p, active, n, i);
        active[n++] = i;
        p->col_floats = max_u64(p->col_floats, buf->off + buf->stride);
        if (buf->last >= p->run[p->head_step])
            p->head_floats = max_u64(p->head_floats, buf->off + buf->stride);
    }
    free(start);
    free(active);
}

/* ---- units ---- */

static void index_units(QsfBuilder *b) {
    QsfProgram *p = &b->p;
    p->block_unit = calloc(p->n_blocks + 2u, sizeof *p->block_unit);
    if (p->block_unit == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "weight units"));
        return;
    }
    uint32_t i = 0;
    for (uint32_t block = 0; block <= p->n_blocks; block++) {
        p->block_unit[block] = i;
        while (i < p->n_units && p->unit[i].block == block) i++;
    }
    p->block_unit[p->n_blocks + 1] = p->n_units;
    if (i != p->n_units)
        qsf_build_fail(b, "internal: the units of a program are not in the order of its blocks");
}

/* ---- windows ---- */

/* The positions that an attention step sees, itself included; 0 = all before it. */
static uint32_t seen_by(const QsfAttentionStep *a) {
    const uint32_t w = a->window, c = a->chunk;
    return w == 0 ? c : c == 0 || w < c ? w : c;
}

static void find_windows(QsfProgram *p) {
    for (uint32_t k = 0; k < p->n_kv; k++) {
        uint32_t most = 0;
        for (uint32_t i = 0; i < p->n_steps; i++) {
            if (p->step[i].op != QSF_OP_ATTENTION || p->step[i].u.attention.kv != k) continue;
            const uint32_t seen = seen_by(&p->step[i].u.attention);
            if (seen == 0) most = UINT32_MAX;
            if (seen > most) most = seen;
        }
        p->kv[k].window = most == UINT32_MAX ? 0 : most;
    }
}

/* Finds the caches that no other step uses between their store and their attention, and none after that. */
static void find_readers(QsfProgram *p) {
    for (uint32_t k = 0; k < p->n_kv; k++) {
        uint32_t stored = QSF_NONE, reads = 0;
        bool once = true;
        for (uint32_t i = 0; i < p->n_steps; i++) {
            const QsfStep *s = &p->step[i];
            if (s->op == QSF_OP_INDEX && s->u.index.kv == k) once = false;
            if (s->op == QSF_OP_KV_STORE) stored = s->u.kv;
            if (s->op != QSF_OP_ATTENTION || s->u.attention.kv != k) continue;
            once = once && stored == k && s->in2.buf == QSF_NONE && s->block == p->kv[k].block;
            reads++;
        }
        p->kv[k].read_once = once && reads == 1;
    }
}

/* ---- compressed layers ---- */

static void refuse_compressed(QsfBuilder *b, uint32_t block, const QsfTensor *t) {
    qsf_build_fail(b,
                   "tensor '%s' is used in block %" PRIu32
                   " together with others of which some are compressed and some are not, which is not "
                   "supported",
                   t->name, block);
}

/* A compressed layer is held as a whole while its block is computed: all matrices of the block are in it, or
 * none is. Its parameters are read when it is loaded. */
static void check_compressed(QsfBuilder *b) {
    const QsfProgram *p = &b->p;
    for (uint32_t i = 0; i < p->n_units; i++) {
        const QsfUnitSpec *u = &p->unit[i], *first = &p->unit[p->block_unit[u->block]];
        for (unsigned k = 0; k < u->n; k++)
            if (u->tensor[k]->compressed != first->tensor[0]->compressed)
                refuse_compressed(b, u->block, u->tensor[k]);
    }
    for (uint32_t i = 0; i < p->n_params; i++) {
        const QsfParam *q = &p->param[i];
        if (q->block >= p->n_blocks) continue;
        const uint32_t unit = p->block_unit[q->block];
        const QsfCompressed *of = unit < p->block_unit[q->block + 1] ? p->unit[unit].tensor[0]->compressed
                                                                     : NULL;
        if (q->tensor->compressed != of) refuse_compressed(b, q->block, q->tensor);
    }
}

/* ---- the end ---- */

static void *to_arena(QsfBuilder *b, QsfArena *arena, const void *mem, uint32_t n, size_t size) {
    if (qsf_build_failed(b)) return NULL;
    void *copy = qsf_arena_alloc(arena, n * size, 0, b->err);
    if (copy == NULL)
        qsf_build_check(b, b->err->code);
    else if (n > 0)
        memcpy(copy, mem, n * size);
    return copy;
}

static void copy_program(QsfBuilder *b, QsfProgram *out, QsfArena *arena) {
    const QsfProgram *p = &b->p;
    *out = *p;
    out->step = to_arena(b, arena, p->step, p->n_steps, sizeof *p->step);
    out->run = to_arena(b, arena, p->run, p->n_steps, sizeof *p->run);
    out->buf = to_arena(b, arena, p->buf, p->n_bufs, sizeof *p->buf);
    out->unit = to_arena(b, arena, p->unit, p->n_units, sizeof *p->unit);
    out->block_unit = to_arena(b, arena, p->block_unit, p->n_blocks + 2, sizeof *p->block_unit);
    out->param = to_arena(b, arena, p->param, p->n_params, sizeof *p->param);
    out->kv = to_arena(b, arena, p->kv, p->n_kv, sizeof *p->kv);
    out->state = to_arena(b, arena, p->state, p->n_states, sizeof *p->state);
    out->rope = to_arena(b, arena, p->rope, p->n_ropes, sizeof *p->rope);
    out->slopes = to_arena(b, arena, p->slopes, p->n_slopes, sizeof *p->slopes);
    for (uint32_t i = 0; !qsf_build_failed(b) && i < p->n_slopes; i++)
        out->slopes[i] = to_arena(b, arena, p->slopes[i], qsf_build_hp(b)->n_heads, sizeof **p->slopes);
    for (uint32_t i = 0; !qsf_build_failed(b) && i < p->n_ropes; i++) {
        out->rope[i].freq = to_arena(b, arena, p->rope[i].freq, p->rope[i].n_rot / 2,
                                     sizeof *p->rope[i].freq);
        if (p->rope[i].freq_long != NULL)
            out->rope[i].freq_long = to_arena(b, arena, p->rope[i].freq_long, p->rope[i].n_rot / 2,
                                              sizeof *p->rope[i].freq_long);
    }
}

static void free_builder(QsfBuilder *b) {
    QsfProgram *p = &b->p;
    for (uint32_t i = 0; i < p->n_ropes; i++) {
        free(p->rope[i].freq);
        free(p->rope[i].freq_long);
    }
    for (uint32_t i = 0; i < p->n_slopes; i++) free(p->slopes[i]);
    free(p->step);
    free(p->run);
    free(p->buf);
    free(p->unit);
    free(p->block_unit);
    free(p->param);
    free(p->kv);
    free(p->state);
    free(p->rope);
    free(p->slopes);
    free(b->unused);
    *p = (QsfProgram){ 0 };
}

static void analyse(QsfBuilder *b) {
    QsfProgram *p = &b->p;
    if (qsf_build_failed(b)) return;
    p->run = calloc(p->n_steps + 1u, sizeof *p->run);
    if (p->run == NULL) {
        qsf_build_check(b, qsf_err_memory(b->err, "steps of the forward pass"));
        return;
    }
    p->head_step = first_head_step(p);
    p->done_step = first_after_blocks(p);
    p->fill_step = after_last_store(p);
    number_runs(p);
    find_windows(p);
    find_readers(p);
    find_lifetimes(p);
    place_buffers(b);
    index_units(b);
    if (!qsf_build_failed(b)) check_compressed(b);
}

int qsf_build_finish(QsfBuilder *b, QsfProgram *out, QsfArena *arena) {
    check_all_used(b);
    analyse(b);
    if (!qsf_build_failed(b)) copy_program(b, out, arena);
    if (qsf_build_failed(b)) *out = (QsfProgram){ 0 };
    free_builder(b);
    return b->rc;
}
