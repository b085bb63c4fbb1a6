/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads generation_config.json, the recommended sampling parameters and the end tokens
 * (huggingface/transformers generation/configuration_utils.py), and writes the metadata that
 * ggml-org/llama.cpp gguf-py writes for the former. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/file/hf/model.h"
#include "src/file/vocab/keys.h"
#include "src/file/whole.h"

#define MAX_FILE ((uint64_t)1 << 20)

static const struct {
    const char *hf, *key;
    bool whole;   /* must be an integer */
    bool sampled; /* ignored if do_sample is false */
} rows[] = {
    { "temperature", "general.sampling.temp", false, true },
    { "top_k", "general.sampling.top_k", true, true },
    { "top_p", "general.sampling.top_p", false, true },
    { "min_p", "general.sampling.min_p", false, true },
    { "repetition_penalty", "general.sampling.penalty_repeat", false, false },
};

/* Skips values of the wrong type: these are hints, and no reason to reject the model. */
static int put_row(QsfSource *s, const QsfJson *root, size_t i, QsfErr *err) {
    const QsfJson *v = qsf_json_get(root, rows[i].hf);
    if (v == NULL || (qsf_json_type(v) != QSF_JSON_INT && qsf_json_type(v) != QSF_JSON_REAL)) return QSF_OK;
    const double real = qsf_json_real(v, (double)NAN);
    const int64_t n = qsf_json_int(v, -1);
    if (rows[i].whole)
        return n >= 0 && n <= INT32_MAX ? qsf_meta_make_u32(s, rows[i].key, (uint32_t)n, err) : QSF_OK;
    return fabs(real) < 1e6 ? qsf_meta_make_f32(s, rows[i].key, (float)real, err) : QSF_OK;
}

static int put_rows(QsfSource *s, const QsfJson *root, QsfErr *err) {
    const bool sampled = qsf_json_bool(qsf_json_get(root, "do_sample"), true);
    int rc = QSF_OK;
    for (size_t i = 0; rc == QSF_OK && i < sizeof rows / sizeof *rows; i++)
        if (sampled || !rows[i].sampled) rc = put_row(s, root, i, err);
    return rc;
}

/* --- the tokens that end an answer: eos_token_id of both files, an id or a list --- */

static bool is_control_or_user(int64_t type) { return type == 3 || type == 4; }

static bool contains(const QsfHfModel *m, int64_t id) {
    for (uint32_t i = 0; i < m->n_ends; i++)
        if (m->ends[i] == id) return true;
    return false;
}

static const char *kind_of(const QsfJson *v) {
    static const char *const kinds[] = {
        [QSF_JSON_NULL] = "null",          [QSF_JSON_BOOL] = "a truth value", [QSF_JSON_INT] = "a number",
        [QSF_JSON_REAL] = "a real number", [QSF_JSON_STRING] = "a string",    [QSF_JSON_ARRAY] = "a list",
        [QSF_JSON_OBJECT] = "an object"
    };
    return kinds[qsf_json_type(v)];
}

/* The first value that is skipped is reported. */
static void skip(QsfHfModel *m, const QsfJson *v, const char *file) {
    char number[24] = "";
    if (m->s->notice[0] != '\0') return;
    if (qsf_json_type(v) == QSF_JSON_INT)
        (void)snprintf(number, sizeof number, "%" PRId64, qsf_json_int(v, 0));
    (void)qsf_plural_snprintf(
        m->s->notice, sizeof m->s->notice,
        "%s: 'eos_token_id' contains %s, which is not one of the %u tokens and was ignored", file,
        *number != '\0' ? number : kind_of(v), m->n_vocab);
}

/* -1 means none. */
static void add(QsfHfModel *m, const QsfJson *v, const char *file) {
    const bool is_int = qsf_json_type(v) == QSF_JSON_INT;
    const int64_t id = qsf_json_int(v, -1);
    if (is_int && id == -1) return;
    if (!is_int || id < 0 || id >= m->n_vocab) {
        skip(m, v, file);
        return;
    }
    if (m->n_ends < QSF_HF_ENDS && !contains(m, id)) m->ends[m->n_ends++] = (uint32_t)id;
}

/* Adds the tokens of eos_token_id, an id or a list; others are skipped, with a notice
 * in m->s that names the file. */
static void add_ends(QsfHfModel *m, const QsfJson *object, const char *file) {
    const QsfJson *v = qsf_hf_member(object, "eos_token_id");
    if (v == NULL) return;
    if (qsf_json_type(v) != QSF_JSON_ARRAY) add(m, v, file);
    for (size_t i = 0; qsf_json_type(v) == QSF_JSON_ARRAY && i < qsf_json_size(v); i++)
        add(m, qsf_json_at(v, i), file);
}

int qsf_hf_generation_put(QsfHfModel *m) {
    QsfSource *s = m->s;
    QsfWhole w;
    QsfJson *root = NULL;
    char *path = qsf_hf_path(s->dir, "generation_config.json", m->err);
    if (path == NULL) return m->err->code;
    int rc = qsf_whole_open(s, path, MAX_FILE, &w, m->err);
    if (rc == QSF_OK && w.text != NULL) rc = qsf_whole_json(&w, &root, m->err);
    if (rc == QSF_OK && root != NULL && qsf_json_type(root) == QSF_JSON_OBJECT) {
        rc = put_rows(s, root, m->err);
        add_ends(m, root, "generation_config.json");
    }
    qsf_json_free(root);
    qsf_whole_close(s, &w);
    free(path);
    return rc;
}

/* Drops the ids after the first n whose tokens are ordinary pieces. */
static int drop_ordinary(QsfHfModel *m, uint32_t n) {
    QsfMetaArray a;
    bool present, special[QSF_HF_ENDS] = { 0 };
    int64_t type = 0;
    int rc = qsf_meta_array_open(m->s, "tokenizer.ggml.token_type", QSF_META_I64, &a, &present, m->err);
    if (rc != QSF_OK || !present) return rc;
    for (uint64_t id = 0; id < a.count && rc == QSF_OK; id++) {
        rc = qsf_meta_array_i64(&a, &type, m->err);
        for (uint32_t i = n; rc == QSF_OK && i < m->n_ends; i++)
            if (m->ends[i] == id) special[i] = is_control_or_user(type);
    }
    qsf_meta_array_close(&a);
    uint32_t kept = n;
    for (uint32_t i = n; i < m->n_ends; i++)
        if (special[i]) m->ends[kept++] = m->ends[i];
    m->n_ends = kept;
    return rc;
}

int qsf_hf_ends_put(QsfHfModel *m) {
    static const char key[] = "tokenizer.ggml.eos_token_id";
    const uint32_t generation = m->n_ends;
    int64_t eos;
    add_ends(m, m->text, "config.json");
    if (m->text != m->root) add_ends(m, m->root, "config.json");
    /* A generation_config.json replaces the list of config.json, where defaults of other vocabularies are
     * left over; special tokens cannot be part of an answer anyway. */
    int rc = generation > 0 && m->n_ends > generation ? drop_ordinary(m, generation) : QSF_OK;
    if (rc == QSF_OK) rc = qsf_meta_i64(m->s, key, -1, &eos, m->err);
    if (rc != QSF_OK || m->n_ends == 0) return rc;
    if (eos < 0) {
        eos = m->ends[0];
        rc = qsf_meta_make_u32(m->s, key, m->ends[0], m->err);
    }
    if (rc != QSF_OK || (m->n_ends == 1 && m->ends[0] == eos)) return rc;
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (uint32_t i = 0; i < m->n_ends; i++) qsf_meta_put_le(&b, m->ends[i], 4);
    rc = qsf_meta_make_array(m->s, QSF_KEY_ENDS, QSF_META_I32, m->n_ends, &b, m->err);
    qsf_strbuf_free(&b);
    return rc;
}
