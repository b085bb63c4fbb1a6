/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --parity DIR: compares our logits with reference logits for the same tokens. The receipt gives the distance
 * of the two distributions: KL(reference || ours) in nats, averaged over positions. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/newfile.h"
#include "src/engine/nextn.h"
#include "src/file/dtype.h"
#include "src/model/nextn.h"
#include "src/plan/units.h"
#include "src/run/run.h"
#include "src/sample/score.h"

typedef struct RunParity {
    size_t n_vocab, n_tokens;
    double sum_kl, max_kl, sum_cosine, min_cosine;
    size_t n_argmax;          /* positions whose argmax agrees */
    int64_t first_divergence; /* first position whose argmax does not; -1 = none */
    double limit;             /* of the mean divergence */
} RunParity;
/* --- what --parity found, as JSON: the line that is printed, and the file of --receipt, which adds which
 * kernels ran, how often and for how long --- */

/* A receipt begins with this; the number is that of its form. */
#define MARK "{\"receipt\": 1"

#define MAX_TYPES (2 * QSF_UNIT_TENSORS)

/* Steps that run the same kernels on the same types. */
typedef struct Row {
    const char *kind;
    unsigned n_kernels, n_types;
    QsfKernel kernel[QSF_STEP_KERNELS];
    const char *type[MAX_TYPES];
    uint64_t steps;
    QsfStepTime time;
} Row;

typedef struct RunReceipt {
    const RunOptions *o;
    QsfRuntime *rt;
    QsfNewFile file;
    QsfProfile profile;
    Row *row; /* (n_rows) */
    size_t n_rows;
} RunReceipt;

/* --- members --- */

static void put_key(QsfStrbuf *b, const char *key) { qsf_strbuf_addf(b, ", \"%s\": ", key); }

static void put_real(QsfStrbuf *b, const char *key, double v) {
    put_key(b, key);
    qsf_json_put_real(b, v);
}

static void put_string(QsfStrbuf *b, const char *key, const char *s) {
    put_key(b, key);
    qsf_json_put_string(b, s, strlen(s));
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

/* Appends the members that the printed line and the file share, without braces. */
static void put_parity(QsfStrbuf *b, const RunParity *p, const QsfRuntime *rt) {
    const double n = (double)p->n_tokens;
    qsf_strbuf_addf(b, "\"tokens\": %zu, \"vocab\": %zu", p->n_tokens, p->n_vocab);
    put_real(b, "min_cosine", p->min_cosine);
    put_real(b, "mean_kl", p->sum_kl / n);
    put_real(b, "argmax_match", (double)p->n_argmax / n);
    put_key(b, "first_divergence");
    if (p->first_divergence >= 0)
        qsf_strbuf_addf(b, "%lld", (long long)p->first_divergence);
    else
        qsf_strbuf_adds(b, "null");
    qsf_strbuf_addf(b, ", \"backend\": \"%s\", \"threads\": %d", qk_level_name(rt->table.level),
                    run_threads(rt, true));
    put_kernels(b, rt);
    qsf_strbuf_addf(b, ", \"budget_mb\": %.2f, \"peak_rss_mb\": %.2f", (double)rt->budget / 1048576,
                    (double)qsf_peak_rss_bytes() / 1048576);
    put_real(b, "mean_cosine", p->sum_cosine / n);
    put_real(b, "max_kl", p->max_kl);
}

static void put_model(QsfStrbuf *b, const RunReceipt *r) {
    const QsfModel *m = &r->rt->model;
    put_string(b, "version", qsf_version());
    put_string(b, "model", r->o->model);
    put_string(b, "architecture", m->hp.arch->name);
    put_string(b, "name", m->hp.name);
    qsf_strbuf_addf(b, ", \"blocks\": %u, \"types\": {", m->hp.n_layers);
    run_put_types(b, m->src, true);
    qsf_strbuf_addf(b, "}, \"exact\": %s", r->o->exact ? "true" : "false");
    qsf_strbuf_addf(b, ", \"batch\": %u, \"pinned_mb\": %.2f, \"streamed_mb\": %.2f", r->rt->plan.batch,
                    (double)r->rt->plan.pinned_bytes / 1048576, (double)r->rt->plan.streamed_bytes / 1048576);
}

/* --- kinds of steps --- */

static void add_type(Row *row, const char *name) {
    for (unsigned i = 0; i < row->n_types; i++)
        if (!strcmp(row->type[i], name)) return;
    if (row->n_types < MAX_TYPES) row->type[row->n_types++] = name;
}

static void add_unit_types(Row *row, const QsfModel *m, uint32_t unit) {
    QsfUnit u;
    qsf_unit_at(m, unit, &u);
    for (unsigned i = 0; i < u.n; i++) add_type(row, qsf_dtype(u.tensor[i]->dtype)->name);
}

static bool same_kind(const Row *a, const Row *b) {
    bool same = !strcmp(a->kind, b->kind) && a->n_kernels == b->n_kernels && a->n_types == b->n_types;
    for (unsigned i = 0; same && i < a->n_kernels; i++) same = !strcmp(a->kernel[i].name, b->kernel[i].name);
    for (unsigned i = 0; same && i < a->n_types; i++) same = !strcmp(a->type[i], b->type[i]);
    return same;
}

/* Adds a row, or its numbers to the row of its kind. Nothing for what did not run. */
static void add_row(RunReceipt *r, const Row *row) {
    Row *to = r->row;
    if (row->time.calls == 0) return;
    while (to < r->row + r->n_rows && !same_kind(to, row)) to++;
    if (to == r->row + r->n_rows) {
        r->n_rows++;
        *to = *row;
        return;
    }
    to->steps += row->steps;
    to->time.calls += row->time.calls;
    to->time.positions += row->time.positions;
    to->time.ns += row->time.ns;
}

static void add_step(RunReceipt *r, const QsfStep *s, const QsfStepTime *time) {
    const QsfModel *m = &r->rt->model;
    Row row = { .kind = qsf_op_name(s->op), .steps = 1, .time = *time };
    row.n_kernels = qsf_forward_step_kernels(r->rt->fwd, s, row.kernel);
    if (qsf_step_unit(s) != QSF_NONE) add_unit_types(&row, m, qsf_step_unit(s));
    if (s->op == QSF_OP_EXPERTS) {
        add_unit_types(&row, m, s->u.experts.unit);
        add_unit_types(&row, m, s->u.experts.unit + 1);
    }
    add_row(r, &row);
}

static void add_rows(RunReceipt *r) {
    const QsfModel *m = &r->rt->model;
    Row embed = { .kind = "embed", .steps = 1, .time = r->profile.embed, .n_kernels = 1 };
    embed.kernel[0] = qsf_forward_embed_kernel(r->rt->fwd);
    add_type(&embed, qsf_dtype(m->prog.embed->dtype)->name);
    add_row(r, &embed);
    for (unsigned a = 0; a < QK_ACT_N; a++) {
        Row q = { .kind = "quantize", .steps = 1, .time = r->profile.quantize[a], .n_kernels = 1 };
        q.kernel[0] = qsf_forward_quantize_kernel(r->rt->fwd, (qk_act)a);
        add_row(r, &q);
    }
    for (uint32_t i = 0; i < m->prog.n_steps; i++) add_step(r, &m->prog.step[i], &r->profile.step[i]);
}

static void put_row(QsfStrbuf *b, const Row *row) {
    qsf_strbuf_addf(b, "{\"kind\": \"%s\", \"kernels\": [", row->kind);
    for (unsigned i = 0; i < row->n_kernels; i++)
        qsf_strbuf_addf(b, "%s{\"name\": \"%s\", \"level\": \"%s\"}", i ? ", " : "", row->kernel[i].name,
                        row->kernel[i].level);
    qsf_strbuf_adds(b, "], \"types\": [");
    for (unsigned i = 0; i < row->n_types; i++) qsf_strbuf_addf(b, "%s\"%s\"", i ? ", " : "", row->type[i]);
    qsf_strbuf_addf(b, "], \"steps\": %llu, \"calls\": %llu, \"positions\": %llu, \"us\": ",
                    (unsigned long long)row->steps, (unsigned long long)row->time.calls,
                    (unsigned long long)row->time.positions);
    qsf_json_put_real(b, (double)row->time.ns / 1000);
    qsf_strbuf_adds(b, "}");
}

/* --- the file --- */

static bool is_receipt(const char *path) {
    char begin[sizeof MARK - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    ssize_t n = read(fd, begin, sizeof begin);
    close(fd);
    return n == (ssize_t)sizeof begin && !memcmp(begin, MARK, sizeof begin);
}

/* A mistyped name must not overwrite a model. */
static int check_overwrite(const char *path, QsfErr *err) {
    struct stat st;
    if (stat(path, &st) != 0) return QSF_OK; /* creating the file reports what is wrong */
    if (S_ISREG(st.st_mode) && (st.st_size == 0 || is_receipt(path))) return QSF_OK;
    return qsf_err_set(err, QSF_E_USAGE, "--receipt %s: exists and is not a receipt; not overwritten", path);
}

/* Frees r without writing anything; NULL is allowed. */
static void receipt_drop(RunReceipt *r) {
    if (!r) return;
    qsf_forward_profile(r->rt->fwd, NULL);
    qsf_newfile_discard(&r->file);
    free(r->profile.step);
    free(r->row);
    free(r);
}

/* Creates o->receipt, and starts to count the time of steps. *out is NULL on failure; QSF_E_RUNTIME,
 * QSF_E_USAGE for a file that is not a receipt. */
static int receipt_begin(RunReceipt **out, const RunOptions *o, QsfRuntime *rt, QsfErr *err) {
    const size_t n = rt->model.prog.n_steps;
    *out = NULL;
    if (check_overwrite(o->receipt, err)) return err->code;
    RunReceipt *r = calloc(1, sizeof *r);
    if (r) {
        *r = (RunReceipt){ .o = o, .rt = rt };
        r->profile.step = calloc(n, sizeof *r->profile.step);
        r->row = calloc(n + QK_ACT_N + 1, sizeof *r->row);
    }
    int rc = r && r->profile.step && r->row ? QSF_OK : qsf_err_memory(err, "--receipt");
    if (!rc) rc = qsf_newfile_create(&r->file, o->receipt, err);
    if (rc) {
        receipt_drop(r);
        return rc;
    }
    qsf_forward_profile(rt->fwd, &r->profile);
    *out = r;
    return QSF_OK;
}

static int write_file(RunReceipt *r, const QsfStrbuf *b, QsfErr *err) {
    int why = qsf_strbuf_ok(b) ? qsf_savefile_write(&r->file.file, qsf_strbuf_str(b), b->len) : ENOMEM;
    if (why) return qsf_err_set(err, QSF_E_RUNTIME, "--receipt %s: %s", r->o->receipt, strerror(why));
    return qsf_newfile_commit(&r->file, err);
}

/* Writes the file, and frees r. QSF_E_RUNTIME. */
static int receipt_end(RunReceipt *r, const RunParity *p, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&b, MARK);
    put_model(&b, r);
    put_real(&b, "kl_limit", p->limit);
    qsf_strbuf_addf(&b, ", \"passed\": %s,\n",
                    p->sum_kl / (double)p->n_tokens <= p->limit ? "true" : "false");
    put_parity(&b, p, r->rt);
    add_rows(r);
    qsf_strbuf_adds(&b, ",\n\"steps\": [");
    for (size_t i = 0; i < r->n_rows; i++) {
        qsf_strbuf_adds(&b, i ? ",\n" : "\n");
        put_row(&b, &r->row[i]);
    }
    qsf_strbuf_adds(&b, "]}\n");
    int rc = write_file(r, &b, err);
    qsf_strbuf_free(&b);
    receipt_drop(r);
    return rc;
}

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
    put_parity(&b, p, rt);
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
    if (rt->nextn) qsf_nextn_watch(rt->nextn, 0, on_logits, p);
    qsf_forward_invoke(rt->fwd, ids->data, ids->n);
    if (check_reference(p, err) ||
        qsf_forward_eval(rt->fwd, ids->data, ids->n, rt->nextn ? NULL : on_logits, p, err) ||
        (rt->nextn && qsf_nextn_error(rt->nextn, err)))
        return err->code;
    if (p->err.code) *err = p->err;
    return err->code;
}

static int compare(QsfRuntime *rt, const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfErr err = { 0 };
    RunReceipt *receipt = NULL;
    p->sum.limit = o->max_kl >= 0 ? o->max_kl : DEFAULT_MAX_KL;
    if (o->receipt && receipt_begin(&receipt, o, rt, &err)) return run_fail(&err);
    if (evaluate(rt, p, ids, &err)) {
        receipt_drop(receipt);
        return run_fail(&err);
    }
    if (receipt && receipt_end(receipt, &p->sum, &err)) return run_fail(&err);
    int rc = print_line(&p->sum, rt);
    return rc ? rc : p->sum.sum_kl / (double)ids->n <= p->sum.limit ? QSF_EXIT_OK : QSF_EXIT_RUNTIME;
}

/* A name without a folder is a file of the directory if that has it. */
static void find_logits(const RunOptions *o, char *path, size_t cap) {
    if (o->logits)
        snprintf(path, cap, "%s/%s", o->parity_dir, o->logits);
    else if (o->nextn <= 0)
        snprintf(path, cap, "%s/%s.f32", o->parity_dir, o->nextn < 0 ? "logits" : "mtp");
    else
        snprintf(path, cap, "%s/mtp%ld.f32", o->parity_dir, o->nextn);
    if (o->logits && (strchr(o->logits, '/') || access(path, F_OK))) snprintf(path, cap, "%s", o->logits);
}

/* Says where a file was looked for, if it is not there. */
static int open_logits(const RunOptions *o, QsfFile *ref, const char *path, QsfErr *err) {
    if (o->logits && !strchr(o->logits, '/') && access(path, F_OK))
        return qsf_err_set(err, QSF_E_MODEL, "--logits %s: there is no such file in %s, nor here", o->logits,
                           o->parity_dir);
    return qsf_file_open(ref, path, err);
}

static int load_and_compare(const RunOptions *o, Parity *p, const QsfIds *ids) {
    QsfRuntime rt;
    QsfRuntimeOptions ro = run_runtime_options(o);
    if (!ro.exact) qsf_plan_fix_types(&ro.settings);
    ro.nextn = o->nextn >= 0;
    ro.nextn_first = ro.nextn ? (uint32_t)o->nextn : 0;
    int rc = run_open(&rt, o, &ro);
    if (rc) return rc;
    rc = compare(&rt, o, p, ids);
    qsf_runtime_close(&rt);
    return rc;
}

/* The model says which blocks it has before their logits are looked for. */
static int check_block(const RunOptions *o, QsfErr *err) {
    QsfModel m, block;
    QsfLedger ledger;
    if (o->nextn < 0) return QSF_OK;
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_model_open(&m, o->model, o->n_overrides ? o->overrides : NULL, &ledger, err);
    if (rc == QSF_OK) {
        rc = qsf_nextn_open(&block, &m, (uint32_t)o->nextn, true, err);
        if (rc == QSF_OK) qsf_model_close(&block);
        qsf_model_close(&m);
    }
    qsf_ledger_destroy(&ledger);
    return rc;
}

int run_parity(const RunOptions *o) {
    char tokens[4096], logits[4096];
    snprintf(tokens, sizeof tokens, "%s/tokens.txt", o->parity_dir);
    find_logits(o, logits, sizeof logits);
    Parity p = { .sum = { .min_cosine = 1, .first_divergence = -1 } };
    QsfIds ids = { 0 };
    QsfErr err = { 0 };
    int rc;
    if (read_tokens(tokens, &ids, &err) || check_block(o, &err) || open_logits(o, &p.ref, logits, &err)) {
        rc = run_fail(&err);
    } else {
        rc = load_and_compare(o, &p, &ids);
        qsf_file_close(&p.ref);
    }
    free(p.row);
    qsf_ids_free(&ids);
    return rc;
}
