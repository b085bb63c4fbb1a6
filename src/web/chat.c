/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine of qsf_engine.h with texts and JSON instead of structures. */
#include "src/web/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_engine.h"
#include "src/base/json.h"
#include "src/base/strbuf.h"
#include "src/base/web/web.h"

#define ERROR_TEXT 512
#define TOKENS_MAX QSF_TOKENS_KNOWN

typedef struct Message {
    char *role, *content, *reasoning;
} Message;

static struct {
    QSFWorker *worker;
    QSFSettings settings;
    Message *message; /* (n_messages), of the next request */
    size_t n_messages, n_allocated;
    char error[ERROR_TEXT];
    QsfStrbuf out;
} page = { .out = QSF_STRBUF_INIT };

static const char *fail(const char *why) {
    snprintf(page.error, sizeof page.error, "%s", why);
    return page.error;
}

/* ---- JSON ---- */

static void begin(void) {
    qsf_strbuf_clear(&page.out);
    qsf_strbuf_addc(&page.out, '{');
}

static void put_name(const char *name) {
    if (page.out.len > 1) qsf_strbuf_addc(&page.out, ',');
    qsf_json_put_string(&page.out, name, strlen(name));
    qsf_strbuf_addc(&page.out, ':');
}

static void put_text(const char *name, const char *text, size_t len) {
    put_name(name);
    qsf_json_put_string(&page.out, text, len);
}

static void put_number(const char *name, double v) {
    put_name(name);
    qsf_json_put_real(&page.out, v);
}

static const char *end(void) {
    qsf_strbuf_addc(&page.out, '}');
    return qsf_strbuf_ok(&page.out) ? qsf_strbuf_str(&page.out) : "";
}

/* ---- life ---- */

const char *qsf_web_start(double limit) {
    unsetenv("HOME"); /* nothing is kept: there is no disk */
    qsf_web_memory_limit((uint64_t)limit);
    qsf_settings_default(&page.settings);
    page.settings.ram_budget = (uint64_t)limit;
    page.settings.no_learn = true;
    page.worker = qsf_worker_start(&page.settings, page.error, sizeof page.error);
    return page.worker != NULL ? "" : page.error;
}

const char *qsf_web_version(void) { return qsf_version(); }

int qsf_web_add_file(const char *name, double size) { return qsf_web_file_add(name, (uint64_t)size); }

const char *qsf_web_load(const char *name) {
    return qsf_worker_load(page.worker, name, &page.settings) != 0 ? "" : fail("the engine is busy");
}

/* ---- settings ---- */

const char *qsf_web_set(const char *name, const char *value) {
    const QSFSetting *row = qsf_setting_find(name);
    if (row == NULL) return fail("there is no such setting");
    if (qsf_setting_set(&page.settings, row, value, page.error, sizeof page.error) != 0) return page.error;
    if (row->flags & QSF_SETTING_LIVE) qsf_worker_set_params(page.worker, &page.settings.params);
    return "";
}

const char *qsf_web_setting(const char *name) {
    const QSFSetting *row = qsf_setting_find(name);
    char value[QSF_SETTING_TEXT];
    if (row == NULL) return "";
    qsf_setting_get(&page.settings, row, value, sizeof value);
    begin();
    put_text("name", row->name, strlen(row->name));
    put_text("value", value, strlen(value));
    put_text("help", row->help, strlen(row->help));
    put_number("min", row->min);
    put_number("max", row->max);
    put_number("step", row->step);
    return end();
}

/* ---- requests ---- */

static void message_free(Message *m) {
    free(m->role);
    free(m->content);
    free(m->reasoning);
}

void qsf_web_begin(void) {
    while (page.n_messages > 0) message_free(&page.message[--page.n_messages]);
}

static bool make_room(void) {
    if (page.n_messages < page.n_allocated) return true;
    const size_t n = page.n_allocated == 0 ? 16 : 2 * page.n_allocated;
    Message *more = realloc(page.message, n * sizeof *more);
    if (more == NULL) return false;
    page.message = more;
    page.n_allocated = n;
    return true;
}

const char *qsf_web_message(const char *role, const char *content, const char *reasoning) {
    if (!make_room()) return fail("out of memory for the conversation");
    Message m = { strdup(role), strdup(content), strdup(reasoning) };
    if (m.role == NULL || m.content == NULL || m.reasoning == NULL) {
        message_free(&m);
        return fail("out of memory for the conversation");
    }
    page.message[page.n_messages++] = m;
    return "";
}

const char *qsf_web_submit(void) {
    QSFMessage *all = calloc(page.n_messages + 1, sizeof *all);
    if (all == NULL) return fail("out of memory for the conversation");
    for (size_t i = 0; i < page.n_messages; i++) {
        const Message *m = &page.message[i];
        all[i] = (QSFMessage){ .role = m->role,
                               .content = m->content,
                               .len = strlen(m->content),
                               .reasoning = m->reasoning[0] != '\0' ? m->reasoning : NULL,
                               .reasoning_len = strlen(m->reasoning) };
    }
    const QSFRequest r = { .messages = all, .n_messages = page.n_messages };
    const uint64_t id = qsf_worker_submit(page.worker, &r);
    free(all);
    qsf_web_begin();
    return id != 0 ? "" : fail("the engine is busy");
}

void qsf_web_cancel(void) { qsf_worker_cancel(page.worker); }

/* ---- events ---- */

static const char *const event_names[] = {
    [QSF_EVENT_NONE] = "none",          [QSF_EVENT_LOADED] = "loaded", [QSF_EVENT_NOTICE] = "notice",
    [QSF_EVENT_TEXT] = "text",          [QSF_EVENT_DONE] = "done",     [QSF_EVENT_ERROR] = "error",
    [QSF_EVENT_PLAN] = "plan",          [QSF_EVENT_AHEAD] = "ahead",   [QSF_EVENT_EVICTED] = "evicted",
    [QSF_EVENT_REASONING] = "reasoning"
};

/* Settings that the user has not changed become those that the model recommends. */
static void take_model_defaults(void) {
    qsf_worker_model_defaults(page.worker, &page.settings);
    qsf_worker_set_params(page.worker, &page.settings.params);
}

static void put_done(const QSFEvent *e) {
    char seed[24];
    const char *stop = qsf_stop_name(e->stop);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)e->seed); /* more digits than a number of JSON */
    put_text("stop", stop, strlen(stop));
    put_text("seed", seed, strlen(seed));
    put_number("tokens", e->tokens);
    put_number("prompt", e->prompt_tokens);
    put_number("reused", e->reused_tokens);
}

const char *qsf_web_next(void) {
    QSFEvent e;
    if (!qsf_worker_next(page.worker, &e)) return "";
    if (e.type == QSF_EVENT_LOADED) take_model_defaults();
    begin();
    put_text("type", event_names[e.type], strlen(event_names[e.type]));
    if (e.text != NULL) put_text("text", e.text, e.text_len);
    if (e.type == QSF_EVENT_DONE) put_done(&e);
    if (e.type == QSF_EVENT_ERROR || e.type == QSF_EVENT_PLAN) put_number("code", e.code);
    return end();
}

/* ---- what the page shows ---- */

static void put_memory(const QSFStats *s) {
    put_number("memory", (double)s->rss);
    put_number("budget", (double)s->budget);
    put_number("pinned", (double)s->pinned_bytes);
    put_number("streamed", (double)s->streamed_bytes);
    put_number("read", (double)s->bytes_read);
}

static void put_speed(const QSFStats *s) {
    put_number("prefillDone", s->prefill_done);
    put_number("prefillTotal", s->prefill_total);
    put_number("prefillSpeed", s->prefill_tps);
    put_number("speed", s->decode_tps);
    put_number("tokens", s->out_tokens);
    put_number("threads", s->threads);
}

const char *qsf_web_stats(void) {
    static QSFStats s; /* too large for the stack of the owner */
    static const char *const states[] = { "empty", "loading", "idle", "prefill", "decode" };
    qsf_worker_stats(page.worker, &s);
    begin();
    put_text("state", states[s.state], strlen(states[s.state]));
    put_text("model", s.model_name, strlen(s.model_name));
    put_text("description", s.model_desc, strlen(s.model_desc));
    put_text("level", s.backend, strlen(s.backend));
    put_text("plan", s.plan_note, strlen(s.plan_note));
    put_number("context", s.ctx_size);
    put_number("contextUsed", s.ctx_used);
    put_number("layers", s.n_layers);
    put_number("layersUsed", s.quality_layers);
    put_memory(&s);
    put_speed(&s);
    return end();
}

const char *qsf_web_tokens(void) {
    static int32_t ids[TOKENS_MAX];
    const uint32_t n = qsf_worker_token_ids(page.worker, 0, ids, TOKENS_MAX);
    begin();
    put_name("ids");
    for (uint32_t i = 0; i < n; i++) qsf_strbuf_addf(&page.out, "%s%d", i == 0 ? "[" : ",", (int)ids[i]);
    qsf_strbuf_adds(&page.out, n == 0 ? "[]" : "]");
    return end();
}
