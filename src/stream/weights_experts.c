/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts, wherever they are: pinned, in slots, or streamed through buffers. */
#include "src/stream/weights_impl.h"

static bool has_arrived(const QsfWeights *w, uint32_t unit) {
    return qsf_weights_have(&w->units[unit]) == w->units[unit].u.items;
}

void qsf_weights_positions(QsfWeights *w, uint32_t n) {
    w->positions = n;
    if (w->pool == NULL) return;
    qsf_expert_pool_begin_pass(w->pool, n);
    if (n == 1) qsf_expert_pool_note_position(w->pool, w->counters);
}

void qsf_weights_use_expert(QsfWeights *w, uint32_t unit, uint32_t later) {
    qsf_expert_pool_use(w->pool, unit, later);
}

void qsf_weights_learn_position(QsfWeights *w) {
    if (w->pool != NULL) qsf_expert_pool_learn_position(w->pool);
}

void qsf_weights_learn_use(QsfWeights *w, uint32_t unit) { qsf_expert_pool_learn_use(w->pool, unit); }

static void count_expert(const QsfWeights *w, uint32_t unit) {
    QsfStreamCounters *n = w->counters;
    const uint64_t missed = !qsf_weights_pinned(w, unit) && !qsf_weights_has_expert(w, unit);
    qsf_expert_pool_note(w->pool, unit, w->positions == 1, n);
    if (w->positions != 1) return;
    atomic_fetch_add_explicit(&n->expert_uses, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->expert_misses, missed, memory_order_relaxed);
    if (n->layer == NULL) return;
    QsfLayerCounters *layer = &n->layer[w->units[unit].u.layer];
    atomic_fetch_add_explicit(&layer->expert_uses, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&layer->expert_misses, missed, memory_order_relaxed);
}

void qsf_weights_request(QsfWeights *w, uint32_t unit) {
    count_expert(w, unit);
    if (w->demand == NULL && !qsf_weights_pinned(w, unit)) {
        qsf_expert_pool_request(w->pool, unit);
        return;
    }
    for (uint32_t i = unit; i < unit + 2; i++) {
        if (!qsf_weights_pinned(w, i))
            qsf_demand_request(w->demand, i);
        else if (!has_arrived(w, i))
            qsf_loader_want(w->loader, i);
    }
}

void qsf_weights_read_ahead(QsfWeights *w, bool first_units) {
    if (w->demand != NULL) qsf_demand_read_ahead(w->demand);
    if (w->expert_slots > 0) qsf_expert_pool_read_ahead(w->pool, first_units);
}

bool qsf_weights_guesses(const QsfWeights *w) {
    return w->positions == 1 && w->expert_slots > 0 && qsf_expert_pool_guesses(w->pool);
}

void qsf_weights_guess(QsfWeights *w, const uint32_t *unit, uint32_t n) {
    qsf_expert_pool_guess(w->pool, unit, n);
}

void qsf_weights_guess_last(QsfWeights *w, uint32_t unit, uint32_t n) {
    qsf_expert_pool_guess_last(w->pool, unit, n);
}

void qsf_weights_poll(QsfWeights *w) {
    if (w->expert_slots > 0) qsf_expert_pool_poll(w->pool);
}

bool qsf_weights_any_order(const QsfWeights *w, uint32_t n) {
    return w->demand == NULL && (w->expert_slots == 0 || n <= qsf_expert_pool_slots(w->pool));
}

bool qsf_weights_has_expert(const QsfWeights *w, uint32_t unit) {
    if (qsf_weights_pinned(w, unit)) return has_arrived(w, unit) && has_arrived(w, unit + 1);
    return w->expert_slots > 0 && qsf_expert_pool_has(w->pool, unit);
}

int qsf_weights_fill_experts(QsfWeights *w, uint64_t max_bytes, bool *more, QsfErr *err) {
    *more = false;
    if (w->loader == NULL || w->expert_slots == 0) return QSF_OK;
    int rc = qsf_weights_check_files(w, err);
    if (rc == QSF_OK) rc = qsf_expert_pool_fill(w->pool, max_bytes, more, err);
    return rc == QSF_OK ? rc : qsf_weights_read_failed(w, rc);
}

uint32_t qsf_weights_take_uses(QsfWeights *w, uint32_t *uses, uint32_t n) {
    return w->pool != NULL ? qsf_expert_pool_take_uses(w->pool, uses, n) : 0;
}

void qsf_weights_learned(QsfWeights *w, const uint16_t *uses, uint32_t n, double positions,
                         const uint32_t *depth) {
    if (w->pool == NULL) return;
    qsf_expert_pool_learned(w->pool, uses, n, positions);
    for (uint32_t i = 0; depth != NULL && i < QSF_EXPERT_DEPTHS; i++)
        atomic_store_explicit(&w->counters->expert_depth[i], depth[i] / qsf_expert_pool_every(w->pool),
                              memory_order_relaxed);
}

int qsf_weights_wait_expert(QsfWeights *w, uint32_t unit, QsfErr *err) {
    QsfChunk c;
    const uint8_t *data;
    if (w->demand != NULL || qsf_weights_pinned(w, unit)) return QSF_OK;
    int rc = qsf_expert_pool_acquire(w->pool, unit, &c, &data, err);
    if (rc == QSF_OK) rc = qsf_expert_pool_acquire(w->pool, unit + 1, &c, &data, err);
    return rc == QSF_OK ? rc : qsf_weights_read_failed(w, rc);
}

size_t qsf_weights_to_pack(QsfWeights *w, uint32_t unit, uint32_t n_cols) {
    if (w->demand != NULL || qsf_weights_pinned(w, unit)) return 0;
    return qsf_expert_pool_to_pack(w->pool, unit, n_cols);
}

void qsf_weights_pack(const QsfWeights *w, uint32_t unit, size_t from, size_t to, int worker) {
    qsf_expert_pool_pack(w->pool, unit, from, to, w->pack + (uint64_t)worker * w->pins.group_bytes);
}

void qsf_weights_packed(QsfWeights *w, uint32_t unit) { qsf_expert_pool_packed(w->pool, unit); }
