/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps of a tokenizer.json: reads them from metadata, compiles their expressions, and cuts texts into
 * pieces, depth first: each piece goes through the remaining steps immediately, so that no list of pieces is
 * stored. */
#include "src/token/steps.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/file/vocab/keys.h"
#include "src/token/chars.h"

/* ---- reading ---- */

#define MAX_TEXT  65536
#define MAX_SPACE 64 /* bytes written for each space */
#define MAX_ARGS  3

typedef struct Reader {
    QsfTextSteps *s;
    const char *path;
    QsfMetaArray *a;
    char *arg[MAX_ARGS]; /* owned */
    size_t len[MAX_ARGS];
} Reader;

/* The name of a step in the metadata, and the number of strings after it. */
static const struct {
    const char *name;
    unsigned args;
} NAMES[QSF_TEXT_STEP_KINDS] = {
    [QSF_TEXT_STEP_FORM] = { "form", 1 },                 /* NFC, NFD, NFKC or NFKD */
    [QSF_TEXT_STEP_REPLACE] = { "replace", 2 },           /* expression, text */
    [QSF_TEXT_STEP_REPLACE_TEXT] = { "replace_text", 2 }, /* text, text */
    [QSF_TEXT_STEP_PREPEND] = { "prepend", 1 },           /* text */
    [QSF_TEXT_STEP_STRIP] = { "strip", 1 },               /* left, right or both */
    [QSF_TEXT_STEP_CHARSMAP] = { "charsmap", 0 },
    [QSF_TEXT_STEP_NMT] = { "nmt", 0 },
    [QSF_TEXT_STEP_SPLIT] = { "split", 3 },   /* expression, behavior, "match" or "between" */
    [QSF_TEXT_STEP_PREFIX] = { "prefix", 2 }, /* text, "always" or "first" */
    [QSF_TEXT_STEP_SPACES] = { "spaces", 1 }, /* text */
    [QSF_TEXT_STEP_BYTES] = { "bytes", 0 },
};

static int bad(const Reader *r, const char *what, const char *text, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: '%s': %s \"%.80s\"", r->path, QSF_KEY_STEPS, what, text);
}

static bool arg_is(const Reader *r, unsigned i, const char *word) { return strcmp(r->arg[i], word) == 0; }

static char *take_arg(Reader *r, unsigned i, size_t *len) {
    char *s = r->arg[i];
    *len = r->len[i];
    r->s->memory += r->len[i] + 1;
    r->arg[i] = NULL;
    return s;
}

static int compile(Reader *r, QsfTextStep *step, QsfErr *err) {
    QsfErr e = { 0 };
    if (strlen(r->arg[0]) != r->len[0]) return bad(r, "an expression with a NUL:", r->arg[0], err);
    int rc = qsf_regex_compile_ruby(&step->re, r->arg[0], &e);
    if (rc != QSF_OK)
        return e.memory ? qsf_err_pass(err, &e)
                        : qsf_err_set(err, QSF_E_MODEL, "%s: its pre-tokenizer: %s", r->path, e.msg);
    r->s->memory += qsf_regex_bytes(step->re);
    return QSF_OK;
}

static int read_form(const Reader *r, QsfTextStep *step, QsfErr *err) {
    static const char *const forms[] = {
        [QSF_NFC] = "NFC",
        [QSF_NFD] = "NFD",
        [QSF_NFKC] = "NFKC",
        [QSF_NFKD] = "NFKD",
    };
    size_t i = 0, n = sizeof forms / sizeof *forms;
    while (i < n && !arg_is(r, 0, forms[i])) i++;
    if (i == n) return bad(r, "an unknown normal form", r->arg[0], err);
    if (!qsf_unicode_has_forms())
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "%s: its text must be %s, and this program was built without utf8proc", r->path,
                           forms[i]);
    step->form = (QsfNormalForm)i;
    return QSF_OK;
}

static int read_split(Reader *r, QsfTextStep *step, QsfErr *err) {
    static const char *const cuts[] = {
        [QSF_CUT_ISOLATED] = "Isolated",     [QSF_CUT_REMOVED] = "Removed",
        [QSF_CUT_CONTIGUOUS] = "Contiguous", [QSF_CUT_PREVIOUS] = "MergedWithPrevious",
        [QSF_CUT_NEXT] = "MergedWithNext",
    };
    size_t i = 0, n = sizeof cuts / sizeof *cuts;
    while (i < n && !arg_is(r, 1, cuts[i])) i++;
    if (i == n) return bad(r, "an unknown behavior", r->arg[1], err);
    step->cut = (QsfCut)i;
    step->invert = arg_is(r, 2, "between");
    return compile(r, step, err);
}

/* Fills in a step from its arguments. */
static int fill(Reader *r, QsfTextStep *step, QsfErr *err) {
    int rc = QSF_OK;
    switch (step->kind) {
    case QSF_TEXT_STEP_FORM: return read_form(r, step, err);
    case QSF_TEXT_STEP_SPLIT: return read_split(r, step, err);
    case QSF_TEXT_STEP_REPLACE:
        rc = compile(r, step, err);
        step->text = take_arg(r, 1, &step->len);
        return rc;
    case QSF_TEXT_STEP_REPLACE_TEXT:
        step->by = take_arg(r, 1, &step->by_len);
        step->text = take_arg(r, 0, &step->len);
        return step->len > 0 ? QSF_OK : bad(r, "nothing to replace in", "replace_text", err);
    case QSF_TEXT_STEP_PREFIX:
        step->first_only = arg_is(r, 1, "first");
        step->text = take_arg(r, 0, &step->len);
        return QSF_OK;
    case QSF_TEXT_STEP_SPACES:
        if (r->len[0] > MAX_SPACE) return bad(r, "a space of more than 64 bytes:", r->arg[0], err);
        step->text = take_arg(r, 0, &step->len);
        return QSF_OK;
    case QSF_TEXT_STEP_PREPEND: step->text = take_arg(r, 0, &step->len); return QSF_OK;
    case QSF_TEXT_STEP_STRIP:
        step->left = !arg_is(r, 0, "right");
        step->right = !arg_is(r, 0, "left");
        return QSF_OK;
    case QSF_TEXT_STEP_BYTES: r->s->bytes = true; return QSF_OK;
    case QSF_TEXT_STEP_CHARSMAP:
    case QSF_TEXT_STEP_NMT:
    case QSF_TEXT_STEP_KINDS: break;
    }
    return QSF_OK;
}

/* Copies the next string of the array. */
static int next_string(Reader *r, uint64_t *left, unsigned i, QsfErr *err) {
    const char *s;
    if (*left == 0) return bad(r, "it ends after", "the name of a step", err);
    int rc = qsf_meta_array_str(r->a, &s, &r->len[i], err);
    if (rc != QSF_OK) return rc;
    if (r->len[i] > MAX_TEXT) return bad(r, "a string is too long:", "more than 65536 bytes", err);
    --*left;
    r->arg[i] = malloc(r->len[i] + 1);
    if (r->arg[i] == NULL) return qsf_err_memory(err, "%s: its pre-tokenizer", r->path);
    memcpy(r->arg[i], s, r->len[i]);
    r->arg[i][r->len[i]] = '\0';
    return QSF_OK;
}

static void free_args(Reader *r) {
    for (unsigned i = 0; i < MAX_ARGS; i++) free(r->arg[i]);
    memset(r->arg, 0, sizeof r->arg);
}

static int read_step(Reader *r, uint64_t *left, QsfErr *err) {
    QsfTextSteps *s = r->s;
    int rc = next_string(r, left, 0, err);
    if (rc != QSF_OK) return rc;
    unsigned kind = 0;
    while (kind < QSF_TEXT_STEP_KINDS && !arg_is(r, 0, NAMES[kind].name)) kind++;
    if (kind == QSF_TEXT_STEP_KINDS) return bad(r, "an unknown step", r->arg[0], err);
    const bool normal = kind < QSF_TEXT_STEP_SPLIT;
    if (s->n == QSF_TEXT_STEPS_MAX || (normal && s->n > s->n_normal))
        return bad(r, s->n == QSF_TEXT_STEPS_MAX ? "too many steps before" : "misplaced:", NAMES[kind].name,
                   err);
    free_args(r);
    for (unsigned i = 0; i < NAMES[kind].args && rc == QSF_OK; i++) rc = next_string(r, left, i, err);
    if (rc != QSF_OK) return rc;
    s->mapped = s->bytes; /* another step follows */
    if (s->bytes && kind == QSF_TEXT_STEP_BYTES) return bad(r, "twice:", "bytes", err);
    s->step[s->n] = (QsfTextStep){ .kind = (QsfTextStepKind)kind };
    s->n_normal += normal;
    return fill(r, &s->step[s->n++], err);
}

int qsf_steps_open(QsfTextSteps *s, const QsfSource *src, const QsfCharsmap *charsmap, QsfErr *err) {
    QsfMetaArray a;
    *s = (QsfTextSteps){ .charsmap = charsmap };
    int rc = qsf_meta_array_open(src, QSF_KEY_STEPS, QSF_META_STRING, &a, &s->present, err);
    if (rc != QSF_OK || !s->present) return rc;
    s->path = strdup(qsf_source_path(src));
    Reader r = { .s = s, .path = qsf_source_path(src), .a = &a };
    for (uint64_t left = a.count; left > 0 && rc == QSF_OK;) {
        rc = read_step(&r, &left, err);
        free_args(&r);
    }
    qsf_meta_array_close(&a);
    return rc;
}

void qsf_steps_close(QsfTextSteps *s) {
    for (unsigned i = 0; i < s->n; i++) {
        qsf_regex_free(s->step[i].re);
        free(s->step[i].text);
        free(s->step[i].by);
    }
    free(s->path);
    *s = (QsfTextSteps){ 0 };
}

bool qsf_matches_next(QsfMatches *m, const QsfRegex *re, QsfRegexScratch *scratch, const char *text,
                      size_t len, size_t *begin, size_t *end) {
    while (m->next <= len && qsf_regex_find(re, scratch, text, len, m->next, begin, end)) {
        const bool again = *begin == *end && m->any && m->end == *end;
        m->next = m->end = *end;
        m->any = true;
        if (!again) return true;
        uint32_t cp;
        m->next += *end < len ? qsf_utf8_next(text + *end, len - *end, &cp) : 1;
    }
    m->next = len + 1;
    return false;
}

/* ---- cutting ---- */

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
