/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: what a server sends. The bytes are a stream of events, in pieces whose length the first byte
 * gives, whose events are read as chunks of an answer; and they are a list of models, the size of a context,
 * tokens, and a page. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/remote/context.h"
#include "src/remote/delta.h"
#include "src/remote/inline_think.h"
#include "src/remote/models.h"
#include "src/remote/problem.h"
#include "src/remote/sse.h"
#include "src/remote/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text of a server is UTF-8, whatever it sends. */
static void read_event(QsfDelta *d, QsfInlineThink *t, const QsfStrbuf *json) {
    QsfStrbuf reasoning = QSF_STRBUF_INIT, answer = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    if (qsf_delta_parse(d, qsf_strbuf_str(json), json->len, &e) == QSF_OK) {
        if (!qsf_utf8_valid(qsf_strbuf_str(&d->text), d->text.len)) abort();
        if (!qsf_utf8_valid(qsf_strbuf_str(&d->reasoning), d->reasoning.len)) abort();
        qsf_inline_think_add(t, qsf_strbuf_str(&d->text), d->text.len, &reasoning, &answer);
    } else if (e.msg[0] == '\0') {
        abort();
    }
    qsf_strbuf_free(&reasoning);
    qsf_strbuf_free(&answer);
}

/* Returns a hash of the events: it must not depend on the pieces. */
static uint64_t read_stream(const char *bytes, size_t size, size_t piece) {
    QsfSse s = { 0 };
    QsfDelta d = { 0 };
    QsfInlineThink t = { 0 };
    uint64_t hash = 1469598103934665603u;
    qsf_delta_begin(&d);
    for (size_t at = 0; at < size;) {
        const size_t n = piece < size - at ? piece : size - at;
        bool event;
        const size_t used = qsf_sse_read(&s, bytes + at, n, &event);
        if (used > n || (!event && used < n && !s.too_long)) abort();
        at += used;
        if (event) {
            for (size_t i = 0; i < s.data.len; i++) hash = (hash ^ (uint8_t)s.data.data[i]) * 1099511628211u;
            hash = (hash ^ 0x100) * 1099511628211u;
            read_event(&d, &t, &s.data);
        } else if (used < n) {
            break;
        }
    }
    if (qsf_sse_end(&s)) read_event(&d, &t, &s.data);
    qsf_sse_free(&s);
    qsf_delta_free(&d);
    qsf_inline_think_free(&t);
    return hash;
}

static void read_page(const char *bytes, size_t size) {
    QsfReplyHead h;
    QsfErr e = { 0 };
    qsf_reply_head(&h, bytes, size);
    (void)qsf_problem(&h, "server", bytes, size, NULL, &e);
    if (e.msg[0] == '\0' || !qsf_utf8_valid(e.msg, strlen(e.msg))) abort();
}

static void read_facts(const char *bytes, size_t size) {
    QsfTokenTexts texts = { 0 };
    QsfErr e = { 0 };
    for (int server = 0; server < QSF_SERVERS; server++)
        for (unsigned i = 0; i < 3; i++) {
            QsfContextSize context = { 0, 0 };
            qsf_context_read((QsfRemoteServer)server, i, "m", bytes, size, &context);
            if (context.ctx > INT32_MAX || context.ctx_train > INT32_MAX) abort();
        }
    (void)qsf_token_texts_add(&texts, "m", 1, bytes, size, &e);
    qsf_token_texts_free(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    const char *bytes = (const char *)data + 1;
    const size_t piece = data[0] > 0 ? data[0] : 1;
    QsfRemoteModels models = { 0 };
    QsfErr e = { 0 };
    if (read_stream(bytes, size - 1, piece) != read_stream(bytes, size - 1, size)) abort();
    (void)qsf_remote_models_parse(&models, bytes, size - 1, &e);
    qsf_remote_models_free(&models);
    read_page(bytes, size - 1);
    read_facts(bytes, size - 1);
    return 0;
}
