/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One product, several times, for a tool that counts instructions: the difference between two numbers of
 * times is what a product takes. The values do not matter. Prints how many multiply-adds it has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { ROWS = 64, K = 512, MOST_COLS = 256 };

static int type_named(const char *name, size_t n) {
#define NAME(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) #fmt,
    static const char *const names[QK_TYPE_N] = { QK_FORMATS(NAME, ) };
    for (int t = 0; t < QK_TYPE_N; t++)
        if (strlen(names[t]) == n && strncmp(names[t], name, n) == 0) return t;
    return -1;
}

static void multiply(const qk_table *table, qk_type type, size_t cols, unsigned times) {
    const qk_weight_ops *ops = &table->weight[type];
    const size_t row_bytes = K / qk_type_elems(type) * qk_type_bytes(type),
                 x_bytes = qk_act_bytes(ops->act, K);
    uint8_t *rows = malloc(ROWS * row_bytes), *groups = malloc(ROWS * row_bytes);
    char *x = aligned_alloc(64, cols * x_bytes);
    float *f = malloc(K * sizeof *f), *y = malloc(ROWS * cols * sizeof *y);
    if (!rows || !groups || !x || !f || !y) abort();
    memset(rows, 0x11, ROWS * row_bytes);
    for (size_t i = 0; i < K; i++) f[i] = (float)i;
    for (size_t i = 0; i < cols; i++) table->quantize[ops->act](x + i * x_bytes, f, K);
    for (size_t r = 0; ops->pack && r < ROWS; r += 16)
        ops->pack(groups + r * row_bytes, rows + r * row_bytes, row_bytes, K);
    const qk_mm m = {
        ops->pack ? groups : rows, row_bytes, x, x_bytes, y, ROWS, K, cols, 1.0f, ops->way, ops->wide
    };
    for (unsigned i = 0; i < times; i++) (ops->pack ? ops->matmul16 : ops->matmul)(&m, 0, ROWS);
    free(rows);
    free(groups);
    free(x);
    free(f);
    free(y);
}

int ck_count(const qk_table *t, const char *what) {
    const size_t name = strcspn(what, ":");
    const int type = type_named(what, name);
    unsigned cols, times;
    char end;
    if (type < 0 || sscanf(what + name, ":%u:%u%c", &cols, &times, &end) != 2 || cols < 1 ||
        cols > MOST_COLS) {
        fprintf(stderr, "checkkern: --count wants FORMAT:COLUMNS:TIMES, at most %d columns\n", MOST_COLS);
        return 2;
    }
    multiply(t, (qk_type)type, cols, times);
    printf("%zu\n", (size_t)ROWS * K * cols);
    return 0;
}
