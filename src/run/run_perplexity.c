/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --perplexity FILE: measures how well the model predicts a text; --kl-save saves its distributions and
 * --kl-base compares with saved ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "src/engine/number.h"
#include "src/run/run_perplexity.h"

#define DEFAULT_WINDOW 512u
/* For each byte of text, which is at most one token: its id in a list that grows by half, and its final id;
 * after the list is freed, its divergence. */
#define BYTES_PER_BYTE 10u
#define OWN_BYTES      (512u << 10) /* pieces of rows, buffers of libc */

/* Tokenizes the text to ids in their own mapping and frees the text. */
static int encode(RunPerplexity *m, QsfStrbuf *text, QsfErr *err) {
    unsigned flags = (m->o->no_bos ? 0u : (unsigned)QSF_TOK_BOS) |
                     (m->o->no_special ? 0u : (unsigned)QSF_TOK_SPECIAL);
    QsfIds ids = { 0 };
    void *p = NULL;
    int rc = qsf_tokenizer_encode(m->rt.tok, qsf_strbuf_str(text), text->len, flags, &ids, err);
    qsf_strbuf_free(text);
    m->ids_bytes = ids.n * sizeof *m->p.ids;
    if (!rc && ids.n < 2)
        rc = qsf_err_set(err, QSF_E_MODEL, "--perplexity %s: only one token, at least 2 are needed",
                         m->o->perplexity);
    if (!rc)
        rc = qsf_mem_map(&m->rt.ledger, QSF_MEM_TRANSCRIPT, m->ids_bytes, "token ids of the text", &p, err);
    if (!rc) memcpy(p, ids.data, m->ids_bytes);
    m->p.ids = p;
    m->p.n = ids.n;
    qsf_ids_free(&ids);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    return rc;
}

/* Only the same tokens with the same context can be compared. */
static int check_windows(const RunPerplexity *m, QsfErr *err) {
    const QsfKlAbout *a = &m->reader.about;
    if (a->window == m->p.window && a->stride == m->p.stride) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE,
                       "%s: was saved with --ctx %u --stride %u, but this run uses --ctx %u --stride %u",
                       m->reader.file.path, a->window, a->stride, m->p.window, m->p.stride);
}

/* Uses the given values, else the base's, else the defaults; never more than the context, or than the model
 * was trained for. */
static int choose_windows(RunPerplexity *m, QsfErr *err) {
    uint32_t ctx = qsf_forward_ctx(m->rt.fwd), train = m->rt.model.hp.n_ctx_train;
    m->p.window = ctx;
    if (!m->window_given && m->reader.about.complete)
        m->p.window = m->reader.about.window;
    else if (!m->window_given && train && train < ctx)
        m->p.window = train;
    m->p.stride = m->stride ? m->stride : m->reader.about.complete ? m->reader.about.stride : m->p.window / 2;
    bool bos = !m->o->no_bos && qsf_tokenizer_adds_bos(m->rt.tok);
    m->p.bos = bos ? qsf_tokenizer_bos(m->rt.tok) : -1;
    if (m->p.window < 2)
        return qsf_err_set(err, QSF_E_USAGE,
                           "--perplexity: a window of %u tokens is too short, the minimum is 2 (--ctx)",
                           m->p.window);
    if (m->reader.about.complete) return check_windows(m, err);
    if (m->p.stride <= m->p.window) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "--stride: %u is more than the window of %u tokens (--ctx)",
                       m->p.stride, m->p.window);
}

static int check_base(const RunPerplexity *m, QsfErr *err) {
    const QsfKlAbout *a = &m->reader.about;
    const char *path = m->reader.file.path;
    size_t scored = qsf_score_count(m->p.n, m->p.window, m->p.stride, NULL);
    if (a->n_vocab != m->rt.model.hp.n_vocab)
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: has a vocabulary of %u tokens, the model has %u (byte offset 4)", path,
                           a->n_vocab, m->rt.model.hp.n_vocab);
    if (qsf_kl_same_ids(&m->reader, m->p.ids, m->p.n, err)) return err->code;
    if (a->complete && (a->flags & QSF_KL_BOS) != (m->p.bos >= 0 ? (uint32_t)QSF_KL_BOS : 0))
        return qsf_err_set(err, QSF_E_MODEL, "%s: was saved with a different BOS setting (--no-bos)", path);
    if (a->n_rows != scored)
        return qsf_err_set(err, QSF_E_MODEL, "%s: has %u scored tokens, this text %zu (byte offset 0)", path,
                           a->n_rows, scored);
    return QSF_OK;
}

static int prepare_base(RunPerplexity *m, QsfErr *err) {
    void *p = NULL;
    int rc = check_base(m, err);
    m->kl_bytes = (uint64_t)m->reader.about.n_rows * sizeof *m->p.kl;
    if (!rc) rc = qsf_mem_map(&m->rt.ledger, QSF_MEM_TRANSCRIPT, m->kl_bytes, "divergences", &p, err);
    m->p.kl = p;
    m->p.base = &m->reader;
    return rc;
}

static int prepare_save(RunPerplexity *m, QsfErr *err) {
    const char *slash = strrchr(m->o->model, '/'), *name = slash ? slash + 1 : m->o->model;
    QsfKlAbout a = { .n_rows = (uint32_t)qsf_score_count(m->p.n, m->p.window, m->p.stride, NULL),
                     .n_vocab = m->rt.model.hp.n_vocab,
                     .complete = true,
                     .n_ids = (uint32_t)m->p.n,
                     .window = m->p.window,
                     .stride = m->p.stride,
                     .flags = m->p.bos >= 0 ? (uint32_t)QSF_KL_BOS : 0 };
    snprintf(a.name, sizeof a.name, "%s", name);
    m->p.save = &m->writer;
    return qsf_kl_create(&m->writer, m->o->kl_save, &a, err);
}

static int prepare(RunPerplexity *m, QsfStrbuf *text, QsfErr *err) {
    int rc = encode(m, text, err);
    if (!rc) rc = choose_windows(m, err);
    if (!rc && m->o->kl_base) rc = prepare_base(m, err);
    if (!rc && m->o->kl_save) rc = prepare_save(m, err);
    return rc;
}

static int measure(RunPerplexity *m, QsfStrbuf *text) {
    QsfErr err = { 0 };
    QsfPerplexityResult r;
    int rc = prepare(m, text, &err);
    if (!rc) {
        run_perplexity_start(m);
        rc = qsf_perplexity_run(&m->p, &r, &err);
        run_perplexity_clear(m);
    }
    if (!rc && m->p.save) rc = qsf_kl_finish(m->p.save, m->p.ids, &err);
    return rc ? run_fail(&err) : run_perplexity_report(m, &r);
}

static int with_text(RunPerplexity *m, QsfStrbuf *text) {
    QsfRuntimeOptions ro = run_runtime_options(m->o);
    const QsfKlAbout *a = &m->reader.about;
    m->window_given = ro.settings.ctx != 0;
    /* The window is part of the result and must not depend on the context that the budget allows. A window
     * longer than the text needs only a context of the text's length, whatever a base specifies. */
    uint32_t saved = a->window < a->n_ids ? a->window : a->n_ids;
    if (!m->window_given) ro.settings.ctx = a->complete ? saved : DEFAULT_WINDOW;
    if (!ro.exact) qsf_plan_fix_types(&ro.settings);
    ro.transcript_bytes = (uint64_t)text->len * BYTES_PER_BYTE + OWN_BYTES;
    int rc = run_open(&m->rt, m->o, &ro);
    if (rc) return rc;
    rc = measure(m, text);
    qsf_kl_discard(&m->writer);
    qsf_mem_unmap(&m->rt.ledger, QSF_MEM_TRANSCRIPT, m->p.ids, m->ids_bytes);
    qsf_mem_unmap(&m->rt.ledger, QSF_MEM_TRANSCRIPT, m->p.kl, m->kl_bytes);
    run_close(&m->rt, m->o);
    return rc;
}

static int parse_stride(RunPerplexity *m) {
    uint64_t v = 0;
    if (!m->o->stride) return QSF_EXIT_OK;
    if (!qsf_u64_parse(m->o->stride, &v) || v < 1 || v > INT32_MAX) {
        qsf_cli_error(&run_cli, "--stride: \"%s\" is not a number of tokens (1 or more)", m->o->stride);
        return QSF_EXIT_USAGE;
    }
    m->stride = (uint32_t)v;
    return QSF_EXIT_OK;
}

int run_perplexity(const RunOptions *o) {
    RunPerplexity m = { .o = o };
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    m.p.rt = &m.rt;
    int rc = parse_stride(&m);
    if (!rc) rc = run_read_text("--perplexity", o->perplexity, &text);
    if (!rc && o->kl_base && qsf_kl_open(&m.reader, o->kl_base, &err)) rc = run_fail(&err);
    if (!rc) rc = with_text(&m, &text);
    qsf_kl_close(&m.reader);
    qsf_strbuf_free(&text);
    return rc;
}
