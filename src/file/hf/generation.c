/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads generation_config.json, the recommended sampling parameters and the end tokens
 * (huggingface/transformers generation/configuration_utils.py), and writes the metadata that
 * ggml-org/llama.cpp gguf-py writes for the former. */
#include <math.h>
#include <stdlib.h>

#include "src/file/hf/model.h"
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
        qsf_hf_ends_add(m, root, "generation_config.json");
    }
    qsf_json_free(root);
    qsf_whole_close(s, &w);
    free(path);
    return rc;
}
