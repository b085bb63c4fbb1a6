/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What /metrics and /health answer. Metrics are in the text format of Prometheus
 * (prometheus.io/docs/instrumenting/exposition_formats). */
#include <inttypes.h>
#include <string.h>

#include "serve/server.h"
#include "src/base/clock.h"
#include "src/base/json.h"

static void put(QsfStrbuf *b, const char *name, const char *type, const char *help, double value) {
    qsf_strbuf_addf(b, "# HELP qsf_%s %s\n# TYPE qsf_%s %s\nqsf_%s %.15g\n", name, help, name, type, name,
                    value);
}

static void put_statuses(QsfStrbuf *b, const ServeCounters *c) {
    qsf_strbuf_adds(b, "# HELP qsf_http_responses_total Responses by status.\n"
                       "# TYPE qsf_http_responses_total counter\n");
    for (unsigned i = 0; i < SERVE_STATUSES; i++)
        if (c->status[i] > 0)
            qsf_strbuf_addf(b, "qsf_http_responses_total{status=\"%u\"} %" PRIu64 "\n", i, c->status[i]);
}

static void put_memory(QsfStrbuf *b, const QSFStats *st) {
    put(b, "ram_budget_bytes", "gauge", "RAM budget of the process.", (double)st->budget);
    put(b, "resident_bytes", "gauge", "Resident memory of the process.", (double)st->rss);
    put(b, "resident_peak_bytes", "gauge", "Peak resident memory since the start.", (double)st->peak_rss);
    put(b, "weights_pinned_bytes", "gauge", "Weights in RAM.", (double)st->pinned_bytes);
    put(b, "weights_streamed_bytes", "gauge", "Weights read from disk for each token.",
        (double)st->streamed_bytes);
    put(b, "context_tokens", "gauge", "Context size.", st->ctx_size);
    put(b, "context_used_tokens", "gauge", "Tokens in the KV cache.", st->ctx_used);
}

void serve_put_metrics(ServeServer *s, QsfStrbuf *b) {
    QSFStats st;
    qsf_worker_stats(s->worker, &st);
    pthread_mutex_lock(&s->lock);
    const ServeCounters c = s->counters;
    const uint32_t waiting = s->waiting, running = s->running != NULL, connections = s->connections;
    const ServeMemory memory = s->memory;
    pthread_mutex_unlock(&s->lock);
    put_statuses(b, &c);
    put(b, "answers_total", "counter", "Answers that ended.", (double)c.answers);
    put(b, "cancelled_total", "counter", "Requests whose clients went away.", (double)c.cancelled);
    put(b, "prompt_tokens_total", "counter", "Tokens of prompts.", (double)c.prompt_tokens);
    put(b, "prompt_cached_tokens_total", "counter", "Those of them that were not evaluated again.",
        (double)c.cached_tokens);
    put(b, "generated_tokens_total", "counter", "Tokens of answers.", (double)c.tokens);
    put(b, "answer_seconds_total", "counter", "Time of answers, without waiting.", (double)c.answer_ns / 1e9);
    put(b, "requests_waiting", "gauge", "Requests in the queue.", waiting);
    put(b, "requests_running", "gauge", "Requests that are answered now.", running);
    put(b, "connections", "gauge", "Open connections.", connections);
    put(b, "text_bytes", "gauge", "Memory of requests and of answers that wait to be read.",
        (double)memory.used);
    put(b, "text_limit_bytes", "gauge", "Limit of that.", (double)memory.limit);
    put_memory(b, &st);
}

void serve_put_health(ServeServer *s, QsfStrbuf *b) {
    pthread_mutex_lock(&s->lock);
    const bool stopping = s->stopping;
    const uint32_t waiting = s->waiting, running = s->running != NULL;
    pthread_mutex_unlock(&s->lock);
    qsf_strbuf_addf(b, "{\"status\": \"%s\", \"model\": ", stopping ? "stopping" : "ok");
    qsf_json_put_string(b, s->model.id, strlen(s->model.id));
    qsf_strbuf_addf(b, ", \"running\": %u, \"waiting\": %u}", running, waiting);
}
