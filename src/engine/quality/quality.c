/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/engine/quality/quality.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/base/strbuf.h"
#include "src/engine/model_info.h"
#include "src/engine/runtime.h"
#include "src/file/qsf/scores.h"

#define MIB 1048576.0

QsfQualityWish qsf_quality_of(const QSFParams *p) {
    return (QsfQualityWish){ .value = p->quality > 0 && p->quality < 1 ? p->quality : 1.0f,
                             .experts = { .top = p->expert_top > 0 ? (uint32_t)p->expert_top : 0,
                                          .drop = p->expert_drop } };
}

int qsf_quality_fits(const QsfRuntime *r, const QSFParams *p, QsfErr *err) {
    if ((p->expert_top <= 0 && !(p->expert_drop > 0)) || r->plan.expert_bytes > 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "%s has no experts: %s is for sparse models",
                       qsf_source_path(r->model.src), p->expert_top > 0 ? "--expert-top" : "--expert-drop");
}

/* Does the forward pass know everything that is left out as something that may be? */
static bool is_possible(const QsfRuntime *r, const QsfQualityTable *c) {
    for (uint32_t i = 0; i < QSF_QUALITY_CHOICES; i++) {
        const QsfQualityChoice *row = &c->row[i];
        if (row->exit > 0 && !qsf_blocks_have(qsf_forward_exits(r->fwd), row->exit)) return false;
        for (uint32_t b = 0; b < c->n_blocks; b++)
            if (qsf_blocks_have(&row->skip, b) && !qsf_blocks_have(qsf_forward_optional(r->fwd), b))
                return false;
    }
    return true;
}

/* Without a usable file, quality works as if there were none. */
static void open_table(QsfRuntime *r) {
    char path[QSF_PATH_MAX];
    QsfErr err = { 0 };
    uint64_t model;
    bool found = false;
    QsfQualityTable *c = qsf_quality_file_any() ? malloc(sizeof *c) : NULL;
    if (c == NULL) return;
    if (qsf_model_identity(r->model.src, &model, &err) == QSF_OK && qsf_quality_file_path(path, model) &&
        qsf_quality_file_read(path, model, r->model.prog.n_blocks, c, &found, &err) == QSF_OK && found) {
        if (is_possible(r, c))
            r->quality_table = c;
        else
            qsf_err_set(&err, QSF_E_MODEL, "%s: is of another model", path);
    }
    if (found && err.code != QSF_OK)
        (void)snprintf(r->quality_notice, sizeof r->quality_notice,
                       "%.400s; it is ignored (qsf-run --calibrate-quality writes it again)", err.msg);
    if (r->quality_table == NULL) free(c);
}

void qsf_quality_use(QsfRuntime *r, const QsfQualityTable *c) {
    if (r->quality_table == NULL) r->quality_table = malloc(sizeof *c);
    if (r->quality_table != NULL) *r->quality_table = *c;
}

/* A model that runs its layers several times has more blocks than layers. */
int qsf_quality_open(QsfRuntime *r, QsfErr *err) {
    const uint32_t n = r->model.hp.n_named, n_blocks = r->model.prog.n_blocks;
    bool present = false;
    float *kl = calloc(n + 1u, sizeof *kl);
    if (kl == NULL) return qsf_err_memory(err, "importance of layers");
    int rc = qsf_scores_read(r->model.src, QSF_KEY_SKIP_KL, n, 0, kl, &present, err);
    if (rc == QSF_OK && present) {
        r->importance = malloc(n_blocks * sizeof *r->importance);
        if (r->importance == NULL) rc = qsf_err_memory(err, "importance of layers");
        for (uint32_t i = 0; rc == QSF_OK && i < n_blocks; i++) r->importance[i] = (double)kl[i % n];
    }
    free(kl);
    if (rc == QSF_OK) open_table(r);
    return rc;
}

bool qsf_quality_measures(const QsfRuntime *r, const QSFParams *p) {
    return qsf_quality_of(p).value < 1 && r->importance == NULL && r->quality_table == NULL;
}

/* ---- the choice ---- */

/* Returns the largest number of experts that a router chooses; shared experts do not count. */
static uint32_t most_experts(const QsfRuntime *r) {
    const QsfProgram *p = &r->model.prog;
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->step[i].op == QSF_OP_ROUTE && p->step[i].u.route.n_used > most)
            most = p->step[i].u.route.n_used;
    return most;
}

/* --exact multiplies floats, and the sketch is not for them. */
static void choose_head(const QsfRuntime *r, const QsfQualityWish *w, QsfQuality *out) {
    *out = (QsfQuality){ .value = w->value, .experts = w->experts };
    if (out->experts.top >= most_experts(r)) out->experts.top = 0; /* all of them are used */
    if (!r->plan_options.exact) qsf_quality_sketch(out, &r->model);
}

static void choose_layers(const QsfRuntime *r, const QsfQualityWish *w, QsfQuality *out) {
    double measured[QSF_MAX_LAYERS];
    const double *score = r->importance;
    if (score == NULL && qsf_forward_importance(r->fwd, measured) > 0) score = measured;
    choose_head(r, w, out);
    qsf_quality_choose(out, &r->model, qsf_forward_optional(r->fwd), score, w->value);
}

void qsf_runtime_choose_layers(const QsfRuntime *r, float value, QsfQuality *out) {
    choose_layers(r, &(QsfQualityWish){ .value = value }, out);
}

/* Early exit computes all experts, so that what waits is evaluated as if nothing had been left out. */
static bool can_use(const QsfRuntime *r, const QsfQualityChoice *c, const QsfQuality *q) {
    return c->exit == 0 || (qsf_forward_can_exit(r->fwd) && !qsf_expert_limits_any(&q->experts));
}

/* What a quality would leave out, chosen in the same way. */
static void choose(const QsfRuntime *r, const QsfQualityWish *w, QsfQuality *out) {
    const QsfQualityChoice *c = r->quality_table != NULL ? qsf_quality_choice(r->quality_table, w->value)
                                                         : NULL;
    choose_head(r, w, out);
    if (c == NULL || !qsf_quality_below(out) || !can_use(r, c, out))
        choose_layers(r, w, out);
    else
        qsf_quality_choice_apply(c, &r->model, out);
}

/* The options that the plan in force was made from, so that nothing else of it changes. */
static QsfPlanOptions options_with(const QsfRuntime *r, const QsfQuality *q) {
    QsfPlanOptions o = r->plan_options;
    o.quality = *q;
    return o;
}

static bool has_experts(const QsfRuntime *r) {
    for (uint32_t i = 0; i < r->model.prog.n_units; i++)
        if (r->model.prog.unit[i].on_demand) return true;
    return false;
}

static bool same_layers(const QsfQuality *a, const QsfQuality *b) {
    const QsfBlockSet none = { { 0 } };
    return qsf_blocks_equal(qsf_quality_below(a) ? &a->skip : &none, qsf_quality_below(b) ? &b->skip : &none);
}

bool qsf_runtime_quality(QsfRuntime *r, const QsfQualityWish *wish) {
    const QsfQualityWish all = { .value = 1 };
    const QsfQualityWish *w = qsf_forward_evicts(r->fwd) ? &all : wish;
    QsfQuality q;
    QsfErr err = { 0 };
    if (w->value >= 1 && !qsf_expert_limits_any(&w->experts) && !qsf_quality_reduces(&r->quality))
        return false;
    choose(r, w, &q);
    if (qsf_quality_equal(&q, &r->quality)) return false;
    const QsfPlanOptions next = options_with(r, &q);
    const bool replans = qsf_plan_streams(&r->plan) && (has_experts(r) || !same_layers(&q, &r->quality));
    const bool sketches = q.head.groups != r->quality.head.groups;
    r->quality = q;
    qsf_forward_set_quality(r->fwd, &q);
    if ((replans || sketches) && qsf_runtime_apply(r, &next, &err) == QSF_OK) return true;
    if (sketches && q.head.groups > 0) { /* no memory for it: the head is computed in full */
        q.head = r->quality.head = (QsfQualityHead){ 0 };
        qsf_forward_set_quality(r->fwd, &q);
    }
    r->plan_options = next;
    r->plan.active_bytes = qsf_quality_bytes(&q, &r->model);
    return true;
}

/* ---- what it means ---- */

static void count_experts(const QsfRuntime *r, const QsfQuality *q, QsfQualityRow *row) {
    const QsfProgram *p = &r->model.prog;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->step[i].op != QSF_OP_ROUTE) continue;
        row->n_experts = p->step[i].u.route.n_used;
        row->experts = qsf_quality_experts(q, row->n_experts);
        return;
    }
}

/* Returns how fast a token is with these bytes, from a prediction made before loading, or from
 * the tokens so far. */
static double predict(const QsfRuntime *r, const QsfPlan *plan, uint64_t bytes) {
    QsfPrediction p = r->prediction, out;
    QsfForwardStats s;
    qsf_forward_stats(r->fwd, &s);
    if (p.compute_bps <= 0 && s.decode_tokens > 0 && s.decode_ns > 0) {
        const double seconds = (double)s.decode_ns / 1e9 / (double)s.decode_tokens;
        p.compute_bps = (double)qsf_quality_bytes(&r->quality, &r->model) / seconds;
        if (s.read_ns > 0) p.disk_bps = (double)s.bytes_read * 1e9 / (double)s.read_ns;
        /* While the disk is slower, the kernels are known to be no slower than it. */
        if (p.disk_bps > 0 && (double)r->plan.disk_bytes / p.disk_bps > 0.8 * seconds) p.compute_bps *= 1.25;
    }
    if (p.compute_bps <= 0) return 0;
    qsf_predict_from(&out, plan->disk_bytes, bytes, p.disk_bps, p.compute_bps);
    return out.tps;
}

static uint32_t step_of(float value) { return (uint32_t)(value * QSF_QUALITY_STEPS + 0.5f); }

void qsf_quality_note(QsfRuntime *r, uint32_t tokens, uint64_t ns) {
    const float value = qsf_quality_below(&r->quality) ? r->quality.value : 1.0f;
    if (tokens > 1 && ns > 0 && !qsf_expert_limits_any(&r->quality.experts))
        r->quality_tps[step_of(value)] = (float)((double)(tokens - 1) * 1e9 / (double)ns);
}

static void fill(const QsfRuntime *r, const QsfQuality *q, const QsfPlan *plan, QsfQualityRow *row) {
    const bool below = qsf_quality_below(q);
    *row = (QsfQualityRow){ .value = below ? q->value : 1.0f, .n_layers = r->model.prog.n_blocks };
    row->layers = row->n_layers - (below ? qsf_blocks_count(&q->skip) : 0);
    if (qsf_quality_exits(q)) {
        row->exit = q->exit;
        row->layers += (uint32_t)ceilf(q->full * (float)qsf_blocks_count(&q->skip));
        if (row->layers > row->n_layers) row->layers = row->n_layers;
    }
    if (below && r->quality_table != NULL) {
        const QsfQualityChoice *c = qsf_quality_choice(r->quality_table, q->value);
        row->kl = (double)c->kl;
        row->perplexity = (double)c->perplexity;
    } else if (!qsf_quality_reduces(q)) {
        row->perplexity = 1;
    }
    row->limits = q->experts;
    row->sketched = below && plan->sketch_bytes > 0;
    row->bytes = qsf_quality_bytes(q, &r->model);
    row->streamed = plan->streamed_bytes;
    row->measured_tps = (double)r->quality_tps[step_of(row->value)];
    count_experts(r, q, row);
}

void qsf_quality_now(const QsfRuntime *r, QsfQualityRow *row) { fill(r, &r->quality, &r->plan, row); }

/* "4 of 8 experts", and which of them are left out. */
static void describe_experts(const QsfQualityRow *row, char *dst, size_t cap) {
    size_t len;
    (void)qsf_plural_snprintf(dst, cap, "%s%u of %u experts", row->limits.drop > 0 ? "at most " : "",
                              row->experts, row->n_experts);
    len = strlen(dst);
    if (row->limits.drop > 0)
        (void)snprintf(dst + len, cap - len, ", none below %.3g of the best", (double)row->limits.drop);
}

void qsf_quality_describe(const QsfRuntime *r, char *dst, size_t cap) {
    QsfQualityRow row;
    char some[80] = "", experts[84] = "";
    const char *head = "";
    dst[0] = '\0';
    if (!qsf_quality_reduces(&r->quality)) return;
    qsf_quality_now(r, &row);
    if (row.n_experts > 0) {
        describe_experts(&row, some, sizeof some);
        (void)snprintf(experts, sizeof experts, ", %s", some);
    }
    if (!qsf_quality_below(&r->quality)) { /* limits for experts alone */
        (void)snprintf(dst, cap, "%s", some);
        return;
    }
    if (row.sketched) head = ", the head by its sketch";
    if (row.exit > 0)
        (void)qsf_plural_snprintf(dst, cap, "quality %.2f: about %u of %u layers (tokens may end after %u)%s",
                                  (double)row.value, row.layers, row.n_layers, row.exit, head);
    else
        (void)qsf_plural_snprintf(dst, cap, "quality %.2f: %u of %u layers%s%s", (double)row.value,
                                  row.layers, row.n_layers, experts, head);
}

/* The row of another one, with the plan that it would have. */
static void row_of(const QsfRuntime *r, float value, QsfQualityRow *row) {
    const QsfQualityWish w = { .value = value, .experts = r->quality.experts };
    QsfQuality q;
    QsfPlan plan;
    QsfErr err = { 0 };
    choose(r, &w, &q);
    const QsfPlanOptions o = options_with(r, &q);
    const bool made = qsf_plan_streams(&r->plan) &&
                      qsf_planning_make(&plan, &r->model, &o, &r->facts, &err) == QSF_OK;
    fill(r, &q, made ? &plan : &r->plan, row);
    row->tps = predict(r, made ? &plan : &r->plan, row->bytes);
    if (made) qsf_plan_free(&plan);
}

/* ---- the table ---- */

/* At most 76 columns, for a terminal of 80. */
static void add_speed(QsfStrbuf *b, double tps) {
    if (tps > 0)
        qsf_strbuf_addf(b, " %8.1f", tps);
    else
        qsf_strbuf_addf(b, " %8s", "-");
}

/* What was measured with a text. */
static void add_measured(QsfStrbuf *b, const QsfQualityRow *row) {
    const double more = 100 * (row->perplexity - 1);
    qsf_strbuf_addf(b, " %7.4f", row->kl);
    if (more < 1000)
        qsf_strbuf_addf(b, " %+5.1f %%", more);
    else
        qsf_strbuf_adds(b, " >999.9%");
}

static void add_head(QsfStrbuf *b, bool measured, bool experts) {
    qsf_strbuf_addf(b, "%4s %7s", "Q", "layers ");
    if (measured) qsf_strbuf_addf(b, " %4s", "exit");
    if (experts) qsf_strbuf_addf(b, " %7s", "experts");
    qsf_strbuf_addf(b, " %8s %8s %8s %8s", "MB/token", "disk MB", "expected", "measured");
    if (measured) qsf_strbuf_addf(b, " %7s %7s", "KL", "perpl.");
    qsf_strbuf_adds(b, "\n");
}

static void add_row(QsfStrbuf *b, const QsfRuntime *r, float value) {
    QsfQualityRow row;
    row_of(r, value, &row);
    qsf_strbuf_addf(b, "%4.2f %3u/%-3u", (double)row.value, row.layers, row.n_layers);
    if (row.exit > 0)
        qsf_strbuf_addf(b, " %4u", row.exit);
    else if (r->quality_table != NULL)
        qsf_strbuf_addf(b, " %4s", "-");
    if (row.n_experts > 0) qsf_strbuf_addf(b, " %4u/%-2u", row.experts, row.n_experts);
    qsf_strbuf_addf(b, " %8.1f %8.1f", (double)row.bytes / MIB, (double)row.streamed / MIB);
    add_speed(b, row.tps);
    add_speed(b, row.measured_tps);
    if (r->quality_table != NULL) add_measured(b, &row);
    qsf_strbuf_adds(b, "\n");
}

static void add_source(QsfStrbuf *b, const QsfRuntime *r) {
    double scores[QSF_MAX_LAYERS];
    const uint32_t measured = qsf_forward_importance(r->fwd, scores);
    if (r->quality_table != NULL)
        qsf_strbuf_addf(b, "KL, perplexity: of %u tokens; exit: after this layer sure tokens end\n",
                        r->quality_table->n_tokens);
    else if (qsf_blocks_count(qsf_forward_optional(r->fwd)) == 0)
        qsf_strbuf_adds(b, "no layer of this model can be skipped\n");
    else if (r->importance != NULL)
        qsf_strbuf_adds(b, "layers are skipped by the importance that the file contains\n");
    else if (measured > 0)
        qsf_strbuf_addf(b, "layers are skipped by how much they changed %u tokens of the conversation\n",
                        measured);
    else
        qsf_strbuf_adds(b, "layers after the middle are skipped first, until a prompt shows which matter\n");
}

static void add_head_note(QsfStrbuf *b, const QsfRuntime *r) {
    QsfQuality q;
    QsfForwardStats s;
    choose_head(r, &(QsfQualityWish){ .value = 0.5f }, &q);
    qsf_strbuf_adds(b, q.head.groups > 0 ? "prompts are always computed in full\n"
                                         : "prompts and the head are always computed in full\n");
    if (q.head.groups == 0) return;
    qsf_strbuf_addf(b, "below 1 a sketch of the head (%.1f MB) finds the logits that matter\n",
                    (double)q.head.sketch_bytes / MIB);
    qsf_forward_stats(r->fwd, &s);
    if (s.head_sketched > 0)
        qsf_strbuf_addf(b, "so far %.1f %% of the head was multiplied in full\n",
                        100 * qsf_forward_head_part(&s, r->model.hp.n_vocab));
}

char *qsf_quality_text(const QsfRuntime *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfQualityRow full;
    qsf_quality_now(r, &full);
    add_head(&b, r->quality_table != NULL, full.n_experts > 0);
    for (int i = 10; i >= 3; i--) add_row(&b, r, (float)i / 10);
    qsf_strbuf_adds(&b, "expected, measured: tokens per second; measured in the last answer\n");
    add_source(&b, r);
    add_head_note(&b, r);
    return qsf_strbuf_take(&b, NULL);
}
