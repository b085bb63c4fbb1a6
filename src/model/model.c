/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model and builds its program. */
#include "src/model/model.h"

#include "src/file/qsf/layout.h"
#include "src/model/build.h"

/* ---- the header of a QSF file ---- */

/* Returns the activation of a step. */
static QsfActKind act_of(const QsfStep *s) {
    switch (s->op) {
    case QSF_OP_ACT: return s->u.act.kind;
    case QSF_OP_LINEAR: return s->u.linear.act;
    case QSF_OP_CONV: return s->u.conv.act;
    case QSF_OP_EXPERTS: return s->u.experts.act.kind;
    default: return QSF_ACT_NONE;
    }
}

/* Is it a form of the activation with this code? */
static bool is_act(QsfActKind kind, uint8_t code) {
    switch (kind) {
    case QSF_ACT_GELU: return code == QSFF_GELU;
    case QSF_ACT_SILU:
    case QSF_ACT_SWIGLU_LIMIT:
    case QSF_ACT_SWIGLU_OAI: return code == QSFF_SILU;
    case QSF_ACT_RELU:
    case QSF_ACT_RELU2: return code == QSFF_RELU;
    default: return false;
    }
}

static bool has_act(const QsfProgram *p, uint8_t code) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (is_act(act_of(&p->step[i]), code)) return true;
    return false;
}

static bool has_norm(const QsfProgram *p, uint8_t code) {
    const QsfNormKind kind = code == QSFF_LAYER_NORM ? QSF_NORM_LAYER : QSF_NORM_RMS;
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->step[i].op == QSF_OP_NORM && p->step[i].u.norm.kind == kind) return true;
    return false;
}

static bool has_positions(const QsfProgram *p, uint8_t code) {
    bool found = code == QSFF_LEARNED && p->position_table != NULL;
    for (uint32_t i = 0; i < p->n_steps && !found; i++) {
        const QsfStep *s = &p->step[i];
        found = (code == QSFF_ROPE && s->op == QSF_OP_ROPE) ||
                (code == QSFF_ALIBI && s->op == QSF_OP_ATTENTION && s->u.attention.slopes != QSF_NONE);
    }
    return found;
}

/* Checks that the activation, normalization and position encoding that the header of a QSF file names occur
 * in m->prog: the metadata decides, but a different header belongs to another model, or is damaged.
 * QSF_E_MODEL names file, byte offset and code. Other formats have no header to check. */
static int check_header(const QsfModel *m, QsfErr *err) {
    static const struct {
        const char *what;
        bool (*has)(const QsfProgram *p, uint8_t code);
    } rows[QSF_HEADER_CODES] = { { "activation", has_act },
                                 { "normalization", has_norm },
                                 { "position encoding", has_positions } };
    const uint8_t *code = m->src != NULL ? qsf_source_header_codes(m->src) : NULL;
    for (unsigned i = 0; code != NULL && i < QSF_HEADER_CODES; i++)
        if (code[i] != QSFF_BY_META && !rows[i].has(&m->prog, code[i]))
            return qsf_err_set(
                err, QSF_E_MODEL,
                "%s: the header says %s %u at byte offset %u, which this %s model does not have",
                qsf_source_path(m->src), rows[i].what, code[i], 49 + i, m->hp.arch->name);
    return QSF_OK;
}

/* ---- building ---- */

int qsf_model_build(QsfModel *m, const QsfTensorSet *set, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    const uint32_t first = m->nextn > 0 ? m->hp.n_layers + m->nextn - 1 : 0,
                   end = m->nextn > 0 ? first + 1 : m->hp.n_layers;
    QsfBuilder b = { .m = m, .set = set, .err = err, .block = end, .unit_block = QSF_NONE, .first = first };
    m->reads.arena = &m->arena;
    b.keys = (QsfKeys){
        .src = m->src, .arch = m->hp.arch->name, .err = err, .reads = &m->reads, .n_extra = m->hp.n_extra
    };
    b.p.n_blocks = end;
    b.p.given = QSF_NONE;
    (void)qsf_build_buffer(&b, m->hp.hidden); /* QSF_BUF_X, QSF_BUF_BRANCH */
    (void)qsf_build_buffer(&b, m->hp.hidden);
    m->hp.arch->build(&b);
    if (m->reads.failed)
        qsf_build_check(&b, qsf_err_memory(err, "%s", m->src != NULL ? qsf_source_path(m->src) : "program"));
    return qsf_build_finish(&b, &m->prog, &m->arena);
}

static const QsfTensor *find_in_source(void *arg, const char *name) {
    return qsf_source_find_tensor(arg, name);
}

/* Runs all checks of m->src. */
static int read_source(QsfModel *m, QsfErr *err) {
    m->reads.arena = &m->arena;
    int rc = qsf_hparams_read(&m->hp, m->src, &m->vocab_only, &m->reads, err);
    if (rc != QSF_OK || m->vocab_only) return rc;
    rc = qsf_model_build(m, &(QsfTensorSet){ find_in_source, m->src }, err);
    return rc == QSF_OK ? check_header(m, err) : rc;
}

/* ---- life ---- */

int qsf_model_open(QsfModel *m, const char *path, const char *const *overrides, QsfLedger *ledger,
                   QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    *m = (QsfModel){ 0 };
    qsf_arena_init(&m->arena, ledger, QSF_MEM_META, "program", 4096);
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
    qsf_arena_init(&m->arena, ledger, QSF_MEM_META, "program", 4096);
    int rc = read_source(m, err);
    if (rc != QSF_OK) qsf_model_close(m);
    return rc;
}

void qsf_model_close(QsfModel *m) {
    if (!m->borrowed) qsf_source_close(m->src);
    if (m->arena.ledger != NULL) qsf_arena_destroy(&m->arena);
    *m = (QsfModel){ 0 };
}

/* ---- sizes ---- */

uint64_t qsf_model_n_params(const QsfModel *m) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < qsf_source_n_tensors(m->src); i++) {
        const QsfTensor *t = qsf_source_tensor(m->src, i);
        sum += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return sum;
}
