/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens a model and builds its program. */
#include "src/model/model.h"

#include "src/model/build.h"
#include "src/model/header.h"

/* ---- building ---- */

int qsf_model_build(QsfModel *m, const QsfTensorSet *set, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    QsfBuilder b = { .m = m, .set = set, .err = err, .block = m->hp.n_layers, .unit_block = QSF_NONE };
    m->reads.arena = &m->arena;
    b.keys = (QsfKeys){ .src = m->src, .arch = m->hp.arch->name, .err = err, .reads = &m->reads };
    b.p.n_blocks = m->hp.n_layers;
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
    return rc == QSF_OK ? qsf_header_check(m, err) : rc;
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

/* Bytes of tensor t of a unit that a token needs: of the experts of a block on average the same part of each. */
static uint64_t active_bytes(const QsfUnitSpec *u, unsigned t) {
    const QsfTensor *w = u->tensor[t];
    if (!u->on_demand) return w->bytes;
    return w->bytes / (w->ne[1] * w->ne[2]) * u->rows[t] * u->n_used / u->n_expert;
}

uint64_t qsf_model_bytes_per_token(const QsfModel *m) {
    const QsfProgram *p = &m->prog;
    uint64_t sum = 0;
    if (m->vocab_only) return 0;
    for (uint32_t i = 0; i < p->n_units; i++)
        for (unsigned t = 0; t < p->unit[i].n; t++) sum += active_bytes(&p->unit[i], t);
    for (uint32_t i = 0; i < p->n_params; i++)
        if (p->param[i].block < p->n_blocks) sum += p->param[i].tensor->bytes;
    if (p->token_table != NULL) sum += p->token_table->bytes / p->token_table->ne[1];
    if (p->position_table != NULL) sum += p->position_table->bytes / p->position_table->ne[1];
    return sum + p->embed->bytes / p->embed->ne[1];
}
