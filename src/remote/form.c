/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/form.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/json.h"

#define GRAMMAR_MAX ((uint64_t)4 << 20) /* bytes of its file */

#define LLAMA    (QSF_ON(LLAMA))
#define VLLM     (QSF_ON(VLLM))
#define LMSTUDIO (QSF_ON(LMSTUDIO))
#define QSF      (QSF_ON(QSF))

const char *qsf_form_name(unsigned kind) {
    static const char *const names[QSF_GRAMMAR_N] = { "", "grammar", "json-schema", "regex", "only" };
    return kind < QSF_GRAMMAR_N ? names[kind] : "grammar";
}

bool qsf_form_known(unsigned kind, QsfRemoteServer server) {
    static const unsigned servers[QSF_GRAMMAR_N] = { [QSF_GRAMMAR_GBNF] = LLAMA | VLLM | QSF,
                                                     [QSF_GRAMMAR_SCHEMA] = QSF_ON_EVERY,
                                                     [QSF_GRAMMAR_REGEX] = VLLM | QSF,
                                                     [QSF_GRAMMAR_WORDS] = QSF };
    return kind < QSF_GRAMMAR_N && (servers[kind] & (1u << server)) != 0;
}

static int read_file(const char *path, QsfStrbuf *b, QsfErr *err) {
    QsfFile f;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    char *bytes = f.size <= GRAMMAR_MAX ? malloc((size_t)f.size + 1) : NULL;
    if (!bytes)
        rc = qsf_err_set(err, QSF_E_USAGE, "%s: the file has more than 4 MB", path);
    else
        rc = qsf_file_pread(&f, bytes, (size_t)f.size, 0, err);
    if (rc == QSF_OK) qsf_strbuf_add(b, bytes, (size_t)f.size);
    free(bytes);
    qsf_file_close(&f);
    return rc;
}

/* llama.cpp ignores a schema that allows everything, and then writes what is not JSON, and LM Studio does not
 * know json_object (lmstudio-ai/docs 1_developer/3_openai-compat/structured-output.md). */
static const char any_json[] =
    "{\"type\": [\"object\", \"array\", \"string\", \"number\", \"boolean\", \"null\"]}";

static void put_schema_text(const char *text, size_t len, QsfStrbuf *b) {
    qsf_strbuf_adds(b, ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
                       "{\"name\": \"answer\", \"schema\": ");
    qsf_strbuf_add(b, text, len);
    qsf_strbuf_adds(b, "}}");
}

static void put_any_json(QsfRemoteServer server, QsfStrbuf *b) {
    if ((LLAMA | LMSTUDIO) & (1u << server))
        put_schema_text(any_json, sizeof any_json - 1, b);
    else
        qsf_strbuf_adds(b, ", \"response_format\": {\"type\": \"json_object\"}");
}

/* A schema becomes a part of the request: it must be JSON. */
static int put_schema(QsfRemoteServer server, const char *text, size_t len, QsfStrbuf *b, QsfErr *err) {
    QsfJson *root = qsf_json_parse(text, len, err);
    if (!root) return qsf_err_prefix(err, "json-schema");
    const bool any = qsf_json_type(root) == QSF_JSON_OBJECT ? qsf_json_size(root) == 0
                                                            : qsf_json_bool(root, false);
    const size_t mark = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    qsf_json_free(root);
    if (any)
        put_any_json(server, b);
    else
        put_schema_text(text + mark, len - mark, b);
    return QSF_OK;
}

/* vLLM reads grammars in the notation of llama.cpp, too, but in the field of all that an answer has to match
 * (vllm-project/vllm docs/features/structured_outputs.md). */
static int put_text(const QsfFieldInput *in, unsigned kind, const char *text, size_t len, QsfStrbuf *b,
                    QsfErr *err) {
    const bool nested = in->server == QSF_SERVER_VLLM;
    if (kind == QSF_GRAMMAR_SCHEMA) return put_schema(in->server, text, len, b, err);
    qsf_strbuf_addf(b, ", %s\"%s\": ", nested ? "\"structured_outputs\": {" : "", qsf_form_name(kind));
    qsf_json_put_string(b, text, len);
    if (nested) qsf_strbuf_addc(b, '}');
    return QSF_OK;
}

int qsf_form_put(const QsfFieldInput *in, QsfStrbuf *b, QsfErr *err) {
    const QSFParams *p = &in->settings->params;
    const unsigned kind = in->grammar_kind ? in->grammar_kind : p->grammar_kind;
    if (kind == QSF_GRAMMAR_NONE) return QSF_OK;
    if (!qsf_form_known(kind, in->server))
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: %s cannot be told what an answer has to match this way; "
                           "/set %s off asks without it",
                           qsf_form_name(kind), qsf_kind(in->server)->name, qsf_form_name(kind));
    if (in->grammar_kind) return put_text(in, kind, in->grammar, in->grammar_len, b, err);
    if (kind == QSF_GRAMMAR_SCHEMA && strcmp(p->grammar, "any") == 0) {
        put_any_json(in->server, b);
        return QSF_OK;
    }
    if (kind == QSF_GRAMMAR_REGEX || kind == QSF_GRAMMAR_WORDS)
        return put_text(in, kind, p->grammar, strlen(p->grammar), b, err);
    QsfStrbuf text = QSF_STRBUF_INIT;
    int rc = read_file(p->grammar, &text, err);
    if (rc == QSF_OK) rc = put_text(in, kind, qsf_strbuf_str(&text), text.len, b, err);
    qsf_strbuf_free(&text);
    return rc;
}
