/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight units: sets of matrices that one step of the program multiplies, in the order of their use (for a
 * llama Q,K,V | O | gate,up | down of each block), and their chunks; the last unit is the head. A unit is a
 * sequence of items: the rows of its tensors in order, where each tensor starts at a multiple of
 * QSF_ROW_QUANTUM (items between two tensors are not rows), or pairs of rows if two tensors are multiplied
 * element by element afterwards (gate and up). A chunk is a range of items in memory: for each tensor the 4
 * KiB windows of the file that contain its rows, so that O_DIRECT reads go directly to the place where the
 * kernels use them. A compressed layer is different: it is read, decompressed and held as a whole, and its
 * units lie in it as in an uncompressed file. Pure functions over an opened model. */
#ifndef QSF_PLAN_UNITS_H
#define QSF_PLAN_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/model/model.h"

#define QSF_ROW_QUANTUM 16u   /* chunks start at multiples of this many items */
#define QSF_WINDOW      4096u /* = QSF_IO_WINDOW */
/* Memory that the loader uses per unit and per layer, for the plan; checked in loader.c. */
#define QSF_WEIGHT_UNIT_BYTES   304
#define QSF_LAYER_COUNTER_BYTES 48
#define QSF_LEND_BYTES          12  /* per unit: in the plan, and in weights.c */
#define QSF_EXPERT_BYTES        44  /* per expert: in expert_pool.c */
#define QSF_EXPERT_DEPTHS       64u /* steps of the number of slots for which hits are known */

typedef struct QsfUnit {
    uint32_t index, layer;             /* layer == n_layers for the head */
    uint32_t layer_first, layer_units; /* the units of its layer: index of the first one, and their number */
    QsfMatmulClass matmul_class;
    unsigned n; /* tensors */
    const QsfTensor *tensor[QSF_UNIT_TENSORS];
    uint64_t offset[QSF_UNIT_TENSORS]; /* of row 0 in the file */
    qk_type type[QSF_UNIT_TENSORS];
    uint32_t rows[QSF_UNIT_TENSORS];
    uint64_t row_bytes[QSF_UNIT_TENSORS];
    bool x16[QSF_UNIT_TENSORS]; /* in the file its rows are interleaved in tiles of 16, the
                                   last one padded */
    uint32_t k;                 /* elements per row, the same for all */
    uint32_t heads;             /* as in QsfUnitSpec */
    bool paired;                /* item i = row i of every tensor */
    bool on_demand;             /* an expert's, pinned whole or not at all, streamed only when it is chosen */
    uint32_t expert, n_expert, n_used; /* of on_demand: this one of n_expert, of which a token uses n_used */
    uint32_t items;
    uint64_t bytes;                  /* of all its rows */
    const QsfCompressed *compressed; /* NULL, or the compressed layer that contains the unit */
} QsfUnit;

/* Rows [row0, row1) of one tensor. */
typedef struct QsfPart {
    unsigned tensor; /* index into the unit's tensors */
    uint32_t row0, row1;
    uint64_t file_off;     /* of the window: a multiple of QSF_WINDOW */
    uint64_t window;       /* offset of the window in the chunk's memory, a multiple of QSF_WINDOW */
    uint64_t window_bytes; /* a multiple of QSF_WINDOW */
    uint64_t at;           /* offset of row0 in the chunk's memory */
} QsfPart;

typedef struct QsfChunk {
    uint32_t unit, item0, item1;
    unsigned n_parts;
    QsfPart part[QSF_UNIT_TENSORS];
    uint64_t bytes; /* of all windows; a unit in a compressed layer has none, and `at` counts from the
                       start of the decompressed layer */
} QsfChunk;

/* Returns the bytes of u that one token multiplies on average. */
uint64_t qsf_unit_active_bytes(const QsfUnit *u);

/* Returns the number of units of a model. */
uint32_t qsf_unit_count(const QsfModel *m);
/* Fills *u with unit `index`, below the count. */
void qsf_unit_at(const QsfModel *m, uint32_t index, QsfUnit *u);

/* Makes the chunk of items [item0, item1) of u. */
void qsf_chunk_make(const QsfUnit *u, uint32_t item0, uint32_t item1, QsfChunk *c);

/* Sets [*row0, *row1) to the rows of tensor t (index in u) among items [item0, item1). */
void qsf_unit_rows(const QsfUnit *u, uint32_t item0, uint32_t item1, unsigned t, uint32_t *row0,
                   uint32_t *row1);

/* Returns the bytes from the start of tensor t to the end of row `row - 1`; if that is the last row, to the
 * end of its tile. */
uint64_t qsf_unit_row_end(const QsfUnit *u, unsigned t, uint32_t row);

/* Returns the bytes of items [item0, item1), without windows. */
uint64_t qsf_unit_item_bytes(const QsfUnit *u, uint32_t item0, uint32_t item1);

/* Returns the memory of the first n_items when pinned: for each tensor, the windows of its rows; 0 for 0
 * items. A compressed layer is pinned as a whole, and its memory is counted for its first unit. */
uint64_t qsf_unit_pinned_bytes(const QsfUnit *u, uint32_t n_items);
/* The same for one tensor and its first rows. */
uint64_t qsf_tensor_pinned_bytes(const QsfUnit *u, unsigned t, uint32_t rows);

/* Is u the first, or the last, unit of a compressed layer? */
bool qsf_unit_opens_compressed(const QsfUnit *u);
bool qsf_unit_closes_compressed(const QsfUnit *u);
/* Returns the memory of a decompressed layer, in whole pages. */
uint64_t qsf_compressed_whole(const QsfCompressed *c);
/* Returns the bytes of the file's windows that contain the compressed layer. */
uint64_t qsf_compressed_windows(const QsfCompressed *c);

/* Returns the smallest slot that can stream u: one quantum of its items, or its whole compressed layer. */
uint64_t qsf_unit_min_slot(const QsfUnit *u);
/* Returns the items per chunk, a multiple of the quantum, for streaming n_items in chunks of about the same
 * size that fit a slot. 0 when the slot is too small. */
uint32_t qsf_unit_chunk_items(const QsfUnit *u, uint32_t n_items, uint64_t slot_bytes);

/* Returns the weight types, one bit each, for which the table's level has a kernel for interleaved rows
 * (src/stream/interleave.h). */
uint64_t qsf_interleaved_types(const qk_table *table);
/* Returns the bytes of the largest tile of 16 rows of a unit that can be interleaved; 0 = none. */
uint64_t qsf_unit_group_bytes(const QsfUnit *u, const qk_table *table);

#endif
