/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/calibrate/calibrate.h"

#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "src/calibrate/calibration_run.h"
#include "src/calibrate/calibration_text.h"
#include "src/format/qsf_fields.h"

#define WINDOW 512u
/* Memory per byte of text, which is at most one token: its id, in a list that grows by half. */
#define BYTES_PER_BYTE 6u
#define OWN_BYTES      (2u << 20) /* a chat as JSON and as text, and libc buffers */

/* Values needed before memory is planned; not checked yet at that point. */
typedef struct Shape {
    uint32_t n_layers, n_vocab, window, width[QSF_CAL_INPUTS];
} Shape;

static int shape_of(Shape *s, const char *path, QsfErr *err) {
    QsfFileHeader h = { 0 };
    QsfLedger ledger;
    QsfSource *src;
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_source_open(&src, path, &ledger, err);
    if (rc == QSF_OK) {
        rc = qsf_fields_of_source(&h, src, err);
        qsf_source_close(src);
    }
    qsf_ledger_destroy(&ledger);
    *s = (Shape){ h.n_layers,
                  h.n_vocab,
                  h.n_ctx > 0 && h.n_ctx < WINDOW ? h.n_ctx : WINDOW,
                  { h.hidden, h.n_heads * h.head_dim, h.hidden, h.ffn } };
    return rc;
}

static int run_ids(QsfRuntime *rt, const Shape *s, const QsfCalibrateOptions *o, QsfIds *ids,
                   QsfCalibration *out, QsfErr *err) {
    const QsfCalibrateRun r = { .rt = rt,
                                .ids = ids->data,
                                .n = ids->n,
                                .window = s->window,
                                .bos = qsf_tokenizer_adds_bos(rt->tok) ? qsf_tokenizer_bos(rt->tok) : -1,
                                .progress = o->progress,
                                .arg = o->arg };
    const QsfHparams *hp = &rt->model.hp;
    const uint32_t width[QSF_CAL_INPUTS] = { hp->hidden, hp->n_heads * hp->head_dim, hp->hidden, hp->ffn };
    int rc = qsf_calibration_make(out, hp->n_layers, width, err);
    if (rc == QSF_OK) rc = qsf_calibrate_run(&r, out, err);
    if (rc != QSF_OK) qsf_calibration_free(out);
    return rc;
}

static int run_text(QsfStrbuf *text, const Shape *s, const QsfCalibrateOptions *o, QsfCalibration *out,
                    QsfErr *err) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = { .settings = o->settings, .cancel = o->cancel };
    QsfIds ids = { 0 };
    ro.settings.ctx = s->window;
    ro.transcript_bytes = (uint64_t)text->len * BYTES_PER_BYTE + OWN_BYTES +
                          qsf_calibrate_run_bytes(s->n_layers, s->width, s->n_vocab, s->window);
    int rc = qsf_runtime_open(&rt, o->model, &ro, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_calibrate_encode(o->text, text, rt.tmpl, rt.tok, &ids, err);
    qsf_strbuf_free(text);
#ifdef __GLIBC__
    malloc_trim(0); /* release the text and temporary buffers */
#endif
    if (rc == QSF_OK) rc = run_ids(&rt, s, o, &ids, out, err);
    qsf_ids_free(&ids);
    qsf_runtime_close(&rt);
    return rc;
}

int qsf_calibrate(QsfCalibration *out, const QsfCalibrateOptions *o, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    Shape s;
    *out = (QsfCalibration){ 0 };
    int rc = qsf_calibrate_read(o->text, o->cancel, &text, err);
    if (rc == QSF_OK) rc = shape_of(&s, o->model, err);
    if (rc == QSF_OK) rc = run_text(&text, &s, o, out, err);
    qsf_strbuf_free(&text);
    return rc;
}
