/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"

const QsfTokenText *qsf_token_texts_find(const QsfTokenTexts *t, const char *text, size_t len) {
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].len == len && memcmp(t->items[i].text, text, len) == 0) return &t->items[i];
    return NULL;
}

/* {"tokens": [ID, ...]} */
static void read_reply(QsfTokenText *one, const char *json, size_t len) {
    QsfErr ignored = { 0 };
    QsfJson *root = json ? qsf_json_parse(json, len, &ignored) : NULL;
    const QsfJson *list = qsf_json_get(root, "tokens");
    const size_t n = list && qsf_json_type(list) == QSF_JSON_ARRAY ? qsf_json_size(list) : 0;
    const int64_t id = n == 1 ? qsf_json_int(qsf_json_at(list, 0), -1) : -1;
    one->n = n > INT32_MAX ? INT32_MAX : (uint32_t)n;
    if (id >= 0 && id <= INT32_MAX) one->id = (int32_t)id;
    qsf_json_free(root);
}

int qsf_token_texts_add(QsfTokenTexts *t, const char *text, size_t len, const char *json, size_t json_len,
                        QsfErr *err) {
    QsfTokenText *more = realloc(t->items, (t->n + 1) * sizeof *more);
    if (more) t->items = more;
    QsfTokenText one = { .text = more ? strndup(text, len) : NULL, .len = len, .id = -1 };
    if (!one.text) return qsf_err_memory(err, "the tokens of a text");
    read_reply(&one, json, json_len);
    t->items[t->n++] = one;
    return QSF_OK;
}

void qsf_token_texts_free(QsfTokenTexts *t) {
    for (size_t i = 0; i < t->n; i++) free(t->items[i].text);
    free(t->items);
    *t = (QsfTokenTexts){ 0 };
}

void qsf_token_question(QsfRemoteServer server, const char *model, const char *text, size_t len,
                        QsfStrbuf *b) {
    const bool vllm = server == QSF_SERVER_VLLM;
    qsf_strbuf_adds(b, "{\"model\": ");
    qsf_json_put_string(b, model, strlen(model));
    qsf_strbuf_adds(b, vllm ? ", \"prompt\": " : ", \"content\": ");
    qsf_json_put_string(b, text, len);
    qsf_strbuf_adds(b, vllm ? ", \"add_special_tokens\": false}" : ", \"add_special\": false}");
}
