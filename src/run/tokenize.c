/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --tokenize and --detokenize: convert text to ids and back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/clock.h"
#include "src/base/decode.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/plan/options.h"
#include "src/run/run.h"
#include "src/token/tokenizer.h"

/* --- the RAM budget, without a plan: what is resident, the vocabulary, the text and what is made of it are
 * charged to the ledger of the runtime; without --ram-budget there is no limit --- */

/* The text so far, or all of it. */
typedef struct RunTextSize {
    uint64_t len, line, longest_line; /* bytes; line: since the last newline */
    QsfWords words;
} RunTextSize;

typedef struct RunTextBudget {
    QsfRuntime *rt;
    bool lines;       /* the text is JSON strings, one per line */
    uint64_t base;    /* bytes of the process before the vocabulary is read, including
                         pages that it will touch later */
    uint64_t charged; /* of the text */
    RunTextSize size;
} RunTextBudget;

/* Bytes per byte of a line while it is JSON: the text of the parser, the value, the string. */
#define RUN_LINE_BYTES 6u

#define MIB (1ull << 20)
/* Pages of the program and its libraries that are touched later, expressions, the output. */
#define SLACK (3 * MIB)
#define STEP  (256ull << 10) /* bytes of text that are charged together */

/* Sets the limit for an open runtime without weights. resident: the resident set before it was opened. */
static void text_budget_begin(RunTextBudget *b, QsfRuntime *rt, const RunOptions *o, uint64_t resident) {
    *b = (RunTextBudget){ .rt = rt, .lines = o->jsonl, .base = (resident + SLACK + MIB - 1) / MIB * MIB };
    if (!qsf_setting_user_set(&o->settings, qsf_setting_find("ram-budget"))) return;
    const uint64_t limit = qsf_settings_budget(&o->settings,
                                               (QsfPlanMemory){ qsf_available_bytes(), qsf_limit_below("") });
    if (limit == 0) return; /* auto: what it needs */
    QsfErr none = { 0 };
    (void)qsf_ledger_reserve(&rt->ledger, QSF_MEM_CODE, b->base, "program", &none);
    (void)qsf_ledger_reserve(&rt->ledger, QSF_MEM_KERNEL, MIB + limit / 1000 * 3, "kernel", &none);
    qsf_ledger_set_limit(&rt->ledger, limit);
}

static void count(RunTextSize *s, const char *text, size_t len) {
    s->len += len;
    qsf_words_feed(&s->words, text, len);
    for (const char *at = text, *end = text + len; at < end;) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        s->line += (size_t)((nl != NULL ? nl : end) - at);
        if (s->line > s->longest_line) s->longest_line = s->line;
        if (nl != NULL) s->line = 0;
        at = nl != NULL ? nl + 1 : end;
    }
}

/* The row of the kernel grows with the budget. */
static uint64_t smallest(const RunTextBudget *b) {
    const RunTextSize *s = &b->size;
    const size_t part = (size_t)(b->lines ? s->longest_line : s->len);
    const size_t word = s->words.longest < part ? s->words.longest : part;
    const uint64_t vocabulary = b->rt->ledger.used[QSF_MEM_TOKENIZER] + b->rt->ledger.used[QSF_MEM_META];
    const uint64_t rest = b->base + vocabulary + s->len + STEP +
                          (b->lines ? RUN_LINE_BYTES * (uint64_t)part : 0) +
                          qsf_tokenizer_need(b->rt->tok, part, word);
    return (rest + 2 * MIB) / 997 * 1000 / MIB + 1;
}

/* Completes a refusal with that budget; returns err->code. Other errors stay as they are. */
static int text_budget_advise(const RunTextBudget *b, QsfErr *err) {
    char text[QSF_ERR_MSG_MAX];
    if (err->code != QSF_E_BUDGET) return err->code;
    snprintf(text, sizeof text, "%.*s\nsmallest budget that works: %" PRIu64 " MB", QSF_ERR_MSG_MAX - 64,
             err->msg, smallest(b));
    qsf_err_clear(err);
    return qsf_err_lines(err, QSF_E_BUDGET, text);
}

/* Charges the text with all that is read at the moment. */
static int charge(RunTextBudget *b, uint64_t bytes, QsfErr *err) {
    if (bytes <= b->charged) return QSF_OK;
    const uint64_t more = (bytes - b->charged + STEP - 1) / STEP * STEP;
    int rc = qsf_ledger_reserve(&b->rt->ledger, QSF_MEM_TRANSCRIPT, more, "the text", err);
    if (rc == QSF_OK) b->charged += more;
    return rc;
}

/* A mark of UTF-16 or UTF-32 means a second text, which may be longer. */
static int decode(RunTextBudget *b, QsfStrbuf *in, QsfErr *err) {
    const uint64_t copy = qsf_decode_name(in->data, in->len) != NULL ? QSF_DECODE_MAX((uint64_t)in->len) : 0;
    int rc = qsf_ledger_reserve(&b->rt->ledger, QSF_MEM_TRANSCRIPT, copy, "decoding the text", err);
    if (rc != QSF_OK) {
        b->size.len += copy;
        return text_budget_advise(b, err);
    }
    if (!qsf_strbuf_decode(in)) qsf_cli_error(&run_cli, "stdin: %s", QSF_DECODE_DAMAGED);
    qsf_ledger_release(&b->rt->ledger, QSF_MEM_TRANSCRIPT, copy);
    b->size = (RunTextSize){ 0 };
    count(&b->size, qsf_strbuf_str(in), in->len);
    return charge(b, in->len, err) == QSF_OK ? QSF_OK : text_budget_advise(b, err);
}

/* After a refusal the rest is only counted. Returns an exit code for errors of stdin. */
static int read_all(RunTextBudget *b, QsfStrbuf *in, QsfErr *err) {
    char buf[16384];
    ssize_t n;
    while ((n = read(STDIN_FILENO, buf, sizeof buf)) != 0) {
        const int sig = n < 0 && errno == EINTR ? atomic_load(&qsf_signal_cancel) : 0;
        if (sig) return 128 + sig;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            qsf_cli_error(&run_cli, "stdin: %s", strerror(errno));
            return QSF_EXIT_RUNTIME;
        }
        count(&b->size, buf, (size_t)n);
        if (err->code == QSF_OK && charge(b, b->size.len, err) == QSF_OK)
            qsf_strbuf_add(in, buf, (size_t)n);
        else
            qsf_strbuf_free(in);
    }
    return QSF_EXIT_OK;
}

/* Reads stdin as run_read_stdin, within the budget. Returns an exit code; everything is reported, a
 * budget that is too small (QSF_E_BUDGET) with the smallest one that works for the whole text, which
 * is read to its end for that. */
static int text_budget_read(RunTextBudget *b, QsfStrbuf *in) {
    QsfErr err = { 0 };
    int rc = charge(b, 1, &err);
    rc = read_all(b, in, &err);
    if (rc) return rc;
    if (err.code == QSF_OK && in->len > 0 && qsf_strbuf_ok(in))
        (void)decode(b, in, &err);
    else
        (void)text_budget_advise(b, &err);
    if (err.code != QSF_OK) return run_fail(&err);
    if (qsf_strbuf_ok(in)) return QSF_EXIT_OK;
    qsf_cli_error(&run_cli, "stdin: out of memory");
    return QSF_EXIT_RUNTIME;
}

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
        (void)text_budget_advise(b, &err);
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
    if (rc) (void)text_budget_advise(b, &err);
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
    text_budget_begin(&b, &rt, o, resident);
    rc = text_budget_read(&b, &in);
    if (!rc) rc = fn ? each_line(&b, o, &in, fn, &out) : tokenize_text(&b, o, &in, &out);
    int written = flush_at(&out, 1);
    qsf_strbuf_free(&in);
    qsf_strbuf_free(&out);
    qsf_runtime_close(&rt);
    return rc ? rc : written;
}

int run_tokenize(const RunOptions *o) { return with_stdin(o, o->jsonl ? tokenize_line : NULL); }

int run_detokenize(const RunOptions *o) { return with_stdin(o, detokenize_line); }
