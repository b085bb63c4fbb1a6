/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --bench: prefills -p tokens and decodes -n tokens, -r times, and prints the medians. The token ids are
 * arbitrary: speed does not depend on them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/engine/expert_budgets.h"
#include "src/engine/quality/quality.h"
#include "src/plan/options.h"
#include "src/run/picture.h"
#include "src/run/run.h"

typedef struct Bench {
    int64_t n_prompt, n_gen, repeats;
} Bench;

static bool parse_count(const char *text, const char *option, int64_t min, int64_t max, int64_t *out) {
    char *end;
    if (!text) return true;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || v < min || v > max) {
        qsf_cli_error(&run_cli, "%s: \"%s\" is not a number from %lld to %lld", option, text, (long long)min,
                      (long long)max);
        return false;
    }
    *out = v;
    return true;
}

/* The same ids in every run and on every machine, spread over the vocabulary. */
static void fill_ids(int32_t *ids, size_t n, uint32_t n_vocab) {
    uint32_t x = 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        ids[i] = (int32_t)((x >> 8) % n_vocab);
    }
}

#define MIB 1048576.0

/* Returns how many there are; 0: too little is known, or the dense part does not fit. */
static uint32_t find_budgets(const QsfRuntime *rt, const RunFigures *f, double tokens,
                             QSFExpertBudget out[QSF_EXPERT_BUDGETS]) {
    const QsfPlan *p = &rt->plan;
    QsfForwardStats s;
    if (p->expert_slots == 0 || p->expert_slots >= p->n_experts) return 0;
    qsf_forward_stats(rt->fwd, &s);
    const QsfExpertFacts facts = { .budget = rt->budget,
                                   .from = rt->budget,
                                   .from_slots = s.expert_slots,
                                   .full = qsf_plan_full_budget(&rt->model, &rt->plan_options, p),
                                   .slot_bytes = p->expert_slot_bytes,
                                   .n = p->n_experts,
                                   .slots = s.expert_slots,
                                   .used = p->experts_used,
                                   .depth = s.expert_depth,
                                   .token_ns = f->decode_tps > 0 ? 1e9 / f->decode_tps : 0,
                                   .read_ns = f->io_gbps > 0 ? f->bytes_per_token / f->io_gbps : 0,
                                   .wait_ns = f->wait_ms * 1e6 / tokens };
    return qsf_expert_budgets(&facts, out, QSF_EXPERT_BUDGETS);
}

/* Appends the hits and speeds to expect with other RAM budgets, by the choices that were measured, as a field
 * or a line; nothing if the model is not sparse, all or not even the dense part fits, or too little was
 * chosen. f: of `tokens` decoded tokens. */
static void put_expert_budgets(QsfStrbuf *b, const QsfRuntime *rt, const RunFigures *f, double tokens,
                               bool json) {
    QSFExpertBudget list[QSF_EXPERT_BUDGETS];
    const uint32_t n = tokens > 0 ? find_budgets(rt, f, tokens, list) : 0;
    if (n > 0 && json) qsf_strbuf_adds(b, ", \"expert_budgets\": [");
    for (uint32_t i = 0; i < n; i++) {
        const QSFExpertBudget *x = &list[i];
        const double mb = (double)x->budget / MIB;
        if (json) {
            qsf_strbuf_addf(b, "%s{\"budget_mb\": %.0f, \"expert_hit_rate\": %.4f, \"resident\": %.4f",
                            i > 0 ? ", " : "", mb, x->hits, x->resident);
            if (x->tps > 0) qsf_strbuf_addf(b, ", \"decode_tps\": %.4g", x->tps);
            qsf_strbuf_adds(b, "}");
            continue;
        }
        qsf_strbuf_addf(b, "%s at %.0f MB %.0f %%", i > 0 ? "\n        " : "budgets ", mb, 100 * x->hits);
        if (x->tps > 0) qsf_strbuf_addf(b, ", about %.3g tok/s", x->tps);
    }
    if (n > 0) qsf_strbuf_adds(b, json ? "]" : "\n");
}

/* The measurements of one repeat: doubles only. */
typedef struct BenchRow {
    RunFigures f;
    RunBreakdown b;
} BenchRow;

/* Decodes n_gen tokens one by one; *sampling_ns gets the time of sampling, whose results are ignored. */
static int decode(QsfRuntime *rt, const Bench *b, const int32_t *ids, uint64_t *sampling_ns, QsfErr *err) {
    QsfSample ignored;
    for (int64_t i = 0; i < b->n_gen; i++) {
        if (qsf_forward_decode(rt->fwd, ids + i, 1, NULL, NULL, err)) return err->code;
        uint64_t t0 = qsf_now_ns();
        const QsfSamplerInput in = { .logits = qsf_forward_logits(rt->fwd), .params = &rt->settings.params };
        if (qsf_sampler_next(rt->sampler, &in, &ignored, err) != QSF_OK) return err->code;
        *sampling_ns += qsf_now_ns() - t0;
    }
    return QSF_OK;
}

/* Measures one repeat; *row gets its figures. Memory reads are measured before and after decoding. */
static int measure(QsfRuntime *rt, const Bench *b, const int32_t *ids, RunMeter *m, BenchRow *row,
                   QsfErr *err) {
    QsfForwardStats before = m->s;
    uint64_t sampling_ns = 0;
    qsf_forward_truncate(rt->fwd, 0);
    uint64_t t0 = qsf_now_ns();
    if (b->n_prompt && qsf_forward_eval(rt->fwd, ids, (size_t)b->n_prompt, NULL, NULL, err)) return err->code;
    uint64_t t1 = qsf_now_ns();
    const QsfQualityWish wish = qsf_quality_of(&rt->settings.params);
    qsf_runtime_quality(rt, &wish);
    if (qsf_forward_settle(rt->fwd, NULL, NULL, err)) return err->code;
    double read = qsf_forward_read_speed(rt->fwd);
    run_meter_begin(m);
    uint64_t t2 = qsf_now_ns();
    if (decode(rt, b, ids + b->n_prompt, &sampling_ns, err)) return err->code;
    uint64_t decode_ns = qsf_now_ns() - t2 - sampling_ns;
    run_meter_end(m);
    if (read > 0) read = (read + qsf_forward_read_speed(rt->fwd)) / 2;
    QsfForwardStats s = run_meter_since(m, &before);
    QsfGeneration g = { .prompt_tokens = (uint32_t)b->n_prompt,
                        .tokens = (uint32_t)b->n_gen + 1,
                        .prefill_ns = t1 - t0,
                        .decode_ns = decode_ns,
                        .ttft_ns = t1 - t0 };
    row->f = run_figures(&s, &g);
    row->b = run_breakdown(m, &s, &row->f, read, sampling_ns, decode_ns);
    return QSF_OK;
}

/* The same with a prompt of text: the time of sampling cannot be told from that of passes. */
static int measure_text(const Bench *b, RunBenchText *t, RunMeter *m, BenchRow *row, QsfErr *err) {
    const QsfForwardStats before = m->s;
    QsfGeneration g;
    if (run_bench_text(t, (uint32_t)b->n_gen, m, &g, err)) return err->code;
    const QsfForwardStats s = run_meter_since(m, &before);
    row->f = run_figures(&s, &g);
    row->b = run_breakdown(m, &s, &row->f, 0, 0, g.decode_ns);
    return QSF_OK;
}

static void warn_share(const RunMeter *m, const RunBreakdown *b) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    run_put_share_warning(&text, b, run_weight_bytes(m), (double)qsf_os_cache_bytes());
    if (text.len > 0) qsf_cli_error(&run_cli, "%s", qsf_strbuf_str(&text));
    qsf_strbuf_free(&text);
}

static int report(const RunOptions *o, const Bench *b, const QsfRuntime *rt, const RunMeter *m,
                  const BenchRow *row) {
    const RunFigures *f = &row->f;
    QsfStrbuf out = QSF_STRBUF_INIT;
    if (o->json) {
        qsf_strbuf_addf(&out, "{\"prompt_tokens\": %lld, \"tokens\": %lld, \"repeats\": %lld",
                        (long long)b->n_prompt, (long long)b->n_gen, (long long)b->repeats);
        run_put_figures(&out, f, rt);
        run_put_breakdown(&out, &row->b);
        put_expert_budgets(&out, rt, f, (double)b->n_gen, true);
        run_put_layers(&out, m);
        qsf_strbuf_adds(&out, "}\n");
    } else {
        qsf_strbuf_addf(&out, "prefill  %6lld tokens  %9.2f tok/s\n", (long long)b->n_prompt, f->prefill_tps);
        qsf_strbuf_addf(&out, "decode   %6lld tokens  %9.2f tok/s\n", (long long)b->n_gen, f->decode_tps);
        run_print_breakdown(&out, &row->b);
        qsf_strbuf_addf(&out, "streamed %.1f MB per token, %.2f GB/s, waited %.0f ms, stall %.0f %%\n",
                        f->bytes_per_token / 1048576, f->io_gbps, f->wait_ms, 100 * f->stall);
        if (rt->plan.expert_bytes > 0)
            qsf_strbuf_addf(&out, "experts  %.1f %% of those chosen were in memory, %.1f read per token\n",
                            100 * f->expert_hits, f->expert_misses);
        put_expert_budgets(&out, rt, f, (double)b->n_gen, false);
        if (f->ahead_read > 0)
            qsf_strbuf_addf(&out, "ahead    %.1f MB per token, %.1f MB of them used, %.1f MB wasted\n",
                            f->ahead_read / 1048576, f->ahead_used / 1048576, f->ahead_wasted / 1048576);
        QSFSpeculation drafts;
        qsf_speculate_info(&rt->speculator, &drafts);
        if (drafts.passes > 0)
            qsf_strbuf_addf(&out, "passes   %.2f tokens each\n",
                            (double)drafts.tokens / (double)drafts.passes);
        const int threads = run_threads(rt, false);
        qsf_strbuf_addf(
            &out, "peak RSS %.1f of %.1f MB, %d thread%s for tokens, %d for prompts, %s; medians of %lld\n",
            (double)qsf_peak_rss_bytes() / 1048576, (double)rt->budget / 1048576, threads,
            threads == 1 ? "" : "s", run_threads(rt, true), qk_level_name(rt->table.level),
            (long long)b->repeats);
    }
    int rc = run_write_raw(qsf_strbuf_str(&out), out.len);
    qsf_strbuf_free(&out);
    warn_share(m, &row->b);
    if (!rc && o->stats) run_print_stats(m);
    return rc;
}

/* Each figure's median over the repeats. */
static BenchRow medians(const BenchRow *all, size_t n) {
    BenchRow m;
    double v[1000];
    _Static_assert(sizeof(BenchRow) % sizeof(double) == 0, "BenchRow holds doubles only");
    for (size_t k = 0; k < sizeof m / sizeof(double); k++) {
        for (size_t i = 0; i < n; i++)
            memcpy(&v[i], (const char *)&all[i] + k * sizeof(double), sizeof(double));
        double middle = run_median(v, n);
        memcpy((char *)&m + k * sizeof(double), &middle, sizeof middle);
    }
    return m;
}

/* Measures speeds against length as far as that is possible in the time that it says. */
static int measure_curve(RunCurve *c, QsfRuntime *rt, const Bench *b, const BenchRow *row, QsfErr *err) {
    RunCurvePlan p;
    *c = (RunCurve){ 0 };
    run_curve_plan(&p, qsf_forward_ctx(rt->fwd), row->f.prefill_tps, row->f.decode_tps, (unsigned)b->repeats);
    if (p.n == 0) return QSF_OK;
    const size_t n_ids = p.length[p.n - 1] + p.n_gen;
    int32_t *ids = calloc(n_ids, sizeof *ids);
    if (!ids) return qsf_err_memory(err, "--svg");
    fill_ids(ids, n_ids, rt->model.hp.n_vocab);
    run_note("--svg: prompts of %u to %u tokens, %u round%s: about %.0f s, at most %.0f", p.length[0],
             p.length[p.n - 1], p.rounds, p.rounds == 1 ? "" : "s", p.seconds + 0.5, RUN_CURVE_SECONDS);
    const int rc = run_curve(c, &p, rt, ids, err);
    free(ids);
    return rc;
}

/* --svg, after the benchmark. */
static int draw(RunPicture *picture, QsfRuntime *rt, const RunOptions *o, const Bench *b,
                const BenchRow *row) {
    QsfErr err = { 0 };
    QsfStrbuf svg = QSF_STRBUF_INIT;
    RunBenchNumbers n = { .budget_mb = (double)rt->budget / 1048576,
                          .prefill_tps = row->f.prefill_tps,
                          .decode_tps = row->f.decode_tps,
                          .streamed_mb = row->f.bytes_per_token / 1048576,
                          .n_prompt = (uint32_t)b->n_prompt,
                          .n_gen = (uint32_t)b->n_gen,
                          .threads = run_threads(rt, false),
                          .level = qk_level_name(rt->table.level),
                          .part = row->b };
    run_model_title(o, rt, n.model, sizeof n.model);
    if (measure_curve(&n.curve, rt, b, row, &err)) return run_fail(&err);
    run_bench_picture(&svg, &n);
    const int rc = run_picture_write(picture, &svg);
    qsf_strbuf_free(&svg);
    return rc;
}

static int repeat(QsfRuntime *rt, const RunOptions *o, const Bench *b, RunBenchText *text,
                  RunPicture *picture) {
    size_t n_ids = (size_t)(b->n_prompt + b->n_gen);
    int32_t *ids = calloc(n_ids + 1, sizeof *ids);
    BenchRow *all = calloc((size_t)b->repeats, sizeof *all);
    RunMeter meter = { 0 };
    QsfErr err = { 0 };
    int rc = ids && all ? QSF_OK : qsf_err_memory(&err, "--bench");
    if (!rc) rc = run_meter_init(&meter, rt, &err);
    if (!rc)
        rc = qsf_forward_settle(rt->fwd, NULL, NULL, &err); /* do not measure the loading of pinned
                                                               weights */
    if (!rc) fill_ids(ids, n_ids, rt->model.hp.n_vocab);
    if (!rc) rc = qsf_forward_eval(rt->fwd, ids, 1, NULL, NULL, &err); /* touch every page once */
    for (int64_t i = 0; !rc && i < b->repeats; i++)
        rc = text != NULL ? measure_text(b, text, &meter, &all[i], &err)
                          : measure(rt, b, ids, &meter, &all[i], &err);
    if (rc) {
        rc = run_fail(&err);
    } else {
        BenchRow m = medians(all, (size_t)b->repeats);
        rc = run_picture_is_stdout(o) ? QSF_EXIT_OK : report(o, b, rt, &meter, &m);
        if (!rc && picture->path) rc = draw(picture, rt, o, b, &m);
    }
    run_meter_free(&meter);
    free(ids);
    free(all);
    return rc;
}

int run_bench(const RunOptions *o) {
    Bench b = { .n_prompt = 256,
                .n_gen = o->settings.params.max_tokens >= 0 ? o->settings.params.max_tokens : 64,
                .repeats = 3 };
    if (!parse_count(o->prompt, "--prompt (with --bench the number of prompt tokens)", 0, 1 << 24,
                     &b.n_prompt))
        return QSF_EXIT_USAGE;
    if (!parse_count(o->repeats, "--repeats", 1, 1000, &b.repeats)) return QSF_EXIT_USAGE;
    if (b.n_prompt + b.n_gen == 0) {
        qsf_cli_error(&run_cli, "--bench: nothing to measure: both -p and -n are 0");
        return QSF_EXIT_USAGE;
    }
    if (o->bench_text && b.n_gen == 0) {
        qsf_cli_error(&run_cli, "--bench-text: nothing is generated: -n is 0");
        return QSF_EXIT_USAGE;
    }
    if (o->svg && (b.n_prompt == 0 || b.n_gen == 0)) {
        qsf_cli_error(&run_cli, "--svg: the picture shows prefill and decoding: neither -p nor -n may be 0");
        return QSF_EXIT_USAGE;
    }
    QsfRuntime rt;
    RunPicture picture = { .path = NULL };
    QsfRuntimeOptions ro = run_runtime_options(o);
    int rc = run_open(&rt, o, &ro);
    if (rc) return rc;
    RunBenchText text = { .timeline.rt = NULL };
    if (o->bench_text != NULL) {
        rc = run_bench_text_open(&text, &rt, o);
        b.n_prompt = (int64_t)text.ids.n;
    }
    if (!rc && b.n_prompt + b.n_gen > (int64_t)qsf_forward_ctx(rt.fwd)) {
        qsf_cli_error(
            &run_cli,
            "--bench: %lld prompt and %lld generated tokens do not fit the context of %u (set a longer one "
            "with --ctx N)",
            (long long)b.n_prompt, (long long)b.n_gen, qsf_forward_ctx(rt.fwd));
        rc = QSF_EXIT_CONTEXT;
    } else if (!rc && !(rc = run_picture_begin(&picture, o, &rt))) {
        rc = repeat(&rt, o, &b, o->bench_text != NULL ? &text : NULL, &picture);
    }
    run_bench_text_free(&text);
    run_picture_end(&picture);
    run_close(&rt, o);
    return rc;
}
