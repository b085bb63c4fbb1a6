/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ladder of formats, from few bits to many, and three ways to choose from it. */
#include "src/convert/pack/choose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/convert/quant/allocate.h"
#include "src/file/dtype.h"
#include "src/file/qsf/layout.h"
#include "src/file/qsf/names.h"

enum { END_BITS = 4, F16_BITS = 16, RUNGS_MAX = 8, TRIES = 6 };

/* From few bits to many: the formats that mixed and a target size choose from. Of two with about the same
 * bits, the first that supports the row length is used; signal-to-noise ratios are in
 * docs/QUANTIZATION.md. */
static const char *const ladder[] = { "2bit-book", "2bit-asym", "3bit-book", "3bit", "4bit-book",
                                      "4bit",      "q6_k",      "8bit",      "f16" };
/* Replacements for a format if a row is not a multiple of its block. */
static const char *const instead[] = { "2bit-asym", "3bit", "4bit", "8bit", "f16" };
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- formats */

/* Returns whether a kernel supports the format. */
static bool runs(const QsfQuantFormat *f) {
    uint32_t dtype;
    return qsf_code_dtype(f->code, 0, &dtype) && qsf_dtype(dtype)->supported;
}

/* Rows that would be padded cannot be run (man/qsf-format.5 allows them). */
static bool takes(const QsfQuantFormat *f, uint32_t cols) {
    uint32_t dtype;
    return qsf_code_dtype(f->code, 0, &dtype) && cols % qsf_dtype(dtype)->block_elems == 0;
}

static void add_type_words(QsfStrbuf *b, const char *between) {
    const QsfQuantFormat *f;
    qsf_strbuf_addf(b, "keep%smixed", between);
    for (size_t i = 0; (f = qsf_quant_format(i)) != NULL; i++)
        if (runs(f)) qsf_strbuf_addf(b, "%s%s", between, f->name);
}

void qsf_pack_type_words(const char *between, char *dst, size_t cap) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    add_type_words(&b, between);
    (void)snprintf(dst, cap, "%s", qsf_strbuf_ok(&b) ? qsf_strbuf_str(&b) : "");
    qsf_strbuf_free(&b);
}

int qsf_pack_type_parse(QsfPackType *out, const char *word, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const QsfQuantFormat *f = qsf_quant_format_named(word);
    if (strcmp(word, "keep") == 0)
        out->how = QSF_PACK_KEEP;
    else if (strcmp(word, "mixed") == 0)
        out->how = QSF_PACK_MIXED;
    else
        out->how = QSF_PACK_ONE;
    out->format = f;
    if (out->how != QSF_PACK_ONE || (f != NULL && runs(f))) return QSF_OK;
    add_type_words(&b, ", ");
    int rc = qsf_err_set(err, QSF_E_USAGE, "\"%s\" is not a quantization type; expected one of: %s", word,
                         qsf_strbuf_ok(&b) ? qsf_strbuf_str(&b) : "");
    qsf_strbuf_free(&b);
    return rc;
}

/* Returns the format for rows of cols elements if `wanted` is requested; never fewer bits. */
static const QsfQuantFormat *fitting(const QsfQuantFormat *wanted, uint32_t cols, QsfKeepReason *why) {
    if (takes(wanted, cols)) return wanted;
    *why = QSF_WHY_COLUMNS;
    for (size_t i = 0; i < COUNT(instead); i++) {
        const QsfQuantFormat *f = qsf_quant_format_named(instead[i]);
        if (f->bits >= wanted->bits && takes(f, cols)) return f;
    }
    return qsf_quant_format_named("f16");
}

static uint64_t bytes_as(const QsfItem *i, uint8_t code) {
    QsfItem copy = *i;
    QsfErr err = { 0 };
    return qsf_item_become(&copy, code, 0, QSF_WHY_NONE, &err) == QSF_OK ? copy.bytes : UINT64_MAX;
}

/* Requantizing a tensor that is already as small could only increase the error. */
static bool small_already(const QsfItem *i, const QsfQuantFormat *f) {
    return bytes_as(i, i->keep) <= bytes_as(i, f->code);
}

bool qsf_choose_lower(const QsfItem *i, uint8_t *code) {
    const uint64_t now = bytes_as(i, i->code);
    uint64_t best = 0;
    for (size_t k = 0; k < COUNT(ladder) && qsf_item_is_matrix(i); k++) {
        const QsfQuantFormat *f = qsf_quant_format_named(ladder[k]);
        const uint64_t bytes = runs(f) && takes(f, i->cols) ? bytes_as(i, f->code) : now;
        if (bytes >= now || bytes <= best) continue;
        best = bytes;
        *code = f->code;
    }
    return best > 0;
}

/* Returns f, or a better format for this item. */
static int settle(QsfItem *i, const QsfQuantFormat *f, QsfKeepReason why, QsfErr *err) {
    f = fitting(f, i->cols, &why);
    if (small_already(i, f))
        return qsf_item_become(i, i->keep, 0, i->keep == f->code ? why : QSF_WHY_SMALLER, err);
    return qsf_item_become(i, f->code, 0, why, err);
}

static unsigned role_of(const QsfItem *i) {
    return i->role == QSFT_EMBED ? (unsigned)QSF_ROLE_EMBEDDING : i->role;
}

/* The embedding and the head need at least this many bits. */
static bool is_end(const QsfItem *i) { return i->role == QSFT_EMBED || i->role == QSFT_HEAD; }

/* ---- one format for all */

static int choose_one(QsfItems *l, const QsfQuantFormat *f, QsfErr *err) {
    const QsfQuantFormat *for_ends = f->bits >= END_BITS
                                         ? f
                                         : qsf_quant_format_named(f->elems == 256 ? "4bit-book" : "4bit");
    int rc = QSF_OK;
    for (uint32_t k = 0; rc == QSF_OK && k < l->n; k++) {
        QsfItem *i = &l->item[k];
        if (!qsf_item_is_matrix(i))
            i->why = QSF_WHY_VECTOR;
        else if (is_end(i))
            rc = settle(i, for_ends, for_ends == f ? QSF_WHY_NONE : QSF_WHY_ROLE, err);
        else
            rc = settle(i, f, QSF_WHY_NONE, err);
    }
    return rc;
}

/* ---- mixed */

typedef struct Ladder {
    const QsfQuantFormat *f[RUNGS_MAX];
    QsfQuantStats stats[RUNGS_MAX];
    size_t n;
} Ladder;

/* Lists the formats for rows of cols elements: the first of each number of bits. */
static void make_ladder(Ladder *l, uint32_t cols) {
    l->n = 0;
    for (size_t i = 0; i < COUNT(ladder); i++) {
        const QsfQuantFormat *f = qsf_quant_format_named(ladder[i]);
        if (!takes(f, cols) || (l->n > 0 && l->f[l->n - 1]->bits == f->bits)) continue;
        l->f[l->n++] = f;
    }
}

static int measure(Ladder *l, const QsfItem *i, QsfEncoder *e, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t k = 0; rc == QSF_OK && k < l->n; k++)
        rc = qsf_encode_sample(e, i, l->f[k], &l->stats[k], err);
    return rc;
}

static int choose_mixed(QsfItem *i, uint32_t n_layers, QsfEncoder *e, QsfErr *err) {
    static const QsfKeepReason why_of[] = { QSF_WHY_NONE, QSF_WHY_OUTLIERS, QSF_WHY_COSINE };
    const QsfQuantPolicy p = qsf_quant_policy(role_of(i), i->layer, n_layers);
    QsfQuantRung rungs[RUNGS_MAX];
    QsfOutlierLimits limits;
    uint64_t outliers = 0;
    QsfStepUp bump;
    Ladder l;
    make_ladder(&l, i->cols);
    int rc = measure(&l, i, e, err);
    if (rc == QSF_OK) rc = qsf_encode_outliers(e, i, &limits, &outliers, err);
    if (rc != QSF_OK) return rc;
    for (size_t k = 0; k < l.n; k++)
        rungs[k] = (QsfQuantRung){ l.f[k]->bits, qsf_stats_heavy_cosine(&l.stats[k]) };
    bool many = qsf_outlier_way(outliers, (uint64_t)i->rows * i->cols) == QSF_OUTLIERS_BUMP;
    size_t k = qsf_quant_climb(rungs, l.n, p.start, many, &bump);
    QsfKeepReason why = bump != QSF_BUMP_NONE ? why_of[bump] : p.start > 2 ? QSF_WHY_ROLE : QSF_WHY_NONE;
    return settle(i, l.f[k], why, err);
}

int qsf_choose(QsfItems *l, const QsfPackType *type, QsfEncoder *e, QsfErr *err) {
    int rc = QSF_OK;
    if (type->how == QSF_PACK_KEEP) return QSF_OK;
    if (type->how == QSF_PACK_ONE) return choose_one(l, type->format, err);
    for (uint32_t k = 0; rc == QSF_OK && k < l->n; k++) {
        QsfItem *i = &l->item[k];
        if (qsf_item_is_matrix(i))
            rc = choose_mixed(i, l->n_layers, e, err);
        else
            i->why = QSF_WHY_VECTOR;
    }
    return rc;
}

/* ---- a target size */

typedef struct Choice {
    QsfAllocOption option[RUNGS_MAX + 1];
    uint8_t code[RUNGS_MAX + 1];
} Choice;

typedef struct Sizer {
    QsfItems *l;
    uint32_t n;             /* matrices */
    QsfItem **item;         /* (n) */
    Choice *choice;         /* (n) */
    QsfAllocTensor *tensor; /* (n) */
} Sizer;

/* Lists the options for an item: the ladder, and unchanged. If a format was requested, it is the upper
 * limit. */
static int list_options(Sizer *z, uint32_t k, const QsfPackType *type, QsfEncoder *e, QsfErr *err) {
    QsfItem *i = z->item[k];
    Choice *c = &z->choice[k];
    QsfAllocTensor *t = &z->tensor[k];
    const QsfQuantPolicy p = qsf_quant_policy(role_of(i), i->layer, z->l->n_layers);
    const unsigned most = type->how == QSF_PACK_ONE ? type->format->bits : F16_BITS;
    Ladder l;
    make_ladder(&l, i->cols);
    int rc = measure(&l, i, e, err);
    *t = (QsfAllocTensor){ .name = i->t->name, .options = c->option, .weight = p.weight };
    for (size_t r = 0; rc == QSF_OK && r < l.n; r++) {
        const QsfQuantStats *s = &l.stats[r];
        if (small_already(i, l.f[r]) || l.f[r]->bits < p.floor || (l.f[r]->bits > most && t->n > 0)) continue;
        c->option[t->n] = (QsfAllocOption){ bytes_as(i, l.f[r]->code),
                                            s->heavy_signal > 0 ? s->heavy_noise / s->heavy_signal : 0 };
        c->code[t->n++] = l.f[r]->code;
    }
    if (t->n == 0 || type->how != QSF_PACK_ONE) {
        c->option[t->n] = (QsfAllocOption){ bytes_as(i, i->keep), 0 };
        c->code[t->n++] = i->keep;
    }
    t->allowed = (1u << t->n) - 1;
    return rc;
}

static int become_chosen(const Sizer *z, QsfErr *err) {
    int rc = QSF_OK;
    for (uint32_t k = 0; rc == QSF_OK && k < z->n; k++)
        rc = qsf_item_become(z->item[k], z->choice[k].code[z->tensor[k].chosen], 0, QSF_WHY_SIZE, err);
    return rc;
}

static uint64_t matrix_bytes(const Sizer *z) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < z->n; k++) sum += z->item[k]->bytes;
    return sum;
}

/* Allocates, and repeats with the space that padding to pages and cache lines left over, while the result
 * fits. */
static int share_out(Sizer *z, uint64_t target, int (*size_of)(void *, uint64_t *, QsfErr *), void *arg,
                     QsfErr *err) {
    uint64_t whole, total, room;
    size_t *best = calloc(z->n + 1, sizeof *best);
    if (best == NULL) return qsf_err_memory(err, "target size");
    for (uint32_t k = 0; k < z->n; k++) z->tensor[k].chosen = 0; /* the smallest allowed (ascending order) */
    int rc = become_chosen(z, err);
    if (rc == QSF_OK) rc = size_of(arg, &whole, err);
    if (rc == QSF_OK && whole > target)
        rc = qsf_err_set(err, QSF_E_USAGE,
                         "the target size of %" PRIu64
                         " bytes is too small: the smallest file for this model has %" PRIu64,
                         target, whole);
    room = rc == QSF_OK ? matrix_bytes(z) + (target - whole) : 0;
    for (int n = 0; rc == QSF_OK && n < TRIES; n++) {
        rc = qsf_allocate(z->tensor, z->n, room, &total, err);
        if (rc == QSF_E_USAGE) { /* only the smallest or the previous choice fits */
            qsf_err_clear(err);
            rc = QSF_OK;
            break;
        }
        if (rc == QSF_OK) rc = become_chosen(z, err);
        if (rc == QSF_OK) rc = size_of(arg, &whole, err);
        if (rc != QSF_OK) break;
        if (whole <= target) {
            for (uint32_t k = 0; k < z->n; k++) best[k] = z->tensor[k].chosen;
            if (target - whole < QSFF_PAGE) break;
            room += (target - whole) / 2;
        } else {
            room -= room < whole - target ? room : whole - target;
        }
    }
    for (uint32_t k = 0; k < z->n; k++) z->tensor[k].chosen = best[k];
    free(best);
    return rc == QSF_OK ? become_chosen(z, err) : rc;
}

int qsf_choose_for_size(QsfItems *l, const QsfPackType *type, uint64_t target,
                        int (*size_of)(void *arg, uint64_t *bytes, QsfErr *err), void *arg, QsfEncoder *e,
                        QsfErr *err) {
    Sizer z = { .l = l };
    int rc = QSF_OK;
    z.item = calloc((size_t)l->n + 1, sizeof *z.item);
    z.choice = calloc((size_t)l->n + 1, sizeof *z.choice);
    z.tensor = calloc((size_t)l->n + 1, sizeof *z.tensor);
    if (z.item == NULL || z.choice == NULL || z.tensor == NULL) rc = qsf_err_memory(err, "target size");
    for (uint32_t k = 0; rc == QSF_OK && k < l->n; k++) {
        l->item[k].why = QSF_WHY_VECTOR;
        if (qsf_item_is_matrix(&l->item[k])) z.item[z.n++] = &l->item[k];
    }
    for (uint32_t k = 0; rc == QSF_OK && k < z.n; k++) rc = list_options(&z, k, type, e, err);
    if (rc == QSF_OK) rc = share_out(&z, target, size_of, arg, err);
    free(z.item);
    free(z.choice);
    free(z.tensor);
    return rc;
}
