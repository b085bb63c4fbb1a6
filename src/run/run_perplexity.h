/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the two halves of --perplexity share: preparing and measuring, and telling about it. */
#ifndef QSF_RUN_PERPLEXITY_H
#define QSF_RUN_PERPLEXITY_H

#include "src/engine/perplexity.h"
#include "src/run/run.h"

typedef struct RunPerplexity {
    const RunOptions *o;
    QsfRuntime rt;
    QsfPerplexity p;
    QsfKlReader reader;      /* zeroed without --kl-base */
    QsfKlWriter writer;
    uint64_t ids_bytes, kl_bytes; /* charged for p.ids and p.kl */
    uint32_t stride;         /* --stride, 0 = not given */
    bool window_given;       /* --ctx */
    uint64_t start_ns, shown_ns; /* begin of the measuring; of the last line of progress */
} RunPerplexity;

/* Hooks progress in where stderr is a terminal, and notes the time. */
void run_perplexity_start(RunPerplexity *m);
/* Takes the line of progress away. */
void run_perplexity_clear(const RunPerplexity *m);
/* Lines for people, or with --json an object. Exit code. */
int run_perplexity_report(const RunPerplexity *m, const QsfPerplexityResult *r);

#endif
