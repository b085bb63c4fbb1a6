/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/nextn.h"

#include <stdlib.h>
#include <string.h>

#include "src/forward/draft_plan.h"
#include "src/forward/forward_impl.h"
#include "src/forward/snapshot.h"
#include "src/model/nextn.h"

/* One block. Its position i is position base + i of the model. */
typedef struct Block {
    QsfModel model;
    QsfPlan plan;
    QsfForward *fwd;    /* NULL until loaded */
    QsfQuality quality; /* of drafts: the head is found with its sketch, or zero */
    uint32_t base;
    QsfLogitsFn watch;
    void *watch_arg;
} Block;

struct QsfNextn {
    const QsfModel *model;
    uint32_t n;
    Block block[QSF_NEXTN_BLOCKS];
    QsfForward *of; /* NULL until loaded */
    uint32_t hidden;
    float *mem; /* (2 * QSF_NEXTN_DRAFTS, hidden) ACTIVATIONS: states that were shown, position p in row p %
                   QSF_NEXTN_DRAFTS; then the blocks' own of a draft */
    uint64_t bytes;
    uint32_t from, to; /* the positions whose states are kept */
    QsfErr failed;     /* of the last fill */
};

/* ---- opening ---- */

int qsf_nextn_create(QsfNextn **out, const QsfModel *m, uint32_t first, uint32_t n, bool borrow,
                     QsfErr *err) {
    *out = NULL;
    QsfNextn *x = calloc(1, sizeof *x);
    if (x == NULL) return qsf_err_memory(err, "next-token blocks");
    int rc = QSF_OK;
    x->model = m;
    x->hidden = m->hp.hidden;
    for (uint32_t i = 0; rc == QSF_OK && i < n && i < QSF_NEXTN_BLOCKS; i++) {
        rc = qsf_nextn_open(&x->block[i].model, m, first + i, borrow, err);
        if (rc == QSF_OK) x->n++;
    }
    if (rc != QSF_OK) {
        qsf_nextn_destroy(x);
        return rc;
    }
    *out = x;
    return QSF_OK;
}

void qsf_nextn_destroy(QsfNextn *x) {
    if (x == NULL) return;
    if (x->of != NULL) {
        qsf_forward_show_states(x->of, NULL, NULL);
        qsf_mem_unmap(x->of->ledger, QSF_MEM_ACTIVATIONS, x->mem, x->bytes);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        qsf_forward_destroy(x->block[i].fwd);
        qsf_plan_free(&x->block[i].plan);
        qsf_model_close(&x->block[i].model);
    }
    free(x);
}

bool qsf_nextn_borrows(const QsfNextn *x) {
    bool any = false;
    for (uint32_t i = 0; i < x->n; i++) {
        const QsfProgram *p = &x->block[i].model.prog;
        any = any || p->unit[p->n_units - 1].borrowed;
    }
    return any;
}

/* ---- the plan ---- */

#define ALL_EXPERTS      0.999f
#define QSF_KERNEL_BYTES (1u << 20) /* of every plan, beside a share of the budget (pricing.c) */

static uint64_t states_bytes(const QsfNextn *x) {
    return qsf_pages(2ull * QSF_NEXTN_DRAFTS * x->hidden * sizeof(float));
}

/* Rows of the embedding table come from the model's forward pass, unless the block has its own table. */
static void share_rows(const QsfNextn *x, Block *b) {
    if (b->model.prog.embed != x->model->prog.embed) return;
    b->plan.rows[QSF_MEM_EMBED] = 0;
    b->plan.embed_rows = 0;
}

/* Where everything in RAM takes more than `most`, weights are streamed. */
static int plan_block(const QsfNextn *x, Block *b, QsfPlanOptions *p, uint64_t most, QsfErr *err) {
    qsf_plan_free(&b->plan);
    p->budget = QSF_DRAFT_PLAN_WITHOUT_LIMIT;
    int rc = qsf_plan_make(&b->plan, &b->model, p, err);
    if (rc == QSF_OK) share_rows(x, b);
    const uint64_t bytes = rc == QSF_OK ? qsf_draft_plan_bytes(&b->plan) : 0;
    if (rc != QSF_OK || bytes <= most) return rc;
    p->budget = most + b->plan.total - b->plan.rows[QSF_MEM_KERNEL] - bytes;
    p->budget += QSF_KERNEL_BYTES + p->budget / 256;
    qsf_plan_free(&b->plan);
    rc = qsf_plan_make(&b->plan, &b->model, p, err);
    if (rc == QSF_OK) share_rows(x, b);
    return rc;
}

/* With a quality so near to 1 all experts of a position are used. */
static QsfQuality quality_of(const QsfNextn *x, const QsfPlanOptions *o, bool sketch) {
    QsfQuality q = { .value = ALL_EXPERTS };
    qsf_quality_sketch(&q, &x->block[0].model);
    return sketch && x->n == 1 && q.head.groups > 0 && !o->exact ? q : (QsfQuality){ 0 };
}

int qsf_nextn_plan(QsfNextn *x, const QsfPlanOptions *o, uint32_t ctx, QsfKvTypes kv, bool sketch,
                   uint64_t most, uint64_t *rows, QsfErr *err) {
    QsfPlanOptions p = qsf_draft_plan_options(o, ctx, kv, QSF_NEXTN_BATCH);
    p.quality = quality_of(x, o, sketch);
    for (uint32_t i = 0; i < x->n; i++) {
        Block *b = &x->block[i];
        b->quality = p.quality;
        int rc = plan_block(x, b, &p, most / x->n, err);
        if (rc != QSF_OK) return rc;
        qsf_draft_plan_add(&b->plan, o, rows);
    }
    rows[QSF_MEM_ACTIVATIONS] += states_bytes(x);
    return QSF_OK;
}

/* ---- following the model ---- */

static float *shown(const QsfNextn *x, uint32_t pos) {
    return x->mem + (size_t)(pos % QSF_NEXTN_DRAFTS) * x->hidden;
}

static float *own(const QsfNextn *x, uint32_t i) {
    return x->mem + (size_t)(QSF_NEXTN_DRAFTS + i) * x->hidden;
}

/* Returns the state before pos; NULL if it is not known. */
static const float *state_before(const QsfNextn *x, uint32_t pos) {
    return pos > x->from && pos <= x->to ? shown(x, pos - 1) : NULL;
}

/* Lets the cache end before pos. Where that is not possible it begins again with pos. */
static void align(Block *b, uint32_t pos) {
    const uint32_t end = b->base + qsf_forward_n_past(b->fwd);
    if (pos == end) return;
    if (pos > b->base && pos < end && qsf_forward_truncate(b->fwd, pos - b->base) == pos - b->base) return;
    qsf_forward_truncate(b->fwd, 0);
    b->base = pos;
}

static int fill(QsfNextn *x, Block *b, uint32_t pos, const int32_t *ids, uint32_t n, const QsfGiven *g) {
    align(b, pos);
    /* Where the context of the block is full, it begins again. */
    if (qsf_forward_room(b->fwd) < n) {
        qsf_forward_truncate(b->fwd, 0);
        b->base = pos;
    }
    if (b->watch != NULL)
        return qsf_forward_eval_given(b->fwd, ids, n, g, b->watch, b->watch_arg, &x->failed);
    return qsf_forward_fill_given(b->fwd, ids, n, g, &x->failed);
}

static void keep_states(QsfNextn *x, uint32_t pos, uint32_t n, const float *rows, uint32_t stride) {
    const uint32_t first = n > QSF_NEXTN_DRAFTS ? n - QSF_NEXTN_DRAFTS : 0;
    if (pos != x->to) x->from = pos < x->to && pos > x->from ? x->from : pos;
    for (uint32_t i = first; i < n; i++)
        memcpy(shown(x, pos + i), rows + (size_t)i * stride, x->hidden * sizeof *rows);
    x->to = pos + n;
    if (x->to - x->from > QSF_NEXTN_DRAFTS) x->from = x->to - QSF_NEXTN_DRAFTS;
}

/* Positions pos and later are removed: the states before them stay, if nothing else was restored. */
static void forget(QsfNextn *x, uint32_t pos) {
    if (pos < x->to) x->to = pos;
    if (x->from > x->to) x->from = x->to;
    for (uint32_t i = 0; pos == 0 && i < x->n; i++) align(&x->block[i], 0);
}

static void on_states(void *arg, uint32_t pos, const int32_t *ids, uint32_t n, const float *rows,
                      uint32_t stride) {
    QsfNextn *x = arg;
    if (n == 0) {
        forget(x, pos);
        return;
    }
    const QsfGiven g = { .first = state_before(x, pos), .x = rows, .stride = stride, .n_shown = UINT32_MAX };
    int rc = QSF_OK;
    x->failed = (QsfErr){ 0 };
    for (uint32_t i = 0; rc == QSF_OK && i < x->n; i++) rc = fill(x, &x->block[i], pos, ids, n, &g);
    keep_states(x, pos, n, rows, stride);
}

/* What the caches hold of a longer context is given up. */
int qsf_nextn_replan(QsfNextn *x, QsfPool *pool, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < x->n; i++) {
        Block *b = &x->block[i];
        if (qsf_forward_n_past(b->fwd) > b->plan.ctx) qsf_forward_truncate(b->fwd, 0);
        rc = qsf_forward_replan(b->fwd, &b->plan, pool, err);
        if (rc == QSF_OK) qsf_forward_set_quality(b->fwd, &b->quality);
    }
    return rc;
}

int qsf_nextn_load(QsfNextn *x, QsfForward *f, const QsfForwardOptions *o, QsfErr *err) {
    QsfForwardOptions fo = *o;
    void *mem;
    int rc = qsf_mem_map(o->ledger, QSF_MEM_ACTIVATIONS, states_bytes(x), "states of positions", &mem, err);
    if (rc != QSF_OK) return rc;
    x->of = f;
    x->mem = mem;
    x->bytes = states_bytes(x);
    fo.lender = f;
    for (uint32_t i = 0; rc == QSF_OK && i < x->n; i++) {
        fo.model = &x->block[i].model;
        fo.plan = &x->block[i].plan;
        rc = qsf_forward_create(&x->block[i].fwd, &fo, err);
        if (rc == QSF_OK) qsf_forward_set_quality(x->block[i].fwd, &x->block[i].quality);
    }
    if (rc == QSF_OK) qsf_forward_show_states(f, on_states, x);
    return rc;
}

/* ---- drafts ---- */

static bool head_is_there(const QsfNextn *x) {
    const uint32_t head = qsf_weights_n_units(x->of->weights) - 1;
    return !qsf_nextn_borrows(x) || qsf_weights_pinned(x->of->weights, head);
}

void qsf_nextn_prepare(QsfNextn *x) {
    QsfErr none = { 0 };
    if (qsf_nextn_ready(x, NULL) && x->block[0].fwd->sketch.mem != NULL)
        (void)qsf_sketch_fill(x->block[0].fwd, &none);
}

bool qsf_nextn_ready(const QsfNextn *x, const char **why) {
    const char *no = NULL;
    const uint32_t pos = x->of != NULL ? qsf_forward_n_past(x->of) : 0;
    if (x->of == NULL)
        no = "they are not loaded";
    else if (x->failed.code != QSF_OK)
        no = "reading them failed";
    else if (!head_is_there(x))
        no = "the head is not in memory";
    else if (state_before(x, pos) == NULL)
        no = "they have not seen the last positions";
    for (uint32_t i = 0; no == NULL && i < x->n; i++)
        if (x->block[i].base + qsf_forward_n_past(x->block[i].fwd) < pos)
            no = "they have not seen the last positions";
    if (why != NULL) *why = no;
    return no == NULL;
}

/* Evaluates tokens ids[k..i] of the draft, ids[0] being the model's next one, and keeps the state of the last
 * one. */
static int step(QsfNextn *x, Block *b, uint32_t pos, const int32_t *ids, uint32_t k, uint32_t i) {
    const QsfGiven g = { .first = k == 0 ? state_before(x, pos) : own(x, k - 1),
                         .x = own(x, k),
                         .stride = x->hidden,
                         .n_shown = k == 0 ? 1 : 0 };
    QsfErr err = { 0 };
    int rc = qsf_forward_decode_given(b->fwd, ids + k, i + 1 - k, &g, &err);
    if (rc == QSF_OK) qsf_forward_own_state(b->fwd, own(x, i));
    return rc;
}

uint32_t qsf_nextn_draft(QsfNextn *x, int32_t id, uint32_t n, float least, int32_t *out, float *margin) {
    float ahead = 0;
    int32_t ids[QSF_NEXTN_DRAFTS + 1] = { id };
    if (n > QSF_NEXTN_DRAFTS) n = QSF_NEXTN_DRAFTS;
    const uint32_t pos = qsf_forward_n_past(x->of);
    for (uint32_t i = 0; i < x->n; i++) align(&x->block[i], pos);
    for (uint32_t i = 0; i < n; i++) {
        Block *b = &x->block[i < x->n ? i : x->n - 1];
        /* A block that was not used in this draft has seen none of its tokens. */
        const uint32_t seen = b->base + qsf_forward_n_past(b->fwd) - pos;
        if (qsf_forward_room(b->fwd) < i + 1 - seen || step(x, b, pos, ids, seen, i) != QSF_OK) return i;
        ids[i + 1] = out[i] = qsf_forward_likeliest(qsf_forward_logits(b->fwd), b->model.hp.n_vocab, &ahead);
        if (i == 0) *margin = ahead;
        if (ahead < least) return i + 1;
    }
    return n;
}

/* ---- snapshots ---- */

uint32_t qsf_nextn_n(const QsfNextn *x) { return x->n; }

QsfForward *qsf_nextn_pass(const QsfNextn *x, uint32_t i) { return x->block[i].fwd; }

uint32_t qsf_nextn_hidden(const QsfNextn *x) { return x->hidden; }

bool qsf_nextn_can_save(const QsfNextn *x, uint32_t n) {
    QsfErr none = { 0 };
    bool ok = x->of != NULL && x->failed.code == QSF_OK;
    for (uint32_t i = 0; ok && i < x->n; i++) {
        const Block *b = &x->block[i];
        ok = b->base == 0 && qsf_forward_n_past(b->fwd) >= n && !qsf_forward_is_listed(b->fwd) &&
             qsf_forward_state_bytes(b->fwd) == 0 && qsf_forward_savable(b->fwd, &none) == QSF_OK &&
             qsf_forward_can_save(b->fwd, n);
    }
    return ok;
}

uint32_t qsf_nextn_states_from(const QsfNextn *x, uint32_t n) {
    return state_before(x, n) != NULL ? x->from : n;
}

float *qsf_nextn_state(const QsfNextn *x, uint32_t pos) { return shown(x, pos); }

void qsf_nextn_empty(QsfNextn *x) { forget(x, 0); }

int qsf_nextn_restore(QsfNextn *x, uint32_t n, QsfErr *err) {
    int rc = QSF_OK;
    qsf_nextn_empty(x);
    x->failed = (QsfErr){ 0 };
    for (uint32_t i = 0; rc == QSF_OK && i < x->n; i++) {
        x->block[i].base = 0;
        rc = qsf_forward_restore(x->block[i].fwd, n, err);
    }
    return rc;
}

bool qsf_nextn_restored(QsfNextn *x, uint32_t i, uint32_t n, const uint32_t *have) {
    if (!qsf_forward_is_enough(x->block[i].fwd, n, have)) return false;
    qsf_forward_restored(x->block[i].fwd, n, have);
    return true;
}

void qsf_nextn_states_restored(QsfNextn *x, uint32_t from, uint32_t n) {
    x->from = from;
    x->to = n;
}

/* ---- comparisons ---- */

void qsf_nextn_watch(QsfNextn *x, uint32_t i, QsfLogitsFn fn, void *arg) {
    x->block[i].watch = fn;
    x->block[i].watch_arg = arg;
}

int qsf_nextn_error(const QsfNextn *x, QsfErr *err) {
    if (x->failed.code != QSF_OK) *err = x->failed;
    return x->failed.code;
}
