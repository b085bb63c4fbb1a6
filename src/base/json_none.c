/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces json.c in builds without jansson: JSON can be written (jsonput.c) but not parsed. */
#include "src/base/json.h"

#ifdef QSF_WITHOUT_JANSSON

QsfJson *qsf_json_parse(const char *text, size_t len, QsfErr *err) {
    (void)text;
    (void)len;
    qsf_err_set(err, QSF_E_RUNTIME, "this program was built without jansson and cannot read JSON");
    return NULL;
}

/* No value can exist, so these are never called; they are here for the linker. */
void qsf_json_free(QsfJson *root) { (void)root; }

QsfJsonType qsf_json_type(const QsfJson *v) { return (void)v, QSF_JSON_NULL; }

const QsfJson *qsf_json_get(const QsfJson *object, const char *key) { return (void)object, (void)key, NULL; }

size_t qsf_json_size(const QsfJson *array_or_object) { return (void)array_or_object, 0; }

const QsfJson *qsf_json_at(const QsfJson *array, size_t i) { return (void)array, (void)i, NULL; }

const QsfJson *qsf_json_member(const QsfJson *object, size_t i, const char **key) {
    return (void)object, (void)i, (void)key, NULL;
}

const void *qsf_json_next(const QsfJson *object, const void *iter, const char **key, const QsfJson **value) {
    return (void)object, (void)iter, (void)key, (void)value, NULL;
}

const char *qsf_json_string(const QsfJson *v, size_t *len) { return (void)v, (void)len, NULL; }

int64_t qsf_json_int(const QsfJson *v, int64_t fallback) { return (void)v, fallback; }

double qsf_json_real(const QsfJson *v, double fallback) { return (void)v, fallback; }

bool qsf_json_bool(const QsfJson *v, bool fallback) { return (void)v, fallback; }

#endif
