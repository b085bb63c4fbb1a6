/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/requantize/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "src/format/qsf_names.h"
#include "src/format/qsf_scores.h"
#include "src/format/source_impl.h"

#define KEY_COSINE      QSF_CAL_PREFIX "cosine"
#define KEY_TOKENS      QSF_CAL_PREFIX "tokens"
#define KEY_SKIP_TOKENS QSF_CAL_PREFIX "skip_tokens"

/* ---- memory */

static size_t layer_width(const QsfCalibration *c) {
    size_t sum = 0;
    for (int i = 0; i < QSF_CAL_INPUTS; i++) sum += c->width[i];
    return sum;
}

int qsf_calibration_make(QsfCalibration *c, uint32_t n_layers, const uint32_t *widths, QsfErr *err) {
    *c = (QsfCalibration){ .n_layers = n_layers };
    if (widths != NULL) memcpy(c->width, widths, sizeof c->width);
    c->cosine = calloc((size_t)n_layers + 1, sizeof *c->cosine);
    c->skip_kl = calloc((size_t)n_layers + 1, sizeof *c->skip_kl);
    if (widths != NULL)
        c->energy = calloc(layer_width(c) * n_layers + c->width[QSF_CAL_QKV], sizeof *c->energy);
    if (c->cosine != NULL && c->skip_kl != NULL && (widths == NULL || c->energy != NULL)) return QSF_OK;
    qsf_calibration_free(c);
    return qsf_err_memory(err, "calibration");
}

void qsf_calibration_free(QsfCalibration *c) {
    free(c->cosine);
    free(c->skip_kl);
    free(c->energy);
    *c = (QsfCalibration){ 0 };
}

float *qsf_calibration_energy(const QsfCalibration *c, uint32_t layer, QsfCalInput input) {
    float *e = c->energy + layer_width(c) * layer;
    for (int i = 0; layer < c->n_layers && i < (int)input; i++) e += c->width[i];
    return e;
}

uint32_t qsf_calibration_width(const QsfCalibration *c, uint32_t layer, QsfCalInput input) {
    return c->width[layer < c->n_layers ? input : QSF_CAL_QKV];
}

float qsf_calibration_importance(const QsfCalibration *c, uint32_t layer) {
    return qsf_scores_importance(c->skip_kl[layer]);
}

/* ---- weights of columns */

static const struct {
    uint32_t type;
    QsfCalInput input;
} inputs[] = {
    { QSFT_Q, QSF_CAL_QKV },        { QSFT_K, QSF_CAL_QKV },     { QSFT_V, QSF_CAL_QKV },
    { QSFT_O, QSF_CAL_O },          { QSFT_UP, QSF_CAL_FFN_IN }, { QSFT_GATE, QSF_CAL_FFN_IN },
    { QSFT_DOWN, QSF_CAL_FFN_OUT },
};

/* Finds the input of an item; false if it was not measured. A tied embedding is not weighted: its rows are
 * also the input of the first layer, for which different columns matter than for the head
 * (docs/QUANTIZATION.md). */
static bool input_of(const QsfItems *l, const QsfItem *i, uint32_t *layer, QsfCalInput *input) {
    *layer = i->layer == QSF_FINAL_LAYER ? l->n_layers : i->layer;
    *input = QSF_CAL_QKV;
    if (i->type == QSFT_NAMED && i->use != QSF_USE_LINEAR) return false;
    if (i->role == QSFT_HEAD) return true;
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        if (inputs[k].type != i->role) continue;
        *input = inputs[k].input;
        return true;
    }
    return false;
}

int qsf_calibration_weigh(const QsfCalibration *c, QsfItems *l, const char *path, QsfErr *err) {
    for (uint32_t k = 0; k < l->n; k++) {
        QsfItem *i = &l->item[k];
        QsfCalInput input;
        uint32_t layer;
        if (!input_of(l, i, &layer, &input)) continue;
        if (i->cols != qsf_calibration_width(c, layer, input))
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: tensor '%s' has %u columns, but its input has %u channels", path,
                               i->t->name, i->cols, qsf_calibration_width(c, layer, input));
        i->weights = qsf_calibration_energy(c, layer, input);
    }
    return QSF_OK;
}

/* ---- metadata */

static void put_number(QsfStrbuf *b, const char *key, uint64_t v) {
    qsf_meta_put_str(b, key, strlen(key));
    qsf_meta_put_le(b, QSF_META_U64, 4);
    qsf_meta_put_le(b, v, 8);
}

static void put_layers(QsfStrbuf *b, const char *key, const float *v, uint32_t n) {
    qsf_meta_put_str(b, key, strlen(key));
    qsf_meta_put_le(b, QSF_META_ARRAY, 4);
    qsf_meta_put_le(b, QSF_META_F32, 4);
    qsf_meta_put_le(b, n, 8);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        qsf_meta_put_le(b, bits, 4);
    }
}

void qsf_calibration_put(const QsfCalibration *c, QsfStrbuf *b, uint64_t *n) {
    put_number(b, KEY_TOKENS, c->tokens);
    put_number(b, KEY_SKIP_TOKENS, c->skip_tokens);
    put_layers(b, KEY_COSINE, c->cosine, c->n_layers);
    put_layers(b, QSF_KEY_SKIP_KL, c->skip_kl, c->n_layers);
    *n += 4;
}

static int read_tokens(const QsfSource *s, const char *key, uint64_t *out, QsfErr *err) {
    int64_t v = 0;
    int rc = qsf_meta_i64(s, key, 0, &v, err);
    *out = v > 0 ? (uint64_t)v : 0;
    return rc;
}

int qsf_calibration_read(QsfCalibration *c, const QsfSource *s, uint32_t n_layers, bool *present,
                         QsfErr *err) {
    bool cosine = false;
    int rc = qsf_calibration_make(c, n_layers, NULL, err);
    *present = false;
    if (rc == QSF_OK) rc = qsf_scores_read(s, QSF_KEY_SKIP_KL, n_layers, 0, c->skip_kl, present, err);
    if (rc == QSF_OK) rc = qsf_scores_read(s, KEY_COSINE, n_layers, -1.001f, c->cosine, &cosine, err);
    if (rc == QSF_OK) rc = read_tokens(s, KEY_TOKENS, &c->tokens, err);
    if (rc == QSF_OK) rc = read_tokens(s, KEY_SKIP_TOKENS, &c->skip_tokens, err);
    if (rc != QSF_OK) qsf_calibration_free(c);
    return rc;
}
