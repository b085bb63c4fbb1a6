/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens of a timeline and what the KV cache has of them: prompts are evaluated after what is kept. */
#include <string.h>

#include "src/engine/prompt.h"
#include "src/engine/timeline.h"
#include "src/forward/recurrent.h"

#define NAME     "token ids of the conversation"
#define MORE_IDS 16384u /* when their memory grows */

static void set_memory(QsfTimeline *t, void *mem, uint64_t bytes) {
    t->bytes = bytes;
    t->piece = mem; /* first, so that the ids can grow */
    t->ids = (int32_t *)(void *)((char *)mem + QSF_TIMELINE_PIECE);
    t->cap = (uint32_t)((bytes - QSF_TIMELINE_PIECE) / sizeof *t->ids);
}

int qsf_timeline_init(QsfTimeline *t, QsfRuntime *rt, QsfErr *err) {
    void *p;
    memset(t, 0, sizeof *t);
    t->rt = rt;
    t->quality = (QsfQualityWish){ .value = 1 };
    uint64_t bytes = qsf_plan_timeline_bytes(rt->plan.wanted_ctx);
    int rc = qsf_mem_map(&rt->ledger, QSF_MEM_TRANSCRIPT, bytes, NAME, &p, err);
    if (rc != QSF_OK) return rc;
    set_memory(t, p, bytes);
    return QSF_OK;
}

bool qsf_timeline_evicts(const QsfTimeline *t) { return qsf_forward_evicts(t->rt->fwd); }

/* Gives the ids the memory for n. The ledger must not be frozen. */
static int resize(QsfTimeline *t, size_t n, QsfErr *err) {
    void *mem = t->piece;
    const uint64_t bytes = qsf_plan_timeline_bytes((uint32_t)n);
    int rc = qsf_mem_resize(&t->rt->ledger, QSF_MEM_TRANSCRIPT, t->bytes, bytes, NAME, &mem, err);
    if (rc == QSF_OK) set_memory(t, mem, bytes);
    return rc;
}

int qsf_timeline_grow(QsfTimeline *t, size_t n, QsfErr *err) {
    return n <= t->cap ? QSF_OK : resize(t, n + MORE_IDS, err);
}

void qsf_timeline_free(QsfTimeline *t) {
    if (t->piece != NULL) qsf_mem_unmap(&t->rt->ledger, QSF_MEM_TRANSCRIPT, t->piece, t->bytes);
    memset(t, 0, sizeof *t);
}

int qsf_timeline_fit(QsfTimeline *t, QsfErr *err) {
    const uint32_t ctx = t->rt->plan.wanted_ctx;
    return resize(t, ctx > t->n_ids ? ctx : t->n_ids, err);
}

void qsf_timeline_cut(QsfTimeline *t, uint32_t n) {
    if (t->n_ids <= n) return;
    t->n_ids = qsf_forward_truncate(t->rt->fwd, n);
    qsf_speculate_cut(&t->rt->speculator, t->n_ids);
}

/* Updates n_ids after an evaluation; the forward pass knows how many of the tokens reached the cache. */
void qsf_timeline_store(QsfTimeline *t, const int32_t *ids, uint32_t at) {
    uint32_t past = qsf_forward_n_past(t->rt->fwd);
    if (past > at) memcpy(t->ids + at, ids, (past - at) * sizeof *ids);
    t->n_ids = past;
}

/* Positions that lack something are evaluated again. */
uint32_t qsf_timeline_reusable(const QsfTimeline *t, const int32_t *ids, size_t n) {
    const uint32_t exact = qsf_forward_exact(t->rt->fwd), most = exact < t->n_ids ? exact : t->n_ids;
    uint32_t keep = 0;
    while (keep < most && (size_t)keep + 1 < n && t->ids[keep] == ids[keep]) keep++;
    return qsf_forward_keeps(t->rt->fwd, keep);
}

/* Takes back what a prompt ids[0..n) does not find in the cache; `most` of its tokens may stay. Invocations
 * in the rest are found after that: with the positions, those that were there are taken back. */
static uint32_t keep_common(QsfTimeline *t, const int32_t *ids, size_t n, uint32_t most) {
    QsfForward *f = t->rt->fwd;
    t->n_ids = qsf_forward_truncate(f, most);
    qsf_forward_invoke(f, ids, n);
    qsf_speculate_cut(&t->rt->speculator, t->n_ids);
    qsf_forward_expect(f, (uint32_t)(n - t->n_ids));
    return t->n_ids;
}

void qsf_timeline_lead(QsfTimeline *t, uint32_t n) {
    t->lead = t->rt->plan.checkpoints >= QSF_LEAD_SLOTS ? n : 0;
    qsf_forward_lead(t->rt->fwd, t->lead);
}

/* ids[keep..n), in parts after which the state is kept. */
static int evaluate(const QsfTimeline *t, const int32_t *ids, size_t keep, size_t n, QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    const size_t lead = t->lead > keep && t->lead < n ? t->lead : keep;
    const size_t apart = t->last_apart && n - keep > 2 ? n - 1 : lead;
    const size_t ends[] = { lead, apart, n };
    size_t at = keep;
    int rc = QSF_OK;
    for (unsigned i = 0; rc == QSF_OK && i < 3; i++) {
        if (ends[i] == at) continue;
        rc = qsf_forward_eval(f, ids + at, ends[i] - at, NULL, NULL, err);
        if (rc == QSF_OK && (ends[i] == lead || t->last_apart)) qsf_forward_border(f);
        at = ends[i];
    }
    return rc;
}

int qsf_timeline_prefill(QsfTimeline *t, const int32_t *ids, size_t n, uint32_t *reused, QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    uint32_t ctx = qsf_forward_ctx(f);
    if (reused != NULL) *reused = 0;
    if (n == 0) return qsf_err_set(err, QSF_E_USAGE, "the prompt is empty");
    if (n > ctx && !qsf_timeline_evicts(t)) return qsf_prompt_too_long(t->rt, n, false, err);
    int rc = qsf_timeline_grow(t, n, err);
    if (rc != QSF_OK) return rc;
    qsf_forward_invoke(f, ids, n);
    const uint32_t keep = keep_common(t, ids, n, qsf_timeline_reusable(t, ids, n));
    if (reused != NULL) *reused = keep;
    qsf_ledger_freeze(&t->rt->ledger);
    rc = evaluate(t, ids, keep, n, err);
    qsf_ledger_thaw(&t->rt->ledger);
    qsf_timeline_store(t, ids + keep, keep);
    return rc;
}

int qsf_timeline_ahead(QsfTimeline *t, const int32_t *ids, size_t n, const QsfAhead *o, uint32_t *kept,
                       QsfErr *err) {
    QsfForward *f = t->rt->fwd;
    qsf_forward_invoke(f, ids, n);
    const uint32_t same = qsf_timeline_reusable(t, ids, n + 1);
    *kept = t->n_ids;
    o->progress(o->arg, same);
    if (n - same < o->least) return QSF_OK;
    *kept = keep_common(t, ids, n, same);
    int rc = QSF_OK;
    while (rc == QSF_OK && n - t->n_ids >= o->least) {
        const uint32_t at = t->n_ids, spare = qsf_forward_spare(f);
        /* No rest of less than `least`, unless only whole pieces are worth it. */
        const uint32_t with_rest = o->piece + (o->least < o->piece ? o->least - 1 : 0);
        const size_t left = n - at, lead = t->lead > at ? t->lead - at : 0;
        size_t m = left <= with_rest ? left : o->piece;
        if (lead > 0 && lead < m) m = lead;
        if (spare < m) break;
        rc = qsf_forward_eval(f, ids + at, m, NULL, NULL, err);
        if (rc == QSF_OK && m == lead) qsf_forward_border(f);
        qsf_timeline_store(t, ids + at, at);
        o->progress(o->arg, t->n_ids);
    }
    return rc;
}
