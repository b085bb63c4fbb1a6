/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --bench --bench-text: prefill and decode of a real prompt, because how many tokens a pass adds depends on
 * the text (docs/SPECULATION.md). */
#include <string.h>

#include "src/run/run.h"

typedef struct Text {
    QSFParams params;
    RunMeter *meter;
} Text;

int run_bench_text_open(RunBenchText *t, QsfRuntime *rt, const RunOptions *o) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    *t = (RunBenchText){ .timeline.rt = NULL };
    const RunRoom room = run_room(o);
    int rc = run_read_text("--bench-text", o->bench_text, &room, &text);
    if (!rc && (run_encode_prompt(rt, o, &text, &t->ids, &t->where, &err) ||
                qsf_timeline_init(&t->timeline, rt, &err)))
        rc = run_fail(&err);
    qsf_strbuf_free(&text);
    return rc;
}

void run_bench_text_free(RunBenchText *t) {
    qsf_ids_free(&t->ids);
    if (t->timeline.rt != NULL) qsf_timeline_free(&t->timeline);
}

static void on_params(void *arg, QSFParams *out) { *out = ((const Text *)arg)->params; }

/* The prompt was evaluated: decoding begins. */
static void on_tick(void *arg, const QsfSample *s) {
    if (s == NULL) run_meter_begin(((Text *)arg)->meter);
}

/* What earlier repeats said must not be found. */
int run_bench_text(RunBenchText *t, uint32_t n_gen, RunMeter *m, QsfGeneration *g, QsfErr *err) {
    QsfRuntime *rt = t->timeline.rt;
    Text text = { .params = rt->settings.params, .meter = m };
    qsf_timeline_cut(&t->timeline, 0);
    qsf_runtime_forget_drafts(rt);
    text.params.ignore_eos = true;
    text.params.max_tokens = (int32_t)n_gen;
    if (!text.params.seed_set) text.params.seed = 1;
    text.params.seed_set = true;
    const QsfGenerate ask = { .prompt = t->ids.data,
                              .n_prompt = t->ids.n,
                              .think = t->where,
                              .params = on_params,
                              .tick = on_tick,
                              .arg = &text };
    int rc = qsf_timeline_generate(&t->timeline, &ask, g, err);
    if (rc != QSF_OK) return rc;
    run_meter_end(m);
    if (g->stop == QSF_STOP_INTERRUPTED) return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    return QSF_OK;
}
