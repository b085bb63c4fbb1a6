/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Differences of the forward pass's counters, for --json and --stats. The prefill is not counted: the cost of
 * a token is the cost of decoding. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "qsf_text.h"
#include "src/base/json.h"
#include "src/run/run.h"

#define MIB 1048576.0

int run_meter_init(RunMeter *m, const QsfRuntime *rt, QsfErr *err) {
    *m = (RunMeter){ .fwd = rt->fwd, .model = &rt->model, .n = rt->model.hp.n_layers + 1 };
    m->sum = calloc(m->n, sizeof *m->sum);
    m->from = calloc(m->n, sizeof *m->from);
    m->to = calloc(m->n, sizeof *m->to);
    if (m->sum && m->from && m->to) return QSF_OK;
    run_meter_free(m);
    return qsf_err_memory(err, "the statistics of the layers");
}

void run_meter_free(RunMeter *m) {
    free(m->sum);
    free(m->from);
    free(m->to);
    *m = (RunMeter){ 0 };
}

void run_meter_begin(RunMeter *m) {
    qsf_forward_stats(m->fwd, &m->s0);
    qsf_forward_layers(m->fwd, m->from, m->n);
}

static void add_layers(RunMeter *m) {
    qsf_forward_layers(m->fwd, m->to, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        m->sum[i].weight_bytes = m->to[i].weight_bytes;
        m->sum[i].pinned_bytes = m->to[i].pinned_bytes;
        m->sum[i].experts = m->to[i].experts;
        m->sum[i].experts_in = m->to[i].experts_in;
        m->sum[i].read_bytes += m->to[i].read_bytes - m->from[i].read_bytes;
        m->sum[i].wait_ns += m->to[i].wait_ns - m->from[i].wait_ns;
        m->sum[i].compute_ns += m->to[i].compute_ns - m->from[i].compute_ns;
    }
}

/* The members to be summed. */
static const size_t summed[] = {
    offsetof(QsfForwardStats, bytes_read),   offsetof(QsfForwardStats, read_ns),
    offsetof(QsfForwardStats, wait_ns),      offsetof(QsfForwardStats, compute_ns),
    offsetof(QsfForwardStats, attention_ns), offsetof(QsfForwardStats, prep_ns),
    offsetof(QsfForwardStats, sync_ns),      offsetof(QsfForwardStats, decode_tokens),
    offsetof(QsfForwardStats, expert_uses),  offsetof(QsfForwardStats, expert_misses),
    offsetof(QsfForwardStats, expert_reads), offsetof(QsfForwardStats, ahead_read),
    offsetof(QsfForwardStats, ahead_used),   offsetof(QsfForwardStats, ahead_wasted),
};

static uint64_t *member(QsfForwardStats *s, size_t i) { return (uint64_t *)(void *)((char *)s + summed[i]); }

/* Returns a - b for the summed members. */
static QsfForwardStats difference(const QsfForwardStats *a, const QsfForwardStats *b) {
    QsfForwardStats d = { 0 }, x = *a, y = *b;
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++)
        *member(&d, i) = *member(&x, i) - *member(&y, i);
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) d.matmul_ns[g] = a->matmul_ns[g] - b->matmul_ns[g];
    return d;
}

void run_meter_end(RunMeter *m) {
    QsfForwardStats now;
    qsf_forward_stats(m->fwd, &now);
    QsfForwardStats d = difference(&now, &m->s0);
    for (size_t i = 0; i < sizeof summed / sizeof *summed; i++) *member(&m->s, i) += *member(&d, i);
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) m->s.matmul_ns[g] += d.matmul_ns[g];
    add_layers(m);
}

QsfForwardStats run_meter_since(const RunMeter *m, const QsfForwardStats *before) {
    return difference(&m->s, before);
}

static double per_token(uint64_t v, double unit, const RunMeter *m) {
    return m->s.decode_tokens ? (double)v / unit / (double)m->s.decode_tokens : 0;
}

void run_put_layers(QsfStrbuf *b, const RunMeter *m) {
    qsf_strbuf_adds(b, ", \"layers\": [");
    for (uint32_t i = 0; i < m->n; i++) {
        const QsfLayerStats *l = &m->sum[i];
        const struct {
            const char *key;
            double value;
        } row[] = {
            { "weight_mb", (double)l->weight_bytes / MIB },
            { "pinned_mb", (double)l->pinned_bytes / MIB },
            { "read_mb", per_token(l->read_bytes, MIB, m) },
            { "wait_ms", per_token(l->wait_ns, 1e6, m) },
            { "compute_ms", per_token(l->compute_ns, 1e6, m) },
        };
        qsf_strbuf_addf(b, "%s{\"layer\": %u", i ? ", " : "", (unsigned)i);
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            qsf_strbuf_addf(b, ", \"%s\": ", row[k].key);
            qsf_json_put_real(b, row[k].value);
        }
        if (l->experts > 0)
            qsf_strbuf_addf(b, ", \"experts\": %u, \"experts_in_ram\": %u", l->experts, l->experts_in);
        qsf_strbuf_adds(b, "}");
    }
    qsf_strbuf_adds(b, "]");
}

static void print_layer(const RunMeter *m, uint32_t i) {
    const QsfLayerStats *l = &m->sum[i];
    char name[16];
    if (i + 1 < m->n)
        snprintf(name, sizeof name, "%u", (unsigned)i);
    else
        snprintf(name, sizeof name, "head");
    fprintf(stderr, "%5s %10.2f %10.2f %10.2f %10.2f %10.2f\n", name, (double)l->weight_bytes / MIB,
            (double)l->pinned_bytes / MIB, per_token(l->read_bytes, MIB, m), per_token(l->wait_ns, 1e6, m),
            per_token(l->compute_ns, 1e6, m));
}

void run_print_stats(const RunMeter *m) {
    const QsfForwardStats *s = &m->s;
    uint64_t busy = s->wait_ns + s->compute_ns;
    qsf_text_fprintf(
        stderr, "layer  weight MB  pinned MB    read MB    wait ms compute ms   (per token, %llu tokens)\n",
        (unsigned long long)s->decode_tokens);
    for (uint32_t i = 0; i < m->n; i++) print_layer(m, i);
    fprintf(stderr,
            "read %.2f MB per token, %.2f GB/s; waited %.2f ms, computed %.2f ms per token; stall %.1f %%\n",
            per_token(s->bytes_read, MIB, m), s->read_ns ? (double)s->bytes_read / (double)s->read_ns : 0,
            per_token(s->wait_ns, 1e6, m), per_token(s->compute_ns, 1e6, m),
            busy ? 100.0 * (double)s->wait_ns / (double)busy : 0);
}
