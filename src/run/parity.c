/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --parity DIR: compares our logits with reference logits for the same tokens. The receipt gives the distance
 * of the two distributions: KL(reference || ours) in nats, averaged over positions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/run/run.h"
#include "src/sample/score.h"

#define DEFAULT_MAX_KL   0.002
#define TOKENS_MAX_BYTES (16u << 20)

typedef struct Parity {
    QsfFile ref; /* logits.f32: (n_tokens, n_vocab) */
    float *row;  /* (n_vocab) reference logits of one position */
    size_t n_vocab, n_tokens;
    double sum_kl, min_cosine;
    size_t n_argmax; /* positions whose argmax agrees */
    int64_t first_divergence;
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
    size_t bytes = p->n_vocab * sizeof(float);
    if (p->err.code || qsf_file_pread(&p->ref, p->row, bytes, (uint64_t)pos * bytes, &p->err)) return;
    double cos = qsf_score_cosine(p->row, logits, p->n_vocab);
    p->sum_kl += qsf_score_divergence(p->row, qsf_score_log_sum(p->row, p->n_vocab), logits, p->n_vocab);
    if (cos < p->min_cosine) p->min_cosine = cos;
    if (argmax(p->row, p->n_vocab) == argmax(logits, p->n_vocab))
        p->n_argmax++;
    else if (p->first_divergence < 0)
        p->first_divergence = (int64_t)pos;
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
    uint64_t want = (uint64_t)p->n_tokens * p->n_vocab * sizeof(float);
    if (p->ref.size == want) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL, "%s: %llu bytes, expected %llu (%zu tokens x %zu vocabulary x 4)",
                       p->ref.path, (unsigned long long)p->ref.size, (unsigned long long)want, p->n_tokens,
                       p->n_vocab);
}

static void put_kernels(QsfStrbuf *b, const QsfRuntime *rt) {
    char names[2048];
    qsf_forward_kernels(rt->fwd, names, sizeof names);
    qsf_strbuf_adds(b, ", \"kernels\": [");
    int n = 0;
    for (char *save, *s = strtok_r(names, ", ", &save); s; s = strtok_r(NULL, ", ", &save)) {
        qsf_strbuf_adds(b, n++ ? ", " : "");
        qsf_json_put_string(b, s, strlen(s));
    }
    qsf_strbuf_adds(b, "]");
}

static int print_receipt(const Parity *p, const QsfRuntime *rt) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    double n = (double)p->n_tokens;
    qsf_strbuf_addf(&b, "{\"tokens\": %zu, \"vocab\": %zu, \"min_cosine\": ", p->n_tokens, p->n_vocab);
    qsf_json_put_real(&b, p->min_cosine);
    qsf_strbuf_adds(&b, ", \"mean_kl\": ");
    qsf_json_put_real(&b, p->sum_kl / n);
    qsf_strbuf_adds(&b, ", \"argmax_match\": ");
    qsf_json_put_real(&b, (double)p->n_argmax / n);
    if (p->first_divergence >= 0)
        qsf_strbuf_addf(&b, ", \"first_divergence\": %lld", (long long)p->first_divergence);
    else
        qsf_strbuf_adds(&b, ", \"first_divergence\": null");
    qsf_strbuf_addf(&b, ", \"backend\": \"%s\", \"threads\": %d", qk_level_name(rt->table.level),
                    rt->threads);
    put_kernels(&b, rt);
    qsf_strbuf_addf(&b, ", \"budget_mb\": %.2f, \"peak_rss_mb\": %.2f}\n", (double)rt->budget / 1048576,
                    (double)qsf_peak_rss_bytes() / 1048576);
    int rc = run_write_raw(qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
    return rc;
}

static int compare(QsfRuntime *rt, const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfErr err = { 0 };
    p->n_vocab = rt->model.hp.n_vocab;
    p->n_tokens = ids->n;
    p->row = calloc(p->n_vocab, sizeof *p->row);
    if (!p->row) return run_fail((qsf_err_memory(&err, "--parity"), &err));
    if (check_reference(p, &err) || qsf_forward_eval(rt->fwd, ids->data, ids->n, on_logits, p, &err))
        return run_fail(&err);
    if (p->err.code) return run_fail(&p->err);
    int rc = print_receipt(p, rt);
    double limit = o->max_kl >= 0 ? o->max_kl : DEFAULT_MAX_KL;
    return rc ? rc : p->sum_kl / (double)p->n_tokens <= limit ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
}

static int load_and_compare(const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = run_runtime_options(o);
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
    Parity p = { .min_cosine = 1, .first_divergence = -1 };
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
