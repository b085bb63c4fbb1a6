/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as the body of a request to the server, and as an answer with tool calls. Texts of
 * what is accepted are valid and in the body; what is refused has a reason; what is made of calls is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/calls.h"
#include "serve/request.h"
#include "serve/responses.h"
#include "src/base/json.h"
#include "src/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *body, size_t size, const char *text, size_t len) {
    if (len == 0) return;
    if (text < body || text + len > body + size || !qsf_utf8_valid(text, len)) abort();
}

static void check_request(bool chat, const uint8_t *data, size_t size) {
    static QSFSettings base;
    ServeRequest r;
    ServeError e = { 0 };
    char *body = malloc(size > 0 ? size : 1);
    if (body == NULL) abort();
    if (size > 0) memcpy(body, data, size);
    qsf_settings_default(&base);
    const bool ok = serve_request_parse(&r, chat, body, size, &base, &e);
    if (ok != (e.status == 0) || (!ok && (e.message[0] == '\0' || e.status != 400))) abort();
    if (ok && (r.n_messages == 0 || r.n_messages > SERVE_MESSAGES || r.n_stop > SERVE_STOPS)) abort();
    for (size_t i = 0; ok && i < r.n_messages; i++) {
        const QSFMessage *m = &r.messages[i];
        check_text(body, size, m->content, m->len);
        check_text(body, size, m->reasoning, m->reasoning_len);
        if (m->call_id != NULL) check_text(body, size, m->call_id, strlen(m->call_id));
    }
    for (size_t i = 0; ok && i < r.n_stop; i++) check_text(body, size, r.stop[i], strlen(r.stop[i]));
    if (serve_request_held(&r) > serve_request_room(size)) abort();
    serve_request_free(&r);
    free(body);
}

/* The tools of the request are the bytes before the first zero byte. */
static void check_calls(const char *bytes, size_t all) {
    QsfStrbuf b = QSF_STRBUF_INIT, list = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    size_t before = 0;
    const char *zero = all > 0 ? memchr(bytes, 0, all) : NULL;
    const ServeCallTools tools = { bytes, zero != NULL ? (size_t)(zero - bytes) : 0 };
    const char *text = zero != NULL ? zero + 1 : bytes;
    const size_t size = all - (size_t)(text - bytes);
    if (serve_calls_before(text, size) > size) abort();
    const size_t n = serve_calls_read(text, size, &tools, false, true, &before, &b);
    if (before > size || (n == 0) != (b.len == 0)) abort();
    if (n > 0) qsf_strbuf_addf(&list, "[%.*s]", (int)b.len - 2, b.data);
    QsfJson *j = n > 0 && memchr(b.data, 0, b.len) == NULL ? qsf_json_parse(list.data, list.len, &err) : NULL;
    if (n > 0 && (j == NULL || qsf_json_size(j) != n)) abort();
    qsf_json_free(j);
    qsf_strbuf_free(&b);
    qsf_strbuf_free(&list);
}

/* What is made of a request of /v1/responses fits in the memory that is charged for it. */
static void check_responses(const uint8_t *data, size_t size) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ServeMemory memory = { .used = size, .limit = 3 * size + 512 };
    ServeError e = { 0 };
    size_t n = size, cap = size;
    char *body = malloc(size > 0 ? size : 1);
    if (body == NULL) abort();
    if (size > 0) memcpy(body, data, size);
    const bool ok = serve_responses_replace(&body, &n, &cap, &memory, &lock, &e);
    if (ok != (e.status == 0) || (!ok && e.status != 400)) abort();
    if (n > cap || memory.used != cap) abort();
    if (ok) check_request(true, (const uint8_t *)body, n);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_responses(data, size);
    check_request(true, data, size);
    check_request(false, data, size);
    check_calls((const char *)data, size);
    return 0;
}
