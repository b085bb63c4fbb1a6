/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"

#define ID_MAX    300u /* bytes of a name */
#define LIST_MOST 8u   /* names in a message */

static uint32_t count_of(const QsfJson *object, const char *key) {
    const int64_t n = qsf_json_int(qsf_json_get(object, key), 0);
    return n > 0 && n <= INT32_MAX ? (uint32_t)n : 0;
}

static uint64_t large(const QsfJson *object, const char *key) {
    const int64_t n = qsf_json_int(qsf_json_get(object, key), 0);
    return n > 0 ? (uint64_t)n : 0;
}

/* vLLM: max_model_len; llama.cpp: meta; OpenRouter: context_length. */
static void take_facts(QsfRemoteModel *m, const QsfJson *v) {
    const QsfJson *meta = qsf_json_get(v, "meta");
    const char *by = qsf_json_string(qsf_json_get(v, "owned_by"), NULL);
    snprintf(m->owned_by, sizeof m->owned_by, "%.60s", by ? by : "");
    m->ctx = count_of(v, "max_model_len");
    if (m->ctx == 0) m->ctx = count_of(v, "context_length");
    if (m->ctx == 0) m->ctx = count_of(meta, "n_ctx");
    m->ctx_train = count_of(meta, "n_ctx_train");
    m->params = large(meta, "n_params");
    m->bytes = large(meta, "size");
}

/* A name with control characters would be sent back, but shown differently. */
static bool is_name(const char *s) {
    if (!s || !*s || strlen(s) > ID_MAX) return false;
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f) return false;
    return true;
}

static bool add(QsfRemoteModels *out, const QsfJson *v) {
    const char *id = qsf_json_string(qsf_json_get(v, "id"), NULL);
    if (!is_name(id)) {
        out->bad_names += id != NULL;
        return true;
    }
    QsfRemoteModel *m = &out->items[out->n];
    *m = (QsfRemoteModel){ .id = strdup(id) };
    if (!m->id) return false;
    take_facts(m, v);
    out->n++;
    return true;
}

int qsf_remote_models_parse(QsfRemoteModels *out, const char *json, size_t len, QsfErr *err) {
    qsf_remote_models_free(out);
    QsfJson *root = qsf_json_parse(json, len, err);
    const QsfJson *data = qsf_json_get(root, "data");
    const bool list = data && qsf_json_type(data) == QSF_JSON_ARRAY;
    size_t n = list ? qsf_json_size(data) : 0;
    /* Ollama without models: null (ollama/ollama openai/openai.go) */
    if (root && !list && !(data && qsf_json_type(data) == QSF_JSON_NULL))
        qsf_err_set(err, QSF_E_RUNTIME, "the reply to /v1/models has no list of models");
    if (n > QSF_REMOTE_MODELS_MAX) n = QSF_REMOTE_MODELS_MAX;
    out->items = n > 0 ? calloc(n, sizeof *out->items) : NULL;
    bool ok = n == 0 || out->items;
    for (size_t i = 0; ok && i < n; i++) ok = add(out, qsf_json_at(data, i));
    qsf_json_free(root);
    if (!ok) qsf_err_memory(err, "the list of models");
    return err && err->code != QSF_OK ? err->code : root ? QSF_OK : QSF_E_RUNTIME;
}

static const QsfRemoteModel *none(const QsfRemoteModels *m, const char *name, const char *why, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (m->n == 0 && !*name) {
        qsf_err_set(err, QSF_E_MODEL, "the server has no models");
        return NULL;
    }
    for (size_t i = 0; i < m->n && i < LIST_MOST; i++)
        qsf_strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", m->items[i].id);
    if (m->n > LIST_MOST) qsf_strbuf_adds(&b, ", ...");
    qsf_err_set(err, QSF_E_MODEL, "%s: %s; it has %s", name, why, m->n > 0 ? qsf_strbuf_str(&b) : "none");
    qsf_strbuf_free(&b);
    return NULL;
}

const QsfRemoteModel *qsf_remote_models_find(const QsfRemoteModels *m, const char *name, QsfErr *err) {
    const QsfRemoteModel *found = NULL;
    if (m->n > 0 && !*name) return &m->items[0];
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->items[i].id, name) == 0) return &m->items[i];
    for (size_t i = 0; i < m->n; i++) {
        if (!strcasestr(m->items[i].id, name)) continue;
        if (found) return none(m, name, "the server has several models with this in their names", err);
        found = &m->items[i];
    }
    return found ? found : none(m, name, "the server does not have this model", err);
}

void qsf_remote_models_free(QsfRemoteModels *m) {
    for (size_t i = 0; i < m->n; i++) free(m->items[i].id);
    free(m->items);
    *m = (QsfRemoteModels){ 0 };
}
