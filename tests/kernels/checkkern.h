/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Framework of the kernel checks. A test passes every pointer of the shipped table to ck_check(); the same
 * pointer under the same name is checked once, at the lowest level that has it. Every check compares with a
 * float64 result computed here, never with another kernel. */
#ifndef QSF_TESTS_KERNELS_CHECKKERN_H
#define QSF_TESTS_KERNELS_CHECKKERN_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define CK_EPS 0x1p-24 /* unit roundoff of float */

typedef void (*ck_fn)(void);

typedef void (*ck_body)(const qk_table *t, int arg);

/* Checks one pointer of the table, unless it was seen before under this name or is filtered out:
 * reseeds the generator, runs body(t, arg) and prints a line. A signal in the body is a failure. */
void ck_check(const char *name, ck_fn fn, ck_body body, const qk_table *t, int arg);
/* Reports that the function being checked is wrong; the first few messages are printed. */
void ck_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether fn was checked completely under this name, at this level or a lower one; always true if only some
 * tests or functions were requested. */
int ck_compared(const char *name, ck_fn fn);
/* Whether it has failed so often that the check can stop. */
int ck_failed(void);
/* Number of cases to try out of n similar ones: all, or with --small a third (for an emulator). */
size_t ck_some(size_t n);

/* Generator: the same sequence in every ck_check. */
uint32_t ck_rand(void);
size_t ck_below(size_t n);
float ck_uniform(void); /* [-1, 1) */
float ck_normal(void);  /* bell-shaped, variance 1 */
void ck_fill_bytes(void *p, size_t n);

/* The table of a level, made once. */
const qk_table *ck_table(qk_level level);

/* Memory that ends at an inaccessible page: buffer `slot` (0..CK_SLOTS-1), valid until the slot's next use.
 * ck_tail: the n bytes directly before the page. ck_tail64: the same with a start aligned to 64. */
enum { CK_SLOTS = 6 };
void *ck_tail(int slot, size_t n);
void *ck_tail64(int slot, size_t n);

/* n floats followed by a guard band up to the inaccessible page; ck_dst_ok says whether the band is
 * intact. */
float *ck_dst(int slot, size_t n);
void ck_dst_ok(int slot, size_t n);

/* got - want| <= bound, and NaN only where NaN is expected. Reports `what` and index i. */
void ck_near(const char *what, size_t i, double got, double want, double bound);
/* The n floats have the same bits. Reports `what` and the first index. */
void ck_same_bits(const char *what, const float *got, const float *want, size_t n);
/* AVX2 gives the bits that a level above it has computed: a->y (floats), for keys of type kv. */
void ck_avx2_bits(const qk_table *t, int kv, const qk_attn *a, size_t floats);

/* Element i of a packed row in float64 (I2_S: without the scale of the tensor), by the definition of the
 * format; *mag: sum of magnitudes. */
double ck_weight(qk_type t, const uint8_t *row, size_t i, double *mag);
/* Element i of an activation column in float64. */
double ck_act_at(qk_act act, const void *col, size_t k, size_t i);
double ck_half(uint16_t h);
/* Sum of the products of n pairs. */
double ck_dot(const double *a, const double *b, size_t n);

/* Fills n blocks. kind: CK_RANDOM or one of the adversarial ones. */
typedef enum ck_kind {
    CK_RANDOM,
    CK_UNIT,
    CK_ALL_MIN,
    CK_ALL_MAX,
    CK_TINY,
    CK_SMALL,
    CK_HUGE,
    CK_ZERO,
    CK_MIXED, /* another of these for every block, or 32 floats */
    CK_KINDS
} ck_kind;
const char *ck_kind_name(ck_kind kind);
void ck_fill_weights(qk_type t, uint8_t *p, size_t n_elems, ck_kind kind);
void ck_fill_floats(float *x, size_t n, ck_kind kind);
/* A scale for qk_mm.scale. */
float ck_tensor_scale(ck_kind kind);

/* The tests, each for one table. */
void ck_test_table(const qk_table *t);
void ck_test_matmul(const qk_table *t);
void ck_test_x16(const qk_table *t);
void ck_test_dequant(const qk_table *t);
void ck_test_quantize(const qk_table *t);
void ck_test_exact(const qk_table *t);
void ck_test_vec(const qk_table *t);
void ck_test_ops(const qk_table *t);
void ck_test_thin(const qk_table *t);
void ck_test_state(const qk_table *t);
void ck_test_pick(const qk_table *t);
void ck_test_norm(const qk_table *t);
void ck_test_act(const qk_table *t);
void ck_test_kv(const qk_table *t);
void ck_test_latent(const qk_table *t);
void ck_test_recent(const qk_table *t);
void ck_test_half(const qk_table *t);
void ck_test_grid(const qk_table *t);

/* --bench: prints speeds of one level; --limits: the maximum speeds of the machine. */
void ck_bench_limits(qk_level level);
void ck_bench(const qk_table *t, const char *only_function);
void ck_bench_kv(const qk_table *t, const char *only_function);
void ck_bench_ops(const qk_table *t, const char *only_function);
/* --count=FORMAT:COLUMNS:TIMES: an exit status. */
int ck_count(const qk_table *t, const char *what);

#endif
