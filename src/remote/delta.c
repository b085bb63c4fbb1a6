/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/delta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/utf8.h"

static const QsfDeltaUsage unknown = { -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, false };

void qsf_delta_begin(QsfDelta *d) {
    qsf_delta_free(d);
    d->usage = unknown;
}

static double number(const QsfJson *v, double fallback) {
    return v ? qsf_json_real(v, (double)qsf_json_int(v, 0)) : fallback;
}

static const char *string(const QsfJson *object, const char *key, size_t *len) {
    return qsf_json_string(qsf_json_get(object, key), len);
}

/* A text, or parts of which those of the type text count (Mistral). */
static void add_content(QsfStrbuf *b, const QsfJson *v) {
    size_t len;
    const char *s = qsf_json_string(v, &len);
    if (s) qsf_strbuf_add(b, s, len);
    for (size_t i = 0; !s && v && qsf_json_type(v) == QSF_JSON_ARRAY && i < qsf_json_size(v); i++) {
        const char *part = string(qsf_json_at(v, i), "text", &len);
        if (part) qsf_strbuf_add(b, part, len);
    }
}

/* A call begins with its name; its arguments follow in pieces. */
static void add_call(QsfDelta *d, const QsfJson *call, size_t place) {
    const QsfJson *function = qsf_json_get(call, "function");
    const int64_t index = qsf_json_int(qsf_json_get(call, "index"), (int64_t)place);
    size_t len;
    const char *name = string(function, "name", &len);
    if (name && len > 0 && (d->tool != index + 1)) {
        qsf_strbuf_adds(&d->text, "\n[tool call] ");
        qsf_strbuf_add(&d->text, name, len);
        qsf_strbuf_addc(&d->text, ' ');
        d->tool = index + 1;
    }
    const char *arguments = string(function, "arguments", &len);
    if (arguments) qsf_strbuf_add(&d->text, arguments, len);
}

static void add_message(QsfDelta *d, const QsfJson *m) {
    const QsfJson *calls = qsf_json_get(m, "tool_calls");
    const QsfJson *thought = qsf_json_get(m, "reasoning_content");
    if (!qsf_json_string(thought, &(size_t){ 0 })) thought = qsf_json_get(m, "reasoning");
    add_content(&d->reasoning, thought);
    add_content(&d->text, qsf_json_get(m, "content"));
    add_content(&d->text, qsf_json_get(m, "refusal"));
    for (size_t i = 0; calls && qsf_json_type(calls) == QSF_JSON_ARRAY && i < qsf_json_size(calls); i++)
        add_call(d, qsf_json_at(calls, i), i);
}

static QsfDeltaEnd end_of(const QsfJson *choice) {
    static const struct {
        const char *reason;
        QsfDeltaEnd end;
    } ends[] = { { "length", QSF_DELTA_LENGTH },         { "max_tokens", QSF_DELTA_LENGTH },
                 { "content_filter", QSF_DELTA_FILTER }, { "error", QSF_DELTA_FAILED },
                 { "abort", QSF_DELTA_FAILED },          { "cancelled", QSF_DELTA_FAILED } };
    const char *reason = string(choice, "finish_reason", NULL);
    if (!reason || !*reason) return QSF_DELTA_GOES_ON;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(ends[i].reason, reason) == 0) return ends[i].end;
    /* vLLM names the stop string, and the id of a token that ended the answer */
    return string(choice, "stop_reason", NULL) ? QSF_DELTA_STRING : QSF_DELTA_STOP;
}

static void take_choice(QsfDelta *d, const QsfJson *choice) {
    const QsfJson *delta = qsf_json_get(choice, "delta"), *message = qsf_json_get(choice, "message");
    if (qsf_json_int(qsf_json_get(choice, "index"), 0) != 0) return; /* only one was asked for */
    d->any_choice = true;
    add_message(d, delta ? delta : message);
    if (!delta && !message) add_content(&d->text, qsf_json_get(choice, "text"));
    const QsfDeltaEnd end = end_of(choice);
    if (end != QSF_DELTA_GOES_ON) d->end = end;
}

static void take_number(int64_t *dst, const QsfJson *object, const char *key) {
    const int64_t n = qsf_json_int(qsf_json_get(object, key), -1);
    if (n >= 0 && n <= INT32_MAX) *dst = n;
}

/* llama.cpp sends these with each piece if asked to. Its prompt is the evaluated and the reused tokens. */
static void take_timings(QsfDeltaUsage *to, const QsfJson *t) {
    int64_t read = -1;
    take_number(&to->cached, t, "cache_n");
    take_number(&read, t, "prompt_n");
    take_number(&to->completion, t, "predicted_n");
    if (read >= 0 && to->cached >= 0) to->prompt = read + to->cached;
    to->live = to->live || qsf_json_get(t, "predicted_n");
    to->prompt_tps = number(qsf_json_get(t, "prompt_per_second"), to->prompt_tps);
    to->decode_tps = number(qsf_json_get(t, "predicted_per_second"), to->decode_tps);
}

static void take_usage(QsfDelta *d, const QsfJson *root) {
    const QsfJson *u = qsf_json_get(root, "usage"), *p = qsf_json_get(root, "prompt_progress");
    QsfDeltaUsage *to = &d->usage;
    take_timings(to, qsf_json_get(root, "timings"));
    take_number(&to->prompt, u, "prompt_tokens");
    take_number(&to->completion, u, "completion_tokens");
    take_number(&to->cached, qsf_json_get(u, "prompt_tokens_details"), "cached_tokens");
    take_number(&to->reasoning, qsf_json_get(u, "completion_tokens_details"), "reasoning_tokens");
    const int64_t seed = qsf_json_int(qsf_json_get(root, "seed"), 0);
    if (seed > 0) d->seed = (uint64_t)seed;
    const char *id = string(root, "id", NULL);
    if (id && strlen(id) < sizeof d->id) snprintf(d->id, sizeof d->id, "%s", id);
    take_number(&to->read, p, "processed");
    take_number(&to->to_read, p, "total");
    take_number(&to->read_before, p, "cache");
    take_number(&to->read_ms, p, "time_ms");
}

/* OpenAI and llama.cpp have a code for a conversation that does not fit; vLLM only has a message
 * (vllm-project/vllm vllm/renderers/params.py, and earlier versions). */
static bool is_context_full(const QsfJson *e, const char *message) {
    static const char *const full[] = { "context_length_exceeded", "exceed_context_size_error" };
    static const char *const says[] = { "maximum context length", "context length is only" };
    const char *type = string(e, "type", NULL), *code = string(e, "code", NULL);
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        if ((type && !strcmp(type, full[i])) || (code && !strcmp(code, full[i]))) return true;
    return strstr(message, says[0]) || strstr(message, says[1]);
}

/* {"error": {"message": ...}}, {"error": "..."}, {"object": "error", "message": ...}, {"detail": ...}. */
static void take_error(QsfDelta *d, const QsfJson *root) {
    const QsfJson *e = qsf_json_get(root, "error"), *detail = qsf_json_get(root, "detail");
    const char *object = string(root, "object", NULL);
    size_t len = 0;
    if (!e && detail) e = detail;
    if (!e && object && strcmp(object, "error") == 0) e = root;
    if (!e || qsf_json_type(e) == QSF_JSON_NULL) return;
    d->is_error = true;
    if (qsf_json_type(e) == QSF_JSON_ARRAY) e = qsf_json_at(e, 0); /* of several the first */
    const char *text = qsf_json_string(e, &len);
    if (!text) text = string(e, "message", &len);
    if (!text) text = string(e, "msg", &len);
    const QsfJson *loc = qsf_json_get(e, "loc"); /* FastAPI: which field */
    for (size_t i = 0; loc && i < qsf_json_size(loc); i++) {
        const char *part = qsf_json_string(qsf_json_at(loc, i), NULL);
        if (part) qsf_strbuf_addf(&d->error, "%s: ", part);
    }
    if (text) qsf_strbuf_add(&d->error, text, len);
    if (is_context_full(e, qsf_strbuf_str(&d->error))) d->context_full = true;
}

/* ---- characters that a server cut in two, at the ends of its pieces ---- */

/* The code unit of an escape \uXXXX at s; -1 = there is none. */
static long escape(const char *s, size_t len) {
    char digits[5] = "";
    if (len < 6 || s[0] != '\\' || s[1] != 'u') return -1;
    memcpy(digits, s + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* Copies an escape, of which half a pair becomes U+FFFD; returns its bytes. */
static size_t mend_escape(const char *s, size_t len, QsfStrbuf *out) {
    const long unit = escape(s, len), next = len > 6 ? escape(s + 6, len - 6) : -1;
    const bool pair = unit >= 0xD800 && unit <= 0xDBFF && next >= 0xDC00 && next <= 0xDFFF;
    const size_t n = pair ? 12 : unit >= 0 ? 6 : len < 2 ? len : 2;
    if (!pair && unit >= 0xD800 && unit <= 0xDFFF)
        qsf_strbuf_adds(out, "\\ufffd");
    else
        qsf_strbuf_add(out, s, n);
    return n;
}

/* Copies JSON; each byte or escape of half a character becomes U+FFFD. */
static void mend(const char *json, size_t len, QsfStrbuf *out) {
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        if (json[i] == '\\') {
            i += mend_escape(json + i, len - i, out);
            continue;
        }
        const size_t n = qsf_utf8_next(json + i, len - i, &cp);
        if (cp == UINT32_MAX)
            qsf_strbuf_adds(out, "\xEF\xBF\xBD");
        else
            qsf_strbuf_add(out, json + i, n);
        i += n;
    }
}

static QsfJson *parse(const char *json, size_t len) {
    QsfErr why = { 0 };
    QsfStrbuf whole = QSF_STRBUF_INIT;
    QsfJson *root = qsf_json_parse(json, len, &why);
    if (root) return root;
    mend(json, len, &whole);
    if (qsf_strbuf_ok(&whole)) root = qsf_json_parse(qsf_strbuf_str(&whole), whole.len, &(QsfErr){ 0 });
    qsf_strbuf_free(&whole);
    return root;
}

int qsf_delta_parse(QsfDelta *d, const char *json, size_t len, QsfErr *err) {
    qsf_strbuf_clear(&d->text);
    qsf_strbuf_clear(&d->reasoning);
    QsfJson *root = parse(json, len);
    if (!root || qsf_json_type(root) != QSF_JSON_OBJECT) {
        qsf_json_free(root);
        return qsf_err_set(err, QSF_E_RUNTIME, "the server sent something that is not JSON: %.*s",
                           (int)(len < 60 ? len : 60), json);
    }
    const QsfJson *choices = qsf_json_get(root, "choices");
    take_error(d, root);
    for (size_t i = 0; choices && qsf_json_type(choices) == QSF_JSON_ARRAY && i < qsf_json_size(choices); i++)
        take_choice(d, qsf_json_at(choices, i));
    take_usage(d, root);
    qsf_json_free(root);
    if (!qsf_strbuf_ok(&d->text) || !qsf_strbuf_ok(&d->reasoning)) return qsf_err_memory(err, "the answer");
    return QSF_OK;
}

void qsf_delta_free(QsfDelta *d) {
    qsf_strbuf_free(&d->text);
    qsf_strbuf_free(&d->reasoning);
    qsf_strbuf_free(&d->error);
    *d = (QsfDelta){ 0 };
}
