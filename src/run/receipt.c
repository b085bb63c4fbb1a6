/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model with messages, and prints the figures shared by --json of a generation and --bench. */
#include <stdlib.h>
#include <string.h>

#include "qsf_log.h"
#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/engine/quality/quality.h"
#include "src/forward/routes.h"
#include "src/run/run.h"

QsfRuntimeOptions run_runtime_options(const RunOptions *o) {
    return (QsfRuntimeOptions){
        .settings = o->settings,
        .overrides = o->n_overrides ? o->overrides : NULL,
        .exact = o->exact,
        .cancel = &qsf_signal_cancel,
        .learn = o->mode == RUN_GENERATE || o->mode == RUN_PLAN,
        .may_draft = o->mode == RUN_GENERATE || o->mode == RUN_PLAN || o->mode == RUN_BENCH,
        .predict = o->mode == RUN_PLAN || (o->verbose && (o->mode == RUN_GENERATE || o->mode == RUN_BENCH)),
    };
}

int run_fail(const QsfErr *err) {
    int sig = atomic_load(&qsf_signal_cancel);
    if (err->code == QSF_E_INTERRUPTED && sig) return 128 + sig;
    qsf_log("error", "%s", err->msg);
    qsf_cli_error_text(&run_cli, err->msg);
    return err->code;
}

void run_put_prediction(QsfStrbuf *b, const QsfRuntime *rt) {
    const QsfPrediction *p = &rt->prediction;
    if (p->disk_bps > 0) qsf_strbuf_addf(b, "%-20s %9.2f GB/s, measured\n", "disk", p->disk_bps / 1e9);
    if (p->tps > 0) qsf_strbuf_addf(b, "%-20s %9.2f tok/s", "predicted", p->tps);
    if (p->tps > 0 && p->disk_tps > 0)
        qsf_strbuf_addf(b, " (disk %.2f, computing %.2f)", p->disk_tps, p->compute_tps);
    if (p->tps > 0) qsf_strbuf_adds(b, "\n");
}

/* How one column reads the rows of each type (docs/KERNELS.md): "reading: Q4_K alone, Q6_K far". */
static void print_ways(const QsfRuntime *rt) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < qsf_unit_count(&rt->model); i++) {
        QsfUnit u;
        qsf_unit_at(&rt->model, i, &u);
        for (unsigned t = 0; t < u.n; t++) {
            const qk_weight_ops *ops = &rt->table.weight[u.type[t]];
            if (ops->matmul16 != NULL || ops->act == QK_ACT_F32) seen |= 1ull << u.type[t];
        }
    }
    for (unsigned type = 0; type < QK_TYPE_N; type++) {
        if (!(seen >> type & 1)) continue;
        const qk_weight_ops *ops = &rt->table.weight[type];
        const bool first = (seen & ((1ull << type) - 1)) == 0;
        const int length = (int)(strrchr(ops->name, '_') - ops->name); /* without the level */
        fprintf(stderr, "%s%.*s %s", first ? "reading: " : ", ", length, ops->name, qk_way_name(ops->way));
    }
    if (seen != 0) fputs("\n", stderr);
}

/* How many threads are used, and why. */
static void print_threads(const QsfRuntime *rt) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_forward_threads_text(rt->fwd, &b);
    fputs(qsf_strbuf_str(&b), stderr);
    qsf_strbuf_free(&b);
}

static void print_verbose(const QsfRuntime *rt) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *text = qsf_plan_text(&rt->plan), io[64] = "", notice[256] = "";
    if (text) fputs(text, stderr);
    free(text);
    run_put_prediction(&b, rt);
    fputs(qsf_strbuf_str(&b), stderr);
    qsf_strbuf_free(&b);
    fprintf(stderr, "kernels: level %s\n", qk_level_name(rt->table.level));
    print_threads(rt);
    print_ways(rt);
    qsf_forward_io(rt->fwd, io, sizeof io, notice, sizeof notice);
    if (rt->learning.ignored[0]) fprintf(stderr, "experts: %s: ignored\n", rt->learning.ignored);
    fprintf(stderr, "io: %s%s%s\n", io[0] ? io : "nothing to read", notice[0] ? "; " : "", notice);
}

/* Names what the model's metadata says that nothing reads. */
static void print_unknown(const QsfModel *m) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (m->hp.arch == NULL || m->vocab_only) return;
    if (qsf_reads_put_unknown(&b, &m->reads, m->src, m->hp.arch->name) > 0)
        fprintf(stderr, "metadata keys that are not used: %s\n", qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
}

void run_close(QsfRuntime *rt, const RunOptions *o) {
    char *text = o->verbose ? qsf_ledger_text(&rt->ledger) : NULL;
    if (o->verbose && rt->fwd != NULL && rt->plan.threads_auto) print_threads(rt);
    char failed[400];
    qsf_learning_save(rt, QSF_HABITS_LEAST);
    if (qsf_learning_take_note(rt, failed, sizeof failed)) run_note("%s", failed);
    if (qsf_routes_failed(rt->routes, failed, sizeof failed)) run_note("%s", failed);
    if (text) fputs(text, stderr);
    free(text);
    qsf_runtime_close(rt);
}

static void print_notice(const char *notice) {
    if (notice[0]) run_note("%s", notice);
}

/* A base model without a template does what is expected of it. */
static bool continues_text(const QsfRuntime *rt, const RunOptions *o) {
    return rt->tok && rt->tmpl == NULL && o->system == NULL && qsf_chat_is_base(rt->tok);
}

/* Limits for experts that the command line sets for a model without experts are refused. The configuration
 * file is for all models. */
static int check_limits(QsfRuntime *rt, const RunOptions *o, QsfErr *err) {
    const QSFSettings *given = &o->config.given;
    if (qsf_quality_fits(rt, &rt->settings.params, err) == QSF_OK) return QSF_OK;
    if (qsf_setting_user_set(given, qsf_setting_find("expert-top")) ||
        qsf_setting_user_set(given, qsf_setting_find("expert-drop")))
        return err->code;
    rt->settings.params.expert_top = 0;
    rt->settings.params.expert_drop = 0;
    qsf_err_clear(err);
    return QSF_OK;
}

int run_open(QsfRuntime *rt, const RunOptions *o, const QsfRuntimeOptions *ro) {
    QsfErr err = { 0 };
    const uint64_t start = qsf_now_ns();
    qsf_log("load", "%s", o->model);
    if (qsf_runtime_open(rt, o->model, ro, &err)) return run_fail(&err);
    qsf_log("loaded", "%s in %.2f s", o->model, (double)(qsf_now_ns() - start) * 1e-9);
    bool weights = !ro->text_only, generate = o->mode == RUN_GENERATE;
    /* Streaming weights although memory is free costs the most time. */
    if (weights && generate) print_notice(rt->stream_notice);
    if (weights && generate && rt->plan_options.budget != 0) print_notice(rt->budget_notice);
    if (rt->tok && qsf_tokenizer_warning(rt->tok)) print_notice(qsf_tokenizer_warning(rt->tok));
    if ((generate || o->mode == RUN_SHOW_PROMPT) && !continues_text(rt, o)) print_notice(rt->tmpl_notice);
    if (!weights) return QSF_EXIT_OK;
    if (check_limits(rt, o, &err) != QSF_OK) {
        qsf_runtime_close(rt);
        return run_fail(&err);
    }
    if (o->mode != RUN_PLAN) print_notice(rt->plan.note);
    char left_out[QSF_ERR_MSG_MAX];
    qsf_adapters_notice(rt->adapters, left_out, sizeof left_out);
    print_notice(left_out);
    print_notice(rt->trace_notice);
    if (generate) print_notice(rt->ctx_notice);
    if (generate) print_notice(rt->nextn_notice);
    if (generate || o->mode == RUN_PLAN || o->mode == RUN_BENCH) print_notice(rt->draft_notice);
    if (generate && rt->settings.params.quality < 1) print_notice(rt->quality_notice);
    if (o->verbose) print_unknown(&rt->model);
    if (o->verbose && !ro->plan_only) print_verbose(rt);
    return QSF_EXIT_OK;
}

int run_threads(const QsfRuntime *rt, bool prompts) {
    QsfForwardStats s;
    qsf_forward_stats(rt->fwd, &s);
    return (int)(prompts ? s.prefill_threads : s.threads);
}

static void put_real(QsfStrbuf *b, const char *key, double v) {
    qsf_strbuf_addf(b, ", \"%s\": ", key);
    qsf_json_put_real(b, v);
}

/* Rounds to two decimals: the kernel's page counts are not more precise. */
static double mb(uint64_t bytes) { return (double)(uint64_t)((double)bytes / 1048576.0 * 100 + 0.5) / 100; }

/* Only while something is left out. */
static void put_quality(QsfStrbuf *b, const QsfRuntime *rt) {
    QsfQualityRow row;
    if (!qsf_quality_reduces(&rt->quality)) return;
    qsf_quality_now(rt, &row);
    if (row.limits.top > 0) qsf_strbuf_addf(b, ", \"expert_top\": %u", row.limits.top);
    if (row.limits.drop > 0) qsf_strbuf_addf(b, ", \"expert_drop\": %.4g", (double)row.limits.drop);
    qsf_strbuf_addf(b, ", \"quality\": %.4g, \"layers_used\": %u, \"layers_skipped\": %u", (double)row.value,
                    row.layers, row.n_layers - row.layers);
    QsfForwardStats s;
    qsf_forward_stats(rt->fwd, &s);
    if (row.sketched)
        qsf_strbuf_addf(b, ", \"sketched_heads\": %llu, \"head_part\": %.4f",
                        (unsigned long long)s.head_sketched, qsf_forward_head_part(&s, rt->model.hp.n_vocab));
    if (row.exit > 0) {
        qsf_strbuf_addf(b, ", \"exit_layer\": %u, \"exited_tokens\": %llu", row.exit,
                        (unsigned long long)s.exited_tokens);
    }
    if (row.n_experts > 0)
        qsf_strbuf_addf(b, ", \"experts_used\": %u, \"experts_chosen\": %u", row.experts, row.n_experts);
    qsf_strbuf_addf(b, ", \"weights_mb\": %.4f", (double)row.bytes / 1048576);
}

static void put_experts(QsfStrbuf *b, const RunFigures *f, const QsfRuntime *rt) {
    put_real(b, "read_mb_per_token", f->bytes_per_token / 1048576);
    if (rt->plan.expert_bytes == 0) return;
    put_real(b, "expert_hit_rate", f->expert_hits);
    put_real(b, "expert_misses_per_token", f->expert_misses);
    put_real(b, "expert_uses_per_token", f->expert_uses);
    put_real(b, "expert_reads_per_token", f->expert_reads);
    put_real(b, "ahead_mb_per_token", f->ahead_read / 1048576);
    put_real(b, "ahead_used_mb_per_token", f->ahead_used / 1048576);
    put_real(b, "ahead_wasted_mb_per_token", f->ahead_wasted / 1048576);
    put_real(b, "expert_mb", mb(rt->plan.expert_bytes));
    QsfForwardStats s;
    const QsfPlan *p = &rt->plan;
    qsf_forward_stats(rt->fwd, &s);
    put_real(b, "expert_hits_expected", p->expert_slots > 0 ? p->expert_hits : p->n_slots == 0);
    put_real(b, "expert_resident_mb", mb(p->expert_bytes / p->n_experts * s.experts_in));
    qsf_strbuf_addf(b, ", \"expert_slots\": %u", p->expert_slots);
}

static void put_by_position(QsfStrbuf *b, const QSFSpeculation *s, bool accepted) {
    qsf_strbuf_addf(b, ", \"%s\": {", accepted ? "accepted" : "drafted");
    for (uint32_t i = 0; i < s->n_sources; i++) {
        const uint64_t *n = accepted ? s->source[i].accepted : s->source[i].drafted;
        qsf_strbuf_addf(b, "%s\"%s\": [", i > 0 ? ", " : "", s->source[i].name);
        for (uint32_t k = 0; k + 1 < s->width; k++)
            qsf_strbuf_addf(b, "%s%llu", k > 0 ? ", " : "", (unsigned long long)n[k]);
        qsf_strbuf_adds(b, "]");
    }
    qsf_strbuf_adds(b, "}");
}

/* By position behind the token that was chosen. */
static void put_speculation(QsfStrbuf *b, const QsfRuntime *rt) {
    QSFSpeculation s;
    qsf_speculate_info(&rt->speculator, &s);
    put_real(b, "tokens_per_pass", s.passes > 0 ? (double)s.tokens / (double)s.passes : 1);
    put_by_position(b, &s, false);
    put_by_position(b, &s, true);
}

void run_put_figures(QsfStrbuf *b, const RunFigures *f, const QsfRuntime *rt) {
    char io[64] = "", notice[256];
    put_real(b, "prefill_tps", f->prefill_tps);
    put_real(b, "decode_tps", f->decode_tps);
    put_real(b, "ttft_ms", f->ttft_ms);
    put_real(b, "bytes_per_token", f->bytes_per_token);
    put_real(b, "io_gbps", f->io_gbps);
    put_real(b, "wait_ms", f->wait_ms);
    put_real(b, "compute_ms", f->compute_ms);
    put_real(b, "stall", f->stall);
    put_experts(b, f, rt);
    put_real(b, "pinned_mb", mb(rt->plan.pinned_bytes));
    put_real(b, "streamed_mb", mb(rt->plan.streamed_bytes));
    qsf_forward_io(rt->fwd, io, sizeof io, notice, sizeof notice);
    qsf_strbuf_adds(b, ", \"io\": ");
    qsf_json_put_string(b, io, strlen(io));
    put_real(b, "peak_rss_mb", mb(qsf_peak_rss_bytes()));
    put_real(b, "budget_mb", mb(rt->budget));
    qsf_strbuf_addf(b, ", \"threads\": %d, \"prefill_threads\": %d, \"threads_measured\": %s, \"backend\": ",
                    run_threads(rt, false), run_threads(rt, true),
                    rt->plan.threads_auto && rt->threads > 1 ? "true" : "false");
    qsf_json_put_string(b, qk_level_name(rt->table.level), strlen(qk_level_name(rt->table.level)));
    put_quality(b, rt);
    put_speculation(b, rt);
    qsf_strbuf_addf(b, ", \"k_type\": \"%s\", \"v_type\": \"%s\"", qk_kv_name(rt->plan.kv.k),
                    qk_kv_name(rt->plan.kv.v));
}

static double per_second(uint64_t n, uint64_t ns) { return ns ? (double)n * 1e9 / (double)ns : 0; }

RunFigures run_figures(const QsfForwardStats *s, const QsfGeneration *g) {
    uint32_t fresh = g->prompt_tokens - g->reused_tokens;
    uint32_t decoded = g->tokens ? g->tokens - 1 : 0; /* the first token's logits come with the prefill */
    uint64_t busy = s->wait_ns + s->compute_ns;
    return (RunFigures){
        .prefill_tps = per_second(fresh, g->prefill_ns),
        .decode_tps = per_second(decoded, g->decode_ns),
        .ttft_ms = (double)g->ttft_ns / 1e6,
        .bytes_per_token = s->decode_tokens ? (double)s->bytes_read / (double)s->decode_tokens : 0,
        .io_gbps = per_second(s->bytes_read, s->read_ns) / 1e9,
        .wait_ms = (double)s->wait_ns / 1e6,
        .compute_ms = (double)s->compute_ns / 1e6,
        .stall = busy ? (double)s->wait_ns / (double)busy : 0,
        .ahead_read = s->decode_tokens ? (double)s->ahead_read / (double)s->decode_tokens : 0,
        .ahead_used = s->decode_tokens ? (double)s->ahead_used / (double)s->decode_tokens : 0,
        .ahead_wasted = s->decode_tokens ? (double)s->ahead_wasted / (double)s->decode_tokens : 0,
        .expert_hits = s->expert_uses ? 1 - (double)s->expert_misses / (double)s->expert_uses : 1,
        .expert_uses = s->decode_tokens ? (double)s->expert_uses / (double)s->decode_tokens : 0,
        .expert_reads = s->decode_tokens ? (double)s->expert_reads / (double)s->decode_tokens : 0,
        .expert_misses = s->decode_tokens ? (double)s->expert_misses / (double)s->decode_tokens : 0,
    };
}
