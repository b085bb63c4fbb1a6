/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows and states of a forward pass: implements snapshot.h. */
#include "src/forward/snapshot.h"
#include "src/forward/kv_room.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/forward/forward_impl.h"

/* ---- settings ---- */

/* Are the frequencies for long contexts in use? */
static bool rotates_long(const QsfForward *f, uint32_t ctx) {
    for (uint32_t i = 0; i < f->model->prog.n_ropes; i++) {
        const QsfRopeTable *r = &f->model->prog.rope[i];
        if (r->freq_long != NULL && ctx > r->original_ctx) return true;
    }
    return false;
}

void qsf_forward_values(const QsfForward *f, char out[QSF_FORWARD_VALUES]) {
    const uint32_t ctx = f->kv.n_past > 0 ? f->rope_ctx : f->wanted_ctx;
    memset(out, 0, QSF_FORWARD_VALUES);
    snprintf(out, QSF_FORWARD_VALUES, "k %s, v %s, %s, %s rotation, %s", qk_kv_name(f->kv.types.k),
             qk_kv_name(f->kv.types.v), f->exact ? "exact" : "not exact",
             rotates_long(f, ctx) ? "long" : "short", qk_level_name(f->table->level));
}

uint8_t *qsf_forward_scratch(QsfForward *f, size_t *bytes) {
    f->act_of.buf = QSF_NONE;
    *bytes = (size_t)f->l.total;
    return f->mem;
}

/* ---- rows ---- */

uint32_t qsf_forward_n_caches(const QsfForward *f) { return f->kv.n; }

static uint32_t row_after(uint32_t pos) { return (uint32_t)qk_kv_tiles(pos); }

void qsf_forward_first_rows(const QsfForward *f, uint32_t row, uint32_t *first) {
    for (uint32_t i = 0; i < f->kv.n; i++) {
        const uint32_t held = row_after(f->kv.lost[i]);
        first[i] = held > row ? held : row;
    }
}

uint64_t qsf_forward_tile_bytes(const QsfForward *f, uint32_t i) {
    const QsfKvSpec *s = &f->kv.spec[i];
    const uint64_t v = s->v_is_k ? 0 : qsf_kvcache_tile_bytes(&f->kv, i, 1);
    return s->heads * (qsf_kvcache_tile_bytes(&f->kv, i, 0) + v);
}

uint64_t qsf_forward_row_bytes(const QsfForward *f, uint32_t row, const uint32_t *first) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (first == NULL || first[i] <= row) sum += qsf_forward_tile_bytes(f, i);
    return sum;
}

bool qsf_forward_cache_row(const QsfForward *f, uint32_t i, uint32_t row, QsfTileFn fn, void *arg) {
    const QsfKvSpec *s = &f->kv.spec[i];
    for (unsigned which = 0; which < (s->v_is_k ? 1u : 2u); which++)
        for (uint32_t h = 0; h < s->heads; h++)
            if (!fn(arg, qsf_kvcache_tile(&f->kv, i, which, h, row),
                    qsf_kvcache_tile_bytes(&f->kv, i, which)))
                return false;
    return true;
}

bool qsf_forward_row(QsfForward *f, uint32_t row, const uint32_t *first, QsfTileFn fn, void *arg) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (first[i] <= row && !qsf_forward_cache_row(f, i, row, fn, arg)) return false;
    return true;
}

int qsf_forward_savable(const QsfForward *f, QsfErr *err) {
    if (!f->kv.converted) return qsf_forward_usable(f, err);
    return qsf_err_set(err, QSF_E_RUNTIME, "no snapshot: the KV cache was converted to another type");
}

bool qsf_forward_can_save(const QsfForward *f, uint32_t n) {
    uint32_t have[QSF_MAX_LAYERS];
    for (uint32_t i = 0; i < f->kv.n; i++) have[i] = row_after(f->kv.lost[i]) * QK_KV_TILE;
    return qsf_forward_is_enough(f, n, have);
}

/* ---- recurrent states ---- */

uint64_t qsf_forward_state_bytes(const QsfForward *f) { return f->recurrent.copy; }

uint32_t qsf_forward_state_before(const QsfForward *f, uint32_t after, uint32_t before) {
    const uint32_t pos = f->kv.n_past <= before ? f->kv.n_past : qsf_recurrent_before(&f->recurrent, before);
    return f->recurrent.mem != NULL && pos > after ? pos : 0;
}

const uint8_t *qsf_forward_state(const QsfForward *f, uint32_t pos) {
    return qsf_recurrent_at(&f->recurrent, pos, f->kv.n_past);
}

/* ---- restoring ---- */

int qsf_forward_restore(QsfForward *f, uint32_t n, QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK && n > f->kv.ctx && qsf_forward_is_bounded(f))
        rc = qsf_err_set(err, QSF_E_CONTEXT, "the context has %u tokens, %u needed", (unsigned)f->kv.ctx,
                         (unsigned)n);
    if (f->kv.n_past == 0) f->rope_ctx = f->wanted_ctx;
    if (rc != QSF_OK) return rc;
    qsf_kvcache_truncate(&f->kv, qsf_recurrent_restore(&f->recurrent, 0));
    qsf_reduction_truncate(f, 0);
    return n > 0 ? qsf_reserve_positions(f, n, err) : QSF_OK;
}

uint8_t *qsf_forward_state_place(QsfForward *f) { return qsf_recurrent_at(&f->recurrent, 0, 0); }

void qsf_forward_state_restored(QsfForward *f, uint32_t pos) { qsf_recurrent_save(&f->recurrent, pos); }

bool qsf_forward_is_enough(const QsfForward *f, uint32_t n, const uint32_t *have) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (have[i] > 0 && n < (uint64_t)have[i] + f->kv.spec[i].window) return false;
    return true;
}

void qsf_forward_restored(QsfForward *f, uint32_t n, const uint32_t *have) {
    const uint32_t end = row_after(n) * QK_KV_TILE;
    f->kv.n_past = n;
    qsf_reduction_restored(f, n);
    for (uint32_t i = 0; i < f->kv.n; i++) {
        const uint32_t ring = qsf_kvcache_ring(&f->kv, i);
        const uint32_t kept = ring > 0 && end > ring ? end - ring : 0;
        f->kv.lost[i] = have[i] > kept ? have[i] : kept;
    }
}
