/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements text_budget.h. */
#include "src/run/text_budget.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/clock.h"
#include "src/base/decode.h"
#include "src/plan/options.h"

#define MIB (1ull << 20)
/* Pages of the program and its libraries that are touched later, expressions, the output. */
#define SLACK (3 * MIB)
#define STEP  (256ull << 10) /* bytes of text that are charged together */

void run_text_budget_begin(RunTextBudget *b, QsfRuntime *rt, const RunOptions *o, uint64_t resident) {
    *b = (RunTextBudget){ .rt = rt, .lines = o->jsonl, .base = (resident + SLACK + MIB - 1) / MIB * MIB };
    if (!qsf_setting_user_set(&o->settings, qsf_setting_find("ram-budget"))) return;
    const uint64_t limit = qsf_settings_budget(&o->settings, qsf_available_bytes());
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

int run_text_budget_advise(const RunTextBudget *b, QsfErr *err) {
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
        return run_text_budget_advise(b, err);
    }
    if (!qsf_strbuf_decode(in)) qsf_cli_error(&run_cli, "stdin: %s", QSF_DECODE_DAMAGED);
    qsf_ledger_release(&b->rt->ledger, QSF_MEM_TRANSCRIPT, copy);
    b->size = (RunTextSize){ 0 };
    count(&b->size, qsf_strbuf_str(in), in->len);
    return charge(b, in->len, err) == QSF_OK ? QSF_OK : run_text_budget_advise(b, err);
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

int run_text_budget_read(RunTextBudget *b, QsfStrbuf *in) {
    QsfErr err = { 0 };
    int rc = charge(b, 1, &err);
    rc = read_all(b, in, &err);
    if (rc) return rc;
    if (err.code == QSF_OK && in->len > 0 && qsf_strbuf_ok(in))
        (void)decode(b, in, &err);
    else
        (void)run_text_budget_advise(b, &err);
    if (err.code != QSF_OK) return run_fail(&err);
    if (qsf_strbuf_ok(in)) return QSF_EXIT_OK;
    qsf_cli_error(&run_cli, "stdin: out of memory");
    return QSF_EXIT_RUNTIME;
}
