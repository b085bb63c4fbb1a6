/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slot states and their transitions. */
#include "src/stream/slots.h"

#include <string.h>

void qsf_slots_init(QsfSlots *s, uint32_t n, uint8_t *memory, uint64_t slot_bytes) {
    memset(s, 0, sizeof *s);
    s->n = n;
    for (uint32_t i = 0; i < n; i++) s->slot[i].data = memory + i * slot_bytes;
}

bool qsf_slots_can_load(const QsfSlots *s) {
    return s->n > 0 && !s->broken && s->slot[s->load].state == QSF_SLOT_EMPTY;
}

QsfSlot *qsf_slots_begin_load(QsfSlots *s, const QsfChunk *c) {
    if (!qsf_slots_can_load(s)) return NULL;
    QsfSlot *t = &s->slot[s->load];
    t->state = QSF_SLOT_LOADING;
    t->chunk = *c;
    s->load = (s->load + 1) % s->n;
    return t;
}

bool qsf_slots_end_load(QsfSlots *s, bool ok) {
    QsfSlot *t = &s->slot[s->done];
    if (t->state != QSF_SLOT_LOADING) return false;
    /* After a gap nothing can be used in order. */
    s->broken = s->broken || !ok;
    t->state = s->broken ? QSF_SLOT_EMPTY : QSF_SLOT_READY;
    s->done = (s->done + 1) % s->n;
    return true;
}

QsfSlot *qsf_slots_acquire(QsfSlots *s) {
    QsfSlot *t = &s->slot[s->use];
    if (t->state != QSF_SLOT_READY) return NULL;
    t->state = QSF_SLOT_IN_USE;
    return t;
}

bool qsf_slots_release(QsfSlots *s) {
    QsfSlot *t = &s->slot[s->use];
    if (t->state != QSF_SLOT_IN_USE) return false;
    t->state = QSF_SLOT_EMPTY;
    s->use = (s->use + 1) % s->n;
    return true;
}

bool qsf_slots_reset(QsfSlots *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->slot[i].state == QSF_SLOT_LOADING) return false;
    }
    for (uint32_t i = 0; i < s->n; i++) s->slot[i].state = QSF_SLOT_EMPTY;
    s->load = s->done = s->use = 0;
    s->broken = false;
    return true;
}
