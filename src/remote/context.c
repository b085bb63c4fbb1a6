/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/context.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"

static void take(uint32_t *dst, const QsfJson *object, const char *key) {
    const int64_t n = qsf_json_int(qsf_json_get(object, key), 0);
    if (n > 0 && n <= INT32_MAX) *dst = (uint32_t)n;
}

static bool is_called(const QsfJson *object, const char *key, const char *model) {
    const char *name = qsf_json_string(qsf_json_get(object, key), NULL);
    return name && strcmp(name, model) == 0;
}

/* The member of an array whose name is that of the model. */
static const QsfJson *find(const QsfJson *list, const char *key, const char *model) {
    const size_t n = list && qsf_json_type(list) == QSF_JSON_ARRAY ? qsf_json_size(list) : 0;
    for (size_t i = 0; i < n; i++)
        if (is_called(qsf_json_at(list, i), key, model)) return qsf_json_at(list, i);
    return NULL;
}

/* ---- llama.cpp */

static void read_props(const QsfJson *root, const char *model, QsfContextSize *out) {
    (void)model;
    take(&out->ctx, qsf_json_get(root, "default_generation_settings"), "n_ctx");
}

/* ---- Ollama */

/* Reads a list of models that are loaded. */
static void read_ps(const QsfJson *root, const char *model, QsfContextSize *out) {
    const QsfJson *list = qsf_json_get(root, "models"), *found = find(list, "name", model);
    take(&out->ctx, found ? found : find(list, "model", model), "context_length");
}

/* The line "num_ctx N" of the parameters that its model file sets. */
static void read_parameters(const char *text, QsfContextSize *out) {
    static const char name[] = "num_ctx";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, sizeof name - 1) != 0 || strspn(line + sizeof name - 1, " \t") == 0) continue;
        const long n = strtol(line + sizeof name, NULL, 10);
        if (n > 0 && n <= INT32_MAX) out->ctx = (uint32_t)n;
    }
}

static void read_show(const QsfJson *root, const char *model, QsfContextSize *out) {
    char key[100];
    const QsfJson *info = qsf_json_get(root, "model_info");
    const char *architecture = qsf_json_string(qsf_json_get(info, "general.architecture"), NULL);
    const char *parameters = qsf_json_string(qsf_json_get(root, "parameters"), NULL);
    (void)model;
    snprintf(key, sizeof key, "%.60s.context_length", architecture ? architecture : "");
    take(&out->ctx_train, info, key);
    if (parameters) read_parameters(parameters, out);
}

/* ---- LM Studio */

static void read_models_v0(const QsfJson *root, const char *model, QsfContextSize *out) {
    const QsfJson *found = find(qsf_json_get(root, "data"), "id", model);
    take(&out->ctx, found, "loaded_context_length");
    take(&out->ctx_train, found, "max_context_length");
}

/* The one of the instances that has the name of the model, or the first. */
static void read_models_v1(const QsfJson *root, const char *model, QsfContextSize *out) {
    const QsfJson *list = qsf_json_get(root, "models"), *found = find(list, "key", model);
    const size_t n = list && qsf_json_type(list) == QSF_JSON_ARRAY ? qsf_json_size(list) : 0;
    const QsfJson *loaded = qsf_json_get(found, "loaded_instances");
    const QsfJson *one = find(loaded, "id", model);
    for (size_t i = 0; i < n && !found && !one; i++)
        one = find(qsf_json_get(qsf_json_at(list, i), "loaded_instances"), "id", model);
    if (!one && loaded) one = qsf_json_at(loaded, 0);
    take(&out->ctx, qsf_json_get(one, "config"), "context_length");
    take(&out->ctx_train, found, "max_context_length");
}

/* ---- */

typedef struct Probe {
    const char *path;
    bool query; /* the name of the model follows it */
    bool post;  /* the name is in the body */
    void (*read)(const QsfJson *root, const char *model, QsfContextSize *out);
} Probe;

#define PROBES 2

/* A server of llama.cpp may have several models, each with its own context; to ask for it must not load one
 * (ggml-org/llama.cpp tools/server/server-models.cpp). A server with one model ignores the arguments.
 * ollama/ollama docs/api.md, api/types.go; lmstudio-ai/docs 1_developer/2_rest. */
static const Probe probes[QSF_SERVERS][PROBES] = {
    [QSF_SERVER_LLAMA] = { { "/props?autoload=false&model=", true, false, read_props } },
    [QSF_SERVER_OLLAMA] = { { "/api/ps", false, false, read_ps }, { "/api/show", false, true, read_show } },
    [QSF_SERVER_LMSTUDIO] = { { "/api/v0/models", false, false, read_models_v0 },
                              { "/api/v1/models", false, false, read_models_v1 } },
};

static const Probe *probe(QsfRemoteServer server, unsigned i) {
    return server < QSF_SERVERS && i < PROBES && probes[server][i].path ? &probes[server][i] : NULL;
}

static void put_escaped(const char *name, QsfStrbuf *b) {
    for (; *name; name++)
        if (isalnum((unsigned char)*name) || strchr("-._~", *name))
            qsf_strbuf_addc(b, *name);
        else
            qsf_strbuf_addf(b, "%%%02X", (unsigned char)*name);
}

bool qsf_context_request(QsfRemoteServer server, unsigned i, const char *model, QsfStrbuf *path,
                         QsfStrbuf *body) {
    const Probe *p = probe(server, i);
    if (!p) return false;
    qsf_strbuf_adds(path, p->path);
    if (p->query) put_escaped(model, path);
    if (p->post) {
        qsf_strbuf_adds(body, "{\"model\": ");
        qsf_json_put_string(body, model, strlen(model));
        qsf_strbuf_addc(body, '}');
    }
    return true;
}

void qsf_context_read(QsfRemoteServer server, unsigned i, const char *model, const char *json, size_t len,
                      QsfContextSize *out) {
    QsfErr ignored = { 0 };
    const Probe *p = probe(server, i);
    QsfJson *root = p ? qsf_json_parse(json, len, &ignored) : NULL;
    if (root) p->read(root, model, out);
    qsf_json_free(root);
}
