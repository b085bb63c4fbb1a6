/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The virtual file of derived tensors: where each one lies, and which function makes its bytes. */
#include "src/file/derive/derive.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"
#include "src/base/platform.h"

#define PLACE_ALIGN 4096u /* tensors do not share a page, so that a read never makes parts of two */

struct QsfDerivedFile {
    QsfFile f;
    QsfDerived *d; /* (n), in order of off */
    uint64_t n;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    unsigned char *scratch[QSF_DERIVE_READERS]; /* (n_scratch) free */
    uint32_t n_scratch;
};

static const struct {
    int (*read)(const QsfDeriveRead *r);
    bool sequential; /* close places in the result are close places in the file */
} kinds[QSF_DERIVE_KINDS] = {
    [QSF_DERIVE_COPY] = { qsf_derive_copy, true },
    [QSF_DERIVE_TRANSPOSE] = { qsf_derive_transpose, false },
    [QSF_DERIVE_COLUMNS] = { qsf_derive_columns, true },
    [QSF_DERIVE_TIMES] = { qsf_derive_times, true },
    [QSF_DERIVE_F32] = { qsf_derive_value, true },
    [QSF_DERIVE_ADD_ONE] = { qsf_derive_value, true },
    [QSF_DERIVE_NEG_EXP] = { qsf_derive_value, true },
    [QSF_DERIVE_MXFP4] = { qsf_derive_mxfp4, true },
    [QSF_DERIVE_TERNARY] = { qsf_derive_ternary, true },
    [QSF_DERIVE_SPLIT32] = { qsf_derive_split32, true },
};

uint64_t qsf_row_place(const QsfRowMap *m, uint64_t r) {
    uint64_t in = r % m->run;
    if (m->head > 0) {
        const uint64_t within = in % m->head;
        in = in - within + within % 2 * (m->head / 2) + within / 2;
    }
    const uint64_t run = r / m->run, times = m->period > 0 ? run / m->period : 0;
    return m->first + (run - times * m->period) * m->stride + times * m->step + in;
}

bool qsf_row_map_ok(const QsfRowMap *m, uint64_t rows, uint64_t src_rows) {
    if (rows == 0 || m->run == 0 || rows % m->run != 0 || (m->head > 0 && m->run % m->head != 0))
        return false;
    uint64_t last, runs = rows / m->run, more = 0;
    if (m->period > 0 && (runs % m->period != 0 || !qsf_mul_u64(runs / m->period - 1, m->step, &more)))
        return false;
    if (m->period > 0) runs = m->period;
    if (m->head % 2 != 0 || !qsf_mul_u64(runs - 1, m->stride, &last) || !qsf_add_u64(last, more, &last))
        return false;
    return qsf_add_u64(last, m->first, &last) && qsf_range_ok(last, m->run, src_rows);
}

void qsf_derived_add(QsfSource *s, const QsfDerived *d, QsfTensor *t) {
    QsfDerivedFile *v = s->derived;
    QsfDerived *out = &v->d[v->n++];
    *out = *d;
    out->off = v->f.size;
    out->bytes = t->bytes;
    t->file = s->n_files;
    t->offset = out->off;
    v->f.size = (out->off + out->bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

void qsf_derived_clear(QsfSource *s) {
    if (s->derived == NULL) return;
    s->derived->n = 0;
    s->derived->f.size = 0;
}

static const QsfFile *derived_file(const QsfSource *s) { return s->derived->n > 0 ? &s->derived->f : NULL; }

/* --- reading --- */

static unsigned char *take_scratch(QsfDerivedFile *v) {
    pthread_mutex_lock(&v->lock);
    while (v->n_scratch == 0) pthread_cond_wait(&v->freed, &v->lock);
    unsigned char *p = v->scratch[--v->n_scratch];
    pthread_mutex_unlock(&v->lock);
    return p;
}

static void give_scratch(QsfDerivedFile *v, unsigned char *p) {
    pthread_mutex_lock(&v->lock);
    v->scratch[v->n_scratch++] = p;
    pthread_mutex_unlock(&v->lock);
    pthread_cond_signal(&v->freed);
}

/* Returns the index of the last tensor that begins at off or before. */
static uint64_t tensor_at(const QsfDerivedFile *v, uint64_t off) {
    uint64_t lo = 0, hi = v->n;
    while (hi - lo > 1) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (v->d[mid].off <= off)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static uint32_t part_at(const QsfDerived *d, uint64_t row) {
    uint32_t lo = 0, hi = d->n_parts;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (d->part[mid].row0 <= row)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Does something with each part of a range; r->at, r->len and r->dst are set for it. */
typedef int (*Visit)(QsfDeriveRead *r, void *arg);

/* Visits the parts of tensor d within [at, at + len), relative to the tensor. */
static int visit_tensor(const QsfDerived *d, uint64_t at, uint64_t len, QsfDeriveRead *r, Visit visit,
                        void *arg) {
    int rc = QSF_OK;
    unsigned char *dst = r->dst;
    const uint64_t rows = d->bytes - d->tail_bytes, end = at + len;
    for (uint64_t i = 0; i < sizeof d->tail && d->tail_bytes > 0 && dst != NULL; i++)
        if (rows + i >= at && rows + i < end) memcpy(dst + (rows + i - at), (const char *)&d->tail + i, 1);
    r->d = d;
    if (end > rows) len = at < rows ? rows - at : 0;
    while (rc == QSF_OK && len > 0) {
        r->p = &d->part[part_at(d, at / d->row_bytes)];
        const uint64_t left = (r->p->row0 + r->p->rows) * d->row_bytes - at;
        r->at = at - r->p->row0 * d->row_bytes;
        r->len = len < left ? len : left;
        r->dst = dst;
        rc = visit(r, arg);
        if (dst != NULL) dst += r->len;
        at += r->len;
        len -= r->len;
    }
    return rc;
}

/* Visits all tensors in [off, off + len) of the virtual file. Gaps in r->dst, if it is set, become 0. */
static int visit_range(uint64_t off, uint64_t len, QsfDeriveRead *r, Visit visit, void *arg) {
    const QsfDerivedFile *v = r->s->derived;
    unsigned char *dst = r->dst;
    if (dst != NULL) memset(dst, 0, (size_t)len);
    int rc = QSF_OK;
    for (uint64_t i = tensor_at(v, off); rc == QSF_OK && i < v->n && v->d[i].off < off + len; i++) {
        const QsfDerived *d = &v->d[i];
        const uint64_t from = off > d->off ? off - d->off : 0;
        uint64_t to = off + len - d->off;
        if (to > d->bytes) to = d->bytes;
        if (from >= to) continue;
        r->dst = dst != NULL ? dst + (d->off + from - off) : NULL;
        rc = visit_tensor(d, from, to - from, r, visit, arg);
    }
    return rc;
}

static int make(QsfDeriveRead *r, void *arg) {
    QsfDerivedFile *v = arg;
    r->scratch = take_scratch(v);
    int rc = kinds[r->d->kind].read(r);
    give_scratch(v, r->scratch);
    return rc;
}

static int derived_read(const QsfSource *s, uint64_t off, uint64_t len, void *dst, QsfErr *err) {
    QsfErr local = { 0 };
    QsfDeriveRead r = { .s = s, .dst = dst, .err = err != NULL ? err : &local };
    if (!qsf_range_ok(off, len, s->derived->f.size))
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: read outside the derived tensors of %s",
                           qsf_source_path(s));
    return visit_range(off, len, &r, make, s->derived);
}

static int advise(QsfDeriveRead *r, void *arg) {
    const QsfAdvice advice = *(const QsfAdvice *)arg;
    const QsfDerived *d = r->d;
    const QsfRowMap *m = r->p->map;
    if (!kinds[d->kind].sequential) return QSF_OK;
    /* Whole runs, of which rows are read in any order. */
    const uint64_t unit = m->head > 0 ? m->head : 1, row0 = r->at / d->row_bytes / unit * unit;
    uint64_t row1 = (r->at + r->len + d->row_bytes - 1) / d->row_bytes;
    row1 = (row1 + unit - 1) / unit * unit;
    const uint64_t src = d->src_cols * (d->scaled_f8 ? 1 : d->src_elem), first = qsf_row_place(m, row0),
                   n = m->run >= row1 - row0 ? row1 - row0 : qsf_row_place(m, row1 - 1) + 1 - first;
    qsf_os_advise(r->s->files[r->p->file].fd, r->p->at + first * src, n * src, advice);
    return QSF_OK;
}

static void derived_advise(const QsfSource *s, uint64_t off, uint64_t len, QsfAdvice advice) {
    QsfDeriveRead r = { .s = s };
    if (qsf_range_ok(off, len, s->derived->f.size)) (void)visit_range(off, len, &r, advise, &advice);
}

/* --- the interface of sources --- */

static void derived_close(QsfSource *s) {
    pthread_cond_destroy(&s->derived->freed);
    pthread_mutex_destroy(&s->derived->lock);
    s->derived = NULL;
    s->virtual_ops = NULL;
}

static const QsfVirtualOps ops = { derived_file, derived_read, derived_advise, derived_close };

int qsf_derived_open(QsfSource *s, uint64_t n, QsfErr *err) {
    QsfDerivedFile *v = qsf_source_alloc(s, 1, sizeof *v, err);
    if (v == NULL) return err->code;
    v->d = qsf_source_alloc(s, n, sizeof *v->d, err);
    if (v->d == NULL) return err->code;
    for (; v->n_scratch < QSF_DERIVE_READERS; v->n_scratch++) {
        v->scratch[v->n_scratch] = qsf_source_alloc(s, QSF_DERIVE_SCRATCH / 16, 16, err);
        if (v->scratch[v->n_scratch] == NULL) return err->code;
    }
    v->f.fd = -1;
    v->f.path = qsf_arena_strdup(&s->arena, qsf_source_path(s), strlen(qsf_source_path(s)), err);
    if (v->f.path == NULL) return err->code;
    pthread_mutex_init(&v->lock, NULL);
    pthread_cond_init(&v->freed, NULL);
    s->derived = v;
    s->virtual_ops = &ops;
    return QSF_OK;
}

/* --- for the functions that make bytes --- */

int qsf_derive_stored(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len) {
    return qsf_file_pread(&r->s->files[r->p->file], dst, (size_t)len, r->p->at + at, r->err);
}

int qsf_derive_scales(const QsfDeriveRead *r, uint64_t at, void *dst, uint64_t len) {
    return qsf_file_pread(&r->s->files[r->p->scale_file], dst, (size_t)len, r->p->scale_at + at, r->err);
}
