/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What speculation (src/speculate) costs in a plan: memory for the logits of several positions, and for the
 * text that drafts are looked up in. It takes neither context nor pins from a small budget: where there is no
 * memory beside them, a plan has none for it. Pure functions; any thread. */
#ifndef QSF_PLAN_DRAFTING_H
#define QSF_PLAN_DRAFTING_H

#include <stdint.h>

/* Most positions of a pass with drafts: the token that was chosen, and the drafts. */
#define QSF_DRAFT_COLS 8u

/* Values of the setting "speculate". The ones after OFF are sources, in the order of their table. */
typedef enum QsfDrafting {
    QSF_DRAFTING_AUTO,
    QSF_DRAFTING_OFF,
    QSF_DRAFTING_LOOKUP,
    QSF_DRAFTING_NEXTN,
    QSF_DRAFTING_PINNED,
    QSF_DRAFTING_DRAFT,
    QSF_DRAFTING_N
} QsfDrafting;

/* Parses such a value, "" is auto; QSF_DRAFTING_N if it is none. */
QsfDrafting qsf_drafting_parse(const char *word);
/* Returns its name, static. */
const char *qsf_drafting_name(QsfDrafting d);

/* Returns how many tokens of text drafts are looked up in: a power of two, by the context. */
uint32_t qsf_lookup_tokens(uint32_t ctx);
#define QSF_LOOKUP_HEAD 128u /* bytes before the text */
/* Returns the bytes of that text and its tables, in whole pages; 0 for 0 tokens. At most 16 MB. */
uint64_t qsf_lookup_bytes(uint32_t tokens);

#endif
