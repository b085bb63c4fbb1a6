/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metadata keys of a model with range checks. */
#include "src/model/keys.h"

#include <math.h>
#include <stdio.h>

const char *qsf_keys_name(QsfKeys *k, const char *name) {
    snprintf(k->key, sizeof k->key, "%s.%s", k->arch, name);
    return k->key;
}

/* Looks for a key; records what is used without it, of type QSF_META_N if that is not a value. */
static bool look(QsfKeys *k, const char *name, QsfReadValue fallback) {
    qsf_keys_name(k, name);
    const bool has = k->src != NULL && qsf_meta_has(k->src, k->key);
    qsf_reads_key(k->reads, k->arch, name, has ? NULL : &fallback);
    return has;
}

static QsfReadValue value_u32(uint32_t v) { return (QsfReadValue){ .type = QSF_META_U32, .v.u = v }; }
static QsfReadValue value_f32(float v) { return (QsfReadValue){ .type = QSF_META_F32, .v.f = v }; }

bool qsf_keys_has(QsfKeys *k, const char *name) {
    return look(k, name, (QsfReadValue){ .type = QSF_META_N });
}

bool qsf_keys_is_array(QsfKeys *k, const char *name) {
    QsfMetaArray a;
    QsfErr ignored = { 0 };
    bool present = false, is_int, is_float = false;
    if (!qsf_keys_has(k, name)) return false;
    is_int = qsf_meta_array_open(k->src, k->key, QSF_META_I64, &a, &present, &ignored) == QSF_OK && present;
    if (is_int) qsf_meta_array_close(&a);
    qsf_err_clear(&ignored);
    if (!is_int)
        is_float = qsf_meta_array_open(k->src, k->key, QSF_META_F32, &a, &present, &ignored) == QSF_OK &&
                   present;
    if (is_float) qsf_meta_array_close(&a);
    return is_int || is_float;
}

int qsf_keys_bad(const QsfKeys *k, const char *what) {
    return qsf_err_set(k->err, QSF_E_MODEL, "%s: metadata key '%s' %s",
                       k->src != NULL ? qsf_source_path(k->src) : "", k->key, what);
}

static int check_u32(const QsfKeys *k, int64_t v, uint32_t low, uint32_t high) {
    if (v >= (int64_t)low && v <= (int64_t)high) return QSF_OK;
    if (k->bound != NULL)
        return qsf_err_set(k->err, QSF_E_MODEL,
                           "%s: metadata key '%s' is %lld, expected %u to %u because of '%s.%s'",
                           qsf_source_path(k->src), k->key, (long long)v, low, high, k->arch, k->bound);
    return qsf_err_set(k->err, QSF_E_MODEL, "%s: metadata key '%s' is %lld, expected %u to %u",
                       qsf_source_path(k->src), k->key, (long long)v, low, high);
}

int qsf_keys_u32(QsfKeys *k, const char *name, uint32_t fallback, uint32_t low, uint32_t high,
                 uint32_t *out) {
    int rc = QSF_OK;
    *out = fallback;
    if (look(k, name, value_u32(fallback))) {
        rc = qsf_meta_u32(k->src, k->key, fallback, out, k->err);
        if (rc == QSF_OK) rc = check_u32(k, *out, low, high);
    }
    k->bound = NULL;
    return rc;
}

static int check_f32(const QsfKeys *k, float v, float low, float high) {
    if (v >= low && v <= high) return QSF_OK; /* false for NaN */
    return qsf_err_set(k->err, QSF_E_MODEL,
                       "%s: metadata key '%s' is %g, which is out of range, expected %g to %g",
                       qsf_source_path(k->src), k->key, (double)v, (double)low, (double)high);
}

int qsf_keys_f32(QsfKeys *k, const char *name, float fallback, float low, float high, float *out) {
    *out = fallback;
    if (!look(k, name, value_f32(fallback))) return QSF_OK;
    int rc = qsf_meta_f32(k->src, k->key, fallback, out, k->err);
    return rc == QSF_OK ? check_f32(k, *out, low, high) : rc;
}

int qsf_keys_bool(QsfKeys *k, const char *name, bool fallback, bool *out) {
    *out = fallback;
    const bool has = look(k, name, (QsfReadValue){ .type = QSF_META_BOOL, .v.b = fallback });
    return has ? qsf_meta_bool(k->src, k->key, fallback, out, k->err) : QSF_OK;
}

int qsf_keys_need_u32(QsfKeys *k, const char *name, uint32_t low, uint32_t high, uint32_t *out) {
    if (qsf_keys_has(k, name)) return qsf_keys_u32(k, name, 0, low, high, out);
    if (k->bound == NULL) return qsf_keys_bad(k, "is missing");
    return qsf_err_set(k->err, QSF_E_MODEL, "%s: metadata key '%s' is missing, but '%s.%s' is there",
                       k->src != NULL ? qsf_source_path(k->src) : "", k->key, k->arch, k->bound);
}

int qsf_keys_need_f32(QsfKeys *k, const char *name, float low, float high, float *out) {
    if (!qsf_keys_has(k, name)) return qsf_keys_bad(k, "is missing");
    return qsf_keys_f32(k, name, 0, low, high, out);
}

int qsf_keys_str(QsfKeys *k, const char *name, const char *fallback, const char **out) {
    *out = fallback;
    const bool has = look(k, name, (QsfReadValue){ .type = QSF_META_STRING, .v.s = fallback });
    return has ? qsf_meta_str(k->src, k->key, out, NULL, k->err) : QSF_OK;
}

/* ---- one number per block ---- */

static int open_array(QsfKeys *k, QsfMetaType type, uint32_t n, QsfMetaArray *a) {
    bool present;
    int rc = qsf_meta_array_open(k->src, k->key, type, a, &present, k->err);
    if (rc != QSF_OK) return rc;
    if (a->count == n || (k->n_extra < n && a->count == n - k->n_extra)) return QSF_OK;
    rc = qsf_err_set(
        k->err, QSF_E_MODEL,
        "%s: metadata key '%s' is an array of %llu elements, expected one element per layer (%u by "
        "'%s.block_count')",
        qsf_source_path(k->src), k->key, (unsigned long long)a->count, n, k->arch);
    qsf_meta_array_close(a);
    return rc;
}

static int read_list(QsfKeys *k, QsfMetaArray *a, uint32_t low, uint32_t high, uint32_t *out) {
    int rc = QSF_OK;
    for (uint32_t i = 0; rc == QSF_OK && i < a->count; i++) {
        int64_t v = 0;
        rc = qsf_meta_array_i64(a, &v, k->err);
        if (rc == QSF_OK) rc = check_u32(k, v, low, high);
        out[i] = (uint32_t)v;
    }
    return rc;
}

int qsf_keys_u32_each(QsfKeys *k, const char *name, uint32_t fallback, uint32_t low, uint32_t high,
                      uint32_t n, uint32_t *out) {
    QsfMetaArray a;
    if (!qsf_keys_is_array(k, name)) {
        uint32_t all;
        int rc = qsf_keys_u32(k, name, fallback, low, high, &all);
        for (uint32_t i = 0; i < n; i++) out[i] = all;
        return rc;
    }
    int rc = open_array(k, QSF_META_I64, n, &a);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = (uint32_t)a.count; i < n; i++) out[i] = fallback;
    rc = read_list(k, &a, low, high, out);
    qsf_meta_array_close(&a);
    return rc;
}

int qsf_keys_u32_list(QsfKeys *k, const char *name, uint32_t low, uint32_t high, uint32_t min, uint32_t max,
                      uint32_t *out) {
    QsfMetaArray a;
    bool present = false;
    for (uint32_t i = 0; i < max; i++) out[i] = 0;
    if (!qsf_keys_is_array(k, name)) {
        int rc = qsf_keys_u32(k, name, 0, low, high, out);
        for (uint32_t i = 1; i < max; i++) out[i] = out[0];
        return rc;
    }
    int rc = qsf_meta_array_open(k->src, k->key, QSF_META_I64, &a, &present, k->err);
    if (rc != QSF_OK || !present) return rc;
    rc = a.count >= min && a.count <= max
             ? read_list(k, &a, low, high, out)
             : qsf_err_set(k->err, QSF_E_MODEL,
                           "%s: metadata key '%s' is an array of %llu elements, expected %u to %u",
                           qsf_source_path(k->src), k->key, (unsigned long long)a.count, min, max);
    qsf_meta_array_close(&a);
    return rc;
}

int qsf_keys_f32_each(QsfKeys *k, const char *name, float fallback, float low, float high, uint32_t n,
                      float *out) {
    QsfMetaArray a;
    if (!qsf_keys_is_array(k, name)) {
        float all;
        int rc = qsf_keys_f32(k, name, fallback, low, high, &all);
        for (uint32_t i = 0; i < n; i++) out[i] = all;
        return rc;
    }
    int rc = open_array(k, QSF_META_F32, n, &a);
    if (rc != QSF_OK) return rc;
    for (uint32_t i = (uint32_t)a.count; i < n; i++) out[i] = fallback;
    for (uint32_t i = 0; rc == QSF_OK && i < a.count; i++) {
        rc = qsf_meta_array_f32(&a, &out[i], k->err);
        if (rc == QSF_OK) rc = check_f32(k, out[i], low, high);
    }
    qsf_meta_array_close(&a);
    return rc;
}
