/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/recurrent.h"

#include <string.h>

#include "src/plan/layout.h"

#define NAME "recurrent state"

int qsf_recurrent_init(QsfRecurrent *r, const QsfProgram *p, QsfLedger *ledger, QsfErr *err) {
    void *mem;
    *r = (QsfRecurrent){ .p = p, .bytes = qsf_recurrent_bytes(p), .ledger = ledger };
    if (r->bytes == 0) return QSF_OK;
    int rc = qsf_mem_map(ledger, QSF_MEM_KV, r->bytes, NAME, &mem, err);
    if (rc == QSF_OK) r->mem = mem;
    return rc;
}

void qsf_recurrent_free(QsfRecurrent *r) {
    if (r->mem != NULL) qsf_mem_unmap(r->ledger, QSF_MEM_KV, r->mem, r->bytes);
    r->mem = NULL;
}

const float *qsf_recurrent_old(const QsfRecurrent *r, uint32_t state) {
    return r->mem + r->old * r->p->state_floats + r->p->state[state].at;
}

float *qsf_recurrent_new(const QsfRecurrent *r, uint32_t state) {
    return r->mem + (1 - r->old) * r->p->state_floats + r->p->state[state].at;
}

void qsf_recurrent_commit(QsfRecurrent *r) { r->old = 1 - r->old; }

void qsf_recurrent_reset(QsfRecurrent *r) {
    if (r->mem != NULL) memset(r->mem + r->old * r->p->state_floats, 0, r->p->state_floats * sizeof *r->mem);
}
