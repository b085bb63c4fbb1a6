/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/model/nextn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROJECTION "nextn.eh_proj.weight"

/* ---- which blocks there are ---- */

static bool has_block(const QsfModel *m, uint32_t k) {
    char name[64];
    snprintf(name, sizeof name, "blk.%" PRIu32 "." PROJECTION, m->hp.n_layers + k);
    return qsf_source_find_tensor(m->src, name) != NULL;
}

uint32_t qsf_nextn_count(const QsfModel *m) {
    uint32_t n = 0;
    if (m->src == NULL || m->vocab_only || m->hp.arch->nextn == QSF_NEXTN_NONE) return 0;
    while (n < m->hp.n_extra && has_block(m, n)) n++;
    return n;
}

void qsf_nextn_notice(const QsfModel *m, char *dst, size_t cap) {
    dst[0] = '\0';
    if (m->src == NULL || m->vocab_only || m->hp.n_extra == 0 || qsf_nextn_count(m) > 0) return;
    if (!has_block(m, 0))
        snprintf(dst, cap,
                 "the file announces a next-token block (%s.nextn_predict_layers is %" PRIu32
                 "), but has no tensors for it: its converter left them out, so it cannot be used for "
                 "speculation",
                 m->hp.arch->name, m->hp.n_extra);
    else
        snprintf(dst, cap, "next-token blocks of %s models are not supported, so they are not used",
                 m->hp.arch->name);
}

/* ---- opening ---- */

static const QsfTensor *find_in_source(void *arg, const char *name) {
    return qsf_source_find_tensor(arg, name);
}

static int check(const QsfModel *m, uint32_t k, QsfErr *err) {
    const char *path = m->src != NULL ? qsf_source_path(m->src) : "";
    if (m->vocab_only || k >= m->hp.n_extra)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: the model has no next-token block %" PRIu32 ", it has %" PRIu32, path, k,
                           m->vocab_only ? 0 : m->hp.n_extra);
    if (!has_block(m, k))
        return qsf_err_set(
            err, QSF_E_MODEL,
            "%s: tensor 'blk.%" PRIu32 "." PROJECTION
            "' is missing: the file announces next-token blocks (%s.nextn_predict_layers is %" PRIu32
            "), but its converter left out their tensors",
            path, m->hp.n_layers + k, m->hp.arch->name, m->hp.n_extra);
    if (m->hp.arch->nextn == QSF_NEXTN_NONE)
        return qsf_err_set(err, QSF_E_MODEL, "%s: next-token blocks of %s models are not supported", path,
                           m->hp.arch->name);
    return QSF_OK;
}

/* From here on the numbers of blocks are those of the file, of which the program has one. */
static void settle(QsfModel *m) {
    m->hp.n_layers = m->hp.n_named = m->prog.n_blocks;
    m->hp.n_extra = 0;
}

static void borrow_head(QsfModel *out, const QsfModel *m) {
    QsfUnitSpec *own = &out->prog.unit[out->prog.n_units - 1];
    own->borrowed = own->tensor[0] == m->prog.unit[m->prog.n_units - 1].tensor[0];
}

int qsf_nextn_open(QsfModel *out, const QsfModel *m, uint32_t k, bool borrow, QsfErr *err) {
    QsfErr local = { 0 };
    if (err == NULL) err = &local;
    *out = (QsfModel){ 0 };
    int rc = check(m, k, err);
    if (rc != QSF_OK) return rc;
    *out = (QsfModel){
        .src = m->src, .hp = m->hp, .nextn = k + 1, .borrowed = true, .to_convert = m->to_convert
    };
    qsf_arena_init(&out->arena, m->arena.ledger, QSF_MEM_META, "program", 4096);
    rc = qsf_hparams_nextn(&out->hp, m->src, k, err);
    if (rc == QSF_OK) rc = qsf_model_build(out, &(QsfTensorSet){ find_in_source, m->src }, err);
    if (rc != QSF_OK) {
        qsf_model_close(out);
        return rc;
    }
    settle(out);
    if (borrow) borrow_head(out, m);
    return QSF_OK;
}

/* ---- building ---- */

static void in_block(QsfBuilder *b) { qsf_build_block(b, b->first); }

bool qsf_nextn_embed(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    in_block(b);
    const bool own = qsf_build_maybe(b, "nextn.embed_tokens.weight");
    if (own)
        b->p.embed = qsf_build_matrix(b, QSF_REQUIRED, hp->hidden, hp->n_vocab, "nextn.embed_tokens.weight");
    qsf_build_no_block(b);
    return own;
}

void qsf_nextn_begin(QsfBuilder *b) {
    const uint32_t n = qsf_build_hp(b)->hidden;
    const QsfNormKind kind = qsf_build_hp(b)->norm;
    const QsfSlice both = qsf_build_buffer(b, 2 * n), given = qsf_build_buffer(b, n), x = qsf_build_x(b);
    b->p.given = given.buf;
    in_block(b);
    qsf_build_norm(b, kind, "nextn.enorm", x, qsf_slice_part(both, 0, n));
    qsf_build_norm(b, kind, "nextn.hnorm", given, qsf_slice_part(both, n, n));
    qsf_build_project(b, QSF_MATMUL_ATTN_IN, "nextn.eh_proj", both, x);
}

/* The norm of the model's head, which the states that it hands over went through. */
static void find_given_norm(QsfBuilder *b, QsfNormKind kind, const char *norm_name) {
    const uint32_t steps = b->p.n_steps;
    if (qsf_build_hp(b)->arch->nextn != QSF_NEXTN_NORMED) return;
    qsf_build_no_block(b);
    qsf_build_norm(b, kind, norm_name, qsf_build_x(b), qsf_build_branch(b));
    if (qsf_build_failed(b)) return;
    b->p.given_normed = true;
    b->p.given_norm = b->p.step[steps].u.norm;
    b->p.n_steps = steps;
}

static bool has(QsfBuilder *b, const char *name) {
    char full[64];
    snprintf(full, sizeof full, "%s.weight", name);
    return qsf_build_maybe(b, full);
}

/* The norm before the head: of the block, in some families called as a norm after blocks, or the model's. */
static void head_norm(QsfBuilder *b, QsfNormKind kind, const char *norm_name) {
    static const char *const own[] = { "nextn.shared_head_norm", "layer_output_norm" };
    const char *name = norm_name;
    in_block(b);
    for (size_t i = sizeof own / sizeof *own; i-- > 0;)
        if (has(b, own[i])) name = own[i];
    if (name == norm_name) qsf_build_no_block(b);
    qsf_build_norm(b, kind, name, qsf_build_x(b), qsf_build_branch(b));
    if (!qsf_build_failed(b)) b->p.step[b->p.n_steps - 1].block = b->p.n_blocks;
}

/* The matrix of the head: of the block, of the model, or the model's embedding table. */
static void head_matrix(QsfBuilder *b) {
    const QsfHparams *hp = qsf_build_hp(b);
    const char *name = "nextn.shared_head_head";
    in_block(b);
    if (!has(b, name)) {
        qsf_build_no_block(b);
        name = has(b, "output") ? "output" : "token_embd";
    }
    qsf_build_units_in(b, b->p.n_blocks);
    qsf_build_project(b, QSF_MATMUL_HEAD, name, qsf_build_branch(b), qsf_build_logits(b));
    qsf_build_units_in(b, QSF_NONE);
    qsf_build_no_block(b);
    if (qsf_build_failed(b)) return;
    b->p.step[b->p.n_steps - 1].block = b->p.n_blocks;
    const QsfTensor *t = b->p.unit[b->p.n_units - 1].tensor[0];
    b->p.tied_head = t == b->p.embed;
    if (t->compressed != NULL && t->compressed->layer < hp->n_layers + hp->n_extra)
        qsf_build_fail(b, "tensor '%s' is compressed, which is not supported for a head", t->name);
}

void qsf_nextn_head(QsfBuilder *b, QsfNormKind kind, const char *norm_name) {
    find_given_norm(b, kind, norm_name);
    head_norm(b, kind, norm_name);
    head_matrix(b);
}
