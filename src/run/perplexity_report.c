/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Progress and result of --perplexity. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/run/run_perplexity.h"

#define PROGRESS_NS 200000000u

static void on_progress(void *arg, const QsfPerplexityResult *r, size_t k) {
    RunPerplexity *m = arg;
    uint64_t now = qsf_now_ns();
    if (now - m->shown_ns < PROGRESS_NS) return;
    m->shown_ns = now;
    fprintf(stderr, "\rwindow %zu of %zu, %llu of %zu tokens, perplexity %.4f\033[K", k + 1, r->n_windows,
            (unsigned long long)r->nll.n, r->n_scored, exp(r->nll.mean));
    fflush(stderr);
}

void run_perplexity_start(RunPerplexity *m) {
    m->start_ns = m->shown_ns = qsf_now_ns();
    m->p.arg = m;
    m->p.progress = isatty(STDERR_FILENO) ? on_progress : NULL;
}

void run_perplexity_clear(const RunPerplexity *m) {
    if (m->shown_ns != m->start_ns) fputs("\r\033[K", stderr);
}

static void put(QsfStrbuf *b, const char *key, double v) {
    qsf_strbuf_addf(b, ", \"%s\": ", key);
    qsf_json_put_real(b, v);
}

static double seconds(const RunPerplexity *m) { return (double)(qsf_now_ns() - m->start_ns) / 1e9; }

/* d exp(x) = exp(x) dx: the error of a perplexity from that of the mean. */
static double exp_error(const QsfMean *m) { return exp(m->mean) * qsf_mean_error(m); }

static void put_base(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    put(b, "mean_kl", r->kl.mean);
    put(b, "mean_kl_error", qsf_mean_error(&r->kl));
    put(b, "median_kl", r->kl_median);
    put(b, "p99_kl", r->kl_p99);
    put(b, "max_kl", r->kl_max);
    put(b, "same_top", (double)r->same_top / (double)r->n_scored);
    put(b, "base_nll", r->base_nll.mean);
    put(b, "base_ppl", exp(r->base_nll.mean));
    put(b, "ppl_ratio", exp(r->excess.mean));
    put(b, "ppl_ratio_error", exp_error(&r->excess));
    qsf_strbuf_adds(b, ", \"base\": ");
    qsf_json_put_string(b, m->reader.about.name, strlen(m->reader.about.name));
}

static void put_json(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    qsf_strbuf_addf(b, "{\"tokens\": %zu", r->n_scored);
    put(b, "nll", r->nll.mean);
    put(b, "nll_error", qsf_mean_error(&r->nll));
    put(b, "ppl", exp(r->nll.mean));
    put(b, "ppl_error", exp_error(&r->nll));
    if (m->p.base) put_base(b, m, r);
    qsf_strbuf_addf(b,
                    ", \"text_tokens\": %zu, \"windows\": %zu, \"window\": %u, \"stride\": %u, \"bos\": %s",
                    m->p.n, r->n_windows, m->p.window, m->p.stride, m->p.bos >= 0 ? "true" : "false");
    put(b, "seconds", seconds(m));
    qsf_strbuf_addf(b,
                    ", \"peak_rss_mb\": %.2f, \"budget_mb\": %.2f, \"threads\": %d, \"backend\": \"%s\"}\n",
                    (double)qsf_peak_rss_bytes() / 1048576, (double)m->rt.budget / 1048576, m->rt.threads,
                    qk_level_name(m->rt.table.level));
}

static void put_text(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    qsf_strbuf_addf(b, "%-12s %zu scored of %zu; %zu window%s of %u, stride %u%s\n", "tokens", r->n_scored,
                    m->p.n, r->n_windows, r->n_windows == 1 ? "" : "s", m->p.window, m->p.stride,
                    m->p.bos >= 0 ? ", each starts with BOS" : "");
    qsf_strbuf_addf(b, "%-12s %.6f +- %.6f nats\n", "mean nll", r->nll.mean, qsf_mean_error(&r->nll));
    qsf_strbuf_addf(b, "%-12s %.4f +- %.4f\n", "perplexity", exp(r->nll.mean), exp_error(&r->nll));
    if (!m->p.base) return;
    const char *name = m->reader.about.name;
    qsf_strbuf_addf(b, "%-12s %.4f%s%s\n", "base", exp(r->base_nll.mean), *name ? ", " : "", name);
    qsf_strbuf_addf(b, "%-12s %.6f +- %.6f times the base's\n", "ratio", exp(r->excess.mean),
                    exp_error(&r->excess));
    qsf_strbuf_addf(b, "%-12s %.5g +- %.2g nats\n", "mean KL", r->kl.mean, qsf_mean_error(&r->kl));
    qsf_strbuf_addf(b, "%-12s median %.5g, 99 %% %.5g, maximum %.5g\n", "KL", r->kl_median, r->kl_p99,
                    r->kl_max);
    qsf_strbuf_addf(b, "%-12s %.3f %%\n", "same top", 100 * (double)r->same_top / (double)r->n_scored);
}

static void print_verbose(const RunPerplexity *m) {
    double s = seconds(m);
    fprintf(stderr, "%.1f s, %.0f tokens of text per second; peak RSS %.1f of %.1f MB\n", s,
            s > 0 ? (double)m->p.n / s : 0, (double)qsf_peak_rss_bytes() / 1048576,
            (double)m->rt.budget / 1048576);
}

int run_perplexity_report(const RunPerplexity *m, const QsfPerplexityResult *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (m->o->json)
        put_json(&b, m, r);
    else
        put_text(&b, m, r);
    if (m->o->verbose) print_verbose(m);
    if (m->p.base && !m->reader.about.complete)
        qsf_cli_error(&run_cli, "note: %s does not identify its text: only its size was compared",
                      m->o->kl_base);
    else if (m->p.base && !m->reader.checksums)
        fprintf(stderr,
                "note: %s was written by an earlier version without checksums: not all damage is detected\n",
                m->o->kl_base);
    int rc = run_write_raw(qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
    return rc;
}
