/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/pack/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "src/file/qsf/scores.h"
#include "src/file/rows.h"
#include "src/file/source_impl.h"

#define KEY_COSINE      QSF_CAL_PREFIX "cosine"
#define KEY_TOKENS      QSF_CAL_PREFIX "tokens"
#define KEY_SKIP_TOKENS QSF_CAL_PREFIX "skip_tokens"

/* ---- memory */

int qsf_calibration_make(QsfCalibration *c, uint32_t n_layers, uint64_t n_tensors, uint64_t n_energies,
                         QsfErr *err) {
    *c = (QsfCalibration){ .n_layers = n_layers, .n_tensors = n_tensors, .n_energies = n_energies };
    c->cosine = calloc((size_t)n_layers + 1, sizeof *c->cosine);
    c->skip_kl = calloc((size_t)n_layers + 1, sizeof *c->skip_kl);
    if (n_tensors > 0) {
        c->tensor = calloc((size_t)n_tensors, sizeof *c->tensor);
        c->energy = calloc((size_t)n_energies + 1, sizeof *c->energy);
    }
    if (c->cosine != NULL && c->skip_kl != NULL &&
        (n_tensors == 0 || (c->tensor != NULL && c->energy != NULL)))
        return QSF_OK;
    qsf_calibration_free(c);
    return qsf_err_memory(err, "calibration");
}

void qsf_calibration_free(QsfCalibration *c) {
    free(c->cosine);
    free(c->skip_kl);
    free(c->tensor);
    free(c->energy);
    *c = (QsfCalibration){ 0 };
}

const float *qsf_calibration_of(const QsfCalibration *c, uint64_t tensor) {
    return tensor < c->n_tensors && c->tensor[tensor].sets > 0 ? c->energy + c->tensor[tensor].at : NULL;
}

float qsf_calibration_importance(const QsfCalibration *c, uint32_t layer) {
    return qsf_scores_importance(c->skip_kl[layer]);
}

/* ---- weights of columns */

int qsf_calibration_weigh(const QsfCalibration *c, QsfItems *l, const QsfSource *s, QsfErr *err) {
    for (uint32_t k = 0; k < l->n; k++) {
        QsfItem *i = &l->item[k];
        const uint64_t tensor = (uint64_t)(i->t - qsf_source_tensor(s, 0));
        const float *energies = qsf_calibration_of(c, tensor);
        if (energies == NULL || !qsf_item_is_matrix(i)) continue;
        const QsfCalTensor *t = &c->tensor[tensor];
        if (i->cols != t->width || (t->sets > 1 && i->t->ne[1] * t->sets != qsf_tensor_n_rows(i->t)))
            return qsf_err_set(err, QSF_E_MODEL,
                               "%s: tensor '%s' has %u columns, but its input has %u channels for each of %u "
                               "matrices",
                               qsf_source_path(s), i->t->name, i->cols, t->width, t->sets);
        i->weights = energies;
        i->set_rows = t->sets > 1 ? i->t->ne[1] : 0;
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
    int rc = qsf_calibration_make(c, n_layers, 0, 0, err);
    *present = false;
    if (rc == QSF_OK) rc = qsf_scores_read(s, QSF_KEY_SKIP_KL, n_layers, 0, c->skip_kl, present, err);
    if (rc == QSF_OK) rc = qsf_scores_read(s, KEY_COSINE, n_layers, -1.001f, c->cosine, &cosine, err);
    if (rc == QSF_OK) rc = read_tokens(s, KEY_TOKENS, &c->tokens, err);
    if (rc == QSF_OK) rc = read_tokens(s, KEY_SKIP_TOKENS, &c->skip_tokens, err);
    if (rc != QSF_OK) qsf_calibration_free(c);
    return rc;
}
