/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening and closing rigs; models of shapes only. */
#include "tests/harness/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/plan/kv_lend.h"
#include "src/plan/layout.h"

static int lend(QsfRig *r, uint32_t step, QsfErr *err) {
    r->plan.kv_step = step;
    if (r->plan.expert_slots > 0) return QSF_OK; /* what is lent is for experts */
    free(r->plan.lend);
    r->plan.lend = malloc(r->plan.n_units * sizeof *r->plan.lend);
    if (r->plan.lend == NULL) return qsf_err_memory(err, "rig");
    r->plan.n_lend = qsf_lend_order(&r->model, NULL, r->plan.pinned_items, r->plan.lend);
    return QSF_OK;
}

/* All blocks but every second one that may be skipped. */
static int choose_held(const QsfRig *r, QsfBlockSet *hold, QsfErr *err) {
    QsfBlockSet optional;
    int rc = qsf_optional_blocks(&r->model, &optional, err);
    for (uint32_t i = 0, n = 0; rc == QSF_OK && i < r->model.prog.n_blocks; i++)
        if (!qsf_blocks_have(&optional, i) || n++ % 2 == 1) qsf_blocks_add(hold, i);
    return rc;
}

static int make_plan(QsfRig *r, const QsfRigOptions *o, QsfErr *err) {
    QsfQuality q = { .value = o->quality, .experts = o->limits };
    qsf_quality_sketch(&q, &r->model);
    QsfPlanOptions po = {
        .quality = q,
        .budget = 4ull << 30,
        .ctx = o->ctx,
        .k = o->k_type != NULL ? (int)qsf_kv_type_parse(o->k_type) : -1,
        .v = o->v_type != NULL ? (int)qsf_kv_type_parse(o->v_type) : -1,
        .pin_cap = o->stream         ? 0
                   : o->pin_cap != 0 ? o->pin_cap
                                     : UINT64_MAX,
        .batch = o->batch,
        .threads = o->threads > 0 ? o->threads : 1,
        .threads_auto = o->measured,
        .exact = o->exact,
    };
    po.holds = po.hold_head = o->hold;
    int rc = o->hold ? choose_held(r, &po.hold, err) : QSF_OK;
    if (rc == QSF_OK) rc = qsf_plan_make(&r->plan, &r->model, &po, err);
    if (rc != QSF_OK) return rc;
    if (o->n_slots != 0) r->plan.n_slots = o->n_slots;
    r->plan.stream.kind = o->io;
    r->plan.stream.ahead = o->ahead;
    if (o->slot_bytes > 1) r->plan.slot_bytes = o->slot_bytes;
    if (o->slot_bytes == 1) {
        QsfShape s;
        qsf_shape_make(&s, &r->model, &r->table);
        r->plan.slot_bytes = s.min_slot;
    }
    return o->kv_step > 0 ? lend(r, o->kv_step, err) : QSF_OK;
}

static void set_quality(QsfRig *r, const QsfRigOptions *o) {
    QsfQuality q = { .value = o->quality, .experts = o->limits };
    qsf_quality_sketch(&q, &r->model);
    qsf_forward_set_quality(r->fwd, &q);
}

int qsf_rig_open(QsfRig *r, const QsfRigOptions *o, QsfErr *err) {
    memset(r, 0, sizeof *r);
    qsf_ledger_init(&r->ledger, 0);
    atomic_init(&r->cancel, 0);
    qk_table_init(&r->table, o->level == QK_LEVEL_UNKNOWN ? qk_cpu_best() : o->level);
    int rc = qsf_model_open(&r->model, o->path, o->overrides, &r->ledger, err);
    if (rc != QSF_OK) return rc;
    rc = make_plan(r, o, err);
    if (rc == QSF_OK) rc = qsf_pool_create(&r->pool, r->plan.threads, &r->ledger, err);
    const QsfForwardOptions fo = { .model = &r->model,
                                   .plan = &r->plan,
                                   .table = &r->table,
                                   .pool = r->pool,
                                   .ledger = &r->ledger,
                                   .cancel = &r->cancel };
    if (rc == QSF_OK) rc = qsf_forward_create(&r->fwd, &fo, err);
    if (rc == QSF_OK && (o->quality > 0 || qsf_expert_limits_any(&o->limits))) set_quality(r, o);
    if (rc != QSF_OK) qsf_rig_close(r);
    return rc;
}

void qsf_rig_close(QsfRig *r) {
    qsf_forward_destroy(r->fwd);
    qsf_pool_destroy(r->pool);
    qsf_plan_free(&r->plan);
    qsf_model_close(&r->model);
    r->fwd = NULL;
    r->pool = NULL;
}

uint64_t qsf_rig_leak(QsfRig *r) {
    QsfLedger now;
    qsf_ledger_snapshot(&r->ledger, &now);
    return now.total;
}

/* ---- models of shapes ---- */

/* The tensors of a model of shapes, made as the program asks for them. */
typedef struct Shapes {
    const QsfModel *m;
    const QsfShapeSpec *spec;
    QsfTensor **tensor;
    uint32_t n;
    struct Shapes *next;
} Shapes;

static Shapes *all_shapes;
static QsfLedger shapes_ledger;

static Shapes *shapes_of(const QsfModel *m) {
    Shapes *s = all_shapes;
    while (s != NULL && s->m != m) s = s->next;
    if (s == NULL) abort();
    return s;
}

uint32_t qsf_shape_tensors(const QsfModel *m, QsfTensor *const **tensors) {
    const Shapes *s = shapes_of(m);
    *tensors = s->tensor;
    return s->n;
}

static const QsfTensor *make_tensor(Shapes *s, const char *name, uint32_t dtype, uint64_t cols,
                                    uint64_t rows) {
    QsfTensor *t = calloc(1, sizeof *t);
    uint64_t row = 0;
    s->tensor = realloc(s->tensor, (s->n + 1) * sizeof(QsfTensor *));
    if (t == NULL || s->tensor == NULL || !qsf_dtype_row_bytes(qsf_dtype(dtype), cols, &row)) abort();
    *t = (QsfTensor){
        .name = strdup(name), .dtype = dtype, .n_dims = 2, .ne = { cols, rows, 1, 1 }, .bytes = row * rows
    };
    s->tensor[s->n++] = t;
    return t;
}

static const QsfTensor *find_shape(void *arg, const char *name) {
    Shapes *s = arg;
    const QsfShapeSpec *p = s->spec;
    const uint64_t h = p->hidden, kv = h / p->heads * p->kv_heads;
    const struct {
        const char *name;
        uint32_t dtype;
        uint64_t cols, rows;
    } shapes[] = {
        { "token_embd.weight", p->dtype, h, p->vocab },
        { "output_norm.weight", 0, h, 1 },
        { "output.weight", p->dtype, h, p->tied ? 0 : p->vocab },
        { "attn_norm.weight", 0, h, 1 },
        { "ffn_norm.weight", 0, h, 1 },
        { "attn_q.weight", p->dtype, h, h },
        { "attn_k.weight", p->dtype, h, kv },
        { "attn_v.weight", p->dtype, h, kv },
        { "attn_output.weight", p->dtype, h, h },
        { "ffn_gate.weight", p->dtype, h, p->ffn },
        { "ffn_up.weight", p->dtype, h, p->ffn },
        { "ffn_down.weight", p->dtype, p->ffn, h },
    };
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->tensor[i]->name, name) == 0) return s->tensor[i];
    const char *rest = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') + 1 : name;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, rest) == 0 && shapes[i].rows > 0)
            return make_tensor(s, name, shapes[i].dtype, shapes[i].cols, shapes[i].rows);
    return NULL;
}

void qsf_shape_model(QsfModel *m, const QsfShapeSpec *s) {
    Shapes *shapes = calloc(1, sizeof *shapes);
    QsfErr err = { 0 };
    if (shapes == NULL) abort();
    if (all_shapes == NULL) qsf_ledger_init(&shapes_ledger, 0);
    *shapes = (Shapes){ .m = m, .spec = s, .next = all_shapes };
    all_shapes = shapes;
    memset(m, 0, sizeof *m);
    qsf_arena_init(&m->arena, &shapes_ledger, QSF_MEM_META, "program", 4096);
    m->hp = (QsfHparams){ .arch = qsf_family_find("llama"),
                          .n_layers = s->layers,
                          .hidden = s->hidden,
                          .n_heads = s->heads,
                          .n_kv_heads = s->kv_heads,
                          .head_dim = s->hidden / s->heads,
                          .v_dim = s->hidden / s->heads,
                          .ffn = s->ffn,
                          .n_vocab = s->vocab,
                          .n_ctx_train = s->ctx,
                          .norm_eps = 1e-5f };
    for (uint32_t l = 0; l < s->layers; l++)
        m->hp.block[l] = (QsfBlockSizes){ .heads = s->heads, .kv_heads = s->kv_heads, .ffn = s->ffn };
    if (qsf_model_build(m, &(QsfTensorSet){ find_shape, shapes }, &err) != QSF_OK) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
}

void qsf_shape_model_free(QsfModel *m) {
    Shapes **at = &all_shapes;
    while ((*at)->m != m) at = &(*at)->next;
    Shapes *s = *at;
    *at = s->next;
    for (uint32_t i = 0; i < s->n; i++) {
        free((char *)(uintptr_t)s->tensor[i]->name);
        free(s->tensor[i]);
    }
    free(s->tensor);
    free(s);
    qsf_arena_destroy(&m->arena);
}
