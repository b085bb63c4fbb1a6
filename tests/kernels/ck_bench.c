/* SPDX-License-Identifier: GPL-3.0-or-later */
/* checkkern --bench: a table of weight formats by layout: matrix-vector products in bytes per second,
 * products with 256 columns in multiply-adds per second, each with one thread and all, and as a share of a
 * limit measured immediately before and after: reading the same memory, or the level's dot product on
 * registers. Machines are noisy: compare the shares; the limits at that time are printed too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/ck_bench.h"

enum { WEIGHT_MIB = 160, LIMIT_ROUNDS = 5 };

static void print_head(const qk_table *t, const ck_reader *r) {
    printf("level %s, %d threads, %d MiB of weights, %d columns\n", qk_level_name(t->level), r->threads,
           WEIGHT_MIB, 256);
    printf("%-20s %-6s | %-29s | %-31s | %s\n", "", "", "decode GB/s (of reading)",
           "prefill GMAC/s (of the dot product)", "limits with all threads");
    printf("%-20s %-6s | %14s %14s | %15s %15s | %9s %9s\n", "kernel", "layout", "1 thread", "all",
           "1 thread", "all", "read GB/s", "dot GMAC/s");
}

/* A speed and its share of the limit, if there is one. */
static void print_speed(double v, double part, int width) {
    if (part > 0)
        printf(" %*.2f (%3.0f %%)", width - 8, v, 100 * part);
    else
        printf(" %*.2f (  - )", width - 8, v);
}

static void print_case(const ck_case *c) {
    const ck_speeds s = ck_bench_case(c);
    printf("%-20s %-6s |", c->table->weight[c->type].name,
           c->groups ? qk_way_name(c->table->weight[c->type].way) : "rows");
    for (int all = 0; all < 2; all++) print_speed(s.gbs[all], s.read_part[all], 14);
    printf(" |");
    for (int all = 0; all < 2; all++) print_speed(s.gmacs[all], s.dot_part[all], 15);
    printf(" | %9.2f %9.1f\n", s.read_part[1] > 0 ? s.gbs[1] / s.read_part[1] : 0,
           s.dot_part[1] > 0 ? s.gmacs[1] / s.dot_part[1] : 0);
    fflush(stdout);
}

static uint8_t *open_memory(ck_reader *r, qk_level level) {
    const size_t n = (size_t)WEIGHT_MIB << 20;
    uint8_t *w = ck_memory(n);
    memset(w, 0x5a, n);
    ck_pool_start(ck_cpus());
    ck_reader_init(r, level, w, n, ck_cpus());
    return w;
}

void ck_bench(const qk_table *t, const char *only_function) {
    ck_reader reader;
    ck_case c = { .table = t, .weight_bytes = (size_t)WEIGHT_MIB << 20, .reader = &reader };
    c.w = open_memory(&reader, t->level);
    print_head(t, &reader);
    for (int type = 0; type < QK_TYPE_N; type++) {
        c.type = (qk_type)type;
        if (only_function && !strstr(t->weight[type].name, only_function)) continue;
        for (c.groups = t->weight[type].pack != NULL; c.groups >= 0; c.groups--) print_case(&c);
    }
    ck_pool_stop();
    free(c.w);
}

/* The best of a few rounds, one number per line. */
void ck_bench_limits(qk_level level) {
    ck_reader r;
    double read[2] = { 0 }, dot[2] = { 0 };
    uint8_t *w = open_memory(&r, level);
    for (int round = 0; round < LIMIT_ROUNDS; round++)
        for (int all = 0; all < 2; all++) {
            const double b = ck_read_speed(&r, all), d = ck_dot_speed(&r, all);
            read[all] = b > read[all] ? b : read[all];
            dot[all] = d > dot[all] ? d : dot[all];
        }
    for (int all = 0; all < 2; all++)
        printf("{\"level\": \"%s\", \"threads\": %d, \"read_gbps\": %.3f, \"int8_gmacs\": %.2f}\n",
               qk_level_name(level), all ? r.threads : 1, read[all] * 1e-9, dot[all] * 1e-9);
    ck_pool_stop();
    free(w);
}
