/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals shared by the two halves of --perplexity: measuring and reporting. */
#ifndef QSF_RUN_PERPLEXITY_H
#define QSF_RUN_PERPLEXITY_H

#include "src/measure/perplexity.h"
#include "src/run/run.h"

typedef struct RunPerplexity {
    const RunOptions *o;
    QsfRuntime rt;
    QsfPerplexity p;
    QsfKlReader reader; /* zeroed without --kl-base */
    QsfKlWriter writer;
    uint64_t ids_bytes, kl_bytes; /* charged for p.ids and p.kl */
    uint32_t stride;              /* --stride, 0 = not given */
    bool window_given;            /* --ctx */
    uint64_t start_ns, shown_ns;  /* when measuring began; when progress was last shown */
} RunPerplexity;

/* Starts the clock, and shows progress if stderr is a terminal. */
void run_perplexity_start(RunPerplexity *m);
/* Removes the progress line. */
void run_perplexity_clear(const RunPerplexity *m);
/* Prints the result as text, or with --json as an object. Returns an exit code. */
int run_perplexity_report(const RunPerplexity *m, const QsfPerplexityResult *r);

#endif
