/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recurrent states and their checkpoints. */
#include "src/forward/recurrent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME   "states"
#define COPIES 2u

static uint8_t *copy_at(const QsfRecurrent *r, uint32_t i) { return r->mem + i * r->copy; }

static uint8_t *slot(const QsfRecurrent *r, uint32_t i) { return copy_at(r, COPIES + i); }

static uint64_t bytes_of(const QsfRecurrent *r, uint32_t n_slots) {
    return qsf_pages((COPIES + (uint64_t)n_slots) * r->copy);
}

int qsf_recurrent_init(QsfRecurrent *r, const QsfProgram *p, QsfKvTypes types, uint32_t n_slots,
                       QsfLedger *ledger, QsfErr *err) {
    void *mem;
    *r = (QsfRecurrent){ .p = p, .n_slots = n_slots, .copy = qsf_state_bytes(p, types), .ledger = ledger };
    r->grain = p->state_floats == 0 ? QK_KV_TILE : 1;
    r->bytes = bytes_of(r, n_slots);
    if (r->bytes == 0) return QSF_OK;
    int rc = qsf_mem_map(ledger, QSF_MEM_KV, r->bytes, NAME, &mem, err);
    if (rc == QSF_OK) r->mem = mem;
    return rc;
}

void qsf_recurrent_free(QsfRecurrent *r) {
    if (r->mem != NULL) qsf_mem_unmap(r->ledger, QSF_MEM_KV, r->mem, r->bytes);
    r->mem = NULL;
}

/* ---- passes ---- */

static float *state_at(const QsfRecurrent *r, uint32_t copy, uint32_t state) {
    return (float *)(void *)copy_at(r, copy) + r->p->state[state].at;
}

const float *qsf_recurrent_old(const QsfRecurrent *r, uint32_t state) { return state_at(r, r->old, state); }

float *qsf_recurrent_new(const QsfRecurrent *r, uint32_t state) { return state_at(r, 1 - r->old, state); }

static size_t state_bytes(const QsfRecurrent *r) { return (size_t)r->p->state_floats * sizeof(float); }

static uint8_t *recent_at(const QsfRecurrent *r, uint32_t copy) {
    return r->mem == NULL ? NULL : copy_at(r, copy) + state_bytes(r);
}

uint8_t *qsf_recurrent_old_recent(const QsfRecurrent *r) { return recent_at(r, r->old); }

uint8_t *qsf_recurrent_new_recent(const QsfRecurrent *r) { return recent_at(r, 1 - r->old); }

void qsf_recurrent_commit(QsfRecurrent *r) { r->old = 1 - r->old; }

/* ---- checkpoints ---- */

static void drop(QsfRecurrent *r, uint32_t i) {
    for (uint32_t k = i; k + 1 < r->n; k++) {
        memcpy(slot(r, k), slot(r, k + 1), r->copy);
        r->pos[k] = r->pos[k + 1];
    }
    r->n--;
}

static bool is_lead(const QsfRecurrent *r, uint32_t i) {
    return r->lead > 0 && r->pos[i] == r->lead && r->n_slots >= QSF_LEAD_SLOTS;
}

/* Returns the checkpoint whose neighbours are closest to each other, compared with their
 * distance from the end. */
static uint32_t least_useful(const QsfRecurrent *r, uint32_t end) {
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t before = i == 0 ? 0 : r->pos[i - 1], after = i + 1 < r->n ? r->pos[i + 1] : end;
        const double loss = (double)(after - before) / ((double)(end - before) + 1);
        if (loss >= least || is_lead(r, i)) continue;
        best = i;
        least = loss;
    }
    return best;
}

void qsf_recurrent_save(QsfRecurrent *r, uint32_t pos) {
    if (r->mem == NULL || r->n_slots == 0 || pos == 0) return;
    if (r->n > 0 && r->pos[r->n - 1] >= pos) return;
    if (r->n == r->n_slots) drop(r, least_useful(r, pos));
    memcpy(slot(r, r->n), copy_at(r, r->old), r->copy);
    r->pos[r->n++] = pos;
}

void qsf_recurrent_drop_newest(QsfRecurrent *r, uint32_t pos) {
    if (r->n > 0 && r->pos[r->n - 1] == pos) r->n--;
}

uint32_t qsf_recurrent_before(const QsfRecurrent *r, uint32_t pos) {
    uint32_t best = 0;
    if (r->mem == NULL) return pos;
    for (uint32_t i = 0; i < r->n && r->pos[i] <= pos; i++) best = r->pos[i];
    return best;
}

uint32_t qsf_recurrent_reaches(const QsfRecurrent *r, uint32_t pos) {
    uint32_t best = 0;
    if (r->mem == NULL) return pos;
    for (uint32_t i = 0; i < r->n && r->pos[i] / r->grain <= pos / r->grain; i++)
        best = r->pos[i] < pos ? r->pos[i] : pos;
    return best;
}

uint32_t qsf_recurrent_restore(QsfRecurrent *r, uint32_t pos) {
    if (r->mem == NULL) return pos;
    while (r->n > 0 && r->pos[r->n - 1] / r->grain > pos / r->grain) r->n--;
    while (r->n > 1 && r->pos[r->n - 2] >= pos) r->n--; /* the first one of the tile is enough */
    uint8_t *state = copy_at(r, r->old);
    if (r->n == 0) {
        memset(state, 0, r->copy);
        return 0;
    }
    memcpy(state, slot(r, r->n - 1), r->copy);
    if (r->pos[r->n - 1] > pos) r->pos[r->n - 1] = pos;
    return r->pos[r->n - 1];
}

bool qsf_recurrent_covers(const QsfRecurrent *r, uint32_t pos, uint32_t n_past) {
    return r->mem != NULL && r->grain > 1 && pos / r->grain == n_past / r->grain;
}

void qsf_recurrent_forget(QsfRecurrent *r, uint32_t pos) {
    while (r->n > 0 && r->pos[r->n - 1] > pos) r->n--;
}

uint8_t *qsf_recurrent_at(const QsfRecurrent *r, uint32_t pos, uint32_t n_past) {
    if (r->mem == NULL) return NULL;
    if (pos == n_past) return copy_at(r, r->old);
    for (uint32_t i = 0; i < r->n; i++)
        if (r->pos[i] == pos) return slot(r, i);
    return NULL;
}

int qsf_recurrent_resize(QsfRecurrent *r, uint32_t n_slots, QsfErr *err) {
    const uint64_t bytes = bytes_of(r, n_slots);
    void *mem = r->mem;
    while (r->n > n_slots) drop(r, least_useful(r, r->pos[r->n - 1]));
    int rc = qsf_mem_resize(r->ledger, QSF_MEM_KV, r->bytes, bytes, NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    r->mem = mem;
    r->bytes = bytes;
    r->n_slots = n_slots;
    return QSF_OK;
}

int qsf_recurrent_set_types(QsfRecurrent *r, QsfKvTypes types, uint32_t n_slots, QsfErr *err) {
    const size_t bytes = state_bytes(r);
    void *kept = bytes > 0 ? malloc(bytes) : NULL;
    if (bytes > 0 && kept == NULL) return qsf_err_memory(err, "%s", NAME);
    if (bytes > 0) memcpy(kept, copy_at(r, r->old), bytes);
    qsf_recurrent_free(r);
    int rc = qsf_recurrent_init(r, r->p, types, n_slots, r->ledger, err);
    if (rc == QSF_OK && bytes > 0) memcpy(copy_at(r, r->old), kept, bytes);
    free(kept);
    return rc;
}
