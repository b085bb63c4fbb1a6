/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How often the experts of each layer were used, and fewer bits for those that are seldom used: they are read
 * most often for a use, because others stay in memory. */
#ifndef QSF_CONVERT_PACK_EXPERT_USES_H
#define QSF_CONVERT_PACK_EXPERT_USES_H

#include "src/convert/pack/items.h"

/* Maximum share of a layer's uses that all its seldom used experts have together. */
#define QSF_SELDOM_SHARE 0.1

typedef struct QsfExpertUses {
    uint32_t n_layers, n_experts;
    uint64_t *n; /* (n_layers, n_experts) */
} QsfExpertUses;

/* Reads a file of qsf-run --trace-experts, or one of habits (docs/FORMATS.md), of a model with these numbers
 * of layers and experts. has (n_layers): which layers have experts. QSF_E_USAGE: it cannot be opened;
 * QSF_E_MODEL: it is damaged or of another model; of a trace the line is named; QSF_E_RUNTIME if out of
 * memory, or reading failed. The caller frees it. */
int qsf_expert_uses_read(QsfExpertUses *out, const char *path, uint32_t n_layers, uint32_t n_experts,
                         const bool *has, QsfErr *err);
void qsf_expert_uses_free(QsfExpertUses *u); /* *u may be zeroed */
/* Sets which (n_experts) experts of a layer are seldom used: those used least, of equal ones the later first.
 * Returns their number. */
uint32_t qsf_expert_uses_seldom(const QsfExpertUses *u, uint32_t layer, bool *which);

/* After the choice of formats: of items that are stored expert by expert, the seldom used experts get the
 * next lower format (qsf_choose_lower), if there is one. QSF_E_USAGE: there are no such items; errors as of
 * read. */
int qsf_items_by_use(QsfItems *l, const char *path, const char *model, QsfErr *err);

#endif
