/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A piece is divided into groups of rows. Threads process groups; the sums of groups are added in order. */
#include "src/convert/pack/encode_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A group consists of full rows, so it may have little more than half of its elements (rows of 8,200) or many
 * more (one long row). */
enum {
    GROUP_ELEMS = 1 << 14,
    PIECE_ELEMS = 1 << 20,
    GROUPS_MAX = 2 * PIECE_ELEMS / GROUP_ELEMS,
    SAMPLE_ROWS = 256
};
enum { CLAMP_BITS = 4 }; /* formats with more bits cover that range anyway */

/* A piece of a tensor being encoded. */
typedef struct Piece {
    QsfEncoder *e;
    QsfWeights *w;
    QsfQuant q;
    const QsfOutlierLimits *clamp; /* NULL: none */
    uint64_t base;                 /* row of the tensor that is the first of the item */
    uint64_t first, step;          /* first row of the piece in the item; distance of rows in a sample */
    size_t n, group, cols;         /* rows; rows of a group */
    const float *weights;          /* (sets, cols), or NULL */
    uint64_t set_rows;             /* as in QsfItem */
    uint64_t row_bytes;            /* packed */
    bool measure_only;             /* stop after dequantizing: only counts and moments */
    QsfQuantStats stats[GROUPS_MAX];
    QsfMoments moments[GROUPS_MAX];
    uint64_t outliers[GROUPS_MAX];
    const QsfOutlierLimits *count; /* NULL, or the limits for counting */
    atomic_bool bad;               /* a value cannot be packed: reported in order afterwards */
} Piece;

static size_t group_rows(size_t cols) { return cols >= GROUP_ELEMS ? 1 : GROUP_ELEMS / cols; }

/* Returns the row of the tensor that is row `at` of the piece. */
static uint64_t row_of(const Piece *p, size_t at) { return p->base + p->first + at * p->step; }

/* Returns how many of the rows [at, at + n) have the same weights as the first. */
static size_t same_weights(const Piece *p, size_t at, size_t n) {
    if (p->weights == NULL || p->set_rows == 0) return n;
    const uint64_t left = p->set_rows - row_of(p, at) % p->set_rows, k = (left + p->step - 1) / p->step;
    return k < n ? (size_t)k : n;
}

static const float *weights_of(const Piece *p, size_t at) {
    if (p->weights == NULL || p->set_rows == 0) return p->weights;
    return p->weights + row_of(p, at) / p->set_rows * p->cols;
}

static QsfQuantRows rows_of(const Piece *p, size_t at, size_t n) {
    return (QsfQuantRows){ .x = p->e->x + at * p->cols,
                           .importance = weights_of(p, at),
                           .first = p->first + at * p->step,
                           .n_rows = n,
                           .cols = p->cols };
}

/* ---- one group: any thread */

/* Rows [at, at + n) of group g, which have the same weights. */
static void do_rows(Piece *p, size_t g, size_t at, size_t n) {
    QsfErr err = { 0 };
    float *x = p->e->x + at * p->cols, *y = p->e->y + at * p->cols;
    uint8_t *out = p->measure_only ? NULL : p->e->out + at * p->row_bytes;
    const QsfQuantRows rows = rows_of(p, at, n);
    qsf_weights_unpack(p->w, p->e->raw + at * p->w->row_bytes, n, x);
    int rc = qsf_quant_check(&rows, &err);
    if (rc == QSF_OK && p->count != NULL) p->outliers[g] += qsf_outlier_count(p->count, &rows);
    if (rc == QSF_OK && p->measure_only && p->count == NULL)
        rc = qsf_moments_add(&p->moments[g], &rows, &err);
    if (rc == QSF_OK && !p->measure_only) {
        /* Measured against the original values, so that the error of clamping counts. */
        const QsfQuantRows kept = {
            .x = y, .importance = rows.importance, .first = rows.first, .n_rows = n, .cols = p->cols
        };
        memcpy(y, x, n * p->cols * sizeof *y);
        if (p->clamp != NULL)
            qsf_outlier_take(p->clamp, QSF_OUTLIERS_CLAMP, y, (uint32_t)rows.first, n, p->cols, NULL);
        rc = qsf_quant_encode(&p->q, &kept, out, &err);
        if (rc == QSF_OK) rc = qsf_quant_decode(&p->q, out, n, p->cols, y, &err);
        if (rc == QSF_OK) qsf_stats_add(&p->stats[g], &rows, y);
    }
    if (rc != QSF_OK) atomic_store(&p->bad, true);
}

static void do_group(Piece *p, size_t g) {
    const size_t first = g * p->group, end = p->n - first < p->group ? p->n : first + p->group;
    for (size_t at = first, n; at < end; at += n) {
        n = same_weights(p, at, end - at);
        do_rows(p, g, at, n);
    }
}

static void do_groups(void *arg, int worker, size_t begin, size_t end) {
    (void)worker;
    for (size_t g = begin; g < end; g++) do_group(arg, g);
}

/* ---- a piece */

static int grow(void **p, size_t *cap, size_t need, QsfErr *err) {
    if (need <= *cap) return QSF_OK;
    void *more = realloc(*p, need);
    if (more == NULL) return qsf_err_memory(err, "a piece of a tensor");
    *p = more;
    *cap = need;
    return QSF_OK;
}

static int make_room(Piece *p, QsfErr *err) {
    QsfEncoder *e = p->e;
    const size_t elems = p->n * p->cols;
    if (elems > e->cap_x) {
        free(e->x);
        free(e->y);
        e->x = malloc(elems * sizeof *e->x);
        e->y = malloc(elems * sizeof *e->y);
        e->cap_x = e->x != NULL && e->y != NULL ? elems : 0;
        if (e->cap_x == 0) return qsf_err_memory(err, "a piece of a tensor");
    }
    int rc = grow((void **)&e->raw, &e->cap_raw, p->n * p->w->row_bytes, err);
    return rc == QSF_OK && !p->measure_only ? grow((void **)&e->out, &e->cap_out, p->n * p->row_bytes, err)
                                            : rc;
}

static int read_piece(Piece *p, QsfErr *err) {
    int rc = QSF_OK;
    if (p->step == 1) return qsf_weights_read(p->w, p->base + p->first, p->n, p->e->raw, err);
    for (size_t i = 0; rc == QSF_OK && i < p->n; i++)
        rc = qsf_weights_read(p->w, p->base + p->first + i * p->step, 1, p->e->raw + i * p->w->row_bytes,
                              err);
    return rc;
}

/* Sets the error for the value that cannot be packed. */
static int tell_bad(const Piece *p, QsfErr *err) {
    QsfErr why = { 0 };
    for (size_t at = 0; at < p->n; at++) {
        const QsfQuantRows one = rows_of(p, at, 1);
        if (qsf_quant_check(&one, &why) != QSF_OK) break;
    }
    return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s': %s", qsf_source_path(p->w->s), p->w->t->name,
                       why.msg);
}

static int do_piece(Piece *p, QsfErr *err) {
    int rc = qsf_encoder_check(p->e, err);
    if (rc == QSF_OK) rc = make_room(p, err);
    if (rc == QSF_OK) rc = read_piece(p, err);
    if (rc != QSF_OK) return rc;
    const size_t groups = (p->n + p->group - 1) / p->group;
    memset(p->stats, 0, sizeof p->stats);
    memset(p->moments, 0, sizeof p->moments);
    memset(p->outliers, 0, sizeof p->outliers);
    qsf_pool_run(p->e->pool, do_groups, p, groups, 1);
    return atomic_load(&p->bad) ? tell_bad(p, err) : QSF_OK;
}

/* Returns the number of rows of a piece, a multiple of the group. */
static size_t piece_rows(const Piece *p, uint64_t left) {
    size_t groups = PIECE_ELEMS / (p->group * p->cols), most = p->group * (groups > 0 ? groups : 1);
    return left < most ? (size_t)left : most;
}

/* ---- whole tensors */

void qsf_encoder_init(QsfEncoder *e, const QsfSource *s, QsfPool *pool, const atomic_int *cancel,
                      QsfQuantRule rule) {
    *e = (QsfEncoder){ .s = s, .pool = pool, .cancel = cancel, .rule = rule };
    qk_table_init(&e->kernels, QK_LEVEL_REF);
}

void qsf_encoder_free(QsfEncoder *e) {
    free(e->x);
    free(e->y);
    free(e->raw);
    free(e->out);
    *e = (QsfEncoder){ 0 };
}

int qsf_encoder_check(const QsfEncoder *e, QsfErr *err) {
    if (e->cancel == NULL || atomic_load_explicit(e->cancel, memory_order_relaxed) == 0) return QSF_OK;
    return qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
}

/* Initializes p for a tensor, without rows yet. */
static int begin(Piece **out, QsfEncoder *e, QsfWeights *w, const QsfItem *i, QsfErr *err) {
    int rc = qsf_weights_open(w, e->s, i->t, &e->kernels, err);
    Piece *p = rc == QSF_OK ? calloc(1, sizeof *p) : NULL;
    if (rc == QSF_OK && p == NULL) {
        qsf_weights_close(w);
        rc = qsf_err_memory(err, "a piece of a tensor");
    }
    *out = p;
    if (p == NULL) return rc;
    p->e = e;
    p->w = w;
    p->base = i->first;
    p->step = 1;
    p->cols = i->cols;
    p->weights = i->weights;
    p->set_rows = i->set_rows;
    p->group = group_rows(i->cols);
    return QSF_OK;
}

static void end(Piece *p) {
    qsf_weights_close(p->w);
    free(p);
}

static int set_format(Piece *p, const QsfQuantFormat *f, QsfErr *err) {
    p->q = (QsfQuant){ .format = f, .rule = p->e->rule, .block = p->e->block };
    return qsf_quant_row_bytes(&p->q, p->cols, &p->row_bytes, err);
}

/* Reads all rows once, for the moments, or for the outliers if the limits are known. */
static int survey(Piece *p, uint64_t rows, QsfMoments *m, uint64_t *n, QsfErr *err) {
    int rc = QSF_OK;
    for (p->first = 0; rc == QSF_OK && p->first < rows; p->first += p->n) {
        p->n = piece_rows(p, rows - p->first);
        rc = do_piece(p, err);
        for (size_t g = 0; rc == QSF_OK && g * p->group < p->n; g++) {
            qsf_moments_merge(m, &p->moments[g]);
            *n += p->outliers[g];
        }
    }
    return rc;
}

int qsf_encode_outliers(QsfEncoder *e, const QsfItem *i, QsfOutlierLimits *limits, uint64_t *n, QsfErr *err) {
    QsfWeights w;
    QsfMoments m = { 0 };
    Piece *p;
    int rc = begin(&p, e, &w, i, err);
    *n = 0;
    if (rc != QSF_OK) return rc;
    p->measure_only = true;
    rc = survey(p, i->rows, &m, n, err);
    *limits = qsf_outlier_limits(&m);
    p->count = limits;
    if (rc == QSF_OK) rc = survey(p, i->rows, &m, n, err);
    end(p);
    return rc;
}

static int pack_rows(Piece *p, QsfItem *i, QsfEncodeSink sink, void *arg, QsfErr *err) {
    int rc = QSF_OK;
    i->stats = (QsfQuantStats){ 0 };
    for (p->first = 0; rc == QSF_OK && p->first < i->rows; p->first += p->n) {
        p->n = piece_rows(p, i->rows - p->first);
        rc = do_piece(p, err);
        for (size_t g = 0; rc == QSF_OK && g * p->group < p->n; g++) qsf_stats_merge(&i->stats, &p->stats[g]);
        if (rc == QSF_OK) rc = sink(arg, p->e->out, (size_t)(p->n * p->row_bytes), err);
    }
    return rc;
}

int qsf_encode(QsfEncoder *e, QsfItem *i, const QsfQuantFormat *f, QsfEncodeSink sink, void *arg,
               QsfErr *err) {
    QsfWeights w;
    QsfOutlierLimits limits;
    Piece *p;
    const bool look = f->bits <= CLAMP_BITS;
    i->outliers = i->clamped = 0;
    int rc = look ? qsf_encode_outliers(e, i, &limits, &i->outliers, err) : QSF_OK;
    if (rc == QSF_OK) rc = begin(&p, e, &w, i, err);
    if (rc != QSF_OK) return rc;
    /* The search accounts for outliers and would lose 0.1 dB by clamping; with the minmax rule they would
     * stretch the range. */
    const bool stretched = e->rule == QSF_RULE_MINMAX;
    if (look && stretched &&
        qsf_outlier_way(i->outliers, (uint64_t)i->rows * i->cols) == QSF_OUTLIERS_CLAMP) {
        p->clamp = &limits;
        i->clamped = i->outliers;
    }
    rc = set_format(p, f, err);
    if (rc == QSF_OK) rc = pack_rows(p, i, sink, arg, err);
    end(p);
    return rc;
}

int qsf_encode_sample(QsfEncoder *e, const QsfItem *i, const QsfQuantFormat *f, QsfQuantStats *stats,
                      QsfErr *err) {
    QsfWeights w;
    Piece *p;
    int rc = begin(&p, e, &w, i, err);
    *stats = (QsfQuantStats){ 0 };
    if (rc != QSF_OK) return rc;
    const size_t fit = PIECE_ELEMS / i->cols, rows = i->rows < SAMPLE_ROWS ? i->rows : SAMPLE_ROWS;
    p->n = rows < fit ? rows : fit > 0 ? fit : 1;
    p->step = i->rows / p->n;
    rc = set_format(p, f, err);
    if (rc == QSF_OK) rc = do_piece(p, err);
    for (size_t g = 0; rc == QSF_OK && g * p->group < p->n; g++) qsf_stats_merge(stats, &p->stats[g]);
    end(p);
    return rc;
}
