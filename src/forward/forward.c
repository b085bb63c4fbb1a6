/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From ids to logits: the prompt is evaluated in chunks, one pass over all layers each. */
#include <string.h>

#include "src/base/clock.h"
#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/ops/ops.h"

/* --- runs the last steps, which end in logits, for the columns whose logits are needed --- */

/* Maximum number of columns whose logits can be computed in one pass over the head. */
static uint32_t head_cols(const QsfForward *f) {
    uint64_t n = f->l.spare_floats / qsf_pad16(f->model->hp.n_vocab);
    if (qsf_sketch_runs(&f->sketch)) return 1; /* the sketch is for one column */
    return n < 1 ? 1 : n < f->l.n_cols ? (uint32_t)n : f->l.n_cols;
}

/* Are all values finite? An exponent of all ones is an infinity or NaN. */
static bool finite(const float *x, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7F800000u) == 0x7F800000u;
    }
    return bad == 0;
}

static int invalid(const QsfForward *f, QsfErr *err) {
    char why[sizeof err->msg];
    qsf_adapters_suspect(f->adapters.set, why, sizeof why);
    if (err != NULL && err->code == QSF_OK) err->numbers = true;
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: the model produced invalid numbers%s",
                       qsf_source_path(f->model->src), why);
}

/* Computes the logits of columns [col0, col0 + n_cols) to y. */
static int columns(QsfForward *f, uint32_t col0, uint32_t n_cols, float *y, QsfErr *err) {
    const uint32_t n_vocab = f->model->hp.n_vocab, stride = qsf_pad16(n_vocab);
    f->col0 = col0;
    f->n_cols = n_cols;
    f->y = y;
    int rc = qsf_steps_run(f, qsf_split_step(f), f->model->prog.n_steps, err);
    for (uint32_t c = 0; rc == QSF_OK && c < n_cols; c++) {
        if (!finite(y + (size_t)c * stride, n_vocab)) rc = invalid(f, err);
    }
    return rc;
}

/* Passes on the logits of columns [c0, c0 + n). false: no more are wanted. */
static bool pass_on(QsfForward *f, uint32_t c0, uint32_t n, const float *y, QsfLogitsTo *to) {
    const size_t n_vocab = f->model->hp.n_vocab, stride = qsf_pad16(f->model->hp.n_vocab);
    bool more = true;
    uint32_t c = 0;
    for (; more && c < n; c++) {
        to->n++;
        if (to->verify != NULL)
            more = to->verify(to->arg, f->past + c0 + c, y + c * stride);
        else
            to->all(to->arg, f->past + c0 + c, y + c * stride);
    }
    if (y != f->logits) memcpy(f->logits, y + (c - 1) * stride, n_vocab * sizeof *y);
    return more;
}

static int all_columns(QsfForward *f, uint32_t n_cols, QsfLogitsTo *to, QsfErr *err) {
    const uint32_t most = head_cols(f);
    bool more = true;
    for (uint32_t c0 = 0; more && c0 < n_cols; c0 += most) {
        uint32_t n = n_cols - c0 < most ? n_cols - c0 : most;
        float *y = n == 1 ? f->logits : f->spare;
        int rc = columns(f, c0, n, y, err);
        if (rc != QSF_OK) return rc;
        more = pass_on(f, c0, n, y, to);
    }
    return QSF_OK;
}

int qsf_head(QsfForward *f, uint32_t n_cols, QsfLogitsTo *to, QsfErr *err) {
    return to != NULL ? all_columns(f, n_cols, to, err) : columns(f, n_cols - 1, 1, f->logits, err);
}

/* Bytes of a resident embedding table to fill after each evaluation, once the weights are pinned. */
#define FILL_BYTES (1u << 20)

/* A checkpoint of recurrent states at least once in this many positions, as long as there are slots. Of
 * recent positions there are few, for the borders of messages. */
#define CHECKPOINT_STEP 256u

/* Only what everything was evaluated for: a conversation that goes back would continue what was left out. */
static void save_state(QsfForward *f) {
    if (f->reduction.exact == f->kv.n_past) qsf_recurrent_save(&f->recurrent, f->kv.n_past);
}

static int check(const QsfForward *f, const int32_t *ids, size_t n, QsfErr *err) {
    const uint32_t past = f->kv.n_past, n_vocab = f->model->hp.n_vocab, max = f->model->prog.max_ctx;
    if (f->evict.kind != QSF_EVICT_NONE && n > (max > 0 ? max : QSF_EVICT_POSITIONS) - past) {
        return qsf_err_set(err, QSF_E_CONTEXT,
                           "context full: the model has %u positions, %u are used, %zu more needed",
                           (unsigned)(max > 0 ? max : QSF_EVICT_POSITIONS), (unsigned)past, n);
    }
    if (f->evict.kind == QSF_EVICT_NONE && n > qsf_evicting_room(f)) {
        return qsf_err_set(err, QSF_E_CONTEXT, "context full: %u of %u tokens used, %zu more needed",
                           (unsigned)past, (unsigned)f->kv.ctx, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 0 && (uint32_t)ids[i] < n_vocab) continue;
        return qsf_err_set(err, QSF_E_MODEL, "%s: token id %ld is outside the model's vocabulary of %u",
                           qsf_source_path(f->model->src), (long)ids[i], (unsigned)n_vocab);
    }
    return QSF_OK;
}

/* The columns of a pass, and what is held for them. */
static int begin_pass(QsfForward *f, const int32_t *ids, uint32_t n, bool head, QsfErr *err) {
    int rc = qsf_weights_begin_pass(f->weights, head && qsf_sketch_walks_head(f), err);
    if (rc != QSF_OK) return rc;
    qsf_weights_positions(f->weights, n);
    if (f->keeps) qsf_weights_learn_position(f->weights);
    f->past = f->kv.n_past;
    if (f->routes != NULL) qsf_routes_begin_pass(f->routes, f->past, n);
    f->pass_cols = n;
    f->ids = ids;
    f->col0 = 0;
    f->n_cols = n;
    qsf_kvcache_will_store(&f->kv, n);
    qsf_kvrecent_begin(&f->kv, f->past, n, f->mem + f->l.recent, qsf_recurrent_old_recent(&f->recurrent),
                       qsf_recurrent_new_recent(&f->recurrent));
    qsf_reduction_begin_pass(f, n);
    if (f->keeps) f->reduction.measures = false; /* as in passes over one token */
    if (f->past == 0) f->rope_ctx = f->wanted_ctx;
    qsf_rope_angles(f, n);
    return QSF_OK;
}

/* The first n positions of a complete pass are in the cache. */
static void commit_pass(QsfForward *f, uint32_t n) {
    qsf_steps_end_pass(f, n);
    f->kv.n_past += n;
    qsf_reduction_end_pass(f);
    qsf_recurrent_commit(&f->recurrent);
    if (f->kv.n_past / CHECKPOINT_STEP != f->past / CHECKPOINT_STEP && f->model->prog.state_floats > 0)
        save_state(f);
}

/* One pass of n <= l.n_cols columns through the model. A failed pass only leaves rows after n_past, which
 * the next pass overwrites, and so does what a pass with drafts takes back. */
static int run_pass(QsfForward *f, const int32_t *ids, uint32_t n, bool head, QsfLogitsTo *to, QsfErr *err) {
    qsf_replay_begin(f, to != NULL && to->verify != NULL && n > 1);
    int rc = begin_pass(f, ids, n, head, err);
    if (rc != QSF_OK) return rc;
    qsf_threads_begin_pass(f, n);
    const QsfStepClock clock = qsf_step_begin(f);
    rc = qsf_embed_rows(f, ids, n, err);
    qsf_step_end(f, &clock, f->profile != NULL ? &f->profile->embed : NULL);
    if (rc == QSF_OK && f->given != NULL) qsf_states_take(f, n);
    if (rc == QSF_OK) rc = qsf_steps_run(f, 0, f->fills ? qsf_fill_end(f) : qsf_split_step(f), err);
    if (rc == QSF_OK && f->reduction.exiting)
        qsf_exit_keep(f, ids[0]);
    else if (rc == QSF_OK)
        qsf_states_show(f, n);
    if (rc == QSF_OK && head) rc = qsf_head(f, n, to, err);
    qsf_steps_end_block(f);
    qsf_threads_end_pass(f, rc == QSF_OK);
    qsf_weights_end_pass(f->weights, rc == QSF_OK);
    if (f->routes != NULL) qsf_routes_write(f->routes);
    qsf_count(&f->n.passes, 1);
    if (f->past + n > f->observe_from) qsf_kvlists_weighed_pass(&f->kv.lists, f->past, n, rc == QSF_OK);
    const uint32_t stay = f->keeps ? to->n : rc == QSF_OK ? n : 0;
    if (stay > 0 && stay < n) {
        const int again = qsf_replay(f, stay, err);
        if (again != QSF_OK) return again;
    }
    if (stay > 0) commit_pass(f, stay);
    if (stay < n) qsf_kvcache_truncate(&f->kv, f->kv.n_past);
    if (f->keeps && stay < n) qsf_states_gone(f, f->kv.n_past);
    return rc;
}

/* Returns the columns per pass: fewer when the logits of every position are wanted, because the head, which
 * streams once per pass, must serve them all. */
static uint32_t chunk_cols(const QsfForward *f, bool all) {
    bool head_streams = !qsf_weights_pinned(f->weights, qsf_weights_n_units(f->weights) - 1);
    uint32_t most = all && head_streams ? head_cols(f) : f->l.n_cols;
    for (uint32_t i = 0; i < f->kv.n && most > QSF_KV_SLACK; i++)
        if (qsf_kvcache_ring(&f->kv, i) > 0) most = QSF_KV_SLACK;
    return most;
}

/* A prompt, in passes of as many columns as the plan has memory for. */
static int run_chunks(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err) {
    QsfLogitsTo to = { .all = all, .arg = arg };
    uint32_t most = chunk_cols(f, all != NULL);
    for (size_t done = 0; done < n;) {
        const uint32_t room = qsf_evicting_make_room(f, n - done, n > 1);
        uint32_t cols = n - done < most ? (uint32_t)(n - done) : most;
        if (cols > room) cols = room;
        const bool head = !f->fills && (all != NULL || done + cols == n);
        int rc = run_pass(f, ids + done, cols, head, all != NULL ? &to : NULL, err);
        if (rc != QSF_OK) return rc;
        done += cols;
        atomic_store_explicit(&f->n.chunk_done, (uint32_t)done, memory_order_relaxed);
    }
    return QSF_OK;
}

/* One token after the other: whether it ends at the exit depends on its logits there. */
static int run_exiting(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < n; i++) {
        rc = run_pass(f, ids + i, 1, true, NULL, err);
        if (rc == QSF_OK) rc = qsf_exit_decide(f, err);
        if (rc == QSF_OK && all != NULL) all(arg, f->kv.n_past - 1, f->logits);
    }
    return rc;
}

/* Fills part of the embedding table. Read errors are reported when the row is needed. */
static void fill_embedding(QsfForward *f) {
    QsfErr later = { 0 };
    if (qsf_counted(&f->n.io.pin_done) == qsf_counted(&f->n.io.pin_total))
        qsf_embed_fill(f, FILL_BYTES, &later);
}

/* What a conversation that goes back to here continues from. */
static void keep_border(QsfForward *f) {
    if (f->marks) return;
    save_state(f);
    qsf_kvlists_save_weights(&f->kv.lists, f->kv.n_past);
}

void qsf_forward_border(QsfForward *f) { keep_border(f); }

void qsf_forward_lead(QsfForward *f, uint32_t n) { f->recurrent.lead = n; }

void qsf_forward_mark(QsfForward *f, uint32_t last) {
    f->marks = true;
    qsf_recurrent_drop_newest(&f->recurrent, last);
    save_state(f);
}

/* One evaluation: where it began. */
typedef struct Eval {
    uint32_t past;
    uint64_t start_ns;
    bool prompt; /* more than one token */
} Eval;

/* Checks n ids, and makes room for all of them at once. reduced: as qsf_forward_decode. */
static int begin_eval(QsfForward *f, Eval *e, bool reduced, const int32_t *ids, size_t n, QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK) rc = check(f, ids, n, err);
    if (rc != QSF_OK || n == 0) return rc;
    rc = qsf_reserve_positions(f, f->kv.n_past + (uint32_t)n, err);
    if (rc == QSF_OK) rc = qsf_exit_settle(f, reduced, err);
    if (rc != QSF_OK) return rc;
    *e = (Eval){ .past = f->kv.n_past, .start_ns = qsf_now_ns(), .prompt = n > 1 };
    qsf_reduction_begin(f, reduced);
    atomic_store_explicit(&f->n.chunk_done, 0, memory_order_relaxed);
    atomic_store_explicit(&f->n.chunk_total, (uint32_t)n, memory_order_relaxed);
    return QSF_OK;
}

/* Also after a failure, rc. */
static void end_eval(QsfForward *f, const Eval *e, int rc) {
    if (rc == QSF_OK && e->prompt) qsf_evicting_prompt_done(f);
    if (e->prompt) keep_border(f);
    qsf_count(e->prompt ? &f->n.prefill_tokens : &f->n.decode_tokens, f->kv.n_past - e->past);
    qsf_count(e->prompt ? &f->n.prefill_ns : &f->n.decode_ns, qsf_now_ns() - e->start_ns);
    if (rc == QSF_OK) fill_embedding(f);
}

int qsf_forward_eval(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err) {
    QsfErr own = { 0 };
    Eval e;
    if (err == NULL) err = &own;
    int rc = begin_eval(f, &e, false, ids, n, err);
    if (rc != QSF_OK || n == 0) return rc;
    if (e.prompt) keep_border(f);
    rc = run_chunks(f, ids, n, all, arg, err);
    end_eval(f, &e, rc);
    return rc;
}

int qsf_forward_decode(QsfForward *f, const int32_t *ids, size_t n, QsfLogitsFn all, void *arg, QsfErr *err) {
    QsfErr own = { 0 };
    Eval e;
    if (err == NULL) err = &own;
    int rc = begin_eval(f, &e, true, ids, n, err);
    if (rc != QSF_OK || n == 0) return rc;
    if (e.prompt) keep_border(f);
    rc = f->reduction.exiting ? run_exiting(f, ids, n, all, arg, err) : run_chunks(f, ids, n, all, arg, err);
    end_eval(f, &e, rc);
    return rc;
}

/* Recent positions are those of a tile and before it, so only positions of one tile can be taken back. */
static uint32_t same_tile(const QsfForward *f) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (f->kv.recent.on[i]) return QK_KV_TILE - 1 - f->kv.n_past % QK_KV_TILE;
    return UINT32_MAX;
}

static const char *why_not(const QsfForward *f) {
    if (f->l.draft_cols < 2) return "the plan has no memory for it";
    if (qsf_evict_observes(f->evict.kind)) return "the eviction policy weighs every position";
    return f->routes != NULL ? "choices of experts are recorded" : NULL;
}

uint32_t qsf_forward_verifiable(const QsfForward *f, const char **why) {
    const char *reason = why_not(f);
    if (why != NULL) *why = reason;
    if (reason != NULL || f->broken) return 0;
    const bool head_streams = !qsf_weights_pinned(f->weights, qsf_weights_n_units(f->weights) - 1);
    const uint32_t limits[] = { f->l.n_cols, head_streams ? head_cols(f) : UINT32_MAX, qsf_evicting_spare(f),
                                same_tile(f) };
    uint32_t n = f->l.draft_cols;
    for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i] < n) n = limits[i];
    return n;
}

int qsf_forward_verify(QsfForward *f, const int32_t *ids, uint32_t n, QsfVerifyFn fn, void *arg,
                       QsfErr *err) {
    QsfErr own = { 0 };
    QsfLogitsTo to = { .verify = fn, .arg = arg };
    Eval e;
    if (err == NULL) err = &own;
    int rc = begin_eval(f, &e, false, ids, n, err);
    if (rc != QSF_OK || n == 0) return rc;
    e.prompt = false;
    rc = run_pass(f, ids, n, true, &to, err);
    end_eval(f, &e, rc);
    return rc;
}

float *qsf_forward_logits(QsfForward *f) { return f->logits; }

void qsf_forward_tap(QsfForward *f, QsfTapFn fn, void *arg) {
    f->tap = fn;
    f->tap_arg = arg;
}

void qsf_forward_profile(QsfForward *f, QsfProfile *p) { f->profile = p; }

float *qsf_forward_tapped(const QsfForward *f, QsfSlice s, uint32_t *stride) {
    *stride = qsf_col_stride(f, s);
    return qsf_col(f, s, f->col0);
}

uint32_t qsf_forward_n_past(const QsfForward *f) { return f->kv.n_past; }

uint32_t qsf_forward_ctx(const QsfForward *f) { return f->kv.ctx; }

/* Were the keys in the cache rotated as this plan rotates them? Long contexts of some models
 * have other frequencies. */
static bool same_rotation(const QsfForward *f) {
    const QsfProgram *p = &f->model->prog;
    for (uint32_t t = 0; t < p->n_ropes; t++) {
        const QsfRopeTable *r = &p->rope[t];
        if (r->freq_long != NULL && (f->rope_ctx > r->original_ctx) != (f->wanted_ctx > r->original_ctx))
            return false;
    }
    return true;
}

bool qsf_forward_cuts(const QsfForward *f) {
    return f->recurrent.mem == NULL && f->evict.kind == QSF_EVICT_NONE && !f->kv.lists.on && !f->kv.converted;
}

uint32_t qsf_forward_spare(const QsfForward *f) {
    uint32_t spare = qsf_evicting_room(f);
    for (uint32_t i = 0; i < f->kv.n; i++) {
        const uint32_t ring = qsf_kvcache_ring(&f->kv, i),
                       left = ring > f->kv.n_past ? ring - f->kv.n_past : 0;
        if (ring > 0 && left < spare) spare = left;
    }
    return spare;
}

void qsf_forward_expect(QsfForward *f, uint32_t n) { qsf_reserve_trim(f, n); }

/* Nothing has to be taken back. */
static bool is_whole(const QsfForward *f, uint32_t n) {
    return n >= f->kv.n_past && !qsf_kvlists_ahead(&f->kv.lists, f->kv.n_past);
}

/* A length at which states and caches are both held. */
uint32_t qsf_forward_keeps(const QsfForward *f, uint32_t n) {
    if (!same_rotation(f)) return 0;
    if (n > f->stale_from) n = f->stale_from;
    if (n > f->kv.n_past) n = f->kv.n_past;
    if (is_whole(f, n)) return n;
    for (uint32_t want = n + 1; want != n;) {
        want = n;
        const bool covered = n == f->kv.n_past || qsf_recurrent_covers(&f->recurrent, n, f->kv.n_past);
        n = qsf_kvcache_keeps(&f->kv, covered ? n : qsf_recurrent_reaches(&f->recurrent, n));
    }
    return n;
}

uint32_t qsf_forward_truncate(QsfForward *f, uint32_t n) {
    if (n > f->stale_from) n = f->stale_from;
    if (!is_whole(f, n)) {
        n = qsf_forward_keeps(f, n);
        if (n == f->kv.n_past || qsf_recurrent_covers(&f->recurrent, n, f->kv.n_past))
            qsf_recurrent_forget(&f->recurrent, n);
        else
            n = qsf_recurrent_restore(&f->recurrent, n);
        qsf_kvcache_truncate(&f->kv, n);
    }
    qsf_reduction_truncate(f, f->kv.n_past);
    qsf_states_gone(f, f->kv.n_past);
    qsf_evicting_note(f);
    if (f->kv.n_past <= f->stale_from) f->stale_from = UINT32_MAX;
    qsf_adapters_truncated(f);
    return f->kv.n_past;
}
