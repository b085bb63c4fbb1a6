/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The memory of pinned rows. Every tensor of every unit has its place in one range of addresses,
 * side by side in the order of their use, and holds memory there for as many of its first rows as
 * are pinned. Charged to PINNED. */
#ifndef QSF_STREAM_PINS_H
#define QSF_STREAM_PINS_H

#include "src/base/space.h"
#include "src/stream/loader.h"

typedef struct QsfPins {
    QsfSpace space;
    uint8_t *group; /* scratch for a group of rows; NULL = all are multiplied as the file has them */
    uint64_t group_bytes;
} QsfPins;

/* Gives every tensor its place (u->pin), without memory. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_pins_open(QsfPins *p, QsfWeightUnit *units, uint32_t n_units, QsfLedger *l, QsfErr *err);
/* After all units were sized to nothing. Zero-initialised is allowed. */
void qsf_pins_close(QsfPins *p, QsfLedger *l);

/* Gives the unit memory for its pinned_items; shrink_only: only what gets less, which cannot fail.
 * QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_pins_size(QsfLedger *l, QsfWeightUnit *u, bool shrink_only, QsfErr *err);

/* Where the compressed layer that u belongs to has its place. */
uint8_t *qsf_pins_layer(const QsfWeightUnit *u);

#endif
