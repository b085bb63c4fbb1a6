/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts with the blocks that are in RAM anyway, while the others stream: passes over one position that skip
 * the others, and find the head with its sketch. They read and write the KV cache of the model, whose earlier
 * positions it has computed itself; the pass that checks the draft overwrites theirs. The loader, which may
 * be ahead with the next pass of the model, does not notice them. */
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/ops/ops.h"

#define NAME "states before a draft"

void qsf_pinned_close(QsfForward *f) {
    QsfPinnedDrafts *d = &f->pinned;
    if (d->state != NULL) qsf_mem_unmap(f->ledger, QSF_MEM_KV, d->state, d->state_bytes);
    *d = (QsfPinnedDrafts){ 0 };
}

int qsf_pinned_open(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfPinnedDrafts *d = &f->pinned;
    void *mem;
    if (!p->holds) return QSF_OK;
    for (uint32_t i = 0; i < f->model->prog.n_blocks; i++)
        if (!qsf_blocks_have(&p->hold, i)) qsf_blocks_add(&d->skip, i);
    d->on = true;
    d->state_bytes = qsf_pages(f->recurrent.copy);
    if (d->state_bytes == 0) return QSF_OK;
    int rc = qsf_mem_map(f->ledger, QSF_MEM_KV, d->state_bytes, NAME, &mem, err);
    if (rc == QSF_OK) d->state = mem;
    return rc;
}

static bool head_is_pinned(const QsfForward *f) {
    return qsf_weights_pinned(f->weights, qsf_weights_n_units(f->weights) - 1);
}

static bool has_sketch(const QsfForward *f) {
    return f->sketch.mem != NULL && !qsf_adapters_have(&f->adapters, f->model->prog.n_units - 1);
}

bool qsf_forward_drafts(const QsfForward *f, const char **why) {
    const char *no = NULL;
    if (!f->pinned.on)
        no = "no whole layers are pinned";
    else if (!has_sketch(f) && !head_is_pinned(f))
        no = "the head is not in memory";
    if (why != NULL) *why = no;
    return no == NULL;
}

/* What the pass of a draft changes, besides the caches and states. */
typedef struct Before {
    QsfReduction reduction;
    bool sketch_on;
    uint32_t n_past;
} Before;

static void begin(QsfForward *f, Before *b) {
    QsfReduction *r = &f->reduction;
    *b = (Before){ .reduction = *r, .sketch_on = f->sketch.on, .n_past = f->kv.n_past };
    r->skip = f->pinned.skip;
    r->skips = true;
    r->reduced = r->exiting = r->measures = false;
    f->keeps = false;
    f->sketch.on = has_sketch(f);
    f->sketch.alone = !head_is_pinned(f);
    if (f->pinned.state != NULL)
        memcpy(f->pinned.state, qsf_recurrent_at(&f->recurrent, b->n_past, b->n_past), f->recurrent.copy);
}

static void end(QsfForward *f, const Before *b) {
    f->reduction = b->reduction;
    f->sketch.on = b->sketch_on;
    f->sketch.alone = false;
    qsf_kvcache_truncate(&f->kv, b->n_past);
    if (f->pinned.state != NULL)
        memcpy(qsf_recurrent_at(&f->recurrent, b->n_past, b->n_past), f->pinned.state, f->recurrent.copy);
}

/* Evaluates one more position with the blocks that are held; its logits become those of f. */
static int pass(QsfForward *f, int32_t id, QsfErr *err) {
    f->past = f->kv.n_past;
    f->ids = &id;
    f->col0 = 0;
    f->n_cols = 1;
    f->y = f->logits;
    qsf_kvcache_will_store(&f->kv, 1);
    qsf_kvrecent_begin(&f->kv, f->past, 1, f->mem + f->l.recent, qsf_recurrent_old_recent(&f->recurrent),
                       qsf_recurrent_new_recent(&f->recurrent));
    qsf_rope_angles(f, 1);
    qsf_threads_begin_pass(f, 1);
    int rc = qsf_embed_rows(f, &id, 1, err);
    if (rc == QSF_OK) rc = qsf_steps_run(f, 0, f->model->prog.n_steps, err);
    qsf_steps_end_block(f);
    qsf_threads_end_pass(f, false);
    if (rc != QSF_OK) return rc;
    f->kv.n_past++;
    qsf_reduction_keep_states(f);
    qsf_recurrent_commit(&f->recurrent);
    return QSF_OK;
}

static uint32_t draft(QsfForward *f, int32_t id, uint32_t n, float least, int32_t *out, float *margin) {
    QsfErr none = { 0 };
    float ahead = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (pass(f, i == 0 ? id : out[i - 1], &none) != QSF_OK) return i;
        out[i] = qsf_forward_likeliest(f->logits, f->model->hp.n_vocab, &ahead);
        if (i == 0) *margin = ahead;
        if (ahead < least) return i + 1;
    }
    return n;
}

/* As many positions as the pass that checks them could take back. */
uint32_t qsf_forward_draft(QsfForward *f, int32_t id, uint32_t n, float least, int32_t *out, float *margin) {
    const uint32_t most = qsf_forward_verifiable(f, NULL);
    QsfErr none = { 0 };
    Before before;
    if (!qsf_forward_drafts(f, NULL) || most < 2 || f->kv.n_past == 0) return 0;
    if (n > most - 1) n = most - 1;
    if (qsf_reserve_positions(f, f->kv.n_past + n, &none) != QSF_OK) return 0;
    begin(f, &before);
    const uint32_t wrote = draft(f, id, n, least, out, margin);
    end(f, &before);
    return wrote;
}
