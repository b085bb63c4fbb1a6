/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time of a decoded token by part, and the share of the machine's read bandwidth that decoding uses. */
#include "src/base/json.h"
#include "src/run/run.h"

/* Multiply-adds of one token in the matrices of the layers; of experts, in those that it uses. */
static double layer_macs(const QsfModel *m) {
    double macs = 0;
    for (uint32_t i = 0; i < qsf_unit_count(m); i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        const double share = u.on_demand ? (double)u.n_used / u.n_expert : 1;
        for (unsigned t = 0; t < u.n && u.matmul_class != QSF_MATMUL_HEAD; t++)
            macs += share * u.rows[t] * u.k;
    }
    return macs;
}

double run_weight_bytes(const RunMeter *m) {
    double bytes = 0;
    for (uint32_t i = 0; i < m->n; i++) bytes += (double)m->sum[i].weight_bytes;
    return bytes;
}

RunBreakdown run_breakdown(const RunMeter *m, const QsfForwardStats *s, const RunFigures *f,
                           double read_speed, uint64_t sampling_ns, uint64_t decode_ns) {
    RunBreakdown b = { .read_gbps = read_speed / 1e9,
                       .prefill_gmacs = f->prefill_tps * layer_macs(m->model) / 1e9 };
    double tokens = (double)s->decode_tokens;
    if (tokens < 1) return b;
    uint64_t matvec = 0;
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) matvec += s->matmul_ns[g];
    double parts = (double)matvec + (double)s->attention_ns + (double)s->prep_ns + (double)s->sync_ns +
                   (double)s->wait_ns;
    double other = (double)decode_ns - parts;
    b.matvec_ms = (double)matvec / tokens / 1e6;
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) b.matmul_ms[g] = (double)s->matmul_ns[g] / tokens / 1e6;
    b.attention_ms = (double)s->attention_ns / tokens / 1e6;
    b.prep_ms = (double)s->prep_ns / tokens / 1e6;
    b.sync_ms = (double)s->sync_ns / tokens / 1e6;
    b.disk_ms = (double)s->wait_ns / tokens / 1e6;
    b.other_ms = other > 0 ? other / tokens / 1e6 : 0;
    b.sampling_ms = (double)sampling_ns / tokens / 1e6;
    b.decode_gbps = run_weight_bytes(m) * f->decode_tps / 1e9;
    b.bandwidth = read_speed > 0 ? b.decode_gbps / b.read_gbps : 0;
    return b;
}

void run_put_breakdown(QsfStrbuf *out, const RunBreakdown *b) {
    const struct {
        const char *key;
        double value;
    } row[] = {
        { "matvec_ms", b->matvec_ms },     { "attention_ms", b->attention_ms },
        { "prep_ms", b->prep_ms },         { "sync_ms", b->sync_ms },
        { "disk_ms", b->disk_ms },         { "other_ms", b->other_ms },
        { "sampling_ms", b->sampling_ms }, { "prefill_gmacs", b->prefill_gmacs },
        { "decode_gbps", b->decode_gbps }, { "read_gbps", b->read_gbps },
        { "bandwidth", b->bandwidth },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        qsf_strbuf_addf(out, ", \"%s\": ", row[i].key);
        qsf_json_put_real(out, row[i].value);
    }
}

void run_print_breakdown(QsfStrbuf *out, const RunBreakdown *b) {
    qsf_strbuf_addf(
        out,
        "token    %.2f ms matvec, %.2f attention, %.2f norms and quantizing, %.2f waiting for threads, "
        "%.2f for the disk, "
        "%.2f other; then %.2f sampling\n",
        b->matvec_ms, b->attention_ms, b->prep_ms, b->sync_ms, b->disk_ms, b->other_ms, b->sampling_ms);
    qsf_strbuf_addf(out, "limits   prefill %.1f GMAC/s in the layers; decode %.2f GB/s of weights",
                    b->prefill_gmacs, b->decode_gbps);
    if (b->read_gbps > 0)
        qsf_strbuf_addf(out, ", %.0f %% of the %.2f GB/s of reading them without computing",
                        100 * b->bandwidth, b->read_gbps);
    qsf_strbuf_adds(out, "\n");
}

void run_put_share_warning(QsfStrbuf *out, const RunBreakdown *b, double weight_bytes, double cache_bytes) {
    if (!(b->bandwidth > 1)) return;
    qsf_strbuf_addf(out, "warning: decoding used %.0f %% of the measured read speed: ", 100 * b->bandwidth);
    if (weight_bytes <= cache_bytes)
        qsf_strbuf_addf(out, "the weights (%.1f MB) fit in the CPU's cache, so memory does not limit it",
                        weight_bytes / 1048576);
    else
        qsf_strbuf_adds(
            out,
            "the machine's speed changed between the two measurements; measure again when it is idle, or "
            "with more --repeats");
}
