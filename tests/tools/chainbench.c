/* SPDX-License-Identifier: GPL-3.0-or-later */
/* chainbench [TOKENS [RUNS [NAME]]]: CPU time of the sampler with a vocabulary of TOKENS (256000), the median
 * of RUNS (40), for each stage alone and for chains of them, or only the one of that name. Logits are those
 * of three kinds of distributions: sure (nearly all of the probability on a few tokens), usual, and flat. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/sample/rng.h"
#include "src/sample/sampler.h"

#define CONTEXT   4096u
#define RUNS_MOST 1000u

typedef struct Row {
    const char *name;
    QSFParams p; /* on top of those that do nothing */
    bool allowed, denied;
} Row;

static const Row rows[] = {
    { .name = "temperature 0", .p = { .temperature = -1 } },
    { .name = "temperature 0.8", .p = { .temperature = 0.8f } },
    { .name = "the default settings",
      .p = { .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f } },
    { .name = "top-k 40", .p = { .top_k = 40 } },
    { .name = "top-p 0.95", .p = { .top_p = 0.95f } },
    { .name = "min-p 0.05", .p = { .min_p = 0.05f } },
    { .name = "penalties", .p = { .repeat_penalty = 1.1f, .presence = 0.2f, .repeat_last_n = -1 } },
    { .name = "penalties, top-k 40", .p = { .repeat_penalty = 1.1f, .repeat_last_n = -1, .top_k = 40 } },
    { .name = "penalties, dry",
      .p = { .repeat_penalty = 1.1f, .repeat_last_n = -1, .dry = 0.8f, .dry_base = 1.75f, .dry_length = 2 } },
    { .name = "dry", .p = { .dry = 0.8f, .dry_base = 1.75f, .dry_length = 2 } },
    { .name = "top-n-sigma 1", .p = { .top_n_sigma = 1 } },
    { .name = "typical 0.95", .p = { .typical = 0.95f } },
    { .name = "typical 0.2", .p = { .typical = 0.2f } },
    { .name = "xtc 1, 0.1", .p = { .xtc = 1, .xtc_threshold = 0.1f } },
    { .name = "xtc 1, top-k 40", .p = { .xtc = 1, .xtc_threshold = 0.1f, .top_k = 40 } },
    { .name = "dynatemp 0.5", .p = { .dynatemp = 0.5f } },
    { .name = "mirostat 1", .p = { .mirostat = 1, .mirostat_tau = 5, .mirostat_eta = 0.1f } },
    { .name = "mirostat 2", .p = { .mirostat = 2, .mirostat_tau = 5, .mirostat_eta = 0.1f } },
    { .name = "adaptive-p, min-p 0.05",
      .p = { .adaptive_target = 0.3f, .adaptive_decay = 0.9f, .min_p = 0.05f } },
    { .name = "least 0.001", .p = { .least = 0.001f } },
    { .name = "half of the tokens allowed", .allowed = true },
    { .name = "half allowed, top-k 40", .p = { .top_k = 40 }, .allowed = true },
    { .name = "few tokens denied", .denied = true },
};

typedef struct Bench {
    uint32_t n, runs;
    float *logits;
    uint64_t *half, *few;
    int32_t recent[CONTEXT];
    qk_table table;
    QsfLedger ledger;
    QsfSampler *sampler;
} Bench;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Unset values have no effect; a temperature below 0 is 0. */
static QSFParams complete(QSFParams p) {
    p.temperature = p.temperature < 0 ? 0 : p.temperature > 0 ? p.temperature : 1;
    if (!(p.top_p > 0)) p.top_p = 1;
    if (!(p.typical > 0)) p.typical = 1;
    if (!(p.repeat_penalty > 0)) p.repeat_penalty = 1;
    return p;
}

static void measure(Bench *b, const Row *row, double *median, uint32_t *kept) {
    const QSFParams p = complete(row->p);
    const QsfSamplerInput in = { .logits = b->logits,
                                 .params = &p,
                                 .recent = b->recent,
                                 .n_recent = CONTEXT,
                                 .allowed = row->allowed ? b->half : NULL,
                                 .denied = row->denied ? b->few : NULL };
    double us[RUNS_MOST];
    QsfSample out = { 0 };
    QsfErr err = { 0 };
    qsf_sampler_seed(b->sampler, 1);
    for (uint32_t i = 0; i < b->runs; i++) {
        const double from = now();
        if (qsf_sampler_next(b->sampler, &in, &out, &err) != QSF_OK) {
            fprintf(stderr, "chainbench: %s: %s\n", row->name, err.msg);
            exit(1);
        }
        us[i] = now() - from;
        if (i == 0) *kept = out.kept;
    }
    qsort(us, b->runs, sizeof *us, ascending);
    *median = us[b->runs / 2];
}

/* A bell of that spread, and 20 tokens that are `lead` more likely. */
static void make_logits(Bench *b, double spread, double lead) {
    QsfRng r;
    qsf_rng_seed(&r, 7);
    for (uint32_t i = 0; i < b->n; i++) {
        double sum = 0;
        for (int k = 0; k < 6; k++) sum += qsf_rng_unit(&r);
        b->logits[i] = (float)((sum - 3) * spread * 1.41);
    }
    for (uint32_t k = 0; k < 20; k++)
        b->logits[(uint32_t)(qsf_rng_unit(&r) * b->n)] = (float)(spread * 4 + lead - 0.4 * k);
}

static void fill(Bench *b) {
    QsfRng r;
    qsf_rng_seed(&r, 3);
    for (uint32_t i = 0; i < CONTEXT; i++) {
        const double u = qsf_rng_unit(&r);
        b->recent[i] = (int32_t)(u * u * u * b->n);
    }
    for (uint32_t i = 0; i < 40; i++) /* repeated sequences */
        b->recent[CONTEXT - 1 - i % 8 - (i / 8) * 50] = b->recent[CONTEXT - 1 - i % 8];
    for (size_t i = 0; i < QSF_TOKEN_SET_WORDS(b->n); i++) {
        b->half[i] = 0;
        for (unsigned k = 0; k < 64; k++) b->half[i] |= (uint64_t)(qsf_rng_unit(&r) < 0.5) << k;
        b->few[i] = i % 1000 == 0 ? 5 : 0;
    }
}

static void run(Bench *b, const char *only) {
    static const struct { double spread, lead; } kinds[] = { { 2, 12 }, { 2, 5 }, { 1, 0 } };
    printf("%-28s %21s %21s %21s\n", "", "sure: kept, us", "usual: kept, us", "flat: kept, us");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (only != NULL && strcmp(only, rows[i].name) != 0) continue;
        printf("%-28s", rows[i].name);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            double median;
            uint32_t kept = 0;
            make_logits(b, kinds[k].spread, kinds[k].lead);
            measure(b, &rows[i], &median, &kept);
            printf(" %10u %10.0f", kept, median);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    static Bench b;
    QsfErr err = { 0 };
    b.n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 256000;
    b.runs = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 40;
    if (argc > 4 || b.n < 1000 || b.n > 10000000 || b.runs < 1 || b.runs > RUNS_MOST) {
        fprintf(stderr, "usage: chainbench [TOKENS [RUNS [NAME]]]\n");
        return 2;
    }
    qk_table_init(&b.table, qk_cpu_best());
    qsf_ledger_init(&b.ledger, 0);
    b.logits = malloc(b.n * sizeof *b.logits);
    b.half = malloc(QSF_TOKEN_SET_WORDS(b.n) * sizeof *b.half);
    b.few = malloc(QSF_TOKEN_SET_WORDS(b.n) * sizeof *b.few);
    if (b.logits == NULL || b.half == NULL || b.few == NULL ||
        qsf_sampler_create(&b.sampler, b.n, &b.table, &b.ledger, &err) != QSF_OK) {
        fprintf(stderr, "chainbench: %s\n", err.msg[0] != '\0' ? err.msg : "out of memory");
        return 1;
    }
    fill(&b);
    run(&b, argc > 3 ? argv[3] : NULL);
    qsf_sampler_destroy(b.sampler);
    qsf_ledger_destroy(&b.ledger);
    free(b.logits);
    free(b.half);
    free(b.few);
    return 0;
}
