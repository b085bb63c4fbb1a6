/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --plan: prints the memory plan, without loading the weights, and draws what other budgets would buy. */
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/run/picture.h"

static void put_plan_json(QsfStrbuf *b, const QsfPlan *p) {
    char kv[QSF_KV_TYPES_TEXT];
    qsf_kv_types_print(p->kv, kv, sizeof kv);
    qsf_strbuf_addf(
        b,
        "{\"budget\": %llu, \"total\": %llu, \"ctx\": %u, \"kv\": \"%s\", \"k_type\": \"%s\", \"v_type\": "
        "\"%s\", \"batch\": %u, \"threads\": %d",
        (unsigned long long)p->budget, (unsigned long long)p->total, p->ctx, kv, qk_kv_name(p->kv.k),
        qk_kv_name(p->kv.v), p->batch, p->threads);
    qsf_strbuf_addf(b,
                    ", \"embedding\": \"%s\", \"embedding_rows\": %u, \"slots\": %u, \"slot_bytes\": %llu, "
                    "\"pinned_bytes\": %llu, \"streamed_bytes\": %llu, \"pinned_bytes_at_start\": %llu, "
                    "\"streamed_bytes_at_start\": %llu",
                    qsf_embedding_name(p->embed_resident ? QSF_EMBEDDING_RESIDENT : QSF_EMBEDDING_LRU),
                    p->embed_rows, p->n_slots, (unsigned long long)p->slot_bytes,
                    (unsigned long long)p->pinned_bytes, (unsigned long long)p->streamed_bytes,
                    (unsigned long long)(p->pinned_bytes + p->lent_weight),
                    (unsigned long long)(p->streamed_bytes - p->lent_active));
    if (p->expert_bytes > 0) {
        qsf_strbuf_addf(b,
                        ", \"expert_bytes\": %llu, \"expert_resident_bytes\": %llu, \"expert_slots\": %u, "
                        "\"expert_slot_bytes\": %llu, \"expert_hits_known\": %s, "
                        "\"expert_hits\": ",
                        (unsigned long long)p->expert_bytes, (unsigned long long)qsf_plan_expert_resident(p),
                        p->expert_slots, (unsigned long long)p->expert_slot_bytes,
                        p->expert_known ? "true" : "false");
        qsf_json_put_real(b, p->expert_hits);
    }
    qsf_strbuf_adds(b, ", \"memory\": {");
    for (int c = 0; c < QSF_MEM_N; c++)
        qsf_strbuf_addf(b, "%s\"%s\": %llu", c ? ", " : "", qsf_mem_cat_name((QsfMemCat)c),
                        (unsigned long long)p->rows[c]);
    qsf_strbuf_adds(b, "}, \"note\": ");
    qsf_json_put_string(b, p->note, strlen(p->note));
}

static void put_prediction_json(QsfStrbuf *b, const QsfPrediction *p) {
    const struct {
        const char *key;
        double value;
    } row[] = {
        { "disk_gbps", p->disk_bps / 1e9 },
        { "disk_tps", p->disk_tps },
        { "compute_tps", p->compute_tps },
        { "predicted_tps", p->tps },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        qsf_strbuf_addf(b, ", \"%s\": ", row[i].key);
        qsf_json_put_real(b, row[i].value);
    }
    qsf_strbuf_adds(b, "}\n");
}

static int print(const RunOptions *o, const QsfRuntime *rt) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (o->json) {
        put_plan_json(&b, &rt->plan);
        put_prediction_json(&b, &rt->prediction);
    } else {
        char *text = qsf_plan_text(&rt->plan);
        qsf_strbuf_adds(&b, text ? text : "");
        free(text);
        run_put_prediction(&b, rt);
    }
    int rc = QSF_EXIT_RUNTIME;
    if (qsf_strbuf_ok(&b))
        rc = run_write_raw(qsf_strbuf_str(&b), b.len);
    else
        qsf_cli_error(&run_cli, "out of memory");
    qsf_strbuf_free(&b);
    return rc;
}

/* --svg. Only writing has something to undo: until then a signal ends the program. */
static int draw(const RunOptions *o, QsfRuntime *rt) {
    RunSweep sweep;
    RunPicture picture = { .path = NULL };
    QsfStrbuf svg = QSF_STRBUF_INIT;
    qsf_signals_end_at_once(true);
    int rc = run_sweep(&sweep, o, rt);
    qsf_signals_end_at_once(false);
    if (!rc) rc = run_picture_begin(&picture, o, rt);
    if (!rc) {
        run_plan_picture(&svg, &sweep);
        rc = run_picture_write(&picture, &svg);
    }
    run_picture_end(&picture);
    qsf_strbuf_free(&svg);
    return rc;
}

int run_plan(const RunOptions *o) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = run_runtime_options(o);
    ro.plan_only = true;
    int rc = run_open(&rt, o, &ro);
    if (rc) return rc;
    if (!run_picture_is_stdout(o)) rc = print(o, &rt);
    if (!rc && o->svg) rc = draw(o, &rt);
    qsf_runtime_close(&rt);
    return rc;
}
