/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/plan/drafting.h"

#include <stddef.h>
#include <string.h>

#include "src/plan/layout.h"

#define LEAST  8192u
#define MOST   (1u << 20)
#define ARRAYS 3u /* the tokens, and two tables with an entry for each */

static const char *const names[QSF_DRAFTING_N] = { "auto", "off", "lookup", "nextn", "pinned", "draft" };

QsfDrafting qsf_drafting_parse(const char *word) {
    if (word == NULL || *word == '\0') return QSF_DRAFTING_AUTO;
    for (unsigned i = 0; i < QSF_DRAFTING_N; i++)
        if (strcmp(names[i], word) == 0) return (QsfDrafting)i;
    return QSF_DRAFTING_N;
}

const char *qsf_drafting_name(QsfDrafting d) { return d < QSF_DRAFTING_N ? names[d] : "?"; }

/* Twice the context: what was said before, or in another conversation, is there for a while. */
uint32_t qsf_lookup_tokens(uint32_t ctx) {
    uint32_t n = LEAST;
    while (n < MOST && n / 2 < ctx) n *= 2;
    return n;
}

uint64_t qsf_lookup_bytes(uint32_t tokens) {
    return tokens == 0 ? 0 : qsf_pages(QSF_LOOKUP_HEAD + (uint64_t)tokens * ARRAYS * sizeof(int32_t));
}
