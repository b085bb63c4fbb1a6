/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What --parity found, as JSON: the line that is printed, and the file of --receipt, which adds which kernels
 * ran, how often and for how long. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/newfile.h"
#include "src/file/dtype.h"
#include "src/plan/units.h"
#include "src/run/run.h"

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

struct RunReceipt {
    const RunOptions *o;
    QsfRuntime *rt;
    QsfNewFile file;
    QsfProfile profile;
    Row *row; /* (n_rows) */
    size_t n_rows;
};

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

void run_put_parity(QsfStrbuf *b, const RunParity *p, const QsfRuntime *rt) {
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
    qsf_strbuf_addf(b, ", \"backend\": \"%s\", \"threads\": %d", qk_level_name(rt->table.level), rt->threads);
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

int run_receipt_begin(RunReceipt **out, const RunOptions *o, QsfRuntime *rt, QsfErr *err) {
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
        run_receipt_drop(r);
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

int run_receipt_end(RunReceipt *r, const RunParity *p, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_adds(&b, MARK);
    put_model(&b, r);
    put_real(&b, "kl_limit", p->limit);
    qsf_strbuf_addf(&b, ", \"passed\": %s,\n",
                    p->sum_kl / (double)p->n_tokens <= p->limit ? "true" : "false");
    run_put_parity(&b, p, r->rt);
    add_rows(r);
    qsf_strbuf_adds(&b, ",\n\"steps\": [");
    for (size_t i = 0; i < r->n_rows; i++) {
        qsf_strbuf_adds(&b, i ? ",\n" : "\n");
        put_row(&b, &r->row[i]);
    }
    qsf_strbuf_adds(&b, "]}\n");
    int rc = write_file(r, &b, err);
    qsf_strbuf_free(&b);
    run_receipt_drop(r);
    return rc;
}

void run_receipt_drop(RunReceipt *r) {
    if (!r) return;
    qsf_forward_profile(r->rt->fwd, NULL);
    qsf_newfile_discard(&r->file);
    free(r->profile.step);
    free(r->row);
    free(r);
}
