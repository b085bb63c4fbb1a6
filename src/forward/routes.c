/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/forward/routes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/plan/units.h"

#define NAME       "choices of experts"
#define NUMBER     11u /* bytes of a number and the space or line feed after it */
#define LINE_BYTES ((2 + QSF_MAX_EXPERTS) * NUMBER) /* bytes of a line of choices */
_Static_assert(LINE_BYTES < QSF_ROUTES_BYTES, "a line fits");

struct QsfRoutes {
    QsfLedger *ledger;
    char *path;
    int fd;    /* -1: a write failed */
    int error; /* errno value of it, until it was reported */
    void *mem; /* (QSF_ROUTES_BYTES) lines, n bytes are used */
    size_t n;
};

/* ---- writing ---- */

void qsf_routes_write(QsfRoutes *r) {
    const char *p = r->mem;
    while (r->n > 0 && r->fd >= 0) {
        const ssize_t done = write(r->fd, p, r->n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            r->error = errno;
            close(r->fd);
            r->fd = -1;
            return;
        }
        p += done;
        r->n -= (size_t)done;
    }
    r->n = 0;
}

bool qsf_routes_failed(QsfRoutes *r, char *note, size_t cap) {
    if (r == NULL || r->error == 0) return false;
    snprintf(note, cap, "the choices of experts are no longer recorded: %s: %s", r->path, strerror(r->error));
    r->error = 0;
    return true;
}

/* Returns where at least `bytes` bytes of text can be written. */
static char *room(QsfRoutes *r, size_t bytes) {
    if (r->n + bytes > QSF_ROUTES_BYTES) qsf_routes_write(r);
    return (char *)r->mem + r->n;
}

#define MARK "# experts " /* how a file begins */

/* Writes v in decimal and then `after`; returns the end. */
static char *put(char *p, uint32_t v, char after) {
    char digit[NUMBER];
    unsigned n = 0;
    do digit[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0) *p++ = digit[--n];
    *p++ = after;
    return p;
}

void qsf_routes_begin_pass(QsfRoutes *r, uint32_t first, uint32_t n) {
    static const char fact[] = "# pass ";
    if (r->fd < 0) return;
    char *p = room(r, sizeof fact + 2 * NUMBER);
    memcpy(p, fact, sizeof fact - 1);
    p = put(p + sizeof fact - 1, first, ' ');
    p = put(p, n, '\n');
    r->n = (size_t)(p - (char *)r->mem);
}

uint32_t qsf_route_order(const float *choice, uint32_t n, uint32_t *at) {
    const float *weight = choice + n;
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = count;
        if (k > 0 && choice[k] == choice[k - 1]) continue;
        for (; i > 0 && weight[at[i - 1]] < weight[k]; i--) at[i] = at[i - 1];
        at[i] = k;
        count++;
    }
    return count;
}

void qsf_routes_add(QsfRoutes *r, uint32_t pos, uint32_t block, const float *choice, uint32_t n) {
    uint32_t at[QSF_MAX_EXPERTS];
    if (r->fd < 0) return;
    const uint32_t count = qsf_route_order(choice, n, at);
    char *p = room(r, LINE_BYTES);
    p = put(p, pos, ' ');
    p = put(p, block, ' ');
    for (uint32_t i = 0; i < count; i++) p = put(p, (uint32_t)choice[at[i]], i + 1 < count ? ' ' : '\n');
    r->n = (size_t)(p - (char *)r->mem);
}

/* ---- the file ---- */

/* What the blocks have in common: the most experts, and the mean of their sizes. */
static void put_facts(QsfRoutes *r, const QsfModel *m) {
    const QsfProgram *p = &m->prog;
    uint32_t layers = 0, experts = 0, used = 0;
    uint64_t bytes = 0, n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const QsfExpertsStep *e = &p->step[i].u.experts;
        if (p->step[i].op != QSF_OP_EXPERTS) continue;
        layers++;
        if (e->n_expert > experts) experts = e->n_expert;
        if (e->n_used > used) used = e->n_used;
        for (uint32_t u = e->unit; u < e->unit + 2 * e->n_expert; u++) {
            QsfUnit unit;
            qsf_unit_at(m, u, &unit);
            bytes += unit.bytes;
        }
        n += e->n_expert;
    }
    r->n = (size_t)snprintf(r->mem, QSF_ROUTES_BYTES, MARK "1\n# layers %u experts %u used %u bytes %llu\n",
                            layers, experts, used, (unsigned long long)(n > 0 ? bytes / n : 0));
}

bool qsf_routes_has_experts(const QsfModel *m) {
    for (uint32_t i = 0; i < m->prog.n_steps; i++)
        if (m->prog.step[i].op == QSF_OP_EXPERTS) return true;
    return false;
}

static bool is_of_model(const QsfModel *m, const struct stat *st) {
    for (uint32_t i = 0; i < qsf_source_n_files(m->src); i++) {
        const QsfFile *f = qsf_source_file(m->src, i);
        if (f->dev == st->st_dev && f->ino == st->st_ino) return true;
    }
    return false;
}

/* Empty files are, too. */
static bool is_trace(int fd, const struct stat *st) {
    char begin[sizeof MARK - 1];
    return st->st_size == 0 || (pread(fd, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
                                memcmp(begin, MARK, sizeof begin) == 0);
}

/* A mistyped name must not overwrite a model. */
static int open_file(QsfRoutes *r, const QsfModel *m, QsfErr *err) {
    struct stat st;
    r->fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (r->fd < 0 || fstat(r->fd, &st) != 0)
        return qsf_err_set(err, QSF_E_USAGE, "trace-experts %s: %s", r->path, strerror(errno));
    if (is_of_model(m, &st))
        return qsf_err_set(err, QSF_E_USAGE, "trace-experts %s: this is the model", r->path);
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
        return qsf_err_set(err, QSF_E_USAGE, "trace-experts %s: not a regular file", r->path);
    if (S_ISREG(st.st_mode) && !is_trace(r->fd, &st))
        return qsf_err_set(err, QSF_E_USAGE, "trace-experts %s: exists and is not a trace; not overwritten",
                           r->path);
    if (S_ISREG(st.st_mode) && ftruncate(r->fd, 0) != 0)
        return qsf_err_set(err, QSF_E_USAGE, "trace-experts %s: %s", r->path, strerror(errno));
    return QSF_OK;
}

int qsf_routes_open(QsfRoutes **out, const QsfModel *m, const char *path, QsfLedger *ledger, QsfErr *err) {
    *out = NULL;
    QsfRoutes *r = calloc(1, sizeof *r);
    char *copy = strdup(path);
    if (r == NULL || copy == NULL) {
        free(r);
        free(copy);
        return qsf_err_memory(err, NAME);
    }
    *r = (QsfRoutes){ .ledger = ledger, .path = copy, .fd = -1 };
    int rc = open_file(r, m, err);
    if (rc == QSF_OK) rc = qsf_mem_map(ledger, QSF_MEM_TRANSCRIPT, QSF_ROUTES_BYTES, NAME, &r->mem, err);
    if (rc != QSF_OK) {
        qsf_routes_close(r);
        return rc;
    }
    put_facts(r, m);
    *out = r;
    return QSF_OK;
}

void qsf_routes_close(QsfRoutes *r) {
    if (r == NULL) return;
    qsf_routes_write(r);
    if (r->fd >= 0) close(r->fd);
    qsf_mem_unmap(r->ledger, QSF_MEM_TRANSCRIPT, r->mem, QSF_ROUTES_BYTES);
    free(r->path);
    free(r);
}
