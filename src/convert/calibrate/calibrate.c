/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/calibrate/calibrate.h"
#include "src/base/platform.h"

#include "qsf_decode.h"

#include "src/convert/calibrate/calibration_run.h"
#include "src/convert/calibrate/calibration_text.h"

#define WINDOW 512u
/* Memory per byte of text, which is at most one token: its id, in a list that grows by half. */
#define BYTES_PER_BYTE 6u
#define OWN_BYTES      (2u << 20) /* a chat as JSON and as text, and libc buffers */

/* Plans before memory is planned: from the program, without reading weights. */
static int plan_of(QsfCalibratePlan *p, const QsfCalibrateOptions *o, QsfErr *err) {
    QsfLedger ledger;
    QsfModel m;
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_model_open(&m, o->model, o->overrides, &ledger, err);
    if (rc == QSF_OK && m.vocab_only)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: the model has no weights", o->model);
    else if (rc == QSF_OK)
        rc = qsf_calibrate_plan(p, &m, WINDOW, err);
    if (m.src != NULL) qsf_model_close(&m);
    qsf_ledger_destroy(&ledger);
    return rc;
}

static int run_ids(QsfRuntime *rt, const QsfCalibratePlan *p, const QsfCalibrateOptions *o, QsfIds *ids,
                   QsfCalibration *out, QsfErr *err) {
    const QsfCalibrateRun r = { .rt = rt,
                                .plan = p,
                                .ids = ids->data,
                                .n = ids->n,
                                .bos = qsf_tokenizer_adds_bos(rt->tok) ? qsf_tokenizer_bos(rt->tok) : -1,
                                .progress = o->progress,
                                .arg = o->arg };
    return qsf_calibrate_run(&r, out, err);
}

static int run_text(QsfStrbuf *text, const QsfCalibratePlan *p, const QsfCalibrateOptions *o,
                    QsfCalibration *out, QsfErr *err) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = { .settings = o->settings, .overrides = o->overrides, .cancel = o->cancel };
    QsfIds ids = { 0 };
    ro.settings.ctx = p->window;
    qsf_plan_fix_types(&ro.settings); /* the same file with any budget */
    ro.transcript_bytes = (uint64_t)text->len * BYTES_PER_BYTE + OWN_BYTES + qsf_calibrate_run_bytes(p);
    int rc = qsf_runtime_open(&rt, o->model, &ro, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_calibrate_encode(o->text, text, rt.tmpl, rt.tok, &ids, err);
    qsf_strbuf_free(text);
    qsf_os_trim_heap(); /* release the text and temporary buffers */
    if (rc == QSF_OK) rc = run_ids(&rt, p, o, &ids, out, err);
    qsf_ids_free(&ids);
    qsf_runtime_close(&rt);
    return rc;
}

int qsf_calibrate(QsfCalibration *out, const QsfCalibrateOptions *o, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfCalibratePlan p = { .n_layers = 0 };
    *out = (QsfCalibration){ 0 };
    bool damaged;
    int rc = qsf_calibrate_read(o->text, o->cancel, &text, &damaged, err);
    if (rc == QSF_OK && damaged && o->notice != NULL) o->notice(o->arg, QSF_DECODE_DAMAGED);
    if (rc == QSF_OK) rc = plan_of(&p, o, err);
    if (rc == QSF_OK) rc = run_text(&text, &p, o, out, err);
    qsf_calibrate_plan_free(&p);
    qsf_strbuf_free(&text);
    return rc;
}
