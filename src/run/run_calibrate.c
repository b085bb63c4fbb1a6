/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --calibrate-quality FILE: measures what each quality does to a model, and stores it for all programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/json.h"
#include "src/engine/model_info.h"
#include "src/engine/quality/quality.h"
#include "src/measure/quality_measure.h"
#include "src/plan/options.h"
#include "src/run/run.h"

/* For each byte of text, which is at most one token: its id in a list that grows by half. */
#define BYTES_PER_BYTE 6u
#define OWN_BYTES      (1u << 20) /* measurements of tokens, buffers of libc */

static void on_progress(void *arg, size_t done, size_t all) {
    (void)arg;
    fprintf(stderr, "\rtoken %zu of %zu\033[K", done, all);
    fflush(stderr);
}

static void put_row(QsfStrbuf *b, uint32_t percent, uint32_t n_blocks, const QsfQualityChoice *row) {
    const char *before = "";
    qsf_strbuf_addf(b, "{\"quality\": %.2g", percent / 100.0);
    if (row->exit > 0) {
        qsf_strbuf_addf(b, ", \"exit_layer\": %" PRIu32 ", \"margin\": ", row->exit);
        qsf_json_put_real(b, (double)row->margin);
        qsf_strbuf_adds(b, ", \"full\": ");
        qsf_json_put_real(b, (double)row->full);
    } else {
        qsf_strbuf_adds(b, ", \"skip\": [");
        for (uint32_t i = 0; i < n_blocks; i++)
            if (qsf_blocks_have(&row->skip, i)) {
                qsf_strbuf_addf(b, "%s%" PRIu32, before, i);
                before = ", ";
            }
        qsf_strbuf_adds(b, "]");
    }
    qsf_strbuf_adds(b, ", \"kl\": ");
    qsf_json_put_real(b, (double)row->kl);
    qsf_strbuf_adds(b, ", \"ppl_ratio\": ");
    qsf_json_put_real(b, (double)row->perplexity);
    qsf_strbuf_adds(b, "}");
}

static int report(QsfRuntime *rt, const RunOptions *o, const QsfQualityTable *c, const char *path) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *table = NULL;
    if (o->json) {
        qsf_strbuf_addf(&b, "{\"tokens\": %" PRIu32 ", \"layers\": %" PRIu32 ", \"file\": ", c->n_tokens,
                        c->n_blocks);
        qsf_json_put_string(&b, path, strlen(path));
        qsf_strbuf_adds(&b, ", \"rows\": [");
        for (uint32_t i = QSF_QUALITY_CHOICES; i-- > 0;) {
            put_row(&b, (i + 1) * 100 / QSF_QUALITY_TENTHS, c->n_blocks, &c->row[i]);
            qsf_strbuf_adds(&b, i > 0 ? ", " : "]}\n");
        }
    } else {
        qsf_quality_use(rt, c);
        table = qsf_quality_text(rt);
        qsf_strbuf_adds(&b, table != NULL ? table : "");
    }
    free(table);
    int rc = qsf_strbuf_ok(&b) ? run_write_raw(qsf_strbuf_str(&b), b.len) : QSF_EXIT_RUNTIME;
    qsf_strbuf_free(&b);
    if (rc == QSF_EXIT_OK && !o->json) qsf_cli_error(&run_cli, "saved as %s", path);
    return rc;
}

static int measure(QsfRuntime *rt, const RunOptions *o, QsfStrbuf *text) {
    QsfErr err = { 0 };
    QsfIds ids = { 0 };
    QsfQualityTable *c = calloc(1, sizeof *c);
    char path[QSF_PATH_MAX];
    uint64_t model = 0;
    int rc = c != NULL ? QSF_OK : qsf_err_memory(&err, "quality");
    if (rc == QSF_OK) rc = qsf_model_identity(rt->model.src, &model, &err);
    if (rc == QSF_OK && !qsf_quality_file_path(path, model))
        rc = qsf_err_set(
            &err, QSF_E_RUNTIME,
            "cannot save the result: neither XDG_STATE_HOME nor HOME is set, or its path is too long");
    if (rc == QSF_OK)
        rc = qsf_tokenizer_encode(rt->tok, qsf_strbuf_str(text), text->len, QSF_TOK_BOS | QSF_TOK_SPECIAL,
                                  &ids, &err);
    QsfQualityMeasure m = { .rt = rt, .ids = ids.data, .n = ids.n };
    const bool shows = isatty(STDERR_FILENO);
    if (shows) m.progress = on_progress;
    if (rc == QSF_OK) rc = qsf_quality_measure(&m, c, &err);
    if (shows) fputs("\r\033[K", stderr);
    if (rc == QSF_OK) {
        c->model = model;
        rc = qsf_quality_file_write(path, c, &err);
    }
    rc = rc == QSF_OK ? report(rt, o, c, path) : run_fail(&err);
    qsf_ids_free(&ids);
    free(c);
    return rc;
}

int run_calibrate_quality(const RunOptions *o) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfRuntime rt;
    QsfRuntimeOptions ro = run_runtime_options(o);
    const RunRoom room = run_room(o);
    int rc = run_read_text("--calibrate-quality", o->calibrate_quality, &room, &text);
    if (rc == QSF_EXIT_OK) {
        if (ro.settings.ctx == 0) ro.settings.ctx = QSF_MEASURED_WINDOW;
        ro.predict = true;
        ro.transcript_bytes = (uint64_t)text.len * BYTES_PER_BYTE + QSF_MEASURED_BYTES + OWN_BYTES;
        rc = run_open(&rt, o, &ro);
        if (rc == QSF_EXIT_OK) {
            rc = measure(&rt, o, &text);
            run_close(&rt, o);
        }
    }
    qsf_strbuf_free(&text);
    return rc;
}
