/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records which experts the routers chose, as lines of text in a file (--trace-experts). The format is in
 * docs/FORMATS.md. Lines are collected in memory and written at the end of a pass, or when the memory is
 * full. One thread: the one that evaluates. */
#ifndef QSF_FORWARD_ROUTES_H
#define QSF_FORWARD_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/ledger.h"
#include "src/model/model.h"

#define QSF_ROUTES_BYTES (64u << 10) /* of lines that are not written yet; charged to TRANSCRIPT */

typedef struct QsfRoutes QsfRoutes;

/* Does a block of the model have experts? */
bool qsf_routes_has_experts(const QsfModel *m);
/* Creates the file, readable by its owner only, or empties it. model and ledger are used until close, path
 * during the call. QSF_E_USAGE: the file cannot be written, is one of the model's, or is neither a regular
 * file nor a device. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_routes_open(QsfRoutes **out, const QsfModel *m, const char *path, QsfLedger *ledger, QsfErr *err);
/* Writes what is left, and closes the file. NULL allowed. */
void qsf_routes_close(QsfRoutes *r);

/* Positions [first, first + n) are evaluated together; their choices follow, block by block. */
void qsf_routes_begin_pass(QsfRoutes *r, uint32_t first, uint32_t n);
/* choice: n ids in ascending order, as floats, then their weights; of equal ids the first one counts. Fills
 * at (n) with the places of ids, the highest weight first, of equal ones the lowest id; returns how many. */
uint32_t qsf_route_order(const float *choice, uint32_t n, uint32_t *at);
/* choice: as in qsf_route_order. */
void qsf_routes_add(QsfRoutes *r, uint32_t pos, uint32_t block, const float *choice, uint32_t n);
/* Writes what was collected. */
void qsf_routes_write(QsfRoutes *r);
/* Once after a failure to write, after which nothing is recorded: fills note (cap bytes) with a sentence
 * about it and returns true. */
bool qsf_routes_failed(QsfRoutes *r, char *note, size_t cap);

#endif
