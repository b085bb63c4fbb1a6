/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Applies the expressions of a pre-tokenizer to a text, depth first: every piece goes through the remaining
 * passes immediately, so no list of pieces is stored. */
#include "src/token/pretok.h"

#include "src/base/interrupt.h"
#include "src/base/utf8.h"

#define CHECK_EVERY 256u /* pieces; one costs at most a few milliseconds (regex.c) */

int qsf_pretok_open(QsfPretok *p, const QsfPretokSpec *spec, QsfErr *err) {
    *p = (QsfPretok){ 0 };
    for (const char *const *pass = spec->passes; *pass != NULL; pass++) {
        if (p->n == QSF_PRETOK_PASSES) {
            return qsf_err_set(err, QSF_E_RUNTIME, "pre-tokenizer %s has too many expressions", spec->name);
        }
        int rc = qsf_regex_compile(&p->re[p->n], *pass, err);
        if (rc != QSF_OK) {
            qsf_err_prefix(err, "pre-tokenizer %s", spec->name);
            return rc;
        }
        p->bytes += qsf_regex_bytes(p->re[p->n++]);
    }
    return QSF_OK;
}

void qsf_pretok_close(QsfPretok *p) {
    for (unsigned i = 0; i < p->n; i++) qsf_regex_free(p->re[i]);
    *p = (QsfPretok){ 0 };
}

typedef struct Split {
    const QsfPretok *p;
    QsfRegexScratch *scratch;
    QsfPieceFn fn;
    void *ctx;
    QsfErr *err;
    unsigned pieces;
} Split;

/* The depth is the number of passes, at most QSF_PRETOK_PASSES. */
static int split_from(Split *s, unsigned pass, const char *text, size_t len) {
    if (len == 0) return QSF_OK;
    if (++s->pieces % CHECK_EVERY == 0 && qsf_interrupted()) return qsf_interrupt_check(s->err);
    if (pass == s->p->n) return s->fn(s->ctx, text, len, s->err);
    size_t done = 0, from = 0, begin, end;
    while (from < len && qsf_regex_find(s->p->re[pass], s->scratch, text, len, from, &begin, &end)) {
        int rc = split_from(s, pass + 1, text + done, begin - done);
        if (rc == QSF_OK) rc = split_from(s, pass + 1, text + begin, end - begin);
        if (rc != QSF_OK) return rc;
        done = from = end;
        if (begin == end && end < len) { /* an empty match splits here; search for the next one further on */
            uint32_t cp;
            from += qsf_utf8_next(text + end, len - end, &cp);
        } else if (begin == end) {
            break;
        }
    }
    if (qsf_interrupted()) return qsf_interrupt_check(s->err); /* then there may be more matches */
    return split_from(s, pass + 1, text + done, len - done);
}

int qsf_pretok_split(const QsfPretok *p, QsfRegexScratch *scratch, const char *text, size_t len,
                     QsfPieceFn fn, void *ctx, QsfErr *err) {
    Split s = { .p = p, .scratch = scratch, .fn = fn, .ctx = ctx, .err = err };
    while (len > 0) {
        bool ok;
        size_t n = qsf_utf8_run(text, len, &ok);
        if (qsf_interrupted()) return qsf_interrupt_check(err); /* maybe a part of the run */
        int rc = ok ? split_from(&s, 0, text, n) : fn(ctx, text, n, err);
        if (rc != QSF_OK) return rc;
        text += n;
        len -= n;
    }
    return QSF_OK;
}
