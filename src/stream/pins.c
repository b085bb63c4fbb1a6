/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses and sizes of pinned rows. */
#include "src/stream/pins.h"

#include "src/plan/layout.h"
#include "src/stream/interleave.h"

#define NAME       "pinned weights"
#define GROUP_NAME "group of rows"

/* With the skew of the file's windows (units.h). */
static int place_tensors(QsfPins *p, QsfWeightUnit *units, uint32_t n_units, QsfErr *err) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_units; i++) bytes += qsf_unit_pinned_bytes(&units[i].u, units[i].u.items);
    int rc = qsf_space_open(&p->space, bytes, NAME, err);
    uint8_t *at = p->space.base, *layer = NULL;
    for (uint32_t i = 0; rc == QSF_OK && i < n_units; i++) {
        QsfWeightUnit *u = &units[i];
        if (qsf_unit_opens_compressed(&u->u)) {
            layer = at;
            at += qsf_compressed_whole(u->u.compressed);
        }
        for (unsigned t = 0; t < u->u.n; t++) {
            if (u->u.compressed != NULL) {
                u->pin[t] = layer + (u->u.offset[t] & ~(uint64_t)(QSF_WINDOW - 1));
                continue;
            }
            u->pin[t] = at;
            at += qsf_tensor_pinned_bytes(&u->u, t, u->u.rows[t]);
        }
    }
    return rc;
}

static int map_group(QsfPins *p, const QsfWeightUnit *units, uint32_t n_units, QsfLedger *l, QsfErr *err) {
    void *mem;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_units; i++) {
        uint64_t group = qsf_interleave_scratch(&units[i]);
        if (group > bytes) bytes = group;
    }
    p->group_bytes = qsf_pages(bytes);
    int rc = qsf_mem_map(l, QSF_MEM_PINNED, p->group_bytes, GROUP_NAME, &mem, err);
    p->group = mem;
    return rc;
}

int qsf_pins_open(QsfPins *p, QsfWeightUnit *units, uint32_t n_units, QsfLedger *l, QsfErr *err) {
    int rc = place_tensors(p, units, n_units, err);
    return rc == QSF_OK ? map_group(p, units, n_units, l, err) : rc;
}

void qsf_pins_close(QsfPins *p, QsfLedger *l) {
    qsf_space_close(&p->space);
    qsf_mem_unmap_named(l, QSF_MEM_PINNED, p->group, p->group_bytes, GROUP_NAME);
    *p = (QsfPins){ 0 };
}

static uint32_t pinned_rows(const QsfWeightUnit *u, unsigned t) {
    uint32_t lo, hi;
    qsf_unit_rows(&u->u, 0, u->pinned_items, t, &lo, &hi);
    return hi;
}

uint8_t *qsf_pins_layer(const QsfWeightUnit *u) {
    return u->pin[0] - (u->u.offset[0] & ~(uint64_t)(QSF_WINDOW - 1));
}

/* A compressed layer: all or nothing, with its first unit. */
static int size_layer(QsfLedger *l, QsfWeightUnit *u, bool shrink_only, QsfErr *err) {
    uint64_t want = qsf_unit_pinned_bytes(&u->u, u->pinned_items);
    if (!qsf_unit_opens_compressed(&u->u) || (shrink_only && want > u->pin_bytes[0])) return QSF_OK;
    int rc = qsf_space_resize(l, QSF_MEM_PINNED, NAME, qsf_pins_layer(u), u->pin_bytes[0], want, err);
    if (rc == QSF_OK) u->pin_bytes[0] = want;
    return rc;
}

int qsf_pins_size(QsfLedger *l, QsfWeightUnit *u, bool shrink_only, QsfErr *err) {
    if (u->u.compressed != NULL) return size_layer(l, u, shrink_only, err);
    for (unsigned t = 0; t < u->u.n; t++) {
        uint64_t want = qsf_tensor_pinned_bytes(&u->u, t, pinned_rows(u, t));
        if (shrink_only && want > u->pin_bytes[t]) continue;
        int rc = qsf_space_resize(l, QSF_MEM_PINNED, NAME, u->pin[t], u->pin_bytes[t], want, err);
        if (rc != QSF_OK) return rc;
        u->pin_bytes[t] = want;
    }
    return QSF_OK;
}
