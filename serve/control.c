/* SPDX-License-Identifier: GPL-3.0-or-later */
/* In the form of ggml-org/llama.cpp (tools/server/README.md). */
#include "serve/control.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"

#define BODY_MOST 4096u /* bytes: a tree of it is too small to count in the RAM budget */

static const char id_begin[] = "chatcmpl-";

static bool read_id(const char *text, uint64_t *id) {
    const size_t n = sizeof id_begin - 1;
    if (text == NULL || strncmp(text, id_begin, n) != 0 || strlen(text + n) != 16 ||
        strspn(text + n, "0123456789abcdef") != 16)
        return false;
    *id = strtoull(text + n, NULL, 16);
    return true;
}

/* Another id is one of an answer that is not written. */
static bool read_members(const QsfJson *root, uint64_t *id, ServeError *e) {
    const char *action = qsf_json_string(qsf_json_get(root, "action"), NULL);
    const char *text = qsf_json_string(qsf_json_get(root, "id"), NULL);
    if (action == NULL || strcmp(action, "reasoning_end") != 0)
        return serve_error_set(e, 400, NULL, "action", "action: expected reasoning_end");
    if (text == NULL) return serve_error_set(e, 400, NULL, "id", "id: expected the id of an answer");
    if (!read_id(text, id)) *id = 0;
    return true;
}

bool serve_control_parse(const char *body, size_t len, uint64_t *id, ServeError *e) {
    QsfErr why = { 0 };
    if (len > BODY_MOST)
        return serve_error_set(e, 413, "request_too_large", NULL, "the request has more than %u bytes",
                               BODY_MOST);
    QsfJson *root = qsf_json_parse(body, len, &why);
    if (root == NULL || qsf_json_type(root) != QSF_JSON_OBJECT) {
        qsf_json_free(root);
        return serve_error_set(e, 400, NULL, NULL, "the body is not a JSON object");
    }
    const bool ok = read_members(root, id, e);
    qsf_json_free(root);
    return ok;
}

void serve_control_reply(QsfStrbuf *b, bool found) {
    qsf_strbuf_adds(b, found ? "{\"success\": true}"
                             : "{\"success\": false, \"message\": \"no answer with this id is written\"}");
}
