/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pre-tokenizer, depth first: each piece goes through the remaining steps immediately, so that
 * no list of pieces is stored. */
#include <string.h>

#include "src/base/interrupt.h"
#include "src/token/bytemap.h"
#include "src/token/steps.h"

#define CHECK_EVERY 256u /* pieces between two looks at the interrupt flag */

typedef struct Cutter {
    const QsfTextSteps *s;
    QsfRegexScratch *scratch;
    QsfPieceFn fn;
    void *ctx;
    QsfErr *err;
    QsfStrbuf written[QSF_TEXT_STEPS_MAX]; /* by step: a piece that it changed */
    unsigned pieces;
} Cutter;

static int run(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where);

/* Continues with what step i wrote. */
static int run_written(Cutter *c, unsigned i, QsfWhere where) {
    const QsfStrbuf *b = &c->written[i];
    if (!qsf_strbuf_ok(b)) return qsf_err_memory(c->err, "tokenizing");
    return run(c, i + 1, qsf_strbuf_str(b), b->len, where);
}

/* --- splitting --- */

/* A segment is a match or the text between two; those that stay together are a piece. */
typedef struct Joiner {
    Cutter *c;
    unsigned step;
    QsfWhere where;
    const char *text;
    size_t begin, end; /* the piece so far */
    bool any, match;   /* there is one; the last segment was a match */
} Joiner;

static int emit(Joiner *j, size_t begin, size_t end) {
    QsfWhere where = { 0 };
    if (begin <= j->where.lead) {
        where = j->where;
        where.lead -= begin;
    }
    return run(j->c, j->step + 1, j->text + begin, end - begin, where);
}

/* Whether a segment belongs to the piece before it. */
static bool joins(const Joiner *j, QsfCut cut, bool match) {
    if (cut == QSF_CUT_CONTIGUOUS) return match == j->match;
    return cut == QSF_CUT_PREVIOUS ? match && !j->match : !match && j->match;
}

static int add_segment(Joiner *j, size_t begin, size_t end, bool match) {
    const QsfTextStep *step = &j->c->s->step[j->step];
    match = match != step->invert;
    if (step->cut == QSF_CUT_ISOLATED) return emit(j, begin, end);
    if (step->cut == QSF_CUT_REMOVED) return match ? QSF_OK : emit(j, begin, end);
    int rc = QSF_OK;
    if (j->any && joins(j, step->cut, match)) {
        j->end = end;
    } else {
        rc = j->any ? emit(j, j->begin, j->end) : QSF_OK;
        j->begin = begin;
        j->end = end;
        j->any = true;
    }
    j->match = match;
    return rc;
}

static int split(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where) {
    Joiner j = { .c = c, .step = i, .where = where, .text = text };
    QsfMatches m = { 0 };
    size_t done = 0, begin, end;
    int rc = QSF_OK;
    while (rc == QSF_OK && qsf_matches_next(&m, c->s->step[i].re, c->scratch, text, len, &begin, &end)) {
        if (begin > done) rc = add_segment(&j, done, begin, false);
        if (rc == QSF_OK) rc = add_segment(&j, begin, end, true);
        done = end;
    }
    if (rc == QSF_OK) rc = qsf_interrupt_check(c->err); /* then there may be more matches */
    if (rc == QSF_OK && done < len) rc = add_segment(&j, done, len, false);
    return rc == QSF_OK && j.any ? emit(&j, j.begin, j.end) : rc;
}

/* --- writing --- */

static int prefix(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where) {
    const QsfTextStep *step = &c->s->step[i];
    const bool has = len >= step->len && memcmp(text, step->text, step->len) == 0;
    if (has || (step->first_only && !where.at_start) || (where.at_start && where.without_prefix))
        return run(c, i + 1, text, len, where);
    qsf_strbuf_clear(&c->written[i]);
    qsf_strbuf_add(&c->written[i], step->text, step->len);
    qsf_strbuf_add(&c->written[i], text, len);
    where.lead += step->len;
    return run_written(c, i, where);
}

static int spaces(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where) {
    const QsfTextStep *step = &c->s->step[i];
    const char *space = memchr(text, ' ', len);
    if (space == NULL) return run(c, i + 1, text, len, where);
    qsf_strbuf_clear(&c->written[i]);
    for (unsigned n = 1; space != NULL; space = memchr(text, ' ', len), n++) {
        if (n % 4096 == 0 && qsf_interrupted()) return qsf_interrupt_check(c->err);
        qsf_strbuf_add(&c->written[i], text, (size_t)(space - text));
        qsf_strbuf_add(&c->written[i], step->text, step->len);
        len -= (size_t)(space - text) + 1;
        text = space + 1;
    }
    qsf_strbuf_add(&c->written[i], text, len);
    return run_written(c, i, where);
}

static int bytes(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where) {
    if (!c->s->mapped) return run(c, i + 1, text, len, where); /* the vocabulary is searched by bytes */
    qsf_strbuf_clear(&c->written[i]);
    for (size_t k = 0; k < len; k++) {
        if (k % 4096 == 4095 && qsf_interrupted()) return qsf_interrupt_check(c->err);
        qsf_strbuf_add_utf8(&c->written[i], qsf_bytemap_cp((unsigned char)text[k]));
    }
    return run_written(c, i, where);
}

/* The depth is the number of steps. */
static int run(Cutter *c, unsigned i, const char *text, size_t len, QsfWhere where) {
    if (len == 0) return QSF_OK;
    if (++c->pieces % CHECK_EVERY == 0 && qsf_interrupted()) return qsf_interrupt_check(c->err);
    if (i == c->s->n) return c->fn(c->ctx, text, len, c->err);
    switch (c->s->step[i].kind) {
    case QSF_TEXT_STEP_SPLIT: return split(c, i, text, len, where);
    case QSF_TEXT_STEP_PREFIX: return prefix(c, i, text, len, where);
    case QSF_TEXT_STEP_SPACES: return spaces(c, i, text, len, where);
    default: return bytes(c, i, text, len, where);
    }
}

int qsf_steps_split(const QsfTextSteps *s, QsfRegexScratch *scratch, const char *text, size_t len,
                    QsfWhere where, QsfPieceFn fn, void *ctx, QsfErr *err) {
    Cutter c = { .s = s, .scratch = scratch, .fn = fn, .ctx = ctx, .err = err };
    int rc = run(&c, s->n_normal, text, len, where);
    for (unsigned i = 0; i < s->n; i++) qsf_strbuf_free(&c.written[i]);
    return rc;
}
