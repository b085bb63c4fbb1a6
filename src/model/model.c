/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model, assigns every tensor its role, and checks every shape and type of every layer. */
#include "src/model/model.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/format/dtype.h"
#include "src/format/rows.h"
#include "src/model/tensor_roles.h"

static const char *path_of(const QsfModel *m) { return qsf_source_path(m->src); }

static const QsfTensor **slot_of(QsfModel *m, QsfRole role, uint32_t layer) {
    return role < QSF_ROLE_LAYER_N ? &m->layers[layer][role] : &m->global[role - QSF_ROLE_LAYER_N];
}

static int check_shape(const QsfModel *m, const QsfTensor *t, QsfRole role, QsfErr *err) {
    uint64_t cols, rows;
    qsf_role_shape(role, &m->hp, &cols, &rows);
    if (t->ne[0] == cols && t->ne[1] == rows && t->ne[2] == 1 && t->ne[3] == 1) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: tensor '%s' has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                       ", expected %" PRIu64 " x %" PRIu64,
                       path_of(m), t->name, t->ne[0], t->ne[1], t->ne[2], t->ne[3], cols, rows);
}

static int check_type(const QsfModel *m, const QsfTensor *t, QsfRole role, QsfErr *err) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the reader rejects unknown types */
    QsfRoleKind kind = qsf_role_kind(role);
    bool plain = type->block_elems == 1;
    if (kind == QSF_KIND_MATRIX && qsf_dtype_of_64(t->dtype) != t->dtype && m->to_convert) return QSF_OK;
    if (kind == QSF_KIND_MATRIX && qsf_dtype_of_64(t->dtype) != t->dtype)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor '%s' is of type %s: only blocks of 64 can be run; "
                           "qsf-convert converts them losslessly",
                           path_of(m), t->name, type->name);
    if (kind == QSF_KIND_MATRIX && !type->supported)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, which is not supported",
                           path_of(m), t->name, type->name);
    if (kind == QSF_KIND_VECTOR && !(type->supported && plain))
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, expected F32, F16 or BF16",
                           path_of(m), t->name, type->name);
    if (kind == QSF_KIND_F32 && strcmp(type->name, "F32") != 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, expected F32", path_of(m),
                           t->name, type->name);
    return QSF_OK;
}

/* Returns whether models of this family can have a tensor with this role. */
static bool role_fits_arch(QsfRole role, const QsfArch *a) {
    QsfNeed need = qsf_role_need(role);
    if (need == QSF_NEED_LAYER_NORM) return a->norm == QSF_NORM_LAYER;
    if (need == QSF_NEED_GATED || need == QSF_NEED_MAYBE_GATED) return a->gated_ffn;
    return role != QSF_ROLE_ROPE_FREQS || a->rope != QSF_ROPE_NONE;
}

static int place_tensor(QsfModel *m, const QsfTensor *t, QsfErr *err) {
    QsfRole role = QSF_ROLE_N;
    uint32_t layer;
    QsfNameClass cls = qsf_role_of_name(t->name, &role, &layer);
    if (cls == QSF_NAME_IGNORED) return QSF_OK;
    if (cls == QSF_NAME_UNKNOWN || !role_fits_arch(role, m->hp.arch))
        return qsf_err_set(
            err, QSF_E_MODEL,
            "%s: tensor '%s' is not supported in a %s model; ignoring it would give wrong answers",
            path_of(m), t->name, m->hp.arch->name);
    if (role < QSF_ROLE_LAYER_N && layer >= m->hp.n_layers)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: tensor '%s' belongs to layer %u, but the model has %u layers", path_of(m),
                           t->name, layer, m->hp.n_layers);
    int rc = check_shape(m, t, role, err);
    if (rc == QSF_OK) rc = check_type(m, t, role, err);
    if (rc == QSF_OK) *slot_of(m, role, layer) = t;
    return rc;
}

static bool role_required(QsfRole role, const QsfArch *a) {
    QsfNeed need = qsf_role_need(role);
    return need == QSF_NEED_ALWAYS || (need == QSF_NEED_GATED && a->gated_ffn);
}

static int check_complete(QsfModel *m, QsfErr *err) {
    for (int r = QSF_ROLE_LAYER_N; r < QSF_ROLE_N; r++)
        if (role_required((QsfRole)r, m->hp.arch) && *slot_of(m, (QsfRole)r, 0) == NULL)
            return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is missing", path_of(m),
                               qsf_role_name((QsfRole)r));
    for (uint32_t l = 0; l < m->hp.n_layers; l++)
        for (int r = 0; r < QSF_ROLE_LAYER_N; r++)
            if (role_required((QsfRole)r, m->hp.arch) && m->layers[l][r] == NULL)
                return qsf_err_set(err, QSF_E_MODEL, "%s: tensor 'blk.%u.%s' is missing", path_of(m), l,
                                   qsf_role_name((QsfRole)r));
    return QSF_OK;
}

/* Checks the divisors of the RoPE frequencies: each must be a positive number. */
static int check_rope_freqs(const QsfModel *m, QsfErr *err) {
    const QsfTensor *t = qsf_model_tensor(m, QSF_ROLE_ROPE_FREQS, 0);
    float v;
    if (t == NULL) return QSF_OK;
    for (uint64_t i = 0; i < t->ne[0]; i++) {
        uint64_t off = t->offset + i * sizeof v;
        int rc = qsf_source_read_bytes(m->src, t, i * sizeof v, &v, sizeof v, err);
        if (rc != QSF_OK) return rc;
        if (!isfinite(v) || v <= 0.0f)
            return qsf_err_set(
                err, QSF_E_MODEL,
                "%s: tensor '%s' contains a factor that is not positive at byte offset %" PRIu64, path_of(m),
                t->name, off);
    }
    return QSF_OK;
}

static int assign_roles(QsfModel *m, QsfErr *err) {
    m->layers = qsf_arena_alloc(&m->arena, m->hp.n_layers * sizeof *m->layers, sizeof(void *), err);
    if (m->layers == NULL) return err->code;
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < qsf_source_n_tensors(m->src); i++)
        rc = place_tensor(m, qsf_source_tensor(m->src, i), err);
    if (rc == QSF_OK) rc = check_complete(m, err);
    m->tied_head = m->global[QSF_ROLE_HEAD - QSF_ROLE_LAYER_N] == NULL;
    return rc == QSF_OK ? check_rope_freqs(m, err) : rc;
}

/* Runs all checks of m->src. */
static int read_source(QsfModel *m, QsfErr *err) {
    int rc = qsf_hparams_read(&m->hp, m->src, &m->vocab_only, err);
    return rc == QSF_OK && !m->vocab_only ? assign_roles(m, err) : rc;
}

int qsf_model_open(QsfModel *m, const char *path, const char *const *overrides, QsfLedger *ledger,
                   QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    *m = (QsfModel){ 0 };
    qsf_arena_init(&m->arena, ledger, QSF_MEM_META, "tensor roles", 4096);
    int rc = qsf_source_open(&m->src, path, ledger, err);
    for (size_t i = 0; rc == QSF_OK && overrides != NULL && overrides[i] != NULL; i++)
        rc = qsf_source_override(m->src, overrides[i], err);
    if (rc == QSF_OK) rc = read_source(m, err);
    if (rc != QSF_OK) qsf_model_close(m);
    return rc;
}

int qsf_model_of_source(QsfModel *m, QsfSource *src, bool to_convert, QsfLedger *ledger, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    *m = (QsfModel){ .src = src, .borrowed = true, .to_convert = to_convert };
    qsf_arena_init(&m->arena, ledger, QSF_MEM_META, "tensor roles", 4096);
    int rc = read_source(m, err);
    if (rc != QSF_OK) qsf_model_close(m);
    return rc;
}

void qsf_model_close(QsfModel *m) {
    if (!m->borrowed) qsf_source_close(m->src);
    if (m->arena.ledger != NULL) qsf_arena_destroy(&m->arena);
    *m = (QsfModel){ 0 };
}

const QsfTensor *qsf_model_tensor(const QsfModel *m, QsfRole role, uint32_t layer) {
    if ((unsigned)role >= QSF_ROLE_N || m->vocab_only) return NULL;
    if (role < QSF_ROLE_LAYER_N) return layer < m->hp.n_layers ? m->layers[layer][role] : NULL;
    if (role == QSF_ROLE_HEAD && m->tied_head) role = QSF_ROLE_EMBED;
    return m->global[role - QSF_ROLE_LAYER_N];
}

uint64_t qsf_model_n_params(const QsfModel *m) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < qsf_source_n_tensors(m->src); i++) {
        const QsfTensor *t = qsf_source_tensor(m->src, i);
        sum += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return sum;
}

uint64_t qsf_model_bytes_per_token(const QsfModel *m) {
    if (m->vocab_only) return 0;
    uint64_t sum = 0;
    for (uint32_t l = 0; l < m->hp.n_layers; l++)
        for (int r = 0; r < QSF_ROLE_LAYER_N; r++)
            if (m->layers[l][r] != NULL) sum += m->layers[l][r]->bytes;
    const QsfTensor *embed = qsf_model_tensor(m, QSF_ROLE_EMBED, 0);
    return sum + qsf_model_tensor(m, QSF_ROLE_HEAD, 0)->bytes + embed->bytes / embed->ne[1];
}
