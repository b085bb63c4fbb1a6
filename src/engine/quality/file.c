/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file has only integers, which look the same in every locale: margins in thousandths, shares in
 * thousandths, divergence and perplexity in millionths. */
#include "src/engine/quality/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/newfile.h"
#include "src/base/strbuf.h"

#define FILE_MAX  65536u
#define FIRST     "qsf-quality 1\n"
#define MARGIN_1  1000.0
#define SHARE_1   1000.0
#define MEASURE_1 1000000.0
#define VALUE_MAX 1000000000u /* of every number */

const QsfQualityChoice *qsf_quality_choice(const QsfQualityTable *c, float quality) {
    const uint32_t step = (uint32_t)(quality * QSF_QUALITY_TENTHS + 1e-3f);
    return &c->row[step < 1 ? 0 : step > QSF_QUALITY_CHOICES ? QSF_QUALITY_CHOICES - 1 : step - 1];
}

void qsf_quality_choice_apply(const QsfQualityChoice *row, const QsfModel *m, QsfQuality *q) {
    q->exit = 0;
    q->skip = row->skip;
    if (row->exit > 0) qsf_quality_exit(q, m, row->exit, row->margin, row->full);
}

bool qsf_quality_file_path(char out[QSF_PATH_MAX], uint64_t model) {
    char home[QSF_PATH_MAX], name[40];
    (void)snprintf(name, sizeof name, "/quality/%016" PRIx64 ".txt", model);
    return qsf_path_state_home(home) && qsf_path_join(out, home, name, "");
}

bool qsf_quality_file_any(void) {
    char home[QSF_PATH_MAX], folder[QSF_PATH_MAX];
    return qsf_path_state_home(home) && qsf_path_join(folder, home, "/quality", "") &&
           access(folder, F_OK) == 0;
}

/* ---- reading ---- */

typedef struct Reader {
    const char *path, *p; /* the text ends with a NUL */
    uint32_t line;
} Reader;

static int expected(const Reader *r, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: line %" PRIu32 ": expected %s", r->path, r->line, what);
}

static bool word(Reader *r, const char *w) {
    const size_t n = strlen(w);
    if (strncmp(r->p, w, n) != 0) return false;
    r->p += n;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A number without a sign, after `before`; otherwise nothing is consumed. */
static bool number(Reader *r, const char *before, uint32_t *out) {
    const size_t n = strlen(before);
    uint64_t v = 0;
    if (strncmp(r->p, before, n) != 0 || !is_digit(r->p[n])) return false;
    for (r->p += n; is_digit(*r->p); r->p++) {
        v = v * 10 + (uint64_t)(*r->p - '0');
        if (v > VALUE_MAX) return false;
    }
    *out = (uint32_t)v;
    return true;
}

static int read_head(Reader *r, QsfQualityTable *c, QsfErr *err) {
    char *end;
    if (!word(r, FIRST)) return expected(r, "\"qsf-quality 1\"", err);
    r->line++;
    if (!word(r, "model ")) return expected(r, "\"model\"", err);
    errno = 0;
    c->model = strtoull(r->p, &end, 16);
    if (errno != 0 || end - r->p != 16) return expected(r, "an identity of 16 hexadecimal digits", err);
    r->p = end;
    if (!number(r, " blocks ", &c->n_blocks) || !number(r, " tokens ", &c->n_tokens) || !word(r, "\n"))
        return expected(r, "\"blocks N tokens N\"", err);
    return QSF_OK;
}

/* Block numbers in ascending order, or nothing. */
static bool read_skip(Reader *r, uint32_t n_blocks, QsfBlockSet *out) {
    uint32_t block, next = 0;
    for (const char *before = " "; number(r, before, &block); before = ",") {
        if (block < next || block >= n_blocks) return false;
        qsf_blocks_add(out, block);
        next = block + 1;
    }
    return true;
}

static int read_row(Reader *r, uint32_t percent, uint32_t n_blocks, QsfQualityChoice *row, QsfErr *err) {
    uint32_t value, margin = 0, full = 0, kl, perplexity;
    r->line++;
    if (!number(r, "", &value) || value != percent) return expected(r, "the next quality, in percent", err);
    if (word(r, " exit")) {
        if (!number(r, " ", &row->exit) || row->exit == 0 || row->exit >= n_blocks ||
            !number(r, " margin ", &margin) || !number(r, " full ", &full) || full > 2 * SHARE_1)
            return expected(r, "\"exit BLOCK margin N full N\"", err);
    } else if (!word(r, " skip") || !read_skip(r, n_blocks, &row->skip)) {
        return expected(r, "\"exit\", or \"skip\" and ascending numbers of blocks", err);
    }
    if (!number(r, " kl ", &kl) || !number(r, " perplexity ", &perplexity) || !word(r, "\n"))
        return expected(r, "\"kl N perplexity N\"", err);
    row->margin = (float)(margin / MARGIN_1);
    row->full = (float)(full / SHARE_1);
    row->kl = (float)(kl / MEASURE_1);
    row->perplexity = (float)(perplexity / MEASURE_1);
    return QSF_OK;
}

static int parse(Reader *r, uint64_t model, uint32_t n_blocks, QsfQualityTable *c, QsfErr *err) {
    int rc = read_head(r, c, err);
    if (rc == QSF_OK && (c->model != model || c->n_blocks != n_blocks))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is of another model", r->path);
    for (uint32_t i = QSF_QUALITY_CHOICES; rc == QSF_OK && i-- > 0;)
        rc = read_row(r, (i + 1) * 100 / QSF_QUALITY_TENTHS, n_blocks, &c->row[i], err);
    r->line++;
    return rc == QSF_OK && *r->p != '\0' ? expected(r, "the end of the file", err) : rc;
}

int qsf_quality_file_read(const char *path, uint64_t model, uint32_t n_blocks, QsfQualityTable *out,
                          bool *found, QsfErr *err) {
    char *text = calloc(1, FILE_MAX + 1);
    ssize_t n = -1;
    memset(out, 0, sizeof *out);
    *found = false;
    if (text == NULL) return qsf_err_memory(err, "quality");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *found = fd >= 0 || errno != ENOENT;
    if (fd >= 0) n = pread(fd, text, FILE_MAX, 0);
    int rc = n < 0 && *found ? qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", path, strerror(errno)) : QSF_OK;
    if (fd >= 0) close(fd);
    Reader r = { .path = path, .p = text, .line = 1 };
    if (n >= 0) rc = parse(&r, model, n_blocks, out, err);
    free(text);
    return rc;
}

/* ---- writing ---- */

static uint32_t scaled(float v, double one) {
    const double x = (double)v * one + 0.5;
    return !(x > 0) ? 0 : x < VALUE_MAX ? (uint32_t)x : VALUE_MAX;
}

static void put_row(QsfStrbuf *b, uint32_t percent, uint32_t n_blocks, const QsfQualityChoice *row) {
    const char *before = " ";
    qsf_strbuf_addf(b, "%" PRIu32 " %s", percent, row->exit > 0 ? "exit" : "skip");
    if (row->exit > 0)
        qsf_strbuf_addf(b, " %" PRIu32 " margin %" PRIu32 " full %" PRIu32, row->exit,
                        scaled(row->margin, MARGIN_1), scaled(row->full, SHARE_1));
    for (uint32_t i = 0; row->exit == 0 && i < n_blocks; i++) {
        if (!qsf_blocks_have(&row->skip, i)) continue;
        qsf_strbuf_addf(b, "%s%" PRIu32, before, i);
        before = ",";
    }
    qsf_strbuf_addf(b, " kl %" PRIu32 " perplexity %" PRIu32 "\n", scaled(row->kl, MEASURE_1),
                    scaled(row->perplexity, MEASURE_1));
}

static int make_folder(const char *path, QsfErr *err) {
    char folder[QSF_PATH_MAX];
    if (!qsf_path_join(folder, path, "", "")) return qsf_err_set(err, QSF_E_RUNTIME, "%s: too long", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    return qsf_path_make_dirs(folder, err);
}

int qsf_quality_file_write(const char *path, const QsfQualityTable *c, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfNewFile f = { 0 };
    qsf_strbuf_adds(&b, FIRST);
    qsf_strbuf_addf(&b, "model %016" PRIx64 " blocks %" PRIu32 " tokens %" PRIu32 "\n", c->model, c->n_blocks,
                    c->n_tokens);
    for (uint32_t i = QSF_QUALITY_CHOICES; i-- > 0;)
        put_row(&b, (i + 1) * 100 / QSF_QUALITY_TENTHS, c->n_blocks, &c->row[i]);
    int rc = qsf_strbuf_ok(&b) ? make_folder(path, err) : qsf_err_memory(err, "quality");
    if (rc == QSF_OK) rc = qsf_newfile_create(&f, path, err);
    if (rc == QSF_OK &&
        (fchmod(f.file.fd, 0600) != 0 || !qsf_write_all(f.file.fd, qsf_strbuf_str(&b), b.len)))
        rc = qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", path, strerror(errno));
    if (rc == QSF_OK) rc = qsf_newfile_commit(&f, err);
    qsf_newfile_discard(&f);
    qsf_strbuf_free(&b);
    return rc;
}
