/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --parity DIR: compares our logits with reference logits for the same tokens. The receipt gives the distance
 * of the two distributions: KL(reference || ours) in nats, averaged over positions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/run/run.h"
#include "src/sample/score.h"

#define DEFAULT_MAX_KL   0.002
#define TOKENS_MAX_BYTES (16u << 20)

typedef struct Parity {
    QsfFile ref; /* logits.f32: (n_tokens, n_vocab) */
    float *row;  /* (n_vocab) reference logits of one position */
    RunParity sum;
    QsfErr err;
} Parity;

static size_t argmax(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static void on_logits(void *arg, uint32_t pos, const float *logits) {
    Parity *p = arg;
    RunParity *sum = &p->sum;
    const size_t n = sum->n_vocab, bytes = n * sizeof(float);
    if (p->err.code || qsf_file_pread(&p->ref, p->row, bytes, (uint64_t)pos * bytes, &p->err)) return;
    const double cos = qsf_score_cosine(p->row, logits, n);
    const double kl = qsf_score_divergence(p->row, qsf_score_log_sum(p->row, n), logits, n);
    sum->sum_kl += kl;
    sum->max_kl = fmax(sum->max_kl, kl);
    sum->sum_cosine += cos;
    sum->min_cosine = fmin(sum->min_cosine, cos);
    if (argmax(p->row, n) == argmax(logits, n))
        sum->n_argmax++;
    else if (sum->first_divergence < 0)
        sum->first_divergence = (int64_t)pos;
}

/* Token ids separated by white space. */
static int read_tokens(const char *path, QsfIds *ids, QsfErr *err) {
    QsfFile f;
    if (qsf_file_open(&f, path, err)) return err->code;
    char *text = f.size <= TOKENS_MAX_BYTES ? calloc(1, (size_t)f.size + 1) : NULL;
    int rc = text ? qsf_file_pread(&f, text, (size_t)f.size, 0, err)
                  : qsf_err_set(err, QSF_E_MODEL, "%s: too large for a list of tokens: %llu bytes", path,
                                (unsigned long long)f.size);
    for (char *s = text, *end; !rc && *(s += strspn(s, " \t\r\n,")); s = end) {
        long v = strtol(s, &end, 10);
        if (end == s || v < 0 || v > INT32_MAX)
            rc = qsf_err_set(err, QSF_E_MODEL, "%s: expected a token id at byte offset %lld", path,
                             (long long)(s - text));
        else
            rc = qsf_ids_push(ids, (int32_t)v, err);
    }
    free(text);
    qsf_file_close(&f);
    if (!rc && !ids->n) rc = qsf_err_set(err, QSF_E_MODEL, "%s: contains no token ids", path);
    return rc;
}

static int check_reference(Parity *p, QsfErr *err) {
    const size_t n_tokens = p->sum.n_tokens, n_vocab = p->sum.n_vocab;
    uint64_t want = (uint64_t)n_tokens * n_vocab * sizeof(float);
    if (p->ref.size == want) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: %llu bytes, expected %llu (%zu tokens x %zu vocabulary x 4)",
                       p->ref.path, (unsigned long long)p->ref.size, (unsigned long long)want, n_tokens,
                       n_vocab);
}

static int print_line(const RunParity *p, const QsfRuntime *rt) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addc(&b, '{');
    run_put_parity(&b, p, rt);
    qsf_strbuf_adds(&b, "}\n");
    int rc = run_write_raw(qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
    return rc;
}

static int evaluate(QsfRuntime *rt, Parity *p, const QsfIds *ids, QsfErr *err) {
    p->sum.n_vocab = rt->model.hp.n_vocab;
    p->sum.n_tokens = ids->n;
    p->row = calloc(p->sum.n_vocab, sizeof *p->row);
    if (!p->row) return qsf_err_memory(err, "--parity");
    if (check_reference(p, err) || qsf_forward_eval(rt->fwd, ids->data, ids->n, on_logits, p, err))
        return err->code;
    if (p->err.code) *err = p->err;
    return err->code;
}

static int compare(QsfRuntime *rt, const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfErr err = { 0 };
    RunReceipt *receipt = NULL;
    p->sum.limit = o->max_kl >= 0 ? o->max_kl : DEFAULT_MAX_KL;
    if (o->receipt && run_receipt_begin(&receipt, o, rt, &err)) return run_fail(&err);
    if (evaluate(rt, p, ids, &err)) {
        run_receipt_drop(receipt);
        return run_fail(&err);
    }
    if (receipt && run_receipt_end(receipt, &p->sum, &err)) return run_fail(&err);
    int rc = print_line(&p->sum, rt);
    return rc ? rc : p->sum.sum_kl / (double)ids->n <= p->sum.limit ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
}

static int load_and_compare(const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = run_runtime_options(o);
    if (!ro.exact) qsf_plan_fix_types(&ro.settings);
    int rc = run_open(&rt, o, &ro);
    if (rc) return rc;
    rc = compare(&rt, o, p, ids);
    qsf_runtime_close(&rt);
    return rc;
}

int run_parity(const RunOptions *o) {
    char tokens[4096], logits[4096];
    snprintf(tokens, sizeof tokens, "%s/tokens.txt", o->parity_dir);
    snprintf(logits, sizeof logits, "%s/logits.f32", o->parity_dir);
    Parity p = { .sum = { .min_cosine = 1, .first_divergence = -1 } };
    QsfIds ids = { 0 };
    QsfErr err = { 0 };
    int rc;
    if (read_tokens(tokens, &ids, &err) || qsf_file_open(&p.ref, logits, &err)) {
        rc = run_fail(&err);
    } else {
        rc = load_and_compare(o, &p, &ids);
        qsf_file_close(&p.ref);
    }
    free(p.row);
    qsf_ids_free(&ids);
    return rc;
}
