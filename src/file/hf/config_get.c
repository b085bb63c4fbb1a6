/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads settings of config.json with checks, and writes them as metadata. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/file/hf/model.h"
#include "src/file/rows.h"

#define KEY_MAX 128

/* --- reading --- */

/* Copies the first of the names, or the rest of them after it; false at the end. */
static bool next_name(const char **names, char name[KEY_MAX]) {
    const size_t n = strcspn(*names, "|");
    if (n == 0 || n >= KEY_MAX) return false;
    memcpy(name, *names, n);
    name[n] = '\0';
    *names += n + ((*names)[n] == '|');
    return true;
}

const QsfJson *qsf_hf_member(const QsfJson *object, const char *names) {
    char name[KEY_MAX];
    while (next_name(&names, name)) {
        const QsfJson *v = qsf_json_get(object, name);
        if (v != NULL && qsf_json_type(v) != QSF_JSON_NULL) return v;
    }
    return NULL;
}

/* The name in messages: the one that is there, or the first. */
static const char *shown(const QsfJson *object, const char *names, char name[KEY_MAX]) {
    const char *rest = names;
    while (next_name(&rest, name)) {
        const QsfJson *v = qsf_json_get(object, name);
        if (v != NULL && qsf_json_type(v) != QSF_JSON_NULL) return name;
    }
    (void)next_name(&names, name);
    return name;
}

static int bad_in(const QsfHfModel *m, const QsfJson *object, const char *names, const char *what) {
    char name[KEY_MAX];
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: '%s' %s", m->path, shown(object, names, name), what);
}

int qsf_hf_bad(const QsfHfModel *m, const char *names, const char *what) {
    return bad_in(m, m->text, names, what);
}

int qsf_hf_u32(const QsfHfModel *m, const char *names, uint32_t fallback, uint32_t *out) {
    char name[KEY_MAX];
    const QsfJson *v = qsf_hf_member(m->text, names);
    *out = fallback;
    if (v == NULL) return fallback > 0 ? QSF_OK : qsf_hf_bad(m, names, "is missing");
    const int64_t n = qsf_json_int(v, -1);
    if (n < 1 || n > QSF_HF_NUMBER)
        return qsf_err_set(m->err, QSF_E_MODEL, "%s: '%s' is %g, expected a whole number from 1 to %u",
                           m->path, shown(m->text, names, name), qsf_json_real(v, (double)NAN),
                           QSF_HF_NUMBER);
    *out = (uint32_t)n;
    return QSF_OK;
}

int qsf_hf_real(const QsfHfModel *m, const QsfJson *object, const char *names, double fallback, double lo,
                double hi, double *out) {
    char name[KEY_MAX];
    const QsfJson *v = qsf_hf_member(object, names);
    *out = fallback;
    if (v == NULL) return isnan(fallback) ? bad_in(m, object, names, "is missing") : QSF_OK;
    *out = qsf_json_real(v, (double)NAN);
    if (*out >= lo && *out <= hi) return QSF_OK;
    return qsf_err_set(m->err, QSF_E_MODEL, "%s: '%s' is %g, expected a number from %g to %g", m->path,
                       shown(object, names, name), *out, lo, hi);
}

int qsf_hf_bool(const QsfHfModel *m, const char *names, bool fallback, bool *out) {
    const QsfJson *v = qsf_hf_member(m->text, names);
    *out = qsf_json_bool(v, fallback);
    return v == NULL || qsf_json_type(v) == QSF_JSON_BOOL ? QSF_OK
                                                          : qsf_hf_bad(m, names, "is not true or false");
}

/* The value as text; "?" for those without. */
static const char *text_of(const QsfJson *v, char buf[KEY_MAX]) {
    const char *s = qsf_json_string(v, NULL);
    if (s != NULL) return s;
    switch (qsf_json_type(v)) {
    case QSF_JSON_BOOL: return qsf_json_bool(v, false) ? "true" : "false";
    case QSF_JSON_INT:
    case QSF_JSON_REAL: (void)snprintf(buf, KEY_MAX, "%.9g", qsf_json_real(v, (double)NAN)); return buf;
    default: return "?";
    }
}

bool qsf_hf_is(const QsfHfModel *m, const QsfHfMust *row) {
    char buf[KEY_MAX], value[KEY_MAX];
    const QsfJson *v = qsf_hf_member(m->text, row->hf);
    const char *text = v != NULL ? text_of(v, buf) : NULL, *rest = row->values;
    while (text != NULL && next_name(&rest, value))
        if (strcmp(text, value) == 0) return true;
    return v == NULL;
}

int qsf_hf_must(const QsfHfModel *m, const QsfHfMust *row) {
    char buf[KEY_MAX], value[KEY_MAX], name[KEY_MAX];
    if (qsf_hf_is(m, row)) return QSF_OK;
    const char *rest = row->values;
    QsfStrbuf list = QSF_STRBUF_INIT;
    while (next_name(&rest, value)) qsf_strbuf_addf(&list, "%s'%s'", list.len > 0 ? " or " : "", value);
    int rc = qsf_err_set(m->err, QSF_E_MODEL, "%s: '%s' is '%.*s', %s%s%s supported", m->path,
                         shown(m->text, row->hf, name), QSF_HF_SHOWN,
                         text_of(qsf_hf_member(m->text, row->hf), buf),
                         list.len > 0 ? "only " : "which is not", qsf_strbuf_str(&list),
                         list.len > 0 ? " is" : "");
    qsf_strbuf_free(&list);
    return rc;
}

/* Kinds of layers, also of architectures that do not ask for them: other names are errors. */
static bool is_layer_type(const char *name) {
    static const char *const types[] = { "full_attention",
                                         "sliding_attention",
                                         "chunked_attention",
                                         "attention",
                                         "linear_attention",
                                         "conv",
                                         "mamba",
                                         "moe",
                                         "mlp",
                                         "hybrid" };
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i]) == 0) return true;
    return false;
}

/* Reads layer_types: is each layer of this type? *there: the setting exists; if not, v is not changed. v
 * (n_layers). */
static int layers_of(const QsfHfModel *m, const char *type, bool *v, bool *there) {
    const QsfJson *list = qsf_hf_member(m->text, "layer_types");
    *there = list != NULL;
    if (list == NULL) return QSF_OK;
    if (qsf_json_type(list) != QSF_JSON_ARRAY || qsf_json_size(list) != m->n_layers)
        return qsf_hf_bad(m, "layer_types", "is not a list with a type for each layer");
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const char *name = qsf_json_string(qsf_json_at(list, i), NULL);
        if (!is_layer_type(name))
            return qsf_err_set(m->err, QSF_E_MODEL,
                               "%s: the type of layer %u in 'layer_types' is '%.*s', which is not "
                               "supported",
                               m->path, i, QSF_HF_SHOWN, name != NULL ? name : "?");
        v[i] = strcmp(name, type) == 0;
    }
    return QSF_OK;
}

bool qsf_hf_first_value(const QsfHfModel *m, const char *name, float *out) {
    unsigned char b[4];
    for (uint32_t f = 0; f < m->s->n_files; f++) {
        const QsfStTensor *t = qsf_st_find(&m->h[f], name, strlen(name));
        if (t == NULL || t->dtype == QSF_ST_NO_DTYPE) continue;
        const uint32_t n = qsf_dtype(t->dtype)->block_bytes;
        if (t->end - t->begin < n || qsf_file_pread(&m->s->files[f], b, n, t->begin, NULL) != QSF_OK)
            return false;
        *out = qsf_float_of(t->dtype, b);
        return true;
    }
    return false;
}

/* --- writing --- */

/* Returns "ARCH.name", with the lifetime of the source. Names that begin with '.' have no architecture. */
static const char *full_key(QsfHfModel *m, const char *name) {
    char key[KEY_MAX];
    int n = name[0] == '.' ? snprintf(key, sizeof key, "%s", name + 1)
                           : snprintf(key, sizeof key, "%s.%s", m->arch->gguf, name);
    return qsf_arena_strdup(&m->s->arena, key, (size_t)n, m->err);
}

int qsf_hf_put_u32(QsfHfModel *m, const char *name, uint32_t v) {
    const char *key = full_key(m, name);
    return key != NULL ? qsf_meta_make_u32(m->s, key, v, m->err) : m->err->code;
}

int qsf_hf_put_f32(QsfHfModel *m, const char *name, double v) {
    const char *key = full_key(m, name);
    return key != NULL ? qsf_meta_make_f32(m->s, key, (float)v, m->err) : m->err->code;
}

int qsf_hf_put_bool(QsfHfModel *m, const char *name, bool v) {
    const char *key = full_key(m, name);
    return key != NULL ? qsf_meta_make_bool(m->s, key, v, m->err) : m->err->code;
}

int qsf_hf_put_str(QsfHfModel *m, const char *name, const char *text) {
    const char *key = full_key(m, name);
    return key != NULL ? qsf_meta_make_str(m->s, key, text, strlen(text), m->err) : m->err->code;
}

int qsf_hf_put_u32s(QsfHfModel *m, const char *name, const uint32_t *v, uint32_t n) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const char *key = full_key(m, name);
    if (key == NULL) return m->err->code;
    for (uint32_t i = 0; i < n; i++) qsf_meta_put_le(&b, v[i], 4);
    return qsf_meta_make_array(m->s, key, QSF_META_I32, n, &b, m->err);
}

int qsf_hf_put_bools(QsfHfModel *m, const char *name, const bool *v, uint32_t n) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const char *key = full_key(m, name);
    if (key == NULL) return m->err->code;
    for (uint32_t i = 0; i < n; i++) qsf_meta_put_le(&b, v[i], 1);
    return qsf_meta_make_array(m->s, key, QSF_META_BOOL, n, &b, m->err);
}

int qsf_hf_put_f32s(QsfHfModel *m, const char *name, const float *v, uint32_t n) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const char *key = full_key(m, name);
    if (key == NULL) return m->err->code;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        qsf_meta_put_le(&b, bits, 4);
    }
    return qsf_meta_make_array(m->s, key, QSF_META_F32, n, &b, m->err);
}

int qsf_hf_put_windows(QsfHfModel *m) {
    bool there, *v = calloc(m->n_layers, sizeof *v);
    if (v == NULL) return qsf_err_memory(m->err, "%s", m->path);
    int rc = layers_of(m, "sliding_attention", v, &there);
    if (rc == QSF_OK && there) rc = qsf_hf_put_bools(m, "attention.sliding_window_pattern", v, m->n_layers);
    free(v);
    return rc;
}

int qsf_hf_put_window(QsfHfModel *m, uint32_t fallback) {
    uint32_t window;
    int rc = qsf_hf_u32(m, "sliding_window", fallback, &window);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

float *qsf_hf_make(QsfHfModel *m, const char *name, uint32_t n) {
    if (m->n_made == QSF_HF_MADE) {
        qsf_err_set(m->err, QSF_E_RUNTIME, "internal: too many tensors of config.json");
        return NULL;
    }
    float *v = qsf_source_alloc(m->s, n, sizeof *v, m->err);
    if (v != NULL) m->made[m->n_made++] = (QsfHfMade){ name, v, n };
    return v;
}
