/* SPDX-License-Identifier: GPL-3.0-or-later */
/* outliers MODEL.gguf|tail=DEGREES: the gain and cost of a list of outliers (tensor type 31 of QSF) compared
 * with a format without one: bits per weight and signal to noise ratio over all matrices of the layers of a
 * model in f16 or f32, or over a matrix drawn from Student's t distribution, whose tails are heavier the
 * fewer its degrees of freedom. docs/QUANTIZATION.md quotes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/half.h"
#include "src/convert/quant/measure.h"
#include "src/convert/quant/outliers.h"
#include "src/file/rows.h"
#include "tests/harness/draw.h"

enum { TAIL_ROWS = 512, TAIL_COLS = 1024 };
static const char *const formats[] = { "2bit", "2bit-book", "3bit", "3bit-book", "4bit", "4bit-book" };
enum { FORMATS = sizeof formats / sizeof *formats };

/* Without and with a list. */
typedef struct Sums {
    QsfQuantStats stats[2];
    uint64_t bytes[2], outliers;
} Sums;

static Sums sums[FORMATS];

static void *need(size_t n) {
    void *p = calloc(n, 1);
    if (p == NULL) exit(1);
    return p;
}

static void fail(const QsfErr *err) {
    fprintf(stderr, "outliers: %s\n", err->msg);
    exit(1);
}

static void measure(const char *name, const float *x, size_t n_rows, size_t cols,
                    const QsfOutlierLimits *limits, Sums *s) {
    QsfErr err = { 0 };
    const QsfQuant q = { .format = qsf_quant_format_named(name), .rule = QSF_RULE_SEARCH };
    QsfQuantRows rows = { .x = x, .n_rows = n_rows, .cols = cols };
    const uint64_t n_out = qsf_outlier_count(limits, &rows);
    float *kept = need(n_rows * cols * sizeof *kept), *y = need(n_rows * cols * sizeof *y);
    QsfOutlier *list = need((n_out + 1) * sizeof *list);
    uint64_t row_bytes;
    if (qsf_quant_row_bytes(&q, cols, &row_bytes, &err) != QSF_OK) fail(&err);
    uint8_t *packed = need(n_rows * row_bytes);
    memcpy(kept, x, n_rows * cols * sizeof *kept);
    for (int with = 0; with < 2; with++) {
        const size_t listed = with ? qsf_outlier_take(limits, QSF_OUTLIERS_LIST, kept, 0, n_rows, cols, list)
                                   : 0;
        rows.x = kept;
        if (qsf_quant_encode(&q, &rows, packed, &err) != QSF_OK ||
            qsf_quant_decode(&q, packed, n_rows, cols, y, &err) != QSF_OK)
            fail(&err);
        for (size_t i = 0; i < listed; i++)
            y[(size_t)list[i].row * cols + list[i].col] = qsf_half_value(list[i].half);
        rows.x = x;
        qsf_stats_add(&s->stats[with], &rows, y);
        s->bytes[with] += n_rows * row_bytes + listed * QSF_OUTLIER_BYTES;
    }
    s->outliers += n_out;
    free(kept);
    free(y);
    free(list);
    free(packed);
}

static void matrix(const float *x, size_t n_rows, size_t cols) {
    QsfErr err = { 0 };
    QsfMoments m = { 0 };
    const QsfQuantRows rows = { .x = x, .n_rows = n_rows, .cols = cols };
    if (qsf_moments_add(&m, &rows, &err) != QSF_OK) fail(&err);
    const QsfOutlierLimits limits = qsf_outlier_limits(&m);
    for (size_t f = 0; f < FORMATS; f++) measure(formats[f], x, n_rows, cols, &limits, &sums[f]);
}

static void whole_model(const char *path) {
    QsfErr err = { 0 };
    QsfLedger ledger;
    QsfSource *s;
    qsf_ledger_init(&ledger, 0);
    if (qsf_source_open(&s, path, &ledger, &err) != QSF_OK) fail(&err);
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        const uint64_t n_rows = qsf_tensor_n_rows(t);
        if (strncmp(t->name, "blk.", 4) != 0 || n_rows < 2) continue;
        float *x = need((size_t)(n_rows * t->ne[0]) * sizeof *x);
        if (qsf_source_read_rows(s, t, 0, n_rows, x, &err) != QSF_OK) fail(&err);
        matrix(x, (size_t)n_rows, (size_t)t->ne[0]);
        free(x);
    }
    qsf_source_close(s);
    qsf_ledger_destroy(&ledger);
}

/* A normal number divided by the root of a chi-squared one. */
static void tails(unsigned degrees) {
    float *x = need((size_t)TAIL_ROWS * TAIL_COLS * sizeof *x);
    for (size_t i = 0; i < (size_t)TAIL_ROWS * TAIL_COLS; i++) {
        double chi = 0, z = qsf_draw_gauss();
        for (unsigned k = 0; k < degrees; k++) {
            const double v = qsf_draw_gauss();
            chi += v * v;
        }
        x[i] = (float)(0.02 * z / sqrt(chi / degrees));
    }
    matrix(x, TAIL_ROWS, TAIL_COLS);
    free(x);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: outliers MODEL.gguf|tail=DEGREES\n");
        return 2;
    }
    if (strncmp(argv[1], "tail=", 5) == 0)
        tails((unsigned)strtoul(argv[1] + 5, NULL, 10));
    else
        whole_model(argv[1]);
    printf("%-10s %9s %9s %9s %9s %9s\n", "format", "bits", "SNR dB", "with list", "SNR dB", "outliers");
    for (size_t f = 0; f < FORMATS; f++) {
        const Sums *s = &sums[f];
        const double n = (double)s->stats[0].n;
        printf("%-10s %9.3f %9.2f %9.3f %9.2f %8.3f%%\n", formats[f], 8 * (double)s->bytes[0] / n,
               qsf_stats_snr(&s->stats[0]), 8 * (double)s->bytes[1] / n, qsf_stats_snr(&s->stats[1]),
               100 * (double)s->outliers / n);
    }
    return 0;
}
