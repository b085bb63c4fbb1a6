/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tokens that end an answer, from eos_token_id of generation_config.json and of config.json, which is an
 * id or a list (huggingface/transformers generation/configuration_utils.py). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/file/hf/model.h"
#include "src/file/vocab/keys.h"

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
    (void)snprintf(m->s->notice, sizeof m->s->notice,
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

void qsf_hf_ends_add(QsfHfModel *m, const QsfJson *object, const char *file) {
    const QsfJson *v = qsf_hf_member(object, "eos_token_id");
    if (v == NULL) return;
    if (qsf_json_type(v) != QSF_JSON_ARRAY) add(m, v, file);
    for (size_t i = 0; qsf_json_type(v) == QSF_JSON_ARRAY && i < qsf_json_size(v); i++)
        add(m, qsf_json_at(v, i), file);
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
    qsf_hf_ends_add(m, m->text, "config.json");
    if (m->text != m->root) qsf_hf_ends_add(m, m->root, "config.json");
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
