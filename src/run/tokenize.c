/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --tokenize and --detokenize: convert text to ids and back (design §12). */
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/run/run.h"
#include "src/run/text_budget.h"

#define OUT_FLUSH 65536

/* Writes the buffered output when it has reached limit bytes. */
static int flush_at(QsfStrbuf *out, size_t limit) {
    if (out->len < limit) return QSF_EXIT_OK;
    int rc = run_write_raw(qsf_strbuf_str(out), out->len);
    qsf_strbuf_clear(out);
    return rc;
}

static unsigned encode_flags(const RunOptions *o) {
    return (o->no_bos ? 0u : (unsigned)(QSF_TOK_BOS | QSF_TOK_EOS)) |
           (o->no_special ? 0u : (unsigned)QSF_TOK_SPECIAL);
}

/* Writes what the buffer holds as it fills. Returns an exit code. */
static int put_ids(QsfStrbuf *out, const QsfIds *ids, const char *open, const char *sep, const char *close) {
    int rc = QSF_EXIT_OK;
    qsf_strbuf_adds(out, open);
    for (size_t i = 0; i < ids->n && !rc; i++) {
        qsf_strbuf_addf(out, "%s%d", i ? sep : "", ids->data[i]);
        if (i % 4096 == 4095) rc = flush_at(out, OUT_FLUSH);
    }
    qsf_strbuf_adds(out, close);
    return rc;
}

static int encode_line(RunTextBudget *b, const RunOptions *o, const char *line, size_t len, QsfIds *ids,
                       QsfErr *err) {
    size_t n;
    QsfLedger *l = &b->rt->ledger;
    int rc = qsf_ledger_reserve(l, QSF_MEM_TRANSCRIPT, (uint64_t)len * RUN_LINE_BYTES, "the text of a line",
                                err);
    if (rc) return rc;
    QsfJson *v = qsf_json_parse(line, len, err);
    const char *text = v ? qsf_json_string(v, &n) : NULL;
    if (!text)
        rc = qsf_err_set(err, QSF_E_RUNTIME, "not a JSON string");
    else
        rc = qsf_tokenizer_encode(b->rt->tok, text, n, encode_flags(o), ids, err);
    qsf_json_free(v);
    qsf_ledger_release(l, QSF_MEM_TRANSCRIPT, (uint64_t)len * RUN_LINE_BYTES);
    return rc;
}

static int tokenize_line(RunTextBudget *b, const RunOptions *o, const char *line, size_t len, size_t number,
                         QsfStrbuf *out) {
    QsfErr err = { 0 };
    QsfIds ids = { .ledger = &b->rt->ledger };
    int rc = encode_line(b, o, line, len, &ids, &err);
    if (rc) {
        qsf_err_prefix(&err, "stdin line %zu", number);
        (void)run_text_budget_advise(b, &err);
        rc = run_fail(&err);
    } else {
        rc = put_ids(out, &ids, "[", ",", "]\n");
    }
    qsf_ids_free(&ids);
    return rc;
}

static int tokenize_text(RunTextBudget *b, const RunOptions *o, const QsfStrbuf *in, QsfStrbuf *out) {
    QsfErr err = { 0 };
    QsfIds ids = { .ledger = &b->rt->ledger };
    int rc = qsf_tokenizer_encode(b->rt->tok, qsf_strbuf_str(in), in->len, encode_flags(o), &ids, &err);
    if (rc) (void)run_text_budget_advise(b, &err);
    rc = rc ? run_fail(&err) : put_ids(out, &ids, "", " ", "\n");
    qsf_ids_free(&ids);
    return rc;
}

/* Ids of one line as a JSON string, or {"hex": ...} where the bytes are not UTF-8. */
static int detokenize_line(RunTextBudget *b, const RunOptions *o, const char *line, size_t len, size_t number,
                           QsfStrbuf *out) {
    const QsfRuntime *rt = b->rt;
    static char piece[QSF_PIECE_MAX + 8];
    QsfDetok d;
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    char *copy = strndup(line, len);
    int rc = copy ? QSF_OK : qsf_err_memory(&err, "a line of ids");
    qsf_detok_init(&d, rt->tok, !o->no_special, false);
    qsf_detok_clean(&d, o->clean_spaces);
    for (char *s = copy, *end; !rc && *(s += strspn(s, " \t\r,[]")); s = end) {
        long v = strtol(s, &end, 10);
        if (end == s || v < 0 || v >= (long)qsf_tokenizer_n_vocab(rt->tok))
            rc = qsf_err_set(&err, QSF_E_RUNTIME,
                             "expected a token id of this vocabulary (0 to %u) at column %lld",
                             qsf_tokenizer_n_vocab(rt->tok) - 1, (long long)(s - copy) + 1);
        else
            qsf_strbuf_add(&text, piece, qsf_detok_feed(&d, (int32_t)v, piece, sizeof piece));
    }
    qsf_strbuf_add(&text, piece, qsf_detok_flush(&d, piece, sizeof piece));
    if (rc) {
        qsf_err_prefix(&err, "stdin line %zu", number);
        rc = run_fail(&err);
    } else if (qsf_utf8_valid(qsf_strbuf_str(&text), text.len)) {
        qsf_json_put_string(out, qsf_strbuf_str(&text), text.len);
        qsf_strbuf_addc(out, '\n');
    } else {
        qsf_strbuf_adds(out, "{\"hex\": \"");
        for (size_t i = 0; i < text.len; i++)
            qsf_strbuf_addf(out, "%02x", (unsigned)(unsigned char)text.data[i]);
        qsf_strbuf_adds(out, "\"}\n");
    }
    free(copy);
    qsf_strbuf_free(&text);
    return rc;
}

typedef int (*LineFn)(RunTextBudget *, const RunOptions *, const char *, size_t, size_t, QsfStrbuf *);

/* A bad line is reported and ends the run, because output lines must correspond to input lines. */
static int each_line(RunTextBudget *b, const RunOptions *o, const QsfStrbuf *in, LineFn fn, QsfStrbuf *out) {
    const char *s = qsf_strbuf_str(in), *end = s + in->len;
    int rc = QSF_EXIT_OK;
    for (size_t number = 1; !rc && s < end; number++) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        size_t len = nl ? (size_t)(nl - s) : (size_t)(end - s);
        rc = fn(b, o, s, len, number, out);
        if (!rc) rc = flush_at(out, OUT_FLUSH);
        s += len + (nl != NULL);
    }
    return rc;
}

static int with_stdin(const RunOptions *o, LineFn fn) {
    QsfRuntime rt;
    RunTextBudget b;
    QsfRuntimeOptions ro = run_runtime_options(o);
    const uint64_t resident = qsf_rss_bytes();
    QsfStrbuf in = QSF_STRBUF_INIT, out = QSF_STRBUF_INIT;
    ro.text_only = true;
    int rc = run_open(&rt, o, &ro);
    if (rc) return rc;
    run_text_budget_begin(&b, &rt, o, resident);
    rc = run_text_budget_read(&b, &in);
    if (!rc) rc = fn ? each_line(&b, o, &in, fn, &out) : tokenize_text(&b, o, &in, &out);
    int written = flush_at(&out, 1);
    qsf_strbuf_free(&in);
    qsf_strbuf_free(&out);
    qsf_runtime_close(&rt);
    return rc ? rc : written;
}

int run_tokenize(const RunOptions *o) { return with_stdin(o, o->jsonl ? tokenize_line : NULL); }

int run_detokenize(const RunOptions *o) { return with_stdin(o, detokenize_line); }
