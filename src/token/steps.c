/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads steps from metadata and compiles their expressions. */
#include "src/token/steps.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/file/vocab/keys.h"

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
