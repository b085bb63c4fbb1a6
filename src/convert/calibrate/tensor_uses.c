/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks the steps of a program. */
#include "src/convert/calibrate/tensor_uses.h"

#include <stdlib.h>

#include "src/file/qsf/names.h"
#include "src/model/nextn.h"

enum { PARAMS_MAX = 6 }; /* of a step */

typedef struct Walker {
    QsfUses *u;
    const QsfModel *m;
    const QsfProgram *p;
    uint32_t before; /* steps of the programs before this one */
} Walker;

static QsfTensorUse *use_of(const Walker *w, const QsfTensor *t) {
    return &w->u->tensor[t - qsf_source_tensor(w->m->src, 0)];
}

/* ---- parameters */

/* Lists the parameters of a step (QSF_NONE: none). */
static void params_of(const QsfStep *s, uint32_t out[PARAMS_MAX]) {
    for (int i = 0; i < PARAMS_MAX; i++) out[i] = QSF_NONE;
    switch (s->op) {
    case QSF_OP_NORM:
        out[0] = s->u.norm.weight;
        out[1] = s->u.norm.bias;
        break;
    case QSF_OP_BIAS:
    case QSF_OP_GAIN:
    case QSF_OP_MATVEC: out[0] = s->u.param; break;
    case QSF_OP_LERP: out[0] = s->u.lerp.param; break;
    case QSF_OP_BLEND: out[0] = s->u.blend.param; break;
    case QSF_OP_WKV_BONUS: out[0] = s->u.wkv.param; break;
    case QSF_OP_LINEAR:
        for (int i = 0; i < QSF_UNIT_TENSORS; i++) out[i] = s->u.linear.bias[i];
        break;
    case QSF_OP_ATTENTION: out[0] = s->u.attention.sinks; break;
    case QSF_OP_CONV:
        out[0] = s->u.conv.weight;
        out[1] = s->u.conv.bias;
        break;
    case QSF_OP_SCAN1:
    case QSF_OP_SCAN2:
        out[0] = s->u.scan.a;
        out[1] = s->u.scan.d;
        break;
    case QSF_OP_ROUTE:
        out[0] = s->u.route.bias;
        out[1] = s->u.route.expert_scale;
        break;
    case QSF_OP_EXPERTS:
        out[0] = s->u.experts.bias_in[0];
        out[1] = s->u.experts.bias_in[1];
        out[2] = s->u.experts.bias_out;
        break;
    default: break;
    }
}

static void first_use(QsfTensorUse *t, uint32_t order) {
    if (order < t->order) t->order = order;
}

static void see_params(const Walker *w, uint32_t step) {
    uint32_t param[PARAMS_MAX];
    params_of(&w->p->step[step], param);
    for (int i = 0; i < PARAMS_MAX; i++)
        if (param[i] < w->p->n_params)
            first_use(use_of(w, w->p->param[param[i]].tensor), 2 * (w->before + step));
}

/* ---- matrices */

/* A first branch may have Q, K and V in one matrix, so it gets the bits of V. */
static uint32_t role_of(const QsfUnitSpec *u) {
    static const uint32_t roles[QSF_MATMUL_N] = { QSFT_V, QSFT_O, QSFT_UP, QSFT_DOWN, QSFT_HEAD };
    static const uint32_t of_experts[QSF_MATMUL_N] = { QSFT_UP_EXPERTS, QSFT_DOWN_EXPERTS, QSFT_UP_EXPERTS,
                                                       QSFT_DOWN_EXPERTS, QSFT_UP_EXPERTS };
    return (u->on_demand ? of_experts : roles)[u->matmul_class];
}

static QsfUse how_of(const QsfUnitSpec *u, unsigned i) {
    if (u->on_demand) return QSF_USE_EXPERTS;
    if (u->heads > 0) return QSF_USE_HEADS;
    return u->rows[i] > 0 ? QSF_USE_ROWS : QSF_USE_LINEAR; /* a part of its rows: groups could straddle it */
}

static void see_unit(const Walker *w, uint32_t unit, uint32_t step) {
    const QsfUnitSpec *u = &w->p->unit[unit];
    for (unsigned i = 0; i < u->n; i++) {
        QsfTensorUse *t = use_of(w, u->tensor[i]);
        t->use = how_of(u, i);
        t->role = role_of(u);
        first_use(t, 2 * (w->before + step) + 1);
    }
}

static void see_units(const Walker *w, uint32_t step) {
    const QsfStep *s = &w->p->step[step];
    const uint32_t unit = qsf_step_unit(s);
    if (unit != QSF_NONE) see_unit(w, unit, step);
    if (s->op != QSF_OP_EXPERTS) return;
    for (uint32_t e = 0; e < 2 * s->u.experts.n_expert; e++) see_unit(w, s->u.experts.unit + e, step);
}

/* A small error of a router chooses other experts: the matrix whose output it reads is kept. */
static void keep_router(const Walker *w, uint32_t route) {
    const uint32_t buf = w->p->step[route].in.buf;
    for (uint32_t i = route; i > 0; i--) {
        const QsfStep *s = &w->p->step[i - 1];
        if (s->op != QSF_OP_LINEAR) continue;
        const QsfUnitSpec *u = &w->p->unit[s->u.linear.unit];
        for (unsigned k = 0; k < u->n; k++) {
            if (s->out[k].buf != buf) continue;
            use_of(w, u->tensor[k])->use = QSF_USE_KEEP;
            return;
        }
    }
}

static void see_table(const Walker *w, const QsfTensor *t) {
    if (t == NULL) return;
    use_of(w, t)->use = QSF_USE_ROWS;
    use_of(w, t)->role = QSFT_EMBED;
}

static void see_positions(const Walker *w, uint32_t step) {
    QsfTensorUse *t = use_of(w, w->p->position_table);
    t->use = QSF_USE_KEEP;
    first_use(t, 2 * (w->before + step));
}

/* ---- compression */

static bool belongs(const QsfTensor *t, uint32_t block) {
    uint32_t layer;
    return qsf_name_in_layer(t->name, &layer) != NULL && layer == block;
}

/* A compressed layer is read with the matrices of its block: all of them, and all that the block uses, must
 * be in it; experts are read one at a time. */
static void find_whole(const Walker *w) {
    const QsfProgram *p = w->p;
    for (uint32_t b = 0; b < p->n_blocks && b < w->u->n_layers; b++)
        w->u->whole[b] = p->block_unit[b] == p->block_unit[b + 1];
    for (uint32_t i = 0; i < p->n_units; i++) {
        const QsfUnitSpec *u = &p->unit[i];
        for (unsigned k = 0; k < u->n && u->block < w->u->n_layers; k++)
            if (u->on_demand || !belongs(u->tensor[k], u->block)) w->u->whole[u->block] = true;
    }
    for (uint32_t i = 0; i < p->n_params; i++) {
        const QsfParam *q = &p->param[i];
        if (q->block < p->n_blocks && q->block < w->u->n_layers && !belongs(q->tensor, q->block))
            w->u->whole[q->block] = true;
    }
}

/* Layers with tensors that another block, or what follows all blocks, uses. */
static void find_shared(const Walker *w) {
    const QsfProgram *p = w->p;
    uint32_t layer;
    for (uint32_t i = 0; i < p->n_units; i++)
        for (unsigned k = 0; k < p->unit[i].n; k++)
            if (qsf_name_in_layer(p->unit[i].tensor[k]->name, &layer) != NULL && layer < w->u->n_layers &&
                layer != p->unit[i].block)
                w->u->whole[layer] = true;
    for (uint32_t i = 0; i < p->n_params; i++)
        if (qsf_name_in_layer(p->param[i].tensor->name, &layer) != NULL && layer < w->u->n_layers &&
            layer != p->param[i].block)
            w->u->whole[layer] = true;
}

/* ---- all */

static void see_program(const Walker *w) {
    see_table(w, w->p->embed);
    see_table(w, w->p->token_table);
    for (uint32_t i = 0; i < w->p->n_params; i++) use_of(w, w->p->param[i].tensor)->use = QSF_USE_KEEP;
    for (uint32_t i = 0; i < w->p->n_steps; i++) {
        if (w->p->step[i].op == QSF_OP_POSITION) see_positions(w, i);
        see_params(w, i);
        see_units(w, i);
    }
    for (uint32_t i = 0; i < w->p->n_steps; i++)
        if (w->p->step[i].op == QSF_OP_ROUTE) keep_router(w, i);
}

/* The model's next-token blocks. One that cannot be run keeps what it has. */
static void see_blocks(QsfUses *u, const QsfModel *m) {
    uint32_t before = m->prog.n_steps;
    for (uint32_t k = 0; k < qsf_nextn_count(m); k++) {
        QsfModel block;
        if (qsf_nextn_open(&block, m, k, false, NULL) != QSF_OK) continue;
        const Walker w = { .u = u, .m = m, .p = &block.prog, .before = before };
        see_program(&w);
        before += block.prog.n_steps;
        qsf_model_close(&block);
    }
}

/* Reads the program of m. QSF_E_RUNTIME if out of memory. The caller frees the result with qsf_uses_free. */
static int uses_of_model(QsfUses *out, const QsfModel *m, QsfErr *err) {
    const Walker w = { .u = out, .m = m, .p = &m->prog };
    *out = (QsfUses){ .n = qsf_source_n_tensors(m->src), .n_layers = m->hp.n_layers + m->hp.n_extra };
    out->tensor = calloc((size_t)out->n + 1, sizeof *out->tensor);
    out->whole = calloc((size_t)out->n_layers + 1, sizeof *out->whole);
    if (out->tensor == NULL || out->whole == NULL) {
        qsf_uses_free(out);
        return qsf_err_memory(err, "%s", qsf_source_path(m->src));
    }
    for (uint64_t i = 0; i < out->n; i++) out->tensor[i].order = UINT32_MAX;
    see_program(&w);
    see_blocks(out, m);
    find_whole(&w);
    find_shared(&w);
    return QSF_OK;
}

int qsf_uses_of_source(QsfUses *out, QsfSource *s, QsfLedger *ledger, QsfErr *err) {
    QsfModel m;
    *out = (QsfUses){ 0 };
    int rc = qsf_model_of_source(&m, s, true, ledger, err);
    if (rc == QSF_E_MODEL) { /* reported, and allowed, by the checks of the input */
        qsf_err_clear(err);
        return QSF_OK;
    }
    if (rc != QSF_OK) return rc;
    if (!m.vocab_only) rc = uses_of_model(out, &m, err);
    qsf_model_close(&m);
    return rc;
}

void qsf_uses_free(QsfUses *u) {
    free(u->tensor);
    free(u->whole);
    *u = (QsfUses){ 0 };
}
