/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --perplexity FILE: measures how well the model predicts a text; --kl-save saves its distributions and
 * --kl-base compares with saved ones. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_text.h"
#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/paths.h"
#include "src/base/platform.h"
#include "src/engine/number.h"
#include "src/measure/perplexity.h"
#include "src/run/run.h"

typedef struct RunPerplexity {
    const RunOptions *o;
    QsfRuntime rt;
    QsfPerplexity p;
    QsfKlReader reader; /* zeroed without --kl-base */
    QsfKlWriter writer;
    uint64_t ids_bytes, kl_bytes; /* charged for p.ids and p.kl */
    uint32_t stride;              /* --stride, 0 = not given */
    bool window_given;            /* --ctx */
    uint64_t start_ns, shown_ns;  /* when measuring began; when progress was last shown */
} RunPerplexity;

/* --- progress and result --- */

#define PROGRESS_NS 200000000u

static void on_progress(void *arg, const QsfPerplexityResult *r, size_t k) {
    RunPerplexity *m = arg;
    uint64_t now = qsf_now_ns();
    if (now - m->shown_ns < PROGRESS_NS) return;
    m->shown_ns = now;
    qsf_text_fprintf(stderr, "\rwindow %zu of %zu, %llu of %zu tokens, perplexity %.4f\033[K", k + 1,
                     r->n_windows, (unsigned long long)r->nll.n, r->n_scored, exp(r->nll.mean));
    fflush(stderr);
}

/* Starts the clock, and shows progress if stderr is a terminal. */
static void perplexity_start(RunPerplexity *m) {
    m->start_ns = m->shown_ns = qsf_now_ns();
    m->p.arg = m;
    m->p.progress = isatty(STDERR_FILENO) ? on_progress : NULL;
}

/* Removes the progress line. */
static void perplexity_clear(const RunPerplexity *m) {
    if (m->shown_ns != m->start_ns) fputs("\r\033[K", stderr);
}

static void put(QsfStrbuf *b, const char *key, double v) {
    qsf_strbuf_addf(b, ", \"%s\": ", key);
    qsf_json_put_real(b, v);
}

static double seconds(const RunPerplexity *m) { return (double)(qsf_now_ns() - m->start_ns) / 1e9; }

/* d exp(x) = exp(x) dx: the error of a perplexity from that of the mean. */
static double exp_error(const QsfMean *m) { return exp(m->mean) * qsf_mean_error(m); }

static void put_base(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    put(b, "mean_kl", r->kl.mean);
    put(b, "mean_kl_error", qsf_mean_error(&r->kl));
    put(b, "median_kl", r->kl_median);
    put(b, "p99_kl", r->kl_p99);
    put(b, "max_kl", r->kl_max);
    put(b, "same_top", (double)r->same_top / (double)r->n_scored);
    put(b, "base_nll", r->base_nll.mean);
    put(b, "base_ppl", exp(r->base_nll.mean));
    put(b, "ppl_ratio", exp(r->excess.mean));
    put(b, "ppl_ratio_error", exp_error(&r->excess));
    qsf_strbuf_adds(b, ", \"base\": ");
    qsf_json_put_string(b, m->reader.about.name, strlen(m->reader.about.name));
}

static void put_json(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    qsf_strbuf_addf(b, "{\"tokens\": %zu", r->n_scored);
    put(b, "nll", r->nll.mean);
    put(b, "nll_error", qsf_mean_error(&r->nll));
    put(b, "ppl", exp(r->nll.mean));
    put(b, "ppl_error", exp_error(&r->nll));
    if (m->p.base) put_base(b, m, r);
    qsf_strbuf_addf(b,
                    ", \"text_tokens\": %zu, \"windows\": %zu, \"window\": %u, \"stride\": %u, \"bos\": %s",
                    m->p.n, r->n_windows, m->p.window, m->p.stride, m->p.bos >= 0 ? "true" : "false");
    put(b, "seconds", seconds(m));
    qsf_strbuf_addf(b,
                    ", \"peak_rss_mb\": %.2f, \"budget_mb\": %.2f, \"threads\": %d, \"backend\": \"%s\"}\n",
                    (double)qsf_peak_rss_bytes() / 1048576, (double)m->rt.budget / 1048576,
                    run_threads(&m->rt, true), qk_level_name(m->rt.table.level));
}

static void put_text(QsfStrbuf *b, const RunPerplexity *m, const QsfPerplexityResult *r) {
    qsf_strbuf_addf(b, "%-12s %zu scored of %zu; %zu window%s of %u, stride %u%s\n", "tokens", r->n_scored,
                    m->p.n, r->n_windows, r->n_windows == 1 ? "" : "s", m->p.window, m->p.stride,
                    m->p.bos >= 0 ? ", each starts with BOS" : "");
    qsf_strbuf_addf(b, "%-12s %.6f +- %.6f nats\n", "mean nll", r->nll.mean, qsf_mean_error(&r->nll));
    qsf_strbuf_addf(b, "%-12s %.4f +- %.4f\n", "perplexity", exp(r->nll.mean), exp_error(&r->nll));
    if (!m->p.base) return;
    const char *name = m->reader.about.name;
    qsf_strbuf_addf(b, "%-12s %.4f%s%s\n", "base", exp(r->base_nll.mean), *name ? ", " : "", name);
    qsf_strbuf_addf(b, "%-12s %.6f +- %.6f times the base's\n", "ratio", exp(r->excess.mean),
                    exp_error(&r->excess));
    qsf_strbuf_addf(b, "%-12s %.5g +- %.2g nats\n", "mean KL", r->kl.mean, qsf_mean_error(&r->kl));
    qsf_strbuf_addf(b, "%-12s median %.5g, 99 %% %.5g, maximum %.5g\n", "KL", r->kl_median, r->kl_p99,
                    r->kl_max);
    qsf_strbuf_addf(b, "%-12s %.3f %%\n", "same top", 100 * (double)r->same_top / (double)r->n_scored);
}

static void print_verbose(const RunPerplexity *m) {
    double s = seconds(m);
    fprintf(stderr, "%.1f s, %.0f tokens of text per second; peak RSS %.1f of %.1f MB\n", s,
            s > 0 ? (double)m->p.n / s : 0, (double)qsf_peak_rss_bytes() / 1048576,
            (double)m->rt.budget / 1048576);
}

/* Prints the result as text, or with --json as an object. Returns an exit code. */
static int perplexity_report(const RunPerplexity *m, const QsfPerplexityResult *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (m->o->json)
        put_json(&b, m, r);
    else
        put_text(&b, m, r);
    if (m->o->verbose) print_verbose(m);
    if (m->p.base && !m->reader.about.complete)
        qsf_cli_error(&run_cli, "note: %s does not identify its text: only its size was compared",
                      m->o->kl_base);
    else if (m->p.base && !m->reader.checksums)
        fprintf(stderr,
                "note: %s was written by an earlier version without checksums: not all damage is detected\n",
                m->o->kl_base);
    int rc = run_write_raw(qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
    return rc;
}

/* --- measuring --- */

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
    qsf_os_trim_heap();
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
    const char *name = qsf_path_name(m->o->model);
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
        perplexity_start(m);
        rc = qsf_perplexity_run(&m->p, &r, &err);
        perplexity_clear(m);
    }
    if (!rc && m->p.save) rc = qsf_kl_finish(m->p.save, m->p.ids, &err);
    return rc ? run_fail(&err) : perplexity_report(m, &r);
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
    const RunRoom room = run_room(o);
    if (!rc) rc = run_read_text("--perplexity", o->perplexity, &room, &text);
    if (!rc && o->kl_base && qsf_kl_open(&m.reader, o->kl_base, &err)) rc = run_fail(&err);
    if (!rc) rc = with_text(&m, &text);
    qsf_kl_close(&m.reader);
    qsf_strbuf_free(&text);
    return rc;
}
