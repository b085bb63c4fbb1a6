/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A directory whose tensors a test computes itself, for the tests of tensors that are made
 * when they are read. */
#ifndef QSF_TESTS_DERIVE_RIG_H
#define QSF_TESTS_DERIVE_RIG_H

#include "kernels/blocks.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "tests/harness/hf_rig.h"

#define HIDDEN 128u
#define TOKENS 9u

static QsfStBuild build;
static QsfSource *source;

static inline void begin(void) { build = (QsfStBuild){ 0 }; }

/* Value i of a tensor: exact in every type. */
static inline float value(unsigned salt, uint64_t i) {
    return (float)((i * 37 + salt * 101) % 255) / 64.0f - 2.0f;
}

static inline void add(const char *name, unsigned salt, uint64_t rows, uint64_t cols) {
    const uint64_t n = rows * cols, shape[] = { rows, cols };
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++) v[i] = value(salt, i);
    qsf_sb_tensor(&build, name, "F32", rows > 1 ? 2 : 1, rows > 1 ? shape : shape + 1, v, n * sizeof *v);
    free(v);
}

static inline void add_bytes(const char *name, const char *type, const uint64_t *shape, uint32_t n_dims,
                             const void *data, size_t len) {
    qsf_sb_tensor(&build, name, type, n_dims, shape, data, len);
}

/* Writes the directory with the tensors added so far and opens it. */
static inline int open_dir(const char *config, QsfErr *e) {
    char path[128];
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    assert_int_equal(qsf_test_write_in(dir, "config.json", config, strlen(config)), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(qsf_sb_write(&build, path), 0);
    qsf_sb_free(&build);
    return qsf_source_open(&source, dir, &ledger, e);
}

static inline void open_good(const char *config) {
    QsfErr e = { 0 };
    qsf_test_expect_ok(open_dir(config, &e), &e);
}

static inline const QsfTensor *find(const char *name) {
    const QsfTensor *t = qsf_source_find_tensor(source, name);
    if (t == NULL) fail_msg("no tensor %s", name);
    return t;
}

/* Reads the whole tensor; the caller frees it. */
static inline unsigned char *whole(const QsfTensor *t) {
    QsfErr e = { 0 };
    unsigned char *all = malloc(t->bytes);
    assert_non_null(all);
    qsf_test_expect_ok(qsf_source_read_bytes(source, t, 0, all, t->bytes, &e), &e);
    return all;
}

/* Any range of any tensor, also of the virtual file, equals the same range of the whole tensor. */
static inline void expect_ranges(void) {
    QsfErr e = { 0 };
    unsigned char part[5000];
    for (uint64_t i = 0; i < qsf_source_n_tensors(source); i++) {
        const QsfTensor *t = qsf_source_tensor(source, i);
        unsigned char *all = whole(t);
        for (uint64_t k = 0; k < 60; k++) {
            uint64_t at = k * 7919 % t->bytes, n = k * 104729 % sizeof part;
            if (n > t->bytes - at) n = t->bytes - at;
            qsf_test_expect_ok(qsf_source_read_bytes(source, t, at, part, n, &e), &e);
            if (memcmp(part, all + at, n) != 0)
                fail_msg("%s: %llu bytes at %llu", t->name, (unsigned long long)n, (unsigned long long)at);
            if (t->file != qsf_source_n_files(source)) continue;
            qsf_test_expect_ok(qsf_source_virtual_read(source, t->offset + at, n, part, &e), &e);
            assert_memory_equal(part, all + at, n);
        }
        free(all);
    }
    assert_int_equal(qsf_source_virtual_read(source, qsf_source_virtual_file(source)->size - 1, 2, part, &e),
                     QSF_E_RUNTIME);
}

static inline void expect_element(const QsfTensor *t, uint64_t row, uint64_t col, float want) {
    QsfErr e = { 0 };
    float got[4 * HIDDEN];
    qsf_test_expect_ok(qsf_source_read_rows(source, t, row, 1, got, &e), &e);
    if (memcmp(&got[col], &want, sizeof want) != 0)
        fail_msg("%s: %llu, %llu is %g instead of %g", t->name, (unsigned long long)row,
                 (unsigned long long)col, (double)got[col], (double)want);
}

/* To BF16. */
static inline float rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

#endif
