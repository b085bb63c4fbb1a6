/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/model/header.h"

#include "src/file/qsf/layout.h"

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

int qsf_header_check(const QsfModel *m, QsfErr *err) {
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
