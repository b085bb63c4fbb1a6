/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names and kinds of steps. */
#include "src/model/program.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/model/model.h"

static const struct {
    const char *name;
    bool column;
    bool in_place; /* reads what out holds */
} ops[QSF_OP_N] = {
    [QSF_OP_NORM] = { "norm", true, false },
    [QSF_OP_ADD] = { "add", true, true },
    [QSF_OP_MUL] = { "mul", true, true },
    [QSF_OP_COPY] = { "copy", true, false },
    [QSF_OP_SCALE] = { "scale", true, true },
    [QSF_OP_BIAS] = { "bias", true, true },
    [QSF_OP_GAIN] = { "gain", true, true },
    [QSF_OP_CLAMP] = { "clamp", true, true },
    [QSF_OP_SOFTCAP] = { "softcap", true, true },
    [QSF_OP_ACT] = { "act", true, true },
    [QSF_OP_ROPE] = { "rope", true, true },
    [QSF_OP_POSITION] = { "position", false, true },
    [QSF_OP_TEMPERATURE] = { "temperature", true, true },
    [QSF_OP_HEADS] = { "heads", true, false },
    [QSF_OP_ROUTE] = { "route", true, false },
    [QSF_OP_MATVEC] = { "matvec", true, false },
    [QSF_OP_SPARSE] = { "sparse", true, true },
    [QSF_OP_MATCH] = { "match", true, true },
    [QSF_OP_PREDICT] = { "predict", true, true },
    [QSF_OP_CORRECT] = { "correct", true, true },
    [QSF_OP_BLEND] = { "blend", true, false },
    [QSF_OP_KV_STORE] = { "kv_store", true, false },
    [QSF_OP_CONV] = { "conv", false, false },
    [QSF_OP_SCAN1] = { "scan1", false, false },
    [QSF_OP_SCAN2] = { "scan2", false, false },
    [QSF_OP_LERP] = { "lerp", true, false },
    [QSF_OP_WKV_BONUS] = { "wkv_bonus", true, true },
    [QSF_OP_INDEX] = { "index", false, false },
    [QSF_OP_SHIFT] = { "shift", false, false },
    [QSF_OP_DELTA] = { "delta", false, false },
    [QSF_OP_WKV] = { "wkv", false, false },
    [QSF_OP_TOKEN_ROWS] = { "token_rows", false, false },
    [QSF_OP_LINEAR] = { "linear", false, false },
    [QSF_OP_HEAD_LINEAR] = { "head_linear", false, false },
    [QSF_OP_ATTENTION] = { "attention", false, false },
    [QSF_OP_EXPERTS] = { "experts", false, false },
};

static const char *const acts[QSF_ACT_N] = {
    [QSF_ACT_NONE] = "none",
    [QSF_ACT_SILU] = "silu",
    [QSF_ACT_GELU] = "gelu",
    [QSF_ACT_RELU2] = "relu2",
    [QSF_ACT_RELU] = "relu",
    [QSF_ACT_SIGMOID] = "sigmoid",
    [QSF_ACT_SOFTPLUS] = "softplus",
    [QSF_ACT_TANH] = "tanh",
    [QSF_ACT_XIELU] = "xielu",
    [QSF_ACT_EXP] = "exp",
    [QSF_ACT_SWIGLU_LIMIT] = "swiglu_limit",
    [QSF_ACT_SITU] = "situ",
    [QSF_ACT_SWIGLU_OAI] = "swiglu_oai",
};

uint32_t qsf_step_unit(const QsfStep *s) {
    if (s->op == QSF_OP_LINEAR) return s->u.linear.unit;
    return s->op == QSF_OP_HEAD_LINEAR ? s->u.head_linear.unit : QSF_NONE;
}

bool qsf_step_is_in_place(const QsfStep *s) {
    if (s->op == QSF_OP_HEADS) return s->u.heads.keep;
    if (s->op == QSF_OP_LERP) return s->u.lerp.param == QSF_NONE;
    return ops[s->op].in_place;
}

bool qsf_op_is_column(QsfOp op) { return ops[op].column; }
const char *qsf_op_name(QsfOp op) { return ops[op].name; }
const char *qsf_act_name(QsfActKind kind) { return acts[kind]; }

#define NAMES_MAX 64

/* The buffers of one block, in the order of their use. */
typedef struct Names {
    uint32_t buf[NAMES_MAX];
    uint32_t n;
} Names;

static void put_slice(QsfStrbuf *out, const QsfModel *m, Names *names, QsfSlice s) {
    const QsfProgram *p = &m->prog;
    uint32_t i = 0, width = s.buf < p->n_bufs ? p->buf[s.buf].width : s.width;
    if (s.buf == QSF_BUF_X)
        qsf_strbuf_adds(out, "x");
    else if (s.buf == QSF_BUF_BRANCH)
        qsf_strbuf_adds(out, "branch");
    else if (s.buf == QSF_BUF_LOGITS)
        qsf_strbuf_adds(out, "logits");
    else {
        while (i < names->n && names->buf[i] != s.buf) i++;
        if (i == names->n && names->n < NAMES_MAX) names->buf[names->n++] = s.buf;
        qsf_strbuf_addf(out, "t%u", i);
    }
    if (s.width != width) qsf_strbuf_addf(out, "[%u:%u]", s.off, s.off + s.width);
}

/* Columns and rows of the matrices of a linear step, which have the same columns. */
static void put_shapes(QsfStrbuf *out, const QsfUnitSpec *u) {
    for (unsigned t = 0; t < u->n; t++) {
        const uint64_t rows = u->rows[t] > 0 ? u->rows[t] : u->tensor[t]->ne[1];
        if (t == 0) qsf_strbuf_addf(out, " %" PRIu64 " to", u->tensor[0]->ne[0]);
        qsf_strbuf_addf(out, "%s %" PRIu64, t > 0 ? "," : "", rows);
    }
}

static void put_numbers(QsfStrbuf *out, const QsfModel *m, const QsfStep *s) {
    static const char *const norms[] = { "rms", "layer", "l2" };
    const QsfProgram *p = &m->prog;
    const QsfAttentionStep *a = &s->u.attention;
    switch (s->op) {
    case QSF_OP_NORM:
        qsf_strbuf_addf(out, " %s", norms[s->u.norm.kind]);
        if (s->u.norm.heads > 1) qsf_strbuf_addf(out, ", %u heads", s->u.norm.heads);
        break;
    case QSF_OP_LINEAR:
        put_shapes(out, &p->unit[s->u.linear.unit]);
        if (s->u.linear.act != QSF_ACT_NONE) qsf_strbuf_addf(out, " then %s", qsf_act_name(s->u.linear.act));
        break;
    case QSF_OP_HEAD_LINEAR: qsf_strbuf_addf(out, " %u heads", s->u.head_linear.heads); break;
    case QSF_OP_ACT: qsf_strbuf_addf(out, " %s", qsf_act_name(s->u.act.kind)); break;
    case QSF_OP_ROPE:
        qsf_strbuf_addf(out, " table %u, %u heads, %u elements", s->u.rope.table, s->u.rope.heads,
                        p->rope[s->u.rope.table].n_rot);
        break;
    case QSF_OP_SCALE:
    case QSF_OP_SOFTCAP: qsf_strbuf_addf(out, " %g", (double)s->u.scale); break;
    case QSF_OP_ATTENTION:
        qsf_strbuf_addf(out, " %u heads, %u KV heads of %u", a->heads, p->kv[a->kv].heads, p->kv[a->kv].dim);
        if (p->kv[a->kv].v_is_k) qsf_strbuf_adds(out, ", V is K");
        if (a->window > 0) qsf_strbuf_addf(out, ", window %u", a->window);
        if (a->chunk > 0) qsf_strbuf_addf(out, ", chunk %u", a->chunk);
        if (a->softcap > 0) qsf_strbuf_addf(out, ", softcap %g", (double)a->softcap);
        if (a->sinks != QSF_NONE) qsf_strbuf_adds(out, ", sinks");
        if (a->slopes != QSF_NONE) qsf_strbuf_adds(out, ", ALiBi");
        break;
    case QSF_OP_INDEX: qsf_strbuf_addf(out, " %u heads, %u positions", s->u.index.heads, s->u.index.n); break;
    case QSF_OP_CONV:
        qsf_strbuf_addf(out, " kernel %u", s->u.conv.kernel);
        if (s->u.conv.act != QSF_ACT_NONE) qsf_strbuf_addf(out, " then %s", qsf_act_name(s->u.conv.act));
        break;
    case QSF_OP_SCAN1:
    case QSF_OP_SCAN2:
        qsf_strbuf_addf(out, " %u heads of %u, state %u, %u groups", s->u.scan.heads, s->u.scan.dim,
                        s->u.scan.n, s->u.scan.groups);
        break;
    case QSF_OP_ROUTE: qsf_strbuf_addf(out, " %u of %u", s->u.route.n_used, s->u.route.n_expert); break;
    case QSF_OP_EXPERTS:
        qsf_strbuf_addf(out, " %u of %u, %u rows, %s", s->u.experts.n_used, s->u.experts.n_expert,
                        s->u.experts.ffn, qsf_act_name(s->u.experts.act.kind));
        break;
    default: break;
    }
}

/* The label of a step; of matrices their names without "blk.N." and ".weight". */
static const char *label_of(const QsfModel *m, const QsfStep *s, char *buf, size_t cap) {
    size_t at = 0;
    const uint32_t unit = qsf_step_unit(s);
    if (unit == QSF_NONE) return s->label;
    const QsfUnitSpec *u = &m->prog.unit[unit];
    for (unsigned t = 0; t < u->n && at < cap; t++) {
        const char *name = u->tensor[t]->name,
                   *dot = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
        if (dot != NULL) name = dot + 1;
        const char *end = strstr(name, ".weight");
        at += (size_t)snprintf(buf + at, cap - at, "%s%.*s", t > 0 ? ", " : "",
                               (int)(end != NULL ? (size_t)(end - name) : strlen(name)), name);
    }
    return buf;
}

static void put_step(QsfStrbuf *out, const QsfModel *m, Names *names, const QsfStep *s) {
    char label[96];
    qsf_strbuf_addf(out, "  %-11s %-28s ", qsf_op_name(s->op), label_of(m, s, label, sizeof label));
    if (s->in.buf != QSF_NONE) put_slice(out, m, names, s->in);
    if (s->in2.buf != QSF_NONE) {
        qsf_strbuf_adds(out, ", ");
        put_slice(out, m, names, s->in2);
    }
    if (s->in3.buf != QSF_NONE) {
        qsf_strbuf_adds(out, ", ");
        put_slice(out, m, names, s->in3);
    }
    if (s->out[0].buf != QSF_NONE) qsf_strbuf_adds(out, s->in.buf != QSF_NONE ? " -> " : "-> ");
    for (unsigned i = 0; i < QSF_UNIT_TENSORS && s->out[i].buf != QSF_NONE; i++) {
        if (i > 0) qsf_strbuf_adds(out, ", ");
        put_slice(out, m, names, s->out[i]);
    }
    put_numbers(out, m, s);
    qsf_strbuf_addc(out, '\n');
}

/* Appends step *i and those after it that belong to the same block, and sets *i to the first
 * step of the next one. */
static void put_block(QsfStrbuf *out, const QsfModel *m, uint32_t *i) {
    const QsfProgram *p = &m->prog;
    const uint32_t block = p->step[*i].block;
    Names names = { .n = 0 };
    for (; *i < p->n_steps && p->step[*i].block == block; (*i)++) put_step(out, m, &names, &p->step[*i]);
}

static void put_heading(QsfStrbuf *out, const QsfProgram *p, uint32_t first, uint32_t last, bool start) {
    if (first == p->n_blocks)
        qsf_strbuf_adds(out, start ? "embedding\n" : "head\n");
    else if (first == last)
        qsf_strbuf_addf(out, "block %u\n", first);
    else
        qsf_strbuf_addf(out, "blocks %u to %u\n", first, last);
}

void qsf_program_put_text(QsfStrbuf *out, const QsfModel *m) {
    const QsfProgram *p = &m->prog;
    QsfStrbuf text = QSF_STRBUF_INIT, next = QSF_STRBUF_INIT;
    for (uint32_t i = 0; i < p->n_steps;) {
        const uint32_t first = p->step[i].block, begin = i;
        uint32_t last = first;
        qsf_strbuf_clear(&text);
        put_block(&text, m, &i);
        while (first < p->n_blocks && i < p->n_steps && p->step[i].block < p->n_blocks) {
            uint32_t end = i;
            qsf_strbuf_clear(&next);
            put_block(&next, m, &end);
            if (strcmp(qsf_strbuf_str(&text), qsf_strbuf_str(&next)) != 0) break;
            last = p->step[i].block;
            i = end;
        }
        put_heading(out, p, first, last, begin == 0);
        qsf_strbuf_adds(out, qsf_strbuf_str(&text));
    }
    qsf_strbuf_free(&text);
    qsf_strbuf_free(&next);
}

void qsf_program_put_json(QsfStrbuf *out, const QsfModel *m) {
    const QsfProgram *p = &m->prog;
    qsf_strbuf_addc(out, '[');
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const QsfStep *s = &p->step[i];
        qsf_strbuf_addf(out, "%s{\"block\": %u, \"op\": \"%s\", \"label\": \"%s\"", i > 0 ? ", " : "",
                        s->block, qsf_op_name(s->op), s->label);
        const uint32_t unit = qsf_step_unit(s);
        if (unit != QSF_NONE) {
            const QsfUnitSpec *u = &p->unit[unit];
            qsf_strbuf_adds(out, ", \"tensors\": [");
            for (unsigned t = 0; t < u->n; t++) {
                qsf_strbuf_adds(out, t > 0 ? ", " : "");
                qsf_json_put_string(out, u->tensor[t]->name, strlen(u->tensor[t]->name));
            }
            qsf_strbuf_addc(out, ']');
        }
        qsf_strbuf_addc(out, '}');
    }
    qsf_strbuf_addc(out, ']');
}
